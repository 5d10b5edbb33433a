//! Before there is a connection: Retry and Version Negotiation (RFC 9000 sections 6, 8.1.2 and 17.2.5).

use polypath_transport::quic::{
    Admission, Codepoint, Connection, Greeting, Listener, answer_bytes,
};
use polypath_transport::{CloseReason, Config, MILLISECOND as MS, Nanos, SECOND, Tuple};
use polypath_wire::quic::{ConnectionId, Datagram, Frame, Kind, TransportError, split};

use crate::common::{client_address, first_tuple, host, reversed};
use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

fn retrying(config: Config) -> Config {
    Config {
        retry: true,
        ..config
    }
}

fn client() -> Connection {
    let host = host(&quic(), vec![client_address(0)], 1);
    Connection::connect(host, first_tuple(), 0).expect("algorithms exist")
}

/// What a client sends first, and where a server sees it come from.
fn first(client: &mut Connection) -> (Datagram, Tuple) {
    let transmit = client.transmits().remove(0);
    (transmit.datagram, reversed(transmit.tuple))
}

fn answer(greeting: Greeting) -> Datagram {
    match greeting {
        Greeting::Answer(answer) => answer,
        other => panic!("{other:?}"),
    }
}

/// A client to which a listener's Retry comes, and what it sends then.
fn retried(listener: &Listener, at: Nanos) -> (Connection, Datagram, Datagram, Tuple) {
    let mut client = client();
    let (datagram, tuple) = first(&mut client);
    let retry = answer(listener.greet(tuple, &datagram, 1200, at));
    let len = retry.len();
    client.on_datagram(first_tuple(), &retry, len, Codepoint::NotEct, at);
    let (second, _) = first(&mut client);
    (client, retry, second, tuple)
}

#[test]
fn a_client_returns_the_token_and_the_handshake_goes_on() {
    for config in [quic(), multipath()] {
        for bytes in [false, true] {
            let links = vec![link(10 * MBPS, 20 * MS); 2];
            let mut pair = Pair::new(&config, &retrying(config.clone()), links, 1);
            if bytes {
                pair = pair.through_bytes();
            }
            pair.establish();
            let now = pair.now;
            // One round trip more than without.
            assert!((100 * MS..110 * MS).contains(&now), "{now}");
            pair.client.write(200_000, now);
            pair.run_until(now + 2 * SECOND, |pair| pair.read[1] == 200_000);
            assert_eq!(pair.read[1], 200_000);
            let retries = pair.sent.iter().filter(|(.., transmit)| {
                matches!(transmit.datagram.packets[0].header.kind, Kind::Retry { .. })
            });
            assert_eq!(retries.count(), 1);
            assert!(!bytes || pair.compared == 200_000);
        }
    }
}

#[test]
fn a_lost_retry_is_asked_for_again() {
    let mut pair = Pair::new(
        &quic(),
        &retrying(quic()),
        vec![link(10 * MBPS, 20 * MS)],
        1,
    );
    let mut lost = 0;
    pair.fate = Box::new(move |side, _, _, _| {
        lost += u32::from(side == Side::Server);
        if side == Side::Server && lost == 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.establish();
}

#[test]
fn an_address_that_returned_a_token_is_validated() {
    let listener = Listener::new(true, 1);
    let (_, retry, second, tuple) = retried(&listener, 0);
    let Kind::Initial { token } = &second.packets[0].header.kind else {
        panic!("{second:?}");
    };
    assert!(
        matches!(&retry.packets[0].header.kind, Kind::Retry { token: given, .. } if given == token)
    );
    // RFC 9000 section 17.2.5.3: numbers go on.
    assert_eq!(second.packets[0].header.number, 1);
    assert_eq!(
        second.packets[0].header.destination,
        retry.packets[0].header.source
    );
    let Greeting::Accept(admission) = listener.greet(tuple, &second, 1200, MS) else {
        panic!("refused");
    };
    assert_eq!(
        admission.retry_source,
        Some(second.packets[0].header.destination)
    );
    let host = host(&quic(), vec![tuple.local.ip()], 2);
    let server = Connection::admit(host, tuple, admission, MS).expect("algorithms exist");
    assert!(server.members()[0].validated(), "RFC 9000 section 8.1.2");
}

#[test]
fn a_token_serves_one_address_for_a_while() {
    let listener = Listener::new(true, 1);
    let (_, _, second, tuple) = retried(&listener, 0);
    let mut elsewhere = tuple;
    elsewhere.remote.set_port(7);
    for (tuple, at) in [(elsewhere, MS), (tuple, 31 * SECOND)] {
        let refusal = answer(listener.greet(tuple, &second, 1200, at));
        let frames = &refusal.packets[0].frames;
        assert!(
            matches!(&frames[..], [Frame::ConnectionClose { error, .. }] if *error == TransportError::INVALID_TOKEN.0),
            "{frames:?}"
        );
    }
    // One of another listener's says nothing.
    let other = Listener::new(true, 2);
    let again = answer(other.greet(tuple, &second, 1200, MS));
    assert!(matches!(again.packets[0].header.kind, Kind::Retry { .. }));
}

#[test]
fn a_client_that_is_refused_ends() {
    let listener = Listener::new(true, 1);
    let (mut client, _, second, tuple) = retried(&listener, 0);
    let refusal = answer(listener.greet(tuple, &second, 1200, 31 * SECOND));
    client.on_datagram(
        first_tuple(),
        &refusal,
        refusal.len(),
        Codepoint::NotEct,
        31 * SECOND,
    );
    assert_eq!(client.ended(), Some(CloseReason::Reset));
}

#[test]
fn a_client_takes_one_retry_and_only_of_its_server() {
    let listener = Listener::new(true, 1);
    let (mut client, retry, second, _) = retried(&listener, 0);
    client.on_datagram(first_tuple(), &retry, retry.len(), Codepoint::NotEct, MS);
    assert!(client.transmits().is_empty(), "a second one");
    assert_eq!(second.packets[0].header.number, 1);
    // A tag that is wrong, a token that is another, one that is empty.
    let spoil: [fn(&mut Kind); 3] = [
        |kind| {
            if let Kind::Retry { integrity_tag, .. } = kind {
                integrity_tag[3] ^= 1;
            }
        },
        |kind| {
            if let Kind::Retry { token, .. } = kind {
                token[0] ^= 1;
            }
        },
        |kind| {
            if let Kind::Retry { token, .. } = kind {
                token.clear();
            }
        },
    ];
    for spoil in spoil {
        let mut client = self::client();
        let (datagram, tuple) = first(&mut client);
        let mut retry = answer(listener.greet(tuple, &datagram, 1200, 0));
        spoil(&mut retry.packets[0].header.kind);
        client.on_datagram(first_tuple(), &retry, retry.len(), Codepoint::NotEct, MS);
        assert!(client.transmits().is_empty(), "RFC 9000 section 17.2.5.2");
    }
}

#[test]
fn a_server_whose_parameters_do_not_know_of_the_retry_is_refused() {
    let listener = Listener::new(true, 1);
    let (mut client, _, second, tuple) = retried(&listener, 0);
    let Greeting::Accept(admission) = listener.greet(tuple, &second, 1200, MS) else {
        panic!("refused");
    };
    let without = Admission {
        original_destination: second.packets[0].header.destination,
        retry_source: None,
        reset_key: None,
        intermediates: 0,
    };
    for (admission, fits) in [(admission, true), (without, false)] {
        if !fits {
            client = retried(&listener, 0).0;
        }
        let host = host(&quic(), vec![tuple.local.ip()], 2);
        let mut server = Connection::admit(host, tuple, admission, MS).expect("algorithms exist");
        let mut to_server = vec![second.clone()];
        for step in 0..4 {
            let now = (2 + step) * MS;
            for datagram in to_server.drain(..) {
                server.on_datagram(tuple, &datagram, 1200, Codepoint::NotEct, now);
            }
            for transmit in std::mem::take(server.transmits()) {
                let (datagram, len) = (transmit.datagram, transmit.len);
                client.on_datagram(first_tuple(), &datagram, len, Codepoint::NotEct, now);
            }
            to_server = client.transmits().drain(..).map(|it| it.datagram).collect();
        }
        let ended = (!fits).then_some(CloseReason::Aborted);
        assert_eq!(
            (client.established(), client.ended()),
            (fits, ended),
            "RFC 9000 section 7.3"
        );
    }
}

/// A client's first datagram with another version in it.
fn of_version(version: u32, len: usize) -> Vec<u8> {
    let mut client = client();
    let mut protector = polypath_transport::quic::bytes::Protector::new(&client);
    let (datagram, _) = first(&mut client);
    let mut bytes = protector.seal(&mut client, &datagram, &mut |_, _| {});
    bytes[1..5].copy_from_slice(&version.to_be_bytes());
    bytes.truncate(len);
    bytes
}

#[test]
fn a_server_names_its_version_to_whoever_speaks_another() {
    let listener = Listener::new(false, 1);
    let tuple = reversed(first_tuple());
    let bytes = of_version(0x0a0a_0a0a, 1200);
    let negotiation = answer(listener.greet_bytes(tuple, &bytes, 0));
    let sent = answer_bytes(&negotiation);
    let seen = split(&sent, 8).next().expect("a packet").expect("a header");
    assert_eq!(seen.kind, Kind::VersionNegotiation(vec![1]));
    // RFC 9000 section 17.2.1: the ids return.
    let destination = ConnectionId::new(&bytes[6..14]);
    assert_eq!((seen.source, seen.version), (destination, 0));
    assert_eq!(
        listener.greet_bytes(tuple, &of_version(0x0a0a_0a0a, 1199), 0),
        Greeting::Ignore
    );
    // It does not answer an answer.
    let mut padded = sent.clone();
    padded.resize(1200, 0);
    assert_eq!(listener.greet_bytes(tuple, &padded, 0), Greeting::Ignore);
}

#[test]
fn a_client_whose_version_nobody_speaks_gives_up() {
    let offer = |versions: Vec<u32>, spoil: bool| {
        let mut client = client();
        let (mut datagram, tuple) = first(&mut client);
        datagram.packets[0].header.version = 0x0a0a_0a0a;
        let mut answer = answer(Listener::new(false, 1).greet(tuple, &datagram, 1200, 0));
        let header = &mut answer.packets[0].header;
        header.kind = Kind::VersionNegotiation(versions);
        if spoil {
            header.source = ConnectionId::new(&[7; 8]);
        }
        client.on_datagram(first_tuple(), &answer, answer.len(), Codepoint::NotEct, MS);
        client.ended()
    };
    assert_eq!(offer(vec![2, 3], false), Some(CloseReason::Aborted));
    assert_eq!(offer(vec![2, 1], false), None, "RFC 9000 section 6.2");
    assert_eq!(offer(vec![2, 3], true), None, "not of its server");
}
