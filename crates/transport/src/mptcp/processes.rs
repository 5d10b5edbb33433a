//! What upstream Linux does after it took in all packets of an instant: it takes them in a softirq, which ends before processes run.
//!
//! For each packet the softirq acknowledges what is due, sends what its own subflow may send, and gives that one data
//! (`tcp_data_snd_check`, `__tcp_ack_snd_check`, `ack_update_msk`, `__mptcp_check_push`). Where the scheduler names another subflow, that one
//! sends once the packets are through (`mptcp_subflow_delegate`, `mptcp_napi_poll`). Then those run whom the packets woke: readers, who
//! acknowledge what was left to them (`mptcp_cleanup_rbuf`, `tcp_cleanup_rbuf`), and writers.

use super::connection::Connection;
use crate::Nanos;

impl Connection {
    /// Packets were taken in, and readers and writers have not run since.
    #[inline(always)]
    pub fn processes_wait(&self) -> bool {
        self.shared.softirq.is_some()
    }

    /// All packets of this instant were taken in.
    pub fn run_processes(&mut self, now: Nanos) {
        self.shared.now = now;
        self.shared.softirq = None;
        self.push_after_packets();
        let wakes = self.shared.receive.reader_wakes();
        for subflow in 0..self.subflows.len() {
            if wakes && self.with(subflow, |socket, cx| socket.receiver.read(cx.shared)) {
                self.with(subflow, |socket, cx| socket.flush_ack(cx));
            }
            self.note_deadline(subflow);
        }
        self.shared.receive.end_instant();
        self.housekeep();
    }
}
