//! Paths that go dark, in one direction or both, under every choice of where acknowledgements go.

use polypath_transport::{AckPath, Config, MILLISECOND as MS, Nanos, SECOND};

use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath};

const ACK_PATHS: [AckPath; 3] = [AckPath::Same, AckPath::Fastest, AckPath::Scheduler];

/// Who is not heard on a path while it is dark.
const DIRECTIONS: [&[Side]; 3] = [
    &[Side::Client, Side::Server],
    &[Side::Client],
    &[Side::Server],
];

/// A client that asks for its acknowledgements to be placed this way, and two paths of 10 Mbps.
fn pair(ack_path: AckPath) -> Pair {
    let config = Config {
        ack_path,
        congestion: "cubic".into(),
        ..multipath()
    };
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&config, &config, links, 1);
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    pair
}

/// What these sides send on a path is lost, from the first to the second of two times from now on.
fn darken(pair: &mut Pair, dark: &[(usize, &'static [Side], [Nanos; 2])]) {
    let now = pair.now;
    let dark: Vec<_> = dark.to_vec();
    pair.fate = Box::new(move |side, link, at, _| {
        let lost = dark.iter().any(|(path, sides, [from, to])| {
            *path == link && sides.contains(&side) && (*from..*to).contains(&(at - now))
        });
        if lost { Fate::Drop } else { Fate::Pass }
    });
}

/// RFC 9000 section 13.2.4: a side that only receives learns all the same that the path of its acknowledgements is dead.
#[test]
fn a_path_that_carries_acknowledgements_may_die() {
    for ack_path in ACK_PATHS {
        for sides in DIRECTIONS {
            for dead in 0..2 {
                let mut pair = pair(ack_path);
                let now = pair.now;
                pair.server_mut().write(2_000_000, now);
                pair.run_until(now + 200 * MS, |_| false);
                darken(&mut pair, &[(dead, sides, [0, u64::MAX])]);
                // The other one takes 1.6 s for all of it. Three probe timeouts of some 200 ms each pass before either side gives a path up.
                pair.run_until(now + 4 * SECOND, |pair| pair.read[0] == 2_000_000);
                assert_eq!(
                    pair.read[0], 2_000_000,
                    "{ack_path:?}, path {dead}, {sides:?}"
                );
            }
        }
    }
}

/// RFC 9000 section 13.2.4: acknowledgements of questions ask nothing.
#[test]
fn questions_whether_acknowledgements_arrive_end_with_the_data() {
    for ack_path in ACK_PATHS {
        let mut pair = pair(ack_path);
        let now = pair.now;
        pair.server_mut().write(500_000, now);
        pair.client.write(500_000, now);
        pair.run_until(now + 5 * SECOND, |_| false);
        assert_eq!(pair.read, [500_000; 2]);
        pair.sent.clear();
        pair.run_until(now + 15 * SECOND, |_| false);
        assert_eq!(pair.sent.len(), 0, "{ack_path:?}: {:?}", pair.sent);
    }
}

/// A path that fell silent while no other worked is given up once one does: what it carried waits for no probe of its own, whose timeout has
/// doubled again and again.
#[test]
fn what_a_dead_path_carries_goes_on_the_first_that_returns() {
    for half_seconds in 2..16 {
        for (returns, stays) in [(0, 1), (1, 0)] {
            let lasts = half_seconds * 500 * MS;
            let mut pair = pair(AckPath::Same);
            let now = pair.now;
            pair.server_mut().write(2_000_000, now);
            pair.run_until(now + 200 * MS, |_| false);
            let both = DIRECTIONS[0];
            darken(
                &mut pair,
                &[(returns, both, [0, lasts]), (stays, both, [0, u64::MAX])],
            );
            // Its own next probe leaves within as long again as it was dark.
            pair.run_until(now + lasts, |_| false);
            let read = pair.read[0];
            pair.run_until(now + 3 * lasts, |pair| pair.read[0] > read);
            // From then on the data takes 1.6 s, and a few round trips while the window grows.
            let works = pair.now;
            pair.run_until(works + 2 * SECOND, |pair| pair.read[0] == 2_000_000);
            let dark = lasts / MS;
            assert_eq!(pair.read[0], 2_000_000, "path {returns}, {dark} ms");
        }
    }
}

/// Both sides gave one path up, and the other dies before the first is back: acknowledgements of what comes on the first go on it, too.
#[test]
fn a_path_that_returns_is_found_though_another_one_seems_to_work() {
    for ack_path in ACK_PATHS {
        for sides in DIRECTIONS {
            for (returns, dies) in [(0, 1), (1, 0)] {
                let mut pair = pair(ack_path);
                let now = pair.now;
                pair.server_mut().write(4_000_000, now);
                pair.client.write(4_000_000, now);
                pair.run_until(now + 200 * MS, |_| false);
                let outage = (returns, sides, [0, 3 * SECOND]);
                let death = (dies, DIRECTIONS[0], [1_500 * MS, u64::MAX]);
                darken(&mut pair, &[outage, death]);
                // Its probes find it within as long again as it was dark; then all of the data takes 3.4 s at its rate, which windows of two
                // packets reach within some seconds.
                let whole = [4_000_000; 2];
                pair.run_until(now + 18 * SECOND, |pair| pair.read == whole);
                assert_eq!(pair.read, whole, "{ack_path:?}, path {returns}, {sides:?}");
            }
        }
    }
}
