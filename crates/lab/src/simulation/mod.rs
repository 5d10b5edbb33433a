//! A run: the loop that moves packets between the network and the endpoints.

mod after_packets;
mod bridges;
mod connections;
mod control;
mod datagrams;
mod demultiplexer;
mod events;
mod expecting;
mod extra;
mod guard;
mod host_queues;
mod interfaces;
mod limits;
mod listener;
mod middleboxes;
mod openflow;
mod path_mtu;
mod processes;
mod quic;
mod refusal;
mod setting_up;
mod stand;
mod switch_tables;
mod switches;
mod watched;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

pub use polypath_net::Totals;
use polypath_net::{ChannelId, Ecn, Network, Occurrence, Output, RouteId, TimerId};
use polypath_prefetch::prefetch;
use polypath_trace::Recording;
use polypath_transport::quic::Spares;
use polypath_transport::{
    Algorithms, Config, Counters, NEVER, Nanos, Ports, Sessions, Transmit, Ways,
};

use crate::PlanError;
use crate::application::{Datagrams, Frames, Pages, Request, Session};
use crate::capture::{CaptureMode, Captures};
use crate::carrier::Carrier;
use crate::control::Choosers;
use crate::controller::Controller;
use crate::endpoint::Endpoint;
use crate::flow::Body;
use crate::middlebox::MiddleboxReport;
use crate::other_stack::OtherStack;
use crate::plan::{self, Plan};
use crate::qlog::Qlogs;
use crate::record::Recorder;
use control::Control;
pub use control::SwitchTotals;
use demultiplexer::Demultiplexer;
use expecting::Expecting;
use extra::Extra;
use guard::Guard;
use interfaces::Interfaces;
use processes::Processes;
use stand::Stand;

/// Whose timer fired.
#[derive(Clone, Copy)]
enum Owner {
    Start(usize),
    Endpoint(usize),
    Datagrams(usize),
    Event(usize),
    Middlebox(usize),
    Extra(usize),
    Processes,
    Sample,
    Control,
}

/// An application in the run.
struct App {
    session: Option<Box<dyn Session>>,
    datagrams: Option<Datagrams>,
    /// Index of its client's endpoint; the server's follows.
    endpoint: Option<usize>,
    configs: Option<[Arc<Config>; 2]>,
    requests: Vec<Request>,
    addresses: (SocketAddr, SocketAddr),
    /// How the client reaches the server's addresses, and the server the client's.
    ways: [Ways; 2],
    /// Of a datagram application: there and back.
    flows: Option<(u32, u32)>,
    timer: TimerId,
    finished: bool,
}

/// A run of a plan in the simulator.
pub struct Simulation {
    plan: Plan,
    network: Network<Body>,
    channels: Vec<(ChannelId, ChannelId)>,
    captures: Captures,
    qlogs: Qlogs,
    stands: Vec<Stand>,
    controller: Option<Controller>,
    /// The switches that forward by tables, where there are any.
    control: Option<Box<Control>>,
    /// Nobody wants to hear of packets on their way: neither captures nor switches.
    unwatched: bool,
    apps: Vec<App>,
    /// Applications whose clients are to be called.
    roused: Vec<usize>,
    pages: Pages,
    endpoints: Vec<Endpoint>,
    extras: Vec<Extra>,
    demultiplexer: Demultiplexer,
    /// MPTCP connections by node and token.
    tokens: BTreeMap<(usize, u32), usize>,
    /// The flows of routers' reports of long packets, by channel and the flow that they are about.
    reports: BTreeMap<(ChannelId, u32), Option<u32>>,
    /// The flows of hosts' answers to what no application's connection takes, by the flow that they answer.
    answers: BTreeMap<u32, u32>,
    /// What hosts count that none of their connections does, by node.
    counters: BTreeMap<usize, Counters>,
    /// By node and address.
    interface_mtus: Vec<Vec<(IpAddr, u32)>>,
    /// What hosts were told: by node, own address and destination.
    path_mtus: BTreeMap<(usize, IpAddr, IpAddr), u32>,
    changed: Interfaces,
    ports: Vec<Ports>,
    /// TLS sessions of QUIC, by node.
    sessions: Vec<Sessions>,
    timers: Vec<Owner>,
    recorder: Recorder,
    sample_timer: TimerId,
    processes: Processes,
    unfinished: usize,
    ended: bool,
    guard: Guard,
    transmits: Vec<Transmit>,
    /// As `transmits`, of QUIC; datagrams to be used again; and what a connection brought, while
    /// it is not handed to an application.
    departing: Vec<polypath_transport::quic::Transmit>,
    spares: Spares,
    frames: Option<Box<Frames>>,
    /// Some host hears what a queue of its own refuses.
    host_queues: bool,
    algorithms: Algorithms,
    /// Of the client's and the server's end of an application, where it is by others.
    stacks: BTreeMap<usize, [Option<Arc<dyn OtherStack>>; 2]>,
}

/// How far [`Simulation::step`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Every application ended, or the plan's duration is up.
    Over,
    /// The time that was asked for.
    Reached,
    /// Not as far; it is to be called again.
    Partly,
}

/// Packets, timers and changes that one step handles at most.
const OUTPUTS_A_STEP: u64 = 1 << 16;
/// As how many of them it counts that a controller outside is heard, which takes as long.
const OUTPUTS_A_HEARING: u64 = 1 << 6;

/// Where datagram applications' source ports begin.
const FIRST_PRIVATE_PORT: u16 = 49_152;

/// Prepares the run of a plan in JSON, with algorithms that the registries do not know, and runs nothing.
///
/// # Errors
/// Why the plan cannot run.
pub fn check(
    plan: &str,
    algorithms: Algorithms,
    choosers: Option<&dyn Choosers>,
) -> Result<(), PlanError> {
    let plan = serde_json::from_str(plan)?;
    Simulation::with_algorithms(plan, CaptureMode::None, None, algorithms, choosers).map(drop)
}

impl Simulation {
    /// Prepares the run of a plan in JSON. Captures are written to `directory`.
    ///
    /// # Errors
    /// Why the plan cannot run, or why captures cannot be written.
    pub fn new(
        plan: &str,
        captures: CaptureMode,
        directory: Option<PathBuf>,
    ) -> Result<Self, PlanError> {
        Self::from_plan(serde_json::from_str(plan)?, captures, directory)
    }

    /// As [`Simulation::new`] with a plan already read.
    ///
    /// # Errors
    /// As there.
    pub fn from_plan(
        plan: Plan,
        captures: CaptureMode,
        directory: Option<PathBuf>,
    ) -> Result<Self, PlanError> {
        Self::with_algorithms(plan, captures, directory, Algorithms::default(), None)
    }

    /// Writes a qlog of each side of each connection of QUIC to `directory`, which is to be new or empty. To be called before the first step.
    ///
    /// # Errors
    /// Why there can be none.
    pub fn write_qlogs(&mut self, directory: PathBuf) -> Result<(), PlanError> {
        self.qlogs = Qlogs::open(directory)?;
        Ok(())
    }

    fn new_timer(&mut self, owner: Owner) -> TimerId {
        let timer = self.network.new_timer();
        self.own(timer, owner);
        timer
    }

    fn own(&mut self, timer: TimerId, owner: Owner) {
        let index = timer.index();
        if self.timers.len() <= index {
            self.timers.resize(index + 1, Owner::Sample);
        }
        self.timers[index] = owner;
    }

    /// Subflows and paths that their clients know to be established.
    pub fn established_subflows(&self) -> usize {
        let clients = self.endpoints.iter().step_by(2);
        let lanes = |it: &Carrier| {
            (0..it.lanes())
                .filter(|&lane| it.lane(lane).established_at.is_some())
                .count()
        };
        clients
            .filter_map(|client| client.connection.as_ref())
            .map(lanes)
            .sum()
    }

    /// Simulated time in nanoseconds.
    pub fn now(&self) -> Nanos {
        self.network.now()
    }

    /// Where all packets of the network went.
    pub fn totals(&self) -> Totals {
        self.network.totals()
    }

    /// What each middlebox did so far, in the links' order.
    pub fn middleboxes(&self) -> Vec<MiddleboxReport> {
        let reports = self.stands.iter().flat_map(Stand::reports);
        reports.collect()
    }

    /// Bytes that applications received in order so far.
    pub fn delivered_bytes(&self) -> u64 {
        self.endpoints
            .iter()
            .map(|endpoint| endpoint.received)
            .sum()
    }

    /// Packets that left a link's queue so far.
    pub fn packet_hops(&mut self) -> u64 {
        let network = &mut self.network;
        let pairs = self.channels.iter();
        pairs
            .flat_map(|&(forward, backward)| [forward, backward])
            .map(|channel| network.stats(channel).sent_packets)
            .sum()
    }

    /// Runs up to `until` nanoseconds. True: the run is over, because every application ended or its duration is up.
    ///
    /// # Errors
    /// The run would not end by itself: time stands still, or it takes more memory than the plan lets it.
    pub fn step_until(&mut self, until: Nanos) -> Result<bool, PlanError> {
        loop {
            match self.step(until)? {
                Step::Over => return Ok(true),
                Step::Reached => return Ok(false),
                Step::Partly => self.leave_unheard(),
            }
        }
    }

    /// As [`Simulation::step_until`], but for a fraction of a second of real time at most, so that an owner can look at its signals.
    ///
    /// # Errors
    /// As there.
    #[inline(always)] // as a call it takes four instructions per packet-hop more
    pub fn step(&mut self, until: Nanos) -> Result<Step, PlanError> {
        let until = until.min(self.plan.duration_ns);
        if self.ended {
            return Ok(Step::Over);
        }
        for _ in 0..OUTPUTS_A_STEP {
            let output = if self.unwatched {
                match self
                    .network
                    .poll_in_place(until, &mut Expecting(&self.captures.flows, &self.endpoints))
                {
                    Some(Occurrence::Arrived {
                        interface, parcel, ..
                    }) => {
                        self.on_parcel(parcel, interface);
                        if self.unfinished == 0 {
                            self.ended = true;
                            return Ok(Step::Over);
                        }
                        continue;
                    }
                    Some(Occurrence::Other(output)) => Some(output),
                    None => None,
                }
            } else {
                self.poll_watched(until)
            };
            match output {
                Some(output @ (Output::Delivered { .. } | Output::Local(_))) => {
                    // in one place, where it is inlined: the packet is not moved
                    let interface = match &output {
                        Output::Delivered { interface, .. } => Some(*interface),
                        _ => None,
                    };
                    if let Output::Delivered { packet, .. } | Output::Local(packet) = output {
                        self.on_packet(packet, interface);
                    }
                }
                Some(Output::Timer(timer)) => {
                    if self.on_timer(timer) {
                        self.require_room()?;
                    }
                }
                // The Recording has it from the plan.
                Some(Output::Changed(_)) => {}
                Some(Output::Refused { channel, packet }) => self.on_refused(channel, packet),
                None => return self.pause(until),
            }
            if self.unfinished == 0 {
                self.ended = true;
                return Ok(Step::Over);
            }
        }
        self.look_after(OUTPUTS_A_STEP)?;
        Ok(Step::Partly)
    }

    /// Nothing more happens before `until`, or a controller outside is to be heard first.
    #[cold]
    #[inline(never)]
    fn pause(&mut self, until: Nanos) -> Result<Step, PlanError> {
        if self.is_asking() {
            self.look_after(OUTPUTS_A_HEARING)?;
            return Ok(Step::Partly);
        }
        self.ended = until >= self.plan.duration_ns;
        Ok(if self.ended {
            Step::Over
        } else {
            Step::Reached
        })
    }

    /// Returns whether a sample was taken.
    fn on_timer(&mut self, timer: TimerId) -> bool {
        let now = self.network.now();
        match self.timers[timer.index()] {
            Owner::Start(application) => self.start(application),
            Owner::Datagrams(application) => self.tick_datagrams(application),
            Owner::Event(event) => self.on_event(event),
            Owner::Middlebox(stand) => self.on_middlebox_timer(stand),
            Owner::Extra(extra) => self.on_extra_timer(extra),
            Owner::Processes => self.run_processes(),
            Owner::Control => self.on_control_timer(),
            Owner::Sample => {
                self.sample();
                self.network
                    .set_timer(self.sample_timer, now + self.plan.record.interval_ns);
                return true;
            }
            Owner::Endpoint(index) => {
                if self.host_queues {
                    self.tell_left(index);
                }
                let endpoint = &mut self.endpoints[index];
                endpoint.timer_at = NEVER;
                if let Some(connection) = endpoint
                    .connection
                    .as_mut()
                    .filter(|connection| connection.next_deadline() <= now)
                {
                    connection.on_time(now);
                }
                self.follow_up(index);
                if self.host_queues {
                    self.await_leaving(index);
                }
            }
        }
        false
    }

    /// Has fetched what a segment that arrived is dealt with by, and the flow by which it is answered.
    #[inline(never)]
    fn prefetch(&self, endpoint: usize, subflow: usize) {
        let endpoint = &self.endpoints[endpoint];
        if let Some(flow) = endpoint.flows.get(subflow)
            && let Some(flow) = self.captures.flows.get(*flow as usize)
        {
            prefetch(flow);
        }
        if let Some(connection) = endpoint.tcp() {
            connection.prefetch(subflow);
        }
    }

    fn inject(&mut self, route: RouteId, len: u32, flow: u32, ecn: Ecn, body: Body) {
        if self.unwatched {
            self.network.inject(route, len, flow, ecn, body, &mut ());
        } else {
            self.inject_watched(route, len, flow, ecn, body);
        }
    }

    /// Sends a packet on its flow's route, or to a receiver at the sender's own place.
    #[inline]
    fn dispatch(&mut self, route: Option<RouteId>, len: u32, flow: u32, ecn: Ecn, body: Body) {
        match route {
            Some(route) => self.inject(route, len, flow, ecn, body),
            None => self.network.inject_local(len, flow, ecn, body),
        }
    }

    fn finish_application(&mut self, application: usize) {
        let app = &mut self.apps[application];
        if !app.finished {
            app.finished = true;
            self.unfinished -= 1;
        }
    }

    fn sample(&mut self) {
        let now = self.network.now();
        let (endpoints, channels) = (&mut self.endpoints, &self.channels);
        self.recorder
            .sample(now, endpoints, channels, &mut self.network);
        let datagrams = self.apps.iter().map(|app| app.datagrams.as_ref());
        let datagrams = datagrams.enumerate();
        (self.recorder).sample_datagrams(now, datagrams.filter_map(|(at, app)| Some((at, app?))));
        if let Some(control) = &mut self.control {
            control.sample(now, &mut self.recorder.recording);
        }
    }

    /// Ends the run where it stands and gives what was recorded.
    ///
    /// # Errors
    /// Why captures could not be written.
    pub fn finish(mut self) -> Result<Recording, PlanError> {
        self.sample();
        self.recorder
            .link_ends(&self.plan, &self.channels, &mut self.network);
        if let Some(control) = &self.control {
            control.ends(&self.plan, &mut self.recorder.recording);
        }
        // Tables of many connections take as much.
        self.network.forget_packets();
        self.recorder
            .middleboxes(self.stands.iter().flat_map(Stand::reports));
        for (index, app) in self.apps.iter().enumerate() {
            if let Some(datagrams) = &app.datagrams {
                self.recorder.requests(index as u32, &datagrams.requests);
                self.recorder.datagrams(index as u32, datagrams);
            }
            self.recorder.requests(index as u32, &app.requests);
            if let Some(session) = &app.session {
                self.recorder.chunks(index as u32, session.chunks());
                self.recorder.objects(index as u32, &session.loaded());
            }
            if let Some(first) = app.endpoint {
                let (client, server) = (&self.endpoints[first], &self.endpoints[first + 1]);
                let id = first as u32 / 2;
                self.recorder
                    .connection_end(&self.plan, index, id, client, server);
                for endpoint in [client, server] {
                    self.recorder.blocking(self.network.now(), id, endpoint);
                }
                self.recorder.subflow_ends(&self.plan, id, client, server);
            }
        }
        let counted = extra::counted(&self.endpoints, &self.extras, &self.counters);
        for (node, described) in self.plan.nodes.iter().enumerate() {
            if described.kind == plan::NodeKind::Host {
                let own = counted.get(&node).map_or(&[][..], Vec::as_slice);
                self.recorder.counters(node, own);
            }
        }
        self.captures.finish()?;
        self.qlogs.finish()?;
        Ok(self.recorder.recording)
    }
}
