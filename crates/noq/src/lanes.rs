//! The paths of a connection, as noq reports them.

use std::net::SocketAddr;
use std::sync::Arc;

use noq_proto::{Connection, PathId, PathStats};
use polypath_transport::path::{INFINITE_SSTHRESH, Path, Totals};
use polypath_transport::{EventKind, Nanos, Open, Tuple};

use crate::connection::Lane;
use crate::meter::{Tally, tally};

/// UDP payload that a path begins with (RFC 9000 section 14.1).
const FIRST_DATAGRAM: u32 = 1200;
/// noq begins with this window where nothing else is said; shown until its statistics are there.
const FIRST_WINDOW: u32 = 10;

#[derive(Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Of the same paths: counts, and congestion events that were told.
    tallies: Vec<(Option<Arc<Tally>>, u64)>,
    multipath: bool,
}

impl Lanes {
    pub fn all(&self) -> &[Lane] {
        &self.lanes
    }

    pub fn multipath(&self) -> bool {
        self.multipath
    }

    pub fn position(&self, path: PathId) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.path_id == path)
    }

    /// Those that are not closed.
    pub fn open(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(|lane| lane.closed_at.is_none())
    }

    /// The same, with their numbers among all.
    pub fn numbered(&self) -> Vec<Open> {
        let all = self.lanes.iter().enumerate();
        all.filter(|(_, lane)| lane.closed_at.is_none())
            .map(|(number, lane)| (number, lane.tuple))
            .collect()
    }

    pub fn add(&mut self, path_id: PathId, tuple: Tuple) -> usize {
        self.lanes.push(Lane {
            path_id,
            tuple,
            path: Path::new(FIRST_DATAGRAM, FIRST_WINDOW),
            totals: Totals::default(),
            backup: false,
            established_at: None,
            closed_at: None,
        });
        self.tallies.push((None, 0));
        self.lanes.len() - 1
    }

    /// Data may be sent on a path from now on; nothing if that was known. A server learns of a path here.
    pub fn established(
        &mut self,
        connection: &Connection,
        id: PathId,
        local: SocketAddr,
        now: Nanos,
    ) -> Option<usize> {
        self.multipath |= connection.is_multipath_negotiated();
        let lane = match self.position(id) {
            Some(lane) => lane,
            None => {
                let path = connection.network_path(id).ok()?;
                let local = (path.local_ip().unwrap_or(local.ip()), local.port()).into();
                let remote = path.remote();
                self.add(id, Tuple { local, remote })
            }
        };
        let known = &mut self.lanes[lane];
        if known.established_at.is_some() {
            return None;
        }
        known.established_at = Some(now);
        known.path.established = true;
        Some(lane)
    }

    pub fn close(&mut self, lane: usize, now: Nanos) {
        let lane = &mut self.lanes[lane];
        lane.closed_at.get_or_insert(now);
        lane.path.established = false;
    }

    /// The connection is over.
    pub fn end(&mut self, now: Nanos) {
        for lane in 0..self.lanes.len() {
            self.close(lane, now);
        }
    }

    pub fn set_backup(&mut self, lane: usize, backup: bool) {
        self.lanes[lane].backup = backup;
        self.lanes[lane].path.backup = backup;
    }

    pub fn in_flight(&self) -> u64 {
        let tallies = self.tallies.iter().filter_map(|(tally, _)| tally.as_ref());
        tallies.map(|tally| tally.in_flight()).sum()
    }

    pub fn discarded(&mut self, id: PathId, stats: &PathStats) {
        if let Some(lane) = self.position(id) {
            self.lanes[lane].totals = totals(stats);
        }
    }

    /// The client sends from another address of its own.
    pub fn set_local(&mut self, lane: usize, local: SocketAddr) {
        self.lanes[lane].tuple.local = local;
    }

    /// Takes over what noq tells now; gives what is news of it: losses that a controller answered to, and addresses of the peer.
    pub fn refresh(&mut self, connection: &mut Connection) -> Vec<EventKind> {
        let mut news = Vec::new();
        for (index, (lane, (tally_of, events))) in
            self.lanes.iter_mut().zip(&mut self.tallies).enumerate()
        {
            let Some(stats) = connection.path_stats(lane.path_id) else {
                continue;
            };
            if let Ok(path) = connection.network_path(lane.path_id) {
                let address = path.remote();
                if std::mem::replace(&mut lane.tuple.remote, address) != address {
                    news.push(EventKind::PathMigrated {
                        subflow: index,
                        address,
                    });
                }
            }
            lane.totals = totals(&stats);
            let path = &mut lane.path;
            path.mss = u32::from(stats.current_mtu);
            let cwnd = packets(stats.cwnd, path.mss);
            // noq counts each lost packet; its controller answers to the first of a round trip.
            let answered = stats.congestion_events > *events && cwnd < path.cwnd;
            news.extend(answered.then_some(EventKind::Loss(index)));
            *events = stats.congestion_events;
            path.cwnd = cwnd;
            path.srtt = stats.rtt.as_nanos() as Nanos;
            let Some(controller) = connection.congestion_state(lane.path_id) else {
                continue;
            };
            let threshold = controller.metrics().ssthresh;
            let threshold = threshold.filter(|bytes| *bytes < u64::from(u32::MAX));
            path.ssthresh = threshold.map_or(INFINITE_SSTHRESH, |bytes| packets(bytes, path.mss));
            if tally_of.is_none() {
                *tally_of = tally(controller);
            }
            if let Some(tally) = tally_of {
                path.in_flight = packets(tally.in_flight(), path.mss);
                path.acked = tally.acknowledged();
            }
        }
        news
    }
}

/// Full packets that so many bytes are, the last one not full.
fn packets(bytes: u64, mss: u32) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(mss.max(1)))).unwrap_or(u32::MAX)
}

fn totals(stats: &PathStats) -> Totals {
    Totals {
        sent: stats.udp_tx.bytes.saturating_sub(stats.lost_bytes),
        retransmitted: stats.lost_bytes,
        received: stats.udp_rx.bytes,
        ..Totals::default()
    }
}
