//! Proxies between the two ends of an application: a chain of connections, each of which relays what the one before
//! brought.
//!
//! The application's client is at the first connection, its server at the last. At each proxy a relay reads from one
//! connection and writes to the next, both ways. It reads no more than its own buffer holds, so that a slow leg closes
//! the receive window of the one before. A split connection has flow control of its own on each leg (RFC 3135 section
//! 2.4). The buffer has the size of a pipe of Linux (pipe(7)), by which proxies splice.
//!
//! A proxy opens the next connection once the one before is established.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polypath_transport::CloseReason;

use super::load::Loaded;
use super::session::{Io, Session, Side};
use super::video::Chunk;

/// Bytes that a relay holds in each direction.
pub(crate) const RELAY_BYTES: u64 = 65_536;

/// One direction through a proxy.
#[derive(Default)]
struct Pipe {
    /// Bytes that were read from one connection and not yet written to the other.
    waiting: u64,
    /// The stream that is read has ended, or its connection failed.
    ended: bool,
    failed: bool,
    /// The end was passed on.
    closed: bool,
}

/// A proxy: what it relays to the server, and to the client.
#[derive(Default)]
struct Joint {
    opened: bool,
    pipes: [Pipe; 2],
}

const TO_SERVER: usize = 0;
const TO_CLIENT: usize = 1;

struct Chain {
    inner: Box<dyn Session>,
    /// The applications whose connections these are, in order from the client.
    legs: Vec<usize>,
    joints: Vec<Joint>,
}

/// The chains of a plan, by the application whose client begins them.
#[derive(Default)]
pub(crate) struct Chains(BTreeMap<usize, Arc<Mutex<Chain>>>);

impl Chains {
    /// What runs over the connections of `legs`, the first of which is the application's own.
    pub fn add(&mut self, inner: Box<dyn Session>, legs: Vec<usize>) -> Box<dyn Session> {
        let joints = (1..legs.len()).map(|_| Joint::default()).collect();
        let first = legs[0];
        let chain = Chain {
            inner,
            legs,
            joints,
        };
        self.0.insert(first, Arc::new(Mutex::new(chain)));
        self.leg(first, first).expect("it was just added")
    }

    /// The ends of one connection of a chain; none if it is in none.
    pub fn leg(&self, first: usize, application: usize) -> Option<Box<dyn Session>> {
        let chain = self.0.get(&first)?;
        let legs = &lock(chain).legs;
        let leg = legs.iter().position(|&leg| leg == application)?;
        let last = leg + 1 == legs.len();
        Some(Box::new(Leg {
            chain: Arc::clone(chain),
            leg,
            last,
        }))
    }
}

fn lock(chain: &Mutex<Chain>) -> MutexGuard<'_, Chain> {
    chain.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both ends of one connection of a chain.
struct Leg {
    chain: Arc<Mutex<Chain>>,
    leg: usize,
    last: bool,
}

impl Leg {
    fn is_relay(&self, side: Side) -> bool {
        match side {
            Side::Client => self.leg > 0,
            Side::Server => !self.last,
        }
    }
}

impl Session for Leg {
    fn run(&mut self, io: &mut Io) {
        let mut chain = lock(&self.chain);
        if !self.is_relay(io.side) {
            return chain.inner.run(io);
        }
        match io.side {
            Side::Server => {
                let other = (chain.legs[self.leg + 1], Side::Client);
                chain.joints[self.leg].relay(io, TO_SERVER, TO_CLIENT, other);
            }
            Side::Client => {
                let other = (chain.legs[self.leg - 1], Side::Server);
                chain.joints[self.leg - 1].relay(io, TO_CLIENT, TO_SERVER, other);
            }
        }
    }

    fn holds(&self, side: Side) -> Option<u64> {
        self.is_relay(side).then_some(RELAY_BYTES)
    }

    fn chunks(&self) -> Vec<Chunk> {
        match self.leg {
            0 => lock(&self.chain).inner.chunks(),
            _ => Vec::new(),
        }
    }

    fn loaded(&self) -> Vec<Loaded> {
        match self.leg {
            0 => lock(&self.chain).inner.loaded(),
            _ => Vec::new(),
        }
    }
}

impl Joint {
    /// One end of a connection at the proxy: reads into one pipe, writes from the other, and has the other end called if it is news.
    fn relay(&mut self, io: &mut Io, reads: usize, writes: usize, other: (usize, Side)) {
        let opens = !self.opened && io.connection.established();
        self.opened |= opens;
        let mut news = opens;
        let ended = io.connection.ended();
        let into = &mut self.pipes[reads];
        into.waiting += io.arrived;
        news |= io.arrived > 0;
        if !into.ended && io.connection.at_end() {
            into.ended = true;
            news = true;
        }
        if !into.failed && ended.is_some_and(|reason| reason != CloseReason::Finished) {
            into.failed = true;
            news = true;
        }
        *io.holds = RELAY_BYTES - into.waiting;
        if *io.holds > 0 && io.connection.available() > 0 {
            *io.wake = io.now;
        }
        let out = &mut self.pipes[writes];
        if ended.is_some() {
            out.waiting = 0;
        } else if out.failed && !out.closed {
            out.closed = true;
            io.abort();
        } else if !out.closed {
            let (unacknowledged, unsent) = io.connection.send_queue();
            let room = io.connection.buffers().0;
            let room = room.saturating_sub(unacknowledged + unsent);
            let bytes = out.waiting.min(room);
            if bytes > 0 {
                out.waiting -= bytes;
                io.write(bytes);
                news = true;
            }
            if out.ended && out.waiting == 0 {
                out.closed = true;
                io.close();
            }
        }
        if news {
            io.roused.push(other);
        }
    }
}
