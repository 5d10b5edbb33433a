//! Packets sealed and opened, and the examples of RFC 9001 appendix A.

use polypath_transport::quic::crypto::{
    Level, OpenError, Sealer, decrypt, initial_keys, open, remove_header_protection, retry_tag,
};
use polypath_wire::quic::{ConnectionId, Frame, Header, Kind, Packet, split};
use rustls::Side;
use rustls::quic::Keys;

use crate::pair;

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|c| c.to_digit(16)).collect();
    digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

fn original() -> ConnectionId {
    ConnectionId::new(&hex("8394c8f03e515708"))
}

/// RFC 9001 appendix A.2.
#[test]
fn the_initial_of_a_client() {
    let mut packet = hex("c300000001088394c8f03e5157080000449e00000002");
    packet.extend(hex(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
         04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578
         616d706c652e636f6dff01000100000a00080006001d00170018001000070005
         04616c706e000500050100000000003300260024001d00209370b2c9caa47fba
         baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400
         0d0010000e0403050306030203080408050806002d00020101001c0002400100
         3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
         75300901100f088394c8f03e51570806048000ffff",
    ));
    packet.resize(22 + 1162, 0);
    let plain = packet.clone();
    let client = initial_keys(&original(), Side::Client);
    Sealer::new(&client.local).seal(&mut packet, 0, 18, 2);
    assert_eq!(packet.len(), 1200);
    assert_eq!(
        packet[..22],
        hex("c000000001088394c8f03e5157080000449e7b9aec34")
    );
    assert_eq!(packet[22..38], hex("d1b1c98dd7689fb8ec11d242b123dc9b"));
    assert_eq!(packet[1184..], hex("e221af44860018ab0856972e194cd934"));

    let server = initial_keys(&original(), Side::Server);
    let protected = split(&packet, 0).next().unwrap().unwrap();
    let (header, payload) = open(&server.remote, &protected, &mut packet, None, None).unwrap();
    assert_eq!((header.number, payload.clone()), (2, 22..1184));
    assert_eq!(packet[payload], plain[22..]);
}

/// RFC 9001 appendix A.3.
#[test]
fn the_initial_of_a_server() {
    let mut packet = hex("c1000000010008f067a5502a4262b50040750001
         02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739
         88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94
         0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00
         020304");
    let server = initial_keys(&original(), Side::Server);
    Sealer::new(&server.local).seal(&mut packet, 0, 18, 1);
    let expected = hex(
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a
         5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3
         dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84
         022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4
         2158407dd074ee",
    );
    assert_eq!(packet, expected);
}

/// RFC 9001 appendix A.4.
#[test]
fn the_tag_of_a_retry() {
    let untagged = hex("ff000000010008f067a5502a4262b5746f6b656e");
    let tag = hex("04a265ba2eff4d829058fb3f0f2496ba");
    assert_eq!(retry_tag(&original(), &untagged), *tag);
    let other = ConnectionId::new(&[1]);
    assert_ne!(retry_tag(&other, &untagged), *tag);
}

fn one_rtt_keys() -> (Keys, Keys) {
    let (mut client, mut server, _) = pair((1, 2));
    let mut take = |level| (client.take_keys(level), server.take_keys(level));
    let (client, server) = take(Level::OneRtt);
    (client.unwrap(), server.unwrap())
}

const NUMBER: u64 = 70_000;

/// A 1-RTT packet of the shortest kind, and its number's offset.
fn packet() -> (Vec<u8>, usize) {
    let packet = Packet {
        header: Header {
            kind: Kind::OneRtt {
                key_phase: true,
                spin: false,
            },
            version: 0,
            destination: ConnectionId::new(&[9; 8]),
            source: ConnectionId::default(),
            number: NUMBER,
            number_len: 2,
        },
        path: 0,
        frames: vec![Frame::Ping, Frame::HandshakeDone],
    };
    let mut bytes = Vec::new();
    let number_offset = packet.encode(&mut |_, _| (), &mut bytes).unwrap();
    (bytes, number_offset)
}

fn sealed(keys: &Keys, path: Option<u32>) -> Vec<u8> {
    let (mut bytes, number_offset) = packet();
    let sealer = Sealer {
        path,
        ..Sealer::new(&keys.local)
    };
    sealer.seal(&mut bytes, 0, number_offset, NUMBER);
    bytes
}

fn opened(
    keys: &Keys,
    mut bytes: Vec<u8>,
    path: Option<u32>,
) -> Result<(Header, Vec<u8>), OpenError> {
    let protected = split(&bytes, 8).next().unwrap().unwrap();
    let (header, payload) = open(&keys.remote, &protected, &mut bytes, Some(NUMBER - 1), path)?;
    Ok((header, bytes[payload].to_vec()))
}

#[test]
fn what_is_sealed_opens() {
    let (client, server) = one_rtt_keys();
    for path in [None, Some(0), Some(1), Some(u32::MAX)] {
        let (header, payload) = opened(&server, sealed(&client, path), path).unwrap();
        assert_eq!(header.number, NUMBER);
        assert_eq!(
            header.kind,
            Kind::OneRtt {
                key_phase: true,
                spin: false
            }
        );
        assert_eq!(payload, [0x01, 0x1e]);
        opened(&client, sealed(&server, path), path).unwrap();
    }
    // RFC 10069 section 2.4: on path 0 the nonce is that of RFC 9001.
    assert_eq!(sealed(&client, None), sealed(&client, Some(0)));
    assert_ne!(sealed(&client, Some(0)), sealed(&client, Some(1)));
}

#[test]
fn what_is_changed_does_not_open() {
    let (client, server) = one_rtt_keys();
    let bytes = sealed(&client, Some(1));
    for bit in 0..8 * bytes.len() {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        // The form, the fixed bit and the connection id are what the packet is found by.
        let found = split(&changed, 8)
            .flatten()
            .any(|protected| !protected.kind.is_long());
        if found {
            let result = opened(&server, changed, Some(1));
            assert_eq!(result, Err(OpenError::NotAuthentic), "bit {bit}");
        } else {
            assert!([6, 7].contains(&bit));
        }
    }
    let not_authentic = Err(OpenError::NotAuthentic);
    assert_eq!(opened(&server, bytes.clone(), Some(2)), not_authentic);
    assert_eq!(opened(&server, bytes.clone(), None), not_authentic);
    // One's own packets.
    assert_eq!(opened(&client, bytes, Some(1)), not_authentic);
}

#[test]
fn reserved_bits_are_a_violation() {
    let (client, server) = one_rtt_keys();
    let (mut bytes, number_offset) = packet();
    bytes[0] |= 0x08;
    Sealer::new(&client.local).seal(&mut bytes, 0, number_offset, NUMBER);
    assert_eq!(opened(&server, bytes, None), Err(OpenError::ReservedBits));
}

/// RFC 9001 section 6: the packet keys change, the header protection keys do not.
#[test]
fn a_key_update() {
    let (mut client, mut server, _) = pair((1, 2));
    let client_keys = client.take_keys(Level::OneRtt).unwrap();
    let server_keys = server.take_keys(Level::OneRtt).unwrap();
    for _ in 0..2 {
        let client_next = client.next_packet_keys().unwrap();
        let server_next = server.next_packet_keys().unwrap();
        let (mut bytes, number_offset) = packet();
        let sealer = Sealer {
            packet: client_next.local.as_ref(),
            ..Sealer::new(&client_keys.local)
        };
        sealer.seal(&mut bytes, 0, number_offset, NUMBER);
        let with_old = opened(&server_keys, bytes.clone(), None);
        assert_eq!(with_old, Err(OpenError::NotAuthentic));
        let protected = split(&bytes, 8).next().unwrap().unwrap();
        remove_header_protection(
            server_keys.remote.header.as_ref(),
            &mut bytes,
            number_offset,
        )
        .unwrap();
        let (header, at) = protected.header(&bytes, Some(NUMBER - 1));
        let key = server_next.remote.as_ref();
        let payload = decrypt(key, &mut bytes, at, header.number, None).unwrap();
        assert_eq!(bytes[payload], [0x01, 0x1e]);
    }
}
