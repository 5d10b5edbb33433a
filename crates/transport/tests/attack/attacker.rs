//! The attackers, and what a segment has to hit to be taken.

use polypath_transport::tcp::{Sequence, State};
use polypath_transport::{Connection, Segment};
use polypath_wire::tcp::Flags;

/// Where an attacker on the path stands (RFC 3552 section 3); one off the path sees nothing, and guesses a [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attacker {
    /// Reads, drops, alters, delays, repeats and forges the packets of one path.
    OnPath(usize),
    /// The same on all paths.
    Everywhere,
}

impl Attacker {
    pub fn sees(self, path: usize) -> bool {
        match self {
            Self::OnPath(own) => own == path,
            Self::Everywhere => true,
        }
    }
}

/// What a blind attacker has to guess of one end of a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub state: State,
    pub sequence: Sequence,
    /// Receive window of this end, and the largest that either end offers.
    pub window: u32,
    pub offered: u32,
}

impl Target {
    pub fn of(connection: &Connection, subflow: usize, offered: u32) -> Self {
        let socket = connection.subflows()[subflow].socket();
        Self {
            state: socket.state(),
            sequence: socket.sequence(),
            // A subflow may pass the stream's window while it waits for what others brought in its place.
            window: match connection.multipath() {
                true => offered,
                false => connection.receive_window().min(1 << 30) as u32,
            },
            offered,
        }
    }

    fn in_window(&self, seq: u32) -> bool {
        seq.wrapping_sub(self.sequence.rcv_nxt) <= self.window + 1
    }

    /// Whether the endpoint may take this segment: the guess was right. RFC 5961 section 1.2 has the odds: a reset in 2^32, and for data or an
    /// ACK a window in 2^32 for each of the two numbers. Old segments count as hit up to a window below, where they may be late ones.
    pub fn is_hit(&self, segment: &Segment) -> bool {
        let Sequence {
            snd_una,
            snd_nxt,
            rcv_nxt,
        } = self.sequence;
        let Segment {
            seq, ack, flags, ..
        } = *segment;
        let late = rcv_nxt.wrapping_sub(seq) <= self.offered;
        let near = self.in_window(seq) || late;
        match self.state {
            State::SynSent => flags.contains(Flags::ACK) && ack == snd_nxt,
            State::SynReceived if flags.contains(Flags::RST) => seq == rcv_nxt,
            State::SynReceived => {
                let syn = flags.contains(Flags::SYN);
                near && (syn || flags.contains(Flags::ACK) && ack == snd_nxt)
            }
            // The profile `linux` takes the number of the FIN, too (`tcp_reset_check`).
            State::CloseWait | State::LastAck | State::Closing if flags.contains(Flags::RST) => {
                rcv_nxt.wrapping_sub(seq) <= 1
            }
            _ if flags.contains(Flags::RST) => seq == rcv_nxt,
            // The handshake's SYN/ACK again draws its third ACK again.
            _ if flags.contains(Flags::SYN) => seq == rcv_nxt.wrapping_sub(1),
            _ => {
                let oldest = snd_una.wrapping_sub(self.offered);
                near && ack.wrapping_sub(oldest) <= snd_nxt.wrapping_sub(oldest)
            }
        }
    }
}
