//! The search for the path's MTU on a subflow (RFC 4821, Linux `tcp_mtu_probe`): each has its own.
//!
//! | rule | test |
//! |---|---|
//! | a subflow on a path that loses long packets gets through, and mappings go with the probes | `a_subflow_finds_the_mtu_of_its_path` |
//! | upstream: once the base counts, data waiting on a server's subflow is cut again from each buffer's beginning | `upstream_a_servers_buffers_are_cut_anew` |
//! | one without a queue of its own stays at the base | `a_subflow_without_a_queue_stays_at_the_base` |

use polypath_transport::{Config, Mib, MtuProbing, Profile};
use polypath_wire::tcp::header_len;

use crate::common::{Fate, Link, MS, Pair, SECOND, Side, mptcp, with_profile};

const BYTES: u64 = 8_000_000;

/// What the second path takes, in bytes of an IP packet.
const MTU: u32 = 1400;

/// The longest packet that passed on each path.
fn longest(profile: Profile, scheduler: &str, mtu_probing: MtuProbing) -> (Pair, [u32; 2]) {
    let config = Config {
        mtu_probing,
        scheduler: scheduler.into(),
        ..with_profile(profile, mptcp())
    };
    let links = vec![Link::limited(10 * MS, 10_000_000, 50 * MS); 2];
    let mut pair = Pair::with(&config, &config, links, 1, 7);
    pair.hook(|packet| {
        let len = 20 + header_len(&packet.segment) as u32 + packet.segment.payload.len;
        if packet.path == 1 && len > MTU {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.transfer(BYTES, 60 * SECOND);
    let mut longest = [0; 2];
    for packet in pair.data(Side::Client) {
        let len = 20 + header_len(&packet.segment) as u32 + packet.segment.payload.len;
        if packet.path == 0 || len <= MTU {
            longest[packet.path] = longest[packet.path].max(len);
        }
    }
    (pair, longest)
}

#[test]
fn a_subflow_finds_the_mtu_of_its_path() {
    // The options are not counted: 24 bytes more than 1288, 1340, 1366 and 1372 pass, more than 1394 and 1379 do not; on the other path
    // more than 1473 would be longer than the interface takes, and it has no search where nothing is suspected.
    for (mode, other) in [(MtuProbing::On, 1473 + 24), (MtuProbing::BlackHole, 1500)] {
        let (pair, found) = longest(Profile::Linux, "linux", mode);
        assert_eq!(found, [other, 1372 + 24], "{mode:?}");
        assert!(pair.counter(Side::Client, Mib::TcpExtTCPMTUPSuccess) > 0);
        assert!(pair.counter(Side::Client, Mib::TcpExtTCPMTUPFail) > 0);
        assert_eq!(pair.counter(Side::Server, Mib::PayloadMismatch), 0);
    }
}

/// A larger window has the base count (Linux `tcp_ack_update_window`, `tcp_sync_mss`): the segments that wait get shorter, and no rests of
/// longer ones are among them.
#[test]
fn upstream_a_servers_buffers_are_cut_anew() {
    let config = Config {
        mtu_probing: MtuProbing::On,
        scheduler: "linux".into(),
        ..with_profile(Profile::Linux, mptcp())
    };
    let mut pair = Pair::with(
        &config,
        &config,
        vec![Link::limited(10 * MS, 2_000_000, 50 * MS)],
        1,
        7,
    );
    pair.run_for(100 * MS);
    pair.write(Side::Server, 100_000);
    pair.run_for(200 * MS);
    let lengths: Vec<u32> = pair
        .data(Side::Server)
        .map(|packet| packet.segment.payload.len)
        .collect();
    assert_eq!(lengths[..10], [1424; 10]);
    assert_eq!(lengths[10], 1236, "a probe");
    assert_eq!(lengths[11..20], [1000; 9]);
}

/// Without a queue of its own a subflow has nothing to probe with, and stays at the base.
#[test]
fn a_subflow_without_a_queue_stays_at_the_base() {
    let (pair, found) = longest(Profile::Rfc, "default", MtuProbing::On);
    assert_eq!(pair.counter(Side::Client, Mib::TcpExtTCPMTUPSuccess), 0);
    assert_eq!(found[1], 1024 + 52);
}

/// A corked write that a scheduler with queues gave to a subflow is filled up by the next one, as far as the MTU goes: the option of the
/// first segment, MP_CAPABLE with both keys, is longer than a short DSS (RFC 8684 section 3.1).
#[test]
fn the_first_segment_is_filled_up_no_further_than_the_mtu() {
    let config = Config {
        cork: true,
        scheduler: "otias".into(),
        ..Config::default()
    };
    let mut pair = Pair::new(&config, &[50 * MS]);
    let limit = pair.now + SECOND;
    assert!(pair.run_until_that(limit, |pair| pair.client.connection().established()));
    let mss = pair.client.connection().paths()[0].mss;
    pair.write(Side::Client, 100);
    pair.write(Side::Client, 5_000);
    pair.run_for(SECOND);
    let sent: Vec<u32> = pair
        .data(Side::Client)
        .map(|packet| packet.segment.payload.len)
        .collect();
    assert_eq!(sent[..2], [mss - 4, mss], "{sent:?}");
}
