//! One endpoint, and a peer whose every segment the test writes.
//!
//! Sequence numbers of a script count from the initial one of their side, so that the SYN is 0 and the first byte 1.

use std::collections::VecDeque;

use polypath_transport::{
    Arrival, Codepoint, Config, Connection, Event, EventKind, Manner, Mib, Nanos, Purpose, Segment,
};
use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MpCapable, MptcpOption};
use polypath_wire::tcp::{Flags, Payload};

use super::{client_address, first_tuple, host, reversed, server_address};

/// The peer's initial sequence number, close to the wrap.
pub const PEER_ISN: u32 = u32::MAX - 5_000;
/// The peer's key in MPTCP scripts.
pub const PEER_KEY: u64 = 0x0123_4567_89ab_cdef;

/// The peer's offer in its SYN.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    pub window: u16,
    pub mptcp: bool,
    pub flags: Flags,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            mss: Some(1460),
            window_scale: Some(7),
            sack: true,
            timestamps: false,
            window: 65_535,
            mptcp: false,
            flags: Flags::empty(),
        }
    }
}

/// A segment that the endpoint sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Nanos,
    pub subflow: usize,
    pub segment: Segment,
    pub purpose: Purpose,
}

pub struct Script {
    pub now: Nanos,
    pub connection: Connection,
    pub events: Vec<Event>,
    pub peer: Peer,
    /// The endpoint's initial sequence number.
    pub isn: u32,
    /// The endpoint's key, from its MP_CAPABLE.
    pub key: u64,
    /// The TSval that the peer sends; `None` uses the clock's milliseconds.
    pub peer_clock: Option<u32>,
    /// The TSval that came last.
    last_value: u32,
    outbox: VecDeque<Sent>,
}

impl Script {
    /// The endpoint opens the connection; its SYN is in the outbox.
    pub fn client(config: &Config, peer: Peer) -> Self {
        let connection =
            Connection::connect(host(config, vec![client_address(0)], 99), first_tuple(), 0)
                .expect("the configuration is valid");
        Self::new(connection, peer)
    }

    /// The endpoint accepts the peer's SYN; its SYN/ACK is in the outbox.
    pub fn server(config: &Config, peer: Peer) -> Self {
        Self::answering(config, peer, &Self::syn(&peer, Flags::SYN, 1))
    }

    /// The same for a SYN that the test has written itself.
    pub fn answering(config: &Config, peer: Peer, syn: &Segment) -> Self {
        let tuple = reversed(first_tuple());
        let connection = Connection::accept(
            host(config, vec![server_address(0)], 77),
            tuple,
            (syn, Codepoint::NotEct),
            0,
        )
        .expect("the configuration is valid");
        Self::new(connection, peer)
    }

    fn new(connection: Connection, peer: Peer) -> Self {
        let mut script = Self {
            now: 0,
            connection,
            events: Vec::new(),
            peer,
            isn: 0,
            key: 0,
            peer_clock: None,
            last_value: 0,
            outbox: VecDeque::new(),
        };
        script.collect();
        script.isn = script.outbox[0].segment.seq;
        script
    }

    /// The peer's SYN; with ACK in `flags` the caller fills in `ack`.
    pub fn syn(peer: &Peer, flags: Flags, clock: u32) -> Segment {
        let mut syn = Segment {
            seq: PEER_ISN,
            flags: flags | peer.flags,
            window: peer.window,
            timestamps: peer.timestamps.then_some((clock, 0)),
            ..Segment::default()
        };
        let options = syn.rare_mut();
        options.mss = peer.mss;
        options.window_scale = peer.window_scale;
        options.sack_permitted = peer.sack;
        if peer.mptcp {
            let answer = flags.contains(Flags::ACK);
            options.mptcp.push(MptcpOption::Capable(capable(
                answer.then_some(PEER_KEY),
                None,
            )));
        }
        syn
    }

    /// A client after the three-way handshake, `rtt` after its SYN.
    pub fn connected(config: &Config, peer: Peer, rtt: Nanos) -> Self {
        let mut script = Self::client(config, peer);
        let syn = script.expect();
        assert!(syn.segment.flags.contains(Flags::SYN));
        script.run_until(rtt);
        let mut answer = Self::syn(&peer, Flags::SYN | Flags::ACK, script.clock());
        answer.ack = script.isn.wrapping_add(1);
        answer.timestamps = answer
            .timestamps
            .map(|(value, _)| (value, script.last_value));
        script.inject(answer);
        let third = script.expect();
        assert_eq!(third.segment.flags, Flags::ACK);
        if let Some(MptcpOption::Capable(capable)) = third.segment.mptcp().first() {
            script.key = capable.sender_key.expect("the third ACK carries both keys");
        }
        script
    }

    /// A server after the three-way handshake, `rtt` after its SYN/ACK.
    pub fn accepted(config: &Config, peer: Peer, rtt: Nanos) -> Self {
        let mut script = Self::server(config, peer);
        let answer = script.expect();
        assert!(answer.segment.flags.contains(Flags::SYN | Flags::ACK));
        if let Some(MptcpOption::Capable(capable)) = answer.segment.mptcp().first() {
            script.key = capable
                .sender_key
                .expect("the SYN/ACK carries the sender's key");
        }
        script.run_until(rtt);
        let mut third = script.ack(1);
        if peer.mptcp {
            third.dss = None;
            third.rare_mut().mptcp.push(MptcpOption::Capable(capable(
                Some(PEER_KEY),
                Some(script.key),
            )));
        }
        script.inject(third);
        script
    }

    fn clock(&self) -> u32 {
        self.peer_clock.unwrap_or((self.now / super::MS) as u32 + 1)
    }

    /// A segment of the peer without payload: sequence number 1, acknowledging up to `ack`.
    pub fn ack(&self, ack: u64) -> Segment {
        let shift = if self.peer.window_scale.is_some() {
            7
        } else {
            0
        };
        Segment {
            seq: PEER_ISN.wrapping_add(1),
            ack: self.isn.wrapping_add(ack as u32),
            flags: Flags::ACK,
            window: (1_000_000u32 >> shift).min(65_535) as u16,
            timestamps: self
                .peer
                .timestamps
                .then_some((self.clock(), self.last_value)),
            ..Segment::default()
        }
    }

    /// As [`Script::ack`], sent after `seq` sequence numbers of the peer.
    pub fn ack_at(&self, seq: u64, ack: u64) -> Segment {
        Segment {
            seq: PEER_ISN.wrapping_add(seq as u32),
            ..self.ack(ack)
        }
    }

    /// An ACK with SACK blocks.
    pub fn sack(&self, ack: u64, blocks: &[(u64, u64)]) -> Segment {
        let mut segment = self.ack(ack);
        for &(left, right) in blocks {
            segment.sack.push(
                self.isn.wrapping_add(left as u32),
                self.isn.wrapping_add(right as u32),
            );
        }
        segment
    }

    /// `len` bytes of the peer from `seq` on, in plain TCP.
    pub fn data(&self, seq: u64, len: u32, ack: u64) -> Segment {
        Segment {
            payload: Payload {
                offset: seq - 1,
                len,
            },
            ..self.ack_at(seq, ack)
        }
    }

    /// A FIN at `seq`.
    pub fn fin(&self, seq: u64, ack: u64) -> Segment {
        let mut segment = self.ack_at(seq, ack);
        segment.flags |= Flags::FIN;
        segment
    }

    pub fn reset(&self, seq: u64) -> Segment {
        Segment {
            flags: Flags::RST,
            ..self.ack_at(seq, 0)
        }
    }

    /// Lets a segment of the peer arrive on the first subflow.
    pub fn inject(&mut self, segment: Segment) {
        self.inject_with(segment, Arrival::default());
    }

    pub fn inject_with(&mut self, segment: Segment, arrival: Arrival) {
        self.connection.on_segment(0, &segment, arrival, self.now);
        self.collect();
    }

    /// Lets a segment of the peer arrive on the first subflow, with others to follow at the same time.
    pub fn take_in(&mut self, segment: Segment) {
        (self.connection).take_in(0, &segment, Arrival::default(), self.now);
        self.collect();
    }

    /// Nothing more arrives at this time.
    pub fn run_processes(&mut self) {
        self.connection.run_processes(self.now);
        self.collect();
    }

    pub fn write(&mut self, bytes: u64) {
        self.write_as(bytes, Manner::default());
    }

    pub fn write_as(&mut self, bytes: u64, manner: Manner) {
        self.connection.write_as(bytes, manner, self.now);
        self.collect();
    }

    pub fn flush(&mut self) {
        self.connection.flush(self.now);
        self.collect();
    }

    pub fn read(&mut self, bytes: u64) -> u64 {
        let taken = self.connection.read(bytes, self.now);
        self.collect();
        taken
    }

    pub fn close(&mut self) {
        self.connection.close(self.now);
        self.collect();
    }

    fn collect(&mut self) {
        self.events.append(self.connection.events());
        for transmit in self.connection.transmits().drain(..) {
            if let Some((value, _)) = transmit.segment.timestamps {
                self.last_value = value;
            }
            self.outbox.push_back(Sent {
                at: self.now,
                subflow: transmit.subflow,
                segment: transmit.segment,
                purpose: transmit.purpose,
            });
        }
    }

    /// When something is next due. A deadline that has passed may be an early one: asked to handle it, the connection names the true one.
    fn deadline(&mut self) -> Nanos {
        if self.connection.next_deadline() <= self.now {
            self.connection.on_time(self.now);
            self.collect();
        }
        self.connection.next_deadline()
    }

    /// Lets time pass.
    pub fn run_until(&mut self, time: Nanos) {
        loop {
            let deadline = self.deadline();
            if deadline > time {
                break;
            }
            self.now = self.now.max(deadline);
        }
        self.now = time;
    }

    /// Nothing is pending.
    pub fn at_rest(&mut self) -> bool {
        self.deadline() == polypath_transport::NEVER
    }

    pub fn run_for(&mut self, time: Nanos) {
        self.run_until(self.now + time);
    }

    /// The next segment sent, waiting for it if there is none yet.
    #[track_caller]
    pub fn expect(&mut self) -> Sent {
        while self.outbox.is_empty() {
            let deadline = self.deadline();
            if self.outbox.is_empty() {
                assert!(
                    deadline < 10_000 * super::SECOND,
                    "nothing is sent any more"
                );
                self.run_until(deadline);
            }
        }
        self.outbox.pop_front().expect("not empty")
    }

    /// The next segment, which must carry `[seq, seq + len)`.
    #[track_caller]
    pub fn expect_data(&mut self, seq: u64, len: u32) -> Sent {
        let sent = self.expect();
        assert_eq!(
            (self.relative(&sent.segment), sent.segment.payload.len),
            (seq, len),
            "{:?}",
            sent.segment
        );
        sent
    }

    /// The next segment, which must be an ACK without payload of the peer's bytes below `ack`.
    #[track_caller]
    pub fn expect_ack(&mut self, ack: u64) -> Sent {
        let sent = self.expect();
        assert_eq!(sent.segment.payload.len, 0, "{:?}", sent.segment);
        assert_eq!(self.acknowledged(&sent.segment), ack, "{:?}", sent.segment);
        sent
    }

    /// Nothing was sent that was not yet expected.
    #[track_caller]
    pub fn expect_nothing(&self) {
        assert!(self.outbox.is_empty(), "{:?}", self.outbox.front());
    }

    /// Everything sent and not yet expected.
    pub fn drain(&mut self) -> Vec<Sent> {
        self.outbox.drain(..).collect()
    }

    /// A segment's sequence number, counted from the endpoint's initial one.
    pub fn relative(&self, segment: &Segment) -> u64 {
        u64::from(segment.seq.wrapping_sub(self.isn))
    }

    /// What a segment acknowledges, counted from the peer's initial sequence number.
    pub fn acknowledged(&self, segment: &Segment) -> u64 {
        u64::from(segment.ack.wrapping_sub(PEER_ISN))
    }

    /// SACK blocks, counted from the peer's initial sequence number.
    pub fn blocks(&self, segment: &Segment) -> Vec<(u64, u64)> {
        let relative = |seq: u32| u64::from(seq.wrapping_sub(PEER_ISN));
        segment
            .sack
            .as_slice()
            .iter()
            .map(|&(left, right)| (relative(left), relative(right)))
            .collect()
    }

    pub fn cwnd(&self) -> u32 {
        self.connection.paths()[0].cwnd
    }

    pub fn counter(&self, mib: Mib) -> u32 {
        self.connection.counters().value(mib)
    }

    pub fn happened(&self, wanted: impl Fn(&EventKind) -> bool) -> bool {
        self.events.iter().any(|event| wanted(&event.kind))
    }

    /// An MPTCP ACK of the peer: subflow bytes below `ack`, stream bytes below `data_ack`.
    pub fn data_ack(&self, ack: u64, data_ack: u64) -> Segment {
        Segment {
            dss: Some(Dss {
                data_ack: Some(DataAck::Long(
                    (initial_dsn(self.key).wrapping_add(1).wrapping_add(data_ack)).into(),
                )),
                mapping: None,
                data_fin: false,
            }),
            ..self.ack(ack)
        }
    }

    /// The same from the subflow's position `seq`.
    pub fn data_ack_at(&self, seq: u64, ack: u64, data_ack: u64) -> Segment {
        Segment {
            seq: self.ack_at(seq, ack).seq,
            ..self.data_ack(ack, data_ack)
        }
    }

    /// `len` mapped bytes of the peer: at `seq` of the subflow, at `offset` of the stream.
    pub fn mapped(&self, seq: u64, offset: u64, len: u32, ack: u64) -> Segment {
        let mut segment = Segment {
            payload: Payload { offset, len },
            ..self.ack_at(seq, ack)
        };
        segment.dss = Some(Dss {
            data_ack: Some(DataAck::Long(initial_dsn(self.key).wrapping_add(1).into())),
            mapping: Some(Mapping {
                dsn: Dsn::Long((initial_dsn(PEER_KEY).wrapping_add(1).wrapping_add(offset)).into()),
                subflow_seq: seq as u32,
                len: len as u16,
                checksum: None,
            }),
            data_fin: false,
        });
        segment
    }
}

/// MP_CAPABLE of version 1 with these keys.
pub fn capable(sender_key: Option<u64>, receiver_key: Option<u64>) -> MpCapable {
    MpCapable {
        version: 1,
        checksum_required: false,
        deny_join_initial: false,
        hmac_sha256: true,
        sender_key,
        receiver_key,
        data: None,
    }
}

/// The 64-bit IDSN of RFC 8684 section 3.1, computed here and not by the code under test.
pub fn initial_dsn(key: u64) -> u64 {
    let digest = sha256(&key.to_be_bytes());
    u64::from_be_bytes(digest[24..].try_into().expect("eight bytes"))
}

/// The token of RFC 8684 section 3.2.
pub fn token(key: u64) -> u32 {
    let digest = sha256(&key.to_be_bytes());
    u32::from_be_bytes(digest[..4].try_into().expect("four bytes"))
}

pub fn sha256(message: &[u8]) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(message).into()
}

/// HMAC-SHA256 by RFC 2104's definition, for keys of at most 64 bytes.
pub fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let pad = |filler: u8| {
        let mut block = [filler; 64];
        for (slot, byte) in block.iter_mut().zip(key) {
            *slot ^= byte;
        }
        block.to_vec()
    };
    let inner = sha256(&[pad(0x36), message.to_vec()].concat());
    sha256(&[pad(0x5c), inner.to_vec()].concat())
}
