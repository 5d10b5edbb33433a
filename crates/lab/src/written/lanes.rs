//! The paths of a connection, as a stack that is written elsewhere reports them.

use std::net::SocketAddr;

use polypath_transport::path::{Path, Totals};
use polypath_transport::{EventKind, Nanos, Open, Tuple};

use super::interface::Figures;

/// UDP payload that a path begins with (RFC 9000 section 14.1).
const FIRST_DATAGRAM: u32 = 1200;

/// A path as a recording has it.
pub(super) struct Lane {
    /// Absent until the stack told it.
    pub id: Option<u64>,
    pub tuple: Tuple,
    pub path: Path,
    /// UDP payload bytes: such a stack does not tell what streams a path carried.
    pub totals: Totals,
    pub backup: bool,
    pub established_at: Option<Nanos>,
    pub closed_at: Option<Nanos>,
    lost: u64,
}

impl Lane {
    pub fn state(&self) -> &'static str {
        match (self.established_at, self.closed_at) {
            (_, Some(_)) => "abandoned",
            (None, None) => "validating",
            (Some(_), None) => "established",
        }
    }
}

pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// Of the congestion window, in packets: shown until the stack tells one.
    first_window: u32,
}

impl Lanes {
    pub fn new(first_window: u32) -> Self {
        Self {
            lanes: Vec::new(),
            first_window,
        }
    }

    pub fn all(&self) -> &[Lane] {
        &self.lanes
    }

    /// The open path of that id, or else the last one that had it.
    pub fn position(&self, id: u64) -> Option<usize> {
        let with = |lane: &Lane| lane.id == Some(id);
        let open = |lane: &Lane| with(lane) && lane.closed_at.is_none();
        let mut lanes = self.lanes.iter();
        lanes
            .position(open)
            .or_else(|| self.lanes.iter().rposition(with))
    }

    /// The open path between two addresses, or else the last one that was.
    pub fn between(&self, tuple: Tuple) -> Option<usize> {
        let of = |lane: &Lane| lane.tuple == tuple;
        let open = |lane: &Lane| of(lane) && lane.closed_at.is_none();
        let mut lanes = self.lanes.iter();
        lanes
            .position(open)
            .or_else(|| self.lanes.iter().rposition(of))
    }

    /// Those that are not closed, with their numbers among all.
    pub fn open(&self) -> Vec<Open> {
        let all = self.lanes.iter().enumerate();
        all.filter(|(_, lane)| lane.closed_at.is_none())
            .map(|(number, lane)| (number, lane.tuple))
            .collect()
    }

    pub fn add(&mut self, id: Option<u64>, tuple: Tuple, backup: bool) -> usize {
        let mut path = Path::new(FIRST_DATAGRAM, self.first_window);
        path.backup = backup;
        self.lanes.push(Lane {
            id,
            tuple,
            path,
            totals: Totals::default(),
            backup,
            established_at: None,
            closed_at: None,
            lost: 0,
        });
        self.lanes.len() - 1
    }

    /// Data may be sent on a path. The number, if that is new: of the one that was asked for between these addresses, or of one that the
    /// peer opened.
    pub fn establish(&mut self, id: u64, tuple: Tuple, now: Nanos) -> Option<usize> {
        let asked = |lane: &Lane| lane.id.is_none_or(|known| known == id) && lane.tuple == tuple;
        let open = |lane: &Lane| lane.closed_at.is_none() && (lane.id == Some(id) || asked(lane));
        let lane = match self.lanes.iter().position(open) {
            Some(lane) => lane,
            None => self.add(Some(id), tuple, false),
        };
        let known = &mut self.lanes[lane];
        known.id = Some(id);
        if known.established_at.is_some() {
            return None;
        }
        known.established_at = Some(now);
        known.path.established = true;
        Some(lane)
    }

    /// Whether it was open.
    pub fn close(&mut self, lane: usize, now: Nanos) -> bool {
        let lane = &mut self.lanes[lane];
        lane.path.established = false;
        let open = lane.closed_at.is_none();
        lane.closed_at.get_or_insert(now);
        open
    }

    /// The connection is over.
    pub fn end(&mut self, now: Nanos) {
        for lane in 0..self.lanes.len() {
            self.close(lane, now);
        }
    }

    /// Whether that is a change.
    pub fn set_backup(&mut self, lane: usize, backup: bool) -> bool {
        let lane = &mut self.lanes[lane];
        lane.path.backup = backup;
        std::mem::replace(&mut lane.backup, backup) != backup
    }

    pub fn set_local(&mut self, lane: usize, local: SocketAddr) {
        self.lanes[lane].tuple.local = local;
    }

    pub fn in_flight(&self) -> u64 {
        let each = self.lanes.iter();
        each.map(|lane| u64::from(lane.path.in_flight) * u64::from(lane.path.mss))
            .sum()
    }

    /// Takes over what the stack tells of a path now; gives what is news of it.
    pub fn refresh(&mut self, figures: &Figures) -> Vec<EventKind> {
        let mut news = Vec::new();
        let Some(index) = self.position(figures.path) else {
            return news;
        };
        let lane = &mut self.lanes[index];
        if let Some(address) = figures.remote.filter(|it| *it != lane.tuple.remote) {
            lane.tuple.remote = address;
            let subflow = index;
            news.push(EventKind::PathMigrated { subflow, address });
        }
        let path = &mut lane.path;
        path.mss = figures.mtu.max(1);
        let cwnd = packets(figures.cwnd, path.mss);
        // A stack counts each lost packet; its controller answers to the first of a round trip.
        let answered = figures.lost > lane.lost && cwnd < path.cwnd;
        news.extend(answered.then_some(EventKind::Loss(index)));
        lane.lost = figures.lost;
        path.cwnd = cwnd;
        path.srtt = figures.srtt;
        path.in_flight = packets(figures.in_flight, path.mss);
        path.acked = figures.sent.saturating_sub(figures.in_flight);
        lane.totals.sent = figures.sent;
        lane.totals.received = figures.received;
        lane.totals.retransmitted_segments = figures.lost;
        news
    }
}

/// Full packets that so many bytes are, the last one not full.
fn packets(bytes: u64, mss: u32) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(mss))).unwrap_or(u32::MAX)
}
