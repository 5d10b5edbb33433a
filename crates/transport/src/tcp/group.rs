//! How upstream Linux groups segments. One buffer leaves as several segments, and the last is pushed. A buffer that
//! could hold more waits for the next acknowledgement if that is near (net/ipv4/tcp_output.c `tcp_write_xmit`,
//! `tcp_tso_should_defer`, `__tcp_transmit_skb`).

use super::flight::Flight;
use super::{Chunk, Push, Socket};
use crate::linux::send_memory;
use crate::path::{CaState, Path};
use crate::tcp::context::{Context, Options};
use crate::{MILLISECOND, Nanos};

/// A group may wait only within this time of the last one.
const RECENT: Nanos = MILLISECOND;
/// The part of the window that leaves without waiting (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// The buffer at the head of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    /// Bytes in it, those that the peer's window admits from its first on, and all of that window. A subflow's is what the peer offers in
    /// its own sequence numbers, whatever the connection has sent on others (`tcp_wnd_end`).
    pub bytes: u64,
    pub window: u64,
    pub offered: u64,
    /// Others wait behind it.
    pub followed: bool,
    /// A rest smaller than a segment may leave.
    pub rest_leaves: bool,
    /// Nothing follows it any more.
    pub ends: bool,
}

/// The head waits: for the next acknowledgement, or for the host's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deferred {
    /// The congestion window is what keeps it.
    pub by_window: bool,
}

/// Chunks that leave together, and whether the last is pushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub segments: u32,
    pub bytes: u64,
    pub push: Push,
}

impl Socket {
    /// Takes what leaves together from the buffer at the head: so many chunks, and whether the last is pushed.
    #[inline(never)]
    pub(super) fn begin_group(
        &mut self,
        cx: &mut Context<impl Options>,
    ) -> Result<(u32, Push), Deferred> {
        let group = self.next_group(cx, false)?;
        if !self.host_admits(&cx.path, None, group.bytes, false) {
            return Err(Deferred { by_window: false });
        }
        self.take_group(group);
        Ok((group.segments, group.push))
    }

    /// What of the buffer at the head leaves together; `at_once`: it does not wait for an acknowledgement.
    #[inline(always)]
    pub(super) fn next_group(
        &mut self,
        cx: &mut Context<impl Options>,
        at_once: bool,
    ) -> Result<Group, Deferred> {
        let Some(head) = self.queue.buffers_mut().and_then(|it| it.head(0)) else {
            return Ok(Group {
                segments: 1,
                bytes: 0,
                push: Push::No,
            });
        };
        let rest = (head.len % u64::from(cx.path.mss.max(1))) as u32;
        let front = Front {
            bytes: head.len,
            window: self
                .window
                .end()
                .saturating_sub(self.transfer.flight.next()),
            offered: self.window.end().saturating_sub(self.transfer.flight.una()),
            followed: !head.last,
            rest_leaves: !head.last || self.nagle_admits(cx.shared, rest, cx.path.mss),
            ends: self.lifetime.closing(),
        };
        let group = if at_once {
            segments(&self.transfer.flight, &cx.path, front)
        } else {
            {
                let mss = self.plain_mss();
                group(&self.transfer.flight, &cx.path, mss, cx.shared.now, front)?
            }
        };
        let (mut number, mut bytes) = (0, 0);
        for chunk in self.queue.chunks().iter().take(group as usize) {
            let len = u64::from(chunk.len);
            let fits = number == 0 || bytes + len <= head.len;
            if !cx.shared.admits(chunk.offset + len) || !fits {
                break;
            }
            (number, bytes) = (number + 1, bytes + len);
        }
        Ok(Group {
            segments: number,
            bytes,
            push: Push::of_group(number, head.push && bytes == head.len),
        })
    }

    #[inline(always)]
    pub(super) fn take_group(&mut self, group: Group) {
        (self.queue).leave(group.bytes, self.transfer.flight.next() + group.bytes);
    }

    /// Sends a group of what is queued, whatever the rules on small segments say. The window has room. False: nothing is queued that the
    /// peer's window admits.
    #[cold]
    pub(crate) fn send_group(&mut self, cx: &mut Context<impl Options>) -> bool {
        let queued = self.queue.front();
        let admitted = |first: &Chunk| cx.shared.admits(first.offset + u64::from(first.len));
        if !queued.is_some_and(admitted) {
            return false;
        }
        let Ok(group) = self.next_group(cx, true) else {
            return false;
        };
        self.take_group(group);
        self.send_chunks(cx, group);
        true
    }

    /// Sends a group that was taken, and the FIN after the last.
    pub(super) fn send_chunks(&mut self, cx: &mut Context<impl Options>, group: Group) {
        for nth in 1..=group.segments {
            let Some(mut chunk) = self.queue.pop() else {
                break;
            };
            if self.queue.has_buffers() {
                let last = nth == group.segments;
                chunk.push = if last { group.push } else { Push::No };
            }
            self.send_chunk(cx, chunk);
        }
        if self.lifetime.fin_waits() {
            self.send_fin(cx);
        }
    }
}

/// How many segments of the head leave together. The window has room. `plain_mss`: what fits without the options of Multipath TCP, although
/// every segment has them.
pub(crate) fn group(
    flight: &Flight,
    path: &Path,
    plain_mss: u32,
    now: Nanos,
    head: Front,
) -> Result<u32, Deferred> {
    let mss = u64::from(path.mss.max(1));
    if head.bytes > mss
        && let Some(deferred) = defers(flight, path, plain_mss, now, head)
    {
        return Err(deferred);
    }
    Ok(segments(flight, path, head))
}

fn defers(
    flight: &Flight,
    path: &Path,
    plain_mss: u32,
    now: Nanos,
    head: Front,
) -> Option<Deferred> {
    if matches!(path.state, CaState::Recovery | CaState::Loss)
        || now > flight.data_left_at() + RECENT
    {
        return None;
    }
    let most = send_memory::segments_sent(path);
    let mss = u64::from(plain_mss.max(1));
    let admitted = u64::from(path.cwnd.saturating_sub(flight.in_flight())) * mss;
    let limit = admitted.min(head.window);
    let fraction = head.offered.min(u64::from(path.cwnd) * mss) / WINDOW_DIVISOR;
    if limit >= most * mss || (head.followed && limit >= head.bytes) || limit >= fraction {
        return None;
    }
    let first = flight.segments().front()?;
    let expected = first.sent_at + path.srtt;
    if expected > now + RECENT.min(path.srtt / 2) || (head.ends && limit > head.bytes) {
        return None;
    }
    Some(Deferred {
        by_window: admitted < head.window && admitted <= head.bytes,
    })
}

/// How many segments of the head leave together if none waits.
pub(crate) fn segments(flight: &Flight, path: &Path, head: Front) -> u32 {
    let mss = u64::from(path.mss.max(1));
    let whole = head.bytes / mss;
    let rest = u64::from(head.rest_leaves && head.bytes % mss > 0);
    quota(flight, path).min(whole + rest).max(1) as u32
}

/// The most segments that leave together (`tcp_cwnd_test`, `tcp_tso_segs`).
pub(crate) fn quota(flight: &Flight, path: &Path) -> u64 {
    let room = path.cwnd.saturating_sub(flight.in_flight());
    u64::from(room.min((path.cwnd / 2).max(1))).min(send_memory::segments_sent(path))
}

#[cfg(test)]
mod tests {
    use super::super::Reckoning;
    use super::super::flight::Sent;
    use super::*;
    use crate::settings::{Config, Profile};

    const MSS: u32 = 1_000;
    const WITH_TIMESTAMPS: u16 = 1_012;
    const NOW: Nanos = 100 * MILLISECOND;

    /// A path of 10 ms on which buffers of 20 segments may leave, and a socket that sent `in_flight` segments half a millisecond ago, the
    /// first of them 9.8 ms ago: its acknowledgement is due in 0.2 ms.
    fn sending(in_flight: u32) -> (Socket, Path) {
        let config = Config {
            profile: Profile::Linux,
            ..Config::default()
        };
        let congestion = crate::congestion::REGISTRY.make("cubic", &serde_json::Map::new());
        let mut socket = Socket::new(
            &config,
            WITH_TIMESTAMPS,
            1,
            congestion.expect("an entry"),
            Reckoning::Rate,
        );
        for nth in 0..in_flight {
            let age = if nth == 0 { 9_800 } else { 500 };
            (socket.transfer.flight).push(Sent::syn(NOW - age * crate::MICROSECOND));
        }
        socket.transfer.flight.note_data_left(NOW - MILLISECOND / 2);
        let path = Path {
            mss: MSS,
            cwnd: 60,
            srtt: 10 * MILLISECOND,
            min_rtt: 10 * MILLISECOND,
            pacing_rate: u64::from(20 * MSS) << 10,
            ..Path::new(1_460, 10)
        };
        (socket, path)
    }

    fn front(bytes: u64) -> Front {
        Front {
            bytes,
            window: 1_000_000,
            offered: 1_000_000,
            followed: false,
            rest_leaves: true,
            ends: false,
        }
    }

    fn waits(socket: &Socket, path: &Path, front: Front) -> Option<bool> {
        let group = group(
            &socket.transfer.flight,
            path,
            socket.plain_mss(),
            NOW,
            front,
        );
        group.err().map(|deferred| deferred.by_window)
    }

    /// 55 of 60 are in flight: five fit, fewer than a buffer and than a third of the window.
    #[test]
    fn a_buffer_waits_for_an_acknowledgement_that_is_near() {
        let (socket, path) = sending(55);
        assert_eq!(waits(&socket, &path, front(20_000)), Some(true));
        let leaves = |change: &dyn Fn(&mut Socket, &mut Path, &mut Front)| {
            let (mut socket, mut path) = sending(55);
            let mut front = front(20_000);
            change(&mut socket, &mut path, &mut front);
            waits(&socket, &path, front).is_none()
        };
        assert!(leaves(&|_, path, _| path.state = CaState::Recovery));
        assert!(leaves(&|socket, _, _| socket
            .transfer
            .flight
            .note_data_left(NOW - 2 * MILLISECOND)));
        assert!(leaves(&|_, path, _| path.srtt = 11 * MILLISECOND));
        assert!(leaves(&|_, _, front| front.bytes = 1_000));
        assert!(leaves(
            &|_, _, front| (front.bytes, front.followed) = (5_000, true)
        ));
        assert!(!leaves(&|_, _, front| front.followed = true));
        let (socket, path) = sending(39);
        assert_eq!(waits(&socket, &path, front(30_000)), None, "a whole buffer");
        let (socket, path) = sending(45);
        assert_eq!(waits(&socket, &path, front(20_000)), Some(true));
        let narrow = Front {
            offered: 45_000,
            ..front(20_000)
        };
        assert_eq!(waits(&socket, &path, narrow), None, "a third of the window");
    }

    /// `is_cwnd_limited` and `is_rwnd_limited`: the congestion window keeps it where it is the smaller and no larger than the buffer.
    #[test]
    fn what_keeps_a_buffer_is_told() {
        let (socket, path) = sending(55);
        for (bytes, window, by_window) in [
            (20_000, 1_000_000, true),
            (5_000, 1_000_000, true),
            (4_000, 1_000_000, false),
            (20_000, 5_000, false),
            (20_000, 3_000, false),
        ] {
            let front = Front {
                window,
                ..front(bytes)
            };
            assert_eq!(
                waits(&socket, &path, front),
                Some(by_window),
                "{bytes} of {window}"
            );
        }
    }

    /// Of the window twenty segments are left, as many as leave together, but no twenty segments without options.
    #[test]
    fn options_of_multipath_tcp_make_a_whole_buffer_wait() {
        let (socket, mut path) = sending(39);
        let with = |len: u32| Front {
            window: u64::from(20 * len),
            ..front(u64::from(20 * len))
        };
        assert_eq!(waits(&socket, &path, with(MSS)), None);
        path.mss = MSS - 24;
        assert_eq!(waits(&socket, &path, with(MSS - 24)), Some(false));
    }

    /// Nothing that is awaited would make it longer: with room for all of it, the last leaves.
    #[test]
    fn the_end_of_a_stream_waits_only_where_it_does_not_fit() {
        let (socket, path) = sending(55);
        for (bytes, waiting) in [(4_000, false), (5_000, true), (20_000, true)] {
            let front = Front {
                ends: true,
                ..front(bytes)
            };
            assert_eq!(waits(&socket, &path, front).is_some(), waiting, "{bytes}");
        }
    }
}
