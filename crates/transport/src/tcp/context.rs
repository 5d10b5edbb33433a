//! What a socket needs of the connection that it belongs to.

use std::sync::Arc;

use polypath_wire::tcp::Segment;

use crate::path::Member;
use crate::settings::Config;
use crate::stream::{Blocking, Receiver};
use crate::tcp::once::Once;
use crate::tcp::refusal;
use crate::{Counters, Event, EventKind, Mib, Nanos, Purpose, Transmit};

/// What the sockets of a connection have in common.
pub(crate) struct Shared {
    pub config: Arc<Config>,
    pub now: Nanos,
    pub out: Vec<Transmit>,
    pub events: Vec<Event>,
    pub counters: Counters,
    pub receive: Receiver,
    pub blocking: Blocking,
    /// Why the segment was sent that is being taken.
    pub arriving: Purpose,
    /// Some socket received a FIN.
    pub fin_seen: bool,
    /// The peer's window admits the stream up to here.
    pub send_limit: u64,
    /// What a cork held back leaves now.
    pub uncorked: bool,
    /// The writer will go on at once.
    pub more_follows: bool,
    /// The largest window that the peer offered.
    pub largest_window: u64,
    /// The application waits for room to write, under upstream's rules (SOCK_NOSPACE).
    pub writer_waits: bool,
    /// The subflow whose packet is taken in while readers and writers wait for the instant's other packets, under upstream's rules.
    pub softirq: Option<usize>,
    /// What of the stream has left.
    pub once: Once,
    /// Reused between acknowledgements.
    pub scratch: Vec<(u64, u64)>,
}

impl Shared {
    pub fn new(config: Arc<Config>, now: Nanos) -> Self {
        Self {
            receive: Receiver::new(&config),
            config,
            now,
            out: Vec::new(),
            events: Vec::new(),
            counters: Counters::default(),
            blocking: Blocking::default(),
            arriving: Purpose::Data,
            fin_seen: false,
            send_limit: 0,
            uncorked: false,
            more_follows: false,
            largest_window: 0,
            writer_waits: false,
            softirq: None,
            once: Once::default(),
            scratch: Vec::new(),
        }
    }

    pub fn event(&mut self, kind: EventKind) {
        self.events.push(Event { at: self.now, kind });
    }

    pub fn admits(&self, end: u64) -> bool {
        end <= self.send_limit
    }

    /// Takes what came in sequence on a socket.
    #[inline]
    pub fn deliver(&mut self, subflow: usize, offset: u64, len: u64) {
        if !self.receive.deliver_next(offset, len) {
            self.deliver_around_holes(subflow, offset, len);
        }
    }

    #[inline(never)]
    fn deliver_around_holes(&mut self, subflow: usize, offset: u64, len: u64) {
        let (next, waiting) = (self.receive.next, self.receive.reassembly_bytes());
        if offset > next {
            self.counters.increment(Mib::MPTcpExtOFOQueue);
        }
        if self.receive.deliver(offset, len) < len {
            self.counters.increment(Mib::MPTcpExtDuplicateData);
        }
        let left = self.receive.reassembly_bytes();
        if waiting | left > 0 {
            self.note_waiting(subflow, next, waiting, left);
        }
    }

    /// `waiting` bytes were out of order before a delivery, `left` are after it.
    fn note_waiting(&mut self, subflow: usize, next: u64, waiting: u64, left: u64) {
        if self.receive.next > next {
            let cause = self.arriving.into();
            (self.blocking).connection_advances(subflow, left, cause, self.now);
        } else if left != waiting {
            self.blocking.connection_holds(left, self.now);
        }
    }
}

/// What the layer above a socket adds to its segments. Lengths are bytes of option space (RFC 9293 section 3.1).
pub(crate) trait Options {
    /// Whether each segment says where in the connection's stream its data belongs; otherwise the socket's sequence space is the stream.
    fn maps_data(&self) -> bool;

    /// What the option of every data segment takes of its payload.
    fn data_len(&self) -> u32;

    /// By how much the first data segment's option is longer.
    fn first_segment_excess(&self) -> u32;

    /// On a SYN, or on the SYN/ACK that is an `answer`.
    fn add_to_syn(&self, answer: bool, segment: &mut Segment);

    /// On the ACK that completes a handshake.
    fn add_to_third_ack(&self, segment: &mut Segment);

    /// On a segment without data. Returns the option space left.
    fn add_to_ack(&self, shared: &Shared, segment: &mut Segment) -> u32;

    /// On the segment whose data begins at `seq` of the socket's sequence space. Returns the option space left.
    fn add_to_data(&self, shared: &mut Shared, seq: u64, segment: &mut Segment) -> u32;
}

/// What a socket is given for as long as a call takes: what it shares with others, its path, and the options of its segments.
pub(crate) struct Context<'a, O> {
    pub shared: &'a mut Shared,
    pub path: Member<'a>,
    pub options: O,
}

impl<O: Options> Context<'_, O> {
    /// Sends a segment without data.
    pub fn emit(&mut self, segment: Segment) {
        let transmit = self.transmit(segment, Purpose::Control);
        self.shared.out.push(transmit);
    }

    /// Resets a peer that sends to a socket that is closed or never was.
    pub fn refuse(&mut self, segment: &Segment) {
        if let Some(reset) = refusal(segment) {
            self.shared.counters.increment(Mib::TcpOutRsts);
            self.emit(reset);
        }
    }

    /// A segment of its subflow, to be filled in where it is and pushed onto [`Shared::out`].
    #[inline(always)]
    pub fn transmit(&self, segment: Segment, purpose: Purpose) -> Transmit {
        Transmit {
            subflow: self.path.index,
            segment,
            purpose,
        }
    }
}
