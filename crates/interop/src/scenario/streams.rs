//! Test cases of a transfer.

use polypath_transport::SECOND;
use polypath_transport::quic::Codepoint;
use polypath_wire::quic::{Frame, Role, TransportParameters};

use super::checks::{frames, one_handshake};
use super::network::{Impairment, Network};
use super::run::Connection;
use super::{KB, MB, Scenario};
use crate::end::Side;
use crate::peer::{Feature, Setup};
use crate::trace::{Message, Sighting, messages};

pub const TRANSFER: Scenario = Scenario {
    name: "transfer",
    asks: "Files of 2, 3 and 5 MB arrive on parallel streams. The client's windows are small, and it raises them. The close has no error.",
    setup: || Setup {
        window: Some(256 * KB),
        ..Setup::default()
    },
    downloads: &[&[2 * MB, 3 * MB, 5 * MB]],
    check: |connections| {
        one_handshake(connections)?;
        let raises =
            |frame: &Frame| matches!(frame, Frame::MaxData(_) | Frame::MaxStreamData { .. });
        if frames(&connections[0].at_client, Side::Client).any(raises) {
            Ok(())
        } else {
            Err("the client never raised a window".to_string())
        }
    },
    ..Scenario::BASE
};

pub const TRANSFER_LOSS: Scenario = Scenario {
    name: "transferloss",
    asks: "A file of 2 MB arrives while 2 % of the packets of each direction are lost, up to three in a row.",
    network: Network::impaired(Impairment::Drop {
        percent: 2,
        burst: 3,
    }),
    downloads: &[&[2 * MB]],
    ..Scenario::BASE
};

pub const TRANSFER_CORRUPTION: Scenario = Scenario {
    name: "transfercorruption",
    asks: "The same, while one of the first 50 bytes of 2 % of the packets is altered.",
    network: Network::impaired(Impairment::Corrupt {
        percent: 2,
        burst: 3,
    }),
    ..TRANSFER_LOSS
};

pub const BLACKHOLE: Scenario = Scenario {
    name: "blackhole",
    asks: "A file of 10 MB arrives although the network drops everything for two of seven seconds.",
    network: Network::impaired(Impairment::Blackhole {
        on: 5 * SECOND,
        off: 2 * SECOND,
    }),
    downloads: &[&[10 * MB]],
    ..Scenario::BASE
};

pub const MULTIPLEXING: Scenario = Scenario {
    name: "multiplexing",
    asks: "1999 files of 32 bytes arrive over one connection. The server first admits at most 1000 streams, then raises the limit.",
    downloads: &[&[32; 1999]],
    check: |connections| {
        one_handshake(connections)?;
        match admitted_streams(&connections[0]) {
            None => Err("the server's transport parameters were not seen".to_string()),
            Some(streams) if streams > 1000 => {
                Err(format!("the server admits {streams} streams at first"))
            }
            Some(_) => Ok(()),
        }
    },
    ..Scenario::BASE
};

/// initial_max_streams_bidi of the server, from its EncryptedExtensions (RFC 8446 section 4.3.1, RFC 9001 section 8.2).
fn admitted_streams(connection: &Connection) -> Option<u64> {
    const TRANSPORT_PARAMETERS: u16 = 0x39;
    let messages = messages(&connection.at_client, Side::Server);
    let message = messages
        .iter()
        .find(|message| message.kind == Message::ENCRYPTED_EXTENSIONS)?;
    let parameters = message.extension(TRANSPORT_PARAMETERS)?;
    let parsed = TransportParameters::parse(parameters, Role::Server).ok()?;
    Some(parsed.initial_max_streams_bidi)
}

pub const ECN: Scenario = Scenario {
    name: "ecn",
    asks: "Both sides send packets with ECT(0) or ECT(1), and report the peer's marks.",
    needs: &[Feature::Ecn],
    setup: || Setup {
        ecn: true,
        ..Setup::default()
    },
    downloads: &[&[100 * KB]],
    check: |connections| {
        one_handshake(connections)?;
        let connection = &connections[0];
        marks("client", &connection.at_client, Side::Client)?;
        marks("server", &connection.at_server, Side::Server)
    },
    ..Scenario::BASE
};

/// RFC 9000 sections 13.4.1 and 19.3.2.
fn marks(name: &str, trace: &[Sighting], from: Side) -> Result<(), String> {
    let sent = || trace.iter().filter(|seen| seen.from == from);
    let marked = |seen: &Sighting| matches!(seen.ecn, Codepoint::Ect0 | Codepoint::Ect1);
    if !sent().any(marked) {
        return Err(format!("the {name} sent no packet with ECT"));
    }
    if sent().any(|seen| seen.ecn == Codepoint::Ce) {
        return Err(format!("the {name} sent a packet with ECN-CE"));
    }
    let reports = |frame: &Frame| matches!(frame, Frame::Ack(ack) if ack.ecn.is_some());
    if !frames(trace, from).any(reports) {
        return Err(format!("the {name} reported no ECN counts"));
    }
    Ok(())
}
