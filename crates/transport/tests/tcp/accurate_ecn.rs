//! Accurate ECN feedback (RFC 9768).

use std::cell::RefCell;
use std::rc::Rc;

use polypath_transport::{Codepoint, Config, Nanos};
use polypath_wire::tcp::Flags;

use crate::common::pair::{Link, Packet};
use crate::common::{Fate, MS, Pair, SECOND, Side, tcp};

const ACE: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);

fn accurate() -> Config {
    Config {
        accurate_ecn: true,
        ..tcp()
    }
}

fn classic() -> Config {
    Config { ecn: true, ..tcp() }
}

fn ace(packet: &Packet) -> Flags {
    packet.segment.flags & ACE
}

fn number(flags: Flags) -> u32 {
    let bit = |flag, value| if flags.contains(flag) { value } else { 0 };
    bit(Flags::AE, 4) + bit(Flags::CWR, 2) + bit(Flags::ECE, 1)
}

/// A client, and a server with settings of its own.
fn between(client: &Config, server: &Config) -> Pair {
    Pair::with(client, server, vec![Link::new(10 * MS)], 1, 7)
}

/// Section 3.1.1 and tables 2 and 3: 111 asks, 010 says that the SYN was not ECN-capable, 010 says so of the SYN/ACK.
#[test]
fn the_handshake_agrees_and_reflects() {
    let mut pair = between(&accurate(), &accurate());
    pair.transfer(100_000, 10 * SECOND);
    let client: Vec<&Packet> = pair.sent(Side::Client).collect();
    let server: Vec<&Packet> = pair.sent(Side::Server).collect();
    assert_eq!((ace(client[0]), client[0].ecn), (ACE, Codepoint::NotEct));
    assert_eq!(ace(server[0]), Flags::CWR);
    assert_eq!(ace(client[1]), Flags::CWR);
    // Then both count from 5, and everything is ECN-capable (`tcp_ecn_send`).
    let later = client[2..].iter().chain(&server[1..]);
    for packet in later {
        assert_eq!((number(ace(packet)), packet.ecn), (5, Codepoint::Ect0));
    }
}

/// Table 2: against a peer of RFC 3168 feedback is classic, against one without ECN there is none.
#[test]
fn an_older_peer_gets_what_it_knows() {
    for (client, server, answer, capable) in [
        (accurate(), classic(), Flags::ECE, true),
        (classic(), accurate(), Flags::ECE, true),
        (accurate(), tcp(), Flags::empty(), false),
        (tcp(), accurate(), Flags::empty(), false),
    ] {
        let mut pair = between(&client, &server);
        pair.transfer(100_000, 10 * SECOND);
        let syn_ack = pair.sent(Side::Server).next().map(ace);
        assert_eq!(syn_ack, Some(answer));
        assert!(
            pair.data(Side::Client)
                .all(|it| (it.ecn == Codepoint::Ect0) == capable)
        );
        assert!(pair.sent(Side::Client).skip(1).all(|it| ace(it).is_empty()));
    }
}

/// Sections 3.1.4.1 and 3.1.4.2: once more, then without.
#[test]
fn a_lost_opening_is_repeated_once_with_the_field() {
    for from in [Side::Client, Side::Server] {
        for lost in [1, 2] {
            let seen = Rc::new(RefCell::new(Vec::new()));
            let told = Rc::clone(&seen);
            let mut pair = between(&accurate(), &accurate());
            pair.hook(move |packet| {
                if packet.from == from && packet.segment.flags.contains(Flags::SYN) {
                    told.borrow_mut().push(ace(packet));
                    if told.borrow().len() <= lost {
                        return Fate::Drop;
                    }
                }
                Fate::Pass
            });
            pair.transfer(20_000, 60 * SECOND);
            let asked = if from == Side::Client {
                ACE
            } else {
                Flags::CWR
            };
            let expected = [asked, asked, Flags::empty()];
            assert_eq!(seen.borrow()[..=lost], expected[..=lost], "{from:?}");
            let capable = pair
                .data(Side::Client)
                .any(|it| it.ecn != Codepoint::NotEct);
            assert_eq!(capable, lost == 1, "{from:?}");
        }
    }
}

fn marked_in(pair: &mut Pair, marks: impl Fn(u32) -> bool + 'static) {
    let mut count = 0;
    pair.hook(move |packet| {
        if packet.from == Side::Client && packet.carries_data() {
            count += 1;
            if marks(count) {
                assert_eq!(packet.ecn, Codepoint::Ect0);
                return Fate::Mark;
            }
        }
        Fate::Pass
    });
}

/// Section 3.2.2: the receiver counts packets, the field goes round at 8, and no CWR is needed.
#[test]
fn each_mark_counts() {
    let mut pair = between(&accurate(), &accurate());
    marked_in(&mut pair, |count| (20..30).contains(&count));
    pair.transfer(200_000, 20 * SECOND);
    let told: Vec<u32> = pair
        .sent(Side::Server)
        .skip(1)
        .map(|it| number(ace(it)))
        .collect();
    assert_eq!(told.last(), Some(&((5 + 10) % 8)));
    let mut rounds = told.clone();
    rounds.dedup();
    // Upwards, by what an acknowledgement of two packets may tell.
    assert!(
        rounds.windows(2).all(|two| (two[1] + 8 - two[0]) % 8 <= 2),
        "{rounds:?}"
    );
    assert!(
        pair.sent(Side::Client)
            .skip(2)
            .all(|it| number(ace(it)) == 5)
    );
}

/// RFC 3168 section 6.1.2, once a round trip, also where several acknowledgements report marks.
#[test]
fn marks_reduce_the_window_once_a_round_trip() {
    let windows = Rc::new(RefCell::new(Vec::new()));
    for config in [accurate(), classic()] {
        let mut pair = between(&config, &config);
        marked_in(&mut pair, |count| (40..46).contains(&count));
        pair.write(Side::Client, 2_000_000);
        let mut last: Nanos = 0;
        while last < 200 * MS {
            last += 5 * MS;
            pair.run_until(last);
        }
        let cwnd = pair.connection(Side::Client).paths()[0].cwnd;
        windows.borrow_mut().push(cwnd);
    }
    let windows = windows.borrow();
    assert_eq!(windows[0], windows[1]);
}

/// Section 3.2.2.3: a field that came back impossible stops ECN, but not the feedback.
#[test]
fn an_impossible_reflection_ends_ecn() {
    let mut pair = between(&accurate(), &accurate());
    pair.hook(|packet| {
        if packet.from == Side::Server && packet.segment.flags.contains(Flags::SYN) {
            // The SYN was not ECN-capable, and is said to have been marked.
            packet.segment.flags |= Flags::AE;
        }
        Fate::Pass
    });
    pair.transfer(50_000, 10 * SECOND);
    assert!(
        pair.data(Side::Client)
            .all(|it| it.ecn == Codepoint::NotEct)
    );
    assert!(
        pair.sent(Side::Client)
            .skip(2)
            .all(|it| number(ace(it)) == 5)
    );
}
