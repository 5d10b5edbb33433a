//! What a socket tells of itself (Linux TCP_INFO).

use super::Socket;
use crate::Nanos;
use crate::path::CaState;

/// A socket's own part of Linux's `struct tcp_info`; windows and round trips stand in its [`crate::path::Path`]. Counts are packets.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub state: CaState,
    /// Timeouts in a row, keep-alive probes unanswered, and doublings of the timeout.
    pub retransmits: u32,
    pub probes: u32,
    pub backoff: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    /// Retransmissions in flight.
    pub retransmitting: u32,
    /// Payload of a full segment without options of MPTCP, the largest that came, and what the SYN announced.
    pub send_mss: u32,
    pub receive_mss: u32,
    pub announced_mss: u32,
    /// By how many packets others are known to overtake one.
    pub reordering: u32,
    pub rto: Nanos,
    pub last_received: Nanos,
}

/// Where a socket stands in the two sequence spaces, as numbers on the wire (RFC 9293 section 3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub rcv_nxt: u32,
}

impl Socket {
    pub fn sequence(&self) -> Sequence {
        Sequence {
            snd_una: self.transfer.flight.number(self.transfer.flight.una()),
            snd_nxt: self.transfer.flight.number(self.transfer.flight.next()),
            rcv_nxt: self.receiver.number(),
        }
    }

    /// Entries of its queues: segments in flight, chunks that wait, segments and ranges that came out of order, and what the peer SACKed.
    pub fn entries(&self) -> usize {
        self.transfer.flight.segments().len()
            + self.queue.chunks().len()
            + self.receiver.entries()
            + self.transfer.recovery.sacked_ranges()
    }

    pub fn info(&self, config: &crate::Config) -> Info {
        Info {
            state: self.transfer.recovery.state(),
            retransmits: self.transfer.recovery.timeouts(),
            probes: self.transfer.silence.probes(),
            backoff: self.transfer.recovery.backoff(),
            unacked: self.transfer.flight.packets(),
            sacked: self.transfer.flight.sacked(),
            lost: self.transfer.flight.lost(),
            retransmitting: self.transfer.flight.retransmitting(),
            send_mss: self.plain_mss(),
            receive_mss: self.receiver.window().map_or(0, |it| it.segment),
            announced_mss: self.mss.announced().into(),
            reordering: self.transfer.recovery.reordering_degree() as u32,
            rto: self.transfer.rtt.rto(config),
            last_received: self.receiver.last_received(),
        }
    }
}
