//! Guarantees of the readers of QUIC for arbitrary bytes, as functions for fuzz targets and tests. They do not panic,
//! and a receiver has no more than was sent.

use std::net::{Ipv4Addr, SocketAddr};

use polypath_wire::quic::{ConnectionId, Header, Kind};

use crate::analysis::Settings;
use crate::packet::Tap;
use crate::quic::{Connection, Datagram, KeyLog, Level, Quic};

fn end(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 0, 0, host).into(), port)
}

/// Bytes cut into pieces, each behind a byte that says something of it and one with its length.
fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[what, len], rest) = bytes.split_first_chunk::<2>()?;
        let (piece, rest) = rest.split_at(usize::from(len).min(rest.len()));
        bytes = rest;
        Some((what, piece))
    })
}

/// Datagrams between some ends, in any order, some of them cut; and a key log.
pub fn quic_datagrams(bytes: &[u8]) {
    let settings = Settings {
        interval_ns: 1000,
        segments: true,
    };
    let mut log = KeyLog::default();
    log.read(&String::from_utf8_lossy(bytes));
    let mut quic = Quic::new(&settings, log, 0, None);
    for (time, (what, piece)) in pieces(bytes).enumerate() {
        let ends = (end(1 + (what & 1), 50_000), end(3, 443));
        let (source, destination) = match what & 2 {
            0 => ends,
            _ => (ends.1, ends.0),
        };
        quic.see(&Datagram {
            time_ns: time as i64 * 700,
            tap: Tap::default(),
            source,
            destination,
            payload: piece.to_vec(),
            len: piece.len() + usize::from(what >> 7),
        });
    }
    assert!(quic.connections.iter().all(|it| !it.opened));
}

/// Packets of a connection whose frames are these, as if they had been opened.
pub fn quic_frames(bytes: &[u8]) {
    let mut connection = Connection::new(end(1, 50_000), end(3, 443), 0);
    connection
        .paths
        .push(crate::quic::Path::new(end(2, 50_000), end(3, 443)));
    for (time, (what, piece)) in pieces(bytes).enumerate() {
        let level = [
            Level::Initial,
            Level::Handshake,
            Level::OneRtt,
            Level::OneRtt,
        ][usize::from(what >> 4 & 3)];
        let header = Header {
            kind: Kind::Handshake,
            version: 1,
            destination: ConnectionId::default(),
            source: ConnectionId::default(),
            number: u64::from(what >> 3),
            number_len: 1,
        };
        let space = (level, u64::from(what & 1), usize::from(what >> 1 & 1));
        connection.frames(
            space,
            (usize::from(what & 1), piece.len()),
            header,
            piece,
            time as i64,
            &mut Default::default(),
        );
    }
    for side in 0..2 {
        let sent: u64 = connection
            .paths
            .iter()
            .map(|it| it.sides[side].sent_bytes)
            .sum();
        assert!(connection.delivered[side] <= sent);
    }
}
