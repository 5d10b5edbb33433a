//! Test cases of a client whose address changes (RFC 9000 sections 8.2 and 9).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use polypath_wire::quic::Frame;

use super::checks::{frames, one_handshake};
use super::network::Network;
use super::run::Connection;
use super::{Act, MB, Scenario};
use crate::end::Side;

pub const REBIND_PORT: Scenario = Scenario {
    name: "rebind-port",
    asks: "A NAT gives the client another port after 1 s and every 5 s. The server's first packet to each has a PATH_CHALLENGE, \
        and the client answers it.",
    network: Network::rebinding(false),
    downloads: &[&[10 * MB]],
    check: |connections| {
        one_handshake(connections)?;
        challenged(&connections[0])
    },
    ..Scenario::BASE
};

pub const REBIND_ADDRESS: Scenario = Scenario {
    name: "rebind-addr",
    asks: "The same with another address and port.",
    network: Network::rebinding(true),
    check: |connections| {
        one_handshake(connections)?;
        let from_server = connections[0].at_server.iter();
        let from_server = from_server.filter(|seen| seen.from == Side::Server);
        let addresses: BTreeSet<_> = from_server.map(|seen| seen.destination.ip()).collect();
        if addresses.len() < 2 {
            return Err("the server sent to one address alone".to_string());
        }
        challenged(&connections[0])
    },
    ..REBIND_PORT
};

pub const CONNECTION_MIGRATION: Scenario = Scenario {
    name: "connectionmigration",
    asks: "The client moves to another of its addresses and uses a new connection ID there. The server validates \
        the path as above. (In the runner the client moves to a preferred address of the server; Polypath has none.)",
    downloads: &[&[2 * MB]],
    act: Act::Move,
    check: |connections| {
        one_handshake(connections)?;
        challenged(&connections[0])?;
        new_ids(&connections[0])
    },
    ..Scenario::BASE
};

type Way = (SocketAddr, SocketAddr);

/// The first packet of the server on each new path has a PATH_CHALLENGE, and the client answers it.
fn challenged(connection: &Connection) -> Result<(), String> {
    let mut ways: BTreeSet<Way> = BTreeSet::new();
    let mut challenges = BTreeSet::new();
    for seen in &connection.at_server {
        if seen.from != Side::Server {
            continue;
        }
        let challenge = seen.frames().find_map(|frame| match frame {
            Frame::PathChallenge(data) => Some(*data),
            _ => None,
        });
        // What only answers a client that tries the path comes before any migration (RFC 9000 sections 8.2.2 and 9.1).
        if challenge.is_none() && seen.frames().all(Frame::probing) {
            continue;
        }
        let first = ways.is_empty();
        if !ways.insert((seen.source, seen.destination)) || first {
            continue;
        }
        let Some(data) = challenge else {
            let to = seen.destination;
            return Err(format!(
                "the server's first packet to {to} has no PATH_CHALLENGE"
            ));
        };
        challenges.insert(data);
    }
    if ways.len() < 2 {
        return Err("the server sent to one address alone".to_string());
    }
    for frame in frames(&connection.at_client, Side::Client) {
        if let Frame::PathResponse(data) = frame {
            challenges.remove(data);
        }
    }
    match challenges.len() {
        0 => Ok(()),
        unanswered => Err(format!(
            "{unanswered} PATH_CHALLENGE frames without an answer"
        )),
    }
}

/// The client's first packet on each new path has another destination than the packet before (RFC 9000 section 9.5).
fn new_ids(connection: &Connection) -> Result<(), String> {
    let mut ways: BTreeSet<Way> = BTreeSet::new();
    let mut last = None;
    let sent = connection.at_client.iter();
    for seen in sent.filter(|seen| seen.from == Side::Client) {
        let Some(packet) = seen.packets.first() else {
            continue;
        };
        let id = packet.header.destination;
        let new = ways.insert((seen.source, seen.destination));
        if new && last == Some(id) {
            return Err("the client uses its connection ID on the new path as well".to_string());
        }
        last = Some(id);
    }
    Ok(())
}
