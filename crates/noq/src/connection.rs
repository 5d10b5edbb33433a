//! noq behind the calls of `polypath_transport::quic::Connection`, as the lab drives a connection.

use std::collections::BTreeMap;
use std::net::IpAddr;

use noq_proto::{ConnectionError, FourTuple, PathEvent, PathId, PathStatus, VarInt};
use polypath_transport::path::{Path, Totals};
use polypath_transport::{
    Accept, CloseReason, Event, EventKind, Nanos, PathChoice, Sessions, Tuple,
};

use crate::endpoint::{Arrival, Content, Departure, Endpoint, News};
use crate::lanes::Lanes;
use crate::settings::Settings;

/// One end of a connection, and the application of noq that it needs: one that opens paths as a path manager says.
pub struct Connection {
    endpoint: Endpoint,
    client: bool,
    /// The client's socket is bound to another address than at first, and to no other.
    moved: bool,
    /// Bytes that may be unacknowledged, and unread on a stream.
    windows: (u64, u64),
    lanes: Lanes,
    paths: PathChoice,
    streams: Streams,
    established: bool,
    /// The peer is known to have the handshake behind it.
    confirmed: bool,
    ended: Option<CloseReason>,
    events: Vec<Event>,
}

/// The streams as the application knows them.
#[derive(Default)]
struct Streams {
    /// What came since it was last asked for, by stream; a stream at its end is here with nothing.
    arrivals: BTreeMap<u64, u64>,
    /// Those that the peer sends on, and whether everything of them was read.
    incoming: BTreeMap<u64, bool>,
    /// The one that the plain calls of a byte stream write to.
    own: Option<u64>,
    closed: bool,
}

impl Connection {
    /// Opens a connection from `tuple.local` to `tuple.remote`.
    pub fn connect(
        settings: &Settings,
        host: Accept,
        tuple: Tuple,
        content: Box<dyn Content>,
        now: Nanos,
    ) -> Self {
        let paths = PathChoice::new(&host, tuple, true);
        let kept = sessions(&host);
        let endpoint = Endpoint::client(settings, tuple, host.random, content, kept, now);
        let mut connection = Self::new(settings, endpoint, paths, true);
        let first = connection.lanes.add(PathId::ZERO, tuple);
        let backup = connection.paths.starts_as_backup();
        connection.lanes.set_backup(first, backup);
        connection.follow(now);
        connection
    }

    /// A server's end, to which a client's first datagram is to be handed next.
    pub fn accept(
        settings: &Settings,
        host: Accept,
        tuple: Tuple,
        content: Box<dyn Content>,
    ) -> Self {
        let paths = PathChoice::new(&host, tuple, false);
        let kept = sessions(&host);
        let endpoint = Endpoint::server(settings, tuple.local, host.random, content, kept);
        let mut connection = Self::new(settings, endpoint, paths, false);
        connection.lanes.add(PathId::ZERO, tuple);
        connection
    }

    fn new(settings: &Settings, endpoint: Endpoint, paths: PathChoice, client: bool) -> Self {
        Self {
            endpoint,
            client,
            moved: false,
            windows: (settings.send_window, settings.receive_window),
            lanes: Lanes::default(),
            paths,
            streams: Streams::default(),
            established: false,
            confirmed: false,
            ended: None,
            events: Vec::new(),
        }
    }

    pub fn receive(&mut self, arrival: Arrival<'_>, now: Nanos) {
        // Else noq would move back to where its socket was.
        if self.moved && arrival.tuple.local.ip() != self.endpoint.tuple().local.ip() {
            return;
        }
        self.endpoint.receive(arrival, now);
        self.follow(now);
    }

    pub fn on_time(&mut self, now: Nanos) {
        if self.endpoint.deadline() <= now {
            self.endpoint.on_time(now);
        }
        self.follow(now);
    }

    pub fn next_deadline(&self) -> Nanos {
        self.endpoint.deadline().min(self.paths.wake())
    }

    /// Datagrams to be sent, in order.
    pub fn take(&mut self) -> Vec<Departure> {
        self.endpoint.take()
    }

    /// What happened since this was last emptied.
    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    /// Lines of a key log since this was last asked; both sides give the same.
    pub fn take_secrets(&mut self) -> Vec<String> {
        self.endpoint.take_secrets()
    }

    pub fn established(&self) -> bool {
        self.established
    }

    pub fn ended(&self) -> Option<CloseReason> {
        self.ended
    }

    /// Both sides speak RFC 10069.
    pub fn multipath(&self) -> bool {
        self.lanes.multipath()
    }

    /// The paths so far, in the order in which this side came to know them.
    pub fn lanes(&self) -> &[Lane] {
        self.lanes.all()
    }

    /// What applications may leave unacknowledged, and unread.
    pub fn buffers(&self) -> (u64, u64) {
        self.windows
    }

    /// What the peer may still send on a stream: what comes is read at once.
    pub fn receive_window(&self) -> u64 {
        self.windows.1
    }

    /// Bytes in flight, and bytes written that noq has had no room for.
    pub fn send_queue(&self) -> (u64, u64) {
        (self.lanes.in_flight(), self.endpoint.unwritten())
    }

    /// In-order bytes that came by stream since this was last asked. They are read.
    pub fn take_arrivals(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.streams.arrivals)
            .into_iter()
            .collect()
    }

    /// Opens a stream, if the peer admits another one.
    pub fn open(&mut self, bidirectional: bool) -> Option<u64> {
        let stream = self.endpoint.open(bidirectional)?;
        if bidirectional {
            self.streams.incoming.insert(stream, false);
        }
        Some(stream)
    }

    pub fn write_to(&mut self, stream: u64, bytes: u64, now: Nanos) {
        self.endpoint.write(stream, bytes);
        self.flush(now);
    }

    pub fn write_last(&mut self, stream: u64, bytes: u64, now: Nanos) {
        self.endpoint.write(stream, bytes);
        self.finish(stream, now);
    }

    pub fn set_priority(&mut self, stream: u64, priority: i32) {
        self.endpoint.set_priority(stream, priority);
    }

    pub fn finish(&mut self, stream: u64, now: Nanos) {
        self.endpoint.finish(stream);
        self.flush(now);
    }

    /// Whether a stream's end was reached and everything was read.
    pub fn stream_at_end(&self, stream: u64) -> bool {
        self.streams.incoming.get(&stream) == Some(&true)
    }

    /// The stream of the plain calls: the client's first, on which the server answers; a server that begins opens one of its own.
    fn own_stream(&mut self) -> Option<u64> {
        if self.streams.own.is_none() {
            self.streams.own = if !self.client && self.endpoint.is_sending(0) {
                Some(0)
            } else {
                self.open(true)
            };
        }
        self.streams.own
    }

    /// Writes to the connection's one stream.
    pub fn write(&mut self, bytes: u64, now: Nanos) {
        if let Some(stream) = self.own_stream() {
            self.write_to(stream, bytes, now);
        }
    }

    /// Takes back what was written to the one stream and noq has had no room for; returns how much.
    pub fn cancel_writes(&mut self) -> u64 {
        self.streams
            .own
            .map_or(0, |stream| self.endpoint.cancel(stream))
    }

    /// The peer ended a stream, everything was read, and no other is open.
    pub fn at_end(&self) -> bool {
        let incoming = &self.streams.incoming;
        let over = !incoming.is_empty() && incoming.values().all(|ended| *ended);
        self.ended.is_some() || over
    }

    /// Ends every stream that this side sends on. The client closes the connection when both sides have ended theirs.
    pub fn close(&mut self, now: Nanos) {
        self.streams.closed = true;
        if self.streams.own.is_none() && self.established {
            self.own_stream();
        }
        let sending: Vec<u64> = self.endpoint.sending().collect();
        for stream in sending {
            self.endpoint.finish(stream);
        }
        self.flush(now);
    }

    /// An address of this host went away or came back. Its paths are abandoned as long as there are others.
    pub fn set_address_up(&mut self, address: IpAddr, up: bool, now: Nanos) {
        if !self.paths.set_up(address, up) {
            return;
        }
        if !up {
            let lost = self
                .lanes
                .open()
                .filter(|lane| lane.tuple.local.ip() == address);
            let lost: Vec<PathId> = lost.map(|lane| lane.path_id).collect();
            for path in lost {
                self.abandon(path, now);
            }
        }
        self.flush(now);
    }

    /// Changes whether paths from `address` are backups and tells the peer.
    pub fn set_backup(&mut self, address: IpAddr, backup: bool, now: Nanos) {
        self.paths.set_backup(address, backup);
        let own = self
            .lanes
            .open()
            .filter(|lane| lane.tuple.local.ip() == address);
        let own: Vec<PathId> = own.map(|lane| lane.path_id).collect();
        for path in own {
            self.set_status(path, backup, now);
        }
        self.flush(now);
    }

    /// Moves the client from one of its addresses to another (RFC 9000 section 9.2). An event says why it cannot.
    pub fn migrate(&mut self, from: IpAddr, to: IpAddr, now: Nanos) {
        let mut open = self.lanes.open();
        let moving = open.find(|lane| lane.tuple.local.ip() == from);
        let Some((id, port)) = moving.map(|lane| (lane.path_id, lane.tuple.local.port())) else {
            return;
        };
        drop(open);
        let Some(subflow) = self.lanes.position(id).filter(|_| self.client) else {
            return;
        };
        let refused = if self.multipath() {
            Some("noq opens another path instead")
        } else if !self.paths.is_up(to) {
            Some("the address is down")
        } else if !self.confirmed {
            Some("the handshake is not confirmed")
        } else {
            None
        };
        if let Some(reason) = refused {
            return self.event(EventKind::MigrationRefused { subflow, reason }, now);
        }
        self.moved = true;
        let address = (to, port).into();
        self.lanes.set_local(subflow, address);
        self.event(EventKind::PathMigrated { subflow, address }, now);
        self.endpoint.move_to(to, now);
        self.follow(now);
    }

    fn abandon(&mut self, path: PathId, now: Nanos) {
        let at = self.endpoint.at(now);
        if let Some(connection) = self.endpoint.connection() {
            // noq keeps the last path.
            let _ = connection.close_path(at, path, VarInt::from_u32(0));
        }
    }

    fn set_status(&mut self, path: PathId, backup: bool, now: Nanos) {
        let status = status(backup);
        let Some(connection) = self.endpoint.connection() else {
            return;
        };
        let changed = connection.set_path_status(path, status);
        if changed.is_ok_and(|before| before != status)
            && let Some(subflow) = self.lanes.position(path)
        {
            self.lanes.set_backup(subflow, backup);
            self.event(EventKind::PriorityChanged { subflow, backup }, now);
        }
    }

    fn event(&mut self, kind: EventKind, at: Nanos) {
        self.events.push(Event { at, kind });
    }

    fn flush(&mut self, now: Nanos) {
        self.endpoint.flush(now);
        self.follow(now);
    }

    /// Takes note of what happened, and does what an application of noq does then.
    fn follow(&mut self, now: Nanos) {
        loop {
            let news = self.endpoint.news();
            let quiet = news.is_empty();
            for each in news {
                self.hear(each, now);
            }
            let acted = self.manage_paths(now) | self.finish_if_done(now);
            if acted {
                self.endpoint.flush(now);
            }
            if quiet && !acted {
                break;
            }
        }
        if let Some(connection) = self.endpoint.connection() {
            let news = self.lanes.refresh(connection).into_iter();
            self.events.extend(news.map(|kind| Event { at: now, kind }));
        }
    }

    fn hear(&mut self, news: News, now: Nanos) {
        match news {
            News::Established => {
                self.established = true;
                self.event(EventKind::ConnectionEstablished, now);
                self.establish(PathId::ZERO, now);
            }
            News::Confirmed => self.confirmed = true,
            News::Lost(error) => self.end(reason(&error), now),
            News::Opened(stream) => {
                self.streams.incoming.insert(stream, false);
                if self.streams.closed {
                    self.endpoint.finish(stream);
                    self.endpoint.flush(now);
                }
            }
            News::Came(stream, bytes) => *self.streams.arrivals.entry(stream).or_default() += bytes,
            News::Ended(stream) => {
                self.streams.arrivals.entry(stream).or_default();
                self.streams.incoming.insert(stream, true);
            }
            News::Acknowledged(_) => {}
            News::Path(event) => self.on_path_event(event, now),
        }
    }

    fn on_path_event(&mut self, event: PathEvent, now: Nanos) {
        match event {
            PathEvent::Established { id, .. } => self.establish(id, now),
            PathEvent::Abandoned { id, .. } => {
                if let Some(lane) = self.lanes.position(id) {
                    self.lanes.close(lane, now);
                    self.event(EventKind::SubflowClosed(lane), now);
                }
            }
            PathEvent::Discarded { id, path_stats, .. } => self.lanes.discarded(id, &path_stats),
            // noq leaves it to the application whether it does as the peer asks.
            PathEvent::RemoteStatus { id, status, .. } => {
                self.set_status(id, status == PathStatus::Backup, now);
            }
            _ => {}
        }
    }

    fn establish(&mut self, id: PathId, now: Nanos) {
        let local = self.endpoint.tuple().local;
        let Some(connection) = self.endpoint.connection() else {
            return;
        };
        let Some(lane) = self.lanes.established(connection, id, local, now) else {
            return;
        };
        if self.client && self.lanes.all()[lane].backup {
            // Nothing to be told over one path.
            let _ = connection.set_path_status(id, PathStatus::Backup);
        }
        self.event(EventKind::SubflowEstablished(lane), now);
    }

    /// Does what the path manager wants, as far as noq lets it. Whether anything was done.
    fn manage_paths(&mut self, now: Nanos) -> bool {
        if !self.client || !self.confirmed || self.ended.is_some() || !self.multipath() {
            return false;
        }
        let wishes = self.paths.wishes(|| self.lanes.numbered(), now);
        let mut acted = !wishes.is_empty();
        let id = |lanes: &Lanes, lane: usize| lanes.all()[lane].path_id;
        for lane in wishes.abandon {
            self.abandon(id(&self.lanes, lane), now);
        }
        for (lane, backup) in wishes.status {
            self.set_status(id(&self.lanes, lane), backup, now);
        }
        let at = self.endpoint.at(now);
        let local = self.endpoint.tuple().local;
        while let Some((address, remote, backup)) = self.paths.next() {
            let path = FourTuple::new(remote, Some(address));
            let Some(connection) = self.endpoint.connection() else {
                break;
            };
            // noq does not tell the peer of the status that a path is opened with: it is changed once the path is there.
            let opened = connection.open_path(path, PathStatus::Available, at);
            let Ok(id) = opened else {
                // noq asks the peer for what is missing. The pair stays wanted.
                break;
            };
            self.paths.opened();
            acted = true;
            let local = (address, local.port()).into();
            let lane = self.lanes.add(id, Tuple { local, remote });
            self.lanes.set_backup(lane, backup);
        }
        acted
    }

    /// The client ends a connection on which both sides said everything.
    fn finish_if_done(&mut self, now: Nanos) -> bool {
        let done = self.streams.closed && self.at_end() && self.endpoint.sending().next().is_none();
        if !(self.client && done && self.ended.is_none() && self.established) {
            return false;
        }
        self.endpoint.close(now);
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
}

fn status(backup: bool) -> PathStatus {
    if backup {
        PathStatus::Backup
    } else {
        PathStatus::Available
    }
}

fn reason(error: &ConnectionError) -> CloseReason {
    match error {
        ConnectionError::ApplicationClosed(close) if close.error_code == VarInt::from_u32(0) => {
            CloseReason::Finished
        }
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 0 => {
            CloseReason::Finished
        }
        ConnectionError::TimedOut => CloseReason::TimedOut,
        ConnectionError::Reset => CloseReason::Reset,
        _ => CloseReason::Aborted,
    }
}

/// A path as a recording has it.
pub struct Lane {
    pub path_id: PathId,
    pub tuple: Tuple,
    /// What noq tells of it: windows in packets of the path's MTU, smoothed RTT.
    pub path: Path,
    /// UDP payload bytes: noq does not tell what streams a path carried.
    pub totals: Totals,
    pub backup: bool,
    pub established_at: Option<Nanos>,
    pub closed_at: Option<Nanos>,
}

impl Lane {
    /// The path id, which both ends know.
    pub fn id(&self) -> u64 {
        // noq shows the number in this way only.
        let shown = self.path_id.to_string();
        shown.parse().expect("a path id is shown as its number")
    }

    pub fn state(&self) -> &'static str {
        match (self.established_at, self.closed_at) {
            (_, Some(_)) => "abandoned",
            (None, None) => "validating",
            (Some(_), None) => "established",
        }
    }
}

/// Where a host keeps what is to be resumed, if it resumes anything.
fn sessions(host: &Accept) -> Option<Sessions> {
    host.config.resumption.then(|| host.sessions.clone())
}
