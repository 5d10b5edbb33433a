//! Messages at regular intervals, each with a delay of its own: in DATAGRAM frames (RFC 9221), or one after the other in a stream.

use polypath_transport::{Nanos, SECOND};

use super::{Io, Request, Session, Side};
use crate::plan::Delivery;

pub(super) const NAME: &str = "messages";
pub(super) const DESCRIPTION: &str =
    "Messages at regular intervals over QUIC, in DATAGRAM frames or in a stream";
pub(super) const SOURCE: &str = "RFC 9221";

/// How long the last messages are waited for.
const LINGER: Nanos = SECOND;

pub(super) struct Messages {
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
    pub fn new(
        start: Nanos,
        bytes: u64,
        interval: Nanos,
        duration: Nanos,
        delivery: Delivery,
        reverse: bool,
    ) -> Self {
        Self {
            sender: if reverse { Side::Server } else { Side::Client },
            delivery,
            bytes,
            interval: interval.max(1),
            ends_at: start.saturating_add(duration),
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
