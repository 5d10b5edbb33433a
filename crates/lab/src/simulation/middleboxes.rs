//! Middleboxes in the run: where routes stop at them, and what becomes of the packets that they send on.
//!
//! A flow leads as far as the next middlebox; what that sends on travels in another flow, with the addresses that it then has. So the
//! network forwards packets as if there were no middleboxes, and captures show each packet as it is where they are made.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use polypath_net::{ChannelId, InterfaceId, NodeId, Packet, RouteError, TimerId, random};
use polypath_transport::{NEVER, Nanos};
use polypath_wire::tcp::header_len;
use rand_pcg::Pcg64Mcg;

use super::{Owner, Simulation};
use crate::PlanError;
use crate::build::Built;
use crate::flow::{Body, Content, End, Flow, ip_header_len};
use crate::middlebox::{Conversation, Middlebox, Passing, REGISTRY, Tally, Work};
use crate::plan::{self, NodeKind, Plan};

/// UDP's header and ICMP's echo header alike.
const DATAGRAM_HEADER: u32 = 8;

/// The middleboxes of a link, in order from its first end to its second.
pub(crate) struct Stand {
    link: usize,
    node: NodeId,
    interface: InterfaceId,
    boxes: Vec<Placed>,
    timer: TimerId,
    timer_at: Nanos,
    /// The flows that lead on from here.
    onward: BTreeMap<(SocketAddr, SocketAddr, End, bool), u32>,
}

struct Placed {
    name: String,
    middlebox: Box<dyn Middlebox>,
    random: Pcg64Mcg,
    tally: Tally,
}

/// What a middlebox did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiddleboxReport {
    /// Index of its link in the plan.
    pub link: usize,
    /// Its position on the link, from the first end.
    pub position: usize,
    pub name: String,
    pub tally: Tally,
    /// Packets that it holds back.
    pub held: u64,
}

impl Stand {
    pub fn reports(&self) -> impl Iterator<Item = MiddleboxReport> {
        let boxes = self.boxes.iter().enumerate();
        boxes.map(|(position, each)| MiddleboxReport {
            link: self.link,
            position,
            name: each.name.clone(),
            tally: each.tally,
            held: each.middlebox.held(),
        })
    }

    fn deadline(&self) -> Nanos {
        let times = self.boxes.iter().map(|each| each.middlebox.deadline());
        times.min().unwrap_or(NEVER)
    }
}

/// Addresses outside for those that need one and were given none: from TEST-NET-3 of RFC 5737 on.
fn spare(number: u32) -> IpAddr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(203, 0, 113, 1)) + number).into()
}

/// Where a link's middleboxes stand.
fn place(plan: &Plan, link: &plan::Link) -> plan::Attachment {
    let is_host = |end: plan::Attachment| plan.nodes[end.node].kind == NodeKind::Host;
    if is_host(link.b) && !is_host(link.a) {
        link.a
    } else {
        link.b
    }
}

/// Puts up the middleboxes of a plan.
pub(super) fn stands(plan: &Plan, built: &mut Built<Body>) -> Result<Vec<Stand>, PlanError> {
    let mut stands = Vec::new();
    let mut count = 0;
    for (index, link) in plan.links.iter().enumerate() {
        if link.middleboxes.is_empty() {
            continue;
        }
        let place_name = format!("link {}", link.name);
        let (leaves, reaches) = (built.channels[index].0, place(plan, link) == link.b);
        let (first, second) = built
            .network
            .topology()
            .ends(leaves)
            .ok_or_else(|| PlanError::invalid(&*place_name, "it has no ends"))?;
        let interface = if reaches { second } else { first };
        let mut boxes = Vec::new();
        for (number, choice) in link.middleboxes.iter().enumerate() {
            let parameters = choice.parameters.clone().into_iter().collect();
            let made = REGISTRY.make(&choice.name, &parameters);
            let mut middlebox = made.map_err(|error| PlanError::Registry {
                place: place_name.clone(),
                error,
            })?;
            let own = middlebox
                .settle(spare(count))
                .map_err(|problem| PlanError::invalid(&*place_name, problem))?;
            if let Some(address) = own {
                built
                    .network
                    .add_address(interface, address)
                    .map_err(|error| PlanError::Topology {
                        place: place_name.clone(),
                        error,
                    })?;
            }
            count += 1;
            boxes.push(Placed {
                name: choice.name.clone(),
                middlebox,
                random: random::stream(
                    plan.seed,
                    "middlebox",
                    (index as u64) << 16 | number as u64,
                    "draws",
                ),
                tally: Tally::default(),
            });
        }
        stands.push(Stand {
            link: index,
            node: NodeId(place(plan, link).node as u32),
            interface,
            boxes,
            timer: built.network.new_timer(),
            timer_at: NEVER,
            onward: BTreeMap::new(),
        });
    }
    Ok(stands)
}

impl Simulation {
    pub(super) fn own_stand_timers(&mut self) {
        for index in 0..self.stands.len() {
            self.own(self.stands[index].timer, Owner::Middlebox(index));
        }
    }

    /// Leads a new flow along `path` to where it ends or meets middleboxes; those of stand `behind` it just left.
    pub(super) fn lay(&mut self, flow: &mut Flow, path: &[ChannelId], behind: Option<usize>) {
        let (mut legs, mut met) = (path.len(), None);
        'path: for (index, &channel) in path.iter().enumerate() {
            let Some((from, to)) = self.network.topology().ends(channel) else {
                break;
            };
            for (interface, crossed) in [(from, index), (to, index + 1)] {
                let stand = self
                    .stands
                    .iter()
                    .position(|stand| stand.interface == interface);
                let left = crossed == 0 && stand == behind;
                if let Some(stand) = stand.filter(|_| !left) {
                    let link = self.stands[stand].link;
                    let forward = self.channels[link].0 == channel;
                    (legs, met) = (crossed, Some((stand, forward)));
                    break 'path;
                }
            }
        }
        if met.is_none() {
            met = self.stand_of_address(flow.destination.ip(), behind);
        }
        flow.route = self.network.route_over(&path[..legs]);
        flow.here = legs == 0;
        flow.rest = path[legs..].to_vec();
        flow.receiver = met.map(|(stand, forward)| End::Middlebox {
            stand: stand as u32,
            forward,
        });
    }

    /// The stand that an address belongs to, and the direction of what is sent to it.
    fn stand_of_address(&self, address: IpAddr, behind: Option<usize>) -> Option<(usize, bool)> {
        let owner = self.network.topology().owner(address)?;
        let stand = self
            .stands
            .iter()
            .position(|stand| stand.interface == owner)?;
        let boxes = self.stands[stand].boxes.iter();
        let mut known = boxes.filter_map(|each| each.middlebox.outside());
        let (_, outside) = known.find(|(own, _)| *own == address)?;
        (behind != Some(stand)).then_some((stand, !outside))
    }

    /// The stand that packets come from into a channel.
    pub(super) fn stand_before(&self, channel: ChannelId) -> Option<usize> {
        let (from, _) = self.network.topology().ends(channel)?;
        let mut stands = self.stands.iter();
        stands.position(|stand| stand.interface == from)
    }

    /// A packet reached the middleboxes of a link.
    #[cold]
    pub(super) fn on_middlebox(&mut self, stand: usize, forward: bool, packet: Packet<Body>) {
        let first = if forward {
            0
        } else {
            self.stands[stand].boxes.len() - 1
        };
        if packet.corrupted {
            let tally = &mut self.stands[stand].boxes[first].tally;
            tally.received += 1;
            tally.dropped += 1;
            return;
        }
        let flow = &self.captures.flows[packet.flow as usize];
        let about = self.captures.about(&packet.body.content);
        let passing = Passing {
            forward,
            source: flow.source,
            destination: flow.destination,
            ecn: packet.ecn,
            body: packet.body,
            flow: Some(packet.flow),
            conversation: Conversation {
                sender: flow.sender,
                stream: flow.stream,
                first_dsn: flow.first_dsn,
            },
            about,
        };
        self.through(stand, VecDeque::from([(first as isize, passing)]));
    }

    /// The time that some middlebox waited for has come.
    pub(super) fn on_middlebox_timer(&mut self, stand: usize) {
        let now = self.network.now();
        self.stands[stand].timer_at = NEVER;
        let mut queue = VecDeque::new();
        for (index, each) in self.stands[stand].boxes.iter_mut().enumerate() {
            if each.middlebox.deadline() > now {
                continue;
            }
            let mut work = Work::new(now, &mut each.random, &mut each.tally);
            each.middlebox.on_time(&mut work);
            queue.extend(
                work.sent()
                    .into_iter()
                    .map(|sent| (beyond(index, &sent), sent)),
            );
        }
        self.through(stand, queue);
    }

    /// Takes packets through the middleboxes that they have before them, by position.
    fn through(&mut self, stand: usize, mut queue: VecDeque<(isize, Passing)>) {
        let now = self.network.now();
        while let Some((position, passing)) = queue.pop_front() {
            let here = usize::try_from(position).ok();
            let Some(each) = here.and_then(|index| self.stands[stand].boxes.get_mut(index)) else {
                self.leave_stand(stand, passing);
                continue;
            };
            each.tally.received += 1;
            let mut work = Work::new(now, &mut each.random, &mut each.tally);
            each.middlebox.pass(passing, &mut work);
            let sent = work.sent();
            queue.extend(
                sent.into_iter()
                    .map(|sent| (beyond(position as usize, &sent), sent)),
            );
        }
        let stand = &mut self.stands[stand];
        let at = stand.deadline();
        if at < stand.timer_at {
            stand.timer_at = at;
            self.network.set_timer(stand.timer, at);
        }
    }

    fn leave_stand(&mut self, stand: usize, mut passing: Passing) {
        let key = (
            passing.source,
            passing.destination,
            passing.conversation.sender,
            passing.forward,
        );
        let known = self.stands[stand].onward.get(&key).copied();
        let flow = known.unwrap_or_else(|| {
            let flow = self.onward_flow(stand, &passing);
            self.stands[stand].onward.insert(key, flow);
            flow
        });
        let transport = match &passing.body.content {
            Content::Tcp(segment) => header_len(segment) as u32 + segment.payload.len,
            Content::Quic(sealed) => DATAGRAM_HEADER + sealed.len(),
            Content::Udp { len, .. } | Content::Echo { len, .. } => DATAGRAM_HEADER + len,
            Content::TooBig { about, .. } => {
                DATAGRAM_HEADER + self.captures.quoted[*about as usize].shown
            }
            Content::Frame(number) => self.captures.own[*number as usize].len() as u32,
        };
        if let Some(about) = passing.about.take() {
            self.captures.requote(&mut passing.body.content, &about);
        }
        let Flow {
            source,
            route,
            here,
            ..
        } = self.captures.flows[flow as usize];
        if route.is_some() || here {
            let len = ip_header_len(source) + transport;
            self.dispatch(route, len, flow, passing.ecn, passing.body);
        }
    }

    /// The flow of what leaves a stand: along the rest of the way that it came, or a new one if its addresses are others.
    fn onward_flow(&mut self, stand: usize, passing: &Passing) -> u32 {
        let Stand { node, .. } = self.stands[stand];
        let came = passing.flow.map(|flow| &self.captures.flows[flow as usize]);
        let echo_reply = matches!(passing.body.content, Content::Echo { reply: true, .. });
        let mut flow = Flow {
            sender: passing.conversation.sender,
            stream: passing.conversation.stream,
            first_dsn: passing.conversation.first_dsn,
            crossed: came.map_or(0, |flow| flow.crossed),
            identifier: if echo_reply {
                passing.destination.port()
            } else {
                passing.source.port()
            },
            ..Flow::new(passing.source, passing.destination)
        };
        let mut rest = None;
        if let Some(came) = came {
            let leg = came
                .route
                .or(came.queued_route)
                .map_or(0, |route| self.network.topology().path(route).count());
            flow.crossed += leg as u16;
            let same = (came.source, came.destination) == passing.ends()
                && came.receiver
                    == Some(End::Middlebox {
                        stand: stand as u32,
                        forward: passing.forward,
                    });
            rest = same.then(|| came.rest.clone());
        }
        flow.receiver_node = self.receiver_node(passing.destination.ip());
        let path = match rest {
            Some(rest) => Some(rest),
            None => self.path(node, &flow),
        };
        if let Some(path) = path {
            self.lay(&mut flow, &path, Some(stand));
        }
        self.captures.flows.push(flow);
        (self.captures.flows.len() - 1) as u32
    }

    /// The channels that a flow takes from a node; none where it is meant for the node itself.
    pub(super) fn path(&mut self, node: NodeId, flow: &Flow) -> Option<Vec<ChannelId>> {
        if let Some(path) = self.placed(node, flow) {
            return Some(path);
        }
        let (source, destination) = (flow.source.ip(), flow.destination.ip());
        let (network, label) = (&mut self.network, flow.label());
        match network.route_via(node, source, &flow.gateways, destination, label) {
            Ok(route) => Some(self.network.topology().path(route).collect()),
            Err(RouteError::Local { .. }) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// Where a controller puts a flow, if there is one and the flow is not steered by its sender.
    fn placed(&mut self, node: NodeId, flow: &Flow) -> Option<Vec<ChannelId>> {
        let controller = self.controller.as_mut()?;
        if !flow.gateways.is_empty() {
            return None;
        }
        let topology = self.network.topology();
        controller.place(topology, |_| true, node, flow.source, flow.destination)
    }
}

/// The position of the next middlebox behind the one at `index`.
fn beyond(index: usize, sent: &Passing) -> isize {
    if sent.forward {
        index as isize + 1
    } else {
        index as isize - 1
    }
}
