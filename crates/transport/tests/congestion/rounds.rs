//! Round by round, as tables.

use std::fmt::Write;

use polypath_transport::MILLISECOND as MS;
use polypath_transport::path::{CaState, Member};
use serde_json::{Map, Value};

use crate::lab::{Lab, parameters, variants};

fn one_path(name: &str, parameters: &Map<String, Value>) -> String {
    let mut lab = Lab::new(name, parameters, &[50 * MS]);
    let mut table = format!("{name}\nround  cwnd  ssthresh\n");
    let mut lost = false;
    for round in 1..=60 {
        let start = lab.now;
        lab.round(0, start, true);
        let mut note = "";
        if !lost && lab.paths[0].cwnd >= 64 {
            lab.lose(0, CaState::Recovery);
            lost = true;
            note = "  loss";
        } else if round == 40 {
            lab.lose(0, CaState::Loss);
            note = "  timeout";
        }
        if round <= 8 || round % 5 == 0 || !note.is_empty() || (40..48).contains(&round) {
            let (cwnd, threshold) = (lab.paths[0].cwnd, lab.threshold(0));
            writeln!(table, "{round:>5}  {cwnd:>4}  {threshold:>8}{note}").expect("a string");
        }
    }
    table
}

fn two_paths(name: &str, parameters: &Map<String, Value>) -> String {
    let mut lab = Lab::new(name, parameters, &[20 * MS, 80 * MS]);
    for path in &mut lab.paths {
        (path.cwnd, path.ssthresh) = (20, 20);
    }
    let mut table = format!("{name}\ntime_ms  cwnd of 20 ms  cwnd of 80 ms\n");
    let begin = lab.now;
    for slow in 0..60u64 {
        let start = begin + slow * 80 * MS;
        for fast in 0..4 {
            lab.round(0, start + fast * 20 * MS, true);
        }
        lab.round(1, start, true);
        let mut note = String::new();
        for (me, period) in [(0, 15), (1, 20)] {
            if slow % period == period - 1 {
                lab.lose(me, CaState::Recovery);
                write!(note, "  loss on {me}").expect("a string");
            }
        }
        if slow % 5 == 4 || !note.is_empty() {
            let (fast, slow_window) = (lab.paths[0].cwnd, lab.paths[1].cwnd);
            writeln!(
                table,
                "{:>7}  {fast:>13}  {slow_window:>13}{note}",
                (slow + 1) * 80
            )
            .expect("a string");
        }
    }
    table
}

fn tables(scenario: fn(&str, &Map<String, Value>) -> String) -> String {
    variants()
        .iter()
        .map(|(name, parameters)| scenario(name, parameters))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn one_path_round_by_round() {
    insta::assert_snapshot!(tables(one_path));
}

#[test]
fn two_paths_round_by_round() {
    insta::assert_snapshot!(tables(two_paths));
}

/// Linux's Vegas and wVegas grow whoever limits the sender, and so do these.
const GROW_WHEN_IDLE: [&str; 2] = ["vegas", "wvegas"];

#[test]
fn an_idle_path_does_not_grow() {
    for (name, parameters) in variants() {
        for threshold in [5, u32::MAX] {
            let mut lab = Lab::new(&name, &parameters, &[50 * MS, 50 * MS]);
            lab.paths[0].ssthresh = threshold;
            for round in 0..10 {
                lab.round(0, 1_000 * MS + round * 50 * MS, false);
            }
            let grown = GROW_WHEN_IDLE.contains(&name.as_str());
            assert_eq!(lab.paths[0].cwnd > 10, grown, "{name}");
        }
    }
}

/// Packets that a round trip adds to two equal windows together. RFC 6356 section 3: half a packet, since a loss costs only one of the
/// windows; EWTCP gives the same by another way, a full one where the increase alone is shared.
#[test]
fn coupled_controllers_share_one_increase_on_equal_paths() {
    let growth = |name: &str, parameters: &Map<String, Value>, paths: usize| {
        let mut lab = Lab::new(name, parameters, &vec![50 * MS; paths]);
        for path in &mut lab.paths {
            (path.cwnd, path.ssthresh) = (40 / paths as u32, 2);
        }
        for round in 0..100 {
            for me in 0..paths {
                lab.round(me, 1_000 * MS + round * 50 * MS, true);
            }
        }
        lab.paths.iter().map(|path| path.cwnd).sum::<u32>() - 40
    };
    let none = Map::new();
    assert_eq!(growth("reno", &none, 1), 100);
    assert!(growth("reno", &none, 2) >= 198);
    for name in ["lia", "olia", "balia", "ewtcp"] {
        let both = growth(name, &none, 2);
        assert!((45..=55).contains(&both), "{name}: {both}");
    }
    for name in ["semicoupled", "coupled"] {
        let both = growth(name, &none, 2);
        assert!((95..=105).contains(&both), "{name}: {both}");
    }
    let both = growth("ewtcp", &parameters("a", "1/sqrt(n)"), 2);
    assert!((135..=146).contains(&both), "ewtcp: {both}");
}

/// RFC 5681 section 3.1, RFC 9438 section 4.6, Kelly 2003: what a loss leaves, and the floor of two packets.
#[test]
fn a_loss_leaves_the_factor_of_each_controller() {
    for (name, parameters) in variants() {
        let factor = match name.split(' ').next() {
            Some("cubic") => 0.7,
            Some("scalable") => 0.875,
            _ => 0.5,
        };
        let mut lab = Lab::new(&name, &parameters, &[50 * MS]);
        lab.paths[0].cwnd = 100;
        let threshold = lab.controllers[0].ssthresh(&mut Member::new(&mut lab.paths, 0));
        assert!(
            (f64::from(threshold) - 100.0 * factor).abs() <= 1.0,
            "{name}: {threshold}"
        );
        lab.paths[0].cwnd = 1;
        assert_eq!(
            lab.controllers[0].ssthresh(&mut Member::new(&mut lab.paths, 0)),
            2,
            "{name}"
        );
    }
}

#[test]
fn cubic_reduces_a_window_of_millions_as_any_other() {
    let mut lab = Lab::new("cubic", &Map::new(), &[20 * MS]);
    for (window, last_max) in [(10_240_000, 10_240_000.0), (7_168_000, 6_093_500.0)] {
        lab.paths[0].cwnd = window;
        lab.lose(0, CaState::Recovery);
        assert_eq!(lab.paths[0].cwnd, window / 1024 * 717);
        let variables = lab.controllers[0].observe();
        assert_eq!(variables[0], ("last_max_packets", last_max));
    }
}

/// With several paths: OLIA's and BALIA's drafts leave one packet; so does BALIA's kernel file, but OLIA's leaves two.
#[test]
fn the_floor_of_a_loss_with_several_paths() {
    for (name, parameters) in variants() {
        let mut lab = Lab::new(&name, &parameters, &[50 * MS, 50 * MS]);
        lab.paths[0].cwnd = 1;
        let floor = match name.as_str() {
            "olia (draft)" | "balia (draft)" | "balia (mptcp.org)" | "coupled" => 1,
            _ => 2,
        };
        let threshold = lab.controllers[0].ssthresh(&mut Member::new(&mut lab.paths, 0));
        assert_eq!(threshold, floor, "{name}");
    }
}

/// Packets that two windows of ten gain by `acknowledgements` on each path, of so many packets each.
fn gained(name: &str, variant: &str, acknowledgements: u32, packets: u32) -> u32 {
    let mut lab = Lab::new(name, &parameters("variant", variant), &[50 * MS, 50 * MS]);
    for path in &mut lab.paths {
        (path.cwnd, path.ssthresh) = (10, 5);
    }
    for _ in 0..acknowledgements {
        for me in 0..2 {
            lab.delayed_ack(me, packets);
        }
    }
    lab.paths.iter().map(|path| path.cwnd).sum::<u32>() - 20
}

/// The specifications' increase is for each packet acknowledged, that of the kernel's files for each acknowledgement: about half as much
/// where every other packet is acknowledged.
#[test]
fn the_kernels_files_take_a_step_an_acknowledgement() {
    for (name, specification) in [("lia", "rfc"), ("olia", "draft"), ("balia", "draft")] {
        let (delayed, immediate) = (
            gained(name, specification, 1_200, 2),
            gained(name, specification, 2_400, 1),
        );
        assert!(
            delayed.abs_diff(immediate) <= 1,
            "{name}: {delayed}, {immediate}"
        );
        let delayed = gained(name, "mptcp.org", 1_200, 2);
        assert_eq!(delayed, gained(name, "mptcp.org", 1_200, 1), "{name}");
        let immediate = gained(name, "mptcp.org", 2_400, 1);
        assert!(
            4 * delayed < 3 * immediate,
            "{name}: {delayed}, {immediate}"
        );
    }
}

/// The only subflow of a Multipath TCP connection counts ACKs, too; TCP with these controllers is Reno, which counts packets.
#[test]
fn the_kernels_files_leave_tcp_to_reno() {
    for name in ["lia", "olia", "balia"] {
        let growth = |multipath: bool| {
            let mut lab = Lab::new(name, &parameters("variant", "mptcp.org"), &[50 * MS]);
            (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (20, 5);
            lab.paths[0].multipath = multipath;
            for _ in 0..400 {
                lab.delayed_ack(0, 2);
            }
            lab.paths[0].cwnd - 20
        };
        let (tcp, subflow) = (growth(false), growth(true));
        assert_eq!(tcp, 25, "{name}");
        assert!((12..=15).contains(&subflow), "{name}: {subflow}");
    }
}

/// The kernel's LIA has one alpha for the connection: the growth of another path's window changes it at once.
#[test]
fn lias_kernel_has_one_alpha() {
    let mut lab = Lab::new(
        "lia",
        &parameters("variant", "mptcp.org"),
        &[50 * MS, 50 * MS],
    );
    for path in &mut lab.paths {
        (path.cwnd, path.ssthresh) = (10, 5);
    }
    lab.round_of(0, 1);
    let before = lab.paths[0].coupled;
    lab.round_of(1, 400);
    assert!(lab.paths[1].cwnd > 10);
    assert_ne!(lab.paths[0].coupled, before);
    assert_eq!(lab.paths[0].coupled, lab.paths[1].coupled);
}

/// Draft section 3: the largest window shrinks while another path is the best, but not below the threshold of its last loss, where slow
/// start takes it back with the next acknowledgement.
#[test]
fn olia_takes_what_the_largest_window_gained() {
    let left = |variant: &str, threshold: u32| {
        let chosen = parameters("variant", variant);
        let mut lab = Lab::new("olia", &chosen, &[50 * MS, 50 * MS]);
        lab.round_of(0, 1_000);
        (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (30, 30);
        (lab.paths[1].cwnd, lab.paths[1].ssthresh) = (40, threshold);
        lab.round_of(1, 900);
        lab.paths[1].cwnd
    };
    // 40/(30 + 40)^2 - 1/(2 * 40) a packet, 900 times, while the window is about 40.
    assert_eq!(left("draft", 20), 36);
    // The kernel's steps are whole 1,024ths.
    assert_eq!(left("mptcp.org", 20), 37);
    for variant in ["draft", "mptcp.org"] {
        assert_eq!(left(variant, 40), 40, "{variant}");
    }
}

/// Draft section 3: a loss takes `w/2 * min(alpha, 1.5)` with alpha = 1.2 here, and 1.5 of a path far below the best. The kernel's alpha is
/// the whole number below it.
#[test]
fn balia_cuts_the_slower_path_deeper() {
    let left = |variant: &str, best: u32| {
        let chosen = parameters("variant", variant);
        let mut lab = Lab::new("balia", &chosen, &[50 * MS, 50 * MS]);
        (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (100, 200);
        lab.paths[1].cwnd = best;
        // An ACK in slow start has the kernel's variant compute its decrease; one packet more.
        lab.round_of(0, 1);
        lab.controllers[0].ssthresh(&mut Member::new(&mut lab.paths, 0))
    };
    assert_eq!(left("draft", 121), 101 - 61);
    assert_eq!(left("mptcp.org", 121), 101 - 50);
    assert_eq!(left("draft", 400), 101 - 76);
    assert_eq!(left("mptcp.org", 400), 101 - 75);
}

/// Kelly 2003: the time to double does not depend on the window (1/a = 100 packets acknowledged a packet), and a window of up to 16 is Reno's.
#[test]
fn scalable_grows_in_proportion() {
    let growth = |variant: &str, window: u32| {
        let mut lab = Lab::new("scalable", &parameters("variant", variant), &[50 * MS]);
        (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (window, 2);
        for round in 0..10 {
            lab.round(0, 1_000 * MS + round * 50 * MS, true);
        }
        lab.paths[0].cwnd - window
    };
    assert!((100..=106).contains(&growth("paper", 1000)));
    assert!((1000..=1060).contains(&growth("paper", 10_000)));
    assert_eq!(growth("paper", 5), 10);
    assert_eq!(growth("paper", 50), 5);
    assert_eq!(growth("linux", 50), 10);
}

/// As after a SYN that was repeated, without timestamps.
#[test]
fn a_window_grows_that_had_an_acknowledgement_before_a_round_trip_time() {
    for (name, parameters) in variants() {
        let mut lab = Lab::new(&name, &parameters, &[20 * MS]);
        (lab.paths[0].cwnd, lab.paths[0].ssthresh, lab.paths[0].srtt) = (10, 10, 0);
        lab.delayed_ack(0, 1);
        lab.paths[0].srtt = 20 * MS;
        for _ in 0..20 {
            let start = lab.now;
            lab.round(0, start, true);
        }
        let window = lab.paths[0].cwnd;
        // Illinois adds up to ten packets a round trip.
        let most = if name == "illinois" { 210 } else { 99 };
        assert!((12..=most).contains(&window), "{name}: {window}");
    }
}
