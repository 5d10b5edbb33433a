//! Messages at regular intervals, each with a delay of its own: in DATAGRAM frames (RFC 9221), or one after another in
//! a stream.

use polypath_settings::{choice, model};
use polypath_transport::{Nanos, SECOND};

use super::kind::{Beginning, Begun, Delays, Direction, Entry, Kind, Traffic};
use super::session::{Io, Request, Session, Side};
use crate::plan::Transport;

model! {
    "messages",
    "Messages at regular intervals over QUIC, in DATAGRAM frames or in a stream",
    "RFC 9221";
    /// Settings of messages.
    MessagesConfig {
        /// Bytes of a message.
        bytes: u64 as Size.called("size"),
        /// Time from one message to the next.
        interval_ns: Nanos as Period.at_least(0),
        /// In DATAGRAM frames (RFC 9221), which are neither retransmitted nor kept in order, or one after the other in a
        /// stream. A message that fits no packet is refused as a datagram.
        #[serde(default)]
        delivery: Delivery as Text = Text("datagrams"),
        /// How long it sends; left out: to the end of the run.
        duration_ns: Nanos as Period.or_rest(),
        /// The server sends.
        #[serde(default)]
        reverse: bool as Boolean = Boolean(false),
    }
}

choice! {
    /// How messages are carried.
    #[derive(Default)]
    Delivery {
        /// In DATAGRAM frames (RFC 9221): what is lost stays lost, and nothing waits for anything else.
        #[default]
        Datagrams = "datagrams",
        /// In order in one stream.
        Stream = "stream",
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: &[Transport::Mpquic, Transport::Quic],
    traffic: Traffic::of(Direction::OneWay, Delays::Messages),
};

impl Kind for MessagesConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn needs_datagrams(&self) -> bool {
        self.delivery == Delivery::Datagrams
    }

    fn begin(&self, at: Beginning) -> Begun {
        Begun::session(Messages::new(at.start, *self))
    }
}

/// How long the last messages are waited for.
const LINGER: Nanos = SECOND;

struct Messages {
    sender: Side,
    delivery: Delivery,
    bytes: u64,
    interval: Nanos,
    ends_at: Nanos,
    began_at: Option<Nanos>,
    made: u64,
    /// By the number of a DATAGRAM frame, the number of its message: what is refused gets no frame.
    framed: Vec<usize>,
    /// Bytes of the stream that came.
    came: u64,
}

impl Messages {
    fn new(start: Nanos, config: MessagesConfig) -> Self {
        Self {
            sender: Side::sending(config.reverse),
            delivery: config.delivery,
            bytes: config.bytes,
            interval: config.interval_ns.max(1),
            ends_at: start.saturating_add(config.duration_ns),
            began_at: None,
            made: 0,
            framed: Vec::new(),
            came: 0,
        }
    }

    fn send(&mut self, io: &mut Io) {
        let began = *self.began_at.get_or_insert(io.now);
        let due = |number: u64| began.saturating_add(number.saturating_mul(self.interval));
        while io.due(due(self.made)) && due(self.made) < self.ends_at {
            let number = io.requests.len();
            io.requests.push(Request {
                sent_at: io.now,
                delay: None,
            });
            self.made += 1;
            match self.delivery {
                Delivery::Stream => io.write(self.bytes),
                Delivery::Datagrams if io.send_datagram(self.bytes) => self.framed.push(number),
                Delivery::Datagrams => {}
            }
        }
        let next = due(self.made);
        let over = self.ends_at.saturating_add(LINGER);
        if next < self.ends_at {
            *io.wake = next;
        } else if io.due(over) {
            io.close();
        } else {
            *io.wake = over;
        }
    }

    fn receive(&mut self, io: &mut Io) {
        self.came += io.arrived;
        if self.delivery == Delivery::Stream {
            let whole = (self.came / self.bytes.max(1)) as usize;
            let waiting = io.requests.iter_mut().take(whole).rev();
            for request in waiting.take_while(|request| request.delay.is_none()) {
                request.delay = Some(io.now - request.sent_at);
            }
        }
        let Some(frames) = io.frames.as_deref_mut() else {
            return self.end(io);
        };
        for &(number, len) in &frames.datagrams {
            let request = self.framed.get(number as usize);
            let Some(request) = request.and_then(|&it| io.requests.get_mut(it)) else {
                continue;
            };
            // A frame may come again on another path.
            if request.delay.is_none() {
                request.delay = Some(io.now - request.sent_at);
                frames.taken += u64::from(len);
            }
        }
        self.end(io);
    }

    fn end(&self, io: &mut Io) {
        if io.connection.at_end() {
            io.close();
        }
    }
}

impl Session for Messages {
    fn run(&mut self, io: &mut Io) {
        if io.side == self.sender {
            self.send(io);
        } else {
            self.receive(io);
        }
    }
}
