//! Why a connection was not faster, by bytes: what the links that bound it could carry, what they carried, and why they idled.
//!
//! For each sending end and each link that bounds it ([`cut`]), the time is divided among causes ([`cause`]).
//!
//! - While the link sends, each packet gives the cause.
//! - While it idles, the cause is the one that held the end back, one path delay earlier ([`hold`]).
//! - For a short window it is the last reduction of that window ([`window`]).
//!
//! The causes therefore add up to the link's capacity.

mod alone;
mod book;
mod cause;
mod control;
mod cut;
mod demand;
mod hold;
mod line;
mod waiting;
mod window;

use std::collections::BTreeMap;

use polypath_net::{ChannelId, DropReason, Nanos, Network, Observer, Packet};
use polypath_trace::AccountRow;
use polypath_transport::{NEVER, Sending, Standing};

use crate::alarm::Alarm;
use crate::application::Side;
use crate::capture::Captures;
use crate::carrier::Carrier;
use crate::endpoint::Endpoint;
use crate::flow::{Body, End};
use crate::plan::{Plan, Routing};
use book::Book;
use cause::{Cause, Charge, Kind};
pub(crate) use control::Control;
pub(crate) use cut::narrowest;
use demand::Demand;
use line::Line;

/// The longest packet on its way to the link, for the delay to it.
const PACKET: u64 = 1500 * 8;

/// Whether a plan's run keeps accounts. Where a controller places flows, the links that bound a connection are not known beforehand.
pub(crate) fn wanted(plan: &Plan) -> bool {
    let placed = plan.controller.is_some() || plan.routing == Routing::Spread;
    plan.record.account && !placed && plan.bridging.is_none()
}

/// The accounts of all ends.
pub(crate) struct Accounts {
    /// By endpoint.
    books: BTreeMap<usize, Book>,
    /// Link and direction, by channel.
    links: Vec<(u32, bool)>,
    /// Endpoints and their links, by channel.
    watchers: Vec<Vec<(usize, usize)>>,
    demand: Demand,
    /// By channel: its loss leaves no packet.
    dark: Vec<bool>,
    /// What holds subflows, until it is felt at their links; in the order in which it came.
    pending: BTreeMap<(Nanos, u64), Pending>,
    order: u64,
    pub alarm: Alarm,
    /// What was recorded last.
    recorded: BTreeMap<(usize, usize, Cause), i64>,
}

#[derive(Clone, Copy)]
struct Pending {
    endpoint: usize,
    line: usize,
    lane: u32,
    charge: Charge,
}

impl Accounts {
    /// `channels`: of each link, forward and backward.
    pub fn new(channels: &[(ChannelId, ChannelId)], alarm: Alarm) -> Self {
        let mut links = vec![(0, true); 2 * channels.len()];
        for (link, &(forward, backward)) in channels.iter().enumerate() {
            links[forward.index()] = (link as u32, true);
            links[backward.index()] = (link as u32, false);
        }
        Self {
            books: BTreeMap::new(),
            watchers: vec![Vec::new(); links.len()],
            demand: Demand::new(links.len()),
            dark: vec![false; links.len()],
            links,
            pending: BTreeMap::new(),
            order: 0,
            alarm,
            recorded: BTreeMap::new(),
        }
    }

    /// Begins the account of an endpoint that may send over these paths.
    pub fn open(
        &mut self,
        network: &mut Network<Body>,
        endpoint: usize,
        paths: &[Vec<ChannelId>],
        control: Control,
    ) {
        for &channel in paths.iter().flatten() {
            self.dark[channel.index()] = loses_all(network, channel);
        }
        let rate = |channel| nominal_rate(network, channel);
        let found = narrowest(paths, rate);
        let mut book = Book::new(control);
        let without = Cause::of(Kind::Handshake);
        for channel in found {
            self.watchers[channel.index()].push((endpoint, book.lines.len()));
            let link = self.links[channel.index()];
            book.lines.push(Line::new(network, channel, link, without));
        }
        self.books.insert(endpoint, book);
    }

    /// A subflow or path of an endpoint takes these channels.
    pub fn place(
        &mut self,
        network: &mut Network<Body>,
        endpoint: usize,
        number: u32,
        path: &[ChannelId],
    ) {
        let Some(book) = self.books.get_mut(&endpoint) else {
            return;
        };
        book.place(number, path, |before| {
            before
                .iter()
                .map(|&channel| crossing(network, channel))
                .sum()
        });
    }

    /// An endpoint did what it could for now.
    pub fn note(&mut self, network: &mut Network<Body>, index: usize, endpoint: &Endpoint) {
        let (Some(book), Some(connection)) = (self.books.get_mut(&index), &endpoint.connection)
        else {
            return;
        };
        if book.closed {
            return;
        }
        let Some(standing) = standing(connection) else {
            return;
        };
        let now = network.now();
        if !book.established && endpoint.established_at.is_some() {
            book.established = true;
            for line in &mut book.lines {
                line.lie_idle(network, &mut self.demand, Cause::of(Kind::Unused));
            }
        }
        let regular = hold::any_regular(connection);
        let several = connection.lanes() > 1;
        for place in 0..connection.lanes() {
            let number = endpoint.number(place);
            let (control, lane, line) = book.lane_and_line(number);
            let path = connection.lane(place).path;
            lane.window.observe(path);
            let cause = hold::hold(
                endpoint,
                connection,
                place,
                standing,
                regular,
                control,
                &lane.window,
            );
            let coupling = match line {
                Some(line) if control.couples && several && lane.window.cause() == cause => lane
                    .window
                    .coupling(path, line.packets_in(path.min_rtt, path.mss)),
                _ => 0,
            };
            let charge = Charge { cause, coupling };
            if lane.held == Some(charge) {
                continue;
            }
            lane.held = Some(charge);
            let Some(line) = lane.line else { continue };
            match lane.delay {
                0 => book.lines[line].hold(network, &mut self.demand, number, charge),
                delay => {
                    self.order += 1;
                    let pending = Pending {
                        endpoint: index,
                        line,
                        lane: number,
                        charge,
                    };
                    self.pending.insert((now + delay, self.order), pending);
                }
            }
        }
        let arrived = standing.sending == Sending::Finished && connection.send_queue().0 == 0;
        if arrived || endpoint.ended_at.is_some() {
            for line in &mut book.lines {
                line.close(network, &mut self.demand);
            }
            book.closed = true;
        }
    }

    /// When the next of what holds subflows is felt at its link.
    pub fn next_event(&self) -> Nanos {
        self.pending
            .first_key_value()
            .map_or(NEVER, |(key, _)| key.0)
    }

    /// That time has come.
    pub fn on_time(&mut self, network: &mut Network<Body>) {
        let now = network.now();
        while let Some(first) = self.pending.first_entry()
            && first.key().0 <= now
        {
            let Pending {
                endpoint,
                line,
                lane,
                charge,
            } = first.remove();
            if let Some(book) = self.books.get_mut(&endpoint).filter(|book| !book.closed) {
                book.lines[line].hold(network, &mut self.demand, lane, charge);
            }
        }
    }

    /// The configuration of a channel has changed.
    pub fn on_changed(&mut self, network: &mut Network<Body>, channel: ChannelId) {
        self.dark[channel.index()] = loses_all(network, channel);
        for &(endpoint, line) in &self.watchers[channel.index()] {
            if let Some(book) = self.books.get_mut(&endpoint).filter(|book| !book.closed) {
                book.lines[line].reconfigure(network, &mut self.demand);
            }
        }
    }

    /// Rows of what has changed since the last call, of ends that send.
    pub fn rows(&mut self, network: &mut Network<Body>) -> Vec<AccountRow> {
        let now = network.now();
        let mut rows = Vec::new();
        for (&endpoint, book) in &mut self.books {
            if !book.closed {
                let lines = book.lines.iter_mut();
                lines.for_each(|line| line.settle(network, &self.demand));
            }
            if !book.lines.iter().any(Line::used) {
                continue;
            }
            for (place, line) in book.lines.iter().enumerate() {
                for (cause, bytes) in line.totals() {
                    let last = self.recorded.entry((endpoint, place, cause)).or_default();
                    if *last == bytes {
                        continue;
                    }
                    *last = bytes;
                    rows.push(AccountRow {
                        time_ns: now as i64,
                        connection: endpoint as u32 / 2,
                        side: side(endpoint).name().into(),
                        link: line.link,
                        direction: if line.forward { "forward" } else { "backward" }.into(),
                        cause: cause.kind.name().into(),
                        at_link: cause.link,
                        head: cause.head,
                        bytes,
                    });
                }
            }
        }
        rows
    }

    fn on_enqueued(&mut self, at: Nanos, channel: ChannelId, sender: End, packet: &Packet<Body>) {
        for &(endpoint, line) in &self.watchers[channel.index()] {
            if sender.endpoint() == Some(endpoint as u32)
                && let Some(book) = self.books.get_mut(&endpoint).filter(|book| !book.closed)
            {
                book.lines[line].waiting.enter(at, book::name(packet));
            }
        }
    }

    fn on_arrived(&mut self, at: Nanos, channel: ChannelId, sender: End, packet: &Packet<Body>) {
        for &(endpoint, line) in &self.watchers[channel.index()] {
            let Some(book) = self.books.get_mut(&endpoint) else {
                continue;
            };
            if book.closed {
                continue;
            }
            match sender {
                End::Subflow {
                    endpoint: own,
                    subflow,
                } if own as usize == endpoint => book.on_own(line, subflow, packet),
                _ => {
                    let line = &mut book.lines[line];
                    let bytes = u64::from(packet.len + line.overhead);
                    line.pass_other(at, bytes);
                }
            }
        }
    }

    fn on_dropped(
        &mut self,
        channel: ChannelId,
        sender: End,
        packet: &Packet<Body>,
        reason: DropReason,
    ) {
        let End::Subflow { endpoint, subflow } = sender else {
            return;
        };
        let Some(book) = self.books.get_mut(&(endpoint as usize)) else {
            return;
        };
        let kind = match reason {
            DropReason::Loss if self.dark[channel.index()] => Kind::Down,
            DropReason::Loss => Kind::RandomLoss,
            DropReason::Down => Kind::Down,
            DropReason::TooBig => return,
            _ => Kind::QueueLoss,
        };
        let cause = Cause::at(kind, self.links[channel.index()].0);
        book.on_lost(subflow, channel, cause, packet);
    }
}

/// Endpoints come in pairs, the client's first.
fn side(endpoint: usize) -> Side {
    Side::sending(endpoint % 2 == 1)
}

/// How a connection of our own stands.
fn standing(connection: &Carrier) -> Option<Standing> {
    match connection {
        Carrier::Tcp(it) => Some(polypath_transport::standing(it)),
        Carrier::Quic(it) => Some(polypath_transport::quic::standing(it.own()?)),
    }
}

/// What a channel carries in a second, as far as it can be told beforehand.
fn nominal_rate(network: &Network<Body>, channel: ChannelId) -> Option<u64> {
    network.config(channel).ok()?.nominal_rate_bps()
}

fn loses_all(network: &Network<Body>, channel: ChannelId) -> bool {
    network.config(channel).is_ok_and(|it| it.loses_all())
}

/// How long a long packet takes over an idle channel.
fn crossing(network: &Network<Body>, channel: ChannelId) -> Nanos {
    let Ok(config) = network.config(channel) else {
        return 0;
    };
    let rate = config.nominal_rate_bps();
    let sending = rate.map_or(0, |rate| PACKET * 1_000_000_000 / rate.max(1));
    config.delay + sending
}

/// Captures and accounts, in one run.
pub(crate) struct Watch<'a>(pub &'a mut Captures, pub &'a mut Accounts);

impl Observer<Body> for Watch<'_> {
    fn enqueued(&mut self, at: Nanos, channel: ChannelId, packet: &Packet<Body>) {
        self.0.enqueued(at, channel, packet);
        let sender = self.0.flows[packet.flow as usize].sender;
        self.1.on_enqueued(at, channel, sender, packet);
    }

    fn arrived(&mut self, at: Nanos, channel: ChannelId, packet: &Packet<Body>) {
        self.0.arrived(at, channel, packet);
        let sender = self.0.flows[packet.flow as usize].sender;
        self.1.on_arrived(at, channel, sender, packet);
    }

    fn dropped(
        &mut self,
        at: Nanos,
        channel: ChannelId,
        packet: &Packet<Body>,
        reason: DropReason,
    ) {
        self.0.dropped(at, channel, packet, reason);
        let sender = self.0.flows[packet.flow as usize].sender;
        self.1.on_dropped(channel, sender, packet, reason);
    }
}
