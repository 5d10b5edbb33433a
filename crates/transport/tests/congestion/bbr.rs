//! BBR over real endpoints and a link with a rate and a queue.

use std::fmt::Write;

use polypath_transport::{Config, MILLISECOND as MS, Mib, Nanos, SECOND};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::common::{Fate, Link, Pair, Side, tcp};

/// 10 Mbps and 40 ms of RTT hold 34 packets of 1500 bytes.
const RATE: u64 = 10_000_000;
const DELAY: Nanos = 20 * MS;
const RTT: Nanos = 2 * DELAY;
/// Bytes a second of payload that the link carries at most: 1448 of 1500 bytes.
const GOODPUT: f64 = RATE as f64 / 8.0 * 1448.0 / 1500.0;

const STARTUP: f64 = 0.0;
const PROBE_BANDWIDTH: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;
const MODES: [&str; 4] = ["Startup", "Drain", "ProbeBW", "ProbeRTT"];

/// What the sender has at one moment.
pub struct Glimpse {
    pub mode: f64,
    /// Packets a second.
    pub bandwidth: f64,
    pub pacing_gain: f64,
    pub cwnd: u32,
    pub in_flight: u32,
    /// Bytes a second.
    pub pacing_rate: u64,
    pub srtt: Nanos,
    pub acked: u64,
    pub variables: Vec<(&'static str, f64)>,
}

impl Glimpse {
    pub fn variable(&self, name: &str) -> f64 {
        let found = self.variables.iter().find(|(known, _)| *known == name);
        found.map_or(0.0, |&(_, value)| value)
    }
}

pub struct Lab(pub Pair);

impl Lab {
    pub fn new(congestion: &str, queue: Nanos) -> Self {
        Self::of(
            &Config {
                congestion: congestion.into(),
                ..tcp()
            },
            queue,
        )
    }

    pub fn of(config: &Config, queue: Nanos) -> Self {
        let link = Link::limited(DELAY, RATE, queue);
        Self(Pair::with(config, config, vec![link], 1, 7))
    }

    pub fn bulk(congestion: &str, queue: Nanos) -> Self {
        let mut lab = Self::new(congestion, queue);
        lab.0.write(Side::Client, 1 << 40);
        lab
    }

    pub fn at(&mut self, time: Nanos) -> Glimpse {
        self.0.run_until(time);
        let connection = self.0.client.connection();
        let path = &connection.paths()[0];
        let variables = connection.subflows()[0].socket().observe();
        let mut glimpse = Glimpse {
            mode: 0.0,
            bandwidth: 0.0,
            pacing_gain: 0.0,
            cwnd: path.cwnd,
            in_flight: path.in_flight,
            pacing_rate: path.pacing_rate,
            srtt: path.srtt,
            acked: path.acked,
            variables,
        };
        glimpse.mode = glimpse.variable("mode");
        glimpse.bandwidth = glimpse.variable("bandwidth_packets_s");
        glimpse.pacing_gain = glimpse.variable("pacing_gain");
        glimpse
    }

    /// Part of what the link carries that was acknowledged between two times.
    pub fn utilisation(&mut self, from: Nanos, to: Nanos) -> f64 {
        let before = self.at(from).acked;
        let bytes = self.at(to).acked - before;
        bytes as f64 * SECOND as f64 / (to - from) as f64 / GOODPUT
    }
}

/// Draft section 4.3: Startup doubles the rate a round trip, Drain empties the queue that it made, ProbeBW follows; after 10 s ProbeRTT.
#[test]
fn from_startup_to_probe_rtt() {
    let mut lab = Lab::bulk("bbr", 200 * MS);
    let mut table = String::from("time_ms  mode      cwnd  in_flight  kbit_s  srtt_ms\n");
    let begin = (1..20).map(|step| step * 40);
    let middle = (2..10).map(|step| step * 1_000);
    let end = (1..20).map(|step| 10_000 + step * 50);
    for time in begin.chain(middle).chain(end) {
        let now = lab.at(time * MS);
        writeln!(
            table,
            "{time:>7}  {:<8}  {:>4}  {:>9}  {:>6}  {:>7.1}",
            MODES[now.mode as usize],
            now.cwnd,
            now.in_flight,
            now.pacing_rate * 8 / 1000,
            now.srtt as f64 / 1e6
        )
        .expect("a string");
    }
    insta::assert_snapshot!(table);
}

/// The paper's point: all of the bandwidth at little more than the RTT without a queue, however long the queue may grow.
#[test]
fn the_pipe_is_full_and_the_queue_short() {
    let mut lab = Lab::bulk("bbr", SECOND);
    assert!(lab.utilisation(2 * SECOND, 9 * SECOND) > 0.97);
    let highest = (0..700)
        .map(|step| lab.at(9 * SECOND + step * MS).srtt)
        .max();
    assert!(highest < Some(RTT * 3 / 2), "{highest:?}");
    let mut reno = Lab::bulk("reno", SECOND);
    assert!(reno.at(9 * SECOND).srtt > 10 * RTT);
}

/// Draft section 4.3.5: every 10 s at most four packets in flight for 200 ms and a round trip.
#[test]
fn probe_rtt_comes_every_ten_seconds() {
    let mut lab = Lab::bulk("bbr", 200 * MS);
    let mut visits: Vec<(u64, u64)> = Vec::new();
    for step in 0..25_000 {
        let now = lab.at(step * MS);
        if now.mode == PROBE_RTT {
            assert!(now.cwnd <= 4);
            match visits.last_mut() {
                Some((_, end)) if *end + 1 == step => *end = step,
                _ => visits.push((step, step)),
            }
        }
    }
    assert_eq!(visits.len(), 2, "{visits:?}");
    for (start, end) in &visits {
        assert!((200..350).contains(&(end - start)), "{visits:?}");
    }
    assert!(
        (9_990..10_500).contains(&(visits[1].0 - visits[0].1)),
        "{visits:?}"
    );
}

/// Linux `bbr_cwnd_event_tx_start`: what was idle for the rest of ProbeRTT begins with the window of before.
#[test]
fn probe_rtt_is_over_after_idleness() {
    let mut lab = Lab::new("bbr", 200 * MS);
    let mut cwnd = 0;
    let begun = (0..2_000).map(|step| step * 10 * MS).find(|&time| {
        let now = lab.at(time);
        if now.mode == PROBE_RTT {
            return true;
        }
        cwnd = now.cwnd;
        lab.0
            .write(Side::Client, if time < 5 * SECOND { 12_500 } else { 3_000 });
        false
    });
    let begun = begun.expect("ProbeRTT");
    let idle = lab.at(begun + 2 * SECOND);
    assert_eq!((idle.mode, idle.in_flight), (PROBE_RTT, 0));
    lab.0.write(Side::Client, 300_000);
    let now = lab.at(begun + 2 * SECOND);
    assert_eq!(now.mode, PROBE_BANDWIDTH);
    assert!(
        now.cwnd >= cwnd / 2 && cwnd > 20,
        "{} after {cwnd}",
        now.cwnd
    );
}

/// The paper, figure 8: random losses of 1 % cost the lost packets, not half of the rate each.
#[test]
fn random_losses_do_not_slow_it() {
    let lossy = |congestion: &str| {
        let mut lab = Lab::bulk(congestion, 100 * MS);
        let mut random = Pcg64Mcg::seed_from_u64(7);
        lab.0.hook(move |packet| {
            if packet.carries_data() && random.random_bool(0.01) {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        lab.utilisation(2 * SECOND, 9 * SECOND)
    };
    let (bbr, reno) = (lossy("bbr"), lossy("reno"));
    assert!(bbr > 0.94, "bbr {bbr}");
    assert!(reno < 0.7, "reno {reno}");
}

/// Draft section 4.2.2: after the first ten segments no more than a burst leaves at once, and bursts are as far apart as the rate says.
#[test]
fn segments_leave_in_bursts_of_two() {
    let mut lab = Lab::bulk("bbr", 200 * MS);
    lab.at(5 * SECOND);
    let mut departures: Vec<(Nanos, u32)> = Vec::new();
    for packet in lab.0.data(Side::Client).skip(10) {
        match departures.last_mut() {
            Some((at, count)) if *at == packet.at => *count += 1,
            _ => departures.push((packet.at, 1)),
        }
    }
    assert!(departures.iter().all(|&(_, count)| count <= 2));
    // In ProbeBW at 1.25 times 10 Mbps two packets take 1.9 ms; an ACK that came late may shorten a gap by half.
    let gaps = departures.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let late = gaps.skip(departures.len() / 2).min();
    assert!(late >= Some(900_000), "{late:?}");
}

/// Draft-cheng section 3.4: an application that sends little says nothing of the path, and the estimate stays.
#[test]
fn an_application_that_sends_little_leaves_the_estimate() {
    let mut lab = Lab::new("bbr", 200 * MS);
    lab.0.write(Side::Client, 5_000_000);
    let full = lab.at(4 * SECOND);
    assert_eq!(full.mode, PROBE_BANDWIDTH);
    assert!(full.bandwidth > 800.0, "{}", full.bandwidth);
    lab.at(5 * SECOND);
    for step in 0..400 {
        lab.0.write(Side::Client, 1_400);
        lab.at(5 * SECOND + (step + 1) * 10 * MS);
    }
    let idle = lab.at(9 * SECOND);
    assert!(
        idle.bandwidth > 0.95 * full.bandwidth,
        "{} after {}",
        idle.bandwidth,
        full.bandwidth
    );
}

/// Linux `bbr_lt_bw_sampling`: a token bucket of 2 Mbps after a burst of 100 kB is found by its losses, and its rate kept.
#[test]
fn a_policer_is_found() {
    let mut lab = Lab::bulk("bbr", 200 * MS);
    let (mut tokens, mut last) = (100_000.0, 0);
    lab.0.hook(move |packet| {
        if !packet.carries_data() {
            return Fate::Pass;
        }
        let rate = 250_000.0;
        tokens = f64::min(100_000.0, tokens + (packet.at - last) as f64 * rate / 1e9);
        last = packet.at;
        if tokens < 1500.0 {
            return Fate::Drop;
        }
        tokens -= 1500.0;
        Fate::Pass
    });
    let mut gains = Vec::new();
    for step in 40..160 {
        gains.push(lab.at(step * 50 * MS).pacing_gain);
    }
    let steady = gains.iter().filter(|&&gain| gain == 1.0).count();
    assert!(steady > 100, "{gains:?}");
    let now = lab.at(8 * SECOND);
    let rate = now.bandwidth * 1500.0 / 250_000.0;
    assert!((0.85..=1.1).contains(&rate), "{rate}");
}

/// A timeout is not forgotten: Startup goes on from the window that the path had.
#[test]
fn after_an_outage_it_returns_to_its_rate() {
    let mut lab = Lab::bulk("bbr", 200 * MS);
    lab.at(3 * SECOND);
    lab.0.links[0].up = false;
    lab.at(4 * SECOND);
    lab.0.links[0].up = true;
    assert!(lab.0.counter(Side::Client, Mib::TcpExtTCPTimeouts) > 0);
    assert!(lab.utilisation(6 * SECOND, 9 * SECOND) > 0.95);
    assert!(lab.at(9 * SECOND).mode != STARTUP);
}
