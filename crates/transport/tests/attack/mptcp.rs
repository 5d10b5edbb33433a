//! MPTCP under attack.
//!
//! | attacker | may do | must not |
//! |---|---|---|
//! | blind | guess numbers, tokens, keys and HMACs, put any option on a segment | change any state (RFC 8684 sections 3.2, 3.4, 3.5, 3.7 and 5) |
//! | one that knows the token, from its own address | send MP_JOINs, and third ACKs with wrong HMACs | have more than a few of them kept, or a subflow established (section 3.2) |
//! | on one path, with DSS checksums | alter, drop, delay, repeat and forge its packets, reset the subflow, send MP_FAIL, MP_PRIO, MP_FASTCLOSE and ADD_ADDR | stop the transfer or change a byte of it |
//! | on all paths, or with data ACKs, windows, DATA_FIN and REMOVE_ADDR, which nothing protects | anything | make an endpoint panic, or keep and send without bound |

use polypath_transport::{CloseReason, Config, EventKind, Segment, Tuple};
use polypath_wire::mptcp::{MpJoin, MptcpOption};
use polypath_wire::tcp::Flags;
use rand::Rng;

use crate::attacker::Attacker;
use crate::choices::Choices;
use crate::common::pair::Packet;
use crate::common::{self, MS, Pair, SECOND, Side};
use crate::tcp::{Blind, MOST_STEPS, PATIENCE, Transfer, assert_bounded, forge, links};
use crate::{mutate, seeds, stack, tcp};

type Stack = fn(&mut Choices, Config) -> Config;

fn pair(rng: &mut Choices, paths: usize, checksum: bool, stack: Stack) -> Pair {
    let mut stack = || Config {
        checksum,
        ..stack(rng, common::mptcp())
    };
    let (client, server) = (stack(), stack());
    let links = links(rng, paths);
    Pair::with(&client, &server, links, 1, rng.random_range(0..1 << 30))
}

fn over(pair: &Pair) -> bool {
    [&pair.client, &pair.server].into_iter().all(|end| {
        let connection = end.connection.as_ref();
        connection.is_some_and(|connection| connection.ended().is_some())
    })
}

/// An MP_JOIN of a token that the attacker guesses: the listener resets it.
fn guess_token(blind: &mut Blind, pair: &mut Pair) {
    let Some(token) = pair.server.connection.as_ref().and_then(|it| it.token()) else {
        return;
    };
    let guess = mutate::near(&mut blind.rng, &[token]);
    if guess == token {
        return;
    }
    let before = tcp::Snapshot::of(pair, Side::Server);
    let (tuple, syn) = join(&mut blind.rng, 1, guess);
    assert_eq!(pair.inject(Side::Server, tuple, syn), 1);
    let answer = &pair.log[pair.log.len() - 1].segment;
    assert!(answer.flags.contains(Flags::RST));
    assert_eq!(before, tcp::Snapshot::of(pair, Side::Server));
}

/// From the attacker's own address, as the server sees it.
fn join(rng: &mut Choices, port: u16, token: u32) -> (Tuple, Segment) {
    let tuple = Tuple {
        local: common::first_tuple().remote,
        remote: ([10, 9, 9, 9], port).into(),
    };
    let mut syn = Segment {
        seq: rng.random(),
        flags: Flags::SYN,
        window: rng.random(),
        ..Segment::default()
    };
    syn.rare_mut().mptcp = vec![MptcpOption::Join(MpJoin::Syn {
        backup: rng.random(),
        address_id: rng.random(),
        token,
        nonce: rng.random(),
    })];
    (tuple, syn)
}

/// How many segments the attacker sent.
fn blind(rng: &mut Choices) -> u64 {
    let (paths, checksum) = (rng.random_range(1..4), rng.random());
    let mut pair = pair(rng, paths, checksum, stack::managed);
    let mut transfer = Transfer::new(rng);
    let mut blind = Blind::new(rng.clone());
    pair.act(Side::Client, |_, _| {});
    while !over(&pair) && pair.now < PATIENCE {
        for side in [Side::Client, Side::Server] {
            for _ in 0..blind.rng.random_range(0..3) {
                let subflow = blind.rng.random_range(0..paths);
                blind.shoot(&mut pair, side, subflow, |rng, segment| {
                    if rng.random() {
                        segment.dss = Some(mutate::dss(rng, segment.payload.len));
                    }
                    if rng.random() {
                        segment.rare_mut().mptcp.push(mutate::option(rng));
                    }
                });
            }
            if blind.rng.random_ratio(1, 4) {
                let subflow = blind.rng.random_range(0..paths);
                blind.report_too_big(&mut pair, side, subflow);
            }
        }
        if blind.rng.random_ratio(1, 20) {
            guess_token(&mut blind, &mut pair);
        }
        transfer.go_on(&mut pair);
        if !pair.step() {
            break;
        }
    }
    assert_transferred(&mut pair, &transfer);
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.connection(side).ended(), Some(CloseReason::Finished));
        assert_bounded(pair.connection(side));
    }
    blind.sent
}

#[track_caller]
fn assert_transferred(pair: &mut Pair, transfer: &Transfer) {
    pair.assert_whole(Side::Server, transfer.bytes[0]);
    pair.assert_whole(Side::Client, transfer.bytes[1]);
}

/// MP_JOINs with the right token: none of them is of use without the keys.
fn joins(rng: &mut Choices) {
    let mut pair = pair(rng, 2, false, stack::drawn);
    let mut transfer = Transfer::new(rng);
    transfer.bytes[0] += 500_000;
    let mut tried = 0;
    while !over(&pair) && pair.now < PATIENCE {
        transfer.go_on(&mut pair);
        let token = pair.server.connection.as_ref().and_then(|it| it.token());
        if let Some(token) = token.filter(|_| pair.established_subflows() == 2) {
            if tried < 400 && rng.random_ratio(1, 2) {
                tried += 1;
                join_without_keys(rng, &mut pair, tried, token);
            }
        }
        assert!(established_joins(&pair) <= 1);
        if !pair.step() {
            break;
        }
    }
    assert_transferred(&mut pair, &transfer);
}

fn established_joins(pair: &Pair) -> usize {
    let Some(connection) = pair.server.connection.as_ref() else {
        return 0;
    };
    let joins = connection.subflows().iter().skip(1);
    joins.filter(|it| it.established_at.is_some()).count()
}

fn join_without_keys(rng: &mut Choices, pair: &mut Pair, port: u16, token: u32) {
    let (tuple, syn) = join(rng, port, token);
    let answer = answer(pair, tuple, syn.clone());
    if answer.flags.contains(Flags::SYN) && rng.random() {
        let mut ack = Segment {
            seq: syn.seq.wrapping_add(1),
            ack: answer.seq.wrapping_add(1),
            flags: Flags::ACK,
            ..Segment::default()
        };
        if rng.random() {
            let hmac = rng.random();
            ack.rare_mut().mptcp = vec![MptcpOption::Join(MpJoin::Ack { hmac })];
        }
        let answer = self::answer(pair, tuple, ack);
        assert!(answer.flags.contains(Flags::RST), "{answer:?}");
    }
    assert_bounded(pair.connection(Side::Server));
}

/// What the server answers to a segment from the attacker's own address.
fn answer(pair: &mut Pair, tuple: Tuple, segment: Segment) -> Segment {
    let text = format!("{segment:?}");
    let sent = pair.inject(Side::Server, tuple, segment);
    let answers = &pair.log[pair.log.len() - sent..];
    let answer = answers.iter().find(|packet| packet.tuple == tuple);
    let answer = answer.unwrap_or_else(|| panic!("no answer to {text}"));
    answer.segment.clone()
}

/// What RFC 8684 protects by nothing but the path stays as it was: data ACKs, the window that they bring, DATA_FIN, REMOVE_ADDR. Nor does the attacker turn back the only
/// handshake that shows the keys, whose packets it does not see.
fn spare_the_unprotected(original: &Segment, altered: &mut Segment) {
    altered.window = original.window;
    if original.flags.contains(Flags::SYN) {
        // The window of a SYN is not scaled: as one of another segment it would be larger.
        altered.flags = original.flags;
        let scale = original.rare.as_ref().and_then(|rare| rare.window_scale);
        altered.rare_mut().window_scale = scale;
    }
    let data_ack = original.dss.and_then(|dss| dss.data_ack);
    let fin = original.dss.is_some_and(|dss| dss.data_fin);
    if let Some(dss) = &mut altered.dss {
        dss.data_ack = data_ack;
        if dss.data_fin || fin {
            altered.dss = original.dss;
        }
    }
    if let Some(rare) = &mut altered.rare {
        (rare.mptcp).retain(|option| !matches!(option, MptcpOption::RemoveAddr { .. }));
    }
}

fn on_one_path(rng: &mut Choices) {
    on_one_path_with(rng, stack::unheld);
}

pub fn on_one_path_with(rng: &mut Choices, stack: Stack) {
    let mut pair = pair(rng, 2, true, stack);
    let mut transfer = Transfer::new(rng);
    let attacker = Attacker::OnPath(1);
    let mut meddle = tcp::meddler(attacker, rng.clone(), rng.random_range(0..50));
    pair.hook(move |packet: &mut Packet| {
        let original = packet.segment.clone();
        let fate = meddle(packet);
        spare_the_unprotected(&original, &mut packet.segment);
        fate
    });
    let mut steps = 0;
    let arrived =
        |pair: &Pair, transfer: &Transfer| [pair.server.read, pair.client.read] == transfer.bytes;
    while !arrived(&pair, &transfer) && pair.now < PATIENCE && steps < MOST_STEPS {
        if rng.random_ratio(1, 6) {
            forge(rng, &mut pair, attacker, spare_the_unprotected);
        }
        transfer.go_on(&mut pair);
        if !pair.step() {
            break;
        }
        steps += 1;
    }
    assert!(steps < MOST_STEPS, "no end of packets at {} ns", pair.now);
    let states: Vec<_> = [Side::Client, Side::Server]
        .map(|side| pair.connection(side).ended())
        .to_vec();
    if !arrived(&pair, &transfer) {
        pair.print_log(40);
        for side in [Side::Client, Side::Server] {
            println!("{side:?} {:#?}", tcp::Snapshot::of(&mut pair, side));
        }
    }
    assert!(
        arrived(&pair, &transfer),
        "{} and {} of {:?} bytes, {states:?}, {} ms",
        pair.server.read,
        pair.client.read,
        transfer.bytes,
        pair.now / MS
    );
    assert_transferred(&mut pair, &transfer);
    for side in [Side::Client, Side::Server] {
        let end = pair.end(side);
        let addresses = end.happened(|kind| matches!(kind, EventKind::AddressAdded { .. }));
        assert_eq!(addresses, 0, "an ADD_ADDR without the keys is taken");
    }
}

fn everywhere(rng: &mut Choices) {
    let paths = rng.random_range(1..4);
    let checksum = rng.random();
    let mut pair = pair(rng, paths, checksum, stack::managed);
    let mut transfer = Transfer::new(rng);
    let attacker = if rng.random() {
        Attacker::Everywhere
    } else {
        Attacker::OnPath(rng.random_range(0..paths))
    };
    let share = rng.random_range(0..30);
    pair.hook(tcp::meddler(attacker, rng.clone(), share));
    let mut steps = 0;
    while pair.now < 20 * SECOND && steps < MOST_STEPS {
        if rng.random_ratio(1, 4) {
            forge(rng, &mut pair, attacker, |_, _| {});
        }
        transfer.go_on(&mut pair);
        if !pair.step() {
            break;
        }
        steps += 1;
    }
    assert!(steps < MOST_STEPS, "no end of packets at {} ns", pair.now);
}

/// What a fuzzer decides about, too.
pub const CASES: &[fn(&mut Choices)] = &[|rng| _ = blind(rng), joins, on_one_path, everywhere];

#[test]
fn a_blind_attacker_changes_nothing_of_any_subflow() {
    seeds::run(
        "a_blind_attacker_changes_nothing_of_any_subflow",
        100,
        |rng| assert!(blind(rng) > 0),
    );
}

#[test]
fn a_token_without_keys_brings_no_subflow() {
    seeds::run("a_token_without_keys_brings_no_subflow", 20, joins);
}

#[test]
fn an_attacker_on_one_path_stops_no_transfer() {
    seeds::run(
        "an_attacker_on_one_path_stops_no_transfer",
        100,
        on_one_path,
    );
}

#[test]
fn an_attacker_on_all_paths_ends_a_connection_at_worst() {
    seeds::run(
        "an_attacker_on_all_paths_ends_a_connection_at_worst",
        150,
        everywhere,
    );
}
