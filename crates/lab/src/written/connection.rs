//! A stack that is written elsewhere behind the calls of `polypath_transport::quic::Connection`, as the lab drives one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use polypath_transport::quic::Codepoint;
use polypath_transport::{Accept, CloseReason, Event, EventKind, NEVER, Nanos, PathChoice, Tuple};
use rand_pcg::rand_core::RngCore;

use super::interface::{Beginning, Content, News, Polled, WrittenEnd, WrittenStack};
use super::lanes::Lanes;
use crate::lane::Lane;
use crate::names::Names;
use crate::other_stack::{Departure, OtherConnection, OtherStack};

/// One that makes connections for the lab.
pub(super) struct Stack {
    pub stack: Arc<dyn WrittenStack>,
    /// Bytes that may be unacknowledged, and unread.
    pub windows: (u64, u64),
}

impl Stack {
    fn begin(
        &self,
        mut host: Accept,
        tuple: Tuple,
        names: Names,
        client: bool,
        now: Nanos,
    ) -> Box<dyn OtherConnection> {
        let paths = PathChoice::new(&host, tuple, client);
        let backup = client && paths.starts_as_backup();
        let end = self.stack.begin(Beginning {
            client,
            tuple,
            seed: host.random.next_u64(),
            backup,
            content: Content(names),
            now,
        });
        let mut lanes = Lanes::new(host.config.initial_window);
        lanes.add(Some(0), tuple, backup);
        let mut connection = Connection {
            end,
            names,
            client,
            moved: None,
            windows: self.windows,
            lanes,
            paths,
            streams: Streams::default(),
            standing: Standing {
                deadline: NEVER,
                ..Standing::default()
            },
            ended: None,
            events: Vec::new(),
            secrets: Vec::new(),
            out: Vec::new(),
        };
        if client {
            connection.follow(now);
        }
        Box::new(connection)
    }
}

impl OtherStack for Stack {
    fn connect(
        &self,
        host: Accept,
        tuple: Tuple,
        names: Names,
        now: Nanos,
    ) -> Box<dyn OtherConnection> {
        self.begin(host, tuple, names, true, now)
    }

    fn accept(&self, host: Accept, tuple: Tuple, names: Names) -> Box<dyn OtherConnection> {
        self.begin(host, tuple, names, false, 0)
    }
}

struct Connection {
    end: Box<dyn WrittenEnd>,
    names: Names,
    client: bool,
    /// The client's socket is bound to this address now, and to no other.
    moved: Option<IpAddr>,
    windows: (u64, u64),
    lanes: Lanes,
    paths: PathChoice,
    streams: Streams,
    standing: Standing,
    ended: Option<CloseReason>,
    events: Vec<Event>,
    secrets: Vec<String>,
    out: Vec<Departure>,
}

/// How the stack stands, as it told last.
#[derive(Default)]
struct Standing {
    established: bool,
    /// The peer is known to have the handshake behind it.
    confirmed: bool,
    multipath: bool,
    deadline: Nanos,
    unwritten: u64,
    idle: bool,
}

/// The streams as the application knows them.
#[derive(Default)]
struct Streams {
    /// What came since it was last asked for, by stream; a stream at its end is here with nothing.
    arrivals: BTreeMap<u64, u64>,
    /// Those that the peer sends on, and whether everything of them was read.
    incoming: BTreeMap<u64, bool>,
    /// Bytes read so far.
    read: BTreeMap<u64, u64>,
    /// Those that this side may send on, and whether it said that nothing follows.
    outgoing: BTreeMap<u64, bool>,
    /// The one that the plain calls of a byte stream write to.
    own: Option<u64>,
    closed: bool,
}

impl Connection {
    fn event(&mut self, kind: EventKind, at: Nanos) {
        self.events.push(Event { at, kind });
    }

    /// Takes note of what happened, and does what an application does then.
    fn follow(&mut self, now: Nanos) {
        loop {
            let polled = self.end.poll(now);
            self.take(polled, now);
            if !(self.manage_paths(now) | self.finish_if_done(now)) {
                break;
            }
        }
    }

    fn take(&mut self, polled: Polled, now: Nanos) {
        self.standing = Standing {
            multipath: polled.multipath,
            deadline: polled.deadline,
            unwritten: polled.unwritten,
            idle: polled.idle,
            ..self.standing
        };
        for news in polled.news {
            self.hear(news, now);
        }
        for (tuple, bytes, ecn) in polled.datagrams {
            self.out.push(Departure {
                lane: self.lanes.between(tuple).unwrap_or(0),
                tuple,
                bytes,
                ecn,
            });
        }
        for figures in &polled.paths {
            let news = self.lanes.refresh(figures).into_iter();
            self.events.extend(news.map(|kind| Event { at: now, kind }));
        }
        if self.ended.is_some() {
            self.standing.deadline = NEVER;
        }
    }

    fn hear(&mut self, news: News, now: Nanos) {
        match news {
            News::Established if !self.standing.established => {
                self.standing.established = true;
                self.event(EventKind::ConnectionEstablished, now);
                let tuple = self.lanes.all()[0].tuple;
                self.establish(0, tuple, now);
            }
            News::Established => {}
            News::Confirmed => self.standing.confirmed = true,
            News::Closed(reason) => self.end(reason, now),
            News::Opened(stream) => {
                self.streams.incoming.entry(stream).or_insert(false);
                // The second lowest bit says who may send (RFC 9000 section 2.1).
                if stream & 2 == 0 {
                    self.streams.outgoing.entry(stream).or_insert(false);
                    if self.streams.closed {
                        self.say_end(stream);
                    }
                }
            }
            News::Came(stream, bytes) => {
                let read = self.streams.read.entry(stream).or_default();
                self.names.came(stream, *read, &bytes);
                *read += bytes.len() as u64;
                *self.streams.arrivals.entry(stream).or_default() += bytes.len() as u64;
            }
            News::Ended(stream) => {
                self.streams.arrivals.entry(stream).or_default();
                self.streams.incoming.insert(stream, true);
            }
            News::PathOpen(id, tuple) => self.establish(id, tuple, now),
            News::PathClosed(id) => {
                if let Some(lane) = self.lanes.position(id)
                    && self.lanes.close(lane, now)
                {
                    self.event(EventKind::SubflowClosed(lane), now);
                }
            }
            News::PathBackup(id, backup) => {
                if let Some(lane) = self.lanes.position(id) {
                    self.note_backup(lane, backup, now);
                }
            }
            News::Secret(line) => self.secrets.push(line),
        }
    }

    fn establish(&mut self, id: u64, tuple: Tuple, now: Nanos) {
        let Some(lane) = self.lanes.establish(id, tuple, now) else {
            return;
        };
        if self.client && id == 0 && self.lanes.all()[lane].backup {
            self.end.set_backup(id, true, now);
        }
        self.event(EventKind::SubflowEstablished(lane), now);
    }

    fn note_backup(&mut self, subflow: usize, backup: bool, now: Nanos) {
        if self.lanes.set_backup(subflow, backup) {
            self.event(EventKind::PriorityChanged { subflow, backup }, now);
        }
    }

    fn change_backup(&mut self, lane: usize, backup: bool, now: Nanos) {
        if let Some(id) = self.lanes.all()[lane].id
            && self.end.set_backup(id, backup, now)
        {
            self.note_backup(lane, backup, now);
        }
    }

    /// Leaves a path. The stack keeps the last one.
    fn abandon(&mut self, lane: usize, now: Nanos) {
        let others = self.lanes.open().len() > 1;
        if let Some(id) = self.lanes.all()[lane].id.filter(|_| others) {
            self.end.abandon(id, now);
        }
    }

    /// Does what the path manager wants, as far as the stack lets it. Whether anything was done.
    fn manage_paths(&mut self, now: Nanos) -> bool {
        let ready = self.client && self.standing.confirmed && self.standing.multipath;
        if !ready || self.ended.is_some() {
            return false;
        }
        let wishes = self.paths.wishes(|| self.lanes.open(), now);
        let mut acted = !wishes.is_empty();
        for lane in wishes.abandon {
            self.abandon(lane, now);
        }
        for (lane, backup) in wishes.status {
            self.change_backup(lane, backup, now);
        }
        while let Some((address, remote, backup)) = self.paths.next() {
            let first = self.lanes.all()[0].tuple;
            let tuple = Tuple {
                remote,
                ..from(address, first)
            };
            if !self.end.open_path(tuple, backup, now) {
                break;
            }
            self.paths.opened();
            acted = true;
            self.lanes.add(None, tuple, backup);
        }
        acted
    }

    /// The client ends a connection on which both sides said everything.
    fn finish_if_done(&mut self, now: Nanos) -> bool {
        let said = self.streams.outgoing.values().all(|ended| *ended);
        let done = self.streams.closed && said && self.standing.idle && self.at_end();
        if !(self.client && done && self.ended.is_none() && self.standing.established) {
            return false;
        }
        self.end.close(now);
        self.end(CloseReason::Finished, now);
        true
    }

    fn end(&mut self, reason: CloseReason, now: Nanos) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(reason);
        self.lanes.end(now);
        self.paths.end();
        self.event(EventKind::ConnectionClosed(reason), now);
    }

    fn say_end(&mut self, stream: u64) {
        if let Some(ended) = self.streams.outgoing.get_mut(&stream)
            && !std::mem::replace(ended, true)
        {
            self.end.finish(stream);
        }
    }

    /// The stream of the plain calls: the client's first, on which the server answers; a server that begins opens one of its own.
    fn own_stream(&mut self) -> Option<u64> {
        if self.streams.own.is_none() {
            let answers = !self.client && self.streams.outgoing.contains_key(&0);
            self.streams.own = if answers { Some(0) } else { self.open(true) };
        }
        self.streams.own
    }
}

impl OtherConnection for Connection {
    fn receive(&mut self, tuple: Tuple, bytes: &[u8], ecn: Codepoint, now: Nanos) {
        if self.moved.is_some_and(|at| tuple.local.ip() != at) {
            return;
        }
        self.end.receive(tuple, bytes, ecn, now);
        self.follow(now);
    }

    fn departures(&mut self) -> Vec<Departure> {
        std::mem::take(&mut self.out)
    }

    fn take_secrets(&mut self) -> Vec<String> {
        std::mem::take(&mut self.secrets)
    }

    fn take_arrivals(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.streams.arrivals)
            .into_iter()
            .collect()
    }

    fn on_time(&mut self, now: Nanos) {
        if self.standing.deadline <= now {
            self.end.on_time(now);
        }
        self.follow(now);
    }

    fn next_deadline(&self) -> Nanos {
        self.standing.deadline.min(self.paths.wake())
    }

    fn events(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    fn established(&self) -> bool {
        self.standing.established
    }

    fn ended(&self) -> Option<CloseReason> {
        self.ended
    }

    fn multipath(&self) -> bool {
        self.standing.multipath
    }

    fn buffers(&self) -> (u64, u64) {
        self.windows
    }

    fn receive_window(&self) -> u64 {
        self.windows.1
    }

    fn send_queue(&self) -> (u64, u64) {
        (self.lanes.in_flight(), self.standing.unwritten)
    }

    fn open(&mut self, bidirectional: bool) -> Option<u64> {
        let stream = self.end.open(bidirectional)?;
        self.streams.outgoing.insert(stream, false);
        if bidirectional {
            self.streams.incoming.insert(stream, false);
        }
        Some(stream)
    }

    fn write_to(&mut self, stream: u64, bytes: u64, now: Nanos) {
        self.end.write(stream, bytes);
        self.follow(now);
    }

    fn write_last(&mut self, stream: u64, bytes: u64, now: Nanos) {
        self.end.write(stream, bytes);
        self.finish(stream, now);
    }

    fn set_priority(&mut self, stream: u64, priority: i32) {
        self.end.set_priority(stream, priority);
    }

    fn finish(&mut self, stream: u64, now: Nanos) {
        self.say_end(stream);
        self.follow(now);
    }

    fn stream_at_end(&self, stream: u64) -> bool {
        self.streams.incoming.get(&stream) == Some(&true)
    }

    fn write(&mut self, bytes: u64, now: Nanos) {
        if let Some(stream) = self.own_stream() {
            self.write_to(stream, bytes, now);
        }
    }

    fn cancel_writes(&mut self) -> u64 {
        self.streams.own.map_or(0, |stream| self.end.cancel(stream))
    }

    fn at_end(&self) -> bool {
        let incoming = &self.streams.incoming;
        let over = !incoming.is_empty() && incoming.values().all(|ended| *ended);
        self.ended.is_some() || over
    }

    /// Ends every stream that this side sends on. The client closes the connection when both sides have ended theirs.
    fn close(&mut self, now: Nanos) {
        self.streams.closed = true;
        if self.streams.own.is_none() && self.standing.established {
            self.own_stream();
        }
        let sending: Vec<u64> = self.streams.outgoing.keys().copied().collect();
        for stream in sending {
            self.say_end(stream);
        }
        self.follow(now);
    }

    /// An address of this host went away or came back. Its paths are abandoned as long as there are others.
    fn set_address_up(&mut self, address: IpAddr, up: bool, now: Nanos) {
        if !self.paths.set_up(address, up) {
            return;
        }
        if !up && self.standing.multipath {
            let open = self.lanes.open().into_iter();
            for (lane, _) in open.filter(|(_, tuple)| tuple.local.ip() == address) {
                self.abandon(lane, now);
            }
        }
        self.follow(now);
    }

    /// Changes whether paths from `address` are backups and tells the peer.
    fn set_backup(&mut self, address: IpAddr, backup: bool, now: Nanos) {
        self.paths.set_backup(address, backup);
        let open = self.lanes.open().into_iter();
        for (lane, _) in open.filter(|(_, tuple)| tuple.local.ip() == address) {
            self.change_backup(lane, backup, now);
        }
        self.follow(now);
    }

    /// Moves the client from one of its addresses to another (RFC 9000 section 9.2). An event says why it cannot.
    fn migrate(&mut self, address: IpAddr, to: IpAddr, now: Nanos) {
        let mut open = self.lanes.open().into_iter();
        let moving = open.find(|(_, tuple)| tuple.local.ip() == address);
        let Some((subflow, tuple)) = moving.filter(|_| self.client) else {
            return;
        };
        let next = from(to, tuple);
        let refused = if self.standing.multipath {
            Some("the stack opens another path instead")
        } else if !self.paths.is_up(to) {
            Some("the address is down")
        } else if !self.standing.confirmed {
            Some("the handshake is not confirmed")
        } else if !self.end.migrate(next, now) {
            Some("the stack cannot now")
        } else {
            None
        };
        if let Some(reason) = refused {
            return self.event(EventKind::MigrationRefused { subflow, reason }, now);
        }
        self.moved = Some(to);
        self.lanes.set_local(subflow, next.local);
        let address = next.local;
        self.event(EventKind::PathMigrated { subflow, address }, now);
        self.follow(now);
    }

    fn lanes(&self) -> usize {
        self.lanes.all().len()
    }

    fn path_id(&self, lane: usize) -> u64 {
        self.lanes.all()[lane].id.unwrap_or(lane as u64)
    }

    fn lane(&self, lane: usize) -> Lane<'_> {
        let lane = &self.lanes.all()[lane];
        Lane {
            tuple: lane.tuple,
            path: &lane.path,
            state: lane.state(),
            totals: lane.totals,
            out_of_order_bytes: 0,
            backup: lane.backup,
            established_at: lane.established_at,
            closed_at: lane.closed_at,
        }
    }
}

/// The addresses of a path of one's own: another address with the same port.
fn from(address: IpAddr, tuple: Tuple) -> Tuple {
    Tuple {
        local: (address, tuple.local.port()).into(),
        ..tuple
    }
}
