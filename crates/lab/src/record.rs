//! From the state of a run to the rows of its recording.

use std::ops::Range;

use polypath_net::{ChannelId, Network};
use polypath_trace::{
    BlockingRow, ChunkRow, ConnectionEndRow, ConnectionRow, CounterRow, DatagramRow,
    DatagramSampleRow, EventRow, HeaderRow, LinkEndRow, LinkRow, MiddleboxRow, ObjectRow,
    Recording, RequestRow, SackBlockRow, SegmentRow, SubflowEndRow, SubflowRow, Text, TunnelRow,
};
use polypath_transport::path::Totals;
use polypath_transport::{Counters, EventKind, Level, Mib, Nanos, Purpose, Transmit, Waited};
use polypath_wire::quic::{Datagram, Frame};
use polypath_wire::tcp::Flags;

use crate::application::{Chunk, Datagrams, Loaded, Request, Side};
use crate::carrier::Carrier;
use crate::endpoint::Endpoint;
use crate::flow::Body;
use crate::middlebox::MiddleboxReport;
use crate::plan::{Plan, Transport};
use crate::stream_offsets::Origins;
use crate::tunnel::Direction;

/// Collects a recording.
pub(crate) struct Recorder {
    pub recording: Recording,
    hosts: Vec<String>,
    last_sample: Option<Sample>,
    /// When, and its first row.
    last_datagram_sample: Option<(Nanos, usize)>,
}

/// When a sample was taken, and its rows.
struct Sample {
    at: Nanos,
    subflows: Range<usize>,
    connections: Range<usize>,
    links: Range<usize>,
}

impl Recorder {
    pub fn new(plan: &Plan) -> Self {
        Self {
            recording: Recording::default(),
            hosts: plan.nodes.iter().map(|node| node.name.clone()).collect(),
            last_sample: None,
            last_datagram_sample: None,
        }
    }

    /// One row for each subflow, connection and direction of a link. A second sample at the same instant takes the
    /// place of the first.
    pub fn sample(
        &mut self,
        now: Nanos,
        endpoints: &[Endpoint],
        channels: &[(ChannelId, ChannelId)],
        network: &mut Network<Body>,
    ) {
        let tables = &mut self.recording;
        if let Some(last) = self.last_sample.take_if(|last| last.at == now) {
            tables.subflows.remove(last.subflows);
            tables.connections.remove(last.connections);
            tables.links.remove(last.links);
        }
        let (subflows, connections) = (tables.subflows.len(), tables.connections.len());
        let links = tables.links.len();
        for (index, endpoint) in endpoints.iter().enumerate() {
            self.sample_endpoint(now, index as u32 / 2, endpoint);
        }
        self.sample_links(now, channels, network);
        self.last_sample = Some(Sample {
            at: now,
            subflows: subflows..self.recording.subflows.len(),
            connections: connections..self.recording.connections.len(),
            links: links..self.recording.links.len(),
        });
    }

    /// One row for each subflow of an endpoint, and one for its connection.
    fn sample_endpoint(&mut self, now: Nanos, id: u32, endpoint: &Endpoint) {
        let side = Text::from(endpoint.side.name());
        let received = endpoint.received.bytes;
        let Some(connection) = &endpoint.connection else {
            return;
        };
        for (subflow, &number) in endpoint.numbers.iter().enumerate() {
            self.recording.subflows.push(subflow_row(
                now,
                id,
                endpoint.side,
                number,
                subflow,
                connection,
            ));
        }
        let (send_buffer, receive_buffer) = connection.buffers();
        self.recording.connections.push(ConnectionRow {
            time_ns: now as i64,
            connection: id,
            side,
            delivered_bytes: received,
            reassembly_bytes: connection.reassembly_bytes(),
            send_buffer_bytes: send_buffer,
            send_queue_bytes: connection.send_queue().0,
            receive_buffer_bytes: receive_buffer,
        });
    }

    /// One row for a subflow whose state has just changed.
    pub fn sample_subflow(
        &mut self,
        now: Nanos,
        id: u32,
        side: Side,
        number: u32,
        subflow: usize,
        connection: &Carrier,
    ) {
        self.recording
            .subflows
            .push(subflow_row(now, id, side, number, subflow, connection));
    }

    fn sample_links(
        &mut self,
        now: Nanos,
        channels: &[(ChannelId, ChannelId)],
        network: &mut Network<Body>,
    ) {
        for (link, &pair) in channels.iter().enumerate() {
            for (direction, channel) in directions(pair) {
                let stats = network.stats(channel);
                let (queue_packets, queue_bytes) = network.backlog(channel);
                self.recording.links.push(LinkRow {
                    time_ns: now as i64,
                    link: link as u32,
                    direction: direction.into(),
                    sent_bytes: stats.sent_bytes,
                    sent_packets: stats.sent_packets,
                    dropped_packets: stats.dropped_packets,
                    lost_packets: stats.lost_packets,
                    queue_packets,
                    queue_bytes,
                });
            }
        }
    }

    pub fn link_ends(
        &mut self,
        plan: &Plan,
        channels: &[(ChannelId, ChannelId)],
        network: &mut Network<Body>,
    ) {
        for (link, &pair) in channels.iter().enumerate() {
            for (direction, channel) in directions(pair) {
                let stats = network.stats(channel);
                self.recording.link_ends.push(LinkEndRow {
                    link: link as u32,
                    name: plan.links[link].name.clone().into(),
                    direction: direction.into(),
                    sent_bytes: stats.sent_bytes,
                    sent_packets: stats.sent_packets,
                    dropped_packets: stats.dropped_packets,
                    lost_packets: stats.lost_packets,
                    max_queue_packets: stats.max_queue_packets,
                    busy_ns: stats.busy,
                });
            }
        }
    }

    pub fn middleboxes(&mut self, reports: impl Iterator<Item = MiddleboxReport>) {
        for report in reports {
            let tally = report.tally;
            self.recording.middleboxes.push(MiddleboxRow {
                link: report.link as u32,
                position: report.position as u32,
                name: report.name.into(),
                received_packets: tally.received,
                changed_packets: tally.changed,
                made_packets: tally.made,
                sent_packets: tally.sent,
                dropped_packets: tally.dropped,
                absorbed_packets: tally.absorbed,
            });
        }
    }

    /// One direction of a tunnel.
    pub fn tunnel(&mut self, application: u32, name: &'static str, direction: &Direction) {
        let tally = direction.tally;
        self.recording.tunnels.push(TunnelRow {
            application,
            direction: name.into(),
            entered_packets: tally.entered,
            carried_packets: tally.carried,
            carried_bytes: tally.carried_bytes,
            left_packets: tally.left,
            unconnected_packets: tally.unconnected,
            queue_full_packets: tally.queue_full,
            too_long_packets: tally.too_long,
            unfit_packets: tally.unfit,
            reordered_packets: tally.reordered,
            late_packets: tally.late,
        });
    }

    /// A tunnel without a connection: its datagrams in both directions.
    pub fn lines(&mut self, application: u32, directions: &[Direction; 2]) {
        let of = |count: fn(&Direction) -> u64| directions.iter().map(count).sum();
        self.recording.datagrams.push(DatagramRow {
            application,
            sent_packets: of(|it| it.tally.carried),
            received_packets: of(|it| it.tally.left),
            received_bytes: of(|it| it.tally.left_bytes),
            delay_mean_ns: None,
        });
    }

    /// An event of the network or of the plan.
    pub fn event(
        &mut self,
        now: Nanos,
        kind: &'static str,
        host: &str,
        link: Option<u32>,
        detail: String,
    ) {
        self.recording.events.push(EventRow {
            time_ns: now as i64,
            kind: kind.into(),
            host: Text::from(host.to_owned()),
            connection: None,
            subflow: None,
            link,
            value: None,
            detail: detail.into(),
        });
    }

    /// An event of a connection; `number` is that of a subflow in its connection.
    pub fn transport_event(
        &mut self,
        at: Nanos,
        id: u32,
        node: usize,
        kind: &EventKind,
        number: impl Fn(usize) -> u32,
    ) {
        let told = describe(kind);
        self.recording.events.push(EventRow {
            time_ns: at as i64,
            kind: told.kind.into(),
            host: self.hosts[node].clone().into(),
            connection: Some(id),
            subflow: told.subflow.map(number),
            link: None,
            value: told.value,
            detail: told.detail,
        });
    }

    /// A segment that leaves an endpoint.
    pub fn segment(
        &mut self,
        at: Nanos,
        id: u32,
        side: Side,
        number: u32,
        sent: &Transmit,
        origins: Origins,
    ) {
        let Transmit {
            segment, purpose, ..
        } = sent;
        let kind = kind_name(*purpose);
        let acknowledges = segment.flags.contains(Flags::ACK);
        self.recording.headers.push(HeaderRow::of_segment(
            self.recording.segments.len(),
            segment,
            origins.acknowledged(segment),
            origins.carried(segment),
        ));
        self.recording.segments.push(SegmentRow {
            time_ns: at as i64,
            connection: id,
            side: side.name().into(),
            subflow: number,
            seq: origins.sent(segment.seq),
            ack: if acknowledges {
                origins.taken(segment.ack)
            } else {
                0
            },
            dsn: (segment.payload.len > 0).then_some(segment.payload.offset),
            payload_bytes: segment.payload.len,
            kind: kind.into(),
        });
        for (place, &(begin, end)) in segment.sack.as_slice().iter().enumerate() {
            self.recording.sack_blocks.push(SackBlockRow {
                time_ns: at as i64,
                connection: id,
                side: side.name().into(),
                subflow: number,
                ack: origins.taken(segment.ack),
                begin: origins.taken(begin),
                end: origins.taken(end),
                duplicate: place == 0 && segment.sack.reports_duplicate(segment.ack),
            });
        }
    }

    /// The packets of a QUIC datagram that leaves an endpoint.
    pub fn packets(
        &mut self,
        at: Nanos,
        id: u32,
        side: Side,
        number: u32,
        purpose: Purpose,
        sent: &Datagram,
    ) {
        let kind = kind_name(purpose);
        for packet in &sent.packets {
            let mut row = SegmentRow {
                time_ns: at as i64,
                connection: id,
                side: side.name().into(),
                subflow: number,
                seq: packet.header.number,
                ack: 0,
                dsn: None,
                payload_bytes: 0,
                kind: kind.into(),
            };
            for frame in &packet.frames {
                match frame {
                    Frame::Ack(ack) => row.ack = ack.ranges.first().map_or(0, |range| range.1),
                    Frame::Stream { offset, len, .. } => {
                        row.dsn.get_or_insert(*offset);
                        row.payload_bytes += len;
                    }
                    _ => {}
                }
            }
            let headers = &mut self.recording.headers;
            headers.push(HeaderRow::of_packet(self.recording.segments.len(), packet));
            self.recording.segments.push(row);
        }
    }

    pub fn requests(&mut self, application: u32, requests: &[Request]) {
        for (index, request) in requests.iter().enumerate() {
            self.recording.requests.push(RequestRow {
                application,
                index: index as u32,
                sent_ns: request.sent_at as i64,
                delay_ns: request.delay.map(|delay| delay as i64),
            });
        }
    }

    pub fn objects(&mut self, application: u32, loaded: &[Loaded]) {
        for object in loaded {
            self.recording.objects.push(ObjectRow {
                application,
                object: object.object as u32,
                bytes: object.bytes,
                asked_ns: object.asked_at as i64,
                arrived_ns: object.arrived_at.map(|at| at as i64),
            });
        }
    }

    pub fn chunks(&mut self, application: u32, chunks: &[Chunk]) {
        let time = |at: Nanos| at as i64;
        for (index, chunk) in chunks.iter().enumerate() {
            self.recording.chunks.push(ChunkRow {
                application,
                index: index as u32,
                asked_ns: time(chunk.asked_at),
                arrived_ns: chunk.arrived_at.map(time),
                representation: chunk.representation,
                rate_bps: chunk.rate_bps,
                bytes: chunk.bytes,
                buffer_ns: time(chunk.buffered_ns),
                played_ns: chunk.played_at.map(time),
            });
        }
    }

    pub fn datagrams(&mut self, application: u32, datagrams: &Datagrams) {
        self.recording.datagrams.push(DatagramRow {
            application,
            sent_packets: datagrams.sent,
            received_packets: datagrams.received,
            received_bytes: datagrams.received_bytes,
            delay_mean_ns: datagrams
                .delay_sum
                .checked_div(datagrams.received)
                .map(|mean| mean as i64),
        });
    }

    /// A second sample at the same instant takes the place of the first.
    pub fn sample_datagrams<'a>(
        &mut self,
        now: Nanos,
        applications: impl Iterator<Item = (usize, &'a Datagrams)>,
    ) {
        let table = &mut self.recording.datagram_samples;
        if let Some((at, begin)) = self.last_datagram_sample
            && at == now
        {
            table.remove(begin..table.len());
        }
        self.last_datagram_sample = Some((now, table.len()));
        for (application, datagrams) in applications {
            if datagrams.echo() || datagrams.sent == 0 {
                continue;
            }
            table.push(DatagramSampleRow {
                time_ns: now as i64,
                application: application as u32,
                sent_packets: datagrams.sent,
                received_packets: datagrams.received,
                received_bytes: datagrams.received_bytes,
                jitter_ns: datagrams.jitter().map(|jitter| jitter as i64),
            });
        }
    }

    /// The sums of what a host's connections counted, and the host itself.
    pub fn counters(&mut self, node: usize, counted: &[&Counters]) {
        for &(mib, name) in Mib::ALL {
            let counted = counted.iter();
            let value = counted.map(|counters| u64::from(counters.value(mib))).sum();
            self.recording.counters.push(CounterRow {
                host: self.hosts[node].clone().into(),
                name: name.into(),
                value,
            });
        }
    }

    pub fn connection_end(
        &mut self,
        plan: &Plan,
        application: usize,
        id: u32,
        client: &Endpoint,
        server: &Endpoint,
    ) {
        let settings = &plan.applications[application];
        let time = |at: Option<Nanos>| at.map(|at| at as i64);
        let multipath = client.connection.as_ref().is_some_and(Carrier::multipath);
        let transport = match settings.transport {
            Transport::Mptcp if multipath => "mptcp",
            Transport::Mptcp if client.established_at.is_some() => "fallback",
            Transport::Mptcp => "mptcp",
            Transport::Mpquic if multipath || client.established_at.is_none() => "mpquic",
            Transport::Mpquic | Transport::Quic => "quic",
            _ => "tcp",
        };
        let state = match client.connection.as_ref().map(Carrier::ended) {
            None => "not started",
            Some(None) => "open",
            Some(Some(reason)) => reason.name(),
        };
        let bytes =
            |end: fn(Option<Nanos>, Option<Nanos>) -> Option<Nanos>,
             pick: fn(&Endpoint) -> Option<Nanos>| end(pick(client), pick(server));
        let earliest = |a: Option<Nanos>, b: Option<Nanos>| a.into_iter().chain(b).min();
        self.recording.connection_ends.push(ConnectionEndRow {
            application: application as u32,
            connection: id,
            name: settings.name.clone().into(),
            transport: transport.into(),
            state: state.into(),
            start_ns: settings.start_ns as i64,
            established_ns: time(client.established_at),
            end_ns: time(client.ended_at),
            first_byte_ns: time(bytes(earliest, |endpoint| endpoint.received.first_at)),
            last_byte_ns: time(bytes(std::cmp::max, |endpoint| endpoint.received.last_at)),
            client_received_bytes: client.received.bytes,
            server_received_bytes: server.received.bytes,
        });
    }

    /// What each end of a connection waited for up to `now`.
    pub fn blocking(&mut self, now: Nanos, id: u32, endpoint: &Endpoint) {
        let Some(connection) = &endpoint.connection else {
            return;
        };
        let number = |subflow: usize| endpoint.numbers.get(subflow).copied();
        for blocked in connection.blocked(now) {
            let level = match blocked.level {
                Level::Subflow => "subflow",
                Level::Connection => "connection",
            };
            let Waited {
                time,
                byte_nanoseconds,
                most,
            } = blocked.waited;
            self.recording.blocking.push(BlockingRow {
                connection: id,
                side: endpoint.side.name().into(),
                level: level.into(),
                subflow: blocked.subflow.and_then(number),
                cause: blocked.cause.name().into(),
                time_ns: time,
                byte_s: byte_nanoseconds as f64 / 1e9,
                max_bytes: most,
            });
        }
    }

    pub fn subflow_ends(&mut self, plan: &Plan, id: u32, client: &Endpoint, server: &Endpoint) {
        let Some(connection) = &client.connection else {
            return;
        };
        for index in 0..connection.lanes() {
            let info = connection.lane(index);
            let ours = info.totals;
            let number = client.number(index);
            let theirs = server
                .numbered(number)
                .and_then(|lane| Some(server.connection.as_ref()?.lane(lane).totals))
                .unwrap_or_default();
            let interface = plan.nodes[client.node]
                .interfaces
                .iter()
                .find(|interface| interface.addresses.contains(&info.tuple.local.ip()))
                .map_or(String::new(), |interface| interface.name.clone());
            self.recording.subflow_ends.push(SubflowEndRow {
                connection: id,
                subflow: number,
                source: info.tuple.local.ip().to_string().into(),
                source_port: u32::from(info.tuple.local.port()),
                destination: info.tuple.remote.ip().to_string().into(),
                destination_port: u32::from(info.tuple.remote.port()),
                interface: interface.into(),
                backup: info.backup,
                established_ns: info.established_at.map(|at| at as i64),
                closed_ns: info.closed_at.map(|at| at as i64),
                client_sent_bytes: ours.sent,
                server_sent_bytes: theirs.sent,
                client_received_bytes: ours.received,
                server_received_bytes: theirs.received,
                client_retransmitted_bytes: ours.retransmitted,
                server_retransmitted_bytes: theirs.retransmitted,
                client_reinjected_bytes: ours.reinjected,
                server_reinjected_bytes: theirs.reinjected,
            });
        }
    }
}

fn directions((forward, backward): (ChannelId, ChannelId)) -> [(&'static str, ChannelId); 2] {
    [("forward", forward), ("backward", backward)]
}

fn subflow_row(
    now: Nanos,
    id: u32,
    side: Side,
    number: u32,
    subflow: usize,
    connection: &Carrier,
) -> SubflowRow {
    let window = connection.receive_window();
    let lane = connection.lane(subflow);
    let path = lane.path;
    let Totals {
        sent,
        retransmitted,
        reinjected,
        received,
        ..
    } = lane.totals;
    SubflowRow {
        time_ns: now as i64,
        connection: id,
        side: side.name().into(),
        subflow: number,
        state: lane.state.into(),
        cwnd_packets: path.cwnd,
        ssthresh_packets: path.ssthresh,
        srtt_us: path.srtt / 1_000,
        rttvar_us: path.rttvar / 1_000,
        in_flight_packets: path.in_flight,
        sent_bytes: sent,
        acked_bytes: path.acked.min(sent),
        received_bytes: received,
        retransmitted_bytes: retransmitted,
        reinjected_bytes: reinjected,
        receive_window_bytes: window,
        out_of_order_bytes: lane.out_of_order_bytes,
    }
}

fn kind_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Control => "ack",
        Purpose::Data => "data",
        Purpose::Retransmission => "retransmission",
        Purpose::Reinjection => "reinjection",
    }
}

/// An event's columns.
struct Told {
    kind: &'static str,
    subflow: Option<usize>,
    value: Option<f64>,
    detail: Text,
}

fn describe(kind: &EventKind) -> Told {
    let told = |kind, subflow| Told {
        kind,
        subflow,
        value: None,
        detail: "".into(),
    };
    let valued = |kind, subflow, value: f64| Told {
        value: Some(value),
        ..told(kind, subflow)
    };
    let detailed = |kind, subflow, detail: Text| Told {
        detail,
        ..told(kind, subflow)
    };
    match *kind {
        EventKind::ConnectionEstablished => told("connection-established", None),
        EventKind::ConnectionClosed(reason) => {
            detailed("connection-closed", None, reason.name().into())
        }
        EventKind::SubflowEstablished(subflow) => told("subflow-established", Some(subflow)),
        EventKind::SubflowClosed(subflow) => told("subflow-closed", Some(subflow)),
        EventKind::Loss(subflow) => told("loss", Some(subflow)),
        EventKind::Timeout { subflow, backoff } => {
            valued("timeout", Some(subflow), f64::from(backoff))
        }
        EventKind::TailLossProbe(subflow) => told("tail-loss-probe", Some(subflow)),
        EventKind::LocalCongestion(subflow) => told("local-congestion", Some(subflow)),
        EventKind::Reinjection { subflow, bytes } => {
            valued("reinjection", Some(subflow), bytes as f64)
        }
        EventKind::Penalised(subflow) => told("penalised", Some(subflow)),
        EventKind::PathMtu { subflow, mtu } => valued("path-mtu", Some(subflow), f64::from(mtu)),
        EventKind::Fallback(why) => detailed("fallback", None, why.into()),
        EventKind::SubflowReset(subflow) => told("reset", Some(subflow)),
        EventKind::AddressAdded { id, address } => {
            detailed("address-added", None, format!("{address} as {id}").into())
        }
        EventKind::AddressRemoved { id } => valued("address-removed", None, f64::from(id)),
        EventKind::PriorityChanged { subflow, backup } => detailed(
            "priority-changed",
            Some(subflow),
            if backup { "backup" } else { "normal" }.into(),
        ),
        EventKind::DatagramRefused(bytes) => valued("datagram-refused", None, f64::from(bytes)),
        EventKind::PotentiallyFailed(subflow) => told("potentially-failed", Some(subflow)),
        EventKind::Recovered(subflow) => told("recovered", Some(subflow)),
        EventKind::PathMigrated { subflow, address } => {
            detailed("path-migrated", Some(subflow), address.to_string().into())
        }
        EventKind::MigrationRefused { subflow, reason } => {
            detailed("migration-refused", Some(subflow), reason.into())
        }
        EventKind::Scheduled {
            subflow,
            offset,
            bytes,
        } => Told {
            detail: format!("offset {offset}").into(),
            ..valued("scheduler", Some(subflow), f64::from(bytes))
        },
    }
}

/// Changes of a subflow's state that are worth a sample of their own.
pub(crate) fn sampled(kind: &EventKind) -> Option<usize> {
    match *kind {
        EventKind::SubflowEstablished(subflow)
        | EventKind::SubflowClosed(subflow)
        | EventKind::Loss(subflow)
        | EventKind::Timeout { subflow, .. }
        | EventKind::Penalised(subflow)
        | EventKind::PathMigrated { subflow, .. }
        | EventKind::Recovered(subflow) => Some(subflow),
        _ => None,
    }
}
