//! Frames between their first transmission and their delivery: block acks and the receiver's reorder buffer.
//!
//! Sender and receiver share one window here. A received frame waits behind those that were not received, as in the
//! reorder buffer of IEEE Std 802.11-2016, 10.24.7.6.2. A frame that is given up makes room for those behind it, as the
//! BlockAckReq that reports it does (10.24.7.3).

use std::collections::VecDeque;

use crate::queue::Queued;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Unsent,
    OnAir,
    Received,
}

#[derive(Debug)]
struct Frame {
    packet: Queued,
    number: u64,
    attempts: u32,
    fate: Fate,
}

/// The frames that have numbers, in their order.
#[derive(Debug)]
pub(crate) struct Window {
    frames: VecDeque<Frame>,
    size: u64,
    next: u64,
}

impl Window {
    pub fn new(size: u64) -> Self {
        Self {
            frames: VecDeque::new(),
            size,
            next: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether another frame may be given a number.
    pub fn has_room(&self) -> bool {
        self.frames
            .front()
            .is_none_or(|first| self.next - first.number < self.size)
    }

    pub fn push(&mut self, packet: Queued) {
        self.frames.push_back(Frame {
            packet,
            number: self.next,
            attempts: 0,
            fate: Fate::Unsent,
        });
        self.next += 1;
    }

    /// The frame at `place` or the first one after it that is to be sent: its place and length.
    pub fn unsent(&self, place: usize) -> Option<(usize, u64)> {
        let rest = self.frames.iter().enumerate().skip(place);
        let mut unsent = rest.filter(|(_, frame)| frame.fate == Fate::Unsent);
        unsent
            .next()
            .map(|(place, frame)| (place, u64::from(frame.packet.size)))
    }

    pub fn put_on_air(&mut self, place: usize) {
        if let Some(frame) = self.frames.get_mut(place) {
            frame.fate = Fate::OnAir;
        }
    }

    /// What was on the air has been: whether any frame was received. `fails` decides on each; those that were sent `most` times are
    /// handed to `lost`.
    pub fn settle(
        &mut self,
        most: u32,
        mut fails: impl FnMut() -> bool,
        mut lost: impl FnMut(Queued),
    ) -> bool {
        let mut received = false;
        self.frames.retain_mut(|frame| {
            if frame.fate != Fate::OnAir {
                return true;
            }
            frame.attempts += 1;
            if !fails() {
                received = true;
                frame.fate = Fate::Received;
                return true;
            }
            frame.fate = Fate::Unsent;
            if frame.attempts >= most {
                lost(frame.packet);
            }
            frame.attempts < most
        });
        received
    }

    /// The next frame that the receiver hands on.
    pub fn deliver(&mut self) -> Option<Queued> {
        let first = self.frames.front()?;
        if first.fate != Fate::Received {
            return None;
        }
        self.frames.pop_front().map(|frame| frame.packet)
    }

    pub fn drain(&mut self) -> impl Iterator<Item = Queued> + '_ {
        self.frames.drain(..).map(|frame| frame.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Travel;

    fn queued(slot: u32) -> Queued {
        Queued {
            slot,
            size: 100,
            entered: 0,
            travel: Travel::InOrder(0),
        }
    }

    fn send(window: &mut Window) -> Vec<usize> {
        let mut sent = Vec::new();
        while let Some((place, _)) = window.unsent(0) {
            window.put_on_air(place);
            sent.push(place);
        }
        sent
    }

    fn settle(window: &mut Window, fails: &[bool]) -> (bool, Vec<u32>) {
        let (mut fails, mut lost) = (fails.iter(), Vec::new());
        let any = window.settle(
            2,
            || *fails.next().expect("as many as are on the air"),
            |packet| lost.push(packet.slot),
        );
        (any, lost)
    }

    fn delivered(window: &mut Window) -> Vec<u32> {
        std::iter::from_fn(|| window.deliver())
            .map(|packet| packet.slot)
            .collect()
    }

    #[test]
    fn only_failed_frames_go_again_and_the_others_wait_for_them() {
        let mut window = Window::new(4);
        (0..4).for_each(|slot| window.push(queued(slot)));
        assert!(!window.has_room());
        assert_eq!(send(&mut window), [0, 1, 2, 3]);
        assert_eq!(
            settle(&mut window, &[false, true, false, true]),
            (true, vec![])
        );
        assert_eq!(delivered(&mut window), [0]);
        // The window has moved by one.
        window.push(queued(4));
        assert!(!window.has_room());
        assert_eq!(send(&mut window), [0, 2, 3]);
        // 1 is lost for good, 3 comes through, 4 has to go again.
        assert_eq!(settle(&mut window, &[true, false, true]), (true, vec![1]));
        assert_eq!(delivered(&mut window), [2, 3]);
        assert_eq!(send(&mut window), [0]);
        assert_eq!(settle(&mut window, &[true]), (false, vec![4]));
        assert!(window.is_empty());
    }
}
