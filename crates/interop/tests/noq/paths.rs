//! Several paths (RFC 10069).

use polypath_interop::{
    End, Exchange, Fate, Link, Noq, Ours, Seen, Settings, Side, World, client_address,
};
use polypath_noq::noq_proto::{PathEvent, PathId};
use polypath_transport::{MILLISECOND as MS, Nanos, SECOND};

use crate::transfer::complete;
use crate::{MBPS, Trouble, link, multipath};

const PATHS: Settings = Settings {
    seed: 1,
    id_len: 8,
    paths: 4,
    idle: 30 * SECOND,
    path_idle: Some(3 * SECOND),
    keepalive: None,
    reno: false,
    retry: false,
    ack_frequency: None,
    intermediates: 0,
    window: None,
};

fn links() -> Vec<Link> {
    vec![link(10 * MBPS, 20 * MS), link(10 * MBPS, 20 * MS)]
}

fn large() -> Exchange {
    Exchange::default()
        .request(Side::Client, 1_000_000, 1_000_000)
        .tell(Side::Server, 1_000_000)
        .tell(Side::Client, 1_000_000)
}

/// Our client, which opens a second path by itself.
fn with_our_client() -> World<Ours, Noq> {
    let mut world = World::new(
        Ours::client(&multipath(), 2, 1),
        Noq::server(PATHS),
        links(),
    );
    let open = world.run_until(SECOND, |world| {
        let members = world
            .client
            .established()
            .then(|| world.client.connection().members());
        members.is_some_and(|members| members.iter().filter(|it| it.validated()).count() == 2)
    });
    assert!(open);
    world
}

/// Our server, to which noq opens a second path.
fn with_our_server() -> (World<Noq, Ours>, PathId) {
    let mut world = World::new(Noq::client(PATHS), Ours::server(&multipath(), 1), links());
    // The ids for the path have to come first.
    let connected = world.run_until(SECOND, |world| world.now >= 200 * MS);
    assert!(!connected || world.client.established());
    let now = world.now;
    let path = world.client.open_path(1, false, now);
    let open = world.run_until(SECOND, |world| {
        let members = world.server.connection().members();
        members
            .iter()
            .filter(|it| it.established_at().is_some())
            .count()
            == 2
    });
    assert!(open);
    (world, path)
}

/// Bytes that left in full packets: by side and link.
fn carried<C, S>(world: &World<C, S>) -> [[u64; 2]; 2] {
    let mut carried = [[0; 2]; 2];
    for seen in world.seen.iter().filter(|seen| seen.len > 1000) {
        carried[seen.from as usize][seen.link] += u64::from(seen.len);
    }
    carried
}

#[test]
fn our_client_opens_a_path_and_both_sides_use_it() {
    let mut world = with_our_client();
    let began = world.now;
    let end = complete(&mut world, large(), 10 * SECOND);
    for bytes in carried(&world).into_iter().flatten() {
        assert!(bytes > 500_000, "{:?}", carried(&world));
    }
    // Two megabytes each way; one path alone takes 1.7 s.
    assert!(end - began < 1500 * MS, "{} ms", (end - began) / MS);
}

#[test]
fn noq_opens_a_path_and_both_sides_use_it() {
    let (mut world, path) = with_our_server();
    let established =
        |event: &PathEvent| matches!(event, PathEvent::Established { id, .. } if *id == path);
    assert!(world.client.events.iter().any(established));
    let began = world.now;
    let end = complete(&mut world, large(), 10 * SECOND);
    for bytes in carried(&world).into_iter().flatten() {
        assert!(bytes > 500_000, "{:?}", carried(&world));
    }
    assert!(end - began < 1500 * MS, "{} ms", (end - began) / MS);
}

#[test]
fn two_paths_through_loss_and_reordering() {
    let trouble = Trouble {
        lost: 3,
        late: 10,
        twice: 5,
    };
    let mut world = with_our_client();
    world.fate = trouble.hook(1);
    complete(&mut world, large(), 60 * SECOND);
    let (mut world, _) = with_our_server();
    world.fate = trouble.hook(2);
    complete(&mut world, large(), 60 * SECOND);
}

#[test]
fn a_backup_of_noq_carries_none_of_our_data() {
    let (mut world, path) = with_our_server();
    let now = world.now;
    world.client.set_backup(path, true, now);
    world.run_until(now + 200 * MS, |_| false);
    assert!(world.server.connection().paths()[1].backup);
    world.seen.clear();
    complete(&mut world, large(), 20 * SECOND);
    let [_, server] = carried(&world);
    assert!(server[0] > 1_000_000 && server[1] < 20_000, "{server:?}");
}

#[test]
fn a_backup_of_ours_is_known_to_noq() {
    let mut world = with_our_client();
    let now = world.now;
    let (connection, _) = world.client.parts();
    connection.set_backup(client_address(1), true, now);
    world.run_until(now + 200 * MS, |_| false);
    let path = world.server.connection().paths()[1];
    let status = world.server.connection().remote_path_status(path);
    assert_eq!(status, Some(polypath_noq::noq_proto::PathStatus::Backup));
    complete(&mut world, large(), 20 * SECOND);
}

#[test]
fn noq_abandons_a_path_and_ours_follows() {
    for first in [true, false] {
        let (mut world, path) = with_our_server();
        let now = world.now;
        let mut exchange = large();
        world.run_until(now + 300 * MS, |world| {
            let now = world.now;
            exchange.drive(&mut world.client, &mut world.server, now);
            false
        });
        let now = world.now;
        world
            .client
            .close_path(if first { PathId::ZERO } else { path }, now);
        complete(&mut world, exchange, 20 * SECOND);
        let index = usize::from(!first);
        assert!(world.server.connection().members()[index].closed());
        assert!(!world.server.connection().members()[1 - index].closed());
    }
}

#[test]
fn ours_abandons_a_path_and_noq_follows() {
    for index in 0..2 {
        let mut world = with_our_client();
        let mut exchange = large();
        let now = world.now;
        world.run_until(now + 300 * MS, |world| {
            let now = world.now;
            exchange.drive(&mut world.client, &mut world.server, now);
            false
        });
        let now = world.now;
        let (connection, _) = world.client.parts();
        connection.set_address_up(client_address(index), false, now);
        complete(&mut world, exchange, 20 * SECOND);
        let abandoned = world.server.events.iter().any(|event| {
            matches!(event, PathEvent::Abandoned { id, .. } if *id == PathId::from(index as u32))
        });
        assert!(abandoned, "path {index}");
    }
}

/// noq acknowledges on its lowest path, whatever path is dead, until its idle timeout of the path has passed.
#[test]
fn what_a_dead_path_carried_goes_on_the_other() {
    for dead in 0..2 {
        let dies = |at: Nanos| -> Box<dyn FnMut(Seen) -> Fate> {
            Box::new(move |seen| {
                let lost = seen.link == dead && seen.at >= at;
                if lost { Fate::Drop } else { Fate::Pass }
            })
        };
        let mut world = with_our_client();
        world.fate = dies(world.now + 300 * MS);
        complete(&mut world, large(), 10 * SECOND);
        let (mut world, _) = with_our_server();
        world.fate = dies(world.now + 300 * MS);
        complete(&mut world, large(), 10 * SECOND);
    }
}
