//! The end of the stream: DATA_FIN, and the FINs of the subflows after it (RFC 8684 section 3.3.3).

use crate::CloseReason;
use crate::mptcp::connection::Connection;
use crate::path::Path;
use crate::tcp::State;

impl Connection {
    /// Moves the closing of this side's stream along: DATA_FIN after the data, FINs after its acknowledgement (RFC 8684 section 3.3.3).
    pub(in crate::mptcp) fn step_closing(&mut self) {
        if !self.established {
            return;
        }
        if self.session.multipath.is_some() {
            self.answer_fins();
        }
        if !self.send.finishing() {
            return;
        }
        if self.session.multipath.is_none() {
            if self.send.unsent() == 0 {
                self.with(0, |socket, cx| socket.close(cx));
                self.send.fin_sent = true;
                let finished = matches!(
                    self.subflows[0].socket.state(),
                    State::FinWait2 | State::TimeWait | State::Closed
                );
                self.send.fin_acked |= finished;
            }
            return;
        }
        if self.send.unsent() == 0 && !self.send.fin_sent {
            self.send.fin_sent = true;
            self.give_up_attempts();
            self.send_data_fin();
        }
        if self.send.fin_acked && self.shared.receive.at_end() {
            for subflow in 0..self.subflows.len() {
                if matches!(
                    self.subflows[subflow].socket.state(),
                    State::SynSent | State::SynReceived
                ) {
                    // CLOSE before the handshake is done deletes the subflow (RFC 9293 section 3.10.4).
                    self.close_subflow(subflow);
                } else if self.dispensable(subflow) {
                    self.with(subflow, |socket, cx| socket.send_reset(cx));
                    self.close_subflow(subflow);
                } else if !self.subflows[subflow].socket.lifetime.closing() {
                    self.with(subflow, |socket, cx| socket.close(cx));
                }
            }
        }
    }

    /// As the DATA_FIN leaves, upstream ends the subflows whose SYNs are unanswered (`mptcp_subflow_shutdown`).
    fn give_up_attempts(&mut self) {
        if !self.shared.config.profile.joins_while_open() {
            return;
        }
        for subflow in 0..self.subflows.len() {
            if self.subflows[subflow].socket.state() == State::SynSent {
                self.close_subflow(subflow);
            }
        }
    }

    /// A subflow that failed while another works: with the stream over there is nothing to wait for on it.
    fn dispensable(&self, subflow: usize) -> bool {
        let works = |path: &Path| path.established && !path.potentially_failed;
        self.subflows[subflow].socket.state() != State::Closed
            && self.paths[subflow].potentially_failed
            && self.paths.iter().any(works)
    }

    /// Whether closing has begun in either direction, on any level.
    pub(in crate::mptcp) fn closing(&self) -> bool {
        self.send.closing || self.shared.fin_seen || self.shared.receive.end.is_some()
    }

    /// A FIN on a subflow closes that subflow alone; this side closes it too once its data is through. After the peer's DATA_FIN the FINs of
    /// this side wait for its own (RFC 8684 section 3.3.3).
    fn answer_fins(&mut self) {
        if self.shared.receive.at_end() {
            return;
        }
        let leaves = self.shared.config.profile.leaves_finished_subflows()
            && !self.send.closing
            && self.shared.receive.end.is_none();
        for subflow in 0..self.subflows.len() {
            let own = &self.subflows[subflow];
            if leaves && own.socket.state() == State::CloseWait && own.closed_at.is_none() {
                self.leave_subflow(subflow, CloseReason::Reset);
                self.push();
                continue;
            }
            let elsewhere = |other: usize| {
                other != subflow
                    && self.paths[other].established
                    && self.subflows[other].socket.state().sends()
            };
            let dispensable = self.send.idle() || (0..self.subflows.len()).any(elsewhere);
            if self.subflows[subflow].socket.state() == State::CloseWait
                && self.subflows[subflow].socket.queue.is_empty()
                && dispensable
            {
                self.with(subflow, |socket, cx| socket.close(cx));
            }
        }
    }

    pub(super) fn send_data_fin(&mut self) {
        let offset = self.send.written;
        self.send.fin_at = self.shared.now + self.connection_timeout(self.send.fin_count);
        self.send.fin_count += 1;
        // A side that only received does not know which of its paths failed: a repetition goes on all of them, and upstream's first, too
        // (net/mptcp/protocol.c `mptcp_check_send_data_fin`, `__mptcp_retrans`).
        if self.send.fin_count > 1 || self.shared.config.profile.finishes_everywhere() {
            for subflow in 0..self.subflows.len() {
                if self.carries_signals(subflow) {
                    self.send_data_fin_on(subflow, offset);
                }
            }
        } else if let Some(subflow) = self.working_subflow() {
            self.send_data_fin_on(subflow, offset);
        }
    }

    /// An ACK whose mapping covers no payload.
    fn send_data_fin_on(&mut self, subflow: usize, offset: u64) {
        self.with(subflow, |socket, cx| {
            socket.send_bare(cx, |options, shared, segment| {
                options.add_data_fin(shared, offset, segment);
            });
        });
    }
}
