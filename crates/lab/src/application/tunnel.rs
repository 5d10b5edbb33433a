//! A tunnel: a connection of QUIC between two hosts that route, which carries the packets of a link between them. Over UDP there is no
//! connection: packets take the lines in turn, as bonding does.
//!
//! The network moves the packets (`simulation/hosts/tunnels.rs`); here are the settings and the bytes that each packet takes.

use polypath_settings::{Setting, Typed, Value, choice, model};
use polypath_transport::Nanos;
use polypath_wire::quic::varint_len;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Beginning, Begun, Delays, Direction, Entry, Kind, Traffic};
use super::session::{Io, Session, Side};
use crate::plan::Transport;

model! {
    "tunnel",
    "A tunnel that carries the packets of a link in DATAGRAM frames of QUIC, or in a stream",
    "RFC 9484, RFC 9298, RFC 9221";
    /// Settings of a tunnel.
    TunnelConfig {
        /// The link whose packets it carries, by its place in the plan.
        link: u64 as Integer.at_least(0),
        /// What is carried of a packet: all of it, or the payload of UDP alone. Other packets then go nowhere.
        #[serde(default)]
        framing: Framing as Text = Text("connect-ip"),
        /// In DATAGRAM frames, or one after the other in a stream. The stream repeats what is lost, and what follows waits.
        #[serde(default)]
        carriage: Carriage as Text = Text("datagrams"),
        /// Packets that wait at each end while the connection may not send more. Further ones are dropped. The default is that of
        /// Linux's tun (TUN_READQ_SIZE).
        #[serde(default = "usual_queue")]
        queue: u64 as Packets = Integer(500),
        /// How long a packet waits at the far end for those sent before it; 0: it goes on at once.
        #[serde(default)]
        reorder_ns: Nanos as Time = Integer(0),
        /// Packets that wait there at most.
        #[serde(default = "usual_reorder_packets")]
        reorder_packets: u64 as Packets = Integer(1000),
        /// Over UDP: packets on each line in turn, in the order of the client's interfaces; left out: one each.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weights: Option<Weights> as Integers.seldom() = Absent(()),
    }
}

const fn usual_queue() -> u64 {
    500
}

const fn usual_reorder_packets() -> u64 {
    1000
}

choice! {
    /// What a tunnel carries of each packet.
    #[derive(Default)]
    Framing {
        /// Whole IP packets (RFC 9484).
        #[default]
        ConnectIp = "connect-ip",
        /// Payloads of UDP, each flow as a request of its own (RFC 9298).
        ConnectUdp = "connect-udp",
    }
}

choice! {
    /// How a tunnel carries packets.
    #[derive(Default)]
    Carriage {
        /// In DATAGRAM frames (RFC 9297 section 2.1).
        #[default]
        Datagrams = "datagrams",
        /// In capsules in a stream (RFC 9297 section 3.5).
        Stream = "stream",
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: &[Transport::Mpquic, Transport::Quic, Transport::Udp],
    traffic: Traffic::of(Direction::BothWays, Delays::None),
};

impl Kind for TunnelConfig {
    fn fault(&self) -> Option<String> {
        let stream = self.carriage == Carriage::Stream;
        if stream && (self.framing != Framing::ConnectIp || self.reorder_ns > 0) {
            return Some("a stream carries whole packets, in order".to_owned());
        }
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn needs_datagrams(&self) -> bool {
        true
    }

    fn begin(&self, _: Beginning) -> Begun {
        Begun::session(Ends {
            asks: self.carriage == Carriage::Stream,
        })
    }
}

/// Most lines that can have weights.
const MOST_LINES: usize = 16;

/// The weights of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct Weights {
    weights: [u32; MOST_LINES],
    lines: usize,
}

impl Weights {
    pub fn each(&self) -> &[u32] {
        &self.weights[..self.lines]
    }
}

impl TryFrom<Vec<u32>> for Weights {
    type Error = String;

    fn try_from(given: Vec<u32>) -> Result<Self, String> {
        let lines = given.len();
        if !(1..=MOST_LINES).contains(&lines) || given.contains(&0) {
            return Err(format!("weights are 1 to {MOST_LINES} numbers above 0"));
        }
        let mut weights = [0; MOST_LINES];
        weights[..lines].copy_from_slice(&given);
        Ok(Self { weights, lines })
    }
}

impl From<Weights> for Vec<u32> {
    fn from(weights: Weights) -> Self {
        weights.each().to_vec()
    }
}

impl Typed for Weights {}

impl Setting for Weights {
    /// Their bounds hold wherever they come from.
    fn value(self) -> Value {
        Value::Absent(())
    }
}

/// Bytes of the request before the packets of a stream: about a HEADERS frame of RFC 9484 section 4.1. In DATAGRAM frames packets do not wait
/// for it, and it is left out.
pub(crate) const REQUEST: u64 = 100;

/// The client's first bidirectional stream (RFC 9000 section 2.1).
pub(crate) const REQUEST_STREAM: u64 = 0;

/// Its ends do nothing by themselves, once the client has asked for it.
struct Ends {
    asks: bool,
}

impl Session for Ends {
    fn run(&mut self, io: &mut Io) {
        if io.side == Side::Client && std::mem::take(&mut self.asks) {
            let stream = io.open();
            debug_assert_eq!(stream, Some(REQUEST_STREAM));
            io.write_to(REQUEST_STREAM, REQUEST);
        }
    }
}

/// The number of a packet, where the far end puts packets in order or drops copies. No RFC has it; it is as long as that of GRE (RFC 2890).
const SEQUENCE: u32 = 4;

/// Context 0 (RFC 9484 section 6, RFC 9298 section 5), or one below 64 with a sequence number.
const CONTEXT: u32 = 1;

impl TunnelConfig {
    /// Bytes before a packet in a DATAGRAM frame: a quarter of the stream's number (RFC 9297 section 2.1), the context, and a sequence number
    /// if it has one. Each request has a bidirectional stream of its own.
    pub fn datagram_fields(request: u64, numbered: bool) -> u32 {
        let sequence = if numbered { SEQUENCE } else { 0 };
        varint_len(request) + CONTEXT + sequence
    }

    /// The same in a datagram of UDP on a line.
    pub fn line_fields(&self) -> u32 {
        if self.reorder_ns > 0 { SEQUENCE } else { 0 }
    }

    /// The same in a stream, for `len` bytes of a packet: the type and the length of HTTP/3's DATA frame (RFC 9114 section 7.2.1), those of
    /// the capsule (RFC 9297 section 3.2), the context.
    pub fn stream_fields(len: u32) -> u32 {
        let counted = |len: u32| 1 + varint_len(len.into());
        let capsule = counted(CONTEXT + len) + CONTEXT;
        counted(capsule + len) + capsule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_formats() {
        assert_eq!(TunnelConfig::datagram_fields(0, false), 2);
        assert_eq!(TunnelConfig::datagram_fields(63, true), 6);
        assert_eq!(TunnelConfig::datagram_fields(64, false), 3);
        // 00 40 43, 00 3f 00 before 62 bytes; the lengths of 62 and more take two bytes
        assert_eq!(TunnelConfig::stream_fields(58), 2 + 2 + 1);
        assert_eq!(TunnelConfig::stream_fields(62), 3 + 2 + 1);
        assert_eq!(TunnelConfig::stream_fields(1400), 3 + 3 + 1);
    }
}
