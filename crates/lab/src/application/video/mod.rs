//! Adaptive video over HTTP. The client asks for one segment after another, each in the representation that its rule
//! chooses.

mod chunk;
mod player;
mod rule;

use std::collections::VecDeque;

use polypath_settings::Model;

use super::http::{request_head, response_head};
use super::kind::{Beginning, Begun, CONNECTIONS, Delays, Direction, Entry, Kind, Traffic};
use super::session::{Io, Request, Session, Side};
use crate::plan::Video;
pub(crate) use chunk::Chunk;
use player::{Next, Player};

/// A scenario says how long it is, a Plan how many segments that makes and what its rule comes to, so that they share no settings.
pub(super) const ENTRY: Entry = Entry {
    model: Model {
        name: "video",
        summary: "Adaptive video over HTTP/1.1 (DASH): segments one after the other into a player's buffer, each at the rate that a rule chooses; over QUIC all on one stream",
        source: "ISO/IEC 23009-1; rules: Yin et al., SIGCOMM 2015, and Huang et al., SIGCOMM 2014",
        parameters: &[],
        groups: &[],
    },
    transports: CONNECTIONS,
    traffic: Traffic::of(Direction::Fetched, Delays::Parts),
};

impl Kind for Video {
    fn fault(&self) -> Option<String> {
        Video::fault(self)
    }

    fn begin(&self, _: Beginning) -> Begun {
        Begun::session(Streaming::new(self))
    }
}

struct Streaming {
    player: Player,
    /// Bytes of the answer that the client still waits for.
    missing: u64,
    /// The server's side: bytes received beyond whole requests, and the requests on their way.
    heard: u64,
    requests: VecDeque<Wanted>,
}

/// A request for a segment.
struct Wanted {
    head: u64,
    /// Of the answer's body.
    bytes: u64,
}

impl Streaming {
    fn new(video: &Video) -> Self {
        Self {
            player: Player::new(video.clone()),
            missing: 0,
            heard: 0,
            requests: VecDeque::new(),
        }
    }

    fn client(&mut self, io: &mut Io) {
        if self.missing > 0 {
            self.missing = self.missing.saturating_sub(io.arrived);
            if self.missing > 0 {
                return;
            }
            self.player.arrived(io.now);
            if let Some(last) = io.requests.last_mut() {
                last.delay = Some(io.now - last.sent_at);
            }
        }
        match self.player.next(io.now) {
            Next::Ask { path, bytes } => {
                let head = request_head(&path);
                io.requests.push(Request {
                    sent_at: io.now,
                    delay: None,
                });
                self.missing = response_head(bytes).len() as u64 + bytes;
                self.requests.push_back(Wanted {
                    head: head.len() as u64,
                    bytes,
                });
                io.write_message(&head, 0);
            }
            Next::Wait(until) => *io.wake = until,
            Next::Nothing => io.close(),
        }
    }

    fn server(&mut self, io: &mut Io) {
        self.heard += io.arrived;
        while let Some(&Wanted { head, bytes }) = self.requests.front() {
            if self.heard < head {
                break;
            }
            self.heard -= head;
            self.requests.pop_front();
            io.write_message(&response_head(bytes), bytes);
        }
        if io.connection.at_end() {
            io.close();
        }
    }
}

impl Session for Streaming {
    fn run(&mut self, io: &mut Io) {
        match io.side {
            Side::Client => self.client(io),
            Side::Server => self.server(io),
        }
    }

    fn chunks(&self) -> Vec<Chunk> {
        self.player.chunks().to_vec()
    }
}
