//! Head-of-line blocking, told apart by what filled the hole.
//!
//! | wait | test |
//! |---|---|
//! | at subflow level, to the nanosecond | `a_hole_of_the_subflow_is_charged_until_it_is_filled` |
//! | at connection level, for a longer path | `without_a_loss_the_longer_path_is_late` |
//! | for a retransmission, at both levels | `a_loss_is_charged_to_the_subflow_that_repeats_it` |
//! | for a reinjection | `what_another_subflow_repeats_is_reinjected` |
//! | for what never comes | `what_never_comes_is_missing` |

use polypath_transport::{Arrival, Blocked, Cause, Config, Level, Profile, Purpose};

use crate::common::script::Script;
use crate::common::{Fate, MS, Pair, SECOND, Side, mptcp, with_profile};
use crate::meshed;

fn accepted() -> Script {
    Script::accepted(&mptcp(), crate::data::mptcp_peer(), 20 * MS)
}

fn round_robin() -> Config {
    Config {
        scheduler: "roundrobin".into(),
        ..with_profile(Profile::Rfc, mptcp())
    }
}

fn blocked(pair: &Pair) -> Vec<Blocked> {
    pair.server.connection().blocked(pair.now)
}

/// Time that level, subflow and cause came to.
fn time(found: &[Blocked], level: Level, subflow: usize, cause: Cause) -> u64 {
    let own = found
        .iter()
        .find(|each| (each.level, each.subflow, each.cause) == (level, Some(subflow), cause));
    own.map_or(0, |each| each.waited.time)
}

#[test]
fn a_hole_of_the_subflow_is_charged_until_it_is_filled() {
    let mut script = accepted();
    script.inject(script.mapped(1001, 1000, 1000, 1));
    script.now += 7 * MS;
    script.inject(script.mapped(2001, 2000, 500, 1));
    script.now += 5 * MS;
    let repeated = Arrival {
        purpose: Purpose::Retransmission,
        ..Arrival::default()
    };
    script.inject_with(script.mapped(1, 0, 1000, 1), repeated);
    script.now += SECOND;
    let found = script.connection.blocked(script.now);
    assert_eq!(found.len(), 1, "{found:?}");
    let Blocked {
        level,
        subflow,
        cause,
        waited,
    } = found[0];
    assert_eq!((level, subflow), (Level::Subflow, Some(0)));
    assert_eq!(cause, Cause::Retransmitted);
    assert_eq!((waited.time, waited.most), (12 * MS, 1500));
    let expected = u128::from(1000 * 7 * MS + 1500 * 5 * MS);
    assert_eq!(waited.byte_nanoseconds, expected);
}

#[test]
fn without_a_loss_the_longer_path_is_late() {
    let mut pair = meshed(&round_robin(), &[10 * MS, 60 * MS]);
    pair.write(Side::Client, 300_000);
    pair.run_for(10 * SECOND);
    pair.assert_whole(Side::Server, 300_001);
    let found = blocked(&pair);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(time(&found, Level::Connection, 1, Cause::Late) >= 40 * MS);
}

#[test]
fn a_loss_is_charged_to_the_subflow_that_repeats_it() {
    let mut pair = meshed(&round_robin(), &[10 * MS, 10 * MS]);
    let mut count = 0;
    pair.hook(move |packet| {
        count += u32::from(packet.carries_data() && packet.path == 1);
        if packet.carries_data() && packet.path == 1 && count == 3 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.write(Side::Client, 300_000);
    pair.run_for(10 * SECOND);
    pair.assert_whole(Side::Server, 300_001);
    let found = blocked(&pair);
    let inside = time(&found, Level::Subflow, 1, Cause::Retransmitted);
    let outside = time(&found, Level::Connection, 1, Cause::Retransmitted);
    // A round trip and RACK's reordering window, a quarter of it.
    for waited in [inside, outside] {
        assert!((20 * MS..=30 * MS).contains(&waited), "{found:?}");
    }
    assert_eq!(time(&found, Level::Subflow, 0, Cause::Retransmitted), 0);
    assert_eq!(time(&found, Level::Connection, 0, Cause::Retransmitted), 0);
}

#[test]
fn what_another_subflow_repeats_is_reinjected() {
    let mut pair = meshed(&round_robin(), &[10 * MS, 10 * MS]);
    pair.hook(|packet| {
        if packet.path == 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.write(Side::Client, 100_000);
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 100_001);
    let found = blocked(&pair);
    assert!(
        time(&found, Level::Connection, 0, Cause::Reinjected) >= 200 * MS,
        "less than a timeout: {found:?}"
    );
    assert!(found.iter().all(|each| each.level == Level::Connection));
}

#[test]
fn what_never_comes_is_missing() {
    let mut script = accepted();
    script.inject(script.mapped(1, 5000, 1000, 1));
    script.inject(script.mapped(3001, 8000, 1000, 1));
    script.now += 3 * MS;
    let missing = |found: &[Blocked]| {
        let rows = found.iter();
        rows.map(|each| (each.level, each.subflow, each.cause, each.waited.time))
            .collect::<Vec<_>>()
    };
    let both = [
        (Level::Subflow, Some(0), Cause::Missing, 3 * MS),
        (Level::Connection, None, Cause::Missing, 3 * MS),
    ];
    assert_eq!(missing(&script.connection.blocked(script.now)), both);
    script.connection.abort(script.now);
    script.now += SECOND;
    assert_eq!(missing(&script.connection.blocked(script.now)), both);
}
