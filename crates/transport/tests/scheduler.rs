//! Schedulers alone: the choice of each, segment by segment, while nothing is acknowledged.

use std::fmt::Write;

use polypath_transport::path::{CaState, INFINITE_SSTHRESH, Path};
use polypath_transport::scheduler::{
    Blocked, Carried, Decision, Head, Next, PacketKind, PathSet, REGISTRY, Rescue, Scheduler, View,
};
use serde_json::{Map, Value, json};

const MS: u64 = 1_000_000;
const MSS: u32 = 1000;
const LETTERS: &[u8] = b"abcdef";

fn path(rtt: u64, cwnd: u32) -> Path {
    Path {
        established: true,
        srtt: rtt * MS,
        rttvar: rtt * MS / 8,
        min_rtt: rtt * MS,
        ssthresh: cwnd,
        ..Path::new(MSS, cwnd)
    }
}

fn make(name: &str, parameters: Value) -> Box<dyn Scheduler> {
    let Value::Object(parameters) = parameters else {
        panic!("{parameters} is no table")
    };
    REGISTRY.make(name, &parameters).expect("a known scheduler")
}

/// A sender with a fixed amount of data whose peer never answers.
struct Sender {
    paths: Vec<Path>,
    unsent: u64,
    window: u64,
    sent: u64,
}

impl Sender {
    fn new(paths: Vec<Path>, unsent: u64, window: u64) -> Self {
        Self {
            paths,
            unsent,
            window,
            sent: 0,
        }
    }

    fn view(&self) -> View<'_> {
        let len = self.unsent.min(self.window);
        View {
            now: MS,
            paths: &self.paths,
            kind: PacketKind::Data,
            next: (len > 0).then_some(Next {
                offset: self.sent,
                len,
                carried: PathSet::default(),
                reinjection: false,
            }),
            head: None,
            una: 0,
            sent: self.sent,
            unsent: self.unsent,
            window: self.window,
        }
    }

    /// The letters of the paths chosen until the scheduler waits or `most` segments are given out; a repetition is in capitals.
    fn run(&mut self, scheduler: &mut dyn Scheduler, most: usize) -> String {
        let mut choices = String::new();
        while choices.len() < most {
            let (index, new, offset) = match scheduler.select(&self.view()) {
                Decision::Wait => break,
                Decision::Send(index) => (index, true, self.sent),
                Decision::Repeat { path, offset } => (path, false, offset),
            };
            let bytes = if new {
                self.unsent.min(u64::from(MSS))
            } else {
                u64::from(MSS)
            };
            let path = &mut self.paths[index];
            if path.in_flight < path.cwnd {
                path.in_flight += 1;
            } else {
                path.queued += bytes;
            }
            if new {
                self.sent += bytes;
                self.unsent -= bytes;
                self.window -= bytes;
            }
            scheduler.carried(Carried {
                path: index,
                offset,
                bytes: bytes as u32,
                new,
            });
            let letter = char::from(LETTERS[index]);
            choices.push(if new {
                letter
            } else {
                letter.to_ascii_uppercase()
            });
        }
        choices
    }
}

fn backup(mut path: Path) -> Path {
    path.backup = true;
    path
}

fn failed(mut path: Path) -> Path {
    path.potentially_failed = true;
    path
}

/// Situations: name, paths, bytes to send, peer's window.
fn situations() -> Vec<(&'static str, Sender)> {
    vec![
        (
            "equal paths",
            Sender::new(vec![path(40, 6), path(40, 6)], 100_000, 100_000),
        ),
        (
            "a 10 ms, b 100 ms",
            Sender::new(vec![path(10, 6), path(100, 6)], 100_000, 100_000),
        ),
        (
            "a 10 ms, b 100 ms, 6 kB left",
            Sender::new(vec![path(10, 6), path(100, 6)], 6_000, 100_000),
        ),
        (
            "a 10 ms, b 100 ms, window 20 kB",
            Sender::new(vec![path(10, 6), path(100, 6)], 100_000, 20_000),
        ),
        (
            "three paths 10, 20, 30 ms",
            Sender::new(
                vec![path(30, 4), path(10, 4), path(20, 4)],
                100_000,
                100_000,
            ),
        ),
        (
            "b is a backup",
            Sender::new(vec![path(40, 4), backup(path(10, 4))], 100_000, 100_000),
        ),
        (
            "a failed, b is a backup",
            Sender::new(
                vec![failed(path(10, 4)), backup(path(40, 4))],
                100_000,
                100_000,
            ),
        ),
    ]
}

#[test]
fn choices_in_fixed_situations() {
    let mut table = String::new();
    for (name, _) in situations() {
        writeln!(table, "{name}").unwrap();
        for scheduler_name in REGISTRY.names() {
            let (_, mut sender) = situations()
                .into_iter()
                .find(|(other, _)| *other == name)
                .unwrap();
            let mut scheduler = REGISTRY.make(scheduler_name, &Map::new()).unwrap();
            let choices = sender.run(scheduler.as_mut(), 16);
            writeln!(table, "  {scheduler_name:20}{choices}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

fn share(choices: &str, letter: char) -> f64 {
    choices.chars().filter(|&other| other == letter).count() as f64 / choices.len() as f64
}

#[test]
fn daps_gives_a_path_without_a_sample_one_round() {
    let paths = vec![path(1, 2), path(0, 2)];
    let choices = Sender::new(paths, 100_000, 100_000).run(make("daps", json!({})).as_mut(), 4);
    assert_eq!(choices, "bbaa");
}

#[test]
fn blest_waits_for_no_path_while_none_has_a_sample() {
    for variant in ["paper", "mptcp.org"] {
        let paths = vec![path(0, 2), path(0, 2)];
        let scheduler = &mut make("blest", json!({"variant": variant}));
        let choices = Sender::new(paths, 100_000, 100_000).run(scheduler.as_mut(), 4);
        assert_eq!(choices, "aabb", "{variant}");
    }
}

#[test]
fn kbest_leaves_the_slowest_alone() {
    for (k, used) in [(1, "a"), (2, "ab"), (3, "abc")] {
        let paths = vec![path(10, 50), path(20, 50), path(30, 50), path(40, 50)];
        let choices =
            Sender::new(paths, 100_000, 100_000).run(make("kbest", json!({"k": k})).as_mut(), 48);
        for letter in "abcd".chars() {
            let expected = if used.contains(letter) {
                1.0 / used.len() as f64
            } else {
                0.0
            };
            assert!(
                (share(&choices, letter) - expected).abs() < 1e-9,
                "k = {k}: {choices}"
            );
        }
    }
}

#[test]
fn balanced_keeps_every_path_within_its_cap() {
    // To a segment.
    for (cap, epsilon, most) in [
        ("half", 0.0, 0.5),
        ("half", 0.1, 0.6),
        ("equal", 0.0, 1.0 / 3.0),
    ] {
        let paths = vec![path(10, 4000), path(50, 4000), path(60, 4000)];
        let mut scheduler = make("balanced", json!({"cap": cap, "epsilon": epsilon}));
        let choices = Sender::new(paths, 3_000_000, 3_000_000).run(scheduler.as_mut(), 900);
        assert_eq!(choices.len(), 900, "it never waits while a path has room");
        let carried = share(&choices, 'a');
        assert!(
            carried <= most + 1.5 / 900.0 && carried > most - 0.01,
            "{cap} {epsilon}: {carried}"
        );
    }
}

#[test]
fn balanced_waits_rather_than_break_its_cap() {
    let paths = vec![path(10, 100), path(50, 5)];
    let choices =
        Sender::new(paths, 900_000, 900_000).run(make("balanced", json!({})).as_mut(), 200);
    assert!(choices.len() < 15, "{choices}");
}

#[test]
fn equal_goes_at_the_pace_of_the_slowest() {
    let paths = vec![path(10, 100), path(50, 5)];
    let choices = Sender::new(paths, 900_000, 900_000).run(make("equal", json!({})).as_mut(), 200);
    // Level with b after five each, a takes one more and waits.
    assert_eq!(choices, "abababababa");
}

#[test]
fn weights_are_kept() {
    let mut scheduler = make("weighted-roundrobin", json!({"weights": [3, 1]}));
    let paths = vec![path(10, 100), path(50, 100), path(50, 100)];
    assert_eq!(
        Sender::new(paths, 900_000, 900_000).run(scheduler.as_mut(), 15),
        "aaabcaaabcaaabc"
    );
}

/// mptcp.org mptcp_ecf.c takes half of the kernel's `rttvar_us`, which is 200 ms at least unless the minimum timeout is less.
#[test]
fn the_kernels_ecf_has_the_timeouts_deviation() {
    let run = |variant: &str, margin: u64| {
        let mut slow = path(60, 6);
        slow.timeout_margin = margin;
        let mut fast = path(10, 6);
        fast.timeout_margin = margin;
        let mut sender = Sender::new(vec![fast, slow], 8_000, 100_000);
        sender.run(make("ecf", json!({"variant": variant})).as_mut(), 16)
    };
    assert_eq!(run("mptcp.org", 0), "aaaaaabb");
    assert_eq!(run("mptcp.org", 200 * MS), "aaaaaabb");
    assert_eq!(run("mptcp.org", 20 * MS), "aaaaaa");
}

/// RFC 8684 section 3.3.8.
#[test]
fn no_turn_is_a_backups_while_another_path_is_usable() {
    for name in ["roundrobin", "weighted-roundrobin"] {
        let choices = |a: Path| {
            let mut sender = Sender::new(vec![a, backup(path(10, 4))], 100_000, 100_000);
            sender.run(&mut *make(name, json!({"cwnd_limited": true})), 16)
        };
        assert_eq!(choices(path(40, 4)), "aaaa", "{name}");
        assert_eq!(choices(failed(path(40, 4))), "bbbb", "{name}");
    }
}

#[test]
fn round_robin_repeats_on_a_backup_only_where_no_other_path_is_usable() {
    let choice = |a: Path| {
        let sender = Sender::new(vec![a, backup(path(10, 4))], 1_000, 1_000);
        let mut view = sender.view();
        let next = view.next.as_mut().expect("something to send");
        next.reinjection = true;
        next.carried.insert(0);
        make("roundrobin", json!({})).select(&view)
    };
    assert_eq!(choice(path(40, 4)), Decision::Send(0));
    assert_eq!(choice(failed(path(40, 4))), Decision::Send(1));
}

#[test]
fn ecf_waits_only_where_the_fast_path_is_done_sooner() {
    let full = || {
        let mut fast = path(10, 10);
        fast.in_flight = 10;
        fast
    };
    for (unsent, choices) in [(5_000, ""), (2_000_000, "bbbb")] {
        for variant in ["paper", "mptcp.org"] {
            let mut sender = Sender::new(vec![full(), path(100, 4)], unsent, 3_000_000);
            let chosen = sender.run(make("ecf", json!({"variant": variant})).as_mut(), 4);
            assert_eq!(chosen, choices, "{variant}, {unsent} bytes");
        }
    }
}

#[test]
fn blest_skips_the_slow_path_only_where_it_would_block_the_window() {
    for variant in ["paper", "mptcp.org"] {
        for (window, waits) in [(40_000, true), (4_000_000, false)] {
            let mut fast = path(10, 10);
            fast.in_flight = 10;
            let mut sender = Sender::new(vec![fast, path(100, 4)], 8_000_000, window);
            let choices = sender.run(make("blest", json!({"variant": variant})).as_mut(), 4);
            assert_eq!(
                choices.is_empty(),
                waits,
                "{variant}, window {window}: {choices}"
            );
        }
    }
}

/// `tp->snd_ssthresh == TCP_INFINITE_SSTHRESH` in `blestsched_estimate_bytes`.
#[test]
fn the_kernels_blest_takes_slow_start_for_over_after_the_first_loss() {
    for (ssthresh, choices) in [(20, "bbbb"), (INFINITE_SSTHRESH, "")] {
        let mut fast = path(10, 10);
        (fast.in_flight, fast.ssthresh) = (10, ssthresh);
        let mut sender = Sender::new(vec![fast, path(100, 4)], 8_000_000, 4_000_000);
        let blest = &mut make("blest", json!({"variant": "mptcp.org"}));
        assert_eq!(sender.run(blest.as_mut(), 4), choices, "{ssthresh}");
    }
}

/// 176 segments are expected of the fast path: times 1.2 they do not fit, times 1 they do.
/// The module's parameter `lambda`, 12 tenths unless given.
#[test]
fn blest_begins_with_the_factor_that_is_given() {
    let run = |parameters| {
        let mut fast = path(10, 6);
        fast.in_flight = 6;
        // 132 packets would leave on the fast path meanwhile, times the factor.
        let mut sender = Sender::new(vec![fast, path(100, 4)], 2_000_000, 150_000);
        sender.run(make("blest", parameters).as_mut(), 1)
    };
    assert_eq!(run(json!({"variant": "mptcp.org"})), "");
    assert_eq!(run(json!({"variant": "mptcp.org", "lambda": 1.0})), "b");
}

#[test]
fn the_kernels_blest_corrects_its_factor_only_where_it_is_used() {
    let blest = &mut make("blest", json!({"variant": "mptcp.org"}));
    let mut sender = Sender::new(vec![path(10, 10), path(100, 4)], 8_000_000, 200_000);
    for round in 1..=50 {
        let view = View {
            now: round * 10 * MS,
            ..sender.view()
        };
        assert_eq!(blest.select(&view), Decision::Send(0));
    }
    sender.paths[0].in_flight = 10;
    for (now, decision) in [
        (500, Decision::Wait),
        (550, Decision::Wait),
        (2_500, Decision::Wait),
    ] {
        let view = View {
            now: now * MS,
            ..sender.view()
        };
        assert_eq!(blest.select(&view), decision);
    }
    // Once for each 100 ms: 1.18 after the third time; 1.12 fits.
    let decisions = (26..=40).map(|now| {
        let view = View {
            now: now * 100 * MS,
            ..sender.view()
        };
        blest.select(&view)
    });
    let waits = decisions
        .take_while(|decision| *decision == Decision::Wait)
        .count();
    assert_eq!(waits, 4);
}

/// What is done where the slow path's segment holds the window shut.
fn rescued(name: &str, parameters: Value) -> Rescue {
    let sender = Sender::new(vec![path(10, 10), path(100, 10)], 5_000, 0);
    let mut carried = PathSet::default();
    carried.insert(1);
    let view = View {
        head: Some(Head {
            offset: 0,
            carried,
            holder: 1,
        }),
        ..sender.view()
    };
    let mut rescuer = make(name, parameters).rescuer();
    rescuer.rescue(&view, Blocked::ReceiveWindow)
}

fn both(yes: bool) -> Rescue {
    Rescue {
        repeat_head_on: yes.then_some(0),
        penalise: yes.then_some(1),
    }
}

/// mptcp.org's default scheduler and its modules for BLEST and ECF repeat the segment and penalise (v0.95: mptcp_blest.c has a copy of the
/// code, mptcp_ecf.c calls the default's); the published rules of BLEST and ECF do neither, nor does any other scheduler unless asked to.
#[test]
fn the_default_and_the_kernels_blest_and_ecf_rescue_a_blocked_connection() {
    for name in ["blest", "ecf"] {
        for (variant, yes) in [("paper", false), ("mptcp.org", true)] {
            let parameters = json!({"variant": variant});
            assert_eq!(rescued(name, parameters), both(yes), "{name}, {variant}");
        }
    }
    for entry in REGISTRY.describe() {
        let yes = entry.name == "default";
        assert_eq!(rescued(entry.name, json!({})), both(yes), "{}", entry.name);
    }
}

#[test]
fn any_scheduler_rescues_as_its_parameters_say() {
    for entry in REGISTRY.describe() {
        for (repeats, penalises) in [(true, true), (true, false), (false, true), (false, false)] {
            let parameters =
                json!({"opportunistic_retransmission": repeats, "penalisation": penalises});
            let expected = Rescue {
                repeat_head_on: repeats.then_some(0),
                penalise: penalises.then_some(1),
            };
            assert_eq!(rescued(entry.name, parameters), expected, "{}", entry.name);
        }
    }
}

#[test]
fn otias_queues_on_a_full_path_that_is_fast_enough() {
    let paths = vec![path(10, 4), path(100, 4)];
    let choices = Sender::new(paths, 900_000, 900_000).run(make("otias", json!({})).as_mut(), 30);
    // Nine further windows on a take 90 ms, the 100 ms of b minus half a round trip each: 4 windows and the one in flight.
    assert_eq!(choices.find('b'), Some(20), "{choices}");
}

#[test]
fn otias_queues_nothing_on_a_path_that_is_not_measured_yet() {
    let paths = vec![path(0, 2), path(100, 4)];
    let choices = Sender::new(paths, 900_000, 900_000).run(make("otias", json!({})).as_mut(), 10);
    assert_eq!(choices, format!("aa{}", "b".repeat(8)));
    let alone = Sender::new(vec![path(0, 2)], 900_000, 900_000);
    assert_eq!({ alone }.run(make("otias", json!({})).as_mut(), 4), "aaaa");
}

#[test]
fn daps_numbers_segments_in_the_order_of_their_arrival() {
    // Within the 100 ms of b, a sends ten windows; five of them arrive before b's first does.
    let paths = vec![path(10, 2), path(100, 4)];
    let choices = Sender::new(paths, 900_000, 900_000).run(make("daps", json!({})).as_mut(), 60);
    assert_eq!(choices, format!("{}bbbb{}", "a".repeat(10), "a".repeat(10)));
}

#[test]
fn sttf_waits_for_the_path_that_delivers_sooner() {
    let paths = vec![path(10, 4), path(100, 4)];
    let mut sender = Sender::new(paths, 900_000, 900_000);
    assert_eq!(sender.run(make("sttf", json!({})).as_mut(), 30), "aaaa");
    sender.paths[0].in_flight = 100;
    assert!(
        sender
            .run(make("sttf", json!({})).as_mut(), 4)
            .starts_with('b')
    );
}

/// The time between penalties is that of the path that is free (mptcp.org `mptcp_rcv_buf_optimization`: `last_rbuf_opti` of its socket).
#[test]
fn each_free_path_penalises_once_a_round_trip_of_its_own() {
    let parameters = json!({"opportunistic_retransmission": false, "penalisation": true});
    let mut rescuer = make("default", parameters).rescuer();
    let mut penalises = |fast_is_full: bool, now: u64| {
        let mut fast = path(10, 10);
        fast.in_flight = if fast_is_full { 10 } else { 0 };
        let sender = Sender::new(vec![fast, path(20, 10), path(100, 10)], 5_000, 0);
        let mut carried = PathSet::default();
        carried.insert(2);
        let view = View {
            now,
            head: Some(Head {
                offset: 0,
                carried,
                holder: 2,
            }),
            ..sender.view()
        };
        rescuer.rescue(&view, Blocked::ReceiveWindow).penalise == Some(2)
    };
    assert!(penalises(false, 100 * MS));
    assert!(!penalises(false, 101 * MS));
    assert!(penalises(true, 101 * MS));
    assert!(!penalises(true, 120 * MS));
    assert!(penalises(false, 110 * MS));
    assert!(penalises(true, 121 * MS));
}

/// The choice where the fast path has room and only its pacer holds it back; `quic`: each path is paced whatever controls its window.
fn beside_a_pacer(name: &str, asked: Option<bool>, kind: PacketKind, quic: bool) -> Decision {
    let mut parameters = Map::new();
    if let Some(asked) = asked {
        parameters.insert("waits_for_pacer".into(), asked.into());
    }
    let mut scheduler = make(name, Value::Object(parameters));
    let mut sender = Sender::new(vec![path(40, 10), path(80, 10)], 10_000, 1_000_000);
    for path in &mut sender.paths {
        path.paces = quic;
    }
    sender.paths[0].paced = true;
    let view = View {
        kind,
        ..sender.view()
    };
    scheduler.begin();
    scheduler.select(&view)
}

/// RFC 10069 section 5.5: a scheduler chooses among paths whose window is open.
#[test]
fn who_prefers_a_path_waits_for_its_pacer() {
    let data = PacketKind::Data;
    for name in ["default", "blest", "ecf", "balanced"] {
        for (asked, quic, waits) in [
            (None, true, true),
            (None, false, false),
            (Some(true), false, true),
            (Some(false), true, false),
        ] {
            let expected = if waits {
                Decision::Wait
            } else {
                Decision::Send(1)
            };
            let found = beside_a_pacer(name, asked, data, quic);
            assert_eq!(found, expected, "{name}, {asked:?}, {quic}");
        }
    }
    for name in ["roundrobin", "kbest"] {
        assert_eq!(beside_a_pacer(name, None, data, true), Decision::Send(1));
        let found = beside_a_pacer(name, Some(true), data, true);
        assert_eq!(found, Decision::Wait, "{name}");
    }
}

/// RFC 9002 section 7.7: acknowledgements alone are not paced.
#[test]
fn what_holds_no_data_waits_for_no_pacer() {
    for kind in [PacketKind::Acknowledgement, PacketKind::Control] {
        assert_eq!(
            beside_a_pacer("default", None, kind, true),
            Decision::Send(0)
        );
    }
}

/// The window still counts: what is full is not waited for.
#[test]
fn a_full_path_is_not_waited_for_whatever_its_pacer_says() {
    let mut sender = Sender::new(vec![path(40, 10), path(80, 10)], 10_000, 1_000_000);
    sender.paths[0].in_flight = 10;
    sender.paths[0].paced = true;
    let mut scheduler = make("default", json!({"waits_for_pacer": true}));
    assert_eq!(scheduler.select(&sender.view()), Decision::Send(1));
}

/// What is more than the preferred windows admit does not wait for their pacers: a bulk transfer uses every path.
#[test]
fn no_more_waits_for_pacers_than_the_preferred_windows_admit() {
    for name in ["default", "blest", "ecf", "balanced"] {
        let decision = |paced: &[usize], unsent: u64| {
            let paths = vec![path(40, 10), path(80, 10), path(90, 10)];
            let mut sender = Sender::new(paths, unsent, 1_000_000);
            for path in &mut sender.paths {
                path.paces = true;
            }
            for &index in paced {
                sender.paths[index].paced = true;
            }
            let room = 10 * u64::from(sender.paths[0].mss);
            let mut scheduler = make(name, Value::Object(Map::new()));
            scheduler.begin();
            (scheduler.select(&sender.view()), room)
        };
        let (_, room) = decision(&[], 1);
        assert_eq!(decision(&[0], room).0, Decision::Wait, "{name}");
        assert_eq!(decision(&[0], 20 * room).0, Decision::Send(1), "{name}");
        assert_eq!(decision(&[0, 1], 2 * room).0, Decision::Wait, "{name}");
        assert_eq!(decision(&[0, 1], 20 * room).0, Decision::Send(2), "{name}");
        // A slower one is not waited for.
        assert_eq!(decision(&[1], room).0, Decision::Send(0), "{name}");
    }
}

/// In bytes: what the first and the second path carried of a hundred segments, nothing in flight but what is told.
fn shares(scheduler: &mut dyn Scheduler, paths: Vec<Path>) -> (usize, usize) {
    let choices = Sender::new(paths, 100_000, 100_000).run(scheduler, 100);
    let count = |letter| choices.chars().filter(|&other| other == letter).count();
    (count('a'), count('b'))
}

#[test]
fn the_smallest_delay_alone_carries_data() {
    let scheduler = &mut make("smallest-delay", json!({}));
    let found = shares(scheduler.as_mut(), vec![path(50, 6), path(20, 4)]);
    assert_eq!(found, (0, 4), "the window of the faster path, then nothing");
}

#[test]
fn load_is_balanced_by_bytes_and_waits_for_a_full_path() {
    let scheduler = &mut make("load-balancing", json!({"weights": [80, 20]}));
    let found = shares(scheduler.as_mut(), vec![path(50, 90), path(20, 90)]);
    assert_eq!(found, (80, 20));
    let scheduler = &mut make("load-balancing", json!({"weights": [80, 20]}));
    let found = shares(scheduler.as_mut(), vec![path(50, 90), path(20, 5)]);
    assert_eq!(found, (21, 5), "the smaller share's window is full");
}

#[test]
fn a_weight_of_nothing_is_for_when_the_others_are_gone() {
    let scheduler = &mut make("load-balancing", json!({"weights": [1, 0]}));
    let (one, other) = (path(50, 10), path(20, 10));
    let found = shares(scheduler.as_mut(), vec![one.clone(), other.clone()]);
    assert_eq!(found, (10, 0));
    let found = shares(scheduler.as_mut(), vec![failed(one), other]);
    assert_eq!(found, (0, 10));
}

/// 3GPP TS 23.501 clause 5.32.8: it may stop sending on an access that exceeds a threshold.
#[test]
fn shares_end_where_a_threshold_is_exceeded() {
    let balance = || {
        make(
            "load-balancing",
            json!({"weights": [50], "rtt_threshold_ms": 100.0}),
        )
    };
    let busy = |rtt| Path {
        in_flight: 1,
        ..path(rtt, 60)
    };
    assert_eq!(
        shares(balance().as_mut(), vec![busy(101), busy(20)]),
        (0, 59)
    );
    assert_eq!(
        shares(balance().as_mut(), vec![busy(100), busy(20)]),
        (50, 50)
    );
    let both = shares(balance().as_mut(), vec![busy(101), busy(150)]);
    assert_eq!(both, (50, 50), "the shares hold where both exceed it");
}

#[test]
fn a_path_without_packets_in_flight_exceeds_no_round_trip() {
    let scheduler = &mut make(
        "load-balancing",
        json!({"weights": [50], "rtt_threshold_ms": 100.0}),
    );
    let choices =
        Sender::new(vec![path(101, 60), path(20, 60)], 100_000, 100_000).run(scheduler.as_mut(), 4);
    assert_eq!(choices, "abbb", "one packet measures it again");
}

/// Every segment of one episode of recovery is one loss, OLIA's count.
#[test]
fn losses_are_counted_between_episodes() {
    let limits = |percent: f64| {
        make(
            "load-balancing",
            json!({"weights": [50], "loss_threshold_percent": percent}),
        )
    };
    let (mut strict, mut mild) = (limits(4.9), limits(5.1));
    let mut sender = Sender::new(vec![path(50, 60), path(50, 60)], 100_000, 100_000);
    let mut on_first = |sender: &Sender| {
        [&mut strict, &mut mild]
            .map(|scheduler| scheduler.select(&sender.view()) == Decision::Send(0))
    };
    assert_eq!(on_first(&sender), [true; 2]);
    sender.paths[0].acked = 20 * u64::from(MSS);
    sender.paths[0].state = CaState::Recovery;
    assert_eq!(on_first(&sender), [false, true], "the first after twenty");
    sender.paths[0].state = CaState::Loss;
    assert_eq!(on_first(&sender), [false; 2], "it recovers from a timeout");
    sender.paths[0].state = CaState::Recovery;
    assert_eq!(on_first(&sender), [false, true], "the same episode");
    sender.paths[0].state = CaState::Open;
    sender.paths[0].acked = 41 * u64::from(MSS);
    assert_eq!(on_first(&sender), [true; 2], "twenty-one without any");
}

#[test]
fn the_next_priority_is_for_when_the_first_is_full() {
    let scheduler = &mut make("priority", json!({}));
    let found = shares(scheduler.as_mut(), vec![path(50, 6), path(20, 4)]);
    assert_eq!(found, (6, 4));
    let scheduler = &mut make("priority", json!({"priorities": [2, 1]}));
    let choices =
        Sender::new(vec![path(20, 4), path(50, 6)], 100_000, 100_000).run(scheduler.as_mut(), 100);
    assert_eq!(choices, "bbbbbbaaaa");
    let scheduler = &mut make("priority", json!({"priorities": [1]}));
    let choices =
        Sender::new(vec![path(50, 3), path(20, 3)], 100_000, 100_000).run(scheduler.as_mut(), 100);
    assert_eq!(choices, "bbbaaa", "of one priority, the faster first");
}

#[test]
fn overflow_waits_until_data_has_waited() {
    let scheduler = &mut make("priority", json!({"wait_ms": 10.0}));
    let mut sender = Sender::new(vec![path(50, 2), path(20, 9)], 100_000, 100_000);
    assert_eq!(sender.run(scheduler.as_mut(), 100), "aa");
    let at = |sender: &Sender, ms: u64, scheduler: &mut Box<dyn Scheduler>| {
        scheduler.select(&View {
            now: ms * MS,
            ..sender.view()
        })
    };
    assert_eq!(
        at(&sender, 10, scheduler),
        Decision::Wait,
        "it waits since 1 ms"
    );
    assert_eq!(at(&sender, 11, scheduler), Decision::Send(1));
    sender.paths[0].in_flight = 1;
    assert_eq!(at(&sender, 12, scheduler), Decision::Send(0));
    // the last of what was written leaves: nothing waits any more
    sender.unsent = u64::from(MSS);
    assert_eq!(sender.run(scheduler.as_mut(), 100), "a");
    sender.unsent = 5 * u64::from(MSS);
    assert_eq!(at(&sender, 20, scheduler), Decision::Wait, "it waits anew");
    assert_eq!(at(&sender, 30, scheduler), Decision::Send(1));
}

#[test]
fn a_threshold_takes_the_first_priority_away() {
    let busy = |rtt| Path {
        in_flight: 1,
        ..path(rtt, 3)
    };
    let steer = || make("priority", json!({"rtt_threshold_ms": 100.0}));
    let run = |first: u64, second: u64| {
        Sender::new(vec![busy(first), busy(second)], 100_000, 100_000).run(steer().as_mut(), 100)
    };
    assert_eq!(run(100, 50), "aabb");
    assert_eq!(run(101, 50), "bbaa");
    assert_eq!(run(101, 101), "aabb");
}

#[test]
fn lost_data_may_take_the_priority_that_has_not_carried_it() {
    let scheduler = &mut make("priority", json!({"wait_ms": 1000.0}));
    let sender = Sender::new(vec![path(50, 2), path(20, 9)], 100_000, 100_000);
    let mut carried = PathSet::default();
    let mut again = |carried| {
        scheduler.select(&View {
            next: Some(Next {
                offset: 0,
                len: 1000,
                carried,
                reinjection: true,
            }),
            ..sender.view()
        })
    };
    carried.insert(0);
    assert_eq!(again(carried), Decision::Send(1));
    carried.insert(1);
    assert_eq!(again(carried), Decision::Send(0), "all have carried it");
}
