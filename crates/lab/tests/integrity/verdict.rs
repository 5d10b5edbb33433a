//! The rules that every run must obey.

use std::collections::BTreeMap;

use arrow_cast::display::array_value_to_string;
use polypath_lab::plan::{
    Action, Application, Bulk, Event, Fetch, Loss, Messages, PingPong, Plan, RequestResponse,
    Stream, Tls, Transport, Work,
};
use polypath_lab::{CaptureMode, MiddleboxReport, Recording, Simulation, Totals};
use polypath_transport::Profile;
use serde::{Deserialize, Serialize};

use crate::draw::SECOND;
use crate::scenario::{
    CLIENT, Fate, LAST_CHANGE, SERVER, Scenario, bytes_depend_on_time, limit, middleboxes, stack_of,
};

/// After the network healed: what is left to send, timeouts that backed off until then, and the application's own pauses.
const AFTER_HEALING: u64 = 600 * SECOND;

/// Linux's TCP_TIMEWAIT_LEN.
const TIME_WAIT: u64 = 60 * SECOND;

/// Linux's net.ipv4.tcp_retries2: a segment is repeated so often.
const RETRIES: u64 = 15;

/// What was seen of a run, for the sums over all of them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    pub finished: u64,
    pub given_up: u64,
    /// Over a living network seven SYNs or SYN/ACKs in a row went unanswered, or sixteen repetitions where losses come in bursts: with much loss
    /// that may be.
    pub unlucky: u64,
    /// Still under way at the end of the run: with much loss each timeout moves a segment or a piece of one.
    pub slow: u64,
    /// A middlebox made it reset.
    pub broken: u64,
    /// Keep-alive or a user timeout ended it over a living network.
    pub impatient: u64,
    pub bytes: u64,
    pub packets: u64,
    pub lost: u64,
    pub duplicated: u64,
}

impl Seen {
    pub fn add(&mut self, other: Self) {
        self.finished += other.finished;
        self.given_up += other.given_up;
        self.unlucky += other.unlucky;
        self.slow += other.slow;
        self.broken += other.broken;
        self.impatient += other.impatient;
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
    }
}

/// Runs a scenario; the error says what did not hold.
pub fn judge(scenario: &Scenario) -> Result<Seen, String> {
    let plan = &scenario.plan;
    let mut simulation = Simulation::from_plan(plan.clone(), CaptureMode::None, None)
        .map_err(|error| format!("the plan was refused: {error}"))?;
    let mut until = 0;
    loop {
        until += if until < LAST_CHANGE {
            SECOND
        } else {
            100 * SECOND
        };
        let ended = simulation
            .step_until(until)
            .map_err(|error| format!("stopped: {error}"))?;
        conserved(&simulation.totals())?;
        for report in simulation.middleboxes() {
            accounted(&report)?;
        }
        if ended {
            break;
        }
    }
    let totals = simulation.totals();
    let recording = simulation
        .finish()
        .map_err(|error| format!("the recording failed: {error}"))?;
    let run = Run::new(plan, &recording);
    run.payload_is_right()?;
    let mut seen = Seen {
        packets: totals.injected,
        lost: totals.lost + totals.dropped,
        duplicated: totals.duplicated,
        ..Seen::default()
    };
    for (index, application) in plan.applications.iter().enumerate() {
        let about = |what: String| format!("{}: {what}", application.name);
        match application.transport {
            Transport::Tcp | Transport::Mptcp => {
                seen.add(
                    run.connection(index, application, scenario.fate)
                        .map_err(about)?,
                );
            }
            Transport::Quic | Transport::Mpquic => {
                let judged = run.quic_connection(index, application, scenario.fate);
                seen.add(judged.map_err(about)?);
            }
            Transport::Udp => run.datagrams(index).map_err(about)?,
            Transport::Icmp => {}
        }
    }
    Ok(seen)
}

fn conserved(totals: &Totals) -> Result<(), String> {
    let Totals {
        injected,
        duplicated,
        delivered,
        dropped,
        lost,
        in_flight,
    } = *totals;
    require(
        injected + duplicated == delivered + dropped + lost + in_flight,
        || format!("packets are not conserved: {totals:?}"),
    )
}

fn accounted(report: &MiddleboxReport) -> Result<(), String> {
    let tally = report.tally;
    require(
        tally.received + tally.made == tally.sent + tally.dropped + tally.absorbed + report.held,
        || format!("a middlebox loses packets: {report:?}"),
    )
}

pub fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// A table's rows as text by column.
type Rows = Vec<BTreeMap<String, String>>;

pub struct Run<'a> {
    pub plan: &'a Plan,
    tables: BTreeMap<&'static str, Rows>,
}

/// The tables that are looked at; the others can be long.
const TABLES: [&str; 9] = [
    "chunks",
    "connection_ends",
    "connections",
    "counters",
    "datagrams",
    "events",
    "link_ends",
    "requests",
    "segments",
];

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, recording: &Recording) -> Self {
        let mut tables = BTreeMap::new();
        for (name, batch) in recording.tables() {
            if !TABLES.contains(&name) {
                continue;
            }
            let schema = batch.schema();
            let row = |row: usize| {
                let cell = |column: usize| {
                    array_value_to_string(batch.column(column), row).expect("plain columns")
                };
                let columns = schema.fields().iter().enumerate();
                columns
                    .map(|(column, field)| (field.name().clone(), cell(column)))
                    .collect()
            };
            tables.insert(name, (0..batch.num_rows()).map(row).collect());
        }
        Self { plan, tables }
    }

    pub fn rows(&self, table: &str, matching: &[(&str, &str)]) -> Vec<&BTreeMap<String, String>> {
        assert!(TABLES.contains(&table), "no table {table}");
        let there = self.tables.get(table);
        there
            .into_iter()
            .flatten()
            .filter(|row| {
                matching
                    .iter()
                    .all(|(column, value)| row[*column] == *value)
            })
            .collect()
    }

    fn payload_is_right(&self) -> Result<(), String> {
        let mismatches = self.rows("counters", &[("name", "PayloadMismatch")]);
        require(mismatches.len() == 2, || {
            "two hosts count payload mismatches".into()
        })?;
        let altered = middleboxes(self.plan).any(|name| name == "alter-payload");
        let right = |row: &&BTreeMap<String, String>| {
            row["value"] == "0" || altered || self.hears_unmarked(&row["host"])
        };
        require(mismatches.iter().all(right), || {
            format!("bytes at a wrong place: {mismatches:?}")
        })
    }

    /// Whether a host that fell back may take for new what its peer, Linux, repeats at connection level, as a box strips its mapping. Linux does
    /// so before the host confirmed MPTCP (`__mptcp_retrans`), and resets the subflow once it hears that the host fell back.
    fn hears_unmarked(&self, host: &str) -> bool {
        let peer = if host == "client" { SERVER } else { CLIENT };
        let mut applications = self.plan.applications.iter();
        let linux =
            applications.any(|it| stack_of(self.plan, it, peer).config.profile == Profile::Linux);
        let stripped = middleboxes(self.plan).any(|name| name == "strip-options");
        linux && stripped && !self.rows("events", &[("kind", "reset")]).is_empty()
    }

    /// A datagram arrives at most once unless a link doubles it.
    fn datagrams(&self, index: usize) -> Result<(), String> {
        let row = self.rows("datagrams", &[("application", &index.to_string())])[0];
        let doubled = self
            .plan
            .links
            .iter()
            .any(|link| link.forward.duplicate > 0.0 || link.backward.duplicate > 0.0);
        let (sent, received) = (number(row, "sent_packets"), number(row, "received_packets"));
        require(received <= sent || doubled, || {
            format!("{received} datagrams of {sent} arrived")
        })
    }

    fn connection(
        &self,
        index: usize,
        application: &Application,
        fate: Fate,
    ) -> Result<Seen, String> {
        let rows = self.rows("connection_ends", &[("application", &index.to_string())]);
        let [end] = rows[..] else {
            return Err(format!("{} connections", rows.len()));
        };
        let received = [
            number(end, "client_received_bytes"),
            number(end, "server_received_bytes"),
        ];
        let id = &*end["connection"];
        let ends = ["client", "server"].map(|side| self.reason(id, side));
        let answered = self.rows("requests", &[("application", &index.to_string())]);
        let whole = ends.iter().all(|end| end.as_deref() == Some("finished"));
        let mut seen = Seen {
            bytes: received[0] + received[1],
            finished: whole.into(),
            ..Seen::default()
        };
        if whole {
            let expected = self.written(index, application, id, answered.len() as u64);
            require(received == expected, || {
                format!("received {received:?} of {expected:?} bytes")
            })?;
            require(
                answered.iter().all(|row| !row["delay_ns"].is_empty()),
                || "finished with a request unanswered".into(),
            )?;
            let ended = number(end, "end_ns");
            let patience = AFTER_HEALING + self.spoiled() * self.shortest_timeout(application);
            return match fate {
                Fate::Heals => require(ended <= LAST_CHANGE + patience || self.hampered(), || {
                    format!("ended only at {} s", ended / SECOND)
                }),
                _ => Ok(()),
            }
            .map(|()| seen);
        }
        if received == self.written(index, application, id, answered.len() as u64)
            && self.outlived(id)
        {
            return Ok(seen);
        }
        let was = |reason: &str| ends.iter().flatten().any(|end| end == reason);
        let unanswered = ends[1].as_deref() == Some("unreachable") && self.loses_the_server(id);
        let unrouted =
            ends[0].as_deref() == Some("unreachable") && self.begins_without_route(application, id);
        if unanswered
            || unrouted
            || (self.takes_leave(application) || self.left_alone(application, id)) && was("reset")
            || self.shut_out() && (was("unreachable") || was("reset") || self.proxied())
            || self.interfered()
                && (was("reset")
                    || was("unreachable")
                    || was("timed-out") && (received == [0, 0] || self.lost_a_subflow(id)))
        {
            seen.broken = 1;
            return Ok(seen);
        }
        if let Some(least) = self.limit(application)
            && !matches!(fate, Fate::Dies(_))
            && ["timed-out", "unreachable", "reset"].into_iter().any(was)
        {
            let silent = self.gave_up_at(id).saturating_sub(application.start_ns);
            require(silent >= least, || {
                format!("gave up after {silent} ns already, with a limit of {least} ns")
            })?;
            seen.impatient = 1;
            return Ok(seen);
        }
        let in_vain = was("unreachable") || was("timed-out") && self.lost_in_bursts();
        if fate == Fate::Alive && in_vain {
            seen.unlucky = 1;
            return Ok(seen);
        }
        let unhurried = fate == Fate::Alive || fate == Fate::Heals && self.hampered();
        if unhurried && ends == [None, None] && self.goes_on(id) {
            seen.slow = 1;
            return Ok(seen);
        }
        let Fate::Dies(_) = fate else {
            return Err(format!(
                "ended as {ends:?} with {received:?} bytes received over a network that lives"
            ));
        };
        seen.given_up = 1;
        if !bytes_depend_on_time(&application.work) {
            let expected = self.written(index, application, id, answered.len() as u64);
            require((0..2).all(|side| received[side] <= expected[side]), || {
                format!("received {received:?} of {expected:?} bytes")
            })?;
        }
        for (side, end) in ["client", "server"].into_iter().zip(&ends) {
            // A client that gives up ends the application, and with the last one the run.
            let cut_short =
                side == "server" && !matches!(ends[0].as_deref(), None | Some("finished"));
            if !(end.is_none() && cut_short) {
                self.gave_up(application, id, side, end.as_deref())?;
            }
        }
        Ok(seen)
    }

    /// Whether middleboxes break mappings or payload, so that a connection may have to end (RFC 8684 section 3.7): by a reset, when no other
    /// subflow can be opened, or, where no data is sent and so nothing shows that the peer sees no DATA_FIN, by giving that up.
    fn interfered(&self) -> bool {
        middleboxes(self.plan)
            .any(|name| ["strip-options", "coalesce", "alter-payload"].contains(&name))
    }

    /// Whether the connection lost a subflow to a reset; those that are left may be half open.
    fn lost_a_subflow(&self, id: &str) -> bool {
        !self
            .rows("events", &[("connection", id), ("kind", "reset")])
            .is_empty()
    }

    /// Whether middleboxes take away what TCP's timers and windows need: timestamps, the window's scale, whole segments.
    fn hampered(&self) -> bool {
        middleboxes(self.plan).any(|name| ["strip-options", "split"].contains(&name))
    }

    /// Segments that links spoiled, as healed ones still do. Behind a small window each may cost a timeout.
    fn spoiled(&self) -> u64 {
        let found = self.rows("counters", &[("name", "TcpInCsumErrors")]);
        found.iter().map(|row| number(row, "value")).sum()
    }

    /// The least timeout of the side that waits longer.
    fn shortest_timeout(&self, application: &Application) -> u64 {
        let sides = [CLIENT, SERVER].into_iter();
        let least = sides.map(|node| stack_of(self.plan, application, node).config.rto_min_ns);
        least.max().unwrap_or(0)
    }

    /// Whether a proxy answers in the other host's name, and resets one side when it gives up the other.
    fn proxied(&self) -> bool {
        middleboxes(self.plan).any(|name| name == "proxy")
    }

    /// Whether the server is behind a NAT, which lets nobody in who was not asked for.
    pub fn shut_out(&self) -> bool {
        let boxes = self.plan.links.iter().flat_map(|link| &link.middleboxes);
        boxes.filter(|choice| choice.name == "nat").any(|nat| {
            nat.parameters
                .get("inside")
                .is_some_and(|end| end == "second")
        })
    }

    /// Whether a server on Linux may have had no route for its SYN/ACK, and so have forgotten who asked.
    fn loses_the_server(&self, id: &str) -> bool {
        let mut applications = self.plan.applications.iter();
        let linux =
            applications.any(|it| stack_of(self.plan, it, SERVER).config.profile == Profile::Linux);
        let down = |event: &Event| matches!(event.action, Action::Interface { node, up: false, .. } if node == SERVER);
        let at = |kind: &str| {
            let matching = [("connection", id), ("kind", kind), ("host", "server")];
            let rows = self.rows("events", &matching);
            rows.iter().map(|row| number(row, "time_ns")).min()
        };
        let in_handshake = match (at("connection-closed"), at("connection-established")) {
            (Some(closed), Some(established)) => closed < established,
            (closed, _) => closed.is_some(),
        };
        linux && in_handshake && self.plan.events.iter().any(down)
    }

    /// Whether a client's interface was down as it began, so that its host had no route.
    fn begins_without_route(&self, application: &Application, id: &str) -> bool {
        let matching = [
            ("connection", id),
            ("kind", "connection-closed"),
            ("host", "client"),
        ];
        let closed = self.rows("events", &matching);
        let down = |event: &Event| matches!(event.action, Action::Interface { node, up: false, .. } if node == CLIENT);
        closed
            .iter()
            .any(|row| number(row, "time_ns") == application.start_ns)
            && self.plan.events.iter().any(down)
    }

    /// Whether a host whose path manager is the kernel's may have ended its last subflow with an interface, and its peer, of another profile,
    /// the connection with that.
    fn takes_leave(&self, application: &Application) -> bool {
        [(CLIENT, SERVER), (SERVER, CLIENT)].into_iter().any(|(side, other)| {
            let config = &stack_of(self.plan, application, side).config;
            let peer = &stack_of(self.plan, application, other).config;
            let down = |event: &Event| matches!(event.action, Action::Interface { node, up: false, .. } if node == side);
            config.profile == Profile::Linux
                && peer.profile != Profile::Linux
                && config.path_manager.name == "endpoints"
                && self.plan.events.iter().any(down)
        })
    }

    /// Whether a side ended as Linux does without a subflow, after one of both had lost an interface: a host that ends its subflows with their
    /// interface has no others, and its peer opens none to it.
    fn left_alone(&self, application: &Application, id: &str) -> bool {
        let down = |event: &Event| matches!(event.action, Action::Interface { node, up: false, .. } if [CLIENT, SERVER].contains(&node));
        self.plan.events.iter().any(down)
            && [("client", CLIENT), ("server", SERVER)]
                .into_iter()
                .any(|(side, own)| {
                    let config = &stack_of(self.plan, application, own).config;
                    self.ended_without_subflows(config.close_timeout_ns, id, side)
                })
    }

    /// The least of both sides' limits to the peer's silence.
    fn limit(&self, application: &Application) -> Option<u64> {
        let sides = [CLIENT, SERVER].into_iter();
        sides
            .filter_map(|node| limit(stack_of(self.plan, application, node)))
            .min()
    }

    /// When the first side found its peer silent for too long: its connection ended then, or waited for a join without a subflow, and the peer
    /// heard of it by a reset.
    pub fn gave_up_at(&self, id: &str) -> u64 {
        let of = |kind: &str| self.rows("events", &[("connection", id), ("kind", kind)]);
        let closed = of("connection-closed");
        let silent = closed
            .iter()
            .filter(|row| ["timed-out", "unreachable"].contains(&&*row["detail"]));
        if let Some(first) = silent.map(|row| number(row, "time_ns")).min() {
            return first;
        }
        let reset: Vec<&str> = closed
            .iter()
            .filter(|row| row["detail"] == "reset")
            .map(|row| &*row["host"])
            .collect();
        let alone = of("subflow-closed");
        let others = alone.iter().filter(|row| !reset.contains(&&*row["host"]));
        others.map(|row| number(row, "time_ns")).max().unwrap_or(0)
    }

    /// Whether a side's last FIN found its peer's TIME-WAIT over and was reset: every acknowledgement of it was lost for a minute.
    fn outlived(&self, id: &str) -> bool {
        let closed = self.rows(
            "events",
            &[("connection", id), ("kind", "connection-closed")],
        );
        let at = |reason: &str| {
            let row = closed.iter().find(|row| row["detail"] == reason)?;
            Some(number(row, "time_ns"))
        };
        matches!((at("finished"), at("reset")), (Some(finished), Some(reset)) if reset >= finished + TIME_WAIT)
    }

    /// Whether a link lost enough packets for all repetitions of one, in bursts that packets alone end: a sender with one segment in flight
    /// sends it sixteen times (RETRIES), and may never see the other state.
    fn lost_in_bursts(&self) -> bool {
        let sides = self.plan.links.iter().enumerate();
        let mut sides = sides.flat_map(|(index, link)| {
            [("forward", &link.forward), ("backward", &link.backward)]
                .map(|(direction, side)| (index, direction, side))
        });
        sides.any(|(index, direction, side)| {
            let bursts = matches!(&side.loss, Loss::GilbertElliott(chain) if chain.bad_loss > 0.7);
            let link = index.to_string();
            let rows = self.rows("link_ends", &[("link", &link), ("direction", direction)]);
            bursts && rows.iter().any(|row| number(row, "lost_packets") > RETRIES)
        })
    }

    /// Whether bytes arrived in the last tenth of the run.
    fn goes_on(&self, id: &str) -> bool {
        let late = self.plan.duration_ns / 10 * 9;
        ["client", "server"].into_iter().any(|side| {
            let samples = self.rows("connections", &[("connection", id), ("side", side)]);
            let delivered = |row: &&BTreeMap<String, String>| number(row, "delivered_bytes");
            let early = samples.iter().filter(|row| number(row, "time_ns") < late);
            early.map(delivered).max() < samples.iter().map(delivered).max()
        })
    }

    /// Whether a side ended when it had no subflow: for so long (Linux `net.mptcp.close_timeout`), or at once where its application closes or
    /// has closed (`__mptcp_close`, `__mptcp_close_ssk`).
    fn ended_without_subflows(&self, timeout: u64, id: &str, side: &str) -> bool {
        let times = |kind| {
            let matching = [("connection", id), ("kind", kind), ("host", side)];
            let rows = self.rows("events", &matching).into_iter();
            rows.map(|row| number(row, "time_ns")).collect::<Vec<_>>()
        };
        let closed = times("subflow-closed");
        let ended = times("connection-closed");
        let (Some(&last), Some(&end)) = (closed.last(), ended.last()) else {
            return false;
        };
        closed.len() >= times("subflow-established").len() && (last..=last + timeout).contains(&end)
    }

    pub fn established(&self, id: &str, side: &str) -> bool {
        let matching = [
            ("connection", id),
            ("kind", "connection-established"),
            ("host", side),
        ];
        !self.rows("events", &matching).is_empty()
    }

    /// Over a dead network a side ends by giving up what nobody acknowledges; one that waits for the peer's bytes waits on unless it
    /// probes (RFC 9293 section 3.8.4: keep-alives are optional and off by default).
    fn gave_up(
        &self,
        application: &Application,
        id: &str,
        side: &str,
        end: Option<&str>,
    ) -> Result<(), String> {
        let samples = self.rows("connections", &[("connection", id), ("side", side)]);
        let unsent = samples
            .last()
            .map_or(0, |sample| number(sample, "send_queue_bytes"));
        let node = if side == "client" { CLIENT } else { SERVER };
        let probes = stack_of(self.plan, application, node)
            .config
            .keepalive
            .is_some();
        let plausible = match end {
            None => unsent == 0 && !(probes && self.established(id, side)),
            Some("finished" | "timed-out" | "unreachable") => true,
            // The peer may have lost patience before the network died, and said so.
            Some("reset") => {
                let timeout = stack_of(self.plan, application, node)
                    .config
                    .close_timeout_ns;
                self.limit(application).is_some()
                    || self.proxied()
                    || self.ended_without_subflows(timeout, id, side)
            }
            Some(_) => false,
        };
        require(plausible, || {
            format!("the {side} ended as {end:?} with {unsent} bytes queued over a dead network")
        })
    }

    pub fn reason(&self, id: &str, side: &str) -> Option<String> {
        let matching = [
            ("connection", id),
            ("kind", "connection-closed"),
            ("host", side),
        ];
        let rows = self.rows("events", &matching);
        rows.first().map(|row| row["detail"].clone())
    }

    /// What each side has to receive: client, server.
    pub fn written(
        &self,
        index: usize,
        application: &Application,
        id: &str,
        requests: u64,
    ) -> [u64; 2] {
        let directed = |reverse: bool, bytes: u64| if reverse { [bytes, 0] } else { [0, bytes] };
        match application.work {
            Work::Bulk(Bulk {
                size_bytes: Some(size),
                duration_ns: None,
                reverse_bytes: Some(back),
                ..
            }) => [back, size],
            Work::Bulk(Bulk {
                size_bytes: Some(size),
                duration_ns: None,
                reverse,
                ..
            }) => directed(reverse, size),
            Work::Bulk(Bulk { reverse, .. }) | Work::Stream(Stream { reverse, .. }) => {
                let side = if reverse { "server" } else { "client" };
                directed(reverse, self.sent_up_to(id, side))
            }
            Work::RequestResponse(RequestResponse {
                count,
                request_bytes,
                response_bytes,
                ..
            }) => [count * response_bytes, count * request_bytes],
            Work::Fetch(Fetch {
                size_bytes, count, ..
            }) if application.transport.is_quic() => [count * size_bytes, count * FILE_REQUEST],
            Work::Fetch(Fetch {
                size_bytes,
                count,
                tls,
                ..
            }) => {
                // The handshake's bytes from the server and from the client, and those of a record besides its plaintext.
                let (hellos, record) = match tls {
                    None => ([0, 0], 0),
                    Some(Tls::V12) => ([1_229 + 51, 134 + 93], 29),
                    Some(Tls::V13) => ([1_274, 194 + 64], 22),
                };
                let sealed = |bytes: u64| bytes + bytes.div_ceil(1 << 14) * record;
                let answer = sealed(response_head(size_bytes) + size_bytes);
                [
                    hellos[0] + count * answer,
                    hellos[1] + count * sealed(REQUEST_HEAD),
                ]
            }
            Work::Video(_) => {
                let own = index.to_string();
                let chunks = self.rows("chunks", &[("application", &own)]);
                let answers = chunks.iter().map(|row| number(row, "bytes"));
                let answers = answers.map(|bytes| response_head(bytes) + bytes);
                let requests = chunks.iter().map(|row| {
                    let path = format!("/{}/{}", row["representation"], row["index"]);
                    REQUEST_HEAD - FILE.len() as u64 + path.len() as u64
                });
                [answers.sum(), requests.sum()]
            }
            // Random scenarios have none.
            Work::Page(_) => [0; 2],
            Work::PingPong(PingPong { bytes, .. }) => [requests * bytes; 2],
            Work::Messages(Messages { bytes, reverse, .. }) => directed(reverse, requests * bytes),
            // Random plans have no relays and no tunnels.
            Work::Relay(_) | Work::Tunnel(_) => [0; 2],
            Work::Ping(_) | Work::Cbr(_) | Work::OnOff(_) => [0; 2],
        }
    }

    /// The end of the stream as its segments show it.
    fn sent_up_to(&self, id: &str, side: &str) -> u64 {
        let rows = self.rows("segments", &[("connection", id), ("side", side)]);
        let ends = rows.iter().filter(|row| row["payload_bytes"] != "0");
        ends.map(|row| number(row, "dsn") + number(row, "payload_bytes"))
            .max()
            .unwrap_or(0)
    }
}

/// A request of HTTP/0.9.
const FILE_REQUEST: u64 = "GET /file\r\n".len() as u64;

const FILE: &str = "/file";

/// `GET /file HTTP/1.1`, Host, User-Agent, Accept.
const REQUEST_HEAD: u64 = 20 + 14 + 22 + 13 + 2;

/// `HTTP/1.1 200 OK`, Server, Content-Type, Content-Length.
fn response_head(size: u64) -> u64 {
    17 + 18 + 40 + 16 + size.to_string().len() as u64 + 2 + 2
}

pub fn number(row: &BTreeMap<String, String>, column: &str) -> u64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column} of {row:?} is no count"))
}
