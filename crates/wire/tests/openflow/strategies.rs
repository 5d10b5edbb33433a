//! Messages of any content.

use polypath_wire::openflow::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        any::<(u32, u16)>().prop_map(|(port, max_len)| Action::Output { port, max_len }),
        any::<u32>().prop_map(Action::Group),
    ]
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    vec(action(), 0..5)
}

fn instructions() -> impl Strategy<Value = Vec<Instruction>> {
    (
        option::of(any::<u8>()),
        option::of(actions()),
        option::of(actions()),
        any::<bool>(),
    )
        .prop_map(|(goto, write, apply, clear)| {
            let clear = clear.then_some(Instruction::Clear);
            let apply = apply.map(Instruction::Apply);
            let write = write.map(Instruction::Write);
            let goto = goto.map(Instruction::Goto);
            let all = [apply, clear, write, goto];
            all.into_iter().flatten().collect()
        })
}

fn value(field: Field) -> impl Strategy<Value = Oxm> {
    (any::<u128>(), option::of(any::<u128>())).prop_map(move |(value, mask)| {
        let mask = mask.filter(|_| field.is_maskable());
        let mask = mask.map(|mask| mask & field.full());
        let value = value & mask.unwrap_or(field.full());
        Oxm { field, value, mask }
    })
}

/// Fields with what they ask for before them.
pub fn matching() -> impl Strategy<Value = Vec<Oxm>> {
    let ethernet = (
        option::of(value(Field::InPort)),
        option::of(value(Field::EthDst)),
        option::of(value(Field::EthSrc)),
    );
    let network = (
        option::of(any::<bool>()),
        option::of(any::<bool>()),
        option::of(value(Field::Ipv4Dst)),
        option::of(value(Field::Ipv6Src)),
        option::of(value(Field::TcpDst)),
        option::of(value(Field::UdpSrc)),
    );
    (ethernet, network).prop_map(
        |((port, to, from), (v4, tcp, v4_to, v6_from, tcp_to, udp_from))| {
            let mut all: Vec<Oxm> = [port, to, from].into_iter().flatten().collect();
            let Some(v4) = v4 else {
                return all;
            };
            let ethertype = if v4 { 0x0800 } else { 0x86dd };
            all.push(Oxm::exact(Field::EthType, ethertype));
            all.extend(if v4 { v4_to } else { v6_from });
            if let Some(tcp) = tcp {
                all.push(Oxm::exact(Field::IpProto, if tcp { 6 } else { 17 }));
                all.extend(if tcp { tcp_to } else { udp_from });
            }
            all
        },
    )
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..100)
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(1u8.., 0..16)
}

fn port() -> impl Strategy<Value = Port> {
    (
        any::<(u32, [u8; 6], u32, u32, [u32; 4], u32, u32)>(),
        vec(1u8.., 0..16),
    )
        .prop_map(
            |((number, address, config, state, features, current_speed, max_speed), name)| Port {
                number,
                address,
                name,
                config,
                state,
                features,
                current_speed,
                max_speed,
            },
        )
}

fn group() -> impl Strategy<Value = Group> {
    let bucket = (any::<(u16, u32, u32)>(), actions());
    let bucket = bucket.prop_map(|((weight, watch_port, watch_group), actions)| Bucket {
        weight,
        watch_port,
        watch_group,
        actions,
    });
    (any::<(u8, u32)>(), vec(bucket, 0..4)).prop_map(|((kind, group), buckets)| Group {
        kind,
        group,
        buckets,
    })
}

fn flow_mod() -> impl Strategy<Value = FlowMod> {
    (
        any::<(u64, u64, u8, u8, u16, u16, u16)>(),
        any::<(u32, u32, u32, u16)>(),
        matching(),
        instructions(),
    )
        .prop_map(|(first, second, matching, instructions)| FlowMod {
            cookie: first.0,
            cookie_mask: first.1,
            table: first.2,
            command: first.3,
            idle_timeout: first.4,
            hard_timeout: first.5,
            priority: first.6,
            buffer: second.0,
            out_port: second.1,
            out_group: second.2,
            flags: second.3,
            matching,
            instructions,
        })
}

fn query() -> impl Strategy<Value = FlowQuery> {
    (any::<(u8, u32, u32, u64, u64)>(), matching()).prop_map(
        |((table, out_port, out_group, cookie, cookie_mask), matching)| FlowQuery {
            table,
            out_port,
            out_group,
            cookie,
            cookie_mask,
            matching,
        },
    )
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        Just(Request::Description),
        query().prop_map(Request::Flow),
        query().prop_map(Request::Aggregate),
        Just(Request::Table),
        any::<u32>().prop_map(Request::Port),
        any::<u32>().prop_map(Request::Group),
        Just(Request::GroupDescription),
        Just(Request::GroupFeatures),
        Just(Request::PortDescription),
    ]
}

fn flow_stats() -> impl Strategy<Value = FlowStats> {
    (
        any::<(u8, u32, u32, u16, u16, u16, u16)>(),
        any::<(u64, u64, u64)>(),
        matching(),
        instructions(),
    )
        .prop_map(|(first, second, matching, instructions)| FlowStats {
            table: first.0,
            seconds: first.1,
            nanoseconds: first.2,
            priority: first.3,
            idle_timeout: first.4,
            hard_timeout: first.5,
            flags: first.6,
            cookie: second.0,
            packets: second.1,
            bytes: second.2,
            matching,
            instructions,
        })
}

fn reply() -> impl Strategy<Value = Reply> {
    let table = any::<(u8, u32, u64, u64)>();
    let table = table.prop_map(|(table, active, lookups, matched)| TableStats {
        table,
        active,
        lookups,
        matched,
    });
    let port_stats = any::<(u32, [u64; 8], [u64; 4], u32, u32)>();
    let port_stats =
        port_stats.prop_map(
            |(number, counters, errors, seconds, nanoseconds)| PortStats {
                number,
                counters,
                errors,
                seconds,
                nanoseconds,
            },
        );
    let group_stats = (
        any::<(u32, u32, u64, u64, u32, u32)>(),
        vec(any::<(u64, u64)>(), 0..4),
    );
    let group_stats = group_stats.prop_map(|(it, buckets)| GroupStats {
        group: it.0,
        references: it.1,
        packets: it.2,
        bytes: it.3,
        seconds: it.4,
        nanoseconds: it.5,
        buckets,
    });
    let features = any::<(u32, u32, [u32; 4], [u32; 4])>();
    let features = features.prop_map(|(types, capabilities, max_groups, actions)| GroupFeatures {
        types,
        capabilities,
        max_groups,
        actions,
    });
    prop_oneof![
        (text(), text(), text(), text(), text()).prop_map(|it| {
            Reply::Description(Description {
                manufacturer: it.0,
                hardware: it.1,
                software: it.2,
                serial: it.3,
                datapath: it.4,
            })
        }),
        vec(flow_stats(), 0..4).prop_map(Reply::Flow),
        any::<(u64, u64, u32)>().prop_map(|(packets, bytes, flows)| {
            Reply::Aggregate(Aggregate {
                packets,
                bytes,
                flows,
            })
        }),
        vec(table, 0..4).prop_map(Reply::Table),
        vec(port_stats, 0..4).prop_map(Reply::Port),
        vec(group_stats, 0..4).prop_map(Reply::Group),
        vec(group(), 0..4).prop_map(Reply::GroupDescription),
        features.prop_map(Reply::GroupFeatures),
        vec(port(), 0..4).prop_map(Reply::PortDescription),
    ]
}

fn of_switch() -> impl Strategy<Value = Message> {
    let packet_in = (any::<(u32, u16, u8, u8, u64)>(), matching(), bytes());
    let packet_in = packet_in.prop_map(|(it, matching, data)| PacketIn {
        buffer: it.0,
        total_len: it.1,
        reason: it.2,
        table: it.3,
        cookie: it.4,
        matching,
        data,
    });
    let removed = (
        any::<(u64, u16, u8, u8, u32, u32)>(),
        any::<(u16, u16, u64, u64)>(),
        matching(),
    );
    let removed = removed.prop_map(|(first, second, matching)| FlowRemoved {
        cookie: first.0,
        priority: first.1,
        reason: first.2,
        table: first.3,
        seconds: first.4,
        nanoseconds: first.5,
        idle_timeout: second.0,
        hard_timeout: second.1,
        packets: second.2,
        bytes: second.3,
        matching,
    });
    let features = any::<(u64, u32, u8, u8, u32)>();
    prop_oneof![
        packet_in.prop_map(Message::PacketIn),
        removed.prop_map(Message::FlowRemoved),
        (any::<u8>(), port()).prop_map(|(reason, port)| Message::PortStatus { reason, port }),
        features.prop_map(|it| {
            Message::FeaturesReply(Features {
                datapath: it.0,
                buffers: it.1,
                tables: it.2,
                auxiliary: it.3,
                capabilities: it.4,
            })
        }),
        any::<(u16, u16)>().prop_map(|(flags, miss_send_len)| {
            Message::GetConfigReply(Config {
                flags,
                miss_send_len,
            })
        }),
        (any::<bool>(), reply()).prop_map(|(more, reply)| Message::MultipartReply { more, reply }),
        any::<(u32, u64)>().prop_map(|(role, generation)| Message::RoleReply { role, generation }),
        Just(Message::BarrierReply),
    ]
}

fn of_controller() -> impl Strategy<Value = Message> {
    let packet_out = (any::<(u32, u32)>(), actions(), bytes());
    let packet_out = packet_out.prop_map(|((buffer, in_port), actions, data)| PacketOut {
        buffer,
        in_port,
        actions,
        data,
    });
    prop_oneof![
        packet_out.prop_map(Message::PacketOut),
        flow_mod().prop_map(Message::FlowMod),
        (any::<u16>(), group())
            .prop_map(|(command, group)| Message::GroupMod(GroupMod { command, group })),
        (any::<bool>(), request())
            .prop_map(|(more, request)| Message::MultipartRequest { more, request }),
        any::<(u16, u16)>().prop_map(|(flags, miss_send_len)| {
            Message::SetConfig(Config {
                flags,
                miss_send_len,
            })
        }),
        any::<(u32, u64)>()
            .prop_map(|(role, generation)| Message::RoleRequest { role, generation }),
        Just(Message::FeaturesRequest),
        Just(Message::GetConfigRequest),
        Just(Message::BarrierRequest),
    ]
}

fn of_both() -> impl Strategy<Value = Message> {
    prop_oneof![
        (any::<u8>(), option::of(any::<u32>()))
            .prop_map(|(version, versions)| Message::Hello { version, versions }),
        (any::<(u16, u16)>(), bytes()).prop_map(|((kind, code), data)| Message::Error {
            fault: Fault { kind, code },
            data,
        }),
        bytes().prop_map(Message::EchoRequest),
        bytes().prop_map(Message::EchoReply),
    ]
}

pub fn message() -> impl Strategy<Value = Message> {
    prop_oneof![2 => of_switch(), 2 => of_controller(), 1 => of_both()]
}
