//! From a plan to a run that has not begun.

use std::collections::BTreeMap;
use std::path::PathBuf;

use polypath_net::Network;
use polypath_transport::quic::Spares;
use polypath_transport::{Algorithms, Ports, Sessions, Ways};

use super::control::Control;
use super::demultiplexer::Demultiplexer;
use super::guard::Guard;
use super::interfaces::Interfaces;
use super::processes::Processes;
use super::{App, FIRST_PRIVATE_PORT, Owner, Simulation, path_mtu, stand};
use crate::PlanError;
use crate::application::{Beginning, Begun, Pages, Side};
use crate::build::{self, Built, SharedConfigs, build};
use crate::capture::{CaptureMode, Captures};
use crate::control::Choosers;
use crate::controller::Controller;
use crate::error::route_problem;
use crate::flow::Body;
use crate::plan::{self, Action, Plan, Routing};
use crate::qlog::Qlogs;
use crate::record::Recorder;

impl Simulation {
    /// As [`Simulation::from_plan`], with algorithms that the registries do not know.
    ///
    /// # Errors
    /// As there.
    pub fn with_algorithms(
        plan: Plan,
        captures: CaptureMode,
        directory: Option<PathBuf>,
        algorithms: Algorithms,
        choosers: Option<&dyn Choosers>,
    ) -> Result<Self, PlanError> {
        if plan.version != plan::VERSION {
            return Err(PlanError::Version {
                found: plan.version,
                expected: plan::VERSION,
            });
        }
        if plan.record.interval_ns == 0 {
            return Err(PlanError::invalid(
                "record",
                "the sampling interval must be above 0",
            ));
        }
        let mut built = build(&plan)?;
        let stands = stand::stands(&plan, &mut built)?;
        if plan.routing == Routing::Spread && !stands.is_empty() {
            let why = "a controller that spreads flows knows no middleboxes";
            return Err(PlanError::invalid("routing", why));
        }
        let Built {
            mut network,
            channels,
        } = built;
        // Before the sample's, so that a sample of the same instant sees what processes did.
        let processes = Processes::new(network.new_timer());
        let sample_timer = network.new_timer();
        let control = Control::new(&plan, &mut network, choosers)?.map(Box::new);
        let captures = Captures::open(&plan, captures, directory.as_deref())?;
        let mut simulation = Self {
            unwatched: control.is_none() && !captures.active(),
            captures,
            qlogs: Qlogs::default(),
            recorder: Recorder::new(&plan),
            ports: plan.nodes.iter().map(|_| Ports::default()).collect(),
            sessions: plan.nodes.iter().map(|_| Sessions::default()).collect(),
            channels,
            stands,
            controller: (plan.routing == Routing::Spread).then(Controller::default),
            control,
            apps: Vec::new(),
            roused: Vec::new(),
            pages: Pages::default(),
            endpoints: Vec::new(),
            extras: Vec::new(),
            demultiplexer: Demultiplexer::default(),
            tokens: BTreeMap::new(),
            reports: BTreeMap::new(),
            answers: BTreeMap::new(),
            counters: BTreeMap::new(),
            interface_mtus: path_mtu::interface_mtus(&plan),
            path_mtus: BTreeMap::new(),
            changed: Interfaces::default(),
            timers: Vec::new(),
            sample_timer,
            processes,
            unfinished: plan.applications.len(),
            ended: false,
            guard: Guard::default(),
            transmits: Vec::new(),
            departing: Vec::new(),
            spares: Spares::default(),
            frames: None,
            host_queues: plan.links.iter().any(plan::Link::has_host_queue),
            algorithms,
            stacks: BTreeMap::new(),
            network,
            plan,
        };
        simulation.own(simulation.processes.timer(), Owner::Processes);
        simulation.own(sample_timer, Owner::Sample);
        simulation.own_stand_timers();
        if let Some(control) = &simulation.control {
            simulation.own(control.timer, Owner::Control);
        }
        simulation
            .network
            .set_timer(sample_timer, simulation.plan.record.interval_ns);
        simulation.open_channels();
        let mut configs = SharedConfigs::default();
        for index in 0..simulation.plan.applications.len() {
            simulation.add_application(index, &mut configs)?;
        }
        simulation.forget_stacks();
        for index in 0..simulation.plan.events.len() {
            if !matches!(simulation.plan.events[index].action, Action::Link { .. }) {
                let timer = simulation.new_timer(Owner::Event(index));
                simulation
                    .network
                    .set_timer(timer, simulation.plan.events[index].at_ns);
            }
        }
        Ok(simulation)
    }

    /// What stacks say is in the connections' configurations from here on.
    fn forget_stacks(&mut self) {
        for node in &mut self.plan.nodes {
            node.stack = None;
        }
        for application in &mut self.plan.applications {
            (application.client_stack, application.server_stack) = (None, None);
        }
    }

    fn add_application(
        &mut self,
        index: usize,
        shared: &mut SharedConfigs,
    ) -> Result<(), PlanError> {
        let settings = &self.plan.applications[index];
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
        if let Some(fault) = kind.fault().or_else(|| self.stray_page(index)) {
            return Err(PlanError::invalid(&*place, fault));
        }
        if !entry.transports.contains(&settings.transport) {
            return Err(PlanError::invalid(
                &*place,
                format!("{:?} cannot do this work", settings.transport).to_lowercase(),
            ));
        }
        let over_connection = settings.transport.has_connection();
        let mut stacks = [None, None];
        let configs = if over_connection {
            let multipath = settings.transport.is_multipath();
            let mut stack = |own: &Option<Box<plan::Stack>>, node: &plan::Node, side: Side| {
                let stack = own.as_ref().or(node.stack.as_ref());
                let stack = stack.ok_or_else(|| {
                    PlanError::invalid(&*place, format!("{} is not a host", node.name))
                })?;
                stacks[side as usize] =
                    build::other_stack(stack, settings.transport, source.is_ipv6(), &place)?;
                shared.of(stack, multipath, &place, &self.algorithms)
            };
            Some([
                stack(&settings.client_stack, client, Side::Client)?,
                stack(&settings.server_stack, server, Side::Server)?,
            ])
        } else {
            None
        };
        if stacks.iter().any(Option::is_some) && kind.needs_datagrams() {
            return Err(PlanError::invalid(&*place, "noq has no datagrams here"));
        }
        let start = settings.start_ns;
        let begun = kind.begin(Beginning {
            number: index,
            start,
            quic: settings.transport.is_quic(),
            seed: self.plan.seed,
            pages: &mut self.pages,
        });
        let (session, datagrams) = match begun {
            Begun::Session(session) => (Some(session), None),
            Begun::Datagrams(datagrams) => (None, Some(datagrams)),
        };
        let ports = if over_connection {
            (0, settings.port)
        } else {
            (FIRST_PRIVATE_PORT + index as u16, settings.port)
        };
        self.network
            .leads(
                polypath_net::NodeId(settings.client as u32),
                source,
                destination,
            )
            .map_err(|error| PlanError::Route {
                place: place.clone(),
                problem: route_problem(&error, &self.plan),
            })?;
        let ways = if over_connection && settings.transport.is_multipath() {
            let (client, server) = (settings.client, settings.server);
            [
                ways(&mut self.network, &self.plan, client, server),
                ways(&mut self.network, &self.plan, server, client),
            ]
        } else {
            Default::default()
        };
        let timer = self.new_timer(Owner::Start(index));
        self.network.set_timer(timer, start);
        if stacks.iter().any(Option::is_some) {
            self.stacks.insert(index, stacks);
        }
        self.apps.push(App {
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
        Ok(())
    }

    /// What is wrong where a page's connection has no objects of its own: another one before it has to have them.
    fn stray_page(&self, index: usize) -> Option<String> {
        let (before, own) = self.plan.applications.split_at(index);
        let plan::Work::Page(plan::Page { of: Some(of), .. }) = own[0].work else {
            return None;
        };
        let owner = before.get(of).map(|owner| &owner.work);
        let owns = matches!(owner, Some(plan::Work::Page(owner)) if owner.of.is_none());
        (!owns).then(|| "no application before it has the page that it is of".to_owned())
    }
}

/// By which of its addresses a host reaches each of a peer's; between single addresses there is nothing to choose.
fn ways(network: &mut Network<Body>, plan: &Plan, node: usize, peer: usize) -> Ways {
    let addresses = |node: usize| {
        let interfaces = plan.nodes[node].interfaces.iter();
        interfaces.flat_map(|interface| &interface.addresses)
    };
    if addresses(peer).count() + addresses(node).count() <= 2 {
        return Ways::default();
    }
    let from = polypath_net::NodeId(node as u32);
    let found = addresses(peer).map(|&to| (to, network.sources(from, to)));
    Ways::new(found.collect())
}
