//! Test cases of keys, sessions and the limit before validation.

use polypath_transport::Sessions;
use polypath_wire::quic::{Frame, Kind};

use super::checks::{one_handshake, packets};
use super::network::{Impairment, Network};
use super::run::Connection;
use super::{Act, KB, MB, Scenario};
use crate::end::Side;
use crate::peer::Setup;
use crate::trace::{Message, Sighting, messages};

pub const KEY_UPDATE: Scenario = Scenario {
    name: "keyupdate",
    asks: "The client updates its keys within the first megabyte. Both sides send packets of key phase 1.",
    downloads: &[&[3 * MB]],
    act: Act::UpdateKeys,
    check: |connections| {
        one_handshake(connections)?;
        let connection = &connections[0];
        let [client, server] = [
            updated(&connection.at_client, Side::Client),
            updated(&connection.at_server, Side::Server),
        ];
        match (client, server) {
            (true, true) => Ok(()),
            (false, _) => Err("the client sent no packet of key phase 1".to_string()),
            (true, false) => Err("the server did not follow the key update".to_string()),
        }
    },
    ..Scenario::BASE
};

/// RFC 9001 section 6.
fn updated(trace: &[Sighting], from: Side) -> bool {
    packets(trace, from).any(|packet| {
        matches!(
            packet.header.kind,
            Kind::OneRtt {
                key_phase: true,
                ..
            }
        )
    })
}

pub const RESUMPTION: Scenario = Scenario {
    name: "resumption",
    asks: "A second connection resumes the TLS session of the first. The server does not repeat its certificate.",
    setup: || Setup {
        sessions: Some(Sessions::default()),
        ..Setup::default()
    },
    downloads: &[&[5 * KB], &[10 * KB]],
    check: |connections| {
        one_handshake(connections)?;
        let certified = |connection: &Connection| {
            let messages = messages(&connection.at_client, Side::Server);
            messages.iter().any(|it| it.kind == Message::CERTIFICATE)
        };
        match (certified(&connections[0]), certified(&connections[1])) {
            (false, _) => Err("the first handshake had no certificate".to_string()),
            (true, true) => Err("the second handshake had a certificate again".to_string()),
            (true, false) => Ok(()),
        }
    },
    ..Scenario::BASE
};

/// Bytes of Handshake CRYPTO frames that show that the long chain was used.
const LONG_CHAIN: u64 = 7500;

pub const AMPLIFICATION_LIMIT: Scenario = Scenario {
    name: "amplificationlimit",
    asks: "The server has a chain of over 7.5 kB. Until the client's address is validated, it sends at most three times what it received. \
        Datagrams 2 to 7 to the server are lost.",
    network: Network::impaired(Impairment::DropToServer(&[2, 3, 4, 5, 6, 7])),
    setup: || Setup {
        intermediates: 24,
        ..Setup::default()
    },
    downloads: &[&[5 * KB]],
    check: |connections| {
        one_handshake(connections)?;
        within_limit(&connections[0].at_server)
    },
    ..Scenario::BASE
};

/// RFC 9000 section 8.1, of UDP payload bytes. The runner bears four times as much; the RFC does not.
fn within_limit(trace: &[Sighting]) -> Result<(), String> {
    let is_handshake = |kind: &Kind| matches!(kind, Kind::Handshake);
    let chain = packets(trace, Side::Server)
        .filter(|packet| is_handshake(&packet.header.kind))
        .flat_map(|packet| &packet.frames)
        .filter_map(|frame| match frame {
            Frame::Crypto { offset, data } => Some(offset + data.len() as u64),
            _ => None,
        })
        .max();
    if chain < Some(LONG_CHAIN) {
        return Err(format!("the server's flight is short: {chain:?} bytes"));
    }
    let (mut received, mut sent) = (0, 0);
    for seen in trace {
        let mut kinds = seen.packets.iter().map(|packet| &packet.header.kind);
        match seen.from {
            Side::Client if kinds.any(is_handshake) => return Ok(()),
            Side::Client => received += seen.len,
            Side::Server => sent += seen.len,
        }
        if sent > 3 * received {
            return Err(format!(
                "the server sent {sent} bytes for {received} before the client's address was validated"
            ));
        }
    }
    Err("the client sent no Handshake packet".to_string())
}
