//! Congestion that the network marks (RFC 9000 section 13.4).

use polypath_interop::{Exchange, Fate, Noq, Ours, Seen, Settings, Side, World};
use polypath_noq::noq_proto::PathId;
use polypath_transport::{Config, EventKind, MILLISECOND as MS, SECOND};

use crate::transfer::complete;
use crate::{link, quic};

/// Marks some full packets of one side, and loses none.
fn marking(side: Side) -> Box<dyn FnMut(Seen) -> Fate> {
    let mut full = 0;
    Box::new(move |seen| {
        full += u32::from(seen.from == side && seen.len > 1000);
        let marked = seen.from == side && seen.len > 1000 && full % 100 == 50;
        if marked { Fate::Marked } else { Fate::Pass }
    })
}

#[test]
fn noq_tells_of_marks_and_our_window_shrinks() {
    let config = Config {
        ecn: true,
        ..quic()
    };
    let noq = Noq::server(Settings::default());
    let mut world = World::new(Ours::client(&config, 1, 1), noq, vec![link(0, 20 * MS)]);
    world.fate = marking(Side::Client);
    let exchange = Exchange::default().tell(Side::Client, 1_000_000);
    complete(&mut world, exchange, 10 * SECOND);
    let (connection, _) = world.client.parts();
    assert_eq!(connection.members()[0].totals().retransmitted, 0);
    let reduced = |kind: &EventKind| matches!(kind, EventKind::Loss(0));
    let reductions = connection
        .events()
        .iter()
        .filter(|event| reduced(&event.kind))
        .count();
    assert!(reductions >= 2, "{reductions}");
}

#[test]
fn ours_tells_of_marks_and_noqs_window_shrinks() {
    let noq = Noq::server(Settings::default());
    let mut world = World::new(Ours::client(&quic(), 1, 1), noq, vec![link(0, 20 * MS)]);
    world.fate = marking(Side::Server);
    let exchange = Exchange::default().tell(Side::Server, 1_000_000);
    complete(&mut world, exchange, 10 * SECOND);
    let stats = world
        .server
        .connection()
        .path_stats(PathId::ZERO)
        .expect("a path");
    assert_eq!(stats.lost_packets, 0);
    assert!(stats.congestion_events >= 2, "{}", stats.congestion_events);
}
