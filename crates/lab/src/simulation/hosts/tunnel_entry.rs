//! What enters a tunnel: packets are handed to its connection, or to one of its lines.

use polypath_net::Packet;
use polypath_transport::Nanos;
use polypath_transport::quic::{
    Connection, longest_datagram, repeats_datagrams, waiting_datagrams,
};

use super::Hosts;
use crate::application::{Carriage, Framing, REQUEST_STREAM, TunnelConfig};
use crate::flow::{Body, Content, DATAGRAM_HEADER, ip_header_len};
use crate::quic::Quic;
use crate::simulation::world::World;
use crate::tunnel::Direction;

/// What became of a packet at a tunnel's entry.
enum Entered {
    /// By this end of a connection.
    Taken(usize),
    /// It is longer than what is taken now.
    TooLong {
        mtu: u32,
        packet: Packet<Body>,
    },
    Gone,
}

/// A packet came to the entry of a tunnel.
#[cold]
pub(super) fn enter(
    hosts: &mut Hosts,
    world: &mut World,
    (application, to_server): (usize, bool),
    packet: Packet<Body>,
) {
    let first = hosts.apps[application].endpoint;
    let sender = world.net.flow(packet.flow).sender.endpoint();
    let own = sender.is_some_and(|end| Some(end as usize & !1) == first);
    let settings = &hosts.plan.applications[application];
    let Some(tunnel) = hosts.tunnels.get_mut(application) else {
        return;
    };
    let link = &hosts.plan.links[tunnel.link];
    let along = link.a.node == settings.client;
    let side = if along == to_server {
        &link.forward
    } else {
        &link.backward
    };
    let takes = side.mtu.unwrap_or(u32::MAX);
    let (link, config) = (tunnel.link, tunnel.config);
    // The server knows of the stream once the request has come.
    let asked = to_server || tunnel.direction(true).stream_came();
    let direction = tunnel.direction(to_server);
    direction.tally.entered += 1;
    // A router drops what arrives spoiled, and packets of a tunnel do not go through itself.
    if packet.corrupted || own {
        direction.tally.unfit += 1;
        return;
    }
    let entered = if settings.transport.has_connection() {
        let index = first.map(|first| first + usize::from(!to_server));
        let connection = index.and_then(|index| hosts.endpoints[index].quic_mut());
        let connection = connection.and_then(Quic::own_mut);
        let connection = connection.filter(|it| it.established() && it.ended().is_none());
        match (index, connection) {
            (Some(index), Some(connection)) if asked || config.carriage != Carriage::Stream => {
                let way = (&config, takes);
                into_connection(world, (index, connection), direction, way, packet)
            }
            _ => {
                direction.tally.unconnected += 1;
                return;
            }
        }
    } else {
        let entered = onto_line(world, direction, (&config, takes), packet);
        if let Some((flow, content, len)) = entered.1 {
            hosts.apps.send_datagram(world, flow, content, len);
        }
        entered.0
    };
    match entered {
        Entered::Taken(index) => hosts.follow_up_quic(world, index),
        Entered::TooLong { mtu, packet } => {
            direction.tally.too_long += 1;
            let channel = direction.channel;
            world.refuse(channel, link, mtu, packet);
        }
        Entered::Gone => {}
    }
}

fn into_connection(
    world: &World,
    (index, connection): (usize, &mut Connection),
    direction: &mut Direction,
    (config, takes): (&TunnelConfig, u32),
    packet: Packet<Body>,
) -> Entered {
    let now = world.net.now();
    if config.carriage == Carriage::Stream {
        return into_stream((index, connection), direction, (config, takes), packet, now);
    }
    let (stripped, request) = match config.framing {
        Framing::ConnectIp => (0, 0),
        Framing::ConnectUdp => match packet.body.content {
            Content::Quic(_) | Content::Udp { .. } => {
                let headers = ip_header_len(world.net.flow(packet.flow).source) + DATAGRAM_HEADER;
                (headers, direction.request(packet.flow))
            }
            _ => {
                direction.tally.unfit += 1;
                return Entered::Gone;
            }
        },
    };
    let numbered = config.reorder_ns > 0 || repeats_datagrams(connection);
    let fields = TunnelConfig::datagram_fields(request, numbered);
    // What does not fit is not fragmented: its sender is told (RFC 9484 section 10.1).
    let room = longest_datagram(connection).saturating_sub(fields);
    let mtu = room.saturating_add(stripped).min(takes);
    if packet.len > mtu {
        return Entered::TooLong { mtu, packet };
    }
    if waiting_datagrams(connection) as u64 >= config.queue {
        direction.tally.queue_full += 1;
        return Entered::Gone;
    }
    let len = packet.len - stripped + fields;
    // It is there before the frame, which may leave at once.
    direction.frame(packet, now);
    if !connection.send_datagram(len, now) {
        debug_assert!(false, "a datagram of {len} bytes was refused");
    }
    Entered::Taken(index)
}

/// Hands a packet to the connection in its stream.
fn into_stream(
    (index, connection): (usize, &mut Connection),
    direction: &mut Direction,
    (config, takes): (&TunnelConfig, u32),
    packet: Packet<Body>,
    now: Nanos,
) -> Entered {
    if packet.len > takes {
        return Entered::TooLong { mtu: takes, packet };
    }
    let (_, unsent) = connection.send_queue();
    if direction.unsent(unsent) as u64 >= config.queue {
        direction.tally.queue_full += 1;
        return Entered::Gone;
    }
    let len = packet.len + TunnelConfig::stream_fields(packet.len);
    direction.write(packet, len);
    connection.write_to(REQUEST_STREAM, len.into(), now);
    Entered::Taken(index)
}

/// Hands a packet to the line whose turn it is: the datagram, and the flow that it leaves on.
fn onto_line(
    world: &World,
    direction: &mut Direction,
    (config, takes): (&TunnelConfig, u32),
    packet: Packet<Body>,
) -> (Entered, Option<(u32, Content, u32)>) {
    let Some(longest) = direction.lines_take() else {
        direction.tally.unconnected += 1;
        return (Entered::Gone, None);
    };
    let fields = config.line_fields();
    let Some(flow) = direction.next_line() else {
        return (Entered::Gone, None);
    };
    let headers = ip_header_len(world.net.flow(flow).source) + DATAGRAM_HEADER;
    let mtu = longest.saturating_sub(headers + fields).min(takes);
    if packet.len > mtu {
        return (Entered::TooLong { mtu, packet }, None);
    }
    let now = world.net.now();
    let len = packet.len + fields;
    let content = Content::Udp {
        sequence: direction.next_frame(),
        sent_at: now,
        len,
    };
    direction.frame(packet, now);
    (Entered::Gone, Some((flow, content, len)))
}
