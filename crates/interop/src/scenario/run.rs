//! Plays a scenario between two peers.

use polypath_transport::{Nanos, SECOND};

use super::{Act, Scenario};
use crate::end::{End, Outcome, Side};
use crate::exchange::Exchange;
use crate::peer::{Peer, Player, Setup};
use crate::trace::{KeyLog, Secrets, Sighting, dissect};
use crate::world::World;

/// Bytes of a request: a method and a path.
const REQUEST: u64 = 20;
/// So long a close may take.
const CLOSING: Nanos = 3 * SECOND;
/// Links on which the client has an address.
const LINKS: usize = 2;

/// How a scenario went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed(String),
    /// By whom, and why.
    NotOffered(Vec<(String, &'static str)>),
}

/// What was seen of a connection that did what was asked.
pub struct Connection {
    /// Before the network what the client sent, after it what the server sent.
    pub at_client: Vec<Sighting>,
    /// The other way around.
    pub at_server: Vec<Sighting>,
}

type Both = World<Box<dyn Player>, Box<dyn Player>>;

/// Plays a scenario; the same seed gives the same network.
pub fn run(scenario: &Scenario, client: &dyn Peer, server: &dyn Peer, seed: u64) -> Verdict {
    let mut lacking = Vec::new();
    for &feature in scenario.needs {
        for peer in [client, server] {
            let why = peer.lacks(feature);
            lacking.extend(why.map(|why| (peer.name().to_string(), why)));
        }
    }
    if !lacking.is_empty() {
        return Verdict::NotOffered(lacking);
    }
    match play(scenario, client, server, seed) {
        Ok(()) => Verdict::Passed,
        Err(reason) => Verdict::Failed(reason),
    }
}

fn play(
    scenario: &Scenario,
    client: &dyn Peer,
    server: &dyn Peer,
    seed: u64,
) -> Result<(), String> {
    let mut left = scenario.limit;
    let mut connections = Vec::new();
    let setup = (scenario.setup)();
    let several = scenario.downloads.len() > 1;
    for (index, files) in (0..).zip(scenario.downloads) {
        let setup = Setup {
            seed: seed + index,
            ..setup.clone()
        };
        let links = vec![scenario.network.link(); LINKS];
        let mut world = World::new(client.client(&setup), server.server(&setup), links);
        world.fate = scenario.network.hook(setup.seed);
        world.capture();
        let connection =
            connect(scenario, &mut world, files, left).map_err(|reason| match several {
                true => format!("connection {}: {reason}", index + 1),
                false => reason,
            })?;
        left = left.saturating_sub(world.now);
        connections.push(connection);
    }
    (scenario.check)(&connections)
}

fn connect(
    scenario: &Scenario,
    world: &mut Both,
    files: &[u64],
    limit: Nanos,
) -> Result<Connection, String> {
    let mut exchange = files.iter().fold(Exchange::default(), |exchange, &file| {
        exchange.request(Side::Client, REQUEST, file)
    });
    let mut act = scenario.act;
    let mut rebind_at = scenario.network.rebinding.map(|it| it.first);
    let mut log = Vec::new();
    let mut wrong = None;
    loop {
        let until = rebind_at.unwrap_or(limit).min(limit);
        let done = world.run_until(until, |world| {
            let now = world.now;
            log.extend(world.client.take_secrets());
            log.extend(world.server.take_secrets());
            wrong = ended("client", world.client.as_ref())
                .or_else(|| ended("server", world.server.as_ref()));
            if wrong.is_some() {
                return true;
            }
            if act != Act::None && received(world.client.as_ref()) >= Act::AFTER {
                let acted = match act {
                    Act::UpdateKeys => world.client.update_keys(now),
                    Act::Move => world.client.move_to(1, now),
                    Act::None => true,
                };
                if acted {
                    act = Act::None;
                }
            }
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        match (&mut rebind_at, scenario.network.rebinding) {
            _ if done => break,
            (Some(at), Some(rebinding)) if *at < limit => {
                *at += rebinding.every;
                if rebinding.address {
                    world.rebind_address(0);
                } else {
                    world.rebind(0);
                }
            }
            _ => return Err(format!("not done after {} s", limit / SECOND)),
        }
    }
    close(scenario, world)?;
    let mut secrets = KeyLog::default();
    secrets.read(&log.join("\n"));
    let secrets = Secrets::new(secrets, world.captured(Side::Client));
    Ok(Connection {
        at_client: dissect(world.captured(Side::Client), &secrets),
        at_server: dissect(world.captured(Side::Server), &secrets),
    })
}

/// The client closes. Where no packet is lost the server hears of it, and that there was no error.
fn close(scenario: &Scenario, world: &mut Both) -> Result<(), String> {
    let now = world.now;
    world.client.close(now);
    world.run_until(now + CLOSING, |world| {
        world.client.outcome().is_some() && world.server.outcome().is_some()
    });
    let (client, server) = (world.client.outcome(), world.server.outcome());
    let lossless = scenario.network.is_lossless();
    for (name, outcome) in [("client", client), ("server", server)] {
        if outcome != Some(Outcome::Closed) && (lossless || name == "client") {
            return Err(format!("after the close the {name} has {outcome:?}"));
        }
    }
    Ok(())
}

fn ended(name: &str, end: &dyn Player) -> Option<String> {
    let outcome = end.outcome()?;
    Some(match outcome {
        Outcome::Closed => format!("the {name} was closed"),
        Outcome::TimedOut => format!("the {name} timed out"),
        Outcome::Error(error) => format!("the {name}: {error}"),
    })
}

fn received(end: &dyn Player) -> u64 {
    end.received().values().map(|received| received.bytes).sum()
}
