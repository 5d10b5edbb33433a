//! The end of subflows, and of the connection with them.

use polypath_wire::mptcp::{MptcpOption, ResetReason};
use polypath_wire::tcp::Segment;

use super::connection::Connection;
use super::send::push_left;
use super::subflow::Subflow;
use crate::path_manager::Occasion;
use crate::tcp::{Socket, State};
use crate::{Cause, CloseReason, EventKind, Mib, NEVER, Nanos};

impl Connection {
    pub(super) fn end(&mut self, reason: CloseReason) {
        self.deadline = 0;
        if self.ended.is_none() {
            self.ended = Some(reason);
            if reason != CloseReason::Finished {
                let counter = if self.established {
                    Mib::TcpEstabResets
                } else {
                    Mib::TcpAttemptFails
                };
                self.shared.counters.increment(counter);
                for subflow in 0..self.subflows.len() {
                    self.close_subflow(subflow);
                }
                self.send.stop();
                self.shared.blocking.end(self.shared.now);
                self.announcements.end_all();
            }
            self.shared.event(EventKind::ConnectionClosed(reason));
        }
    }

    /// Ends the subflow's life on this side.
    pub(super) fn close_subflow(&mut self, subflow: usize) {
        self.deadline = 0;
        let waiting = self.subflows[subflow].socket.out_of_order_bytes();
        if waiting > 0 {
            self.shared.receive.held -= waiting;
            let now = self.shared.now;
            (self.shared.blocking).subflow_advances(subflow, 0, Cause::Missing, now);
        }
        self.subflows[subflow]
            .socket
            .abandon(&mut self.paths[subflow]);
        self.note_closed(subflow);
    }

    fn note_closed(&mut self, subflow: usize) {
        if self.subflows[subflow].closed_at.is_none() {
            self.subflows[subflow].closed_at = Some(self.shared.now);
            self.shared.event(EventKind::SubflowClosed(subflow));
            let own = &self.subflows[subflow];
            // One that the peer asked for and never confirmed is no subflow yet (Linux: a request socket).
            if subflow == 0 || own.opened_here || own.established_at.is_some() {
                let first = subflow == 0;
                self.announce_next();
                self.note_occasion(Occasion::SubflowEnded { first });
            }
        }
    }

    /// Counts no longer on a subflow, whose socket goes on until its FIN is through. What it carried goes to the others at once, also to those
    /// that end next (`__mptcp_close_ssk`).
    pub(super) fn leave_subflow(&mut self, subflow: usize, reason: CloseReason) {
        if !self.subflows[subflow].socket.state().synchronised() {
            return self.lose_subflow(subflow, reason);
        }
        self.with(subflow, |socket, cx| socket.send_ack(cx));
        self.reinject(subflow);
        self.with(subflow, |socket, cx| socket.close(cx));
        if self.shared.config.profile.finishes_withdrawn_subflows() {
            self.subflows[subflow].socket.receiver.keep_all();
        }
        self.paths[subflow].established = false;
        self.paths[subflow].buffer = 0;
        self.note_closed(subflow);
        self.note_deadline(subflow);
        self.follow_loss(reason);
        if self.send.outstanding() {
            push_left(self);
        }
    }

    /// A subflow died: its data goes to the others, or the connection with it (RFC 8684 section 3.6), at once or after a while.
    pub(super) fn lose_subflow(&mut self, subflow: usize, reason: CloseReason) {
        if self.subflows[subflow].closed_at.is_some() {
            return self.close_subflow(subflow);
        }
        // One that the peer asked for and never confirmed is no subflow yet (Linux: a request socket).
        if self.subflows[subflow].opened_here || self.paths[subflow].established {
            self.reinject(subflow);
        }
        self.close_subflow(subflow);
        self.follow_loss(reason);
    }

    fn follow_loss(&mut self, reason: CloseReason) {
        if self.subflows.iter().any(Subflow::is_open) {
            return;
        }
        if self.send.closed() && self.shared.receive.at_end() {
            self.end(CloseReason::Finished);
        } else if self.outlives_subflows() {
            let at = self.shared.now + self.shared.config.close_timeout_ns;
            self.orphaned.get_or_insert((at, reason));
        } else {
            self.end(reason);
        }
    }

    /// Upstream Linux waits for another subflow while neither side has closed, and not after a fallback (`__mptcp_close_ssk`,
    /// `__mptcp_subflow_error_report`).
    fn outlives_subflows(&self) -> bool {
        self.shared.config.profile.outlives_subflows()
            && self.session.multipath.is_some()
            && self.established
            && !self.send.closing()
            && !self.shared.receive.at_end()
    }

    /// Another subflow is on its way (Linux `mptcp_stop_tout_timer`).
    pub(super) fn adopt(&mut self) {
        self.orphaned = None;
    }

    pub(super) fn orphaned_until(&self) -> Nanos {
        self.orphaned.map_or(NEVER, |(at, _)| at)
    }

    /// No subflow came within the time.
    pub(super) fn give_up_on_subflows(&mut self) {
        if let Some((_, reason)) = self.orphaned.take() {
            self.end(reason);
        }
    }

    /// Follows up on what the last call changed: closing, the end of the connection.
    pub(super) fn housekeep(&mut self) {
        let over = !matches!(self.ended, None | Some(CloseReason::Finished));
        if over || !self.closing() {
            return;
        }
        self.follow_closing();
    }

    /// Both FINs of a subflow are through while the stream goes on: what is left of it goes to the others.
    fn lose_finished_subflows(&mut self) {
        for subflow in 0..self.subflows.len() {
            let own = &self.subflows[subflow];
            if own.socket.state() == State::Closed && own.closed_at.is_none() {
                self.lose_subflow(subflow, CloseReason::Reset);
                self.push();
            }
        }
    }

    #[cold]
    fn follow_closing(&mut self) {
        self.step_closing();
        self.deadline = 0;
        if self.session.multipath.is_some() && !(self.send.closed() && self.shared.receive.at_end())
        {
            self.lose_finished_subflows();
        }
        if self.established && self.send.closed() && self.shared.receive.at_end() {
            for subflow in 0..self.subflows.len() {
                match self.subflows[subflow].socket.state() {
                    State::Closed if self.subflows[subflow].closed_at.is_none() => {
                        self.close_subflow(subflow);
                    }
                    State::FinWait2 => self.subflows[subflow]
                        .socket
                        .transfer
                        .limit_fin_wait(&self.shared),
                    _ => {}
                }
            }
            let over = |socket: &Socket| matches!(socket.state(), State::Closed | State::TimeWait);
            if self.sockets().any(over)
                && self.subflows.iter().all(|subflow| {
                    over(&subflow.socket) || subflow.socket.lingers() || subflow.closed_at.is_some()
                })
            {
                return self.end(CloseReason::Finished);
            }
        }
        let closed = |socket: &Socket| socket.state() == State::Closed;
        if self.session.multipath.is_none() && self.established && self.sockets().all(closed) {
            // Both FINs were acknowledged, yet a fallback in mid-stream left a hole that nothing fills any more.
            self.end(CloseReason::Reset);
        }
    }
}

/// New data for a subflow that this host has left: nobody will read it, and the peer hears so by a reset (RFC 9293 section 3.10.4, Linux
/// `tcp_rcv_state_process` on RCV_SHUTDOWN, `tcp_timewait_state_process`). The first subflow goes on receiving (`__mptcp_subflow_disconnect`).
/// False: there is none.
#[cold]
pub(super) fn refuse_late_data(
    connection: &mut Connection,
    subflow: usize,
    segment: &Segment,
) -> bool {
    if subflow == 0 || connection.subflows[subflow].closed_at.is_none() {
        return false;
    }
    let socket = &connection.subflows[subflow].socket;
    let end = socket.receiver.position(segment) + u64::from(segment.payload.len);
    let new =
        segment.payload.len > 0 && end > socket.receiver.next() && !socket.receiver.finished();
    if !new {
        return false;
    }
    // What is left of a socket whose FIN was acknowledged reads no options.
    let reads = socket.state() != State::FinWait2;
    let mapped = segment.dss.is_some_and(|dss| dss.mapping.is_some());
    connection.with(subflow, |_, cx| cx.refuse(segment));
    if reads
        && mapped
        && let Some(reset) = connection.shared.out.last_mut()
    {
        let reason = ResetReason::Unspecified as u8;
        reset.segment.rare_mut().mptcp = vec![MptcpOption::TcpRst { flags: 0, reason }];
    }
    connection.close_subflow(subflow);
    true
}
