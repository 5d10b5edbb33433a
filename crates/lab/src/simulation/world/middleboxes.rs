//! Middleboxes in the run: where routes stop at them, and where the packets go that they send on.
//!
//! A flow leads as far as the next middlebox. Whatever the middlebox sends on travels in another flow, with the
//! addresses that it then has. So the network forwards packets as if there were no middleboxes. A capture shows each
//! packet as it looks at the place of capture.

use std::collections::VecDeque;
use std::net::IpAddr;

use polypath_net::{ChannelId, NodeId, Packet, RouteError};
use polypath_wire::tcp::header_len;

use super::World;
use super::stand::Stand;
use crate::flow::{Body, Content, DATAGRAM_HEADER, End, Flow, ip_header_len};
use crate::middlebox::{Conversation, Passing, Work};

/// What a flow that is to be led on has just left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    Nothing,
    Stand(usize),
    Tunnel,
}

fn at_stand(stand: usize, forward: bool) -> End {
    End::Middlebox {
        stand: stand as u32,
        forward,
    }
}

impl World {
    /// Leads a new flow along `path` to where it ends, or meets middleboxes or a tunnel; those that it is `behind` it just left.
    pub(super) fn lay(&mut self, flow: &mut Flow, path: &[ChannelId], behind: Behind) {
        let (mut legs, mut met) = (path.len(), None);
        let left_tunnel = behind == Behind::Tunnel;
        let behind = match behind {
            Behind::Stand(stand) => Some(stand),
            _ => None,
        };
        'path: for (index, &channel) in path.iter().enumerate() {
            if let Some(&entry) = self.tunnelled.get(&channel)
                && !(index == 0 && left_tunnel)
            {
                (legs, met) = (index, Some(entry));
                break 'path;
            }
            let Some((from, to)) = self.net.network.topology().ends(channel) else {
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
                    let forward = self.net.channels[link].0 == channel;
                    (legs, met) = (crossed, Some(at_stand(stand, forward)));
                    break 'path;
                }
            }
        }
        if met.is_none() {
            let found = self.stand_of_address(flow.destination.ip(), behind);
            met = found.map(|(stand, forward)| at_stand(stand, forward));
        }
        flow.route = self.net.network.route_over(&path[..legs]);
        flow.here = legs == 0;
        flow.rest = path[legs..].to_vec();
        flow.receiver = met;
    }

    /// The stand that an address belongs to, and the direction of what is sent to it.
    fn stand_of_address(&self, address: IpAddr, behind: Option<usize>) -> Option<(usize, bool)> {
        let owner = self.net.network.topology().owner(address)?;
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
        let (from, _) = self.net.network.topology().ends(channel)?;
        let mut stands = self.stands.iter();
        stands.position(|stand| stand.interface == from)
    }

    /// A packet reached the middleboxes of a link.
    #[cold]
    pub fn on_middlebox(&mut self, stand: usize, forward: bool, packet: Packet<Body>) {
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
        let flow = &self.net.captures.flows[packet.flow as usize];
        let about = self.net.captures.about(&packet.body.content);
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
    pub fn on_middlebox_timer(&mut self, stand: usize) {
        let now = self.net.network.now();
        self.stands[stand].alarm.on_fired();
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
        let now = self.net.network.now();
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
        self.net.set_alarm(&mut stand.alarm, at);
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
                DATAGRAM_HEADER + self.net.captures.quoted[*about as usize].shown
            }
            Content::Frame(number) => self.net.captures.own[*number as usize].len() as u32,
        };
        if let Some(about) = passing.about.take() {
            self.net.captures.requote(&mut passing.body.content, &about);
        }
        let Flow {
            source,
            route,
            here,
            ..
        } = self.net.captures.flows[flow as usize];
        if route.is_some() || here {
            let len = ip_header_len(source) + transport;
            self.dispatch(route, len, flow, passing.ecn, passing.body);
        }
    }

    /// The flow of what leaves a stand: along the rest of the way that it came, or a new one if its addresses are others.
    fn onward_flow(&mut self, stand: usize, passing: &Passing) -> u32 {
        let Stand { node, .. } = self.stands[stand];
        let came = passing
            .flow
            .map(|flow| &self.net.captures.flows[flow as usize]);
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
                .map_or(0, |route| self.net.network.topology().path(route).count());
            flow.crossed += leg as u16;
            let same = (came.source, came.destination) == passing.ends()
                && came.receiver == Some(at_stand(stand, passing.forward));
            rest = same.then(|| came.rest.clone());
        }
        flow.receiver_node = self.net.receiver_node(passing.destination.ip());
        let path = match rest {
            Some(rest) => Some(rest),
            None => self.path(node, &flow),
        };
        if let Some(path) = path {
            self.lay(&mut flow, &path, Behind::Stand(stand));
        }
        self.net.captures.flows.push(flow);
        (self.net.captures.flows.len() - 1) as u32
    }

    /// The channels that a flow takes from a node; none where it is meant for the node itself.
    pub(super) fn path(&mut self, node: NodeId, flow: &Flow) -> Option<Vec<ChannelId>> {
        if let Some(path) = self.placed(node, flow) {
            return Some(path);
        }
        let (source, destination) = (flow.source.ip(), flow.destination.ip());
        let (network, label) = (&mut self.net.network, flow.label());
        match network.route_via(node, source, &flow.gateways, destination, label) {
            Ok(route) => Some(self.net.network.topology().path(route).collect()),
            Err(RouteError::Local { .. }) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// Where a controller puts a flow, if there is one and the flow is not steered by its sender.
    fn placed(&mut self, node: NodeId, flow: &Flow) -> Option<Vec<ChannelId>> {
        let spreading = self.spreading.as_mut()?;
        if !flow.gateways.is_empty() {
            return None;
        }
        let topology = self.net.network.topology();
        spreading.place(topology, |_| true, node, flow.source, flow.destination)
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
