//! Switches after OpenFlow 1.3.5. A test of one section names it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use polypath_switch::{
    Action, Bucket, Counts, Destination, Entry, Expired, Fields, Group, GroupKind, Instructions,
    Limits, Match, Port, Reason, Switch, SwitchError, Timeouts, WHOLE, Wanted,
};
use proptest::prelude::*;

const TCP: u8 = 6;

fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn end(last: u8, port: u16) -> SocketAddr {
    (ip(last), port).into()
}

fn packet(in_port: u32, source: u8, destination: u8, port: u16) -> Fields {
    Fields::new(in_port, TCP, end(source, port), end(destination, 80))
}

fn switch() -> Switch {
    Switch::new(4, 1, Limits::default())
}

fn out(matching: Match, priority: u16, port: u32) -> Entry {
    Switch::entry(matching, priority, Instructions::out(port))
}

fn add(switch: &mut Switch, entry: Entry) {
    switch.add(0, entry, false, 0).unwrap();
}

fn group(kind: GroupKind, ports: &[(u32, u16)]) -> Group {
    let buckets = ports.iter();
    Group {
        kind,
        buckets: buckets
            .map(|&(port, weight)| Bucket::out(port, weight))
            .collect(),
    }
}

fn to_group(number: u32) -> Entry {
    let instructions = Instructions::apply(&[Action::Group(number)]);
    Switch::entry(Match::any(), 1, instructions)
}

#[test]
fn the_entry_of_highest_priority_counts() {
    let mut switch = switch();
    add(&mut switch, out(Match::any().destination(ip(0), 24), 5, 1));
    add(&mut switch, out(Match::any().destination(ip(7), 32), 9, 2));
    add(&mut switch, out(Match::any().destination(ip(8), 32), 1, 3));
    let port = |last| switch.decide(&packet(4, 1, last, 5)).only_port();
    assert_eq!((port(7), port(8), port(200)), (Some(2), Some(1), Some(1)));
}

#[test]
fn without_a_table_miss_entry_a_packet_is_dropped() {
    // Section 5.4.
    let mut switch = switch();
    let decision = switch.decide(&packet(1, 1, 2, 5));
    assert!(decision.missed && decision.destinations.is_empty());
    add(
        &mut switch,
        Switch::entry(Match::any(), 0, Instructions::controller()),
    );
    let decision = switch.decide(&packet(1, 1, 2, 5));
    assert_eq!(
        decision.destinations,
        [Destination::Controller {
            miss: true,
            max_len: WHOLE
        }]
    );
}

#[test]
fn a_packet_leaves_by_its_own_port_only_where_that_is_said() {
    // Section 5.13.
    let mut switch = switch();
    add(&mut switch, out(Match::any(), 1, 3));
    assert!(switch.decide(&packet(3, 1, 2, 5)).destinations.is_empty());
    let back = Instructions::apply(&[Action::Output(Port::In)]);
    add(&mut switch, Switch::entry(Match::any(), 2, back));
    assert_eq!(switch.decide(&packet(3, 1, 2, 5)).only_port(), Some(3));
    let flood = Instructions::apply(&[Action::Output(Port::All)]);
    add(&mut switch, Switch::entry(Match::any(), 3, flood));
    let others = [1, 2, 4].map(Destination::Port);
    assert_eq!(switch.decide(&packet(3, 1, 2, 5)).destinations, others);
}

#[test]
fn tables_lead_on_to_later_ones_and_the_set_is_done_at_the_end() {
    let mut switch = switch();
    let first = Instructions {
        write: vec![Action::port(2)],
        goto: Some(1),
        ..Instructions::default()
    };
    add(&mut switch, Switch::entry(Match::any(), 1, first));
    let second = Instructions {
        write: vec![Action::port(3)],
        ..Instructions::default()
    };
    let entry = Switch::entry(Match::any().source_port(5, u16::MAX), 1, second);
    switch.add(1, entry, false, 0).unwrap();
    let keep = Switch::entry(Match::any(), 0, Instructions::default());
    switch.add(1, keep, false, 0).unwrap();
    assert_eq!(switch.decide(&packet(1, 1, 2, 5)).only_port(), Some(3));
    assert_eq!(switch.decide(&packet(1, 1, 2, 6)).only_port(), Some(2));
    let cleared = Instructions {
        clear: true,
        ..Instructions::default()
    };
    let entry = Switch::entry(Match::any().source_port(6, u16::MAX), 1, cleared);
    switch.add(1, entry, false, 0).unwrap();
    assert!(switch.decide(&packet(1, 1, 2, 6)).destinations.is_empty());
    let back = Instructions {
        goto: Some(1),
        ..Instructions::default()
    };
    let refused = switch.add(1, Switch::entry(Match::any(), 7, back), false, 0);
    assert_eq!(
        refused.unwrap_err(),
        SwitchError::BadGoto { table: 1, goto: 1 }
    );
}

#[test]
fn all_copies_and_select_keeps_to_the_weights() {
    let mut switch = switch();
    switch
        .add_group(1, group(GroupKind::All, &[(2, 1), (3, 1), (4, 1)]))
        .unwrap();
    add(&mut switch, to_group(1));
    assert_eq!(
        switch.decide(&packet(1, 1, 2, 5)).destinations,
        [2, 3, 4].map(Destination::Port)
    );
    switch
        .modify_group(1, group(GroupKind::Select, &[(2, 3), (3, 1), (4, 0)]))
        .unwrap();
    let mut taken = [0; 5];
    for port in 0..4000 {
        let fields = packet(1, 1, 2, port);
        let chosen = switch.decide(&fields).only_port().unwrap();
        assert_eq!(
            switch.decide(&fields.at(9)).only_port(),
            Some(chosen),
            "a flow keeps its bucket"
        );
        taken[chosen as usize] += 1;
    }
    // 3000 expected, with a standard deviation of 27.
    assert!((2892..=3108).contains(&taken[2]), "{taken:?}");
    assert_eq!((taken[2] + taken[3], taken[4]), (4000, 0));
}

#[test]
fn a_port_that_goes_down_moves_flows_at_once() {
    let mut switch = switch();
    switch
        .add_group(1, group(GroupKind::FastFailover, &[(2, 0), (3, 0)]))
        .unwrap();
    switch
        .add_group(2, group(GroupKind::Select, &[(2, 1), (3, 1)]))
        .unwrap();
    add(&mut switch, to_group(1));
    let of = |switch: &Switch| switch.decide(&packet(1, 1, 2, 5)).only_port();
    assert_eq!(of(&switch), Some(2));
    assert!(switch.set_port(2, false) && !switch.set_port(2, false));
    assert_eq!(of(&switch), Some(3));
    switch.set_port(3, false);
    assert_eq!(of(&switch), None);
    switch.set_port(2, true);
    assert_eq!(of(&switch), Some(2));
    add(&mut switch, to_group(2));
    let all_by_two =
        (0..100).all(|port| switch.decide(&packet(1, 1, 2, port)).only_port() == Some(2));
    assert!(all_by_two);
}

#[test]
fn groups_that_cannot_be_are_refused() {
    let mut switch = switch();
    let chained = Group {
        kind: GroupKind::All,
        buckets: vec![Bucket {
            weight: 1,
            watch: None,
            actions: vec![Action::Group(7)],
        }],
    };
    assert_eq!(
        switch.add_group(1, chained.clone()),
        Err(SwitchError::Chaining)
    );
    let blind = Group {
        kind: GroupKind::FastFailover,
        buckets: vec![Bucket {
            weight: 1,
            watch: None,
            actions: vec![],
        }],
    };
    assert_eq!(switch.add_group(1, blind), Err(SwitchError::InvalidGroup));
    let two = group(GroupKind::Indirect, &[(1, 1), (2, 1)]);
    assert_eq!(switch.add_group(1, two), Err(SwitchError::InvalidGroup));
    assert_eq!(
        switch.add_group(1, group(GroupKind::All, &[(9, 1)])),
        Err(SwitchError::BadPort(9))
    );
    switch
        .add_group(1, group(GroupKind::All, &[(1, 1)]))
        .unwrap();
    assert_eq!(
        switch.add_group(1, group(GroupKind::All, &[])),
        Err(SwitchError::GroupExists(1))
    );
    let unknown = SwitchError::UnknownGroup(2);
    assert_eq!(
        switch.modify_group(2, group(GroupKind::All, &[])),
        Err(unknown)
    );
    assert_eq!(switch.add(0, to_group(2), false, 0).unwrap_err(), unknown);
}

#[test]
fn a_deleted_group_takes_its_entries_along() {
    // Section 6.5.
    let mut switch = switch();
    switch
        .add_group(1, group(GroupKind::All, &[(1, 1)]))
        .unwrap();
    add(&mut switch, to_group(1));
    add(&mut switch, out(Match::any(), 9, 2));
    let gone = switch.delete_group(1);
    assert_eq!((gone.len(), switch.entries()), (1, 1));
    assert!(switch.delete_group(1).is_empty());
}

#[test]
fn idle_entries_go_and_used_ones_stay_up_to_the_hard_timeout() {
    let mut switch = switch();
    let entry = Entry {
        timeouts: Timeouts {
            idle: Some(10),
            hard: Some(35),
        },
        ..out(Match::any(), 1, 2)
    };
    let (id, _) = switch.add(0, entry, false, 100).unwrap();
    let counts = Counts {
        packets: 2,
        bytes: 3000,
    };
    assert_eq!(switch.next_deadline(), Some(110));
    let decision = switch.decide(&packet(1, 1, 2, 5));
    switch.credit(&decision, counts, 108);
    assert_eq!(switch.due(110), [(0, id)]);
    assert!(switch.expire(110).is_empty());
    assert_eq!(switch.next_deadline(), Some(118));
    assert_eq!(switch.get(0, id).unwrap().counts, counts);
    for at in [115, 124, 133] {
        switch.credit(&decision, counts, at);
        switch.expire(at);
    }
    let gone = switch.expire(135);
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].reason, Reason::Expired(Expired::Hard));
    assert_eq!(gone[0].entry.counts.packets, 8);
    assert_eq!((switch.next_deadline(), switch.entries()), (None, 0));
}

#[test]
fn the_same_match_and_priority_replace_and_deletes_are_strict_or_not() {
    // Section 6.4.
    let mut switch = switch();
    let narrow = Match::any().destination(ip(7), 32);
    let wide = Match::any().destination(ip(0), 24);
    add(&mut switch, out(narrow, 5, 1));
    let (_, replaced) = switch.add(0, out(narrow, 5, 2), false, 0).unwrap();
    assert!(replaced.is_some());
    add(&mut switch, out(wide, 5, 3));
    assert_eq!(switch.entries(), 2);
    let overlap = switch.add(0, out(Match::any().source(ip(1), 32), 5, 3), true, 0);
    assert_eq!(overlap.unwrap_err(), SwitchError::Overlap);
    assert_eq!(
        switch
            .modify(0, &Wanted::included(narrow), &Instructions::out(4), false)
            .unwrap(),
        1
    );
    assert_eq!(
        switch.delete(0, &Wanted::strictly(wide, 4)).unwrap().len(),
        0
    );
    assert_eq!(
        switch
            .delete(0, &Wanted::strictly(narrow, 5))
            .unwrap()
            .len(),
        1
    );
    add(&mut switch, out(narrow, 5, 1));
    let gone = switch.delete(0, &Wanted::included(wide)).unwrap();
    assert_eq!((gone.len(), gone[0].reason), (2, Reason::Deleted));
}

#[test]
fn a_full_table_takes_no_more() {
    let limits = Limits {
        entries: 1,
        tables: 1,
        groups: 0,
    };
    let mut switch = Switch::new(4, 1, limits);
    add(&mut switch, out(Match::any(), 5, 1));
    assert_eq!(
        switch
            .add(0, out(Match::any(), 6, 1), false, 0)
            .unwrap_err(),
        SwitchError::TableFull(0)
    );
    add(&mut switch, out(Match::any(), 5, 2));
    assert_eq!(
        switch
            .add(1, out(Match::any(), 6, 1), false, 0)
            .unwrap_err(),
        SwitchError::BadTable(1)
    );
    assert_eq!(
        switch.add_group(1, group(GroupKind::All, &[])),
        Err(SwitchError::OutOfGroups)
    );
}

/// A match over a few values, so that many overlap.
fn matches() -> impl Strategy<Value = Match> {
    let field = || proptest::option::of(0..4u8);
    (field(), field(), 0..=32u8, field(), field(), any::<u16>()).prop_map(
        |(port, source, length, protocol, source_port, mask)| {
            let mut made = Match::any();
            if let Some(port) = port {
                made = made.in_port(port.into());
            }
            if let Some(last) = source {
                made = made.source(ip(last), length);
            }
            if let Some(protocol) = protocol {
                made = made.protocol(protocol);
            }
            if let Some(port) = source_port {
                made = made.source_port(port.into(), mask);
            }
            made
        },
    )
}

fn packets() -> impl Strategy<Value = Fields> {
    (0..5u32, 0..4u8, 0..4u8, 0..4u16, 0..4u8).prop_map(
        |(port, source, destination, number, protocol)| {
            Fields::new(port, protocol, end(source, number), end(destination, 80))
        },
    )
}

/// Whatever a controller may ask for, sensible or not.
#[derive(Clone, Debug)]
enum Command {
    Add(u8, Match, u16, Instructions, Option<u64>, Option<u64>, bool),
    Modify(u8, Match, Option<u16>, Instructions),
    Delete(u8, Match, Option<u16>),
    AddGroup(u32, Group),
    ModifyGroup(u32, Group),
    DeleteGroup(u32),
    Port(u32, bool),
    Packet(Fields, u32),
    Pass(u64),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let port = prop_oneof![
        (0..7u32).prop_map(Port::Number),
        Just(Port::In),
        Just(Port::All),
        Just(Port::Controller(WHOLE)),
    ];
    let action = prop_oneof![
        port.prop_map(Action::Output),
        (0..4u32).prop_map(Action::Group)
    ];
    proptest::collection::vec(action, 0..4)
}

fn instructions() -> impl Strategy<Value = Instructions> {
    (
        actions(),
        any::<bool>(),
        actions(),
        proptest::option::of(0..10u8),
    )
        .prop_map(|(apply, clear, write, goto)| Instructions {
            apply,
            clear,
            write,
            goto,
        })
}

fn groups() -> impl Strategy<Value = Group> {
    let kind = prop_oneof![
        Just(GroupKind::All),
        Just(GroupKind::Select),
        Just(GroupKind::FastFailover),
        Just(GroupKind::Indirect),
    ];
    let bucket = (any::<u16>(), proptest::option::of(0..7u32), actions()).prop_map(
        |(weight, watch, actions)| Bucket {
            weight,
            watch,
            actions,
        },
    );
    (kind, proptest::collection::vec(bucket, 0..4))
        .prop_map(|(kind, buckets)| Group { kind, buckets })
}

fn commands() -> impl Strategy<Value = Command> {
    let table = 0..10u8;
    let strict = || proptest::option::of(0..3u16);
    let time = || proptest::option::of(prop_oneof![0..50u64, Just(u64::MAX)]);
    prop_oneof![
        4 => (table.clone(), matches(), 0..3u16, instructions(), time(), time(), any::<bool>())
            .prop_map(|(table, matching, priority, given, idle, hard, overlap)| {
                Command::Add(table, matching, priority, given, idle, hard, overlap)
            }),
        1 => (table.clone(), matches(), strict(), instructions())
            .prop_map(|(table, matching, strict, given)| Command::Modify(table, matching, strict, given)),
        1 => (table, matches(), strict()).prop_map(|(table, matching, strict)| Command::Delete(table, matching, strict)),
        2 => (0..4u32, groups()).prop_map(|(number, group)| Command::AddGroup(number, group)),
        1 => (0..4u32, groups()).prop_map(|(number, group)| Command::ModifyGroup(number, group)),
        1 => (0..4u32).prop_map(Command::DeleteGroup),
        1 => (0..7u32, any::<bool>()).prop_map(|(port, up)| Command::Port(port, up)),
        4 => (packets(), any::<u32>()).prop_map(|(fields, bytes)| Command::Packet(fields, bytes)),
        2 => (0..30u64).prop_map(Command::Pass),
    ]
}

proptest! {
    /// The search by masks finds what a search of one entry after the other finds.
    #[test]
    fn lookup_is_the_plain_search(
        entries in proptest::collection::vec((matches(), 0..3u16, 1..5u32), 0..30),
        fields in packets(),
    ) {
        let mut switch = switch();
        for &(matching, priority, port) in &entries {
            add(&mut switch, out(matching, priority, port));
        }
        let mut left: Vec<&Entry> = switch.table(0).collect();
        left.sort_by_key(|entry| (std::cmp::Reverse(entry.priority), entry.id));
        let plain = left.iter().find(|entry| entry.matching.covers(&fields));
        let decision = switch.decide(&fields);
        prop_assert_eq!(decision.entries.first().map(|(_, id)| *id), plain.map(|entry| entry.id));
        prop_assert_eq!(decision.missed, plain.is_none());
    }

    /// What one match includes, it covers; what overlaps not, no packet matches both of.
    #[test]
    fn matches_agree_with_packets(a in matches(), b in matches(), fields in packets()) {
        let (by_a, by_b) = (a.covers(&fields), b.covers(&fields));
        prop_assert!(!(a.includes(&b) && by_b) || by_a);
        prop_assert!(!(by_a && by_b) || a.overlaps(&b));
        prop_assert!(Match::flow(&fields).covers(&fields));
        prop_assert_eq!(Match::flow(&fields).only_flow(), Some(fields.at(0)));
    }

    /// No sequence of commands makes a switch panic, and after each of them all that it says of itself holds.
    #[test]
    fn any_commands_leave_a_switch_whole(commands in proptest::collection::vec(commands(), 0..60)) {
        let limits = Limits { tables: 3, entries: 12, groups: 3 };
        let mut switch = Switch::new(4, 1, limits);
        let (mut now, mut decided) = (0, 0);
        for command in commands {
            match command {
                Command::Add(table, matching, priority, given, idle, hard, overlap) => {
                    let timeouts = Timeouts { idle, hard };
                    let entry = Entry { timeouts, ..Switch::entry(matching, priority, given) };
                    let _ = switch.add(table, entry, overlap, now);
                }
                Command::Modify(table, matching, strict, given) => {
                    let wanted = Wanted { strict, ..Wanted::included(matching) };
                    let _ = switch.modify(table, &wanted, &given, false);
                }
                Command::Delete(table, matching, strict) => {
                    let wanted = Wanted { strict, ..Wanted::included(matching) };
                    let _ = switch.delete(table, &wanted);
                }
                Command::AddGroup(number, group) => { let _ = switch.add_group(number, group); }
                Command::ModifyGroup(number, group) => { let _ = switch.modify_group(number, group); }
                Command::DeleteGroup(number) => { switch.delete_group(number); }
                Command::Port(port, up) => { switch.set_port(port, up); }
                Command::Packet(fields, bytes) => {
                    let decision = switch.decide(&fields);
                    prop_assert_eq!(&switch.decide(&fields), &decision);
                    for destination in &decision.destinations {
                        if let Destination::Port(port) = destination {
                            prop_assert!((1..=4).contains(port) || *port == fields.in_port);
                        }
                    }
                    switch.credit(&decision, Counts { packets: 1, bytes: bytes.into() }, now);
                    decided += 1;
                }
                Command::Pass(time) => {
                    now += time;
                    for removed in switch.expire(now) {
                        let (until, why) = removed.entry.deadline().unwrap();
                        prop_assert!(until <= now);
                        prop_assert_eq!(removed.reason, Reason::Expired(why));
                    }
                    for entry in (0..3).flat_map(|table| switch.table(table)) {
                        prop_assert!(entry.deadline().is_none_or(|(until, _)| until > now));
                    }
                }
            }
            let all = (0..3).map(|table| switch.table(table).count()).sum::<usize>();
            prop_assert_eq!(all, switch.entries());
            prop_assert!((0..3).all(|table| switch.table(table).count() <= 12));
            prop_assert!(switch.most_entries() >= all);
            let counted = switch.table(0).map(|entry| entry.counts.packets).sum::<u64>();
            prop_assert!(counted <= decided);
        }
    }
}

/// What a learning switch asks for: Ethernet addresses, whole or in part, and a port.
#[test]
fn ethernet_addresses_are_matched() {
    let mut switch = switch();
    let to = |mask: u64| {
        let value = Fields {
            ethernet_destination: 0x0200_0000_0007,
            in_port: 1,
            ..Fields::default()
        };
        let mask = Fields {
            ethernet_destination: mask,
            in_port: u32::MAX,
            ..Fields::default()
        };
        Match::new(&value, &mask)
    };
    add(&mut switch, out(to(0xffff_ffff_ffff), 2, 2));
    add(&mut switch, out(to(0x0200_0000_0000), 1, 3));
    let from = |port: u32, destination: u64| {
        let packet = packet(port, 1, 2, 5).between(9, destination);
        switch.decide(&packet).only_port()
    };
    assert_eq!(from(1, 0x0200_0000_0007), Some(2));
    assert_eq!(from(1, 0x0200_0000_0008), Some(3));
    assert_eq!(from(1, 0x0400_0000_0007), None);
    assert_eq!(from(2, 0x0200_0000_0007), None);
}

/// Section 6.4: commands may be for entries of a cookie, of an output and of a group alone.
#[test]
fn commands_are_for_entries_that_do_what_is_asked() {
    let mut switch = switch();
    for (number, port) in [(1, 2), (2, 3), (3, 3)] {
        let matching = Match::any().destination(ip(number), 32);
        let cookie = u64::from(number) << 8 | 7;
        add(
            &mut switch,
            Entry {
                cookie,
                ..out(matching, 1, port)
            },
        );
    }
    let any = Wanted::included(Match::any());
    let to_three = Wanted {
        out_port: Some(Port::Number(3)),
        ..any
    };
    assert_eq!(switch.selected(0, &to_three).unwrap().len(), 2);
    let second = Wanted {
        cookie: 2 << 8,
        cookie_mask: 0xff00,
        ..to_three
    };
    assert_eq!(switch.delete(0, &second).unwrap().len(), 1);
    let grouped = Wanted {
        out_group: Some(1),
        ..any
    };
    assert_eq!(switch.delete(0, &grouped).unwrap().len(), 0);
    assert_eq!(switch.delete(0, &any).unwrap().len(), 2);
}

/// Section 7.3.7: actions of a packet-out leave the tables out of it.
#[test]
fn a_controllers_own_actions_are_done_in_order() {
    let switch = switch();
    let decision = switch.execute(
        &[Action::Output(Port::All), Action::port(2)],
        &packet(1, 1, 2, 5),
    );
    let ports = [2, 3, 4, 2].map(Destination::Port);
    assert_eq!(decision.destinations, ports);
    assert_eq!(
        switch.check(&[Action::Group(1)]),
        Err(SwitchError::UnknownGroup(1))
    );
    assert_eq!(
        switch.check(&[Action::port(5)]),
        Err(SwitchError::BadPort(5))
    );
}
