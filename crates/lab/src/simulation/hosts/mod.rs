//! The hosts of a run: their connections, the applications over them, and the receivers of arriving packets.
//!
//! Packets come from the [`World`] and go to it; it is handed in.

mod accounts;
mod after_packets;
mod connections;
mod demultiplexer;
mod endpoints;
mod events;
mod extra;
mod host;
mod host_queues;
mod interfaces;
mod listener;
mod path_mtu;
mod processes;
mod quic;
mod refusal;
mod setting_up;
mod tunnel_entry;
mod tunnels;

use std::collections::BTreeMap;
use std::sync::Arc;

use polypath_net::TimerId;
use polypath_transport::quic::Spares;
use polypath_transport::{Algorithms, Transmit, quic as transport};

use super::apps::Apps;
use super::world::World;
use crate::application::Frames;
use crate::endpoint::Endpoint;
use crate::other_stack::OtherStack;
use crate::plan::{self, Plan};
use demultiplexer::Demultiplexer;
use endpoints::Endpoints;
use extra::Extra;
use host::Host;
use processes::Processes;
use tunnels::Tunnels;

pub(super) struct Hosts {
    plan: Arc<Plan>,
    /// By node.
    hosts: Vec<Host>,
    pub(super) apps: Apps,
    endpoints: Endpoints,
    extras: Vec<Extra>,
    demultiplexer: Demultiplexer,
    processes: Processes,
    /// Some host hears what a queue of its own refuses.
    host_queues: bool,
    /// That, or the plan records segments.
    looks_at_segments: bool,
    /// Some interface went down so far.
    any_went_down: bool,
    algorithms: Algorithms,
    stacks: OtherStacks,
    pub(super) tunnels: Tunnels,
    room: Room,
}

/// Stacks by others.
#[derive(Default)]
struct OtherStacks {
    /// Of the client's and the server's end of an application.
    stacks: BTreeMap<usize, [Option<Arc<dyn OtherStack>>; 2]>,
}

impl OtherStacks {
    fn of(&self, endpoint: &Endpoint) -> Option<&dyn OtherStack> {
        self.stacks.get(&endpoint.application)?[endpoint.side as usize].as_deref()
    }

    fn insert(&mut self, application: usize, ends: [Option<Arc<dyn OtherStack>>; 2]) {
        if ends.iter().any(Option::is_some) {
            self.stacks.insert(application, ends);
        }
    }
}

/// Room that is used again.
#[derive(Default)]
struct Room {
    transmits: Vec<Transmit>,
    /// As `transmits`, of QUIC.
    departing: Vec<transport::Transmit>,
    spares: Spares,
    /// What a connection brought, while it is not handed to an application.
    frames: Option<Box<Frames>>,
}

impl Hosts {
    pub fn new(plan: &Arc<Plan>, algorithms: Algorithms, processes: TimerId) -> Self {
        let host_queues = plan.links.iter().any(plan::Link::has_host_queue);
        Self {
            plan: plan.clone(),
            hosts: host::hosts(plan),
            apps: Apps::new(plan.applications.len()),
            endpoints: Endpoints::default(),
            extras: Vec::new(),
            demultiplexer: Demultiplexer::default(),
            processes: Processes::new(processes),
            host_queues,
            looks_at_segments: host_queues || plan.record.segments,
            any_went_down: false,
            algorithms,
            stacks: OtherStacks::default(),
            tunnels: Tunnels::default(),
            room: Room::default(),
        }
    }

    #[inline(always)]
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The time that an endpoint waited for has come.
    pub fn on_endpoint_timer(&mut self, world: &mut World, index: usize) {
        let now = world.net.now();
        let endpoint = &mut self.endpoints[index];
        if self.host_queues {
            endpoint.tell_left(now);
        }
        endpoint.alarm.on_fired();
        if let Some(connection) = endpoint
            .connection
            .as_mut()
            .filter(|connection| connection.next_deadline() <= now)
        {
            connection.on_time(now);
        }
        self.follow_up(world, index);
        if self.host_queues {
            let endpoint = &mut self.endpoints[index];
            let at = endpoint.leaving.first_at();
            world.net.set_alarm(&mut endpoint.alarm, at);
        }
    }

    /// The time that a connection without an application waited for has come.
    pub fn on_extra_timer(&mut self, world: &mut World, index: usize) {
        self.extras[index].on_time(world);
    }

    /// Records how they stand.
    pub fn sample(&mut self, world: &mut World) {
        world.sample(&self.endpoints);
        let datagrams = self.apps.iter().map(|app| app.datagrams.as_ref());
        let datagrams = datagrams.enumerate();
        let now = world.net.now();
        (world.recorder())
            .sample_datagrams(now, datagrams.filter_map(|(at, app)| Some((at, app?))));
    }

    /// Records what became of applications and connections, and what hosts counted.
    pub fn record_ends(&self, world: &mut World) {
        let now = world.net.now();
        let recorder = world.recorder();
        for (index, app) in self.apps.iter().enumerate() {
            if let Some(datagrams) = &app.datagrams {
                recorder.requests(index as u32, &datagrams.requests);
                recorder.datagrams(index as u32, datagrams);
            }
            recorder.requests(index as u32, &app.requests);
            if let Some(session) = &app.session {
                recorder.chunks(index as u32, &session.chunks());
                recorder.objects(index as u32, &session.loaded());
            }
            if let Some(first) = app.endpoint {
                let (client, server) = (&self.endpoints[first], &self.endpoints[first + 1]);
                let id = first as u32 / 2;
                recorder.connection_end(&self.plan, index, id, client, server);
                for endpoint in [client, server] {
                    recorder.blocking(now, id, endpoint);
                }
                recorder.subflow_ends(&self.plan, id, client, server);
            }
        }
        self.tunnels.record(recorder);
        let counted = extra::counted(&self.endpoints, &self.extras, &self.hosts);
        for (node, described) in self.plan.nodes.iter().enumerate() {
            if described.kind == plan::NodeKind::Host {
                let own = counted.get(&node).map_or(&[][..], Vec::as_slice);
                recorder.counters(node, own);
            }
        }
    }
}
