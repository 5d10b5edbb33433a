//! The buffer of a player: what it holds, when it plays, and when it stalls.

use polypath_transport::{Nanos, SECOND};

use super::chunk::Chunk;
use super::rule::choose;
use crate::plan::Video;

/// What the client does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Asks for a segment, which has so many bytes.
    Ask { path: String, bytes: u64 },
    /// Nothing before this time: the buffer is full.
    Wait(Nanos),
    /// The whole video is there.
    Nothing,
}

pub(super) struct Player {
    video: Video,
    /// All but the last one came; the last one may be on its way.
    chunks: Vec<Chunk>,
    /// So many have their time.
    settled: usize,
    /// When what is settled will have been played.
    plays_until: Nanos,
}

impl Player {
    pub fn new(video: Video) -> Self {
        Self {
            video,
            chunks: Vec::new(),
            settled: 0,
            plays_until: 0,
        }
    }

    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Chooses the next segment and notes that it is asked for; the one before came.
    pub fn next(&mut self, now: Nanos) -> Next {
        let number = self.chunks.len() as u64;
        if self.video.segments.is_some_and(|count| number >= count) {
            return Next::Nothing;
        }
        let (buffered, segment) = (self.buffered(now), self.video.segment_ns);
        let room = self.video.buffer_ns.saturating_sub(segment);
        if buffered > room {
            return Next::Wait(now + (buffered - room));
        }
        let representation = choose(&self.video, &self.chunks, buffered);
        let rate_bps = self.video.rates_bps[representation];
        let bits = u128::from(rate_bps) * u128::from(segment) / u128::from(SECOND);
        let bytes = (bits as u64).div_ceil(8).max(1);
        self.chunks.push(Chunk {
            asked_at: now,
            arrived_at: None,
            representation: representation as u32,
            rate_bps,
            bytes,
            buffered_ns: buffered,
            played_at: None,
        });
        Next::Ask {
            path: format!("/{representation}/{number}"),
            bytes,
        }
    }

    /// The segment that was asked for is there.
    pub fn arrived(&mut self, now: Nanos) {
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.arrived_at = Some(now);
        }
        if self.plays(now) || self.may_begin() {
            self.settle(now);
        }
    }

    /// Whether pictures are shown, or the last one just was.
    fn plays(&self, now: Nanos) -> bool {
        self.settled > 0 && self.plays_until >= now
    }

    /// Whether enough is there to begin, or to go on after a stall: no more fits, or no more comes.
    fn may_begin(&self) -> bool {
        let (waiting, segment) = (self.waiting(), self.video.segment_ns);
        let whole = self.video.segments == Some(self.chunks.len() as u64);
        waiting >= self.video.startup_ns || waiting + segment > self.video.buffer_ns || whole
    }

    /// Gives every segment its time.
    fn settle(&mut self, now: Nanos) {
        self.plays_until = if self.plays(now) {
            self.plays_until
        } else {
            now
        };
        for chunk in &mut self.chunks[self.settled..] {
            chunk.played_at = Some(self.plays_until);
            self.plays_until += self.video.segment_ns;
        }
        self.settled = self.chunks.len();
    }

    /// Of segments that came and have no time yet.
    fn waiting(&self) -> Nanos {
        (self.chunks.len() - self.settled) as u64 * self.video.segment_ns
    }

    fn buffered(&self, now: Nanos) -> Nanos {
        let playing = if self.settled > 0 {
            self.plays_until.saturating_sub(now)
        } else {
            0
        };
        playing + self.waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::VideoRule;

    fn player(segments: Option<u64>, buffer: u64, startup: u64) -> Player {
        Player::new(Video {
            segment_ns: 2 * SECOND,
            segments,
            rates_bps: vec![1_000_000, 2_000_000],
            buffer_ns: buffer * SECOND,
            startup_ns: startup * SECOND,
            rule: VideoRule::Throughput {
                window: 5,
                safety: 1.0,
            },
        })
    }

    fn ask(path: &str, bytes: u64) -> Next {
        Next::Ask {
            path: path.to_owned(),
            bytes,
        }
    }

    fn played(player: &Player) -> Vec<Option<u64>> {
        let seconds = |at: Nanos| at / SECOND;
        player
            .chunks()
            .iter()
            .map(|chunk| chunk.played_at.map(seconds))
            .collect()
    }

    #[test]
    fn play_begins_at_the_startup_buffer_and_again_after_a_stall() {
        let mut player = player(None, 30, 4);
        assert_eq!(player.next(0), ask("/0/0", 250_000));
        player.arrived(SECOND);
        assert_eq!(played(&player), [None]);
        // The first came at 2 Mbit/s.
        assert_eq!(player.next(SECOND), ask("/1/1", 500_000));
        player.arrived(2 * SECOND);
        assert_eq!(played(&player), [Some(2), Some(4)]);
        player.next(2 * SECOND);
        assert_eq!(player.chunks()[2].buffered_ns, 4 * SECOND);
        // What is there ends at 6 s; at 9 s one segment is not enough to go on.
        player.arrived(9 * SECOND);
        player.next(9 * SECOND);
        assert_eq!(played(&player)[2..], [None, None]);
        player.arrived(10 * SECOND);
        assert_eq!(played(&player)[2..], [Some(10), Some(12)]);
    }

    #[test]
    fn a_segment_that_comes_as_the_last_ends_is_no_stall() {
        let mut player = player(None, 30, 2);
        for at in [1, 3] {
            player.next(at * SECOND - SECOND);
            player.arrived(at * SECOND);
        }
        assert_eq!(played(&player), [Some(1), Some(3)]);
    }

    #[test]
    fn a_full_buffer_is_waited_for() {
        let mut player = player(None, 5, 2);
        for _ in 0..2 {
            assert!(matches!(player.next(SECOND), Next::Ask { .. }));
            player.arrived(SECOND);
        }
        // 4 s are there, and 2 more fit once 1 s is played.
        assert_eq!(player.next(SECOND), Next::Wait(2 * SECOND));
        assert!(matches!(player.next(2 * SECOND), Next::Ask { .. }));
    }

    #[test]
    fn what_never_reaches_the_startup_buffer_plays_once_it_is_whole_or_no_more_fits() {
        let mut whole = player(Some(1), 30, 20);
        whole.next(0);
        whole.arrived(SECOND);
        assert_eq!(whole.next(SECOND), Next::Nothing);
        assert_eq!(played(&whole), [Some(1)]);
        let mut full = player(None, 5, 5);
        for at in [1, 2] {
            full.next(at * SECOND);
            full.arrived(at * SECOND);
        }
        assert_eq!(played(&full), [Some(2), Some(4)]);
    }
}
