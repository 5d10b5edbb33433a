//! What becomes of a connection whose last subflow is gone (Linux net/mptcp/protocol.c `__mptcp_close_ssk`, net.mptcp.close_timeout).
//! The upstream kernel in virtual time did the same: `ss -K` on the only subflow, 60 s as ESTAB, then UNCONN; with another endpoint after
//! 20 s an MP_JOIN, accepted, and the stream went on.
//!
//! | rule | test |
//! |---|---|
//! | in the profile `linux` it waits for 60 s, both sides | `upstream_waits_a_minute_for_another_subflow` |
//! | whoever joins meanwhile carries on what is missing | `a_join_revives_a_connection_without_subflows` |
//! | a join that fails begins another 60 s for its sender, none for its receiver | `a_join_that_nobody_hears_of_starts_the_minute_anew` |
//! | closed on either side it ends at once, and so it does elsewhere and in plain TCP | `nothing_is_waited_for_where_nothing_can_come` |

use polypath_transport::{CloseReason, Config, Profile};
use polypath_wire::tcp::Flags;

use crate::common::{Link, MS, Pair, SECOND, Side, client_address, mptcp, server_address};

const WAIT: u64 = 60 * SECOND;

fn config(profile: Profile, steps: &[String]) -> Config {
    let mut config = Config { profile, ..mptcp() };
    if profile == Profile::Linux {
        config.scheduler = "linux".into();
    }
    config.path_manager.name = "scripted".into();
    let parameters = serde_json::json!({ "steps": steps });
    config.path_manager.parameters = parameters.as_object().expect("a table").clone();
    config
}

/// A connection with two addresses at the client, of which one is used, in the midst of a transfer of `bytes`.
fn sending(config: &Config, bytes: u64) -> Pair {
    let links = vec![Link::new(10 * MS), Link::new(10 * MS)];
    let mut pair = Pair::with(config, config, links, 1, 7);
    pair.write(Side::Client, bytes);
    pair.run_for(100 * MS);
    assert!(pair.server.read > 0);
    pair
}

/// A reset reaches the client on its only subflow, as if the server had sent it; what still arrives there has the server told.
fn kill(pair: &mut Pair) -> u64 {
    let reset = {
        let last = pair.sent(Side::Server).last().expect("the server answered");
        polypath_transport::Segment {
            seq: last.segment.seq.wrapping_add(last.segment.seq_len()),
            ack: last.segment.ack,
            flags: Flags::RST | Flags::ACK,
            ..Default::default()
        }
    };
    pair.act(Side::Client, |connection, now| {
        connection.on_segment(0, &reset, Default::default(), now)
    });
    pair.now
}

fn ended(pair: &mut Pair) -> [Option<CloseReason>; 2] {
    [Side::Client, Side::Server].map(|side| pair.connection(side).ended())
}

#[test]
fn upstream_waits_a_minute_for_another_subflow() {
    let mut pair = sending(&config(Profile::Linux, &[]), 50_000_000);
    let killed = kill(&mut pair);
    pair.run_until(killed + WAIT - MS);
    assert_eq!(ended(&mut pair), [None, None]);
    assert_eq!(
        pair.connection(Side::Client).subflows()[0].closed_at,
        Some(killed)
    );
    let told = pair.connection(Side::Server).subflows()[0].closed_at;
    let told = told.expect("the client's reset reached the server");
    assert!(told > killed && told < killed + 50 * MS);
    let sent = pair.log.iter().filter(|packet| packet.at > killed + SECOND);
    assert_eq!(sent.count(), 0, "nobody has anything to send on");
    pair.run_until(killed + WAIT);
    assert_eq!(ended(&mut pair), [Some(CloseReason::Reset), None]);
    pair.run_until(told + WAIT);
    assert_eq!(ended(&mut pair), [Some(CloseReason::Reset); 2]);
}

#[test]
fn a_join_revives_a_connection_without_subflows() {
    let open = format!("20 s open {} {}", client_address(1), server_address(0));
    let bytes = 5_000_000;
    let mut pair = sending(&config(Profile::Linux, &[open]), bytes);
    let killed = kill(&mut pair);
    let before = pair.server.read;
    assert!(before < bytes);
    pair.run_until(killed + 2 * WAIT);
    assert_eq!(ended(&mut pair), [None, None]);
    pair.assert_whole(Side::Server, bytes);
    assert_eq!(pair.established_subflows(), 1);
}

#[test]
fn a_join_that_nobody_hears_of_starts_the_minute_anew() {
    let open = format!("20 s open {} {}", client_address(1), server_address(0));
    let mut settings = config(Profile::Linux, &[open]);
    settings.limits.syn_retries = 1;
    let mut pair = sending(&settings, 50_000_000);
    pair.links[1].up = false;
    let killed = kill(&mut pair);
    pair.run_until(killed + WAIT + SECOND);
    let ends = ended(&mut pair);
    assert_eq!(ends, [None, Some(CloseReason::Reset)]);
    let gone = pair.connection(Side::Client).subflows()[1].closed_at;
    // One repetition beside the four that double nothing.
    let gone = gone.expect("nobody answered");
    assert!(gone > killed + 24 * SECOND && gone < killed + 29 * SECOND);
    pair.run_until(gone + WAIT - MS);
    assert_eq!(pair.connection(Side::Client).ended(), None);
    pair.run_until(gone + WAIT);
    assert!(pair.connection(Side::Client).ended().is_some());
}

#[test]
fn nothing_is_waited_for_where_nothing_can_come() {
    for profile in [Profile::Rfc, Profile::MptcpOrg] {
        let mut pair = sending(&config(profile, &[]), 50_000_000);
        kill(&mut pair);
        assert_eq!(
            pair.connection(Side::Client).ended(),
            Some(CloseReason::Reset)
        );
    }
    let mut plain = config(Profile::Linux, &[]);
    plain.multipath = false;
    let mut pair = sending(&plain, 50_000_000);
    kill(&mut pair);
    assert_eq!(
        pair.connection(Side::Client).ended(),
        Some(CloseReason::Reset)
    );

    let mut pair = sending(&config(Profile::Linux, &[]), 50_000_000);
    pair.close(Side::Client);
    kill(&mut pair);
    assert_eq!(
        pair.connection(Side::Client).ended(),
        Some(CloseReason::Reset)
    );

    let mut pair = sending(&config(Profile::Linux, &[]), 50_000_000);
    kill(&mut pair);
    pair.close(Side::Client);
    assert_eq!(
        pair.connection(Side::Client).ended(),
        Some(CloseReason::Reset)
    );
}
