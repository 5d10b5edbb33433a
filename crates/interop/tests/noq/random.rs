//! Random networks, streams and events.

use std::cell::Cell;
use std::rc::Rc;

use polypath_interop::{
    End, Exchange, Fate, Link, Noq, Ours, Settings, Side, World, client_address, server_address,
};
use polypath_noq::noq_proto::{FourTuple, PathEvent, PathStatus, VarInt};
use polypath_transport::{Config, Keepalive, MILLISECOND as MS, Nanos, SECOND};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use crate::{MBPS, Trouble, multipath, quic};

/// Cases of every run; POLYPATH_INTEROP_CASES asks for another number.
const CASES: u32 = 500;
/// Within so long everything has come: loss comes with doubling timeouts.
const LIMIT: Nanos = 120 * SECOND;

/// What happens while data flows.
#[derive(Clone, Copy, Debug)]
enum Action {
    UpdateKeys(Side),
    Rebind(usize),
    Backup(Side, usize, bool),
}

/// What becomes of one of two paths once both work.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Abandoned(Side),
    Dead,
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    id_len: usize,
    our_side: Side,
    multipath: bool,
    links: Vec<(u64, Nanos, u64)>,
    trouble: Trouble,
    requests: Vec<(Side, u64, u64)>,
    tells: Vec<(Side, u64)>,
    actions: Vec<(Nanos, Action)>,
    ending: Option<(Ending, usize, Nanos)>,
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![2 => 0..3_000u64, 1 => 3_000..150_000u64]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => side().prop_map(Action::UpdateKeys),
        1 => (0..2usize).prop_map(Action::Rebind),
        1 => (side(), 0..2usize, any::<bool>()).prop_map(|(by, link, on)| Action::Backup(by, link, on)),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let link = (1..50u64, 1..60u64, 5..100u64);
    let link = link.prop_map(|(rate, delay, queue)| (rate * MBPS, delay * MS, queue * 1500));
    let trouble = (0..=10u64, 0..=15u64, 0..=10u64);
    let ending = prop_oneof![side().prop_map(Ending::Abandoned), Just(Ending::Dead)];
    let ending = prop::option::of((ending, 0..2usize, (0..500u64).prop_map(|ms| ms * MS)));
    (
        (
            (any::<u64>(), 4..=20usize),
            side(),
            any::<bool>(),
            prop::collection::vec(link, 2),
            trouble,
        ),
        prop::collection::vec((side(), size(), size()), 0..6),
        prop::collection::vec((side(), size()), 0..4),
        prop::collection::vec(((0..1500u64).prop_map(|ms| ms * MS), action()), 0..8),
        ending,
    )
        .prop_map(
            |(
                ((seed, id_len), our_side, multipath, links, (lost, late, twice)),
                requests,
                tells,
                actions,
                ending,
            )| {
                let links = links[..if multipath { 2 } else { 1 }].to_vec();
                Case {
                    seed,
                    id_len,
                    our_side,
                    multipath,
                    ending: ending.filter(|_| multipath),
                    links,
                    trouble: Trouble { lost, late, twice },
                    requests,
                    tells,
                    actions,
                }
            },
        )
}

impl Case {
    fn ours(&self) -> Config {
        let base = if self.multipath { multipath() } else { quic() };
        // A client that only receives shows its new port by this alone.
        let keepalive = Keepalive {
            time: 2 * SECOND,
            interval: 2 * SECOND,
            probes: 3,
        };
        Config {
            keepalive: Some(keepalive),
            ..base
        }
    }

    fn noq(&self) -> Settings {
        Settings {
            seed: self.seed,
            id_len: self.id_len,
            paths: if self.multipath { 4 } else { 0 },
            path_idle: Some(3 * SECOND),
            keepalive: Some(2 * SECOND),
            ..Settings::default()
        }
    }

    fn run(&self) -> Result<(), String> {
        let seed = self.seed;
        match self.our_side {
            Side::Client => {
                let client = Ours::client(&self.ours(), self.links.len(), seed);
                self.play(client, Noq::server(self.noq()))
            }
            Side::Server => self.play(Noq::client(self.noq()), Ours::server(&self.ours(), seed)),
        }
    }

    fn play<C: Player, S: Player>(&self, client: C, server: S) -> Result<(), String> {
        let links = self.links.iter().map(|&(rate, one_way, queue)| Link {
            one_way,
            rate,
            queue,
        });
        let mut world = World::new(client, server, links.collect());
        let dead = Rc::new(Cell::new(None));
        let (mut trouble, seen_dead) = (self.trouble.hook(self.seed), Rc::clone(&dead));
        world.fate = Box::new(move |seen| {
            if seen_dead.get() == Some(seen.link) {
                Fate::Drop
            } else {
                trouble(seen)
            }
        });
        let mut exchange = Exchange::default();
        for &(by, bytes, answer) in &self.requests {
            exchange = exchange.request(by, bytes, answer);
        }
        for &(by, bytes) in &self.tells {
            exchange = exchange.tell(by, bytes);
        }
        let mut actions = self.actions.clone();
        let mut ending = self.ending;
        let mut both_at = None;
        let mut wrong = None;
        let done = world.run_until(LIMIT, |world| {
            let now = world.now;
            for (name, outcome) in [
                ("client", world.client.outcome()),
                ("server", world.server.outcome()),
            ] {
                if let Some(outcome) = outcome {
                    wrong = Some(format!("the {name} at {} ms: {outcome:?}", now / MS));
                    return true;
                }
            }
            if !(world.client.established() && world.server.established()) {
                return false;
            }
            if self.multipath {
                world.client.open_second(now);
            }
            actions.retain(|&(at, action)| {
                if at > now {
                    return true;
                }
                match action {
                    // noq's server challenges a client that moved only if it may send a full datagram, and gives up
                    // soon: one that only receives is never validated again, and gets next to nothing.
                    Action::Rebind(_) if self.our_side == Side::Client => {}
                    Action::Rebind(link) => world.rebind(link % self.links.len()),
                    Action::UpdateKeys(Side::Client) => world.client.update(now),
                    Action::UpdateKeys(Side::Server) => world.server.update(now),
                    Action::Backup(Side::Client, link, on) => world.client.prefer(link, on, now),
                    Action::Backup(Side::Server, link, on) => world.server.prefer(link, on, now),
                }
                false
            });
            if world.client.paths() == 2 && world.server.paths() == 2 {
                both_at.get_or_insert(now);
            }
            if let (Some((what, link, after)), Some(at)) = (ending, both_at)
                && at + after <= now
            {
                ending = None;
                match what {
                    Ending::Abandoned(Side::Client) => world.client.abandon(link, now),
                    Ending::Abandoned(Side::Server) => world.server.abandon(link, now),
                    Ending::Dead => dead.set(Some(link)),
                }
            }
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        if std::env::var("DBG").is_ok() {
            for s in &world.seen {
                println!("{:?}", s);
            }
            println!(
                "{:?} {:?}",
                world.client.received(),
                world.server.received()
            );
        }
        match wrong {
            Some(wrong) => Err(wrong),
            None if done => Ok(()),
            None => Err("not complete".to_string()),
        }
    }
}

/// What a case asks of an end.
trait Player: End {
    fn update(&mut self, now: Nanos);
    fn prefer(&mut self, link: usize, backup: bool, now: Nanos);
    fn abandon(&mut self, link: usize, now: Nanos);
    fn open_second(&mut self, now: Nanos);
    /// Paths that ever worked.
    fn paths(&mut self) -> usize;
}

impl Player for Ours {
    fn update(&mut self, now: Nanos) {
        let (connection, protector) = self.parts();
        protector.update_keys(connection, now);
    }

    fn prefer(&mut self, link: usize, backup: bool, now: Nanos) {
        self.parts().0.set_backup(client_address(link), backup, now);
    }

    fn abandon(&mut self, link: usize, now: Nanos) {
        self.parts()
            .0
            .set_address_up(client_address(link), false, now);
    }

    /// Its path manager does.
    fn open_second(&mut self, _: Nanos) {}

    fn paths(&mut self) -> usize {
        let members = self.connection().members();
        members
            .iter()
            .filter(|member| member.established_at().is_some())
            .count()
    }
}

impl Player for Noq {
    fn update(&mut self, now: Nanos) {
        self.update_keys(now);
    }

    fn prefer(&mut self, link: usize, backup: bool, now: Nanos) {
        let status = if backup {
            PathStatus::Backup
        } else {
            PathStatus::Available
        };
        let paths = self.connection().paths();
        if let Some(&path) = paths.get(link) {
            // Without the extension, or when the path is gone, there is nothing to prefer.
            let _ = self.connection().set_path_status(path, status);
            self.on_time(now);
        }
    }

    fn abandon(&mut self, link: usize, now: Nanos) {
        let at = self.at(now);
        let paths = self.connection().paths();
        if let Some(&path) = paths.get(link) {
            let closed = self.connection().close_path(at, path, VarInt::from_u32(0));
            closed.expect("both paths work");
            self.on_time(now);
        }
    }

    fn open_second(&mut self, now: Nanos) {
        let gone = |event: &PathEvent| matches!(event, PathEvent::Abandoned { .. });
        if self.connection().paths().len() > 1 || self.events.iter().any(gone) {
            return;
        }
        let at = self.at(now);
        let path = FourTuple::new((server_address(), 80).into(), Some(client_address(1)));
        // The ids for it may not have come yet.
        if self
            .connection()
            .open_path(path, PathStatus::Available, at)
            .is_ok()
        {
            self.on_time(now);
        }
    }

    fn paths(&mut self) -> usize {
        let established = |event: &&PathEvent| matches!(event, PathEvent::Established { .. });
        1 + self.events.iter().filter(established).count()
    }
}

#[test]
fn everything_arrives_whatever_happens() {
    let cases = std::env::var("POLYPATH_INTEROP_CASES");
    let cases = cases.map_or(CASES, |cases| cases.parse().expect("a number"));
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&case(), |case| case.run().map_err(TestCaseError::fail));
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Cases that found a defect.
#[test]
fn what_once_failed() {
    let quiet = Case {
        seed: 0,
        id_len: 8,
        our_side: Side::Client,
        multipath: false,
        links: vec![(MBPS, 16 * MS, 7500)],
        trouble: Trouble {
            lost: 5,
            late: 0,
            twice: 9,
        },
        requests: Vec::new(),
        tells: Vec::new(),
        actions: Vec::new(),
        ending: None,
    };
    // A probe of the handshake was too short for header protection.
    let probe = Case {
        seed: 13_524_102_265_832_801_963,
        ..quiet.clone()
    };
    assert_eq!(probe.run(), Ok(()));
    // noq follows an update of ours on a path that is dead, and begins another one without waiting (RFC 9001 section 6.1).
    let twice = Case {
        seed: 4_265_419_238_251_259_657,
        id_len: 8,
        our_side: Side::Server,
        multipath: true,
        links: vec![(7 * MBPS, 32 * MS, 10_500), (26 * MBPS, 37 * MS, 7_500)],
        trouble: Trouble {
            lost: 0,
            late: 1,
            twice: 0,
        },
        requests: vec![(Side::Server, 43_468, 20_871)],
        tells: vec![(Side::Server, 6_740), (Side::Client, 0)],
        actions: vec![
            (307 * MS, Action::Rebind(1)),
            (842 * MS, Action::UpdateKeys(Side::Client)),
            (484 * MS, Action::UpdateKeys(Side::Server)),
        ],
        ending: Some((Ending::Dead, 0, 59 * MS)),
    };
    assert_eq!(twice.run(), Ok(()));
}
