//! A run: its time, and the loop that hands the world's events to the hosts.

mod apps;
mod guard;
mod hosts;
mod limits;
mod setting_up;
mod stepping;
mod world;

use std::path::PathBuf;
use std::sync::Arc;

pub use polypath_net::Totals;
use polypath_net::{Occurrence, Output, TimerId};
use polypath_trace::Recording;
use polypath_transport::{Algorithms, Nanos};

use crate::PlanError;
use crate::capture::CaptureMode;
use crate::flow::Body;
use crate::middlebox::MiddleboxReport;
use crate::plan::Plan;
use crate::qlog::Qlogs;
use crate::written::Elsewhere;
use guard::Guard;
use hosts::Hosts;
pub use world::SwitchTotals;
use world::{Owner, World};

/// A run of a plan in the simulator.
pub struct Simulation {
    plan: Arc<Plan>,
    world: World,
    hosts: Hosts,
    sample_timer: TimerId,
    ended: bool,
    guard: Guard,
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

/// Prepares the run of a plan in JSON, with algorithms that the registries do not know, and runs nothing.
///
/// # Errors
/// Why the plan cannot run.
pub fn check(
    plan: &str,
    algorithms: Algorithms,
    elsewhere: Option<&dyn Elsewhere>,
) -> Result<(), PlanError> {
    let plan = serde_json::from_str(plan)?;
    Simulation::with_algorithms(plan, CaptureMode::None, None, algorithms, elsewhere).map(drop)
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
        *self.world.qlogs() = Qlogs::open(directory)?;
        Ok(())
    }

    /// Subflows and paths that their clients know to be established.
    pub fn established_subflows(&self) -> usize {
        self.hosts.endpoints().established_lanes()
    }

    /// Simulated time in nanoseconds.
    pub fn now(&self) -> Nanos {
        self.world.net.now()
    }

    /// Where all packets of the network went.
    pub fn totals(&self) -> Totals {
        self.world.net.totals()
    }

    /// What each middlebox did so far, in the links' order.
    pub fn middleboxes(&self) -> Vec<MiddleboxReport> {
        self.world.middleboxes().collect()
    }

    /// Where packets went at switches; nothing where no controller rules.
    pub fn switch_totals(&self) -> Option<SwitchTotals> {
        self.world.switch_totals()
    }

    /// What switches have sent to a controller outside and has arrived there: the datapath and a message's bytes, in order.
    pub fn controller_receives(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.world.controller_receives()
    }

    /// A controller outside sends bytes to a datapath now. False: there is none of this number.
    pub fn controller_sends(&mut self, datapath: u64, bytes: Vec<u8>) -> bool {
        self.world.controller_sends(datapath, bytes)
    }

    /// Bytes that applications received in order so far.
    pub fn delivered_bytes(&self) -> u64 {
        self.hosts.endpoints().delivered_bytes()
    }

    /// Packets that left a link's queue so far.
    pub fn packet_hops(&mut self) -> u64 {
        self.world.net.packet_hops()
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
                Step::Partly => drop(self.controller_receives()),
            }
        }
    }

    /// As [`Simulation::step_until`], but for a fraction of a second of real time at most, so that an owner can look at its signals.
    ///
    /// # Errors
    /// As there.
    #[inline(always)] // as a call it takes four instructions per packet-hop more
    pub fn step(&mut self, until: Nanos) -> Result<Step, PlanError> {
        self.advance(until, OUTPUTS_A_STEP)
    }

    /// Handles `most` outputs at most.
    #[inline(always)]
    fn advance(&mut self, until: Nanos, most: u64) -> Result<Step, PlanError> {
        let until = until.min(self.plan.duration_ns);
        if self.ended {
            return Ok(Step::Over);
        }
        let observed = self.world.is_observed();
        for _ in 0..most {
            // Apart, so that what an observed network gives is not moved.
            let output = if observed {
                self.world.poll_observed(until)
            } else {
                match self.world.poll(until, self.hosts.endpoints()) {
                    Some(Occurrence::Arrived {
                        interface, parcel, ..
                    }) => {
                        self.hosts.on_parcel(&mut self.world, parcel, interface);
                        if self.hosts.apps.all_finished() {
                            self.ended = true;
                            return Ok(Step::Over);
                        }
                        continue;
                    }
                    Some(Occurrence::Other(output)) => Some(output),
                    None => None,
                }
            };
            let Some(output) = output else {
                return self.pause(until);
            };
            if self.on_output(output) {
                self.require_room()?;
            }
            if self.hosts.apps.all_finished() {
                self.ended = true;
                return Ok(Step::Over);
            }
        }
        self.look_after(most)?;
        Ok(Step::Partly)
    }

    /// Nothing more happens before `until`, or a controller outside is to be heard first.
    #[cold]
    #[inline(never)]
    fn pause(&mut self, until: Nanos) -> Result<Step, PlanError> {
        if self.world.is_asking() {
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

    /// What is not a packet that lies where it arrived. Returns whether a sample was taken.
    #[inline(always)]
    fn on_output(&mut self, output: Output<Body>) -> bool {
        let (world, hosts) = (&mut self.world, &mut self.hosts);
        match output {
            output @ (Output::Delivered { .. } | Output::Local(_)) => {
                // in one place, where it is inlined: the packet is not moved
                let interface = match &output {
                    Output::Delivered { interface, .. } => Some(*interface),
                    _ => None,
                };
                if let Output::Delivered { packet, .. } | Output::Local(packet) = output {
                    hosts.on_packet(world, packet, interface);
                }
            }
            Output::Timer(timer) => return self.on_timer(timer),
            // The Recording has it from the plan.
            Output::Changed(channel) => world.on_changed(channel),
            Output::Refused { channel, packet } => world.on_refused(channel, packet),
        }
        false
    }

    /// Returns whether a sample was taken.
    #[inline(never)] // what seldom happens is no part of the loop
    fn on_timer(&mut self, timer: TimerId) -> bool {
        let (world, hosts) = (&mut self.world, &mut self.hosts);
        match world.owner(timer) {
            Owner::Start(application) => hosts.start(world, application),
            Owner::Datagrams(application) => hosts.apps.tick_datagrams(world, application),
            Owner::Event(event) => hosts.on_action(world, &self.plan.events[event].action),
            Owner::Middlebox(stand) => world.on_middlebox_timer(stand),
            Owner::Tunnel { tunnel, to_server } => {
                hosts.tunnels.on_time(world, tunnel, to_server);
            }
            Owner::Extra(extra) => hosts.on_extra_timer(world, extra),
            Owner::Processes => hosts.run_processes(world),
            Owner::Switching => world.on_switching_timer(),
            Owner::Accounts => world.on_accounts_timer(),
            Owner::Endpoint(index) => hosts.on_endpoint_timer(world, index),
            Owner::Sample => {
                self.sample();
                let next = self.world.net.now() + self.plan.record.interval_ns;
                self.world.net.set_timer(self.sample_timer, next);
                return true;
            }
        }
        false
    }

    fn sample(&mut self) {
        self.hosts.sample(&mut self.world);
    }

    /// Ends the run where it stands and gives what was recorded.
    ///
    /// # Errors
    /// Why captures could not be written.
    pub fn finish(mut self) -> Result<Recording, PlanError> {
        self.sample();
        self.world.record_ends();
        self.hosts.record_ends(&mut self.world);
        self.world.finish()
    }
}
