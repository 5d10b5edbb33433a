//! The peer's window as this socket was offered it (RFC 9293 section 3.3.1, SND.WND).

use polypath_wire::tcp::Segment;

/// Where the peer's window ends, and what is known of its past.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerWindow {
    /// Right edge, when this socket is the whole connection.
    end: u64,
    /// The sequence number of the segment that set it (SND.WL1).
    seq: u32,
    /// The largest that the peer offered here (RFC 5961 section 5.2, MAX.SND.WND).
    largest: u64,
    /// Where the one that it offered last ends, if that is closed; else 0, or where one ended before.
    closed_at: u64,
}

impl Default for PeerWindow {
    /// Of a peer that is not heard of: what follows a SYN ends with it.
    fn default() -> Self {
        Self {
            end: 1,
            seq: 0,
            largest: 0,
            closed_at: 0,
        }
    }
}

impl PeerWindow {
    #[inline(always)]
    pub fn end(self) -> u64 {
        self.end
    }

    #[inline(always)]
    pub fn largest(self) -> u64 {
        self.largest
    }

    /// A SYN, or what completes a handshake, offers it up to `end`.
    pub fn begin(&mut self, end: u64, window: u64) {
        self.end = end;
        self.largest = window;
    }

    /// A segment offers it. True: its right edge moves to the right.
    #[inline(always)]
    pub fn offer(&mut self, window: u64, end: u64, seq: u32) -> bool {
        self.largest = self.largest.max(window);
        let more = end > self.end;
        if more {
            self.set(end, seq);
        }
        more
    }

    /// The right edge moves left if a newer segment than the one that set it says so (`tcp_may_update_window`). `acknowledges`: the segment
    /// acknowledges something new. True: it moved.
    #[cold]
    pub fn shrink(&mut self, end: u64, segment: &Segment, acknowledges: bool) -> bool {
        let later = self.lag(segment.seq);
        let newer = acknowledges || later > 0 || (later == 0 && segment.window == 0);
        if newer {
            self.set(end, segment.seq);
        }
        newer
    }

    /// The one that was offered last is closed, or is not.
    pub fn note_closed(&mut self, closed: bool) {
        self.closed_at = if closed { self.end } else { 0 };
    }

    /// How far a segment comes after the one that set the right edge.
    fn lag(self, seq: u32) -> i32 {
        seq.wrapping_sub(self.seq) as i32
    }

    fn set(&mut self, end: u64, seq: u32) {
        (self.end, self.seq) = (end, seq);
    }

    /// It took what it offered before back, and offers nothing.
    pub fn is_closed(self) -> bool {
        self.closed_at == self.end
    }
}
