//! Stateless resets of an endpoint that no longer knows a connection (RFC 9000 section 10.3).

use std::collections::BTreeSet;

use polypath_transport::quic::{Codepoint, Listener, ResetKey};
use polypath_transport::{CloseReason, MILLISECOND as MS};

use crate::pair::Pair;
use crate::{link, multipath, quic};

const KEY: [u8; 32] = [7; 32];

fn listener(key: [u8; 32]) -> Listener {
    Listener::new(false, 1).resetting(ResetKey::new(key))
}

/// A packet with a short header of a connection of which nothing is known.
fn packet(len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
    bytes[0] = 0x41;
    bytes
}

#[test]
fn who_lost_its_state_ends_the_connection() {
    for config in [quic(), multipath()] {
        let links = vec![link(0, 20 * MS), link(0, 30 * MS)];
        let mut pair = Pair::new(&config, &config, links, 1).through_bytes();
        pair.reset_key = Some(ResetKey::new(KEY));
        pair.establish();
        pair.run_until(500 * MS, |_| false);
        let now = pair.now;
        pair.client.write(5000, now);
        let transmit = pair.client.transmits().pop().expect("it may send");
        let [protector, _] = pair.protectors.as_mut().expect("bytes are exchanged");
        let protector = protector.as_mut().expect("made");
        let sent = protector.seal(&mut pair.client, &transmit.datagram, &mut |_, _| {});
        let mut ended_by = |key| {
            let reset = listener(key)
                .reset(&sent)
                .expect("a packet of a connection");
            let (client, tuple) = (&mut pair.client, transmit.tuple);
            protector.receive(
                client,
                tuple,
                &reset,
                Codepoint::NotEct,
                now,
                &mut |_, _| {},
            );
            client.ended()
        };
        assert_eq!(ended_by([8; 32]), None, "the token of another key");
        assert_eq!(ended_by(KEY), Some(CloseReason::Reset));
    }
}

#[test]
fn a_reset_is_shorter_than_what_it_answers_and_looks_like_a_packet() {
    let listener = listener(KEY);
    for len in [29, 30, 43, 44, 1200] {
        let reset = listener.reset(&packet(len)).expect("long enough");
        assert_eq!(reset.len(), (len - 1).min(42));
        assert_eq!(reset[0] & 0xc0, 0x40, "a short header");
    }
    assert_eq!(
        listener.reset(&packet(28)),
        None,
        "too short for a packet to an id of ours"
    );
    assert_eq!(listener.reset(&packet(2)), None);
    let long_header = [
        &[0xc0, 0, 0, 0, 1, 8],
        &[1; 8][..],
        &[8],
        &[2; 8],
        &[0; 1200],
    ]
    .concat();
    assert_eq!(listener.reset(&long_header), None);
    assert_eq!(
        Listener::new(false, 1).reset(&packet(100)),
        None,
        "it has no key"
    );
    let firsts: BTreeSet<u8> = (29..60)
        .map(|len| listener.reset(&packet(len)).expect("long enough")[0])
        .collect();
    assert!(firsts.len() > 10, "{firsts:?}");
}

#[test]
fn two_that_know_nothing_of_each_other_fall_silent() {
    let mut datagram = packet(1200);
    let mut answers = 0;
    for at in (0..2).cycle() {
        let Some(answer) = listener([at; 32]).reset(&datagram) else {
            break;
        };
        datagram = answer;
        answers += 1;
    }
    assert_eq!(answers, 15, "from 42 bytes down to 28");
}
