//! Criteria that several scenarios share.

use std::collections::BTreeSet;

use polypath_wire::quic::{Frame, Kind, Packet, VERSION};

use super::run::Connection;
use crate::end::Side;
use crate::trace::Sighting;

/// The packets of a side.
pub fn packets(trace: &[Sighting], from: Side) -> impl Iterator<Item = &Packet> {
    let datagrams = trace.iter().filter(move |seen| seen.from == from);
    datagrams.flat_map(|seen| &seen.packets)
}

pub fn frames(trace: &[Sighting], from: Side) -> impl Iterator<Item = &Frame> {
    packets(trace, from).flat_map(|packet| &packet.frames)
}

pub fn is_initial(packet: &&Packet) -> bool {
    matches!(packet.header.kind, Kind::Initial { .. })
}

pub fn is_retry(packet: &&Packet) -> bool {
    matches!(packet.header.kind, Kind::Retry { .. })
}

/// Each connection has one handshake, told by the source of the server's Initial packets, and is of version 1.
pub fn one_handshake(connections: &[Connection]) -> Result<(), String> {
    for connection in connections {
        let initial = packets(&connection.at_server, Side::Server).filter(is_initial);
        let (sources, versions): (BTreeSet<_>, BTreeSet<_>) = initial
            .map(|packet| (packet.header.source, packet.header.version))
            .unzip();
        if sources.len() != 1 {
            return Err(format!("{} handshakes instead of one", sources.len()));
        }
        if versions != BTreeSet::from([VERSION]) {
            return Err(format!("versions {versions:x?}"));
        }
    }
    Ok(())
}
