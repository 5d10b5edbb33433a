//! Adaptive video over HTTP: the client asks for one segment after the other, each in the representation that its rule chooses.

mod player;
mod rule;

use std::collections::VecDeque;

use super::http::{REQUEST_HEAD, response_head};
use super::{Io, Request, Session, Side};
use crate::plan::Video;
pub(crate) use player::Chunk;
use player::{Next, Player};

pub(super) const NAME: &str = "video";
pub(super) const DESCRIPTION: &str = "Adaptive video over HTTP/1.1 (DASH): segments one after the other into a player's buffer, each at the rate that a rule chooses";
pub(super) const SOURCE: &str =
    "ISO/IEC 23009-1; rules: Yin et al., SIGCOMM 2015, and Huang et al., SIGCOMM 2014";

pub(super) struct Streaming {
    player: Player,
    /// Bytes of the answer that the client still waits for.
    missing: u64,
    /// The server's side: bytes received beyond whole requests, and the bodies of the answers to those that are on their way.
    heard: u64,
    answers: VecDeque<u64>,
}

impl Streaming {
    pub fn new(video: &Video) -> Self {
        Self {
            player: Player::new(video.clone()),
            missing: 0,
            heard: 0,
            answers: VecDeque::new(),
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
            Next::Ask(bytes) => {
                io.requests.push(Request {
                    sent_at: io.now,
                    delay: None,
                });
                self.missing = response_head(bytes).len() as u64 + bytes;
                self.answers.push_back(bytes);
                io.write_message(REQUEST_HEAD, 0);
            }
            Next::Wait(until) => *io.wake = until,
            Next::Nothing => io.close(),
        }
    }

    fn server(&mut self, io: &mut Io) {
        let request = REQUEST_HEAD.len() as u64;
        self.heard += io.arrived;
        while self.heard >= request {
            self.heard -= request;
            if let Some(bytes) = self.answers.pop_front() {
                io.write_message(&response_head(bytes), bytes);
            }
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

    fn chunks(&self) -> &[Chunk] {
        self.player.chunks()
    }
}
