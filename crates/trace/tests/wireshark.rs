//! tshark reads a handwritten capture as intended, and finds nothing wrong with it.

use std::net::IpAddr;
use std::process::Command;

use polypath_trace::pcapng::{Direction, Writer};
use polypath_trace::{Envelope, FrameBuilder, Mac};
use polypath_wire::icmp::Echo;
use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MpCapable, MpJoin, MptcpOption};
use polypath_wire::tcp::{Flags, Payload, Segment};
use sha2::{Digest, Sha256};

const CLIENT_KEY: u64 = 0x0102_0304_0506_0708;
const SERVER_KEY: u64 = 0x1112_1314_1516_1718;
const STREAM: u64 = 42;
const PORTS: (u16, u16) = (50_000, 4000);

/// Token and initial data sequence number (RFC 8684 section 3.1).
fn token_and_idsn(key: u64) -> (u32, u64) {
    let digest = Sha256::digest(key.to_be_bytes());
    let token = u32::from_be_bytes(digest[..4].try_into().unwrap());
    (token, u64::from_be_bytes(digest[24..].try_into().unwrap()))
}

fn envelope(src: &str, dst: &str) -> Envelope {
    let (src, dst): (IpAddr, IpAddr) = (src.parse().unwrap(), dst.parse().unwrap());
    Envelope {
        src_mac: Mac::local(1),
        dst_mac: Mac::local(2),
        src,
        dst,
        ttl: 64,
        identification: 7,
        ecn: 2,
        corrupted: false,
    }
}

struct Capture {
    builder: FrameBuilder,
    writer: Writer<Vec<u8>>,
    interface: polypath_trace::pcapng::Interface,
    time_ns: u64,
    /// Sequence numbers of client and server.
    next: [u32; 2],
    ports: (u16, u16),
    stream: u64,
}

impl Capture {
    fn new() -> Self {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let interface = writer.interface("phone-wlan", 0).unwrap();
        Self {
            builder: FrameBuilder::new(),
            writer,
            interface,
            time_ns: 0,
            next: [1000, 90_000],
            ports: PORTS,
            stream: STREAM,
        }
    }

    fn put(&mut self, frame: &[u8], direction: Direction) {
        self.time_ns += 1_000_001;
        self.writer
            .packet(self.interface, self.time_ns, direction, frame)
            .unwrap();
    }

    /// A segment of the client (0) or the server (1), numbered after the last one.
    fn tcp(&mut self, side: usize, addresses: [&str; 2], mut segment: Segment, dsn: Option<u64>) {
        let ports = [self.ports, (self.ports.1, self.ports.0)][side];
        segment.seq = self.next[side];
        segment.ack = self.next[1 - side];
        segment.window = 1000;
        segment.timestamps = Some((1, 2));
        self.next[side] += segment.seq_len();
        let envelope = envelope(addresses[side], addresses[1 - side]);
        let mut frame = Vec::new();
        self.builder
            .tcp(&envelope, ports, &segment, self.stream, dsn, &mut frame)
            .unwrap();
        self.put(&frame, [Direction::Outbound, Direction::Inbound][side]);
    }
}

fn plain(flags: Flags) -> Segment {
    Segment {
        flags,
        ..Segment::default()
    }
}

fn with(flags: Flags, option: MptcpOption) -> Segment {
    let mut segment = plain(flags);
    segment.rare_mut().mptcp.push(option);
    segment
}

fn capable(sender_key: Option<u64>, receiver_key: Option<u64>, data: Option<u16>) -> MptcpOption {
    MptcpOption::Capable(MpCapable {
        version: 1,
        checksum_required: true,
        deny_join_initial: false,
        hmac_sha256: true,
        sender_key,
        receiver_key,
        data: data.map(|len| (len, Some(0))),
    })
}

const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);
const FIRST: [&str; 2] = ["10.0.0.1", "10.9.0.1"];
const SECOND: [&str; 2] = ["fd00::1", "fd00:9::1"];

fn mapped(dsn: u64, subflow_seq: u32, bytes: u16, offset: u64, data_fin: bool) -> Segment {
    let mapping = Mapping {
        dsn: Dsn::Long(dsn.into()),
        subflow_seq,
        len: bytes + u16::from(data_fin),
        checksum: Some(0),
    };
    Segment {
        flags: Flags::ACK | Flags::PSH,
        dss: Some(Dss {
            data_ack: None,
            mapping: Some(mapping),
            data_fin,
        }),
        payload: Payload {
            offset,
            len: bytes.into(),
        },
        ..Segment::default()
    }
}

/// An MPTCP connection over IPv4 with a subflow over IPv6, and every option on it.
fn connection() -> Vec<u8> {
    let mut capture = Capture::new();
    let (_, client_idsn) = token_and_idsn(CLIENT_KEY);
    let (server_token, _) = token_and_idsn(SERVER_KEY);
    let dsn = client_idsn.wrapping_add(1);

    let mut syn = with(Flags::SYN, capable(None, None, None));
    let rare = syn.rare_mut();
    (rare.mss, rare.window_scale, rare.sack_permitted) = (Some(1460), Some(7), true);
    capture.tcp(0, FIRST, syn, None);
    let mut syn_ack = with(SYN_ACK, capable(Some(SERVER_KEY), None, None));
    (syn_ack.rare_mut().mss, syn_ack.rare_mut().window_scale) = (Some(1460), Some(7));
    capture.tcp(1, FIRST, syn_ack, None);
    capture.tcp(
        0,
        FIRST,
        with(
            Flags::ACK,
            capable(Some(CLIENT_KEY), Some(SERVER_KEY), None),
        ),
        None,
    );
    let mut first = with(
        Flags::ACK,
        capable(Some(CLIENT_KEY), Some(SERVER_KEY), Some(100)),
    );
    first.payload = Payload {
        offset: 0,
        len: 100,
    };
    capture.tcp(0, FIRST, first, Some(dsn));
    let mut ack = plain(Flags::ACK);
    ack.dss = Some(Dss {
        data_ack: Some(DataAck::Long((dsn + 100).into())),
        ..Dss::default()
    });
    capture.tcp(1, FIRST, ack, None);
    capture.tcp(
        0,
        FIRST,
        mapped(dsn + 100, 101, 201, 100, false),
        Some(dsn + 100),
    );
    let mut ack = plain(Flags::ACK);
    ack.dss = Some(Dss {
        data_ack: Some(DataAck::Short((dsn + 301) as u32)),
        ..Dss::default()
    });
    ack.sack.push(2000, 2100);
    capture.tcp(1, FIRST, ack, None);

    let address: [IpAddr; 2] = ["10.0.1.1".parse().unwrap(), "fd00::2".parse().unwrap()];
    let add = |address, port, echo: bool| MptcpOption::AddAddr {
        echo,
        address_id: 1,
        address,
        port,
        hmac: (!echo).then_some(0xabcd),
    };
    for option in [
        add(address[0], None, false),
        add(address[0], Some(443), false),
        add(address[1], None, true),
        add(address[0], Some(443), true),
        MptcpOption::RemoveAddr {
            address_ids: vec![1, 2, 3],
        },
        MptcpOption::RemoveAddr {
            address_ids: vec![1],
        },
        MptcpOption::Prio { backup: true },
        MptcpOption::Fail { dsn },
        MptcpOption::FastClose {
            receiver_key: SERVER_KEY,
        },
    ] {
        capture.tcp(0, FIRST, with(Flags::ACK, option), None);
    }

    let after_first = std::mem::replace(&mut capture.next, [5000, 6000]);
    let join = |join| MptcpOption::Join(join);
    let syn = MpJoin::Syn {
        backup: false,
        address_id: 2,
        token: server_token,
        nonce: 77,
    };
    capture.tcp(0, SECOND, with(Flags::SYN, join(syn)), None);
    let syn_ack = MpJoin::SynAck {
        backup: true,
        address_id: 0,
        hmac: 0x1234,
        nonce: 78,
    };
    capture.tcp(1, SECOND, with(SYN_ACK, join(syn_ack)), None);
    capture.tcp(
        0,
        SECOND,
        with(Flags::ACK, join(MpJoin::Ack { hmac: [9; 20] })),
        None,
    );
    capture.tcp(
        0,
        SECOND,
        mapped(dsn + 301, 1, 64, 301, true),
        Some(dsn + 301),
    );
    let reset = MptcpOption::TcpRst {
        flags: 1,
        reason: 2,
    };
    capture.tcp(0, SECOND, with(Flags::RST | Flags::ACK, reset), None);

    capture.next = after_first;
    capture.tcp(0, FIRST, plain(Flags::FIN | Flags::ACK), None);
    capture.writer.into_inner().unwrap()
}

/// Lines of tab-separated fields of the frames that `filter` lets through; nothing without tshark.
fn tshark(name: &str, capture: &[u8], filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let file = std::env::temp_dir().join(format!("polypath-{}-{name}.pcapng", std::process::id()));
    std::fs::write(&file, capture).unwrap();
    let mut command = Command::new("tshark");
    command
        .arg("-n")
        .arg("-r")
        .arg(&file)
        .args(["-Y", filter, "-T", "fields"]);
    for protocol in ["tcp", "ip", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output();
    std::fs::remove_file(&file).unwrap();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: tshark does not run ({error})");
            return None;
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    Some(
        text.lines()
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect(),
    )
}

#[test]
fn an_mptcp_connection_with_every_option() {
    let fields = [
        "tcp.checksum.status",
        "ip.checksum.status",
        "tcp.options.mptcp.subtype",
        "frame.packet_flags_direction",
        "frame.time_epoch",
        "frame.interface_name",
    ];
    let Some(rows) = tshark("options", &connection(), "frame", &fields) else {
        return;
    };
    let subtypes: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(
        subtypes,
        [
            "0", "0", "0", "0", "2", "2", "2", "3", "3", "3", "3", "4", "4", "5", "6", "7", "1",
            "1", "1", "2", "8", ""
        ]
    );
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row[0], "1", "TCP checksum of frame {}", index + 1);
        let ipv6 = (16..21).contains(&index);
        assert_eq!(
            row[1],
            if ipv6 { "" } else { "1" },
            "IP checksum of frame {}",
            index + 1
        );
        assert_eq!(row[5], "phone-wlan");
    }
    assert_eq!(rows[0][3], "0x00000002");
    assert_eq!(rows[1][3], "0x00000001");
    assert_eq!(rows[1][4], "0.002000002");
}

#[test]
fn nothing_is_malformed_or_out_of_place() {
    let fields = ["frame.number", "_ws.expert.severity", "_ws.expert.message"];
    let filter = "_ws.malformed || (_ws.expert.severity >= 0x00600000 && !tcp.flags.reset)";
    let Some(rows) = tshark("expert", &connection(), filter, &fields) else {
        return;
    };
    assert_eq!(rows, Vec::<Vec<String>>::new());
}

/// To Wireshark all is one connection, with its data sequence numbers: the token of MP_JOIN leads
/// to the first subflow, and the keys to the initial number.
#[test]
fn subflows_belong_together() {
    let fields = ["mptcp.stream", "mptcp.dss.dsn"];
    let Some(rows) = tshark("stream", &connection(), "mptcp.stream", &fields) else {
        return;
    };
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row[0] == "0"), "{rows:?}");
    let mapped: Vec<&str> = rows
        .iter()
        .map(|row| row[1].as_str())
        .filter(|dsn| !dsn.is_empty())
        .collect();
    assert_eq!(mapped, ["101", "302"]);
}

#[test]
fn datagrams_and_echoes() {
    let mut capture = Capture::new();
    let pairs = [("10.0.0.1", "10.9.0.1"), ("fd00::1", "fd00:9::1")];
    let stretch = Payload {
        offset: 5,
        len: 333,
    };
    for (src, dst) in pairs {
        let mut frame = Vec::new();
        let echo = Echo {
            reply: false,
            identifier: 3,
            sequence: 9,
        };
        capture
            .builder
            .udp(&envelope(src, dst), (5, 6000), STREAM, stretch, &mut frame)
            .unwrap();
        capture.put(&frame, Direction::Outbound);
        frame.clear();
        capture
            .builder
            .icmp_echo(&envelope(src, dst), echo, STREAM, stretch, &mut frame)
            .unwrap();
        capture.put(&frame, Direction::Outbound);
    }
    let fields = [
        "_ws.malformed",
        "udp.checksum.status",
        "icmp.checksum.status",
        "icmpv6.checksum.status",
    ];
    let capture = capture.writer.into_inner().unwrap();
    let Some(rows) = tshark("datagrams", &capture, "frame", &fields) else {
        return;
    };
    assert_eq!(
        rows,
        [
            ["", "1", "", ""],
            ["", "", "1", ""],
            ["", "1", "", ""],
            ["", "", "", "1"]
        ]
    );
}

#[test]
fn a_corrupted_packet_has_a_bad_checksum() {
    let mut capture = Capture::new();
    for len in [0, 100] {
        for (src, dst) in [("10.0.0.1", "10.9.0.1"), ("fd00::1", "fd00:9::1")] {
            let envelope = Envelope {
                corrupted: true,
                ..envelope(src, dst)
            };
            let segment = Segment {
                payload: Payload { offset: 0, len },
                ..plain(Flags::ACK)
            };
            let mut frame = Vec::new();
            capture
                .builder
                .tcp(&envelope, (1, 2), &segment, STREAM, None, &mut frame)
                .unwrap();
            capture.put(&frame, Direction::Inbound);
        }
    }
    let capture = capture.writer.into_inner().unwrap();
    let Some(rows) = tshark("corrupted", &capture, "frame", &["tcp.checksum.status"]) else {
        return;
    };
    assert_eq!(rows, [["0"], ["0"], ["0"], ["0"]]);
}

#[test]
fn a_report_of_a_long_packet_quotes_it() {
    let mut capture = Capture::new();
    for (src, dst, router) in [
        ("10.0.0.1", "10.9.0.1", "10.0.0.254"),
        ("fd00::1", "fd00:9::1", "fd00::fe"),
    ] {
        let segment = Segment {
            seq: 77,
            payload: Payload {
                offset: 0,
                len: 1400,
            },
            ..plain(Flags::ACK)
        };
        let mut packet = Vec::new();
        let there = envelope(src, dst);
        capture
            .builder
            .tcp(&there, (1, 2), &segment, STREAM, None, &mut packet)
            .unwrap();
        let mut frame = Vec::new();
        capture
            .builder
            .icmp_too_big(&envelope(router, src), 1300, &packet[14..], &mut frame)
            .unwrap();
        capture.put(&frame, Direction::Inbound);
    }
    let fields = [
        "_ws.malformed",
        "frame.len",
        "icmp.mtu",
        "icmpv6.mtu",
        "icmp.checksum.status",
        "icmpv6.checksum.status",
        "tcp.srcport",
    ];
    let capture = capture.writer.into_inner().unwrap();
    let Some(rows) = tshark("too-big", &capture, "frame", &fields) else {
        return;
    };
    assert_eq!(
        rows,
        [
            ["", "590", "1300", "", "1", "", "1"],
            ["", "1294", "", "1300", "", "1", "1"]
        ]
    );
}

/// Segments of payload, of many lengths and from many offsets, each as the first of its connection; and datagrams. To none of the ports does
/// Wireshark give a protocol by the number alone.
fn payload_alone() -> Vec<u8> {
    let mut capture = Capture::new();
    for (number, port) in (0..4_000u16).zip([5002, 5201, 8765, 50_123].into_iter().cycle()) {
        capture.next = [1000, 90_000];
        capture.ports = (50_200 + number, port);
        capture.stream = number.into();
        let side = usize::from(number % 2);
        let offset = u64::from(number) * 1_397;
        let len = [1428, 8, 536, 20, 60, 1, 1368][usize::from(number) % 7];
        let mut data = plain(Flags::ACK | Flags::PSH);
        data.payload = Payload { offset, len };
        let payload = data.payload;
        capture.tcp(side, FIRST, data, None);
        let (envelope, stream) = (envelope(FIRST[0], FIRST[1]), capture.stream);
        let mut frame = Vec::new();
        let built = (capture.builder).udp(&envelope, capture.ports, stream, payload, &mut frame);
        built.unwrap();
        capture.put(&frame, Direction::Outbound);
    }
    capture.writer.into_inner().unwrap()
}

#[test]
fn payload_is_no_other_protocol() {
    let Some(rows) = tshark("payload", &payload_alone(), "frame", &["frame.protocols"]) else {
        return;
    };
    assert_eq!(rows.len(), 8_000);
    let odd: std::collections::BTreeSet<&str> = rows
        .iter()
        .map(|row| row[0].as_str())
        .filter(|it| {
            !matches!(
                *it,
                "eth:ethertype:ip:tcp:data" | "eth:ethertype:ip:udp:data"
            )
        })
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
}

/// A request and its response, cut into segments that do not care where a head ends.
fn exchange() -> Vec<u8> {
    const REQUEST: &str = "GET /file HTTP/1.1\r\nHost: server\r\n\r\n";
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n";
    let mut capture = Capture::new();
    for (side, text) in [REQUEST, HEAD].into_iter().enumerate() {
        let texts = &mut capture.builder.texts;
        texts.insert(side as u64, 0, text.as_bytes().into());
    }
    let mut syn = plain(Flags::SYN);
    syn.rare_mut().mss = Some(1460);
    capture.tcp(0, FIRST, syn, None);
    capture.tcp(1, FIRST, plain(SYN_ACK), None);
    for (side, len) in [REQUEST.len(), HEAD.len() + 3000].into_iter().enumerate() {
        capture.stream = side as u64;
        for offset in (0..len).step_by(25) {
            let mut data = plain(Flags::ACK | Flags::PSH);
            data.payload = Payload {
                offset: offset as u64,
                len: (len - offset).min(25) as u32,
            };
            capture.tcp(side, FIRST, data, None);
        }
    }
    capture.writer.into_inner().unwrap()
}

#[test]
fn http_is_read_as_such() {
    let fields = [
        "http.request.uri",
        "http.response.code",
        "http.content_length",
        "http.file_data",
    ];
    let Some(rows) = tshark("http", &exchange(), "http", &fields) else {
        return;
    };
    let [request, response] = &rows[..] else {
        panic!("{} messages", rows.len());
    };
    assert_eq!(request[0], "/file");
    assert_eq!(
        (response[1].as_str(), response[2].as_str()),
        ("200", "3000")
    );
    assert_eq!(response[3].len(), 3000);
}
