//! Test cases of the handshake.

use polypath_transport::{MILLISECOND as MS, SECOND};
use polypath_wire::quic::{Frame, Kind};

use super::checks::{is_initial, is_retry, one_handshake, packets};
use super::network::{Impairment, Network};
use super::run::Connection;
use super::{KB, Scenario};
use crate::end::Side;
use crate::peer::Setup;

pub const HANDSHAKE: Scenario = Scenario {
    name: "handshake",
    asks: "One handshake without Retry makes a connection, which carries a file of 1 kB.",
    downloads: &[&[KB]],
    check: |connections| {
        if packets(&connections[0].at_client, Side::Server).any(|packet| is_retry(&packet)) {
            return Err("the server sent a Retry".to_string());
        }
        one_handshake(connections)
    },
    ..Scenario::BASE
};

pub const LONG_RTT: Scenario = Scenario {
    name: "longrtt",
    asks: "The handshake completes over a round trip of 1.5 s. Meanwhile the client repeats its ClientHello.",
    network: Network {
        one_way: 750 * MS,
        ..Network::SIMPLE
    },
    downloads: &[&[KB]],
    check: |connections| {
        one_handshake(connections)?;
        let initial = packets(&connections[0].at_client, Side::Client).filter(is_initial);
        let hello = |frame: &Frame| matches!(frame, Frame::Crypto { offset: 0, .. });
        let hellos = initial.filter(|packet| packet.frames.iter().any(hello));
        match hellos.count() {
            0 | 1 => Err("the ClientHello was not sent again".to_string()),
            _ => Ok(()),
        }
    },
    ..Scenario::BASE
};

pub const RETRY: Scenario = Scenario {
    name: "retry",
    asks: "The server sends a Retry. The client returns its token, continues its packet numbers, and the handshake completes.",
    setup: || Setup {
        retry: true,
        ..Setup::default()
    },
    downloads: &[&[10 * KB]],
    check: |connections| {
        one_handshake(connections)?;
        token_returned(&connections[0])
    },
    ..Scenario::BASE
};

/// RFC 9000 sections 8.1.2 and 17.2.5.3.
fn token_returned(connection: &Connection) -> Result<(), String> {
    let retries = packets(&connection.at_client, Side::Server);
    let tokens: Vec<&Vec<u8>> = retries
        .filter_map(|packet| match &packet.header.kind {
            Kind::Retry { token, .. } => Some(token),
            _ => None,
        })
        .collect();
    if tokens.is_empty() {
        return Err("the server sent no Retry".to_string());
    }
    let mut before = None;
    for packet in packets(&connection.at_client, Side::Client) {
        let Kind::Initial { token } = &packet.header.kind else {
            continue;
        };
        let number = packet.header.number;
        if token.is_empty() {
            before = before.max(Some(number));
        } else if Some(number) <= before {
            return Err("the client counts its packets from the start again".to_string());
        } else if tokens.contains(&token) {
            return Ok(());
        }
    }
    Err("the client did not return the token".to_string())
}

/// Each with a file of its own.
const MANY: &[&[u64]] = &[&[KB] as &[u64]; 50];

pub const MULTICONNECT: Scenario = Scenario {
    name: "multiconnect",
    asks: "50 connections, one after the other, carry a file of 1 kB each.",
    downloads: MANY,
    limit: 300 * SECOND,
    ..Scenario::BASE
};

pub const HANDSHAKE_LOSS: Scenario = Scenario {
    name: "handshakeloss",
    asks: "The same, while 30 % of the packets of each direction are lost, up to three in a row.",
    network: Network::impaired(Impairment::Drop {
        percent: 30,
        burst: 3,
    }),
    ..MULTICONNECT
};

pub const HANDSHAKE_CORRUPTION: Scenario = Scenario {
    name: "handshakecorruption",
    asks: "The same, while one of the first 50 bytes of 30 % of the packets is altered.",
    network: Network::impaired(Impairment::Corrupt {
        percent: 30,
        burst: 3,
    }),
    ..MULTICONNECT
};
