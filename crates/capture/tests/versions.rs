//! Handshakes and joins of both versions, written by hand.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use arrow_array::{Array, LargeStringArray, RecordBatch, UInt32Array, UInt64Array};
use hmac::{Hmac, Mac as _};
use polypath_capture::{Options, Traced, trace};
use polypath_trace::pcapng::{Direction, Writer};
use polypath_trace::{Envelope, FrameBuilder, Mac};
use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MpCapable, MpJoin, MptcpOption};
use polypath_wire::tcp::{Flags, Payload, Segment};
use sha1::Sha1;
use sha2::{Digest, Sha256};

const KEYS: (u64, u64) = (0x1111_2222_3333_4444, 0x5555_6666_7777_8888);
const NONCES: (u32, u32) = (0xaaaa, 0xbbbb);
const MILLISECOND: u64 = 1_000_000;

/// A capture at the client in the making.
struct Script {
    writer: Writer<Vec<u8>>,
    builder: FrameBuilder,
    interface: polypath_trace::pcapng::Interface,
    now: u64,
}

impl Script {
    fn new() -> Self {
        Self::cut_at(0)
    }

    /// Of each frame so many bytes are captured; 0: all.
    fn cut_at(snaplen: u32) -> Self {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let interface = writer.interface("wlan0", snaplen).unwrap();
        Self {
            writer,
            builder: FrameBuilder::new(),
            interface,
            now: 0,
        }
    }

    /// The other end answers after 20 ms.
    fn send(&mut self, from: &str, to: &str, segment: &Segment) {
        let (src, dst): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let server: IpAddr = "10.9.0.1".parse().unwrap();
        self.now += if src.ip() == server {
            20 * MILLISECOND
        } else {
            MILLISECOND / 10
        };
        let envelope = Envelope {
            src_mac: Mac::local(1),
            dst_mac: Mac::local(2),
            src: src.ip(),
            dst: dst.ip(),
            ttl: 64,
            identification: 1,
            ecn: 0,
            corrupted: false,
        };
        let mut frame = Vec::new();
        let ports = (src.port(), dst.port());
        self.builder
            .tcp(&envelope, ports, segment, 1, None, &mut frame)
            .unwrap();
        let direction = if src.ip() == server {
            Direction::Inbound
        } else {
            Direction::Outbound
        };
        self.writer
            .packet(self.interface, self.now, direction, &frame)
            .unwrap();
    }

    fn trace(self, name: &str) -> Traced {
        let path: PathBuf = std::env::temp_dir().join(format!(
            "polypath-capture-{}-{name}.pcapng",
            std::process::id()
        ));
        std::fs::write(&path, self.writer.into_inner().unwrap()).unwrap();
        let options = Options {
            interval_ns: 10_000_000,
            segments: true,
            ..Options::default()
        };
        let traced = trace(std::slice::from_ref(&path), &options, |_| true);
        std::fs::remove_file(&path).unwrap();
        traced.unwrap()
    }
}

fn segment(seq: u32, ack: u32, flags: Flags, len: u32) -> Segment {
    Segment {
        seq,
        ack,
        window: 1000,
        flags,
        payload: Payload { offset: 0, len },
        ..Segment::default()
    }
}

fn with(mut segment: Segment, option: MptcpOption) -> Segment {
    segment.rare_mut().mptcp.push(option);
    segment
}

fn capable(version: u8, sender: Option<u64>, receiver: Option<u64>) -> MptcpOption {
    MptcpOption::Capable(MpCapable {
        version,
        checksum_required: false,
        deny_join_initial: false,
        hmac_sha256: true,
        sender_key: sender,
        receiver_key: receiver,
        data: None,
    })
}

fn hash(version: u8, key: u64) -> Vec<u8> {
    match version {
        0 => Sha1::digest(key.to_be_bytes()).to_vec(),
        _ => Sha256::digest(key.to_be_bytes()).to_vec(),
    }
}

fn hmac(version: u8, keys: (u64, u64), nonces: (u32, u32)) -> Vec<u8> {
    let key = [keys.0.to_be_bytes(), keys.1.to_be_bytes()].concat();
    let message = [nonces.0.to_be_bytes(), nonces.1.to_be_bytes()].concat();
    if version == 0 {
        let mut mac = Hmac::<Sha1>::new_from_slice(&key).unwrap();
        mac.update(&message);
        mac.finalize().into_bytes().to_vec()
    } else {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(&message);
        mac.finalize().into_bytes().to_vec()
    }
}

fn idsn(version: u8, key: u64) -> u64 {
    let hash = hash(version, key);
    u64::from_be_bytes(hash[hash.len() - 8..].try_into().unwrap())
}

const CLIENT: &str = "10.0.0.1:40000";
const OTHER: &str = "192.168.7.2:40001";
const SERVER: &str = "10.9.0.1:443";

/// 100 bytes of the stream from `offset` on, at a subflow's sequence number.
fn data(version: u8, first: u32, at: u32, offset: u64) -> Segment {
    Segment {
        dss: Some(Dss {
            data_ack: None,
            mapping: Some(Mapping {
                dsn: Dsn::Long(idsn(version, KEYS.0).wrapping_add(1 + offset).into()),
                subflow_seq: at,
                len: 100,
                checksum: None,
            }),
            data_fin: false,
        }),
        ..segment(first.wrapping_add(at), 501, Flags::ACK, 100)
    }
}

/// Two subflows, of which the second sends again what the first sent.
fn script(version: u8, wrong: bool) -> Script {
    let mut script = Script::new();
    // The first subflow's numbers wrap within its data.
    let first = 0xffff_ffa0u32;
    let sent = (version == 0).then_some(KEYS.0);
    let syn = with(
        segment(first, 0, Flags::SYN, 0),
        capable(version, sent, None),
    );
    script.send(CLIENT, SERVER, &syn);
    let answer = segment(500, first.wrapping_add(1), Flags::SYN | Flags::ACK, 0);
    script.send(
        SERVER,
        CLIENT,
        &with(answer, capable(version, Some(KEYS.1), None)),
    );
    let third = segment(first.wrapping_add(1), 501, Flags::ACK, 0);
    let both = capable(version, Some(KEYS.0), Some(KEYS.1));
    script.send(CLIENT, SERVER, &with(third, both));
    script.send(CLIENT, SERVER, &data(version, first, 1, 0));
    script.send(CLIENT, SERVER, &data(version, first, 101, 100));

    let token = u32::from_be_bytes(hash(version, KEYS.1)[..4].try_into().unwrap());
    let join = MpJoin::Syn {
        backup: true,
        address_id: 2,
        token,
        nonce: NONCES.0,
    };
    script.send(
        OTHER,
        SERVER,
        &with(segment(7, 0, Flags::SYN, 0), MptcpOption::Join(join)),
    );
    let proof = hmac(version, (KEYS.1, KEYS.0), (NONCES.1, NONCES.0));
    let mut proof: [u8; 8] = proof[..8].try_into().unwrap();
    proof[0] ^= u8::from(wrong);
    let join = MpJoin::SynAck {
        backup: false,
        address_id: 0,
        hmac: u64::from_be_bytes(proof),
        nonce: NONCES.1,
    };
    let answer = segment(500, 8, Flags::SYN | Flags::ACK, 0);
    script.send(SERVER, OTHER, &with(answer, MptcpOption::Join(join)));
    let join = MpJoin::Ack {
        hmac: hmac(version, KEYS, NONCES)[..20].try_into().unwrap(),
    };
    script.send(
        OTHER,
        SERVER,
        &with(segment(8, 501, Flags::ACK, 0), MptcpOption::Join(join)),
    );
    script.send(SERVER, OTHER, &segment(501, 8, Flags::ACK, 0));
    script.send(OTHER, SERVER, &data(version, 7, 1, 100));
    let mut everything = segment(501, 108, Flags::ACK, 0);
    everything.dss = Some(Dss {
        data_ack: Some(DataAck::Long(
            idsn(version, KEYS.0).wrapping_add(201).into(),
        )),
        mapping: None,
        data_fin: false,
    });
    script.send(SERVER, OTHER, &everything);
    script
}

fn table<'a>(traced: &'a Traced, name: &str) -> &'a RecordBatch {
    let found = traced.tables.iter().find(|(table, _)| *table == name);
    &found.unwrap().1
}

fn numbers(traced: &Traced, name: &str, column: &str) -> Vec<u64> {
    let column = table(traced, name).column_by_name(column).unwrap();
    if let Some(values) = column.as_any().downcast_ref::<UInt32Array>() {
        values.values().iter().map(|&value| value.into()).collect()
    } else {
        let values = column.as_any().downcast_ref::<UInt64Array>().unwrap();
        values.values().to_vec()
    }
}

fn texts(traced: &Traced, name: &str, column: &str) -> Vec<String> {
    let column = table(traced, name).column_by_name(column).unwrap();
    let values = column.as_any().downcast_ref::<LargeStringArray>().unwrap();
    (0..values.len())
        .map(|row| values.value(row).to_owned())
        .collect()
}

#[test]
fn subflows_are_joined_by_token_and_hmac() {
    for version in [0, 1] {
        let traced = script(version, false).trace(&format!("joined-{version}"));
        assert_eq!(texts(&traced, "connection_ends", "transport"), ["mptcp"]);
        assert_eq!(numbers(&traced, "subflow_ends", "connection"), [0, 0]);
        assert_eq!(
            numbers(&traced, "subflow_ends", "client_sent_bytes"),
            [200, 100]
        );
        assert_eq!(
            numbers(&traced, "subflow_ends", "client_reinjected_bytes"),
            [0, 100]
        );
        assert_eq!(
            numbers(&traced, "connection_ends", "server_received_bytes"),
            [200]
        );
        assert!(texts(&traced, "segments", "kind").contains(&"reinjection".to_owned()));
        let notes = traced.told.notes.join("; ");
        assert!(!notes.contains("HMAC"), "{notes}");
        assert!(notes.contains("nearer to the client only"), "{notes}");
    }
}

#[test]
fn a_wrong_hmac_is_said() {
    for version in [0, 1] {
        let traced = script(version, true).trace(&format!("wrong-{version}"));
        assert_eq!(numbers(&traced, "subflow_ends", "connection"), [0, 0]);
        let notes = traced.told.notes.join("; ");
        assert!(
            notes.contains("1 of 2 subflows joined with an HMAC"),
            "{notes}"
        );
    }
}

#[test]
fn addresses_and_priorities_of_version_0() {
    let mut script = script(0, false);
    let old = |subtype, flags, body: &[u8]| MptcpOption::Unknown {
        subtype,
        flags,
        body: body.to_vec(),
    };
    let ack = || segment(501, 8, Flags::ACK, 0);
    // RFC 6824 sections 3.4.1 and 3.3.8.
    script.send(SERVER, OTHER, &with(ack(), old(3, 4, &[5, 10, 9, 0, 2])));
    script.send(SERVER, OTHER, &with(ack(), old(5, 0, &[2])));
    let traced = script.trace("old-options");
    let kinds = texts(&traced, "events", "kind");
    let details = texts(&traced, "events", "detail");
    let said: Vec<_> = kinds
        .iter()
        .zip(&details)
        .map(|(kind, detail)| format!("{kind} {detail}"))
        .collect();
    assert!(
        said.contains(&"address-added 10.9.0.2 as 5".to_owned()),
        "{said:?}"
    );
    assert!(
        said.contains(&"priority-changed normal".to_owned()),
        "{said:?}"
    );
}

/// What answers without MP_CAPABLE speaks plain TCP (RFC 8684 section 3.7).
#[test]
fn an_answer_without_the_option_is_a_fallback() {
    let mut script = Script::new();
    script.send(
        CLIENT,
        SERVER,
        &with(segment(9, 0, Flags::SYN, 0), capable(1, None, None)),
    );
    script.send(
        SERVER,
        CLIENT,
        &segment(500, 10, Flags::SYN | Flags::ACK, 0),
    );
    script.send(CLIENT, SERVER, &segment(10, 501, Flags::ACK, 0));
    script.send(CLIENT, SERVER, &segment(10, 501, Flags::ACK, 100));
    script.send(SERVER, CLIENT, &segment(501, 110, Flags::ACK, 0));
    let traced = script.trace("fallback");
    assert_eq!(texts(&traced, "connection_ends", "transport"), ["fallback"]);
    assert_eq!(
        numbers(&traced, "connection_ends", "server_received_bytes"),
        [100]
    );
    let details = texts(&traced, "events", "detail");
    assert!(
        details.contains(&"no MP_CAPABLE on the SYN/ACK".to_owned()),
        "{details:?}"
    );
}

/// A join whose connection began before the capture.
#[test]
fn a_join_of_keys_that_were_not_captured_stands_alone() {
    let mut script = Script::new();
    let join = MpJoin::Syn {
        backup: false,
        address_id: 2,
        token: 77,
        nonce: 1,
    };
    script.send(
        OTHER,
        SERVER,
        &with(segment(7, 0, Flags::SYN, 0), MptcpOption::Join(join)),
    );
    let traced = script.trace("alone");
    assert_eq!(texts(&traced, "connection_ends", "transport"), ["mptcp"]);
    let notes = traced.told.notes.join("; ");
    assert!(notes.contains("whose keys were not captured"), "{notes}");
}

/// A probe of one byte that was acknowledged, and a segment that sends old and new data.
#[test]
fn what_was_acknowledged_is_sent_again_and_not_reinjected() {
    let mut script = Script::new();
    script.send(CLIENT, SERVER, &segment(9, 0, Flags::SYN, 0));
    script.send(
        SERVER,
        CLIENT,
        &segment(500, 10, Flags::SYN | Flags::ACK, 0),
    );
    script.send(CLIENT, SERVER, &segment(10, 501, Flags::ACK, 100));
    script.send(SERVER, CLIENT, &segment(501, 110, Flags::ACK, 0));
    script.send(CLIENT, SERVER, &segment(109, 501, Flags::ACK, 1));
    script.send(SERVER, CLIENT, &segment(501, 110, Flags::ACK, 0));
    script.send(CLIENT, SERVER, &segment(60, 501, Flags::ACK, 150));
    script.send(SERVER, CLIENT, &segment(501, 210, Flags::ACK, 0));
    let traced = script.trace("again");
    for (column, bytes) in [("sent", 200), ("retransmitted", 50), ("reinjected", 0)] {
        let column = format!("client_{column}_bytes");
        assert_eq!(
            numbers(&traced, "subflow_ends", &column),
            [bytes],
            "{column}"
        );
    }
    let kinds = texts(&traced, "events", "kind");
    assert!(!kinds.contains(&"reinjection".to_owned()), "{kinds:?}");
}

/// Both subflows were there before the capture: no token tells that they belong together.
#[test]
fn data_sequence_numbers_join_what_began_before() {
    let first = idsn(1, KEYS.0).wrapping_add(1);
    for whole in [true, false] {
        let mut script = Script::new();
        let ack = |number: u64| {
            if whole {
                DataAck::Long(number.into())
            } else {
                DataAck::Short(number as u32)
            }
        };
        let sent = |begin: u32, at: u32, offset: u64| {
            let mut segment = data(1, begin, at, offset);
            let dss = segment.dss.as_mut().unwrap();
            dss.data_ack = Some(ack(77));
            if !whole {
                let number = first.wrapping_add(offset) as u32;
                dss.mapping.as_mut().unwrap().dsn = Dsn::Short(number);
            }
            segment
        };
        let acknowledged = |seq: u32, upto: u32, offset: u64| Segment {
            dss: Some(Dss {
                data_ack: Some(ack(first.wrapping_add(offset))),
                mapping: None,
                data_fin: false,
            }),
            ..segment(seq, upto, Flags::ACK, 0)
        };
        script.send(CLIENT, SERVER, &sent(9, 1001, 5000));
        script.send(OTHER, SERVER, &sent(1 << 30, 2001, 5100));
        script.send(SERVER, CLIENT, &acknowledged(501, 1110, 5100));
        script.send(
            SERVER,
            OTHER,
            &acknowledged(1 << 29, (1 << 30) + 2101, 5200),
        );
        let traced = script.trace(&format!("before-{whole}"));
        assert_eq!(numbers(&traced, "subflow_ends", "connection"), [0, 0]);
        assert_eq!(
            numbers(&traced, "connection_ends", "server_received_bytes"),
            [200]
        );
        let notes = traced.told.notes.join("; ");
        assert!(
            notes.contains("1 of 2 subflows belong to a connection by"),
            "{notes}"
        );
    }
}

#[test]
fn options_that_are_cut_are_said() {
    for (snaplen, said) in [(57, true), (58, false)] {
        let mut script = Script::cut_at(snaplen);
        script.send(
            CLIENT,
            SERVER,
            &with(segment(9, 0, Flags::SYN, 0), capable(1, None, None)),
        );
        let traced = script.trace(&format!("cut-{snaplen}"));
        let notes = traced.told.notes.join("; ");
        assert_eq!(
            notes.contains("1 segments were cut within their options"),
            said,
            "{notes}"
        );
    }
}
