//! Options that no honest peer sends (RFC 8684 sections 3.2 and 3.3).
//!
//! | rule | test |
//! |---|---|
//! | a DATA_FIN before what came or beyond the window ends nothing, one in its place does | `a_data_fin_out_of_place_ends_nothing` |
//! | a mapping of any 64-bit number is dropped or taken, without overflow | `a_mapping_of_anywhere_is_dropped` |
//! | mappings of more than their segment are kept up to a limit | `mappings_are_kept_up_to_a_limit` |
//! | a subflow whose FINs are through is no subflow to send on | `a_subflow_that_both_sides_closed_holds_nothing_up` |
//! | subflows without proof of the keys are kept up to a limit | `joins_without_proof_are_refused_beyond_a_limit` |

use polypath_transport::{Codepoint, Segment};
use polypath_wire::mptcp::{Dsn, MpJoin, MptcpOption};
use polypath_wire::tcp::{Flags, Payload};

use super::data::mptcp_peer;
use crate::common::script::{PEER_KEY, Script, initial_dsn};
use crate::common::{MS, Side, first_tuple, mptcp, reversed};

fn accepted() -> Script {
    let mut script = Script::accepted(&mptcp(), mptcp_peer(), 20 * MS);
    script.drain();
    script.inject(script.mapped(1, 0, 100, 1));
    script.drain();
    script
}

/// A DATA_FIN without data whose mapping begins at `offset` of the stream.
fn data_fin(script: &Script, offset: u64, len: u16) -> Segment {
    let mut segment = script.mapped(101, offset, 0, 1);
    let dss = segment.dss.as_mut().expect("a mapped segment");
    dss.data_fin = true;
    let mapping = dss.mapping.as_mut().expect("a mapped segment");
    (mapping.subflow_seq, mapping.len) = (0, len);
    segment
}

#[test]
fn a_data_fin_out_of_place_ends_nothing() {
    let mut script = accepted();
    for (offset, len) in [
        (0, 0),
        (50, 1),
        (u64::MAX, 1),
        (u64::MAX - 5, 100),
        (1 << 40, 1),
    ] {
        script.inject(data_fin(&script, offset, len));
        script.inject(script.data_ack_at(101, 1, 0));
        assert!(!script.connection.at_end(), "{offset} {len}");
    }
    script.inject(data_fin(&script, 100, 1));
    script.read(100);
    assert!(script.connection.at_end());
}

#[test]
fn a_mapping_of_anywhere_is_dropped() {
    let mut script = accepted();
    for dsn in [
        0,
        u64::MAX,
        initial_dsn(PEER_KEY),
        initial_dsn(PEER_KEY).wrapping_sub(50),
    ] {
        for mapped in [100, 40, 200] {
            let mut segment = script.mapped(101, 0, 100, 1);
            let dss = segment.dss.as_mut().expect("a mapped segment");
            let mapping = dss.mapping.as_mut().expect("a mapped segment");
            (mapping.dsn, mapping.len) = (Dsn::Long(dsn.into()), mapped);
            segment.payload.offset = 1 << 50;
            script.inject(segment);
            assert!(script.connection.available() <= 100);
        }
    }
}

#[test]
fn mappings_are_kept_up_to_a_limit() {
    let mut script = accepted();
    for at in 0..5_000 {
        let mut segment = script.mapped(1_101 + at, 1_100 + at, 1, 1);
        let dss = segment.dss.as_mut().expect("a mapped segment");
        dss.mapping.as_mut().expect("a mapped segment").len = 100;
        script.inject(segment);
    }
    let kept = script.connection.kept().mappings;
    assert_eq!(kept, 4_096);
}

#[test]
fn joins_without_proof_are_refused_beyond_a_limit() {
    let mut script = accepted();
    let token = script.connection.token().expect("MPTCP");
    let mut syn = Segment {
        flags: Flags::SYN,
        payload: Payload::default(),
        ..Segment::default()
    };
    syn.rare_mut().mptcp = vec![MptcpOption::Join(MpJoin::Syn {
        backup: false,
        address_id: 1,
        token,
        nonce: 1,
    })];
    let mut taken = 0;
    for port in 1..400 {
        let mut tuple = reversed(first_tuple());
        tuple.remote.set_port(port);
        let now = script.now;
        let joined = script
            .connection
            .accept_join(tuple, (&syn, Codepoint::NotEct), now);
        taken += usize::from(joined.expect("algorithms exist").is_some());
    }
    assert_eq!(taken, 256);
    assert_eq!(script.connection.kept().subflows, 257);
}

#[test]
fn a_subflow_that_both_sides_closed_holds_nothing_up() {
    let mut pair = super::meshed(&mptcp(), &[10 * MS, 20 * MS]);
    let info = &pair.server.connection().subflows()[1];
    let (tuple, numbers) = (info.tuple, info.socket().sequence());
    let fin = Segment {
        seq: numbers.rcv_nxt,
        ack: numbers.snd_nxt,
        flags: Flags::FIN | Flags::ACK,
        window: 65_535,
        dss: pair.data(Side::Client).last().and_then(|it| it.segment.dss),
        ..Segment::default()
    };
    pair.inject(Side::Server, tuple, fin.clone());
    // The attacker acknowledges the server's FIN as well.
    let ack = Segment {
        seq: fin.seq.wrapping_add(1),
        ack: fin.ack.wrapping_add(1),
        flags: Flags::ACK,
        ..fin
    };
    pair.inject(Side::Server, tuple, ack);
    let subflow = &pair.server.connection().subflows()[1];
    assert!(
        subflow.closed_at.is_some(),
        "{:?}",
        subflow.socket().state()
    );
    pair.write(Side::Server, 200_000);
    pair.run_for(20_000 * MS);
    assert_eq!(pair.client.read, 200_000);
}
