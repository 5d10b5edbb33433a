//! The network of a run and what stands in it: flows, switches and their controller, middleboxes, captures.
//!
//! It moves packets from host to host, and ignores connections and applications.

mod accounts;
mod flows;
mod middleboxes;
mod net;
mod prefetching;
mod reports;
mod stand;
mod switching;
mod tunnels;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use polypath_net::{Change, ChannelId, Occurrence, Output, TimerId};
use polypath_trace::Recording;
use polypath_transport::Nanos;

use crate::PlanError;
use crate::account::{self, Accounts, Watch};
use crate::alarm::Alarm;
use crate::build::{Built, build, changes};
use crate::capture::{CaptureMode, Captures};
use crate::control::Choosers;
use crate::endpoint::Endpoint;
use crate::flow::{Body, End};
use crate::middlebox::MiddleboxReport;
use crate::plan::{Action, Attachment, Plan, Routing, Stacks};
use crate::qlog::Qlogs;
use crate::record::Recorder;
use crate::spreading::Spreading;

pub use flows::route_unbound;
use net::Net;
use prefetching::Expecting;
use stand::Stand;
pub use switching::SwitchTotals;
use switching::Switching;
pub use tunnels::{beyond_tunnel, leave_tunnel, open_tunnel};

/// Whose timer fired.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    Start(usize),
    Endpoint(usize),
    Datagrams(usize),
    /// One direction of a tunnel.
    Tunnel {
        tunnel: usize,
        to_server: bool,
    },
    Event(usize),
    Middlebox(usize),
    Extra(usize),
    Processes,
    Sample,
    Switching,
    Accounts,
}

pub(super) struct World {
    plan: Arc<Plan>,
    pub(super) net: Net,
    qlogs: Qlogs,
    recorder: Recorder,
    /// Whose timer each is.
    timers: Vec<Owner>,
    stands: Vec<Stand>,
    /// The channels of links whose packets go through tunnels.
    tunnelled: BTreeMap<ChannelId, End>,
    spreading: Option<Spreading>,
    /// The switches that forward by tables, where there are any.
    switching: Option<Box<Switching>>,
    /// Where the plan wants them.
    accounts: Option<Box<Accounts>>,
    /// Captures, accounts or switches observe packets.
    observed: bool,
    /// The flows of routers' reports of long packets, by channel and the flow that they are about.
    reports: BTreeMap<(ChannelId, u32), Option<u32>>,
    /// The flows of hosts' answers to what no application's connection takes, by the flow that they answer.
    answers: BTreeMap<u32, u32>,
}

/// What a plan founds.
pub(super) struct Founded {
    pub world: World,
    /// Without its stacks.
    pub plan: Arc<Plan>,
    pub stacks: Stacks,
    pub processes: TimerId,
    pub sample_timer: TimerId,
}

impl World {
    /// Makes the world of a plan.
    pub fn found(
        mut plan: Plan,
        captures: CaptureMode,
        directory: Option<&Path>,
        choosers: Option<&dyn Choosers>,
    ) -> Result<Founded, PlanError> {
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
        let processes = network.new_timer();
        let sample_timer = network.new_timer();
        let switching = Switching::new(&plan, &mut network, choosers)?.map(Box::new);
        let captures = Captures::open(&plan, captures, directory)?;
        let accounts = account::wanted(&plan).then(|| {
            let alarm = Alarm::new(network.new_timer());
            Box::new(Accounts::new(&channels, alarm))
        });
        let stacks = plan.take_stacks();
        let plan = Arc::new(plan);
        let mut world = Self {
            observed: switching.is_some() || captures.active() || accounts.is_some(),
            accounts,
            spreading: (plan.routing == Routing::Spread).then(Spreading::default),
            recorder: Recorder::new(&plan),
            plan: plan.clone(),
            net: Net {
                network,
                channels,
                captures,
            },
            qlogs: Qlogs::default(),
            timers: Vec::new(),
            stands,
            tunnelled: BTreeMap::new(),
            switching,
            reports: BTreeMap::new(),
            answers: BTreeMap::new(),
        };
        world.own(processes, Owner::Processes);
        world.own(sample_timer, Owner::Sample);
        world.own_timers();
        if let Some(switching) = &mut world.switching {
            switching.open_channels(&mut world.net);
        }
        Ok(Founded {
            world,
            plan,
            stacks,
            processes,
            sample_timer,
        })
    }

    /// Those of middleboxes and of the controller.
    fn own_timers(&mut self) {
        for index in 0..self.stands.len() {
            self.own(self.stands[index].alarm.timer(), Owner::Middlebox(index));
        }
        if let Some(switching) = &self.switching {
            self.own(switching.timer(), Owner::Switching);
        }
        if let Some(accounts) = &self.accounts {
            self.own(accounts.alarm.timer(), Owner::Accounts);
        }
    }

    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    pub fn qlogs(&mut self) -> &mut Qlogs {
        &mut self.qlogs
    }

    /// What each middlebox did so far, in the links' order.
    pub fn middleboxes(&self) -> impl Iterator<Item = MiddleboxReport> {
        self.stands.iter().flat_map(Stand::reports)
    }

    pub fn new_timer(&mut self, owner: Owner) -> TimerId {
        let timer = self.net.network.new_timer();
        self.own(timer, owner);
        timer
    }

    /// Says whose a timer is from here on.
    pub fn own(&mut self, timer: TimerId, owner: Owner) {
        let index = timer.index();
        if self.timers.len() <= index {
            self.timers.resize(index + 1, Owner::Sample);
        }
        self.timers[index] = owner;
    }

    pub fn owner(&self, timer: TimerId) -> Owner {
        self.timers[timer.index()]
    }

    /// Captures, accounts or switches observe packets.
    #[inline(always)]
    pub fn is_observed(&self) -> bool {
        self.observed
    }

    /// What happens next up to `until` in a network that is not observed.
    #[inline(always)]
    pub fn poll(&mut self, until: Nanos, endpoints: &[Endpoint]) -> Option<Occurrence<Body>> {
        let mut expecting = Expecting(&self.net.captures.flows, endpoints);
        self.net.network.poll_in_place(until, &mut expecting)
    }

    /// As [`Self::poll`], in one that is.
    #[inline(never)]
    pub fn poll_observed(&mut self, until: Nanos) -> Option<Output<Body>> {
        let net = &mut self.net;
        match &mut self.switching {
            Some(switching) => switching.poll(net, until),
            None => match &mut self.accounts {
                Some(accounts) => {
                    let mut watch = Watch(&mut net.captures, accounts);
                    net.network.poll(until, &mut watch)
                }
                None => net.network.poll(until, &mut net.captures),
            },
        }
    }

    /// Where packets went at switches; nothing where no controller rules.
    pub fn switch_totals(&self) -> Option<SwitchTotals> {
        self.switching.as_ref().map(|switching| switching.totals())
    }

    /// Does what is due at switches and their controller.
    pub fn on_switching_timer(&mut self) {
        if let Some(switching) = &mut self.switching {
            switching.on_timer(&mut self.net);
        }
    }

    /// Whether messages have come to a controller outside, which is to be heard before time goes on.
    pub fn is_asking(&mut self) -> bool {
        (self.switching.as_mut()).is_some_and(|switching| switching.is_asking())
    }

    /// What switches have sent to a controller outside and has arrived there: the datapath and a message's bytes, in order.
    pub fn controller_receives(&mut self) -> Vec<(u64, Vec<u8>)> {
        let switching = self.switching.as_mut();
        switching.map_or_else(Vec::new, |switching| switching.controller_receives())
    }

    /// A controller outside sends bytes to a datapath now. False: there is none of this number.
    pub fn controller_sends(&mut self, datapath: u64, bytes: Vec<u8>) -> bool {
        let switching = self.switching.as_mut();
        switching
            .is_some_and(|switching| switching.controller_sends(&mut self.net, datapath, bytes))
    }

    /// Whether an interface sends, from now on.
    pub fn let_send(&mut self, node: usize, interface: usize, up: bool) {
        let is = |end: Attachment| (end.node, end.interface) == (node, interface);
        let mut links = self.plan.links.iter().zip(&self.net.channels);
        let out = links.find_map(|(link, &(forward, backward))| {
            let back = is(link.b).then_some(backward);
            is(link.a).then_some(forward).or(back)
        });
        let change = Change {
            sender_up: Some(up),
            ..Change::default()
        };
        if let Some(channel) = out {
            // The plan's own changes, which were checked, say the same.
            let net = &mut self.net;
            let _ = (net.network).apply(channel, &change, &mut net.captures);
            self.on_changed(channel);
        }
    }

    /// Records how links, switches and endpoints stand.
    pub fn sample(&mut self, endpoints: &[Endpoint]) {
        let now = self.net.network.now();
        self.recorder
            .sample(now, endpoints, &self.net.channels, &mut self.net.network);
        if let Some(switching) = &mut self.switching {
            switching.sample(now, &mut self.recorder.recording);
        }
        if let Some(accounts) = &mut self.accounts {
            let rows = accounts.rows(&mut self.net.network);
            let table = &mut self.recorder.recording.account;
            rows.into_iter().for_each(|row| table.push(row));
        }
    }

    /// How links and endpoints stand: a sample beside the recording.
    pub fn observe(&mut self, endpoints: &[Endpoint]) -> Recording {
        let net = &mut self.net;
        let mut aside = Recorder::new(&self.plan);
        aside.sample(net.now(), endpoints, &net.channels, &mut net.network);
        aside.recording
    }

    /// Changes links now as an action says.
    pub fn change(&mut self, action: &Action) -> Result<(), PlanError> {
        let place = "a change";
        for (channel, change) in changes(&self.plan, &self.net.channels, place, action)? {
            let net = &mut self.net;
            let applied = (net.network).apply(channel, &change, &mut net.captures);
            applied.map_err(|error| PlanError::Change {
                place: place.to_owned(),
                error,
            })?;
            self.on_changed(channel);
        }
        Ok(())
    }

    /// Records what became of links, switches and middleboxes.
    pub fn record_ends(&mut self) {
        self.recorder
            .link_ends(&self.plan, &self.net.channels, &mut self.net.network);
        if let Some(switching) = &self.switching {
            switching.ends(&self.plan, &mut self.recorder.recording);
        }
        // Tables of many connections take as much.
        self.net.network.forget_packets();
        self.recorder
            .middleboxes(self.stands.iter().flat_map(Stand::reports));
    }

    /// What was recorded, once captures and logs are written.
    pub fn finish(mut self) -> Result<Recording, PlanError> {
        self.net.captures.finish()?;
        self.qlogs.finish()?;
        Ok(self.recorder.recording)
    }

    /// What kept a file from being written, if anything did.
    pub fn require_written(&mut self) -> Result<(), PlanError> {
        self.net.captures.require_written()?;
        self.qlogs.require_written()?;
        Ok(())
    }

    pub fn recorded_bytes(&self) -> u64 {
        self.recorder.recording.bytes()
    }
}
