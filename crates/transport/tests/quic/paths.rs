//! Several paths: RFC 10069.

use polypath_transport::quic::{Codepoint, Transmit};
use polypath_transport::settings::AckPath;
use polypath_transport::{Algorithms, Choice, Config, EventKind, MILLISECOND as MS, Nanos, SECOND};
use polypath_wire::quic::Frame;

use crate::common::{client_address, server_address};
use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

fn two(client: &Config, server: &Config) -> Pair {
    let links = vec![link(10 * MBPS, 20 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(client, server, links, 1);
    pair.establish();
    pair.run_until(SECOND, |pair| {
        let server = pair.server();
        server.members().len() == 2 && server.members()[1].established_at().is_some()
    });
    pair
}

#[test]
fn a_second_path_is_validated_and_used() {
    let mut pair = two(&multipath(), &multipath());
    assert!(pair.client.multipath());
    let server = pair.server();
    assert_eq!(server.members().len(), 2);
    assert!(server.members()[1].established_at().is_some());
    let began = pair.now;
    let now = pair.now;
    pair.client.write(5_000_000, now);
    pair.run_until(20 * SECOND, |pair| pair.read[1] == 5_000_000);
    let goodput = 5_000_000 * 8 * 1000 / ((pair.now - began) / MS);
    assert!(
        (17_000_000..19_500_000).contains(&goodput),
        "{goodput} bit/s"
    );
}

#[test]
fn each_scheduler_delivers_everything() {
    for name in polypath_transport::scheduler::REGISTRY.names() {
        let config = Config {
            scheduler: name.into(),
            ..multipath()
        };
        let made = Algorithms::default().scheduler(&config);
        if made.expect("it exists").fills_queues() {
            continue;
        }
        let mut pair = two(&config, &config);
        let now = pair.now;
        pair.client.write(1_000_000, now);
        pair.run_until(30 * SECOND, |pair| pair.read[1] == 1_000_000);
        assert_eq!(pair.read[1], 1_000_000, "{name}");
    }
}

#[test]
fn each_congestion_control_fills_two_paths() {
    for name in polypath_transport::congestion::REGISTRY.names() {
        let config = Config {
            congestion: name.into(),
            ..multipath()
        };
        let mut pair = two(&config, &config);
        let (began, now) = (pair.now, pair.now);
        pair.client.write(5_000_000, now);
        pair.run_until(60 * SECOND, |pair| pair.read[1] == 5_000_000);
        assert_eq!(pair.read[1], 5_000_000, "{name}");
        let goodput = 5_000_000 * 8 * 1000 / ((pair.now - began) / MS);
        assert!(goodput > 8_000_000, "{name}: {goodput} bit/s");
    }
}

#[test]
fn a_peer_without_multipath_has_one_path() {
    let links = vec![link(10 * MBPS, 20 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&multipath(), &quic(), links, 1);
    pair.establish();
    pair.run_until(2 * SECOND, |_| false);
    assert!(!pair.client.multipath());
    assert_eq!(pair.client.members().len(), 1);
}

#[test]
fn what_a_dead_path_carried_goes_on_the_other() {
    let mut pair = two(&multipath(), &multipath());
    let now = pair.now;
    pair.client.write(3_000_000, now);
    let dies = now + 300 * MS;
    pair.fate = Box::new(move |_, link, now, _| {
        if link == 0 && now >= dies {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_until(20 * SECOND, |pair| pair.read[1] == 3_000_000);
    assert_eq!(pair.read[1], 3_000_000);
    assert!(pair.now - now < 6 * SECOND, "{} ms", (pair.now - now) / MS);
    let events = pair.client.events();
    let failed = events
        .iter()
        .any(|event| matches!(event.kind, EventKind::PotentiallyFailed(0)));
    assert!(failed);
}

#[test]
fn an_address_that_goes_is_abandoned_and_one_that_comes_back_gets_another_id() {
    let mut pair = two(&multipath(), &multipath());
    let now = pair.now;
    pair.client.write(2_000_000, now);
    pair.client.set_address_up(client_address(0), false, now);
    pair.run_until(now + 200 * MS, |_| false);
    let server = pair.server();
    assert!(server.members()[0].closed());
    let told = pair.sent.iter().any(|(_, side, link, transmit)| {
        let mut frames = transmit
            .datagram
            .packets
            .iter()
            .flat_map(|packet| &packet.frames);
        *side == Side::Client
            && *link == 1
            && frames.any(|frame| matches!(frame, Frame::PathAbandon { path: 0, .. }))
    });
    assert!(told, "PATH_ABANDON goes on another path");
    let now = pair.now;
    pair.client.set_address_up(client_address(0), true, now);
    pair.run_until(20 * SECOND, |pair| pair.read[1] == 2_000_000);
    assert_eq!(pair.read[1], 2_000_000);
    let ids: Vec<u64> = pair
        .client
        .members()
        .iter()
        .map(|member| member.id())
        .collect();
    assert_eq!(ids, [0, 1, 2]);
    assert!(pair.client.members()[2].established_at().is_some());
}

/// RFC 10069 section 4.3: a backup is for when no other path is usable.
#[test]
fn copies_of_datagrams_go_where_data_may_go() {
    let config = Config {
        scheduler: "redundant".into(),
        ..multipath()
    };
    let copies = |pair: &mut Pair| {
        pair.sent.clear();
        let now = pair.now;
        for _ in 0..5 {
            assert!(pair.client.send_datagram(900, now));
        }
        pair.run_until(now + 200 * MS, |_| false);
        let second = pair
            .sent
            .iter()
            .filter(|(_, side, link, _)| (*side, *link) == (Side::Client, 1));
        let frames = second
            .flat_map(|(.., transmit)| &transmit.datagram.packets)
            .flat_map(|packet| &packet.frames);
        frames
            .filter(|frame| matches!(frame, Frame::Datagram { .. }))
            .count()
    };
    let mut pair = two(&config, &config);
    assert_eq!(copies(&mut pair), 5);
    let now = pair.now;
    pair.client.set_backup(client_address(1), true, now);
    assert_eq!(copies(&mut pair), 0);
    let now = pair.now;
    pair.client.set_backup(client_address(1), false, now);
    pair.fate = Box::new(|_, link, _, _| if link == 1 { Fate::Drop } else { Fate::Pass });
    pair.client.write(100_000, now);
    pair.run_until(now + 3 * SECOND, |_| false);
    assert!(pair.client.paths()[1].potentially_failed);
    assert_eq!(copies(&mut pair), 0);
}

#[test]
fn a_backup_carries_nothing_while_another_works() {
    let mut pair = two(&multipath(), &multipath());
    let now = pair.now;
    pair.client.set_backup(client_address(1), true, now);
    pair.run_until(now + 100 * MS, |_| false);
    assert!(
        pair.server().paths()[1].backup,
        "PATH_STATUS_BACKUP arrived"
    );
    let now = pair.now;
    pair.server_mut().write(1_000_000, now);
    pair.run_until(20 * SECOND, |pair| pair.read[0] == 1_000_000);
    let server = pair.server();
    assert_eq!(server.members()[1].totals().sent, 0);
}

#[test]
fn more_paths_than_ids_are_asked_for() {
    let config = Config {
        path_manager: polypath_transport::Choice {
            name: "ndiffports".into(),
            parameters: [("num_subflows".to_string(), 12.into())]
                .into_iter()
                .collect(),
        },
        ..multipath()
    };
    let mut pair = Pair::new(&config, &config, vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    pair.run_until(3 * SECOND, |_| false);
    let open = pair
        .client
        .members()
        .iter()
        .filter(|member| member.established_at().is_some())
        .count();
    assert_eq!(open, 12);
}

fn has_response(transmit: &polypath_transport::quic::Transmit) -> bool {
    let packets = transmit.datagram.packets.iter();
    let mut frames = packets.flat_map(|packet| &packet.frames);
    frames.any(|frame| matches!(frame, Frame::PathResponse(_)))
}

#[test]
fn an_address_that_goes_keeps_its_paths_while_no_other_carries_data() {
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1);
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    let now = pair.now;
    let server = pair.server_mut();
    // Both paths end at its one address.
    server.set_address_up(server_address(0), false, now);
    assert!(server.members().iter().all(|member| !member.closed()));
    server.set_address_up(server_address(0), true, now);
    server.write(100_000, now);
    pair.run_until(now + SECOND, |pair| pair.read[0] == 100_000);
    assert_eq!(pair.read[0], 100_000);
}

#[test]
fn the_last_path_is_challenged_until_the_idle_timeout() {
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1);
    // The server does not hear the answer to its challenge on the second path for two seconds.
    pair.fate = Box::new(|side, link, at, transmit| {
        let answer = side == Side::Client && link == 1 && has_response(transmit);
        if answer && at < 2 * SECOND {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.establish();
    pair.run_until(150 * MS, |_| false);
    let now = pair.now;
    assert_eq!(pair.client.members()[1].state_name(), "established");
    pair.client.set_address_up(client_address(0), false, now);
    pair.client.write(100_000, now);
    pair.run_until(4 * SECOND, |_| false);
    assert_eq!(pair.read[1], 100_000);
    let server = pair.server();
    assert_eq!(server.ended(), None);
    assert!(server.members()[1].validated());
}

#[test]
fn limits_told_on_a_path_that_went_dark_are_told_again_on_another() {
    let mut server = multipath();
    server.receive_buffer.default = 200_000;
    server.receive_buffer.maximum = 200_000;
    // The receiver prefers the first path, and sends nothing else on it that would be missed.
    let links = vec![link(10 * MBPS, 5 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&multipath(), &server, links, 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(3_000_000, now);
    pair.fate = Box::new(move |_, path, at, _| {
        if path == 0 && at > now + 500 * MS {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_until(now + 20 * SECOND, |pair| pair.read[1] == 3_000_000);
    assert_eq!(pair.read[1], 3_000_000);
}

/// RFC 9000 section 8.2.3: any challenge that was sent may be answered.
#[test]
fn the_answer_to_the_first_of_two_challenges_validates_a_path() {
    let links = vec![link(10 * MBPS, 20 * MS), link(0, 1300 * MS)];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1);
    pair.establish();
    pair.run_until(10 * SECOND, |pair| {
        let members = pair.client.members();
        members.len() == 2 && members[1].established_at().is_some()
    });
    let mut sent = pair.sent.iter();
    let first = sent.find(|(_, _, link, _)| *link == 1).expect("it is sent");
    assert_eq!(pair.now, first.0 + 2600 * MS);
}

/// RFC 9000 section 8.2.1. The acknowledgement of the challenge comes another way.
#[test]
fn a_challenge_whose_answer_was_lost_is_repeated() {
    let config = Config {
        ack_path: AckPath::Fastest,
        ..multipath()
    };
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&config, &config, links, 1);
    let mut lost = false;
    pair.fate = Box::new(move |side, link, _, _| {
        let first = side == Side::Server && link == 1 && !std::mem::replace(&mut lost, true);
        if first { Fate::Drop } else { Fate::Pass }
    });
    pair.establish();
    pair.run_until(5 * SECOND, |_| false);
    let path = &pair.client.members()[1];
    assert!(path.established_at().is_some() && !path.closed());
}

/// RFC 10069 section 4.3: it may come before or while a path is opened.
#[test]
fn the_status_of_a_path_may_come_before_its_first_packet() {
    let links = vec![link(10 * MBPS, 20 * MS), link(0, 200 * MS)];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1);
    pair.establish();
    pair.run_until(SECOND, |pair| pair.client.members().len() == 2);
    let now = pair.now;
    pair.client.write(10, now);
    let sent = std::mem::take(pair.client.transmits());
    let at = sent.iter().position(|sent| sent.path == 0);
    let mut status = sent[at.expect("it may send")].clone();
    status.datagram.packets[0].frames = vec![
        Frame::PathStatus {
            path: 1,
            sequence: 3,
            backup: true,
        },
        Frame::PathStatus {
            path: 1,
            sequence: 2,
            backup: false,
        },
    ];
    pair.client
        .transmits()
        .extend(sent.into_iter().filter(|sent| sent.path == 1));
    let server = pair.server_mut();
    assert_eq!(server.members().len(), 1);
    let tuple = crate::common::reversed(status.tuple);
    server.on_datagram(tuple, &status.datagram, 1200, Codepoint::NotEct, now);
    pair.run_until(now + 3 * SECOND, |_| false);
    let server = pair.server();
    assert!(server.members()[1].established_at().is_some());
    assert!(server.paths()[1].backup);
}

/// Requests that the fast path's window has room for do not take the slow one while the fast one's pacer waits.
#[test]
fn small_answers_take_the_fast_path_alone() {
    let slow_share = |waits: Option<bool>| {
        let parameters = waits.map(|waits| ("waits_for_pacer".to_string(), waits.into()));
        let server = Config {
            scheduler: Choice {
                name: "default".into(),
                parameters: parameters.into_iter().collect(),
            },
            ..multipath()
        };
        let links = vec![link(0, 20 * MS), link(0, 40 * MS)];
        let mut pair = Pair::new(&multipath(), &server, links, 1);
        pair.establish();
        pair.run_until(SECOND, |_| false);
        pair.sent.clear();
        for _ in 0..10 {
            let now = pair.now;
            pair.server_mut().write(10_000, now);
            pair.run_until(now + 300 * MS, |_| false);
        }
        assert_eq!(pair.read[0], 100_000);
        let full = |(_, side, link, transmit): &&(Nanos, Side, usize, Transmit)| {
            *side == Side::Server && *link == 1 && transmit.len > 1000
        };
        pair.sent.iter().filter(full).count()
    };
    assert_eq!((slow_share(None), slow_share(Some(true))), (0, 0));
    assert!(slow_share(Some(false)) > 10);
}
