//! Tunnels in the run: what their connections are handed at one end, and what comes out at the other.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use crate::PlanError;
use crate::alarm::Alarm;
use crate::application::{Frames, REQUEST, Side, TunnelConfig};
use crate::flow::{Body, Content, End};
use crate::plan::{Node, Plan};
use crate::record::Recorder;
use crate::simulation::world::{Owner, World, beyond_tunnel, leave_tunnel, open_tunnel};
use crate::tunnel::Direction;
use polypath_net::{ChannelId, Packet};

/// By the application whose connection it is.
#[derive(Default)]
pub(in crate::simulation) struct Tunnels(BTreeMap<usize, Tunnel>);

pub(super) struct Tunnel {
    pub config: TunnelConfig,
    pub link: usize,
    server: usize,
    /// Those of the client and of the server by which its connection may go.
    addresses: [Vec<IpAddr>; 2],
    /// To the server, to the client.
    directions: [Direction; 2],
}

impl Tunnel {
    pub fn direction(&mut self, to_server: bool) -> &mut Direction {
        &mut self.directions[usize::from(!to_server)]
    }
}

impl Tunnels {
    /// Opens the tunnel of an application.
    pub fn open(
        &mut self,
        world: &mut World,
        plan: &Plan,
        application: usize,
        (source, destination): (IpAddr, IpAddr),
    ) -> Result<(), PlanError> {
        let Some(config) = plan.applications[application].work.tunnel() else {
            return Ok(());
        };
        let settings = &plan.applications[application];
        let invalid =
            |why: String| PlanError::invalid(format!("application {}", settings.name), why);
        let number = usize::try_from(config.link).unwrap_or(usize::MAX);
        let link = plan
            .links
            .get(number)
            .ok_or_else(|| invalid(format!("there is no link {number}")))?;
        let ends = (link.a.node, link.b.node);
        let along = ends == (settings.client, settings.server);
        if !along && ends != (settings.server, settings.client) {
            let why = format!("link {} is not between its hosts", link.name);
            return Err(invalid(why));
        }
        let before = plan.applications[..application].iter();
        let mut before = before.filter_map(|other| other.work.tunnel());
        if before.any(|other| other.link == config.link) {
            return Err(invalid(format!("link {} has a tunnel already", link.name)));
        }
        if plan.controller.is_some() || plan.bridging.is_some() {
            let why = "controllers and bridges know no tunnels";
            return Err(invalid(why.to_owned()));
        }
        let pair = world.net.pair(number);
        let (client, server) = (settings.client, settings.server);
        let nodes = &plan.nodes;
        let addresses = [
            outside(world, (client, &nodes[client]), destination, pair),
            outside(world, (server, &nodes[server]), source, pair),
        ];
        if !addresses[0].contains(&source) || !addresses[1].contains(&destination) {
            return Err(invalid("its own packets would go through it".to_owned()));
        }
        let lines = settings.transport.has_connection().then_some(0);
        let lines = lines.unwrap_or_else(|| lines_to(&addresses[0], destination).count());
        if let Some(weights) = &config.weights
            && weights.each().len() != lines
        {
            let given = weights.each().len();
            return Err(invalid(format!("{given} weights for {lines} lines")));
        }
        let (forward, backward) = pair;
        let channels = if along {
            [forward, backward]
        } else {
            [backward, forward]
        };
        let directions = [true, false].map(|to_server| {
            let tunnel = application;
            let channel = channels[usize::from(!to_server)];
            let entry = End::Tunnel {
                tunnel: tunnel as u32,
                to_server,
            };
            open_tunnel(world, channel, entry);
            let timer = world.new_timer(Owner::Tunnel { tunnel, to_server });
            let ahead = if to_server { REQUEST } else { 0 };
            Direction::new(config, channel, Alarm::new(timer), ahead)
        });
        let tunnel = Tunnel {
            config: *config,
            link: number,
            server,
            addresses,
            directions,
        };
        self.0.insert(application, tunnel);
        Ok(())
    }

    pub(super) fn get_mut(&mut self, application: usize) -> Option<&mut Tunnel> {
        self.0.get_mut(&application)
    }

    /// A tunnel without a connection begins to go over its lines: one from each of the client's addresses.
    pub fn begin(
        &mut self,
        world: &mut World,
        application: usize,
        (client, (source, destination)): (usize, (SocketAddr, SocketAddr)),
    ) {
        let Some(tunnel) = self.0.get_mut(&application) else {
            return;
        };
        let near = lines_to(&tunnel.addresses[0], destination.ip());
        let near: Vec<SocketAddr> = near.map(|own| (own, source.port()).into()).collect();
        let sender = End::Datagrams {
            application: application as u32,
        };
        let config = tunnel.config;
        for to_server in [true, false] {
            let stream = u64::MAX - application as u64;
            let flows: Vec<u32> = (near.iter())
                .map(|&near| match to_server {
                    true => world.new_flow(client, near, destination, Vec::new(), sender, stream),
                    false => {
                        let server = tunnel.server;
                        world.new_flow(server, destination, near, Vec::new(), sender, stream)
                    }
                })
                .collect();
            let mtus = flows.iter().map(|&flow| world.net.mtu_of(flow));
            let mtu = mtus.min().unwrap_or(0);
            let weights = config.weights;
            let weight = move |line: usize| {
                let given = weights.as_ref().and_then(|it| it.each().get(line).copied());
                given.unwrap_or(1)
            };
            let weights = (0..flows.len()).map(weight);
            tunnel.direction(to_server).go_over(flows, weights, mtu);
        }
    }

    /// A datagram came over a line. False: it is no tunnel's.
    pub fn on_line(&mut self, world: &mut World, packet: &Packet<Body>) -> bool {
        let flow = world.net.flow(packet.flow);
        let (Content::Udp { sequence, .. }, End::Datagrams { application }) =
            (&packet.body.content, flow.sender)
        else {
            return false;
        };
        let receiver = flow.receiver_node as usize;
        let Some(tunnel) = self.0.get_mut(&(application as usize)) else {
            return false;
        };
        if !packet.corrupted {
            let to_server = tunnel.server == receiver;
            let now = world.net.now();
            let direction = tunnel.direction(to_server);
            let mut out = Vec::new();
            direction.on_frame(*sequence, now, &mut out);
            leave(world, direction, out);
        }
        true
    }

    /// Whether an end of an application's connection has no use of an address: it is a tunnel's, whose far end is not reached from there.
    pub fn leaves_out(&self, application: usize, side: Side, address: IpAddr) -> bool {
        let tunnel = self.0.get(&application);
        tunnel.is_some_and(|it| !it.addresses[side as usize].contains(&address))
    }

    #[inline(always)]
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Frames came to an end of a connection, which may be a tunnel's.
    pub fn on_frames(
        &mut self,
        world: &mut World,
        (application, side): (usize, Side),
        frames: &mut Frames,
    ) {
        let Some(tunnel) = self.0.get_mut(&application) else {
            return;
        };
        let now = world.net.now();
        let direction = tunnel.direction(side == Side::Server);
        let mut out = Vec::new();
        for &(number, len) in &frames.datagrams {
            if direction.on_frame(number, now, &mut out) {
                frames.taken += u64::from(len);
            }
        }
        for &(_, bytes) in &frames.streams {
            direction.on_bytes(bytes, &mut out);
        }
        leave(world, direction, out);
    }

    /// Packets at an exit have waited long enough.
    pub fn on_time(&mut self, world: &mut World, application: usize, to_server: bool) {
        let Some(tunnel) = self.0.get_mut(&application) else {
            return;
        };
        let now = world.net.now();
        let direction = tunnel.direction(to_server);
        direction.alarm.on_fired();
        let mut out = Vec::new();
        direction.on_time(now, &mut out);
        leave(world, direction, out);
    }

    pub fn record(&self, recorder: &mut Recorder) {
        for (&application, tunnel) in &self.0 {
            if tunnel.directions[0].lines_take().is_some() {
                recorder.lines(application as u32, &tunnel.directions);
            }
            for (direction, name) in tunnel.directions.iter().zip(["forward", "backward"]) {
                recorder.tunnel(application as u32, name, direction);
            }
        }
    }
}

/// The addresses of a node from which packets reach `peer` without one of these channels.
fn outside(
    world: &mut World,
    node: (usize, &Node),
    peer: IpAddr,
    channels: (ChannelId, ChannelId),
) -> Vec<IpAddr> {
    let interfaces = node.1.interfaces.iter();
    let own = interfaces.flat_map(|interface| &interface.addresses);
    own.copied()
        .filter(|&address| {
            let way = world.net.way(node.0, address, peer).unwrap_or_default();
            let inside = |channel: &ChannelId| [channels.0, channels.1].contains(channel);
            !way.is_empty() && !way.iter().any(inside)
        })
        .collect()
}

/// Of a client's addresses, those from which a line leads to this one.
fn lines_to(addresses: &[IpAddr], destination: IpAddr) -> impl Iterator<Item = IpAddr> {
    let family = move |own: &&IpAddr| own.is_ipv4() == destination.is_ipv4();
    addresses.iter().filter(family).copied()
}

/// Packets leave a tunnel's exit.
fn leave(world: &mut World, direction: &mut Direction, packets: Vec<Packet<Body>>) {
    for packet in packets {
        direction.tally.left += 1;
        direction.tally.left_bytes += u64::from(packet.len);
        let entered = packet.flow;
        let flow = match direction.onward.get(&entered) {
            Some(&flow) => flow,
            None => {
                let flow = beyond_tunnel(world, entered);
                direction.onward.insert(entered, flow);
                flow
            }
        };
        leave_tunnel(world, flow, packet);
    }
    let at = direction.deadline();
    world.net.set_alarm(&mut direction.alarm, at);
}
