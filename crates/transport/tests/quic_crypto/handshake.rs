//! Two sessions.

use polypath_transport::Sessions;
use polypath_transport::quic::crypto::{Level, Session, certificate};

use crate::{ALPN, Flight, flight, handshake, pair};

#[test]
fn two_sessions_agree() {
    let (mut client, mut server, flights) = pair((1, 2));
    let levels: Vec<Vec<Level>> = flights
        .iter()
        .map(|flight| flight.iter().map(|(level, _)| *level).collect())
        .collect();
    use Level::{Handshake, Initial};
    assert_eq!(
        levels,
        [vec![Initial], vec![Initial, Handshake], vec![Handshake]]
    );
    assert_eq!(client.peer_parameters(), Some(b"of the server".as_slice()));
    assert_eq!(server.peer_parameters(), Some(b"of the client".as_slice()));
    for session in [&mut client, &mut server] {
        assert!(!session.is_handshaking());
        assert_eq!(session.level(), Level::OneRtt);
        assert!(session.take_keys(Level::Initial).is_none());
        for level in [Level::Handshake, Level::OneRtt] {
            assert!(session.take_keys(level).is_some());
            assert!(session.take_keys(level).is_none());
        }
    }
}

#[test]
fn a_server_writes_before_it_has_finished() {
    let mut client = Session::client(1, vec![], ALPN);
    let mut server = Session::server(2, vec![], ALPN);
    for (level, bytes) in flight(&mut client) {
        assert_eq!(server.level(), Level::Initial);
        server.read(level, &bytes).unwrap();
    }
    assert_eq!(server.level(), Level::OneRtt);
    assert!(server.is_handshaking());
}

#[test]
fn the_same_seeds_give_the_same_bytes() {
    let (.., first) = pair((1, 2));
    let (.., again) = pair((1, 2));
    let (.., other_client) = pair((3, 2));
    let (.., other_server) = pair((1, 3));
    assert_eq!(first, again);
    assert_ne!(first[0], other_client[0]);
    assert_eq!(first[0], other_server[0]);
    assert_ne!(first[1], other_server[1]);
    // Sessions that run in turns on one thread do not draw from each other's stream.
    let mut clients = [1, 3].map(|seed| Session::client(seed, b"of the client".to_vec(), ALPN));
    let mut servers = [2, 2].map(|seed| Session::server(seed, b"of the server".to_vec(), ALPN));
    let hellos = clients.each_mut().map(flight);
    for (server, hello) in servers.iter_mut().zip(&hellos) {
        server.read(hello[0].0, &hello[0].1).unwrap();
    }
    assert_eq!(hellos, [first[0].clone(), other_client[0].clone()]);
    let answers = servers.each_mut().map(flight);
    assert_eq!(answers, [first[1].clone(), other_client[1].clone()]);
}

#[test]
fn bytes_in_pieces() {
    let (.., flights) = pair((1, 2));
    let mut server = Session::server(2, b"of the server".to_vec(), ALPN);
    for piece in flights[0][0].1.chunks(7) {
        server.read(Level::Initial, piece).unwrap();
    }
    assert_eq!(flight(&mut server), flights[1]);
}

#[test]
fn what_tls_refuses() {
    let hello = flight(&mut Session::client(1, vec![], ALPN)).remove(0).1;
    // No protocol in common (RFC 9001 section 8.1).
    let mut server = Session::server(2, vec![], b"other");
    assert_eq!(
        server.read(Level::Initial, &hello).unwrap_err().alert(),
        120
    );
    // A message of a type that does not exist: unexpected_message (RFC 8446 section 6.2).
    let mut server = Session::server(2, vec![], ALPN);
    let error = server
        .read(Level::Initial, &[0xff, 0, 0, 1, 0])
        .unwrap_err();
    assert_eq!(error.alert(), 10, "{error}");
    // The wrong level.
    let mut server = Session::server(2, vec![], ALPN);
    assert_eq!(
        server.read(Level::Handshake, &hello).unwrap_err().alert(),
        10
    );
    server.read(Level::Initial, &hello).unwrap();
    assert_eq!(server.read(Level::Initial, &hello).unwrap_err().alert(), 10);
}

/// The alert of a client that gets the server's Handshake flight with one byte changed.
fn alert_of_changed(position: impl FnOnce(&[u8]) -> usize) -> u8 {
    let mut client = Session::client(1, vec![], ALPN);
    let mut server = Session::server(2, vec![], ALPN);
    let hello = flight(&mut client);
    server.read(Level::Initial, &hello[0].1).unwrap();
    let mut answer = flight(&mut server);
    client.read(Level::Initial, &answer[0].1).unwrap();
    let bytes = &mut answer[1].1;
    let position = position(bytes);
    bytes[position] ^= 1;
    let error = client.read(Level::Handshake, bytes).unwrap_err();
    assert!(client.is_handshaking());
    error.alert()
}

#[test]
fn another_certificate_is_refused() {
    // The name stands in the certificate alone. unknown_ca (RFC 8446 section 6.2).
    let name = |bytes: &[u8]| {
        bytes
            .windows(8)
            .position(|part| part == b"polypath")
            .unwrap()
    };
    assert_eq!(alert_of_changed(name), 48);
}

#[test]
fn wrong_signature_or_finished_is_refused() {
    // Finished is a header of 4 bytes and 32 of SHA-256; the signature is before it. decrypt_error.
    assert_eq!(alert_of_changed(|bytes| bytes.len() - 1), 51);
    assert_eq!(alert_of_changed(|bytes| bytes.len() - 37), 51);
}

/// A handshake between hosts that keep these sessions.
fn meet(seeds: (u64, u64), server: u8, client: &Sessions, kept: &Sessions) -> Vec<Flight> {
    let server = [192, 0, 2, server].into();
    let mut client = Session::client_with(seeds.0, vec![], ALPN, Some(client.with(server)));
    let mut server = Session::server_with(seeds.1, vec![], ALPN, 0, Some(kept.of_clients()));
    handshake(&mut client, &mut server)
}

fn has_certificate(flights: &[Flight]) -> bool {
    let certificate = certificate::certificate();
    let (_, bytes) = &flights[1][1];
    bytes
        .windows(certificate.len())
        .any(|window| window == certificate.as_ref())
}

#[test]
fn a_kept_session_is_resumed_without_a_certificate() {
    let (client, server) = (Sessions::default(), Sessions::default());
    let first = meet((1, 2), 1, &client, &server);
    assert!(has_certificate(&first));
    assert_eq!(first[3][0].0, Level::OneRtt, "the tickets");
    for seed in 3..8 {
        assert!(!has_certificate(&meet(
            (seed, 10 * seed),
            1,
            &client,
            &server
        )));
    }
    // Another server of the client's, and another client of the server's.
    assert!(has_certificate(&meet(
        (1, 2),
        2,
        &client,
        &Sessions::default()
    )));
    assert!(has_certificate(&meet(
        (3, 4),
        1,
        &Sessions::default(),
        &server
    )));
    // A server that has forgotten it.
    assert!(has_certificate(&meet(
        (3, 4),
        1,
        &client,
        &Sessions::default()
    )));
}

#[test]
fn resumption_is_the_same_from_the_same_seeds() {
    let twice = || {
        let (client, server) = (Sessions::default(), Sessions::default());
        [(1, 2), (3, 4)].map(|seeds| meet(seeds, 1, &client, &server))
    };
    assert_eq!(twice(), twice());
}
