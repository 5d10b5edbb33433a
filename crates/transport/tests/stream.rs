//! The stream arrives whole and in order, whatever the network does and however the hosts are set.
//!
//! | drawn at random | range |
//! |---|---|
//! | paths | 1 to 4, 1 to 150 ms one way, with or without a rate and a short queue |
//! | faults until the network heals | loss to 20 %, reordering, duplication, corruption, each path down and up again |
//! | each host | scheduler, controller, path manager, profile, SACK, timestamps, scaling, checksum, Nagle, ECN, MPTCP or not, buffers down to 2 kB |
//! | application | bytes in both directions, a reader that pauses |
//!
//! What must hold: both ends finish within a bounded time after the network healed, every byte was read once, at its place.
//! Behind a middlebox that strips options, from some time on, on one path or all, the connection may end in error instead, on both sides.
//! `POLYPATH_CASES` sets the number of cases.

#[allow(dead_code, reason = "the test programs use different parts")]
mod common;

use common::{Fate, Link, MS, Pair, SECOND, Side};
use polypath_transport::{
    Buffer, CloseReason, Config, Connection, Nanos, Profile, congestion, path_manager, scheduler,
};
use polypath_wire::tcp::Flags;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// From here on nothing is lost and every path is up.
const HEALED: Nanos = 20 * SECOND;
/// By then everything has to be over: timeouts have backed off to at most about the time of the faults.
const LIMIT: Nanos = HEALED + 400 * SECOND;
/// Time for every one of the 15 repetitions at the longest timeout of 120 s, for what ends only when they are exhausted.
const EXHAUSTED: Nanos = LIMIT + 16 * 120 * SECOND;

#[derive(Clone, Debug)]
struct Faults {
    loss: f64,
    reordering: f64,
    duplication: f64,
    corruption: f64,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Outage {
    path: usize,
    begin: Nanos,
    end: Nanos,
}

#[derive(Clone)]
struct Case {
    links: Vec<Link>,
    server_addresses: usize,
    faults: Faults,
    outages: Vec<Outage>,
    client: Config,
    server: Config,
    up: u64,
    down: u64,
    /// The server stops reading for this time.
    pause: Option<(Nanos, Nanos)>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for link in &self.links {
            writeln!(
                f,
                "path of {} ms, {} bit/s, queue {} ms",
                link.delay / MS,
                link.rate,
                link.longest_queue / MS
            )?;
        }
        writeln!(f, "{:?}\n{:?}", self.faults, self.outages)?;
        for (name, host) in [("client", &self.client), ("server", &self.server)] {
            let on = |set: bool, name| if set { name } else { "-" };
            writeln!(
                f,
                "{name}: {:?} {} {} {} receive {} send {} {} {} {} {} {} {} {} {}",
                host.profile,
                host.scheduler.name,
                host.congestion.name,
                host.path_manager.name,
                host.receive_buffer.default,
                host.send_buffer.default,
                on(host.sack, "sack"),
                on(host.timestamps, "timestamps"),
                on(host.window_scaling, "scaling"),
                on(host.checksum, "checksum"),
                on(host.nagle, "nagle"),
                on(host.ecn, "ecn"),
                on(host.multipath, "mptcp"),
                on(host.autotuning, "autotuning"),
            )?;
        }
        write!(
            f,
            "server addresses {} up {} down {} pause {:?}",
            self.server_addresses, self.up, self.down, self.pause
        )
    }
}

fn host() -> impl Strategy<Value = Config> {
    let names = (
        select(scheduler::REGISTRY.names().collect::<Vec<_>>()),
        select(congestion::REGISTRY.names().collect::<Vec<_>>()),
        select(path_manager::REGISTRY.names().collect::<Vec<_>>()),
        0..Profile::ALL.len(),
    );
    let switches = (
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.8),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.9),
        any::<bool>(),
    );
    let buffers = (
        prop_oneof![2_000u64..20_000, 20_000u64..400_000],
        prop_oneof![4_000u64..20_000, 20_000u64..400_000],
    );
    (names, switches, buffers).prop_map(|(names, switches, (receive, send))| {
        let (sack, timestamps, window_scaling, checksum, nagle, ecn, mptcp, autotuning) = switches;
        let (scheduler, controller, manager, profile) = names;
        Config {
            scheduler: scheduler.into(),
            congestion: controller.into(),
            path_manager: manager.into(),
            profile: Profile::ALL[profile],
            sack,
            timestamps,
            window_scaling,
            checksum,
            nagle,
            ecn,
            multipath: mptcp,
            autotuning,
            receive_buffer: Buffer {
                minimum: receive,
                default: receive,
                maximum: if autotuning { 4 * receive } else { receive },
            },
            send_buffer: Buffer {
                minimum: send,
                default: send,
                maximum: 2 * send,
            },
            ..Config::default()
        }
    })
}

fn link() -> impl Strategy<Value = Link> {
    (1u64..150, prop::option::of((2u64..50, 20u64..200))).prop_map(|(delay, limit)| match limit {
        Some((mbps, queue)) => Link::limited(delay * MS, mbps * 1_000_000, queue * MS),
        None => Link::new(delay * MS),
    })
}

fn case() -> impl Strategy<Value = Case> {
    let faults = (
        0.0..0.2,
        0.0..0.2,
        0.0..0.1,
        0.0..0.05,
        any::<u64>(),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(loss, reordering, duplication, corruption, seed, calm)| {
            let scale = if calm { 0.0 } else { 1.0 };
            Faults {
                loss: loss * scale,
                reordering: reordering * scale,
                duplication: duplication * scale,
                corruption: corruption * scale,
                seed,
            }
        });
    let outage = (0usize..4, 0u64..15_000, 10u64..8_000).prop_map(|(path, begin, length)| Outage {
        path,
        begin: begin * MS,
        end: (begin + length) * MS,
    });
    (
        prop::collection::vec(link(), 1..=4),
        1usize..=2,
        faults,
        prop::collection::vec(outage, 0..4),
        host(),
        host(),
        prop_oneof![Just(0u64), 1u64..5_000, 1u64..400_000],
        prop_oneof![Just(0u64), 1u64..5_000, 1u64..400_000],
        prop::option::of(
            (0u64..5_000, 1u64..5_000).prop_map(|(at, length)| (at * MS, (at + length) * MS)),
        ),
    )
        .prop_map(
            |(links, server_addresses, faults, outages, client, server, up, down, pause)| Case {
                links,
                server_addresses,
                faults,
                outages,
                client,
                server,
                up,
                down,
                pause,
            },
        )
}

fn hook(faults: Faults) -> impl FnMut(&mut common::pair::Packet) -> Fate {
    let mut random = Pcg64Mcg::seed_from_u64(faults.seed);
    move |packet| {
        let draw: f64 = random.random();
        let extra = random.random_range(1..100) * MS;
        if packet.at >= HEALED {
            return Fate::Pass;
        }
        let mut edge = faults.loss;
        if draw < edge {
            return Fate::Drop;
        }
        edge += faults.reordering;
        if draw < edge {
            return Fate::Delay(extra);
        }
        edge += faults.duplication;
        if draw < edge {
            return Fate::Duplicate(extra);
        }
        if draw < edge + faults.corruption {
            return Fate::Corrupt;
        }
        Fate::Pass
    }
}

/// A middlebox that removes MPTCP's options.
#[derive(Clone, Copy, Debug)]
struct Middlebox {
    /// On this path, or on all.
    path: Option<usize>,
    from: Option<Side>,
    since: Nanos,
    spares_syns: bool,
}

fn middlebox() -> impl Strategy<Value = Middlebox> {
    let from = prop::option::of(prop_oneof![Just(Side::Client), Just(Side::Server)]);
    let since = prop_oneof![Just(0u64), 0u64..3_000];
    (prop::option::of(0usize..3), from, since, any::<bool>()).prop_map(
        |(path, from, since, spares_syns)| Middlebox {
            path,
            from,
            since: since * MS,
            spares_syns,
        },
    )
}

impl Middlebox {
    fn strip(&self, packet: &mut common::pair::Packet) {
        let concerned = self.path.is_none_or(|path| path == packet.path)
            && self.from.is_none_or(|from| from == packet.from)
            && packet.at >= self.since
            && !(self.spares_syns && packet.segment.flags.contains(Flags::SYN));
        if concerned {
            packet.segment.dss = None;
            if let Some(rare) = &mut packet.segment.rare {
                rare.mptcp.clear();
            }
        }
    }
}

/// Moments at which the test, not the endpoints, changes something.
fn moments(case: &Case) -> Vec<Nanos> {
    let mut moments = vec![HEALED];
    moments.extend(
        case.outages
            .iter()
            .flat_map(|outage| [outage.begin, outage.end]),
    );
    moments.extend(case.pause.iter().flat_map(|&(begin, end)| [begin, end]));
    moments.retain(|&at| at <= HEALED);
    moments.sort_unstable();
    moments
}

/// Changes links and reader as the case has it at this moment.
fn arrange(pair: &mut Pair, case: &Case) {
    let now = pair.now;
    for (index, link) in pair.links.iter_mut().enumerate() {
        link.up = now >= HEALED
            || case
                .outages
                .iter()
                .all(|outage| outage.path != index || !(outage.begin..outage.end).contains(&now));
    }
    pair.server.reading = now >= HEALED
        || case
            .pause
            .is_none_or(|(begin, end)| !(begin..end).contains(&now));
}

fn finished(pair: &Pair) -> bool {
    [&pair.client, &pair.server].iter().all(|end| {
        end.connection
            .as_ref()
            .is_some_and(|connection| connection.ended().is_some())
    })
}

/// The server writes its answer and closes once the connection reached it.
fn answer(pair: &mut Pair, bytes: u64) {
    let begun = |pair: &Pair| pair.server.connection.is_some();
    assert!(pair.run_until_that(LIMIT, begun), "the SYN never arrived");
    pair.write(Side::Server, bytes);
    pair.close(Side::Server);
}

fn run(case: &Case, middlebox: Option<Middlebox>, limit: Nanos) -> Pair {
    let mut pair = Pair::with(
        &case.client,
        &case.server,
        case.links.clone(),
        case.server_addresses,
        case.faults.seed >> 40,
    );
    let mut faults = hook(case.faults.clone());
    pair.hook(move |packet| {
        if let Some(middlebox) = &middlebox {
            middlebox.strip(packet);
        }
        faults(packet)
    });
    pair.write(Side::Client, case.up);
    pair.close(Side::Client);
    let mut answered = false;
    for moment in moments(case) {
        arrange(&mut pair, case);
        if !answered && pair.run_until_that(moment, |pair| pair.server.connection.is_some()) {
            answered = true;
            pair.write(Side::Server, case.down);
            pair.close(Side::Server);
        }
        pair.run_until(moment);
    }
    arrange(&mut pair, case);
    if !answered {
        answer(&mut pair, case.down);
    }
    pair.run_until_that(limit, finished);
    pair
}

fn state(connection: &Connection) -> String {
    let sockets: Vec<String> = connection
        .subflows()
        .iter()
        .zip(connection.paths())
        .map(|(subflow, path)| {
            let socket = subflow.socket();
            format!(
                "{} cwnd {} flight {} failed {} {:?}",
                socket.state().name(),
                path.cwnd,
                path.in_flight,
                path.potentially_failed,
                path.state
            )
        })
        .collect();
    format!(
        "ended {:?} multipath {} queue {:?} available {} deadline {} [{}]",
        connection.ended(),
        connection.multipath(),
        connection.send_queue(),
        connection.available(),
        connection.next_deadline(),
        sockets.join("; ")
    )
}

fn check(case: &Case) {
    let mut pair = run(case, None, LIMIT);
    if std::env::var_os("POLYPATH_LOG").is_some() {
        pair.print_log(60);
    }
    for (side, bytes) in [(Side::Server, case.up), (Side::Client, case.down)] {
        let picture = state(pair.connection(side));
        let other = state(pair.connection(side.other()));
        let about = format!("{side:?} at {}: {picture}\nother side: {other}", pair.now);
        assert_eq!(pair.end(side).read, bytes, "{about}");
        assert_eq!(
            pair.connection(side).ended(),
            Some(CloseReason::Finished),
            "{about}"
        );
        pair.assert_whole(side, bytes);
    }
}

/// With options gone the stream may also end with a reset or a timeout, told to both applications; it must not stand still.
fn check_behind(case: &Case, middlebox: Middlebox) {
    let mut pair = run(case, Some(middlebox), EXHAUSTED);
    if std::env::var_os("POLYPATH_LOG").is_some() {
        pair.print_log(60);
    }
    for (side, bytes) in [(Side::Server, case.up), (Side::Client, case.down)] {
        let picture = state(pair.connection(side));
        let other = state(pair.connection(side.other()));
        let about = format!("{side:?} at {}: {picture}\nother side: {other}", pair.now);
        let ended = pair.connection(side).ended();
        // A side with nothing to send learns nothing when the other's reset was lost (half-open, RFC 9293 section 3.5.1).
        let broken =
            |ended: Option<CloseReason>| ended != Some(CloseReason::Finished) && ended.is_some();
        let half_open = pair.connection(side).send_queue() == (0, 0)
            && broken(pair.connection(side.other()).ended());
        assert!(ended.is_some() || half_open, "{about}");
        // Its fallback in mid-stream takes a repetition at connection level for new data.
        let host = if side == Side::Client {
            &case.client
        } else {
            &case.server
        };
        if host.profile == Profile::Linux {
            continue;
        }
        if ended == Some(CloseReason::Finished) {
            pair.assert_whole(side, bytes);
        }
        assert!(pair.end(side).read <= bytes, "{about}");
        assert_eq!(
            pair.counter(side, polypath_transport::Mib::PayloadMismatch),
            0,
            "{about}"
        );
    }
}

fn cases() -> u32 {
    std::env::var("POLYPATH_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(8684),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::with_cases(cases())
    })]

    #[test]
    fn every_byte_arrives_and_both_ends_finish(case in case()) {
        check(&case);
    }

    #[test]
    fn no_middlebox_makes_the_stream_stand_still(case in case(), middlebox in middlebox()) {
        check_behind(&case, middlebox);
    }
}
