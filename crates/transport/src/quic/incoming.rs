//! Incoming streams: reassembly, and the limits announced to the peer (RFC 9000 sections 2.2, 3.2 and 4).

use polypath_wire::quic::TransportError;

use crate::ranges::RangeSet;

/// A new limit is told when so small a part of the window was read (one eighth, as quinn does; RFC 9000 section 4.2 leaves it open).
const STEP: u64 = 8;

/// How the peer broke a rule of streams (RFC 9000 sections 4.1 and 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    FlowControl,
    FinalSize,
}

impl Violation {
    /// What the connection is closed with for it.
    pub fn fault(self) -> (TransportError, &'static str) {
        match self {
            Self::FlowControl => (
                TransportError::FLOW_CONTROL_ERROR,
                "more data than was admitted",
            ),
            Self::FinalSize => (
                TransportError::FINAL_SIZE_ERROR,
                "the final size of a stream changed",
            ),
        }
    }
}

/// The receiving part of a stream (RFC 9000 section 3.2).
#[derive(Debug)]
struct Stream {
    id: u64,
    next: u64,
    reassembly: RangeSet,
    highest: u64,
    read: u64,
    end: Option<u64>,
    /// The limit that the peer was told.
    max: u64,
    /// The error with which the peer reset it.
    reset: Option<u64>,
}

impl Stream {
    fn available(&self) -> u64 {
        if self.reset.is_some() {
            0
        } else {
            self.next - self.read
        }
    }

    fn at_end(&self) -> bool {
        self.reset.is_some() || self.end == Some(self.read)
    }

    fn readable(&self) -> bool {
        self.available() > 0 || self.at_end()
    }
}

/// The receiving half of all streams.
#[derive(Debug)]
pub(super) struct Incoming {
    streams: Vec<Stream>,
    /// What the application may leave unread, of a stream and of all together.
    stream_window: u64,
    window: u64,
    /// Sum of the highest offsets, of what was read, and the limit that the peer was told.
    received: u64,
    read: u64,
    max: u64,
    /// Bytes that wait for others before them in their stream. Whether that changed, and by what was missing, since somebody asked.
    waiting: u64,
    news: bool,
    filled: bool,
}

impl Incoming {
    pub fn new(stream_window: u64, window: u64) -> Self {
        Self {
            streams: Vec::new(),
            stream_window,
            window,
            received: 0,
            read: 0,
            max: window,
            waiting: 0,
            news: false,
            filled: false,
        }
    }

    pub fn open(&mut self, id: u64) {
        let at = self.streams.partition_point(|stream| stream.id < id);
        self.streams.insert(
            at,
            Stream {
                id,
                next: 0,
                reassembly: RangeSet::default(),
                highest: 0,
                read: 0,
                end: None,
                max: self.stream_window,
                reset: None,
            },
        );
    }

    fn index(&self, id: u64) -> Option<usize> {
        if let [only] = &self.streams[..] {
            return (only.id == id).then_some(0);
        }
        self.streams
            .binary_search_by_key(&id, |stream| stream.id)
            .ok()
    }

    /// Takes a STREAM frame. Returns the bytes of it that are new; a stream that is over takes none.
    ///
    /// # Errors
    /// The frame goes beyond a limit, or beyond the stream's end.
    pub fn on_data(&mut self, id: u64, offset: u64, len: u64, fin: bool) -> Result<u64, Violation> {
        let Some(at) = self.index(id) else {
            return Ok(0);
        };
        let end = offset + len;
        self.extend(at, end, fin.then_some(end))?;
        let stream = &mut self.streams[at];
        if stream.reset.is_some() {
            return Ok(0);
        }
        if offset <= stream.next && stream.reassembly.is_empty() {
            let next = stream.next.max(end);
            return Ok(next - std::mem::replace(&mut stream.next, next));
        }
        Ok(self.on_data_around_holes(at, offset, end))
    }

    #[inline(never)]
    fn on_data_around_holes(&mut self, at: usize, offset: u64, end: u64) -> u64 {
        let stream = &mut self.streams[at];
        let (next, waiting) = (stream.next, stream.reassembly.bytes());
        if offset <= next {
            if end > next {
                stream.next = stream.reassembly.take_up_to(end);
            }
        } else {
            stream.reassembly.insert(offset, end, |_, _| {});
        }
        let (advance, left) = (stream.next - next, stream.reassembly.bytes());
        self.waiting = self.waiting + left - waiting;
        self.news |= advance > 0 || left != waiting;
        self.filled |= advance > 0;
        advance + left - waiting
    }

    /// [`Incoming::take_waiting`] has something.
    pub fn has_news(&self) -> bool {
        self.news
    }

    /// Whether more waits, or what was missing came, since this was last asked: the latter, and how much waits in all streams now.
    pub fn take_waiting(&mut self) -> Option<(bool, u64)> {
        let filled = std::mem::take(&mut self.filled);
        std::mem::take(&mut self.news).then_some((filled, self.waiting))
    }

    /// Takes a RESET_STREAM frame: what was not read is gone.
    ///
    /// # Errors
    /// As [`Incoming::on_data`].
    pub fn on_reset(&mut self, id: u64, error: u64, final_size: u64) -> Result<(), Violation> {
        let Some(at) = self.index(id) else {
            return Ok(());
        };
        self.extend(at, final_size, Some(final_size))?;
        let stream = &mut self.streams[at];
        if stream.reset.is_none() {
            stream.reset = Some(error);
            let dropped = std::mem::take(&mut stream.reassembly).bytes();
            self.waiting -= dropped;
            self.news |= dropped > 0;
            self.read += final_size - stream.read;
            stream.read = final_size;
        }
        Ok(())
    }

    /// Checks a stretch up to `end` against limits and final size, and counts it.
    fn extend(&mut self, at: usize, end: u64, final_size: Option<u64>) -> Result<(), Violation> {
        let stream = &mut self.streams[at];
        let beyond = stream.end.is_some_and(|known| end > known);
        let moved = final_size.is_some_and(|size| {
            stream.end.is_some_and(|known| known != size) || size < stream.highest
        });
        if beyond || moved {
            return Err(Violation::FinalSize);
        }
        let more = end.saturating_sub(stream.highest);
        if end > stream.max || self.received + more > self.max {
            return Err(Violation::FlowControl);
        }
        stream.end = stream.end.or(final_size);
        stream.highest += more;
        self.received += more;
        Ok(())
    }

    /// In-order bytes of a stream that wait to be read.
    pub fn available(&self, id: u64) -> u64 {
        self.index(id).map_or(0, |at| self.streams[at].available())
    }

    /// Streams with something to read, or that ended.
    pub fn readable(&self) -> impl Iterator<Item = u64> + '_ {
        let readable = self.streams.iter().filter(|stream| stream.readable());
        readable.map(|stream| stream.id)
    }

    /// The stream, where there is a single one.
    pub fn only(&self) -> Option<u64> {
        match &self.streams[..] {
            [only] => Some(only.id),
            _ => None,
        }
    }

    pub fn is_readable(&self, id: u64) -> bool {
        self.index(id).is_some_and(|at| self.streams[at].readable())
    }

    /// The application reads up to `bytes`.
    pub fn read(&mut self, id: u64, bytes: u64) -> u64 {
        let Some(at) = self.index(id) else {
            return 0;
        };
        let stream = &mut self.streams[at];
        let taken = bytes.min(stream.available());
        stream.read += taken;
        self.read += taken;
        taken
    }

    /// The stream ended and everything was read, or it was reset.
    pub fn at_end(&self, id: u64) -> bool {
        self.index(id).is_some_and(|at| self.streams[at].at_end())
    }

    /// The error with which the peer reset a stream that was not read since.
    pub fn reset(&self, id: u64) -> Option<u64> {
        self.streams[self.index(id)?].reset
    }

    /// Forgets a stream that ended.
    pub fn close(&mut self, id: u64) {
        self.streams.retain(|stream| stream.id != id);
    }

    /// No stream is open.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub fn is_open(&self, id: u64) -> bool {
        self.index(id).is_some()
    }

    /// Bytes that wait for others before them in their stream.
    pub fn reassembly_bytes(&self) -> u64 {
        self.waiting
    }

    /// The limit of all streams, if it moved far enough to be told.
    pub fn take_max(&mut self) -> Option<u64> {
        let limit = self.read + self.window;
        let due = limit - self.max >= self.window / STEP && limit > self.max;
        due.then(|| {
            self.max = limit;
            limit
        })
    }

    /// Tells the limits of streams that moved far enough. A stream whose end is known needs none.
    pub fn take_stream_max(&mut self, mut tell: impl FnMut(u64, u64)) {
        let window = self.stream_window;
        for stream in self.streams.iter_mut() {
            let limit = stream.read + window;
            let due = stream.end.is_none() && limit > stream.max;
            if due && limit - stream.max >= window / STEP {
                stream.max = limit;
                tell(stream.id, limit);
            }
        }
    }

    /// The limits as they stand, to be told again.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// As [`Incoming::max`], of a stream that still needs one.
    pub fn stream_max(&self, id: u64) -> Option<u64> {
        let stream = &self.streams[self.index(id)?];
        stream.end.is_none().then_some(stream.max)
    }

    /// What the peer may still send beyond what arrived, as a recording shows it.
    pub fn offered(&self) -> u64 {
        self.max - self.received
    }

    pub fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incoming() -> Incoming {
        let mut incoming = Incoming::new(1000, 1600);
        incoming.open(0);
        incoming.open(4);
        incoming
    }

    fn stream_max(incoming: &mut Incoming) -> Vec<(u64, u64)> {
        let mut told = Vec::new();
        incoming.take_stream_max(|stream, max| told.push((stream, max)));
        told
    }

    #[test]
    fn a_stream_is_put_in_order() {
        let mut incoming = incoming();
        assert_eq!(incoming.on_data(0, 100, 100, true), Ok(100));
        assert_eq!(
            (incoming.available(0), incoming.reassembly_bytes()),
            (0, 100)
        );
        assert_eq!(incoming.on_data(0, 0, 150, false), Ok(100));
        assert_eq!(incoming.read(0, 1000), 200);
        assert!(incoming.at_end(0) && !incoming.at_end(4));
    }

    #[test]
    fn one_stream_does_not_wait_for_another() {
        let mut incoming = incoming();
        incoming.on_data(0, 100, 100, false).expect("admitted");
        incoming.on_data(4, 0, 100, false).expect("admitted");
        assert_eq!(incoming.readable().collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn limits_are_held_and_move_with_reading() {
        let mut incoming = incoming();
        assert_eq!(
            incoming.on_data(0, 0, 1001, false),
            Err(Violation::FlowControl)
        );
        assert_eq!(incoming.on_data(0, 0, 1000, false), Ok(1000));
        assert_eq!(
            incoming.on_data(4, 0, 601, false),
            Err(Violation::FlowControl)
        );
        assert_eq!(
            (incoming.take_max(), stream_max(&mut incoming)),
            (None, vec![])
        );
        incoming.read(0, 200);
        assert_eq!(incoming.take_max(), Some(1800));
        assert_eq!(stream_max(&mut incoming), [(0, 1200)]);
        assert_eq!(incoming.on_data(4, 0, 800, false), Ok(800));
    }

    #[test]
    fn the_final_size_is_final() {
        let mut incoming = incoming();
        incoming.on_data(0, 0, 100, false).expect("admitted");
        assert_eq!(incoming.on_data(0, 50, 0, true), Err(Violation::FinalSize));
        incoming.on_data(0, 100, 100, true).expect("admitted");
        assert_eq!(
            incoming.on_data(0, 200, 1, false),
            Err(Violation::FinalSize)
        );
        assert_eq!(incoming.on_reset(0, 7, 300), Err(Violation::FinalSize));
        assert_eq!(incoming.on_reset(0, 7, 200), Ok(()));
        assert!(incoming.at_end(0));
    }

    #[test]
    fn a_reset_stream_gives_its_credit_back() {
        let mut incoming = incoming();
        incoming.on_data(0, 0, 1000, false).expect("admitted");
        incoming.on_reset(0, 7, 1000).expect("the same size");
        assert_eq!(incoming.take_max(), Some(2600));
        assert_eq!((incoming.available(0), incoming.reset(0)), (0, Some(7)));
    }
}
