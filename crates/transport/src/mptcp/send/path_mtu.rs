//! What is sent again because the path's MTU is smaller than it was known to be.

use super::repair::FIRST;
use crate::linux::small_queue::SmallQueue;
use crate::mptcp::connection::Connection;

impl Connection {
    /// Cuts what is too long for a subflow's path and sends again what of it was sent. True: new data may follow.
    pub(in crate::mptcp) fn cut_and_resend(&mut self, subflow: usize) -> bool {
        if self.subflows[subflow].socket.queue.has_buffers() || self.send.buffers.is_some() {
            return self.resend_as_upstream(subflow);
        }
        self.with(subflow, |socket, cx| socket.cut_long_segments(cx));
        self.repair(subflow);
        true
    }

    /// Upstream Linux: new data follows only if the host's queue was full, once that has drained (`tcp_simple_retransmit`,
    /// `tcp_tsq_handler`).
    #[cold]
    fn resend_as_upstream(&mut self, subflow: usize) -> bool {
        // The rate is that of the last acknowledgement.
        let mut queue = SmallQueue::new(&self.paths[subflow]);
        match self.send.buffers.take() {
            Some(buffers) => {
                self.with(subflow, |socket, cx| {
                    socket.cut_buffers(cx, &buffers, FIRST)
                });
                self.send.buffers = Some(buffers);
            }
            None => self.with(subflow, |socket, cx| socket.cut_own_buffers(cx)),
        }
        let mut full = self.resend_through(subflow, &mut queue);
        let throttled = full;
        while full && queue.drain() {
            full = self.resend_through(subflow, &mut queue);
            full |= match self.send.buffers {
                Some(_) => self.transmit_through(&mut queue),
                None => self.with(subflow, |socket, cx| socket.send_through(cx, &mut queue)),
            };
        }
        throttled
    }

    fn resend_through(&mut self, subflow: usize, queue: &mut SmallQueue) -> bool {
        match self.send.buffers.take() {
            Some(mut buffers) => {
                let place = (&mut buffers, FIRST);
                let full = self.with(subflow, |socket, cx| {
                    socket.resend_buffers(cx, place, queue)
                });
                self.send.buffers = Some(buffers);
                full
            }
            None => self.with(subflow, |socket, cx| socket.resend_own_buffers(cx, queue)),
        }
    }
}
