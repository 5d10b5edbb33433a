//! Applications of a plan that have not started.

use polypath_transport::Ways;

use super::Hosts;
use crate::PlanError;
use crate::application::{Beginning, Begun, Chains, Session, Side};
use crate::build::{self, SharedConfigs};
use crate::error::route_problem;
use crate::plan::{self, Plan, Stacks};
use crate::simulation::apps::App;
use crate::simulation::world::Owner;
use crate::simulation::world::World;
use crate::written::Elsewhere;

/// Where datagram applications' source ports begin.
const FIRST_PRIVATE_PORT: u16 = 49_152;

impl Hosts {
    pub fn add_application(
        &mut self,
        world: &mut World,
        application: usize,
        stacks: &Stacks,
        shared: &mut SharedConfigs,
        elsewhere: Option<&dyn Elsewhere>,
    ) -> Result<(), PlanError> {
        let settings = &self.plan.applications[application];
        let place = format!("application {}", settings.name);
        let node = |id: usize| {
            self.plan.nodes.get(id).ok_or(PlanError::Index {
                place: place.clone(),
                kind: "node",
                index: id,
            })
        };
        let (client, server) = (node(settings.client)?, node(settings.server)?);
        let first = |node: &plan::Node| {
            let address = node
                .interfaces
                .iter()
                .flat_map(|interface| &interface.addresses)
                .next()
                .copied();
            address.ok_or_else(|| {
                PlanError::invalid(&*place, format!("host {} has no address", node.name))
            })
        };
        let source = settings.source.map_or_else(|| first(client), Ok)?;
        let destination = settings.destination.map_or_else(|| first(server), Ok)?;
        let (entry, kind) = settings.work.kind();
        if let Some(fault) = kind.fault().or_else(|| stray_page(&self.plan, application)) {
            return Err(PlanError::invalid(&*place, fault));
        }
        if !entry.transports.contains(&settings.transport) {
            return Err(PlanError::invalid(
                &*place,
                format!("{:?} cannot do this work", settings.transport).to_lowercase(),
            ));
        }
        let over_connection = settings.transport.has_connection();
        let mut others = [None, None];
        let configs = if over_connection {
            let multipath = settings.transport.is_multipath();
            let mut stack = |side: Side, index: usize, node: &plan::Node| {
                let stack = stacks.of(application, side as usize, index);
                let stack = stack.ok_or_else(|| {
                    PlanError::invalid(&*place, format!("{} is not a host", node.name))
                })?;
                others[side as usize] = build::other_stack(
                    stack,
                    settings.transport,
                    source.is_ipv6(),
                    &place,
                    elsewhere,
                )?;
                shared.of(stack, multipath, &place, &self.algorithms)
            };
            Some([
                stack(Side::Client, settings.client, client)?,
                stack(Side::Server, settings.server, server)?,
            ])
        } else {
            None
        };
        if others.iter().any(Option::is_some) && kind.needs_datagrams() {
            return Err(PlanError::invalid(
                &*place,
                "a stack by others does not support datagrams here",
            ));
        }
        let start = settings.start_ns;
        let begun = kind.begin(Beginning {
            number: application,
            start,
            quic: settings.transport.is_quic(),
            seed: self.plan.seed,
            pages: self.apps.pages(),
        });
        let (session, datagrams) = match begun {
            Begun::Session(session) => (
                Some(over_proxies(
                    &self.plan,
                    &mut self.apps.chains,
                    session,
                    application,
                )?),
                None,
            ),
            Begun::Datagrams(datagrams) => (None, Some(datagrams)),
        };
        let ports = if over_connection {
            (0, settings.port)
        } else {
            (FIRST_PRIVATE_PORT + application as u16, settings.port)
        };
        world
            .net
            .leads(settings.client, source, destination)
            .map_err(|error| PlanError::Route {
                place: place.clone(),
                problem: route_problem(&error, &self.plan),
            })?;
        let ways = if over_connection && settings.transport.is_multipath() {
            let (client, server) = (settings.client, settings.server);
            [
                ways(world, &self.plan, client, server),
                ways(world, &self.plan, server, client),
            ]
        } else {
            Default::default()
        };
        (self.tunnels).open(world, &self.plan, application, (source, destination))?;
        let timer = world.new_timer(Owner::Start(application));
        if settings.work.relays().is_none() {
            world.net.set_timer(timer, start);
        }
        self.stacks.insert(application, others);
        self.apps.add(App {
            session,
            datagrams,
            endpoint: None,
            configs,
            requests: Vec::new(),
            addresses: ((source, ports.0).into(), (destination, ports.1).into()),
            ways,
            flows: None,
            timer,
            finished: false,
        });
        // It lasts as long as others need it.
        if settings.work.tunnel().is_some() {
            self.apps.finish(application);
        }
        Ok(())
    }
}

/// What runs over an application's connection, if that is one of a chain.
fn over_proxies(
    plan: &Plan,
    chains: &mut Chains,
    session: Box<dyn Session>,
    application: usize,
) -> Result<Box<dyn Session>, PlanError> {
    let place = || format!("application {}", plan.applications[application].name);
    if let Some(first) = plan.applications[application].work.relays() {
        let leg = chains.leg(first, application);
        let fault = "no application before it begins the chain that it relays";
        return leg.ok_or_else(|| PlanError::invalid(place(), fault));
    }
    let relays = plan.applications.iter().enumerate();
    let relays = relays.filter(|(_, it)| it.work.relays() == Some(application));
    let legs: Vec<usize> = std::iter::once(application)
        .chain(relays.map(|(number, _)| number))
        .collect();
    if legs.len() == 1 {
        return Ok(session);
    }
    for pair in legs.windows(2) {
        let (before, after) = (&plan.applications[pair[0]], &plan.applications[pair[1]]);
        if pair[1] < pair[0] || before.server != after.client {
            let fault = format!("{} does not begin where {} ends", after.name, before.name);
            return Err(PlanError::invalid(place(), fault));
        }
    }
    let over_tcp = |&leg: &usize| {
        let transport = plan.applications[leg].transport;
        transport.has_connection() && !transport.is_quic()
    };
    if !legs.iter().all(over_tcp) {
        let fault = "proxies relay TCP and Multipath TCP";
        return Err(PlanError::invalid(place(), fault));
    }
    Ok(chains.add(session, legs))
}

/// What is wrong where a page's connection has no objects of its own: another one before it has to have them.
fn stray_page(plan: &Plan, index: usize) -> Option<String> {
    let (before, own) = plan.applications.split_at(index);
    let plan::Work::Page(plan::Page { of: Some(of), .. }) = own[0].work else {
        return None;
    };
    let owner = before.get(of).map(|owner| &owner.work);
    let owns = matches!(owner, Some(plan::Work::Page(owner)) if owner.of.is_none());
    (!owns).then(|| "no application before it has the page that it is of".to_owned())
}

/// By which of its addresses a host reaches each of a peer's; between single addresses there is nothing to choose.
fn ways(world: &mut World, plan: &Plan, node: usize, peer: usize) -> Ways {
    let addresses = |node: usize| {
        let interfaces = plan.nodes[node].interfaces.iter();
        interfaces.flat_map(|interface| &interface.addresses)
    };
    if addresses(peer).count() + addresses(node).count() <= 2 {
        return Ways::default();
    }
    let found = addresses(peer).map(|&to| (to, world.net.sources(node, to)));
    Ways::new(found.collect())
}
