//! A TLS session that a later connection resumes (RFC 8446 section 2.2, RFC 9001 section 4.5).

use polypath_transport::{Config, MILLISECOND as MS, Nanos, SECOND, Sessions};
use polypath_wire::quic::{Frame, Packet};

use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

const BYTES: u64 = 100_000;

fn resuming(config: Config) -> Config {
    Config {
        resumption: true,
        ..config
    }
}

/// What a connection showed.
struct Seen {
    /// Bytes of the server's CRYPTO frames before the application level.
    flight: u64,
    established: Nanos,
    /// Packets with tickets.
    tickets: usize,
}

/// A transfer between hosts that keep these sessions.
fn meet(configs: [Config; 2], seed: u128, sessions: &[Sessions; 2], bytes: bool) -> Seen {
    meet_with(configs, seed, sessions, bytes, |_| false)
}

fn has_crypto(packet: &Packet) -> bool {
    let mut frames = packet.frames.iter();
    frames.any(|frame| matches!(frame, Frame::Crypto { .. }))
}

fn has_ticket(packet: &Packet) -> bool {
    !packet.header.kind.is_long() && has_crypto(packet)
}

/// The same where packets of the server that `lost` picks are lost.
fn meet_with(
    [client, server]: [Config; 2],
    seed: u128,
    sessions: &[Sessions; 2],
    bytes: bool,
    mut lost: impl FnMut(&Packet) -> bool + 'static,
) -> Seen {
    let links = vec![link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::with_sessions(&client, &server, links, seed, sessions.clone());
    if bytes {
        pair = pair.through_bytes();
    }
    pair.fate = Box::new(move |from, _, _, transmit| {
        let mut packets = transmit.datagram.packets.iter();
        if from == Side::Server && packets.any(&mut lost) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.establish();
    let established = pair.now;
    pair.client.write(BYTES, established);
    let until = established + 5 * SECOND;
    pair.run_until(until, |pair| pair.read[1] == BYTES);
    assert_eq!(pair.read[1], BYTES);
    // Whatever is still on its way.
    pair.run_until(pair.now + SECOND, |_| false);
    let (mut flight, mut tickets) = (0, 0);
    for (_, _, _, transmit) in pair.sent.iter().filter(|sent| sent.1 == Side::Server) {
        for packet in &transmit.datagram.packets {
            tickets += usize::from(has_ticket(packet));
            for frame in packet
                .frames
                .iter()
                .filter(|_| packet.header.kind.is_long())
            {
                if let Frame::Crypto { data, .. } = frame {
                    flight += data.len() as u64;
                }
            }
        }
    }
    Seen {
        flight,
        established,
        tickets,
    }
}

#[test]
fn the_second_connection_sends_no_certificate() {
    for config in [quic(), multipath()] {
        for bytes in [false, true] {
            let sessions = Default::default();
            let both = || [resuming(config.clone()), resuming(config.clone())];
            let first = meet(both(), 1, &sessions, bytes);
            let second = meet(both(), 3, &sessions, bytes);
            assert!(first.flight > second.flight + 300, "{}", second.flight);
            // The round trips are the same.
            let sooner = first.established.abs_diff(second.established);
            assert!(sooner < 2 * MS, "{sooner}");
            assert!(first.tickets > 0 && second.tickets > 0);
        }
    }
}

#[test]
fn both_sides_have_to_want_it() {
    for [client, server] in [[true, false], [false, true], [false, false]] {
        let sessions = Default::default();
        let of = |resumption| Config {
            resumption,
            ..quic()
        };
        let first = meet([of(client), of(server)], 1, &sessions, false);
        let second = meet([of(client), of(server)], 3, &sessions, false);
        assert_eq!(first.flight, second.flight);
        assert_eq!(second.tickets > 0, server);
    }
}

#[test]
fn a_lost_ticket_is_sent_again() {
    let sessions = Default::default();
    let both = || [resuming(quic()), resuming(quic())];
    let mut lost = false;
    let once = move |packet: &Packet| has_ticket(packet) && !std::mem::replace(&mut lost, true);
    let first = meet_with(both(), 1, &sessions, true, once);
    assert!(first.tickets > 1);
    let second = meet(both(), 3, &sessions, true);
    assert!(first.flight > second.flight + 300);
}
