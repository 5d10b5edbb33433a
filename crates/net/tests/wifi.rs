//! Links over the air: throughput against closed forms, shares of stations, retransmission, and properties that always
//! hold.

mod common;

use std::sync::Arc;

use common::{FORWARD, MS, Pair, config, drop_tail, ip};
use polypath_net::{
    Change, ChannelConfig, ChannelId, CodelConfig, ConfigError, DropReason, Ecn, FqCodelConfig,
    Nanos, Network, NodeKind, Observer, Output, Packet, Phy, QueueConfig, RedConfig, RouteId,
    Standard, State, Topology, TopologyError, WifiConfig,
};
use proptest::prelude::*;

const US: Nanos = 1_000;
const S: Nanos = 1_000 * MS;

fn state(mcs: u32, error: f64) -> State {
    State {
        mcs,
        error,
        dwell: None,
        next: Vec::new(),
    }
}

fn wifi(standard: &str, mcs: u32) -> WifiConfig {
    WifiConfig {
        standard: Standard::by_name(standard).unwrap(),
        phy: Phy {
            width: 20,
            streams: 1,
            short_guard: false,
        },
        medium: None,
        states: vec![state(mcs, 0.0)],
        most_packets: 64,
        most_bytes: u32::MAX,
        most_airtime: 5_484 * US,
        attempts: 7,
    }
}

/// A channel over the air whose frames are the packets and no more.
fn over(wifi: WifiConfig) -> ChannelConfig {
    ChannelConfig {
        rate_bps: None,
        wifi: Some(Arc::new(wifi)),
        ..config()
    }
}

/// Stations, one link each to the access point, all on one medium; what each sends upwards and down.
struct Cell {
    network: Network<u32>,
    up: Vec<RouteId>,
    down: Vec<RouteId>,
    /// By body, which names link and direction.
    delivered: Vec<u64>,
}

/// Bodies of packets that were lost.
#[derive(Default)]
struct Lost(Vec<u32>);

impl Observer<u32> for Lost {
    const ACTIVE: bool = false;

    fn dropped(&mut self, _: Nanos, _: ChannelId, packet: &Packet<u32>, _: DropReason) {
        self.0.push(packet.body);
    }
}

impl Cell {
    fn new(stations: &[WifiConfig], seed: u64) -> Self {
        let mut topology = Topology::new();
        let point = topology.add_node(NodeKind::Host);
        let mut routes = Vec::new();
        for (index, wifi) in (0u8..).zip(stations) {
            let shared = WifiConfig {
                medium: Some(0),
                ..wifi.clone()
            };
            let node = topology.add_node(NodeKind::Host);
            let ends = [node, point].map(|node| topology.add_interface(node));
            let addresses = [ip(2 * index + 2), ip(2 * index + 3)];
            for (end, address) in ends.into_iter().zip(addresses) {
                topology.add_address(end, address).unwrap();
            }
            let channel = ChannelConfig {
                delay: 0,
                ..over(shared)
            };
            topology
                .connect(ends[0], ends[1], channel.clone(), channel)
                .unwrap();
            routes.push((node, addresses));
        }
        let mut route = |from, [src, dst]: [_; 2]| topology.route(from, src, dst, 0).unwrap();
        let up = routes.iter().map(|(node, [a, b])| route(*node, [*a, *b]));
        let up = up.collect();
        let down = routes.iter().map(|(_, [a, b])| route(point, [*b, *a]));
        let down = down.collect();
        Self {
            network: Network::new(topology, seed),
            up,
            down,
            delivered: vec![0; 2 * stations.len()],
        }
    }

    fn send(&mut self, route: RouteId, body: u32, len: u32) {
        self.network
            .inject(route, len, 0, Ecn::NotEct, body, &mut ());
    }

    /// Keeps the queues of links full up to a time; bodies are twice the link's number, and one more downwards.
    fn saturate(&mut self, up: &[usize], down: &[usize], len: u32, until: Nanos) {
        const DEPTH: usize = 200;
        for _ in 0..DEPTH {
            for link in up {
                self.send(self.up[*link], 2 * *link as u32, len);
            }
            for link in down {
                self.send(self.down[*link], 2 * *link as u32 + 1, len);
            }
        }
        let mut lost = Lost::default();
        while let Some(output) = self.network.poll(until, &mut lost) {
            let Output::Delivered { packet, .. } = output else {
                continue;
            };
            self.delivered[packet.body as usize] += 1;
            for body in lost.0.drain(..).chain([packet.body]) {
                let routes = [&self.up, &self.down][body as usize % 2];
                let route = routes[body as usize / 2];
                self.network
                    .inject(route, len, 0, Ecn::NotEct, body, &mut ());
            }
        }
    }

    fn shares(&self) -> Vec<f64> {
        let all: u64 = self.delivered.iter().sum();
        let share = |count: &u64| *count as f64 / all as f64;
        self.delivered
            .iter()
            .filter(|count| **count > 0)
            .map(share)
            .collect()
    }
}

/// Packets that one station delivers in a time, from IEEE 802.11's own formulas.
fn closed_form(
    wifi: &WifiConfig,
    bits_of_symbol: u64,
    preamble: Nanos,
    frame: u64,
    time: Nanos,
) -> f64 {
    let subframe = (frame + 4).next_multiple_of(4);
    let length = |count: u64| if count == 1 { frame } else { count * subframe };
    let symbols = |bytes: u64| (16 + 8 * bytes + 6).div_ceil(bits_of_symbol);
    let data = |count: u64| preamble + symbols(length(count)) * 4 * US;
    let fits = |count: &u64| length(*count) <= 65_535 && data(*count) <= wifi.most_airtime;
    let count = (1..=u64::from(wifi.most_packets))
        .take_while(fits)
        .last()
        .unwrap();
    // Ack of 28 us and block ack of 32 us at 24 Mbit/s
    let answer = if count == 1 { 28 * US } else { 32 * US };
    let contention = (16 + 3 * 9) * US + 9 * US * 15 / 2;
    let all = contention + data(count) + 16 * US + answer;
    count as f64 * time as f64 / all as f64
}

#[test]
fn a_station_alone_saturates_at_the_closed_form() {
    for (mcs, bits, most_packets) in [
        (7, 260, 64),
        (7, 260, 16),
        (7, 260, 1),
        (3, 104, 64),
        (4, 156, 32),
    ] {
        let wifi = WifiConfig {
            most_packets,
            ..wifi("802.11n", mcs)
        };
        let mut cell = Cell::new(std::slice::from_ref(&wifi), 1);
        cell.saturate(&[0], &[], 1538, 20 * S);
        let wanted = closed_form(&wifi, bits, 36 * US, 1538, 20 * S);
        let ratio = cell.delivered[0] as f64 / wanted;
        println!(
            "MCS {mcs}, {most_packets} packets: {:.2} Mbit/s, {ratio:.4} of the closed form",
            wanted * 0.0012 / 2.0
        );
        assert!((ratio - 1.0).abs() < 0.01, "{mcs} {most_packets}: {ratio}");
    }
}

#[test]
fn equal_stations_have_equal_shares() {
    // The wider the windows, the longer a turn may be in coming: the means need time.
    for (count, seconds) in [(2, 60), (5, 120), (10, 1200)] {
        // Short aggregates, so that each has many turns.
        let wifi = WifiConfig {
            most_packets: 2,
            ..wifi("802.11n", 7)
        };
        let mut cell = Cell::new(&vec![wifi; count], 1);
        let all: Vec<usize> = (0..count).collect();
        cell.saturate(&all, &[], 1538, seconds * S);
        let shares = cell.shares();
        let off = |share: &f64| (share * count as f64 - 1.0).abs();
        let worst = shares.iter().map(off).fold(0.0, f64::max);
        println!("{count} stations: shares within {worst:.4}");
        assert!(worst < 0.03, "{count}: {shares:?}");
    }
}

#[test]
fn an_access_point_is_one_station_that_serves_its_links_in_turn() {
    let mut cell = Cell::new(&vec![wifi("802.11n", 7); 3], 1);
    cell.saturate(&[0], &[0, 1, 2], 1538, 120 * S);
    let shares = cell.shares();
    assert_eq!(shares.len(), 4);
    assert!((shares[0] - 0.5).abs() < 0.015, "{shares:?}");
    for share in &shares[1..] {
        assert!((share - 1.0 / 6.0).abs() < 0.005, "{shares:?}");
    }
}

/// A QoS station contends by EDCA, whoever it sends to.
#[test]
fn an_access_point_contends_alike_whichever_link_comes_first() {
    let to_the_last = |stations: &[WifiConfig]| {
        let mut cell = Cell::new(stations, 1);
        let last = stations.len() - 1;
        cell.saturate(&[], &[last], 1538, S);
        cell.delivered[2 * last + 1]
    };
    let new = WifiConfig {
        most_packets: 1,
        ..wifi("802.11n", 7)
    };
    let old = WifiConfig {
        attempts: 1,
        ..wifi("802.11a", 7)
    };
    assert_eq!(to_the_last(&[old, new.clone()]), to_the_last(&[new]));
}

#[test]
fn a_slow_station_drags_a_fast_one_down_to_its_own_rate() {
    // Heusse et al. (2003): without aggregates everyone has the same packet rate.
    let mut both = Cell::new(&[wifi("802.11a", 7), wifi("802.11a", 0)], 1);
    both.saturate(&[0, 1], &[], 1538, 60 * S);
    let shares = both.shares();
    assert!((shares[0] - 0.5).abs() < 0.015, "{shares:?}");
    let mut fast = Cell::new(&vec![wifi("802.11a", 7); 2], 1);
    fast.saturate(&[0, 1], &[], 1538, 60 * S);
    let ratio = both.delivered[0] as f64 / fast.delivered[0] as f64;
    // 248 and 2076 us of data; with contention and acks about 0.4 and 2.2 ms each.
    println!("a station of 54 Mbit/s keeps {ratio:.3} beside one of 6");
    assert!((0.2..0.35).contains(&ratio), "{ratio}");
    // Aggregates bounded by airtime give equal time in place of equal turns.
    let bounded = |mcs| WifiConfig {
        most_airtime: 2_000 * US,
        ..wifi("802.11n", mcs)
    };
    let mut fair = Cell::new(&[bounded(7), bounded(0)], 1);
    fair.saturate(&[0, 1], &[], 1538, 60 * S);
    let ratio = fair.delivered[0] as f64 / fair.delivered[2] as f64;
    assert!(ratio > 8.0, "{ratio}");
    let busy = [0, 2].map(|channel| fair.network.stats(ChannelId(channel)).busy as f64);
    assert!((busy[0] / busy[1] - 1.0).abs() < 0.1, "{busy:?}");
}

#[test]
fn a_packet_is_sent_again_as_often_as_the_geometric_law_says() {
    const ERROR: f64 = 0.4;
    let wifi = WifiConfig {
        states: vec![state(7, ERROR)],
        ..wifi("802.11n", 7)
    };
    let attempts = wifi.attempts;
    let mut pair = Pair::new(over(wifi));
    let count = 20_000;
    pair.run(100 * MS);
    for _ in 0..count {
        pair.send(&[1538]);
        pair.run(pair.network.now() + 100 * MS);
    }
    // 228 us of data, 16 + 28 of the ack, and between two attempts 43 us and a backoff of up to 15, 31, 63 .. slots.
    let sent_at = |body: u32| (u64::from(body) + 1) * 100 * MS;
    let mut found = vec![0_u32; attempts as usize];
    let mut waits: Vec<u64> = Vec::new();
    for (at, body) in pair.delivered() {
        let late = (at - MS - sent_at(body) - 228 * US) / US;
        let of = |attempt: u64| -> u64 {
            let slots: u64 = (1..attempt).map(|retry| (16 << retry) - 1).sum();
            (attempt - 1) * (44 + 43 + 228) + 9 * slots
        };
        // Backoffs overlap, so that later attempts are told apart on average alone.
        if late == 0 {
            found[0] += 1;
        } else if late < 44 + 43 + 228 + 44 + 43 + 228 {
            assert!(late <= of(2), "{late}");
            waits.push(late - (44 + 43 + 228));
        }
    }
    let first = f64::from(found[0]) / f64::from(count);
    assert!((first - (1.0 - ERROR)).abs() < 0.01, "{first}");
    let second = waits.len() as f64 / f64::from(count);
    assert!((second - ERROR * (1.0 - ERROR)).abs() < 0.01, "{second}");
    // The contention window has doubled: 0 to 31 slots.
    let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
    assert!((mean / 9.0 - 15.5).abs() < 0.4, "{mean}");
    let lost = pair.network.stats(FORWARD).lost_packets as f64 / f64::from(count);
    let wanted = ERROR.powi(attempts as i32);
    assert!((lost - wanted).abs() < 0.0008, "{lost} {wanted}");
}

#[test]
fn attempts_are_geometric_where_the_window_is_not_doubled() {
    // In an aggregate of many some frame always comes through, so that every attempt takes the same time.
    const ERROR: f64 = 0.3;
    let wifi = WifiConfig {
        states: vec![state(7, ERROR)],
        most_packets: 32,
        ..wifi("802.11n", 7)
    };
    let mut cell = Cell::new(&[wifi], 3);
    cell.saturate(&[0], &[], 1538, 60 * S);
    let stats = cell.network.stats(ChannelId(0));
    let all = stats.sent_packets + stats.lost_packets;
    let lost = stats.lost_packets as f64 / all as f64;
    let wanted = ERROR.powi(7);
    assert!((lost / wanted - 1.0).abs() < 0.35, "{lost} {wanted}");
    let mut clean = Cell::new(
        &[WifiConfig {
            most_packets: 32,
            ..self::wifi("802.11n", 7)
        }],
        3,
    );
    clean.saturate(&[0], &[], 1538, 60 * S);
    let ratio = cell.delivered[0] as f64 / clean.delivered[0] as f64;
    println!("with 30 % of frames failing a station delivers {ratio:.3} of what it would");
    // At most 1 - p; less, as the block ack window of 64 stands still for a frame that fails again and again.
    assert!((0.6..=0.7).contains(&ratio), "{ratio}");
}

#[test]
fn a_rate_follows_its_chain() {
    // Half of the time at 65 Mbit/s and half at 6.5.
    let moving = |mcs| State {
        dwell: Some(20 * MS),
        next: if mcs == 7 {
            vec![0.0, 1.0]
        } else {
            vec![1.0, 0.0]
        },
        ..state(mcs, 0.0)
    };
    let wifi = |states| WifiConfig {
        states,
        ..wifi("802.11n", 7)
    };
    let delivered = |states| {
        let mut cell = Cell::new(&[wifi(states)], 1);
        cell.saturate(&[0], &[], 1538, 120 * S);
        cell.delivered[0] as f64
    };
    let both = delivered(vec![moving(7), moving(0)]);
    let mean = 0.5 * (delivered(vec![state(7, 0.0)]) + delivered(vec![state(0, 0.0)]));
    assert!((both / mean - 1.0).abs() < 0.05, "{} {}", both, mean);
}

#[test]
fn a_link_or_an_interface_that_goes_down_loses_everything_and_comes_back() {
    let what: [fn(Option<bool>) -> Change; 3] = [
        |up| Change {
            up,
            ..Change::default()
        },
        |sender_up| Change {
            sender_up,
            ..Change::default()
        },
        |receiver_up| Change {
            receiver_up,
            ..Change::default()
        },
    ];
    for set in what {
        let mut pair = Pair::new(over(wifi("802.11n", 7)));
        pair.send(&[1538; 200]);
        for (at, up) in [(8 * MS, false), (20 * MS, true)] {
            pair.network.schedule(at, FORWARD, set(Some(up))).unwrap();
        }
        pair.run(9 * MS);
        let before = pair.delivered().len();
        assert!((20..=60).contains(&before), "{before}");
        pair.send(&[1538; 10]);
        pair.run(20 * MS);
        assert_eq!(pair.delivered().len(), before);
        assert_eq!(pair.network.totals().in_flight, 0);
        pair.send(&[1538; 10]);
        pair.run(40 * MS);
        assert_eq!(pair.delivered().len(), before + 10);
    }
}

/// `red_calc_qavg_from_idle_time`: the average falls by a sample of nothing for each packet that could have been sent. The space of 43 us,
/// 228 us of data, SIFS and an acknowledgement of 28 us make 315.
#[test]
fn red_forgets_its_average_a_packet_at_a_time_while_the_air_is_idle() {
    let crowded = || {
        let mut pair = Pair::new(ChannelConfig {
            queue: QueueConfig::Red(RedConfig {
                min: 2.0,
                max: 4.0,
                probability: 0.1,
                weight: 1.0,
                gentle: false,
                limit: 1000,
                ecn: false,
            }),
            ..over(wifi("802.11n", 7))
        });
        pair.send(&[1538; 20]);
        pair
    };
    let mut pair = crowded();
    pair.run(100 * MS);
    let idle_since = pair.delivered().last().unwrap().0 - MS;
    for (after, passes) in [(314, false), (315, true)] {
        let mut pair = crowded();
        pair.run(idle_since + after * US);
        pair.send(&[1538]);
        pair.run(100 * MS);
        let last = pair.delivered().last().unwrap().1;
        assert_eq!(last == 20, passes, "{after}");
    }
}

#[test]
fn impossible_stations_are_refused() {
    let refused = |change: &dyn Fn(&mut ChannelConfig, &mut WifiConfig)| {
        let mut station = wifi("802.11n", 7);
        let mut channel = over(station.clone());
        change(&mut channel, &mut station);
        channel.wifi = Some(Arc::new(station));
        channel.check().unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|channel, _| channel.rate_bps = Some(1)),
        ConfigError::RateOfWifi.to_string()
    );
    assert_eq!(
        refused(&|_, wifi| wifi.states[0].mcs = 32),
        "802.11n has no MCS 32 in 20 MHz with 1 streams"
    );
    assert_eq!(
        refused(&|_, wifi| wifi.states.clear()),
        ConfigError::NoState.to_string()
    );
    assert_eq!(
        refused(&|_, wifi| wifi.attempts = 0),
        ConfigError::NothingSent.to_string()
    );
    let dwell = |dwell, next: &[f64]| {
        refused(&|_, wifi| {
            wifi.states[0].dwell = Some(dwell);
            wifi.states[0].next = next.to_vec();
        })
    };
    assert_eq!(dwell(1, &[1.0]), ConfigError::Dwell.to_string());
    assert_eq!(dwell(MS, &[0.5]), ConfigError::Successors.to_string());
    let mut topology = Topology::new();
    let hosts = [NodeKind::Host; 2].map(|kind| topology.add_node(kind));
    let [a, b] = hosts.map(|host| topology.add_interface(host));
    let half = topology.connect(a, b, over(wifi("802.11n", 7)), config());
    assert_eq!(
        half.unwrap_err(),
        TopologyError::Config(ConfigError::HalfWifi)
    );
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let fq_codel = QueueConfig::FqCodel(FqCodelConfig {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        limit: 100,
        quantum_bytes: 1514,
        flows: 64,
        drop_batch: 64,
        ecn: false,
    });
    prop_oneof![
        (1u64..50).prop_map(|packets| drop_tail(Some(packets), None)),
        (1u64..50_000).prop_map(|bytes| drop_tail(None, Some(bytes))),
        Just(fq_codel),
        Just(QueueConfig::Codel(CodelConfig {
            target_ns: MS,
            interval_ns: 10 * MS,
            limit: 100,
            ecn: false
        })),
    ]
}

prop_compose! {
    fn station()(
        standard in prop::sample::select(vec!["802.11a", "802.11n", "802.11ac"]),
        states in proptest::collection::vec((0u32..8, 0.0f64..0.9, 1u64..30), 1..4),
        most_packets in 1u32..65,
        most_bytes in 1u32..70_000,
        attempts in 1u32..10,
    ) -> WifiConfig {
        let count = states.len();
        let state = |(mcs, error, dwell)| State {
            mcs,
            error,
            dwell: (count > 1).then_some(dwell * MS),
            next: vec![1.0 / count as f64; count],
        };
        WifiConfig {
            states: states.into_iter().map(state).collect(),
            most_packets,
            most_bytes,
            attempts,
            ..wifi(standard, 0)
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32, u32, usize),
    Wait(Nanos),
    Up(u32, bool),
}

fn step(channels: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..channels, 1u32..3000, 1usize..30).prop_map(|(channel, len, count)| Step::Send(channel, len, count)),
        4 => (0u64..8 * MS).prop_map(Step::Wait),
        1 => (0..channels, any::<bool>()).prop_map(|(channel, up)| Step::Up(channel, up)),
    ]
}

proptest! {
    #[test]
    fn packets_are_accounted_for_arrive_in_order_and_repeat(
        stations in proptest::collection::vec(station(), 1..4),
        queue in queue(),
        steps in proptest::collection::vec(step(6), 1..40),
        seed in any::<u64>(),
    ) {
        let play = || {
            let mut cell = Cell::new(&stations, seed);
            let channels = 2 * stations.len() as u32;
            let mut delivered: Vec<Vec<(Nanos, u32)>> = vec![Vec::new(); channels as usize];
            let mut number = 0;
            for channel in 0..channels {
                let change = Change { queue: Some(queue.clone()), ..Change::default() };
                cell.network.apply(ChannelId(channel), &change, &mut ()).unwrap();
            }
            let end = [Step::Wait(3600 * S)];
            for step in steps.iter().chain(&end) {
                match *step {
                    Step::Send(channel, len, count) => {
                        let channel = (channel % channels) as usize;
                        let route = [&cell.up, &cell.down][channel % 2][channel / 2];
                        for _ in 0..count {
                            cell.send(route, number * 6 + channel as u32, len);
                            number += 1;
                        }
                    }
                    Step::Wait(time) => {
                        let until = cell.network.now() + time;
                        while let Some(output) = cell.network.poll(until, &mut ()) {
                            if let Output::Delivered { packet, .. } = output {
                                let at = cell.network.now();
                                delivered[packet.body as usize % 6].push((at, packet.body));
                            }
                        }
                    }
                    Step::Up(channel, up) => {
                        let change = Change { up: Some(up), ..Change::default() };
                        let channel = ChannelId(channel % channels);
                        cell.network.apply(channel, &change, &mut ()).unwrap();
                    }
                }
                let totals = cell.network.totals();
                assert_eq!(totals.injected, totals.delivered + totals.dropped + totals.lost + totals.in_flight);
            }
            assert_eq!(cell.network.totals().in_flight, 0);
            delivered
        };
        let first = play();
        for channel in &first {
            let by_flow = matches!(queue, QueueConfig::FqCodel(_));
            prop_assert!(by_flow || channel.is_sorted());
            prop_assert!(channel.iter().map(|(_, body)| body).is_sorted());
        }
        prop_assert_eq!(first, play());
    }
}
