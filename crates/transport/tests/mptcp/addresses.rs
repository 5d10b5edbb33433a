//! Addresses and priorities (RFC 8684 sections 3.3.8 and 3.4).
//!
//! | rule | test |
//! |---|---|
//! | ADD_ADDR with HMAC, echo | `an_announced_address_is_authenticated_echoed_and_joined` |
//! | upstream: no DSS beside it | `announcements_and_echoes_stand_alone_upstream` |
//! | repetition without echo | `an_announcement_is_repeated_until_its_echo` |
//! | a wrong HMAC | `an_announcement_with_a_wrong_hmac_is_dropped` |
//! | option space | `options_fit_and_acks_stay_whole`, `an_echo_leaves_less_room_to_sack` |
//! | REMOVE_ADDR | `a_removed_address_closes_its_subflows`, `upstream_ends_the_subflows_of_a_removed_address_by_fins`, `an_address_that_returns_is_joined_again`, `an_address_that_is_announced_again_is_joined_again`, `a_flush_withdraws_what_was_announced_and_ends_the_subflows_of_endpoints`, `the_address_that_a_connection_began_with_goes_and_returns` |
//! | upstream: what waits, who leaves | `an_announcement_without_a_subflow_rides_on_an_acknowledgement`, `a_fin_takes_with_it_what_nagle_holds`, `a_subflow_that_the_peer_finishes_is_left_at_once` |
//! | a script's times | `a_script_opens_closes_announces_and_withdraws_at_its_times` |
//! | MP_PRIO and backups | `mp_prio_moves_the_traffic`, `a_backup_carries_data_only_when_the_others_failed` |

use std::net::IpAddr;

use polypath_transport::{Choice, Config, Connection, EventKind, Mib, Profile};
use polypath_wire::mptcp::MptcpOption;
use polypath_wire::tcp::Flags;

use crate::common::pair::Packet;
use crate::common::script::{PEER_KEY, Peer, Script, hmac};
use crate::common::{
    Fate, Link, MS, Pair, SECOND, Side, client_address, mptcp, server_address, with_profile,
};
use crate::meshed;

/// One client address, two of the server.
fn two_servers() -> Pair {
    let config = mptcp();
    Pair::with(&config, &config, vec![Link::new(10 * MS)], 2, 7)
}

fn announcements(pair: &Pair) -> Vec<(u8, IpAddr, u64)> {
    pair.sent(Side::Server)
        .flat_map(|packet| packet.options().to_vec())
        .filter_map(|option| match option {
            MptcpOption::AddAddr {
                echo: false,
                address_id,
                address,
                hmac,
                ..
            } => Some((
                address_id,
                address,
                hmac.expect("an HMAC unless it is an echo"),
            )),
            _ => None,
        })
        .collect()
}

#[test]
fn an_announced_address_is_authenticated_echoed_and_joined() {
    let mut pair = two_servers();
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    let (id, address, given) = announcements(&pair)[0];
    assert_eq!(address, server_address(1));
    let third = pair
        .log
        .iter()
        .flat_map(|packet| packet.options())
        .find_map(|option| match option {
            MptcpOption::Capable(capable) => capable.sender_key.zip(capable.receiver_key),
            _ => None,
        });
    let (client_key, server_key) = third.expect("both keys");
    let IpAddr::V4(v4) = address else {
        panic!("{address}")
    };
    let message = [&[id][..], &v4.octets(), &[0, 0]].concat();
    let expected = hmac(
        &[server_key.to_be_bytes(), client_key.to_be_bytes()].concat(),
        &message,
    );
    assert_eq!(given.to_be_bytes(), expected[24..]);
    let echo = pair
        .sent(Side::Client)
        .flat_map(|packet| packet.options())
        .find_map(|option| match option {
            MptcpOption::AddAddr {
                echo: true,
                address_id,
                hmac,
                ..
            } => Some((*address_id, *hmac)),
            _ => None,
        });
    assert_eq!(echo, Some((id, None)));
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtEchoAdd), 1);
    assert_eq!(pair.established_subflows(), 2);
    assert_eq!(
        pair.client.connection().subflows()[1].tuple.remote.ip(),
        server_address(1)
    );
}

/// Linux `mptcp_established_options_add_addr` drops the other options of MPTCP.
#[test]
fn announcements_and_echoes_stand_alone_upstream() {
    for (profile, alone) in [(Profile::Linux, true), (Profile::Rfc, false)] {
        let config = with_profile(profile, mptcp());
        let mut pair = Pair::with(&config, &config, vec![Link::new(10 * MS)], 2, 7);
        pair.write(Side::Client, 1);
        pair.run_for(SECOND);
        let tells = |option: &MptcpOption| matches!(option, MptcpOption::AddAddr { .. });
        let told = pair.log.iter().filter(|it| it.options().iter().any(tells));
        let beside: Vec<bool> = told.map(|it| it.segment.dss.is_some()).collect();
        assert!(beside.len() >= 2);
        assert_eq!(!beside.contains(&true), alone, "{profile:?}");
    }
}

#[test]
fn an_announcement_that_is_never_echoed_is_repeated_three_times() {
    let mut pair = two_servers();
    pair.hook(|packet| {
        let echo = |option: &MptcpOption| matches!(option, MptcpOption::AddAddr { echo: true, .. });
        if packet.options().iter().any(echo) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.write(Side::Client, 1);
    pair.run_for(600 * SECOND);
    assert_eq!(announcements(&pair).len(), 4);
}

#[test]
fn an_announcement_is_repeated_until_its_echo() {
    let mut pair = two_servers();
    let mut echoes = 0;
    pair.hook(move |packet| {
        let echo = packet
            .options()
            .iter()
            .any(|option| matches!(option, MptcpOption::AddAddr { echo: true, .. }));
        echoes += u32::from(echo);
        if echo && echoes <= 2 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.write(Side::Client, 1);
    pair.run_for(60 * SECOND);
    assert_eq!(announcements(&pair).len(), 3);
    assert_eq!(pair.established_subflows(), 2);
}

#[test]
fn an_announcement_with_a_wrong_hmac_is_dropped() {
    let mut pair = two_servers();
    pair.hook(|packet| {
        if let Some(rare) = &mut packet.segment.rare {
            for option in &mut rare.mptcp {
                if let MptcpOption::AddAddr {
                    hmac: Some(hmac), ..
                } = option
                {
                    *hmac ^= 1 << 63;
                }
            }
        }
        Fate::Pass
    });
    pair.write(Side::Client, 1);
    pair.run_for(5 * SECOND);
    assert!(pair.counter(Side::Client, Mib::MPTcpExtAddAddrDrop) > 0);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtAddAddr), 0);
    assert_eq!(pair.client.connection().subflows().len(), 1);
    assert!(pair.client.connection().multipath());
}

/// Whatever options share a header, they never exceed its 40 bytes, and what an ACK acknowledges it acknowledges on both levels.
#[test]
fn options_fit_and_acks_stay_whole() {
    let mut pair = two_servers();
    pair.write(Side::Client, 300_000);
    pair.write(Side::Client, 300_000);
    let mut count = 0;
    pair.hook(move |packet| {
        count += u32::from(packet.carries_data());
        if packet.carries_data() && count % 13 == 0 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_for(30 * SECOND);
    pair.assert_whole(Side::Server, 600_000);
    assert_eq!(pair.client.connection().send_queue(), (0, 0));
    for packet in &pair.log {
        assert!(
            polypath_wire::tcp::options_len(&packet.segment) <= 40,
            "{packet:?}"
        );
    }
}

#[test]
fn a_removed_address_closes_its_subflows() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    pair.write(Side::Client, 2_000_000);
    pair.run_for(100 * MS);
    pair.act(Side::Client, |connection, now| {
        connection.set_address_up(client_address(1), false, now)
    });
    pair.links[1].up = false;
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 2_000_001);
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtRmAddr), 1);
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtRmSubflow), 0);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtRmSubflow), 1);
    assert_eq!(
        pair.server.connection().subflows()[1]
            .socket()
            .state()
            .name(),
        "closed"
    );
    assert!(pair.server.connection().multipath());
}

#[test]
fn an_address_that_returns_is_joined_again() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    for address in [0, 1] {
        pair.act(Side::Client, |connection, now| {
            connection.set_address_up(client_address(address), false, now)
        });
        pair.run_for(SECOND);
        pair.act(Side::Client, |connection, now| {
            connection.set_address_up(client_address(address), true, now)
        });
        pair.run_for(SECOND);
        assert_eq!(pair.established_subflows(), 2, "address {address}");
        let before = pair.server.read;
        pair.write(Side::Client, 300_000);
        pair.run_for(10 * SECOND);
        pair.assert_whole(Side::Server, before + 300_000);
    }
}

fn endpoints(flags: &str) -> Config {
    Config {
        path_manager: Choice {
            name: "endpoints".into(),
            parameters: [
                ("flags".to_string(), flags.into()),
                ("add_addr_accepted".to_string(), 1.into()),
            ]
            .into_iter()
            .collect(),
        },
        ..mptcp()
    }
}

/// RFC 8684 section 3.4.2 has both hosts reset; Linux `mptcp_pm_rm_addr_or_subflow` closes on both sides.
#[test]
fn upstream_ends_the_subflows_of_a_removed_address_by_fins() {
    let upstream = with_profile(Profile::Linux, endpoints("subflow"));
    let links = vec![Link::new(10 * MS), Link::new(20 * MS)];
    let mut pair = Pair::with(&upstream, &upstream, links, 1, 7);
    pair.write(Side::Client, 2_000_000);
    pair.run_for(200 * MS);
    assert_eq!(pair.established_subflows(), 2);
    pair.act(Side::Client, |connection, now| {
        connection.set_address_up(client_address(1), false, now)
    });
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 2_000_000);
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.counter(side, Mib::MPTcpExtMPRstTx), 0);
        let finished =
            |packet: &&Packet| packet.path == 1 && packet.segment.flags.contains(Flags::FIN);
        assert_eq!(pair.sent(side).filter(finished).count(), 1);
    }
    assert!(pair.server.connection().multipath());
}

/// Linux `mptcp_pm_flush_addrs_and_subflows`: one removal of all that were announced; subflows end from any endpoint, the first one's, too.
#[test]
fn a_flush_withdraws_what_was_announced_and_ends_the_subflows_of_endpoints() {
    for (flags, told) in [("signal", 1), ("subflow", 0)] {
        let upstream = |flags: &str| with_profile(Profile::Linux, endpoints(flags));
        let (client, server) = match flags {
            "signal" => (upstream("none"), upstream(flags)),
            _ => (upstream(flags), upstream("none")),
        };
        let links = vec![Link::new(10 * MS), Link::new(20 * MS)];
        let mut pair = Pair::with(&client, &server, links, 2, 7);
        let (side, other, own) = match flags {
            "signal" => (Side::Server, Side::Client, server_address(1)),
            _ => (Side::Client, Side::Server, client_address(1)),
        };
        pair.write(Side::Client, 2_000_000);
        pair.run_for(200 * MS);
        assert_eq!(pair.established_subflows(), 2, "{flags}");
        pair.act(side, |connection, now| {
            connection.flush_endpoints(&[own], now)
        });
        pair.run_for(20 * SECOND);
        pair.assert_whole(Side::Server, 2_000_000);
        assert_eq!(pair.counter(side, Mib::MPTcpExtRmSubflow), 1);
        assert_eq!(pair.counter(side, Mib::MPTcpExtRmAddrTx), told, "{flags}");
        assert_eq!(pair.counter(other, Mib::MPTcpExtRmAddr), told, "{flags}");
    }
}

/// mptcp.org `mptcp_v4_rem_raddress` clears whichever address; Linux `mptcp_pm_create_subflow_or_signal_addr` announces the first by id 0.
#[test]
fn the_address_that_a_connection_began_with_goes_and_returns() {
    for (client, server) in [(mptcp(), mptcp()), (endpoints("none"), endpoints("signal"))] {
        let mut pair = Pair::with(&client, &server, vec![Link::new(10 * MS)], 2, 7);
        pair.write(Side::Client, 1);
        pair.run_for(SECOND);
        assert_eq!(pair.established_subflows(), 2);
        let asked = |pair: &Pair| {
            let asks = |packet: &&Packet| packet.segment.flags.contains(Flags::SYN);
            pair.sent(Side::Client).filter(asks).count()
        };
        let before = asked(&pair);
        pair.act(Side::Server, |connection, now| {
            connection.set_address_up(server_address(0), false, now)
        });
        pair.run_for(5 * SECOND);
        assert_eq!(asked(&pair), before, "nobody is there");
        assert_eq!(pair.established_subflows(), 1);
        pair.act(Side::Server, |connection, now| {
            connection.set_address_up(server_address(0), true, now)
        });
        pair.run_for(SECOND);
        let (id, address, _) = *announcements(&pair).last().expect("it is back");
        assert_eq!((id, address), (0, server_address(0)));
        assert_eq!(pair.established_subflows(), 2);
        pair.write(Side::Client, 300_000);
        pair.run_for(10 * SECOND);
        pair.assert_whole(Side::Server, 300_001);
    }
}

/// A manager that takes each announced address once hears that it is gone.
#[test]
fn an_address_that_is_announced_again_is_joined_again() {
    let mut pair = Pair::with(
        &endpoints("none"),
        &endpoints("signal"),
        vec![Link::new(10 * MS)],
        2,
        7,
    );
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    assert_eq!(pair.established_subflows(), 2);
    for up in [false, true] {
        pair.act(Side::Server, |connection, now| {
            connection.set_address_up(server_address(1), up, now)
        });
        pair.run_for(SECOND);
        assert_eq!(pair.established_subflows(), 1 + usize::from(up));
    }
}

#[test]
fn mp_prio_moves_the_traffic() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    pair.act(Side::Client, |connection, now| {
        connection.set_backup(client_address(0), true, now)
    });
    pair.run_for(SECOND);
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtMPPrioRx), 1);
    assert!(pair.server.connection().paths()[0].backup);
    let asked = MptcpOption::Prio { backup: true };
    assert!(
        pair.sent(Side::Client)
            .any(|packet| packet.options().contains(&asked))
    );
    for side in [Side::Client, Side::Server] {
        let start = pair.now;
        pair.write(side, 300_000);
        pair.run_for(10 * SECOND);
        assert!(
            pair.data(side)
                .filter(|packet| packet.at >= start)
                .all(|packet| packet.path == 1),
            "{side:?}"
        );
    }
    pair.act(Side::Client, |connection, now| {
        connection.set_backup(client_address(0), false, now)
    });
    pair.run_for(SECOND);
    let start = pair.now;
    pair.write(Side::Server, 300_000);
    pair.run_for(10 * SECOND);
    assert!(
        pair.data(Side::Server)
            .any(|packet| packet.at >= start && packet.path == 0)
    );
    pair.assert_whole(Side::Client, 600_000);
}

#[test]
fn a_backup_carries_data_only_when_the_others_failed() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    pair.act(Side::Client, |connection, now| {
        connection.set_backup(client_address(1), true, now)
    });
    pair.run_for(SECOND);
    let start = pair.now;
    pair.write(Side::Client, 300_000);
    pair.run_for(5 * SECOND);
    assert!(
        pair.data(Side::Client)
            .filter(|packet| packet.at >= start)
            .all(|packet| packet.path == 0)
    );
    pair.links[0].up = false;
    let start = pair.now;
    pair.write(Side::Client, 300_000);
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 600_001);
    assert!(
        pair.client
            .happened(|kind| *kind == EventKind::PotentiallyFailed(0))
            > 0
    );
    assert!(
        pair.data(Side::Client)
            .any(|packet| packet.at >= start && packet.path == 1)
    );
    pair.links[0].up = true;
    pair.run_for(60 * SECOND);
    let start = pair.now;
    pair.write(Side::Client, 300_000);
    pair.run_for(5 * SECOND);
    assert!(
        pair.data(Side::Client)
            .filter(|packet| packet.at >= start)
            .all(|packet| packet.path == 0)
    );
}

/// Two addresses on either side; both sides' path managers follow a script.
fn scripted(client: &[&str], server: &[&str]) -> Pair {
    let config = |steps: &[&str]| {
        let mut config = mptcp();
        config.path_manager.name = "scripted".into();
        let parameters = serde_json::json!({ "steps": steps });
        config.path_manager.parameters = parameters.as_object().expect("a table").clone();
        config
    };
    let links = vec![Link::new(10 * MS), Link::new(10 * MS)];
    Pair::with(&config(client), &config(server), links, 2, 7)
}

#[test]
fn a_script_opens_closes_announces_and_withdraws_at_its_times() {
    let own = |index| client_address(index);
    let peer = |index| server_address(index);
    let client = [
        format!("1 s open {} {}", own(1), peer(0)),
        format!("3 s backup {} {}", own(1), peer(0)),
        format!("4 s normal {} {}", own(1), peer(0)),
        format!("5 s close {} {}", own(1), peer(0)),
        format!("2 s open {} {}", own(0), peer(1)),
    ];
    let client: Vec<&str> = client.iter().map(String::as_str).collect();
    let server = [
        format!("2500 ms announce {}", peer(1)),
        format!("6 s withdraw {}", peer(1)),
    ];
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let mut pair = scripted(&client, &server);
    pair.write(Side::Client, 1);
    let mut open = Vec::new();
    for _ in 0..8 {
        pair.run_for(SECOND - SECOND / 8);
        let connection = pair.client.connection();
        let working = connection
            .subflows()
            .iter()
            .filter(|info| info.established_at.is_some() && info.closed_at.is_none());
        let backups = working.clone().filter(|info| info.backup_local).count();
        open.push((working.count(), backups));
        pair.run_for(SECOND / 8);
    }
    // The subflow wanted after 2 s waits for the address, which is announced after 2.5 s.
    let expected = [1, 2, 3, 3, 3, 2, 1, 1].map(|count| (count, 0));
    let mut expected = expected.to_vec();
    expected[3].1 = 1;
    assert_eq!(open, expected);
    let reset = pair.sent(Side::Client).any(|packet| {
        packet
            .options()
            .iter()
            .any(|option| matches!(option, MptcpOption::TcpRst { reason: 3, .. }))
    });
    assert!(reset, "closing says that it is the administrator's wish");
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtRmAddr), 1);
}

/// An echo of an IPv6 address is as long as three SACK blocks leave no room for.
#[test]
fn an_echo_leaves_less_room_to_sack() {
    let peer = Peer {
        mptcp: true,
        ..Peer::default()
    };
    let mut script = Script::accepted(&mptcp(), peer, 10 * MS);
    script.inject(script.mapped(1, 0, 100, 1));
    for hole in [300, 500, 700, 900] {
        script.inject(script.mapped(1 + hole, hole, 100, 1));
    }
    script.drain();
    let address: std::net::Ipv6Addr = "2001:db8::7".parse().expect("an address");
    let keys = [PEER_KEY.to_be_bytes(), script.key.to_be_bytes()].concat();
    let mac = hmac(&keys, &[&[3][..], &address.octets(), &[0, 0]].concat());
    let mut announced = script.data_ack_at(101, 1, 0);
    announced.rare_mut().mptcp.push(MptcpOption::AddAddr {
        echo: false,
        address_id: 3,
        address: address.into(),
        port: None,
        hmac: Some(u64::from_be_bytes(
            mac[24..].try_into().expect("eight bytes"),
        )),
    });
    script.inject(announced);
    let sent = script.drain();
    let echo = |option: &MptcpOption| matches!(option, MptcpOption::AddAddr { echo: true, .. });
    let echo = sent
        .iter()
        .find(|sent| sent.segment.mptcp().iter().any(echo));
    let echo = &echo.expect("an echo").segment;
    assert!(polypath_wire::tcp::options_len(echo) <= 40, "{echo:?}");
}

fn upstream_meshed(client: &str, server: &str, delays: &[u64], servers: usize) -> Pair {
    let links = delays.iter().map(|delay| Link::new(delay * MS)).collect();
    let [client, server] =
        [client, server].map(|flags| with_profile(Profile::Linux, endpoints(flags)));
    Pair::with(&client, &server, links, servers, 7)
}

/// `mptcp_established_options`: an acknowledgement on a subflow that is being closed.
#[test]
fn an_announcement_without_a_subflow_rides_on_an_acknowledgement() {
    let mut pair = upstream_meshed("none", "signal", &[10], 1);
    pair.write(Side::Client, 3_000_000);
    pair.run_for(200 * MS);
    let told = |pair: &Pair| announcements(pair).len();
    pair.act(Side::Server, |connection, now| {
        connection.set_address_up(server_address(0), false, now);
        connection.set_address_up(server_address(0), true, now);
    });
    assert_eq!(told(&pair), 0, "no subflow is there");
    pair.run_for(SECOND);
    let rides = |packet: &&Packet| {
        let mut options = packet.options().iter();
        options.any(|option| matches!(option, MptcpOption::AddAddr { echo: false, .. }))
    };
    let packet = pair.sent(Side::Server).find(rides).expect("it was told");
    assert_eq!(packet.segment.seq_len(), 0);
    assert_eq!(packet.path, 0);
}

/// `__tcp_retransmit_skb`: a repetition finds no way out before its MSS is computed, with which a removal would be lost.
#[test]
fn a_removal_waits_while_its_interface_is_down() {
    for (returns, counted) in [(false, 0), (true, 1)] {
        let mut pair = upstream_meshed("subflow", "none", &[10], 1);
        pair.hook(|_| Fate::Drop);
        let up = |up| {
            move |connection: &mut Connection, now| {
                connection.set_address_up(client_address(0), up, now);
            }
        };
        pair.act(Side::Client, up(false));
        pair.run_for(1_500 * MS);
        if returns {
            pair.act(Side::Client, up(true));
        }
        pair.run_for(SECOND);
        assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtRmAddrTx), counted);
    }
}

/// `tcp_rcv_state_process`, RCV_SHUTDOWN: what still comes on a subflow that its host has left is answered by a reset, the first with MP_TCPRST.
#[test]
fn data_for_a_subflow_that_was_left_is_reset() {
    let mut pair = upstream_meshed("none", "signal", &[10], 2);
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    assert_eq!(pair.established_subflows(), 2);
    pair.write(Side::Client, 2_000_000);
    pair.run_for(25 * MS);
    let left = pair.now;
    // Neither the removal nor the FIN arrives.
    pair.hook(|packet| {
        let left = packet.from == Side::Server && packet.subflow == 1;
        let lost = left && !packet.segment.flags.contains(Flags::RST);
        let removes = |option: &MptcpOption| matches!(option, MptcpOption::RemoveAddr { .. });
        if lost || packet.options().iter().any(removes) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.act(Side::Server, |connection, now| {
        connection.set_address_up(server_address(1), false, now)
    });
    pair.run_for(10 * SECOND);
    let resets: Vec<&Packet> = pair
        .sent(Side::Server)
        .filter(|it| it.at >= left && it.segment.flags.contains(Flags::RST))
        .collect();
    assert!(matches!(
        resets[0].options(),
        [MptcpOption::TcpRst { flags: 0, .. }]
    ));
    assert!(resets[1..].iter().all(|it| it.options().is_empty()));
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtMPRstRx), 1);
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtMPRstTx), 0);
    pair.assert_whole(Side::Server, 2_000_001);
}

/// `tcp_send_loss_probe`: a probe that finds no way out is none, and the retransmission timeout counts from the segment.
#[test]
fn a_loss_probe_needs_a_route() {
    let mut pair = upstream_meshed("none", "none", &[10], 1);
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    pair.act(Side::Client, |connection, now| {
        connection.set_address_up(client_address(0), false, now)
    });
    pair.hook(|_| Fate::Drop);
    pair.write(Side::Client, 100);
    let written = pair.now;
    pair.run_for(SECOND);
    assert_eq!(pair.counter(Side::Client, Mib::TcpExtTCPLossProbes), 0);
    let again: Vec<u64> = pair
        .data(Side::Client)
        .filter(|it| it.at > written)
        .map(|it| (it.at - written) / MS)
        .collect();
    assert_eq!(again, [221, 661], "by the timeouts alone");
}

/// `__mptcp_destroy_sock`: once both ends of the stream are acknowledged, no address is told or removed any more.
#[test]
fn nothing_is_told_after_the_end_of_the_stream() {
    let mut pair = upstream_meshed("subflow", "none", &[10, 10], 1);
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    assert_eq!(pair.established_subflows(), 2);
    pair.close(Side::Client);
    pair.close(Side::Server);
    pair.run_for(SECOND);
    pair.act(Side::Client, |connection, now| {
        connection.set_backup(client_address(0), true, now);
        connection.set_address_up(client_address(1), false, now);
    });
    pair.run_for(SECOND);
    for counter in [
        Mib::MPTcpExtMPPrioTx,
        Mib::MPTcpExtRmAddrTx,
        Mib::MPTcpExtRmSubflow,
    ] {
        assert_eq!(pair.counter(Side::Client, counter), 0, "{counter:?}");
    }
}

/// `tcp_send_fin`
#[test]
fn a_fin_takes_with_it_what_nagle_holds() {
    let mut pair = upstream_meshed("subflow", "none", &[10, 10], 1);
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    assert_eq!(pair.established_subflows(), 2);
    pair.write(Side::Client, 100);
    pair.write(Side::Client, 100);
    pair.act(Side::Client, |connection, now| {
        connection.set_address_up(client_address(0), false, now);
        connection.set_address_up(client_address(1), false, now);
    });
    let fins = pair
        .sent(Side::Client)
        .filter(|it| it.segment.flags.contains(Flags::FIN));
    let carried: Vec<u32> = fins.map(|it| it.segment.payload.len).collect();
    assert_eq!(carried.iter().sum::<u32>(), 100);
}

/// `__mptcp_close_subflow`: the announced address may be joined again although its removal comes after the FIN.
#[test]
fn a_subflow_that_the_peer_finishes_is_left_at_once() {
    let mut pair = upstream_meshed("none", "signal", &[10], 2);
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    assert_eq!(pair.established_subflows(), 2);
    pair.write(Side::Client, 2_000_000);
    pair.hook(|packet| {
        let removes = |option: &MptcpOption| matches!(option, MptcpOption::RemoveAddr { .. });
        if packet.options().iter().any(removes) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.act(Side::Server, |connection, now| {
        connection.set_address_up(server_address(1), false, now)
    });
    pair.run_for(25 * MS);
    let client = pair.client.connection();
    assert!(client.subflows()[1].closed_at.is_some());
    pair.run_for(10 * SECOND);
    pair.assert_whole(Side::Server, 2_000_001);
}
