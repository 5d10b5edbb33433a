//! Plain TCP: one socket, without a scheduler.

use crate::linux::CALL;
use crate::linux::send_memory;
use crate::linux::small_queue::SmallQueue;
use crate::linux::write_queue::WriteQueue;
use crate::mptcp::connection::Connection;
use crate::tcp::{Advice, Front, Push, group, most_of_window};

const ME: usize = 0;

/// So many segments of a buffer of `bytes`, the last of which is pushed or not.
#[derive(Clone, Copy)]
struct Group {
    segments: u32,
    bytes: u64,
    push: bool,
}

/// What a plain TCP sender waits for (Linux `enum tcp_chrono`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// There is nothing to send.
    Idle,
    /// The network: what was sent is under way, or the congestion window is full.
    Busy,
    /// The peer's window.
    ReceiveWindow,
    /// Everything was sent, and the writer waits for room.
    SendBuffer,
}

/// How many segments of the head leave together.
fn group_at(connection: &Connection, front: Front) -> Result<u32, group::Deferred> {
    let socket = &connection.subflows[ME].socket;
    let (flight, mss) = (&socket.transfer.flight, socket.plain_mss());
    group::group(
        flight,
        &connection.paths[ME],
        mss,
        connection.shared.now,
        front,
    )
}

impl Connection {
    /// What sending waits for at present. Under other profiles than `linux` a writer is not told apart.
    pub fn limit(&self) -> Limit {
        let (path, socket) = (&self.paths[ME], &self.subflows[ME].socket);
        let waits = self.send.buffers.as_ref().is_some_and(WriteQueue::blocked);
        match self.send_queue() {
            (0, _) => Limit::Idle,
            (_, 0) if waits && !socket.transfer.controller.is_limited(path) => Limit::SendBuffer,
            (_, 1..) if path.room() > 0 && self.window_closed() => Limit::ReceiveWindow,
            _ => Limit::Busy,
        }
    }

    /// Upstream TCP: what waits leaves, which may let the writer get on, whose calls let more leave (`tcp_data_snd_check`). Not inline, so
    /// that the other profiles' way through their callers stays as short as it is.
    #[inline(never)]
    pub(super) fn push_buffers(&mut self) {
        let una = self.send.una;
        let window = self.shared.send_limit.saturating_sub(una);
        self.shared.largest_window = self.shared.largest_window.max(window);
        if let Some(buffers) = &mut self.send.buffers {
            buffers.acknowledge(una);
        }
        self.transmit(false);
        self.check_space();
        if self.shared.softirq.is_none() {
            self.run_plain_writer();
        }
        self.watch_buffers();
        debug_assert_eq!(
            self.send.buffers.as_ref().map(WriteQueue::unsent),
            Some(self.send.unsent())
        );
    }

    /// As [`Self::watch_window`], where a window that is open may be too narrow for what waits.
    pub(super) fn watch_buffers(&mut self) {
        let unsent = self.send.unsent();
        self.watch(unsent > 0 && self.window_is_short(unsent));
    }

    pub(super) fn run_plain_writer(&mut self) {
        self.shared.more_follows = self.send.more;
        while self.send.waiting > 0 && self.send.buffers.as_ref().is_some_and(|it| !it.blocked()) {
            self.write_call();
        }
        self.shared.more_follows = false;
    }

    /// One call of the writer (`tcp_sendmsg_locked`).
    fn write_call(&mut self) {
        let mss = self.paths[ME].mss;
        let largest = self.shared.largest_window;
        let goal = u64::from(mss) * send_memory::most_segments(mss, largest) as u64;
        let ends = self.send.records.front().copied();
        let record = ends.map_or(u64::MAX, |end| end - self.send.written);
        let call = self.send.waiting.min(CALL).min(record);
        let mut left = call;
        while left > 0 {
            let room = self.send.room();
            let Some(buffers) = &mut self.send.buffers else {
                return;
            };
            let Some(taken) = buffers.append(left, goal, room, left == call) else {
                break;
            };
            left -= taken.bytes;
            self.send.written += taken.bytes;
            self.send.waiting -= taken.bytes;
            if left == 0 || !taken.full {
                continue;
            }
            if buffers.must_push(self.send.written, largest) {
                buffers.push(self.send.written);
                self.transmit(false);
            } else if buffers.one_waits() {
                self.transmit(true);
            }
        }
        if left < call
            && let Some(buffers) = &mut self.send.buffers
        {
            if ends == Some(self.send.written) {
                buffers.end_record();
                self.send.records.pop_front();
            }
            self.shared.more_follows &= left == 0 && self.send.waiting == 0;
            if !self.shared.more_follows || buffers.must_push(self.send.written, largest) {
                buffers.push(self.send.written);
            }
            self.transmit(false);
        }
    }

    /// Sends what waits, or one buffer of it (`tcp_write_xmit`).
    pub(super) fn transmit(&mut self, one: bool) {
        self.with(ME, |socket, cx| socket.send_unsent(cx));
        if !one && self.subflows[ME].socket.mss.searches() && !self.probe_path() {
            return;
        }
        while let Some(group) = self.next_group(one) {
            if !self.host_admits(group) {
                break;
            }
            self.send_buffer(group);
            self.check_space();
            if one {
                return;
            }
        }
    }

    /// What of the head leaves next. None: nothing may.
    #[inline(always)]
    fn next_group(&mut self, one: bool) -> Option<Group> {
        if !self.subflows[ME].socket.state().sends() || self.paths[ME].room() == 0 {
            return None;
        }
        let mss = u64::from(self.paths[ME].mss.max(1));
        let quota = group::quota(&self.subflows[ME].socket.transfer.flight, &self.paths[ME]);
        let head = self.send.buffers.as_mut()?.head(quota * mss)?;
        if self.window_is_short(head.len) {
            return None;
        }
        if self.cut(ME) == 0 {
            self.hold(ME);
            return None;
        }
        let rest = (head.len % mss) as u32;
        let front = Front {
            bytes: head.len,
            window: self.shared.send_limit.saturating_sub(self.send.sent),
            offered: self.shared.send_limit.saturating_sub(self.send.una),
            followed: !head.last,
            rest_leaves: !head.last
                || self.send.finishing()
                || self.subflows[ME]
                    .socket
                    .nagle_admits(&self.shared, rest, self.paths[ME].mss),
            ends: self.send.finishing(),
        };
        let group = if one {
            Ok(group::segments(
                &self.subflows[ME].socket.transfer.flight,
                &self.paths[ME],
                front,
            ))
        } else {
            group_at(self, front)
        };
        match group {
            Ok(segments) => Some(Group {
                segments,
                bytes: head.len,
                push: head.push,
            }),
            Err(deferred) => {
                if deferred.by_window {
                    let socket = &mut self.subflows[ME].socket;
                    socket
                        .transfer
                        .controller
                        .note_usage(&socket.transfer.flight, true);
                }
                None
            }
        }
    }

    /// The window has no room for a segment of so many bytes, or all of them (`tcp_snd_wnd_test`). No more is waited for than half of the
    /// largest window that there was, or all of a very small one (`tcp_bound_to_half_wnd`).
    #[inline(always)]
    pub(super) fn window_is_short(&self, bytes: u64) -> bool {
        let most = most_of_window(self.shared.largest_window);
        let wanted = bytes.min(self.paths[ME].mss.into()).min(most);
        self.shared.send_limit < self.send.sent + wanted
    }

    /// The timer of window probes sends what the window has room for (`tcp_write_wakeup`). False: it has none.
    #[cold]
    pub(super) fn send_what_fits(&mut self) -> bool {
        let room = self.shared.send_limit.saturating_sub(self.send.sent);
        let head = self.send.buffers.as_mut().and_then(|it| it.head(0));
        let Some(head) = head.filter(|_| room > 0) else {
            return false;
        };
        let len = head.len.min(room).min(self.paths[ME].mss.into());
        self.send_new(ME, len as u32, Push::Always);
        if let Some(buffers) = &mut self.send.buffers {
            buffers.leave(len, self.send.sent);
        }
        true
    }

    /// Bytes of a group.
    fn leaving(&self, group: Group) -> u64 {
        let most = u64::from(group.segments) * u64::from(self.paths[ME].mss);
        group.bytes.min(most)
    }

    fn host_admits(&mut self, group: Group) -> bool {
        let bytes = self.leaving(group);
        let (path, buffers) = (&self.paths[ME], self.send.buffers.as_ref());
        let socket = &mut self.subflows[ME].socket;
        socket.host_admits(path, buffers, bytes, false)
    }

    /// Sends what waits as far as the host's queue admits (`tcp_tsq_write`). True: the rest waits until the host has passed that on.
    #[cold]
    pub(super) fn transmit_through(&mut self, queue: &mut SmallQueue) -> bool {
        while let Some(group) = self.next_group(false) {
            let bytes = self.leaving(group);
            if queue.full(bytes, false) {
                return true;
            }
            queue.push(group.segments.into(), bytes);
            self.send_buffer(group);
        }
        false
    }

    /// Sends a probe for the path's MTU if one is due. False: nothing is to be sent before it.
    #[cold]
    fn probe_path(&mut self) -> bool {
        if !self.subflows[ME].socket.state().sends() || !self.subflows[ME].socket.queue.is_empty() {
            return true;
        }
        let window = self.shared.send_limit.saturating_sub(self.send.sent);
        let offered = self.shared.send_limit.saturating_sub(self.send.una);
        let bytes = (self.send.unsent(), window, offered);
        let len = match self.with(ME, |socket, cx| socket.advise(cx, bytes)) {
            Advice::None => return true,
            Advice::Wait => return false,
            Advice::Probe(len) => len,
        };
        let wanted = u64::from(len);
        let buffers = self.send.buffers.as_mut();
        let head = buffers.and_then(|buffers| buffers.gather(wanted));
        if head.is_some_and(|head| head.len < wanted) {
            return true; // a record ends before
        }
        let ends = head.is_some_and(|head| head.push && head.len == wanted);
        self.send_new(ME, len, Push::of_group(1, ends));
        let socket = &mut self.subflows[ME].socket;
        let (end, options) = (
            socket.transfer.flight.next(),
            socket.negotiated.fixed_options(),
        );
        (socket.mss).probe_sent(&mut self.paths[ME], end, len, options);
        if let Some(buffers) = &mut self.send.buffers {
            buffers.leave(wanted, self.send.sent);
        }
        true
    }

    /// Sends a buffer of new data, or a segment, whatever the rules on small segments say. The congestion window has room. False: there is none
    /// that the peer's window admits.
    #[cold]
    pub(super) fn send_next(&mut self) -> bool {
        let path = &self.paths[ME];
        let mss = u64::from(path.mss.max(1));
        let window = self.shared.send_limit.saturating_sub(self.send.sent);
        let unsent = self.send.unsent();
        if unsent == 0 || window < unsent.min(mss) {
            return false;
        }
        let quota = group::quota(&self.subflows[ME].socket.transfer.flight, path).max(1);
        let buffers = self.send.buffers.as_mut();
        let Some(head) = buffers.and_then(|buffers| buffers.head(quota * mss)) else {
            self.send_new(ME, unsent.min(mss) as u32, Push::No);
            return true;
        };
        let before = self.send.sent;
        let end = before + head.len.min(window).min(quota * mss);
        while self.send.sent < end {
            let len = mss.min(end - self.send.sent);
            let last = self.send.sent + len == end;
            let push = if last && head.push && end == before + head.len {
                Push::Always
            } else {
                Push::No
            };
            self.send_new(ME, len as u32, push);
        }
        if let Some(buffers) = &mut self.send.buffers {
            buffers.leave(end - before, end);
        }
        true
    }

    /// Sends so many segments of the head.
    fn send_buffer(&mut self, group: Group) {
        let Group {
            segments,
            bytes,
            push,
        } = group;
        let before = self.send.sent;
        for nth in 1..=segments {
            let rest = before + bytes - self.send.sent;
            let len = rest.min(self.cut(ME).into()) as u32;
            if len == 0 {
                break;
            }
            let ends = u64::from(len) == rest;
            let last = nth == segments;
            let push = if last {
                Push::of_group(segments, ends && push)
            } else {
                Push::No
            };
            self.send_new(ME, len, push);
        }
        if let Some(buffers) = &mut self.send.buffers {
            buffers.leave(self.send.sent - before, self.send.sent);
        }
    }

    /// Grows the buffer for a writer that waits, and wakes it (`tcp_check_space`).
    fn check_space(&mut self) {
        let waits = self.send.buffers.as_ref().is_some_and(WriteQueue::blocked);
        let initial = self.shared.config.initial_window;
        self.send.expand_buffer(&self.paths[ME], initial, waits);
        let room = self.send.buffer;
        let wakes = self.send.may_wake();
        if let Some(buffers) = self.send.buffers.as_mut().filter(|_| wakes) {
            buffers.unblock(room);
        }
    }

    pub(super) fn push_plain(&mut self) {
        self.with(ME, |socket, cx| socket.send_unsent(cx));
        if self.subflows[ME].socket.mss.searches() && !self.probe_path() {
            return;
        }
        let (mut left, mut several) = (0, false);
        while self.subflows[ME].socket.state().sends()
            && self.paths[ME].room() > 0
            && self.send.unsent() > 0
        {
            let len = self.cut(ME);
            if len == 0 {
                self.hold(ME);
                break;
            }
            if self.send.bursts && left == 0 {
                let Ok(group) = group_at(self, self.front()) else {
                    break;
                };
                (left, several) = (group, group > 1);
            }
            left = left.saturating_sub(1);
            let push = if several && left == 0 {
                Push::Once
            } else {
                Push::No
            };
            self.send_new(ME, len, push);
        }
    }

    /// The buffer that a connection sends from which fell back to TCP: the stream is written in pieces of as many segments as one holds.
    fn front(&self) -> Front {
        let mss = u64::from(self.paths[0].mss.max(1));
        let piece = send_memory::LARGEST_BUFFER / mss * mss;
        let in_piece = piece - self.send.sent % piece;
        let unsent = self.send.unsent();
        let bytes = unsent.min(in_piece);
        let rest = (bytes % mss) as u32;
        Front {
            bytes,
            window: self.shared.send_limit.saturating_sub(self.send.sent),
            offered: self.shared.send_limit.saturating_sub(self.send.una),
            followed: unsent > in_piece,
            rest_leaves: self.send.finishing()
                || self.subflows[0]
                    .socket
                    .nagle_admits(&self.shared, rest, self.paths[0].mss),
            ends: self.send.finishing(),
        }
    }
}
