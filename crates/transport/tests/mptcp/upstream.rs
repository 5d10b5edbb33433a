//! Upstream Linux's own rules (net/mptcp/protocol.c, net/mptcp/pm.c), in force in the profile `linux`.
//!
//! | rule | test |
//! |---|---|
//! | a subflow's timeout hands nothing to the others; an idle subflow repeats the head | `an_idle_subflow_repeats_the_head` |
//! | a subflow silent for more than four periods is stale | `a_silent_subflow_becomes_stale` |
//! | a stale subflow that hears its peer is active again | `a_stale_subflow_comes_back` |
//! | the end of a subflow schedules everything in flight again | `a_dead_subflow_schedules_everything_anew` |
//! | a writer that filled the buffer waits until a third is free | `a_full_buffer_is_written_to_in_bursts` |
//! | what waits in a subflow's queue is filled up to full segments | `small_writes_fill_the_last_segment` |
//! | a subflow's cork holds the rest, also at the end of the stream | `a_cork_holds_the_rest_in_the_subflows_queue` |
//! | a connection of which a direction was closed takes no further subflow | `joins_come_too_late_once_a_direction_is_closed` |
//! | the DATA_FIN leaves on every subflow at once | `the_data_fin_leaves_on_every_subflow` |
//! | a half-open subflow that is refused releases nothing | `a_refused_join_releases_no_cork` |
//! | a subflow that the peer opened has no round-trip time without timestamps | `a_join_is_not_timed_without_timestamps` |
//! | one address is announced at a time | `addresses_are_announced_one_after_the_other` |
//! | TCP's writer goes on while the window takes what it writes | `tcp_goes_beyond_its_send_buffer_while_the_window_has_room` |
//! | a reader acknowledges pushed data where it empties the buffer | `data_behind_a_hole_is_not_acknowledged_by_the_reader` |
//! | more than a segment is acknowledged at once where nothing is to be read, else by the reader | `two_segments_behind_a_hole_are_acknowledged_at_once` |
//! | all packets of an instant are taken in before a writer runs, and before another subflow than theirs sends | `other_subflows_and_writers_wait_for_an_instants_packets` |
//! | a subflow's queue is filled beyond its window, up to its send buffer | `queues_are_filled_beyond_the_window` |
//! | the fourth ACK leaves alone; only what the peer says of the stream has data follow it | `the_fourth_ack_of_a_join_leaves_alone` |
//! | what a subflow leaves goes to those that end next | `a_subflow_that_ends_next_takes_over` |
//! | ... also where the peer withdraws both addresses in one option | `a_subflow_that_is_withdrawn_next_takes_over` |
//! | a subflow that was left has no part in the send buffer, although its socket goes on | `a_subflow_that_was_left_has_no_part_in_the_buffer` |
//! | an attempt of a server's that fails schedules everything in flight again, too | `a_servers_failed_attempt_schedules_everything_anew` |
//! | a join on its way does not hold up the data timer | `an_unanswered_join_delays_no_repetition` |
//! | no route: no SYN, and the connection is over | `a_connection_without_a_route_ends_at_once` |

use std::ops::Range;

use polypath_transport::{
    Buffer, CloseReason, Config, EventKind, Mib, Nanos, Profile, Purpose, connect_without_route,
};

use polypath_wire::mptcp::{MpJoin, MptcpOption};
use polypath_wire::tcp::Flags;

use crate::common::pair::Packet;
use crate::common::script::{Peer, Script};
use crate::common::{
    Fate, Link, MS, Pair, SECOND, Side, client_address, first_tuple, host, mptcp, server_address,
};
use crate::meshed;

fn upstream() -> Config {
    Config {
        profile: Profile::Linux,
        scheduler: "linux".into(),
        ..mptcp()
    }
}

/// What the client sent on a path for the first time there from an instant on, with whether another path had sent it.
fn sent_on(pair: &Pair, path: usize, since: Nanos) -> Vec<(Nanos, Range<u64>, bool)> {
    pair.data(Side::Client)
        .filter(|packet| packet.path == path && packet.at >= since)
        .filter(|packet| packet.purpose != Purpose::Retransmission)
        .map(|packet| {
            let payload = packet.segment.payload;
            let range = payload.offset..payload.offset + u64::from(payload.len);
            (packet.at, range, packet.purpose == Purpose::Reinjection)
        })
        .collect()
}

/// Reinjected is what another path had sent, and nothing that only waited there.
fn assert_reinjections(pair: &Pair) {
    let (dead, live) = (sent_on(pair, 0, 0), sent_on(pair, 1, 0));
    for (at, range, again) in &live {
        let before = dead.iter().any(|(sent_at, sent, _)| {
            sent_at <= at && sent.start < range.end && range.start < sent.end
        });
        assert_eq!(*again, before, "{range:?}");
    }
    assert!(dead.iter().all(|(_, _, again)| !again));
}

#[test]
fn an_idle_subflow_repeats_the_head() {
    let mut pair = meshed(&upstream(), &[10 * MS, 40 * MS]);
    pair.links[0].up = false;
    let died = pair.now;
    pair.write(Side::Client, 20_000);
    pair.run_for(SECOND);
    let timeouts = pair
        .client
        .happened(|kind| matches!(kind, EventKind::Timeout { subflow: 0, .. }));
    assert!(timeouts > 0);
    let again = sent_on(&pair, 1, died);
    // The first fragment holds all of it; it was sent again once, when the subflow's timer would have fired.
    assert_eq!(again[0].1.start, 1);
    let bytes: u64 = again
        .iter()
        .map(|packet| packet.1.end - packet.1.start)
        .sum();
    assert_eq!(bytes, 20_000);
    assert!(again[0].0 >= died + 20 * MS && again[0].0 <= died + 400 * MS);
    assert_reinjections(&pair);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtSubflowStale), 0);
    assert_eq!(pair.server.read, 20_001);
}

#[test]
fn a_silent_subflow_becomes_stale() {
    let mut pair = meshed(&upstream(), &[10 * MS, 40 * MS]);
    pair.write(Side::Client, 30_000_000);
    pair.run_for(200 * MS);
    pair.links[0].up = false;
    let failed = |kind: &EventKind| *kind == EventKind::PotentiallyFailed(0);
    pair.run_for(500 * MS);
    assert_eq!(pair.client.happened(failed), 0);
    let limit = pair.now + 20 * SECOND;
    assert!(pair.run_until_that(limit, |pair| pair.client.happened(failed) == 1));
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtSubflowStale), 1);
    let stale_at = pair.now;
    pair.run_for(60 * SECOND);
    pair.assert_whole(Side::Server, 30_000_001);
    let fresh = pair
        .data(Side::Client)
        .filter(|packet| packet.path == 0 && packet.at > stale_at)
        .filter(|packet| packet.purpose == Purpose::Data)
        .count();
    assert_eq!(fresh, 0, "new data on a stale subflow");
}

#[test]
fn a_stale_subflow_comes_back() {
    let mut pair = meshed(&upstream(), &[10 * MS, 40 * MS]);
    pair.write(Side::Client, 300_000_000);
    pair.run_for(200 * MS);
    pair.links[0].up = false;
    let failed = |pair: &Pair| {
        pair.client
            .happened(|kind| *kind == EventKind::PotentiallyFailed(0))
            > 0
    };
    let limit = pair.now + 20 * SECOND;
    assert!(pair.run_until_that(limit, failed));
    pair.links[0].up = true;
    let back = |pair: &Pair| {
        pair.client
            .happened(|kind| *kind == EventKind::Recovered(0))
            > 0
    };
    let limit = pair.now + 20 * SECOND;
    assert!(pair.run_until_that(limit, back));
    let back_at = pair.now;
    pair.run_for(SECOND);
    assert!(
        pair.data(Side::Client).any(|packet| packet.path == 0
            && packet.at > back_at
            && packet.purpose == Purpose::Data)
    );
}

#[test]
fn a_dead_subflow_schedules_everything_anew() {
    let mut pair = meshed(&upstream(), &[10 * MS, 40 * MS]);
    pair.write(Side::Client, 3_000_000);
    let in_flight = |pair: &Pair| {
        let (unacknowledged, unsent) = pair.client.connection().send_queue();
        unacknowledged - unsent
    };
    let limit = pair.now + SECOND;
    assert!(pair.run_until_that(limit, |pair| in_flight(pair) > 50_000));
    let address = pair.client.connection().subflows()[0].tuple.local.ip();
    let (una, sent) = (pair.server.read, pair.server.read + in_flight(&pair));
    let died = pair.now;
    pair.act(Side::Client, |connection, now| {
        connection.set_address_up(address, false, now)
    });
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 3_000_001);
    let scheduled = una..sent;
    let moved = sent_on(&pair, 1, died);
    let again = moved.iter().filter(|packet| packet.2);
    let first = again.map(|packet| packet.1.start).min().unwrap();
    assert!(first <= una, "{first} is beyond what was read, {una}");
    let anew = moved
        .iter()
        .filter(|packet| scheduled.contains(&packet.1.start));
    let bytes: u64 = anew.map(|packet| packet.1.end - packet.1.start).sum();
    assert!(bytes > (sent - una) / 2, "{bytes} of {}", sent - una);
    assert_reinjections(&pair);
}

#[test]
fn queues_are_filled_beyond_the_window() {
    let mut pair = meshed(&upstream(), &[50 * MS, 50 * MS]);
    pair.write(Side::Client, 1_000_000);
    let paths = pair.client.connection().paths();
    assert!(paths.iter().any(|path| path.queued > 0));
    // A fragment of 32 kB may go beyond the limit.
    assert!(paths.iter().all(|path| path.memory < path.buffer + 40_000));
}

#[test]
fn a_full_buffer_is_written_to_in_bursts() {
    let mut config = upstream();
    config.send_buffer = Buffer::from([100_000; 3]);
    let mut pair = meshed(&config, &[10 * MS, 10 * MS]);
    pair.write(Side::Client, 5_000_000);
    let mut written = vec![pair.client.connection().written()];
    // A buffer for each subflow and the smallest on top; a fragment may go beyond.
    assert!((300_000..340_000).contains(&written[0]));
    while pair.server.read < 4_000_000 {
        pair.run_for(MS);
        let now = pair.client.connection().written();
        if now != *written.last().unwrap() {
            written.push(now);
        }
    }
    let steps = written.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(steps.min().unwrap() >= 90_000, "{written:?}");
}

#[test]
fn tcp_goes_beyond_its_send_buffer_while_the_window_has_room() {
    let buffer = |size| Buffer::from([size; 3]);
    let config = Config {
        multipath: false,
        send_buffer: buffer(100_000),
        receive_buffer: buffer(4_000_000),
        ..upstream()
    };
    let mut pair = Pair::new(&config, &[50 * MS]);
    pair.write(Side::Client, 20_000_000);
    let (mut most, mut window) = (0, 0);
    for _ in 0..1_000 {
        pair.run_for(MS);
        let client = pair.client.connection();
        let (unacknowledged, unsent) = client.send_queue();
        most = most.max(unacknowledged - unsent);
        window = window.max(u64::from(client.paths()[0].cwnd) * u64::from(client.paths()[0].mss));
        // What waits beyond the window is a piece of 64 kB, or the buffer.
        assert!(unsent < 100_000 + 65_536, "{unsent}");
    }
    assert!(most > 200_000, "{most} of a window of {window}");
}

#[test]
fn small_writes_fill_the_last_segment() {
    let mut pair = meshed(&upstream(), &[50 * MS]);
    let before = pair.data(Side::Client).count();
    for bytes in [1_000, 300, 300, 2_000] {
        pair.write(Side::Client, bytes);
    }
    pair.run_for(SECOND);
    let sizes: Vec<u32> = pair
        .data(Side::Client)
        .skip(before)
        .map(|packet| packet.segment.payload.len)
        .collect();
    let mss = pair.client.connection().paths()[0].mss;
    // The first is small and alone; what follows waits for it only where it does not fill a segment (Nagle).
    assert_eq!(sizes, [1_000, mss, 2_600 - mss]);
}

#[test]
fn data_behind_a_hole_is_not_acknowledged_by_the_reader() {
    const LEN: u32 = 1000;
    let at = |index: u64| 1 + index * u64::from(LEN);
    let peer = Peer {
        mptcp: true,
        ..Peer::default()
    };
    let mut script = Script::accepted(&upstream(), peer, 20 * MS);
    let pushed = |script: &mut Script, index: u64, offset: u64| {
        let mut segment = script.mapped(at(index), offset, LEN, 1);
        segment.flags |= Flags::PSH;
        script.inject(segment);
        script.connection.read(u64::MAX, script.now);
    };
    for index in 0..60 {
        pushed(&mut script, index, at(index) - 1);
        script.run_for(MS);
    }
    script.run_for(100 * MS);
    script.drain();
    pushed(&mut script, 60, at(60) - 1);
    script.expect_ack(at(61));
    let start = script.now;
    pushed(&mut script, 61, at(70) - 1);
    script.expect_nothing();
    assert_eq!(script.expect_ack(at(62)).at, start + 40 * MS);
}

/// A window that would shrink is left to the reader, who tells it as it was (`__tcp_ack_snd_check`); behind a hole no reader comes
/// (`subflow_data_ready`).
#[test]
fn two_segments_behind_a_hole_are_acknowledged_at_once() {
    const LEN: u32 = 1000;
    let at = |index: u64| 1 + index * u64::from(LEN);
    let peer = Peer {
        mptcp: true,
        ..Peer::default()
    };
    let mut config = upstream();
    config.receive_buffer = Buffer::from([60_000; 3]);
    let mut script = Script::accepted(&config, peer, 20 * MS);
    let arrives = |script: &mut Script, index: u64, offset: u64| {
        let segment = script.mapped(at(index), offset, LEN, 1);
        script.inject(segment);
        script.connection.read(u64::MAX, script.now);
    };
    for index in 0..200 {
        arrives(&mut script, index, at(index) - 1);
        script.run_for(MS);
    }
    script.drain();
    let mut windows = Vec::new();
    for index in (200..206).step_by(2) {
        arrives(&mut script, index, at(index) - 1);
        script.expect_nothing();
        arrives(&mut script, index + 1, at(index + 1) - 1);
        windows.push(script.expect_ack(at(index + 2)).segment.window);
    }
    assert!(
        windows.iter().all(|window| *window == windows[0]),
        "{windows:?}"
    );
    for index in (206..226).step_by(2) {
        arrives(&mut script, index, at(index + 2) - 1);
        script.expect_nothing();
        arrives(&mut script, index + 1, at(index + 3) - 1);
        script.expect_ack(at(index + 2));
    }
}

#[test]
fn a_reader_who_empties_the_buffer_acknowledges_on_every_subflow() {
    let mut config = upstream();
    config.receive_buffer = Buffer::from([12_000; 3]);
    let mut pair = meshed(&config, &[10 * MS, 12 * MS]);
    pair.write(Side::Client, 300_000);
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 300_001);
    let delayed = pair.counter(Side::Server, Mib::TcpExtDelayedACKs);
    assert!(delayed < 3, "{delayed} delayed");
}

/// The option is set on each subflow (`__mptcp_setsockopt_sol_tcp_cork`); a DATA_FIN goes ahead of what waits there.
#[test]
fn a_cork_holds_the_rest_in_the_subflows_queue() {
    let config = Config {
        cork: true,
        ..upstream()
    };
    let mut pair = Pair::new(&config, &[50 * MS]);
    let limit = pair.now + SECOND;
    assert!(pair.run_until_that(limit, |pair| pair.client.connection().established()));
    let mss = pair.client.connection().paths()[0].mss;
    pair.write(Side::Client, 1_000);
    pair.run_for(50 * MS);
    pair.write(Side::Client, 1_000);
    pair.close(Side::Client);
    pair.run_for(10 * SECOND);
    let sent: Vec<(u64, u32)> = pair
        .data(Side::Client)
        .map(|packet| (packet.at, packet.segment.payload.len))
        .collect();
    let [first, rest] = sent[..] else {
        panic!("{sent:?}")
    };
    // The timer that sends the rest asks for nothing else.
    let bare = (pair.sent(Side::Client))
        .filter(|packet| packet.at == rest.0 && !packet.carries_data())
        .count();
    assert_eq!(bare, 0);
    // The first segment carries MP_CAPABLE with both keys, which is longer than a mapping.
    assert!(first.1 <= mss && first.1 + rest.1 == 2_000, "{sent:?}");
    assert!(rest.0 - first.0 >= 300 * MS, "{sent:?}");
    pair.assert_whole(Side::Server, 2_000);
}

/// Until the third ACK a join is a request, which the connection knows nothing of (`tcp_check_req`).
#[test]
fn the_data_fin_leaves_on_every_subflow() {
    for (profile, paths) in [(Profile::Linux, vec![0, 1]), (Profile::MptcpOrg, vec![0])] {
        let config = Config {
            path_manager: "fullmesh".into(),
            ..profile.config()
        };
        let mut pair = Pair::new(&config, &[10 * MS, 20 * MS]);
        pair.write(Side::Client, 1_000);
        pair.run_for(SECOND);
        assert_eq!(pair.established_subflows(), 2);
        pair.close(Side::Client);
        pair.run_for(MS);
        let finishes = |packet: &&Packet| packet.segment.dss.is_some_and(|dss| dss.data_fin);
        let sent: Vec<usize> = (pair.sent(Side::Client).filter(finishes))
            .map(|packet| packet.path)
            .collect();
        assert_eq!(sent, paths, "{profile:?}");
    }
}

#[test]
fn a_refused_join_releases_no_cork() {
    let config = Config {
        cork: true,
        ..upstream()
    };
    let mut pair = Pair::new(&config, &[10 * MS, 10 * MS]);
    pair.hook(|packet| {
        let joins = packet.path == 1 && packet.from == Side::Client;
        if joins && packet.is(Side::Client, Flags::ACK) {
            packet.segment.flags = Flags::RST;
        }
        Fate::Pass
    });
    let limit = pair.now + SECOND;
    assert!(pair.run_until_that(limit, |pair| pair.client.connection().established()));
    pair.write(Side::Client, 1);
    pair.run_for(5 * MS);
    pair.write(Side::Server, 100);
    let written = pair.now;
    pair.run_for(SECOND);
    let resets = pair
        .sent(Side::Client)
        .filter(|packet| packet.is(Side::Client, Flags::RST));
    assert!(resets.count() > 0);
    let first = pair
        .data(Side::Server)
        .next()
        .expect("the timer sends it")
        .at;
    assert!(first >= written + 200 * MS, "{first}");
}

/// Neither side opens, accepts nor completes one (`mptcp_is_fully_established`), though data still waits.
#[test]
fn joins_come_too_late_once_a_direction_is_closed() {
    for (profile, closes, subflows) in [
        (Profile::Linux, None, 2),
        (Profile::Linux, Some(Side::Client), 1),
        (Profile::Linux, Some(Side::Server), 1),
        (Profile::Rfc, Some(Side::Server), 2),
    ] {
        let config = Config {
            profile,
            ..upstream()
        };
        let links = vec![
            Link::limited(10 * MS, 1_000_000, SECOND),
            Link::new(200 * MS),
        ];
        let mut pair = Pair::with(&config, &config, links, 1, 7);
        let limit = pair.now + SECOND;
        assert!(pair.run_until_that(limit, |pair| pair.client.connection().established()));
        pair.write(Side::Client, 1);
        pair.run_for(50 * MS);
        pair.write(Side::Server, 100_000);
        pair.write(Side::Client, 10_000);
        if let Some(side) = closes {
            pair.close(side);
        }
        pair.run_for(900 * MS);
        assert_eq!(
            pair.established_subflows(),
            subflows,
            "{profile:?}, {closes:?}"
        );
        pair.run_for(10 * SECOND);
        pair.assert_whole(Side::Client, 100_000);
        pair.assert_whole(Side::Server, 10_001);
    }
}

/// `tcp_check_req` is done with an MP_JOIN before it measures; a timestamp tells all the same.
#[test]
fn a_join_is_not_timed_without_timestamps() {
    for timestamps in [false, true] {
        let config = Config {
            timestamps,
            ..upstream()
        };
        let mut pair = meshed(&config, &[10 * MS, 10 * MS]);
        let srtts = |side, pair: &mut Pair| {
            let paths = pair.connection(side).paths();
            paths.iter().map(|path| path.srtt / MS).collect::<Vec<_>>()
        };
        assert_eq!(srtts(Side::Client, &mut pair), [20, 20]);
        let expected = if timestamps { [20, 20] } else { [20, 0] };
        assert_eq!(srtts(Side::Server, &mut pair), expected);
    }
}

/// `mptcp_pm_create_subflow_or_signal_addr`: the next one when the last was echoed, or another subflow is there; not for want of an echo
/// until the last repetition.
#[test]
fn addresses_are_announced_one_after_the_other() {
    let announced = |pair: &Pair| {
        let mut ids = Vec::new();
        for packet in pair.sent(Side::Server) {
            for option in packet.options() {
                if let MptcpOption::AddAddr {
                    echo: false,
                    address_id,
                    ..
                } = option
                {
                    ids.push((*address_id, packet.at));
                }
            }
        }
        ids
    };
    for (echoes, profile) in [
        (true, Profile::Linux),
        (false, Profile::Linux),
        (true, Profile::Rfc),
    ] {
        let config = Config {
            profile,
            path_manager: "default".into(),
            ..upstream()
        };
        let server = Config {
            path_manager: "fullmesh".into(),
            ..config.clone()
        };
        let mut pair = Pair::with(&config, &server, vec![Link::new(10 * MS)], 3, 7);
        pair.hook(move |packet| {
            let echo =
                |option: &MptcpOption| matches!(option, MptcpOption::AddAddr { echo: true, .. });
            if !echoes && packet.options().iter().any(echo) {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.write(Side::Client, 1);
        pair.run_for(60 * SECOND);
        let sent = announced(&pair);
        let first_of = |id: u8| {
            sent.iter()
                .find(|it| it.0 == id)
                .unwrap_or_else(|| panic!("{profile:?}, {echoes}: {sent:?}"))
                .1
        };
        let apart = first_of(3) - first_of(2);
        match (profile, echoes) {
            (Profile::Linux, true) => assert_eq!(apart, 20 * MS),
            (Profile::Linux, false) => {
                let last = sent.iter().filter(|it| it.0 == 2).map(|it| it.1).max();
                assert!(Some(first_of(3)) >= last, "{sent:?}");
            }
            _ => assert_eq!(apart, 0),
        }
    }
}

#[test]
fn other_subflows_and_writers_wait_for_an_instants_packets() {
    let buffer = 131_072;
    let config = Config {
        send_buffer: Buffer::from([buffer; 3]),
        ..upstream()
    };
    let mut pair = meshed(&config, &[20 * MS, 20 * MS]);
    pair.together = true;
    pair.write(Side::Client, 10_000_000);
    pair.run_for(5 * SECOND);
    pair.assert_whole(Side::Server, 10_000_001);
    let (mut several, mut delegated, mut written) = (0, 0, 0);
    let of_client: Vec<_> = (pair.steps.iter().filter(|it| it.side == Side::Client)).collect();
    for pieces in of_client.windows(2) {
        let (before, step) = (pieces[0], pieces[1]);
        let Some(heard) = step.heard else {
            delegated += usize::from(step.sent.iter().any(|&it| Some(it) != before.heard));
            written += step.written;
            continue;
        };
        several += usize::from(before.heard.is_some());
        assert!(step.sent.iter().all(|&it| it == heard), "{step:?}");
        assert_eq!(step.written, 0, "{step:?}");
    }
    assert!(several > 500, "{several} packets came together with others");
    assert!(delegated > 20, "another subflow sent {delegated} times");
    assert!(written > 9_000_000, "{written} bytes were written then");
}

/// A join says nothing of the stream (Linux `check_fully_established`, `ack_update_msk`).
#[test]
fn the_fourth_ack_of_a_join_leaves_alone() {
    let mut pair = Pair::new(&upstream(), &[40 * MS, 10 * MS]);
    pair.write(Side::Client, 1);
    pair.run_for(130 * MS);
    pair.write(Side::Server, 2_000_000);
    pair.run_for(SECOND);
    let third = pair.sent(Side::Client).find(|packet| {
        let confirms =
            |option: &MptcpOption| matches!(option, MptcpOption::Join(MpJoin::Ack { .. }));
        packet.options().iter().any(confirms)
    });
    let (at, path) = third.map(|it| (it.at + 10 * MS, it.path)).expect("a join");
    let answers = pair.sent(Side::Server).filter(|it| it.path == path);
    let first = answers
        .filter(|it| it.at >= at)
        .map(|it| it.at == at && !it.carries_data());
    assert_eq!(first.take(1).collect::<Vec<_>>(), [true]);
    let mut data = pair.data(Side::Server).filter(|it| it.path == path);
    assert!(data.next().is_some_and(|it| it.at > at));
}

/// Linux `__mptcp_close_ssk`, `__mptcp_push_pending`.
#[test]
fn a_subflow_that_ends_next_takes_over() {
    let mut pair = meshed(&upstream(), &[40 * MS, 10 * MS]);
    pair.links[0].up = false;
    pair.write(Side::Server, 200_000);
    pair.run_for(200 * MS);
    let (own, left) = (server_address(0), pair.now);
    pair.act(Side::Server, |connection, now| {
        connection.set_address_up(own, false, now)
    });
    let anew = pair.data(Side::Server).filter(|it| it.at == left);
    let anew: Vec<_> = anew.map(|it| (it.path, it.purpose)).collect();
    assert!(anew.contains(&(1, Purpose::Reinjection)), "{anew:?}");
}

/// Linux `mptcp_pm_rm_addr_recv` runs in the worker, where `__mptcp_push_pending` gives data to any subflow.
#[test]
fn a_subflow_that_is_withdrawn_next_takes_over() {
    let mut pair = meshed(&upstream(), &[40 * MS, 20 * MS, 10 * MS]);
    let of = |pair: &Pair, index: usize| {
        let own = client_address(index);
        let subflows = pair.client.connection().subflows();
        let place = subflows
            .iter()
            .position(|it| it.tuple.local.ip() == own)
            .expect("it is there");
        subflows[place].local_id
    };
    let ids = vec![of(&pair, 1), of(&pair, 2)];
    pair.links[1].up = false;
    pair.write(Side::Server, 200_000);
    pair.run_for(200 * MS);
    pair.hook(move |packet| {
        if packet.from == Side::Client && !packet.options().is_empty() {
            for option in &mut packet.segment.rare_mut().mptcp {
                if let MptcpOption::RemoveAddr { address_ids } = option {
                    address_ids.clone_from(&ids);
                }
            }
        }
        Fate::Pass
    });
    pair.act(Side::Client, |connection, now| {
        connection.set_address_up(client_address(1), false, now)
    });
    let removed = |pair: &Pair| pair.counter(Side::Server, Mib::MPTcpExtRmAddr) == 2;
    let limit = pair.now + SECOND;
    assert!(pair.run_until_that(limit, removed));
    let left = pair.now;
    let anew = pair.data(Side::Server).filter(|it| it.at == left);
    let anew: Vec<_> = anew.map(|it| (it.path, it.purpose)).collect();
    assert!(anew.contains(&(2, Purpose::Reinjection)), "{anew:?}");
}

/// Linux `__mptcp_sync_sndbuf` goes through the connection's list, which a subflow leaves in `__mptcp_close_ssk`.
#[test]
fn a_subflow_that_was_left_has_no_part_in_the_buffer() {
    let mut pair = Pair::with(
        &upstream(),
        &upstream(),
        vec![Link::limited(10 * MS, 10_000_000, 2 * SECOND); 2],
        1,
        7,
    );
    pair.write(Side::Client, 40_000_000);
    pair.run_for(5 * SECOND);
    let own = client_address(1);
    pair.links[1].up = false;
    pair.act(Side::Client, |connection, now| {
        connection.set_address_up(own, false, now)
    });
    let buffer = |pair: &Pair| pair.client.connection().buffers().0;
    pair.run_for(100 * MS);
    let left = buffer(&pair);
    // The socket that was left hears of what it sent.
    pair.links[1].up = true;
    pair.act(Side::Client, |connection, now| {
        connection.set_address_up(own, true, now)
    });
    pair.run_for(2 * SECOND);
    assert!(buffer(&pair) > left);
    let parts = pair.client.connection().paths().iter();
    let subflows = pair.client.connection().subflows().iter();
    let open = parts.zip(subflows).filter(|(_, it)| it.closed_at.is_none());
    let sum: u64 = open.map(|(path, _)| path.buffer).sum();
    assert!(buffer(&pair) <= sum + 4_096, "{} for {sum}", buffer(&pair));
}

/// Linux `mptcp_close_ssk` does not ask who carried what.
#[test]
fn a_servers_failed_attempt_schedules_everything_anew() {
    let mut server = upstream();
    server.limits.syn_retries = 1;
    server.path_manager.name = "scripted".into();
    let open = format!("500 ms open {} {}", server_address(1), client_address(0));
    let parameters = serde_json::json!({ "steps": [open] });
    server.path_manager.parameters = parameters.as_object().expect("a table").clone();
    let link = Link::limited(100 * MS, 20_000_000, SECOND);
    let mut pair = Pair::with(&upstream(), &server, vec![link], 2, 7);
    pair.hook(|packet| {
        let attempt = packet.from == Side::Server && packet.segment.flags == Flags::SYN;
        if attempt { Fate::Drop } else { Fate::Pass }
    });
    pair.write(Side::Client, 1);
    pair.run_for(400 * MS);
    pair.write(Side::Server, 40_000_000);
    pair.run_for(30 * SECOND);
    let ended = |kind: &EventKind| *kind == EventKind::SubflowClosed(1);
    assert_eq!(pair.server.happened(ended), 1);
    let again = |kind: &EventKind| matches!(kind, EventKind::Reinjection { .. });
    assert_eq!(pair.server.happened(again), 1);
}

/// The scheduler asks for the timers of subflows that can send (Linux `mptcp_subflow_get_send`).
#[test]
fn an_unanswered_join_delays_no_repetition() {
    let mut pair = Pair::new(&upstream(), &[10 * MS, 40 * MS, 10 * MS]);
    pair.links[2].up = false;
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    assert_eq!(pair.established_subflows(), 2);
    pair.links[0].up = false;
    let died = pair.now;
    pair.write(Side::Client, 10_000);
    pair.run_for(SECOND);
    let again = sent_on(&pair, 1, died);
    assert!(
        again[0].0 <= died + 400 * MS,
        "{} ms",
        (again[0].0 - died) / MS
    );
}

/// Linux `tcp_v4_connect`, `mptcp_connect`.
#[test]
fn a_connection_without_a_route_ends_at_once() {
    let accept = host(&upstream(), vec![client_address(0)], 1);
    let connection =
        connect_without_route(accept, first_tuple(), SECOND).expect("known algorithms");
    assert_eq!(connection.ended(), Some(CloseReason::Unreachable));
    assert_eq!(connection.counters().value(Mib::MPTcpExtMPCapableSYNTX), 1);
    assert_eq!(connection.counters().value(Mib::TcpActiveOpens), 0);
}
