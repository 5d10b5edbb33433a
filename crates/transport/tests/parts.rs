//! The parts of `path` and `stream` under a transport that is neither TCP nor MPTCP. As in QUIC, packets have numbers
//! and are acknowledged singly. Lost data is sent again in a packet with another number.

use std::collections::{BTreeMap, VecDeque};

use polypath_transport::congestion::{self, Ack, CongestionControl};
use polypath_transport::path::rtt::RttEstimator;
use polypath_transport::path::{Acknowledged, DeliveryRate, Member, MtuDiscovery, Pacer, Path};
use polypath_transport::stream::Receiver;
use polypath_transport::{Config, MILLISECOND, NEVER, Nanos, SECOND};

/// IPv4's and UDP's headers, and those of a packet beyond them.
const HEADERS: u32 = 28;
const OPTIONS: u32 = 12;
/// The first link takes packets of 1500 bytes, a later one only those of `NARROW`.
const MTU: u32 = 1500;
const NARROW: u32 = 1400;
const BASE: u32 = 1200;
const RATE: u64 = 10_000_000;
const ONE_WAY: Nanos = 20 * MILLISECOND;
const BYTES: u64 = 3_000_000;
/// Packets behind one that make it count as lost (RFC 9002 section 6.1.1).
const THRESHOLD: u64 = 3;

#[derive(Clone, Copy)]
struct Packet {
    offset: u64,
    len: u32,
    sent_at: Nanos,
    probe: bool,
}

struct Transfer {
    now: Nanos,
    config: Config,
    paths: [Path; 1],
    rtt: RttEstimator,
    congestion: Box<dyn CongestionControl>,
    pacer: Pacer,
    rate: DeliveryRate,
    mtu: MtuDiscovery,
    receiver: Receiver,
    next: u64,
    flight: BTreeMap<u64, Packet>,
    fresh: u64,
    again: VecDeque<(u64, u32)>,
    /// Acknowledgements on their way back, and when the bottleneck is free.
    acks: VecDeque<(Nanos, u64)>,
    busy_until: Nanos,
    recovery_until: u64,
}

impl Transfer {
    fn new(control: &str) -> Self {
        let config = Config::default();
        let congestion = congestion::REGISTRY.make(control, &Default::default());
        let mut mtu = MtuDiscovery::new(true, HEADERS, MTU);
        mtu.begin(MTU - HEADERS, BASE, 0);
        let mut path = Path::new(mtu.payload(OPTIONS), 10);
        path.established = true;
        Self {
            now: 0,
            receiver: Receiver::new(&config),
            config,
            paths: [path],
            rtt: RttEstimator::default(),
            congestion: congestion.expect("in the registry"),
            pacer: Pacer::default(),
            rate: DeliveryRate::default(),
            mtu,
            next: 0,
            flight: BTreeMap::new(),
            fresh: 0,
            again: VecDeque::new(),
            acks: VecDeque::new(),
            busy_until: 0,
            recovery_until: 0,
        }
    }

    fn send(&mut self, offset: u64, len: u32, probe: bool) {
        let number = self.next;
        self.next += 1;
        let alone = self.flight.is_empty();
        let in_flight = self.flight.len() as u32 + 1;
        self.rate.on_sent(number, self.now, false, alone, in_flight);
        self.pacer.on_sent(self.now, len);
        if probe {
            self.mtu.on_sent(number, number + 1, len, OPTIONS);
        }
        let sent_at = self.now;
        let packet = Packet {
            offset,
            len,
            sent_at,
            probe,
        };
        self.flight.insert(number, packet);
        self.paths[0].in_flight = self.flight.len() as u32;
        let bytes = len + OPTIONS + HEADERS;
        self.busy_until = self.busy_until.max(self.now) + u64::from(bytes) * 8 * SECOND / RATE;
        if bytes <= NARROW && number % 70 != 69 {
            self.acks.push_back((self.busy_until + 2 * ONE_WAY, number));
        }
    }

    fn send_all(&mut self) {
        while self.paths[0].room() > 0 && !self.pacer.blocked() {
            let full = self.paths[0].mss;
            if let Some((offset, len)) = self.again.pop_front() {
                let part = len.min(full);
                if part < len {
                    self.again
                        .push_front((offset + u64::from(part), len - part));
                }
                self.send(offset, part, false);
                continue;
            }
            if self.fresh == BYTES {
                break;
            }
            let probe = self.mtu.candidate(full, OPTIONS, self.now);
            let len = probe.filter(|_| self.mtu.fits(0) && self.rtt.srtt() > 0);
            let wanted = u64::from(len.unwrap_or(full)).min(BYTES - self.fresh);
            self.send(self.fresh, wanted as u32, len.is_some());
            self.fresh += wanted;
        }
        self.pacer.end_burst(self.now);
    }

    fn on_ack(&mut self, number: u64) {
        let before = self.flight.len() as u32;
        let Some(packet) = self.flight.remove(&number) else {
            return;
        };
        self.rate.begin_ack(before);
        self.rate.on_delivered(number, number + 1);
        self.receiver.deliver(packet.offset, packet.len.into());
        let bytes = self.receiver.available();
        self.receiver.read(bytes, None, self.now);
        let rtt = self.now - packet.sent_at;
        self.rtt.sample(rtt, number, self.next, &self.config);
        self.rtt.sample_min(rtt, self.now);
        if packet.probe {
            self.mtu.on_acknowledged(number + 1);
            self.paths[0].mss = self.mtu.payload(OPTIONS);
        }
        let lost = self.lose_below(number.saturating_sub(THRESHOLD - 1));
        let path = &mut self.paths[0];
        path.in_flight = self.flight.len() as u32;
        path.srtt = self.rtt.srtt();
        path.min_rtt = self.rtt.min();
        path.latest_rtt = rtt;
        let ack = Ack {
            now: self.now,
            packets: 1,
            marked: 0,
            rtt: Some(rtt),
            cwnd_limited: true,
            next_seq: self.next,
            una: number,
        };
        self.congestion
            .on_sample(&mut Member::new(&mut self.paths, 0), &ack);
        if self.congestion.paces() {
            let sample = self.rate.sample(Acknowledged {
                now: self.now,
                packets: 1,
                newly_lost: lost,
                una: self.flight.keys().next().copied().unwrap_or(self.next),
                small: false,
                min_rtt: self.rtt.min(),
                departure: self.pacer.departure(self.now),
                selective: true,
                held_bursts: 1,
            });
            self.congestion
                .control(&mut Member::new(&mut self.paths, 0), &ack, &sample);
            self.pacer.set_rate(&self.paths[0]);
        } else {
            self.congestion
                .on_ack(&mut Member::new(&mut self.paths, 0), &ack);
        }
    }

    /// What was sent before `number` and is unanswered is lost: once a round trip that is congestion, a lost probe never is.
    fn lose_below(&mut self, number: u64) -> u32 {
        let late = self.flight.split_off(&number);
        let lost = std::mem::replace(&mut self.flight, late);
        let count = lost.len() as u32;
        for (number, packet) in lost {
            self.again.push_back((packet.offset, packet.len));
            if packet.probe {
                assert!(self.mtu.on_lost(number));
            } else if number >= self.recovery_until && !self.congestion.paces() {
                self.recovery_until = self.next;
                let threshold = self
                    .congestion
                    .ssthresh(&mut Member::new(&mut self.paths, 0));
                self.paths[0].ssthresh = threshold;
                self.paths[0].cwnd = threshold;
            }
        }
        count
    }

    fn run(&mut self) {
        let mut quiet = 0;
        while self.receiver.next < BYTES {
            self.send_all();
            let ack_at = self.acks.front().map_or(NEVER, |ack| ack.0);
            let timeout = self.now + self.rtt.rto(&self.config);
            let at = ack_at.min(self.pacer.deadline()).min(timeout);
            assert!(at < 60 * SECOND && quiet < 5, "it does not end");
            self.now = at;
            self.pacer.release(at);
            if ack_at == at {
                quiet = 0;
                if let Some((_, number)) = self.acks.pop_front() {
                    self.on_ack(number);
                }
            } else if at == timeout {
                quiet += 1;
                let lost = self.lose_below(self.next);
                self.rate.on_lost(lost);
                self.paths[0].in_flight = 0;
            }
        }
    }
}

#[test]
fn a_transport_without_tcp_is_made_of_them() {
    for control in ["reno", "cubic", "bbr"] {
        let mut transfer = Transfer::new(control);
        transfer.run();
        assert_eq!(
            transfer.receiver.next, BYTES,
            "{control}: whole and in order"
        );
        assert_eq!(transfer.receiver.reassembly_bytes(), 0);
        let longest = transfer.paths[0].mss + OPTIONS + HEADERS;
        let found = NARROW - 8..=NARROW;
        assert!(
            found.contains(&longest),
            "{control}: packets of {longest} bytes"
        );
        let least = transfer.rtt.min();
        assert!((2 * ONE_WAY..2 * ONE_WAY + 2 * MILLISECOND).contains(&least));
        let goodput = BYTES * 8 * SECOND / transfer.now;
        assert!(goodput < RATE, "{control}: {goodput} bit/s");
        // One packet in seventy is lost, which only BBR does not take for congestion.
        let share = if control == "bbr" { 80 } else { 25 };
        assert!(goodput > RATE * share / 100, "{control}: {goodput} bit/s");
    }
}
