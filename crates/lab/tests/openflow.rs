//! Switches that speak OpenFlow with a controller outside. The controller is written here, byte for byte.

use polypath_lab::{CaptureMode, Simulation, Step};
use polypath_wire::openflow::{
    ALL_TABLES, Action, Bucket, Fault, FlowMod, FlowQuery, FlowStats, Group, GroupMod, Instruction,
    Message, NO_BUFFER, PacketOut, Reply, Request, WHOLE, command, emit, flag, number, parse,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const DELAY: u64 = 10 * MS;

/// Two hosts at one switch, whose controller is outside; the transfer begins after 100 ms, and a link fails for a while after 1 s.
fn plan() -> Value {
    let choice = |name: &str| json!({"name": name});
    let stack = json!({
        "profile": "rfc", "scheduler": choice("default"),
        "path_manager": {"name": "default", "parameters": {}},
        "congestion": choice("reno"), "receive_buffer": [4096, 131_072, 6_291_456],
        "send_buffer": [4096, 16_384, 4_194_304], "autotuning": true, "mtu": 1500, "initial_window": 10,
        "sack": true, "timestamps": true, "window_scaling": true, "ecn": false, "checksum": false,
        "nagle": true, "rto_min_ns": 200 * MS, "rto_initial_ns": 1000 * MS, "delayed_ack_ns": 40 * MS,
    });
    let channel = json!({"rate_bps": 20_000_000, "delay_ns": MS, "queue": {"kind": "drop-tail", "packets": 20}});
    let link = |name: &str, host: usize| {
        let (a, b) = (
            json!({"node": host, "interface": 0}),
            json!({"node": 0, "interface": host - 1}),
        );
        json!({"name": name, "a": a, "b": b, "forward": channel, "backward": channel})
    };
    let host = |number: usize| {
        let own = json!({"name": "eth0", "addresses": [format!("10.0.0.{number}")]});
        json!({"name": format!("h{number}"), "kind": "host", "interfaces": [own], "stack": stack})
    };
    let port = |name: &str| json!({"name": name, "addresses": []});
    let state = |at: u64, up: bool| {
        let action = json!({"kind": "link", "link": 1, "direction": "both", "up": up});
        json!({"at_ns": at * MS, "action": action})
    };
    json!({
        "version": 1, "name": "outside", "seed": 3, "duration_ns": 20_000 * MS,
        "nodes": [
            {"name": "s1", "kind": "switch", "interfaces": [port("p1"), port("p2")]}, host(1), host(2),
        ],
        "links": [link("l1", 1), link("l2", 2)],
        "applications": [{
            "name": "a", "client": 1, "server": 2, "transport": "tcp", "port": 80,
            "start_ns": 100 * MS, "work": {"kind": "bulk", "size_bytes": 60_000},
        }],
        "events": [state(5000, false), state(5100, true)],
        "controller": {"app": {"file": "outside.py", "source": ""}, "delay_ns": DELAY},
    })
}

fn simulation() -> Simulation {
    Simulation::new(&plan().to_string(), CaptureMode::None, None)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn send(simulation: &mut Simulation, xid: u32, message: &Message) {
    let mut bytes = Vec::new();
    emit(xid, message, &mut bytes).expect("it is short");
    assert!(simulation.controller_sends(1, bytes));
}

/// What comes up to a time, with when.
fn hear(simulation: &mut Simulation, until: u64) -> Vec<(u64, u32, Message)> {
    let mut heard = Vec::new();
    loop {
        let step = simulation
            .step(until)
            .unwrap_or_else(|error| panic!("{error}"));
        let now = simulation.now();
        for (datapath, bytes) in simulation.controller_receives() {
            assert_eq!(datapath, 1);
            let (xid, message) = parse(&bytes).expect("switches make no mistakes");
            heard.push((now, xid, message));
        }
        if step != Step::Partly {
            return heard;
        }
    }
}

fn hello() -> Message {
    Message::Hello {
        version: 4,
        versions: None,
    }
}

fn flow_mod(actions: Vec<Action>) -> FlowMod {
    FlowMod {
        cookie: 7,
        cookie_mask: 0,
        table: 0,
        command: command::ADD,
        idle_timeout: 0,
        hard_timeout: 0,
        priority: 0,
        buffer: NO_BUFFER,
        out_port: number::ANY,
        out_group: u32::MAX,
        flags: 0,
        matching: Vec::new(),
        instructions: vec![Instruction::Apply(actions)],
    }
}

fn to_controller(max_len: u16) -> Message {
    let port = number::CONTROLLER;
    Message::FlowMod(flow_mod(vec![Action::Output { port, max_len }]))
}

#[test]
fn requests_are_answered_in_order_after_the_links_delay() {
    let mut simulation = simulation();
    let first = hear(&mut simulation, 20 * MS);
    assert!(matches!(first[..], [(DELAY, _, Message::Hello { .. })]));
    let now = simulation.now();
    send(&mut simulation, 1, &hello());
    send(&mut simulation, 2, &Message::FeaturesRequest);
    send(&mut simulation, 3, &Message::EchoRequest(vec![1, 2]));
    let request = Request::PortDescription;
    let more = false;
    send(
        &mut simulation,
        4,
        &Message::MultipartRequest { more, request },
    );
    send(&mut simulation, 5, &Message::BarrierRequest);
    let answers = hear(&mut simulation, now + 50 * MS);
    let xids: Vec<u32> = answers.iter().map(|(_, xid, _)| *xid).collect();
    assert_eq!(xids, [2, 3, 4, 5]);
    assert!(answers.iter().all(|(at, ..)| *at == now + 2 * DELAY));
    let Message::FeaturesReply(features) = &answers[0].2 else {
        panic!("{:?}", answers[0]);
    };
    assert_eq!((features.datapath, features.tables), (1, 8));
    assert_eq!(answers[1].2, Message::EchoReply(vec![1, 2]));
    let Message::MultipartReply {
        reply: Reply::PortDescription(ports),
        ..
    } = &answers[2].2
    else {
        panic!("{:?}", answers[2]);
    };
    let ports: Vec<_> = ports.iter().map(|it| (it.number, it.state)).collect();
    assert_eq!(ports, [(1, 4), (2, 4)]);
    assert_eq!(answers[3].2, Message::BarrierReply);
}

/// A hub: each packet comes here and is sent out by all other ports, from the switch's buffer or whole.
fn transfer_through_the_controller(max_len: u16) {
    let mut simulation = simulation();
    hear(&mut simulation, 20 * MS);
    send(&mut simulation, 1, &hello());
    send(&mut simulation, 2, &to_controller(max_len));
    let (mut packets, mut ports) = (0, Vec::new());
    let mut over = false;
    while !over {
        over = simulation.step(20_000 * MS).expect("it goes on") != Step::Partly;
        for (_, bytes) in simulation.controller_receives() {
            match parse(&bytes).expect("switches make no mistakes").1 {
                Message::PacketIn(packet) => {
                    packets += 1;
                    assert_eq!((packet.reason, packet.table, packet.cookie), (0, 0, 7));
                    let in_port = packet.matching[0].value as u32;
                    let kept = packet.buffer != NO_BUFFER;
                    assert_eq!(kept, max_len != WHOLE);
                    assert_eq!(&packet.data[12..14], [8, 0], "an IPv4 packet");
                    let whole = packet.data.len() == usize::from(packet.total_len);
                    assert!(whole || packet.data.len() == usize::from(max_len));
                    let out = PacketOut {
                        buffer: packet.buffer,
                        in_port,
                        actions: vec![Action::Output {
                            port: number::FLOOD,
                            max_len: 0,
                        }],
                        data: if kept { Vec::new() } else { packet.data },
                    };
                    send(&mut simulation, 9, &Message::PacketOut(out));
                }
                Message::PortStatus { reason: 2, port } => ports.push((port.number, port.state)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(simulation.delivered_bytes(), 60_000);
    let totals = simulation.switch_totals().expect("there is a switch");
    assert_eq!((totals.handed, totals.sent_out), (packets, packets));
    assert_eq!(totals.stopped, totals.forwarded);
    assert!(packets > 60_000 / 1460, "{packets} packets");
}

#[test]
fn packets_pass_through_the_controller_whole() {
    transfer_through_the_controller(WHOLE);
}

#[test]
fn packets_pass_through_the_controller_from_the_switchs_buffer() {
    transfer_through_the_controller(64);
}

/// A frame that nobody sent crosses the network like others.
#[test]
fn a_controllers_own_frame_comes_back_from_the_tables() {
    let mut simulation = simulation();
    hear(&mut simulation, 20 * MS);
    send(&mut simulation, 1, &hello());
    send(&mut simulation, 2, &to_controller(WHOLE));
    let mut frame = vec![1, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc];
    frame.extend([0; 20]);
    let out = PacketOut {
        buffer: NO_BUFFER,
        in_port: 2,
        actions: vec![Action::Output {
            port: number::TABLE,
            max_len: 0,
        }],
        data: frame.clone(),
    };
    send(&mut simulation, 3, &Message::PacketOut(out));
    let heard = hear(&mut simulation, 60 * MS);
    let [(40_000_000, _, Message::PacketIn(packet))] = &heard[..] else {
        panic!("{heard:?}");
    };
    assert_eq!((packet.data.clone(), packet.matching[0].value), (frame, 2));
}

/// What a switch tells of its only entry: packets and bytes, and how long it is there.
fn only_entry(simulation: &mut Simulation, until: u64) -> FlowStats {
    let query = FlowQuery {
        table: ALL_TABLES,
        out_port: number::ANY,
        out_group: u32::MAX,
        cookie: 0,
        cookie_mask: 0,
        matching: Vec::new(),
    };
    let request = Request::Flow(query);
    let more = false;
    send(simulation, 1, &Message::MultipartRequest { more, request });
    let mut heard = hear(simulation, until);
    let Some((.., Message::MultipartReply { reply, .. })) = heard.pop() else {
        panic!("{heard:?}");
    };
    let Reply::Flow(mut entries) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(entries.len(), 1);
    entries.remove(0)
}

/// A switch that floods has done so for a transfer; another begins later.
fn flooded() -> (Simulation, FlowMod) {
    let mut plan = plan();
    let mut later = plan["applications"][0].clone();
    later["port"] = json!(81);
    later["start_ns"] = json!(10_000 * MS);
    let applications = plan["applications"].as_array_mut();
    applications.expect("a list").push(later);
    let made = Simulation::new(&plan.to_string(), CaptureMode::None, None);
    let mut simulation = made.unwrap_or_else(|error| panic!("{error}"));
    send(&mut simulation, 1, &hello());
    let flood = Action::Output {
        port: number::FLOOD,
        max_len: 0,
    };
    let given = flow_mod(vec![flood]);
    send(&mut simulation, 2, &Message::FlowMod(given.clone()));
    hear(&mut simulation, 4_000 * MS);
    (simulation, given)
}

/// Section 6.4: what an entry did goes on with the one that takes its place, unless it is to be forgotten.
#[test]
fn an_entry_that_takes_anothers_place_has_its_counters() {
    let (mut simulation, mut given) = flooded();
    let before = only_entry(&mut simulation, 4_050 * MS);
    assert!(before.bytes > 60_000, "the transfer is over");
    send(&mut simulation, 3, &Message::FlowMod(given.clone()));
    let after = only_entry(&mut simulation, 4_150 * MS);
    assert_eq!((after.packets, after.bytes), (before.packets, before.bytes));
    assert!(after.seconds < before.seconds, "its time begins again");
    given.flags = flag::RESET_COUNTS;
    send(&mut simulation, 4, &Message::FlowMod(given));
    assert_eq!(only_entry(&mut simulation, 4_200 * MS).packets, 0);
}

#[test]
fn an_entry_is_told_as_it_was_given() {
    let (mut simulation, given) = flooded();
    let told = only_entry(&mut simulation, 4_050 * MS);
    assert_eq!(told.instructions, given.instructions);
}

#[test]
fn entries_count_the_bytes_of_frames_as_ports_do() {
    let (mut simulation, _) = flooded();
    let entry = only_entry(&mut simulation, 4_050 * MS);
    let (more, request) = (false, Request::Port(number::ANY));
    let asked = Message::MultipartRequest { more, request };
    send(&mut simulation, 1, &asked);
    let heard = hear(&mut simulation, 4_100 * MS);
    let Some((.., Message::MultipartReply { reply, .. })) = heard.first() else {
        panic!("{heard:?}");
    };
    let Reply::Port(ports) = reply else {
        panic!("{reply:?}");
    };
    let came = |what: usize| ports.iter().map(|port| port.counters[what]).sum::<u64>();
    assert_eq!((entry.packets, entry.bytes), (came(0), came(2)));
}

/// As `OFPGFC_SELECT_LIVENESS` says.
#[test]
fn groups_that_select_watch_their_ports() {
    let mut simulation = simulation();
    send(&mut simulation, 1, &hello());
    let group = |watch_port: u32| {
        let bucket = Bucket {
            weight: 1,
            watch_port,
            watch_group: u32::MAX,
            actions: vec![Action::Output {
                port: 2,
                max_len: 0,
            }],
        };
        let buckets = vec![bucket];
        Group {
            kind: 1,
            group: 5,
            buckets,
        }
    };
    for (xid, watched) in [(2, 2), (3, 9)] {
        let group = group(watched);
        send(
            &mut simulation,
            xid,
            &Message::GroupMod(GroupMod { command: 0, group }),
        );
    }
    let (more, request) = (false, Request::GroupDescription);
    send(
        &mut simulation,
        4,
        &Message::MultipartRequest { more, request },
    );
    let heard = hear(&mut simulation, 40 * MS);
    let [
        ..,
        (_, 3, Message::Error { fault, .. }),
        (_, 4, Message::MultipartReply { reply, .. }),
    ] = &heard[..]
    else {
        panic!("{heard:?}");
    };
    assert_eq!(*fault, Fault::BAD_WATCH);
    assert_eq!(*reply, Reply::GroupDescription(vec![group(2)]));
}

#[test]
fn mistakes_are_answered_with_the_error_that_they_are() {
    let mut simulation = simulation();
    hear(&mut simulation, 20 * MS);
    send(&mut simulation, 1, &hello());
    let output = |port: u32| Action::Output { port, max_len: 0 };
    let mut far = flow_mod(vec![output(1)]);
    far.table = 99;
    let mut odd = flow_mod(vec![output(1)]);
    odd.command = 9;
    let out = |buffer: u32, in_port: u32| {
        Message::PacketOut(PacketOut {
            buffer,
            in_port,
            actions: vec![output(1)],
            data: vec![0],
        })
    };
    let cases = [
        (
            Message::FlowMod(flow_mod(vec![output(9)])),
            Fault::BAD_OUT_PORT,
        ),
        (
            Message::FlowMod(flow_mod(vec![Action::Group(5)])),
            Fault::BAD_OUT_GROUP,
        ),
        (Message::FlowMod(far), Fault::BAD_TABLE),
        (Message::FlowMod(odd), Fault::BAD_COMMAND),
        (out(5, 1), Fault::BUFFER_UNKNOWN),
        (out(NO_BUFFER, 9), Fault::REQUEST_BAD_PORT),
        (out(NO_BUFFER, 1), Fault::BAD_PACKET),
        (
            Message::RoleRequest {
                role: 9,
                generation: 0,
            },
            Fault::BAD_ROLE,
        ),
        (Message::BarrierReply, Fault::BAD_TYPE),
    ];
    for (xid, (message, _)) in (100..).zip(&cases) {
        send(&mut simulation, xid, message);
    }
    let heard = hear(&mut simulation, 60 * MS);
    assert_eq!(heard.len(), cases.len());
    for ((xid, (_, wanted)), (_, own, answer)) in (100..).zip(&cases).zip(&heard) {
        let Message::Error { fault, data } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!((fault, *own), (wanted, xid));
        assert_eq!(data[4..8], xid.to_be_bytes());
    }
    // A slave may look and not change.
    let slave = Message::RoleRequest {
        role: 3,
        generation: 1,
    };
    send(&mut simulation, 1, &slave);
    send(&mut simulation, 2, &to_controller(WHOLE));
    let heard = hear(&mut simulation, 90 * MS);
    let [
        (.., Message::RoleReply { role: 3, .. }),
        (.., Message::Error { fault, .. }),
    ] = &heard[..]
    else {
        panic!("{heard:?}");
    };
    assert_eq!(*fault, Fault::IS_SLAVE);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever comes, a switch lives, and answers what it cannot read with an error.
    #[test]
    fn no_bytes_stop_a_switch(
        kind in 0..31u8,
        body in proptest::collection::vec(any::<u8>(), 0..90),
        tail in proptest::collection::vec(any::<u8>(), 0..30),
    ) {
        let mut simulation = simulation();
        hear(&mut simulation, 20 * MS);
        send(&mut simulation, 1, &hello());
        let mut bytes = vec![4, kind, 0, 8 + body.len() as u8, 0, 0, 0, 77];
        bytes.extend_from_slice(&body);
        let refused = parse(&bytes).err();
        bytes.extend_from_slice(&tail);
        simulation.controller_sends(1, bytes);
        let heard = hear(&mut simulation, 200 * MS);
        if let Some(fault) = refused {
            let answered = heard.iter().any(|(_, xid, message)| {
                *xid == 77 && matches!(message, Message::Error { fault: own, .. } if *own == fault)
            });
            prop_assert!(answered, "{fault:?} in {heard:?}");
        }
    }
}
