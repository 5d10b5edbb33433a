//! The search for a path's MTU by a sender that gets no reports (RFC 4821).
//!
//! A packet of another length is sent among the others. The result depends on whether this packet alone is lost. Bounds
//! and times are Linux's (`tcp_mtup_init`, `tcp_mtu_probe`, `tcp_mtu_probing`).

use crate::{MILLISECOND, NEVER, Nanos, SECOND};

/// The search goes no lower (Linux tcp_mtu_probe_floor and tcp_min_snd_mss).
const FLOOR: u32 = 48;

/// Bytes between the bounds that are not worth another probe (Linux TCP_PROBE_THRESHOLD).
const THRESHOLD: u32 = 8;

/// When a search that ended begins again (Linux TCP_PROBE_INTERVAL; RFC 4821 section 7.2 has the same ten minutes).
const INTERVAL: Nanos = 600 * SECOND;

/// Time from the first retransmission to a timeout that counts as one of a black hole: tcp_retries1, 3, doublings of the least timeout
/// (`retransmits_timed_out`).
const BLACK_HOLE: Nanos = 3 * SECOND;

/// A probe in flight: the numbers that it begins and ends with, and the length of its packet.
#[derive(Clone, Copy, Debug)]
struct Probe {
    start: u64,
    end: u64,
    mtu: u32,
}

/// What the host's route to the peer is now, and whether a packet has left since: only then is it known.
#[derive(Clone, Copy, Debug)]
struct Route {
    mtu: u32,
    known: bool,
}

/// A path's search. MTUs are bytes of an IP packet, `options` those of a packet's headers beyond the fixed ones.
#[derive(Debug)]
pub struct MtuDiscovery {
    /// Its bounds are heeded: from the first packet on, or since a black hole was suspected.
    on: bool,
    /// It may be.
    allowed: bool,
    /// As upstream's, new bounds make no difference to the payload before the next [`MtuDiscovery::sync`].
    late: bool,
    /// IP's and the transport's, without options.
    headers: u32,
    /// What passes, and what is not ruled out.
    low: u32,
    high: u32,
    /// What the host knows of the path, and what the peer takes.
    path: u32,
    peer: u32,
    route: Option<Route>,
    probe: Option<Probe>,
    /// What a report named: the next probe is as long.
    named: Option<u32>,
    since: Nanos,
    /// When there is something to be done next, and the longest payload without options; they follow from the others.
    due_at: Nanos,
    payload: u32,
}

impl MtuDiscovery {
    /// Of a path whose first link takes packets of `mtu` bytes.
    pub fn new(on: bool, headers: u32, mtu: u32) -> Self {
        Self {
            on,
            allowed: true,
            late: false,
            headers,
            low: mtu,
            high: mtu,
            path: mtu,
            peer: mtu,
            route: None,
            probe: None,
            named: None,
            since: 0,
            due_at: NEVER,
            payload: 0,
        }
        .synced()
    }

    /// The same as upstream Linux has it: see [`MtuDiscovery::open`].
    pub fn late(self) -> Self {
        Self { late: true, ..self }
    }

    /// Of a path that is not searched: it only keeps what path and peer take.
    pub fn unsearched(headers: u32, mtu: u32, peer: u32) -> Self {
        Self {
            allowed: false,
            peer: peer + headers,
            ..Self::new(false, headers, mtu)
        }
        .synced()
    }

    fn synced(mut self) -> Self {
        self.sync();
        self
    }

    /// The bounds hold for what is sent from now on (`tcp_sync_mss`).
    pub fn sync(&mut self) {
        self.high = self.high.min(self.path);
        let payload = self.payload_of(self.path, 0);
        self.payload = if self.on {
            payload.min(self.payload_of(self.low, 0))
        } else {
            payload
        };
        self.settle();
    }

    /// To be called after each change.
    fn settle(&mut self) {
        self.due_at = if !self.on || self.probe.is_some() {
            NEVER
        } else if self.high < self.low + THRESHOLD {
            self.since + INTERVAL
        } else {
            0
        };
    }

    /// The peer takes packets of `peer` bytes after the fixed headers, and those of `base` pass everywhere.
    pub fn begin(&mut self, peer: u32, base: u32, now: Nanos) {
        self.peer = peer + self.headers;
        self.high = self.peer;
        self.low = base + self.headers;
        self.since = now;
        self.sync();
    }

    /// Upstream, before the handshake is done: what the peer takes. `base`: the lower bound of an end that has looked at its bounds since
    /// its SYN (`tcp_connect_init`); one that accepts has none yet.
    pub fn meet(&mut self, peer: u32, base: Option<u32>) {
        self.peer = peer + self.headers;
        self.on = base.is_some();
        self.low = base.map_or(self.low, |base| base + self.headers);
        self.sync();
    }

    /// Upstream, the handshake is done: the bounds of [`MtuDiscovery::begin`], of which the upper is not held against the path, and the
    /// payload stays as it was, both until the next [`MtuDiscovery::sync`] (`tcp_mtup_init` in `tcp_init_transfer`).
    pub fn open(&mut self, on: bool, base: u32, now: Nanos) {
        self.on = on;
        self.high = self.peer;
        self.low = base + self.headers;
        self.since = now;
        self.settle();
    }

    pub fn is_late(&self) -> bool {
        self.late
    }

    /// The longest payload in packets of `mtu` bytes.
    fn payload_of(&self, mtu: u32, options: u32) -> u32 {
        let longest = mtu.min(self.peer).saturating_sub(self.headers);
        longest.max(FLOOR) - options
    }

    /// The payload of a full packet (`tcp_sync_mss`).
    #[inline]
    pub fn payload(&self, options: u32) -> u32 {
        self.payload - options
    }

    pub fn headers(&self) -> u32 {
        self.headers
    }

    /// The host was told of the path's MTU. Whether that is news.
    pub fn bound(&mut self, mtu: u32) -> bool {
        let news = mtu < self.path;
        if news {
            self.path = mtu;
            self.sync();
        }
        news
    }

    /// The host has another route to the peer, of packets of `mtu` bytes. The next packet takes it.
    pub fn reroute(&mut self, mtu: u32) {
        self.route = Some(Route { mtu, known: false });
    }

    /// A packet has left.
    pub fn find_route(&mut self) {
        if let Some(route) = &mut self.route {
            route.known = true;
        }
    }

    /// Heeds a route that a packet took (`tcp_current_mss`). False: it is no news.
    pub fn heed_route(&mut self) -> bool {
        let Some(route) = self.route.take_if(|route| route.known) else {
            return false;
        };
        if route.mtu == self.path {
            return false;
        }
        self.path = route.mtu;
        if !self.late {
            // What was ruled out was so on another route.
            self.high = self.peer;
        }
        self.sync();
        true
    }

    /// A report says that a packet of `len` bytes was longer than the `mtu` of a link. What lies between is ruled out until the search begins
    /// again, and the next probe is of the reported length (RFC 8899 section 4.6.2). False: it tells nothing.
    pub fn on_report(&mut self, len: u32, mtu: u32) -> bool {
        if len <= mtu || mtu >= self.high {
            return false;
        }
        self.high = mtu;
        self.low = self.low.min(mtu);
        self.named = Some(mtu);
        self.probe.take_if(|probe| probe.mtu > mtu);
        self.sync();
        true
    }

    /// A timeout. One long after the first retransmission has the search begin, further ones have it go down to half, `base` at most. Gives
    /// the MTU that is taken to pass from now on.
    pub fn on_timeout(
        &mut self,
        first_retransmission: Nanos,
        base: u32,
        options: u32,
        now: Nanos,
    ) -> Option<u32> {
        let elapsed = now / MILLISECOND - first_retransmission / MILLISECOND;
        if !self.allowed || elapsed < BLACK_HOLE / MILLISECOND {
            return None;
        }
        if self.on {
            let halved = self.payload_of(self.low, options) / 2;
            self.low = halved.clamp(FLOOR, base) + options + self.headers;
        } else {
            self.on = true;
            self.since = now;
        }
        self.sync();
        Some(self.low)
    }

    /// Whether [`MtuDiscovery::candidate`] has anything to do.
    pub fn due(&self, now: Nanos) -> bool {
        self.due_at <= now
    }

    /// The payload of the next probe, if one is worth it. `payload`: of a full packet now. A search that ended long ago begins again.
    pub fn candidate(&mut self, payload: u32, options: u32, now: Nanos) -> Option<u32> {
        if !self.on || self.probe.is_some() {
            return None;
        }
        if self.high < self.low + THRESHOLD {
            if now - self.since >= INTERVAL {
                self.high = self.peer;
                self.low = payload + options + self.headers;
                self.since = now;
                self.named = None;
                if self.late {
                    self.settle();
                } else {
                    self.sync();
                }
            }
            return None;
        }
        Some(self.payload_of(self.middle(), options))
    }

    fn middle(&self) -> u32 {
        match self.named {
            Some(named) if named > self.low && named <= self.high => named,
            _ => u32::midpoint(self.high, self.low),
        }
    }

    /// Whether the next probe fits what the host knows of the path, with so many bytes of options more than others. Of the route that it
    /// takes: the host itself refuses what is longer (`ip_fragment`, EMSGSIZE).
    pub fn fits(&self, more: u32) -> bool {
        let takes = self.route.map_or(self.path, |route| route.mtu);
        self.middle() + more <= takes
    }

    /// A probe with the numbers from `start` to `end` and so much payload has left.
    pub fn on_sent(&mut self, start: u64, end: u64, payload: u32, options: u32) {
        let mtu = payload + options + self.headers;
        self.probe = Some(Probe { start, end, mtu });
        self.settle();
    }

    /// Everything before `una` was acknowledged. If the probe was: the MTU that it showed to pass.
    pub fn on_acknowledged(&mut self, una: u64) -> Option<u32> {
        let probe = self.probe.filter(|probe| probe.end <= una)?;
        self.probe = None;
        self.low = probe.mtu;
        self.sync();
        Some(probe.mtu)
    }

    /// What begins at `una` is lost. True: that is the probe.
    pub fn on_lost(&mut self, una: u64) -> bool {
        let Some(probe) = self.probe.filter(|probe| probe.start == una) else {
            return false;
        };
        self.probe = None;
        self.high = probe.mtu - 1;
        self.settle();
        true
    }

    /// Something is sent again, after which the probe tells nothing.
    pub fn cancel(&mut self) {
        self.probe = None;
        self.settle();
    }

    pub fn probing(&self) -> bool {
        self.probe.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{INTERVAL, MtuDiscovery};
    use crate::SECOND;

    /// Of TCP over IPv4, with timestamps.
    const HEADERS: u32 = 40;
    const OPTIONS: u32 = 12;
    const BASE: u32 = 1024;

    fn begun(path: u32, peer: u32) -> MtuDiscovery {
        let mut search = MtuDiscovery::new(true, HEADERS, path);
        search.begin(peer - HEADERS, BASE, SECOND);
        search
    }

    /// Probes until none is due, over a path that passes packets of `passes` bytes: their lengths.
    fn probes(search: &mut MtuDiscovery, passes: u32) -> Vec<u32> {
        let mut found = Vec::new();
        while search.due(SECOND) {
            let payload = search.payload(OPTIONS);
            let Some(probe) = search.candidate(payload, OPTIONS, SECOND) else {
                break;
            };
            search.on_sent(0, u64::from(probe), probe, OPTIONS);
            let mtu = probe + OPTIONS + HEADERS;
            if mtu <= passes {
                assert_eq!(search.on_acknowledged(u64::from(probe)), Some(mtu));
            } else {
                assert!(search.on_lost(0));
            }
            found.push(mtu);
        }
        found
    }

    #[test]
    fn it_closes_in_on_what_passes() {
        let mut search = begun(1500, 9000);
        assert_eq!(search.payload(OPTIONS), BASE - OPTIONS);
        let lengths = probes(&mut search, 1400);
        assert_eq!(lengths, [1282, 1391, 1445, 1417, 1403, 1396]);
        assert_eq!(search.payload(OPTIONS), 1396 - HEADERS - OPTIONS);
    }

    #[test]
    fn it_goes_no_further_than_path_and_peer() {
        for (path, peer) in [(1500, 1280), (1280, 1500)] {
            let lengths = probes(&mut begun(path, peer), 9000);
            assert_eq!(lengths, [1172, 1226, 1253, 1266, 1273]);
        }
    }

    #[test]
    fn it_begins_again_after_ten_minutes() {
        let mut search = begun(1500, 1500);
        probes(&mut search, 1400);
        let payload = search.payload(OPTIONS);
        let again = SECOND + INTERVAL;
        assert!(!search.due(again - 1) && search.due(again));
        assert_eq!(search.candidate(payload, OPTIONS, again - 1), None);
        assert!(search.due(again), "asked too early, it is put off");
        assert_eq!(search.candidate(payload, OPTIONS, again), None);
        assert!(search.due(again));
        let probe = search.candidate(payload, OPTIONS, again);
        // between what passed and what the host knows of the path
        assert_eq!(probe, Some(1448 - HEADERS - OPTIONS));
    }

    /// Upstream's bounds make no difference before they are looked at.
    #[test]
    fn late_bounds_hold_from_the_next_look_on() {
        let mut search = MtuDiscovery::new(true, HEADERS, 1280).late();
        search.meet(1460, None);
        assert_eq!(search.payload(0), 1240);
        search.open(true, BASE, SECOND);
        assert_eq!(search.payload(0), 1240);
        assert_eq!(search.candidate(1240, 0, SECOND), Some(1242));
        assert!(!search.fits(0));
        search.sync();
        assert_eq!(search.payload(0), BASE);
        assert_eq!(search.candidate(BASE, 0, SECOND), Some(1172 - HEADERS));
        assert!(search.fits(0));
    }

    #[test]
    fn a_route_is_heeded_once_a_packet_took_it() {
        let mut search = MtuDiscovery::unsearched(HEADERS, 640, 1460);
        assert_eq!(search.payload(0), 600);
        search.reroute(9000);
        assert!(!search.heed_route());
        search.find_route();
        assert!(search.heed_route() && !search.heed_route());
        assert_eq!(search.payload(0), 1460);
        search.reroute(9000);
        search.find_route();
        assert!(!search.heed_route(), "it is no news");
        assert_eq!(search.on_timeout(0, BASE, 0, 9 * SECOND), None);
        assert_eq!(search.candidate(1460, 0, SECOND), None);
    }

    /// Where bounds are heeded at once, so are those of another route.
    #[test]
    fn a_search_goes_up_to_what_another_route_takes() {
        let mut search = begun(1280, 1500);
        search.reroute(1400);
        assert!(search.fits(0));
        search.find_route();
        assert!(search.heed_route());
        assert_eq!(search.payload(0), BASE);
        let probe = search.candidate(BASE, 0, SECOND);
        assert_eq!(probe, Some(u32::midpoint(BASE + HEADERS, 1400) - HEADERS));
    }

    #[test]
    fn a_report_names_the_next_probe() {
        let mut search = begun(1500, 1500);
        assert!(search.on_report(1500, 1400));
        let payload = search.payload(OPTIONS);
        let probe = search.candidate(payload, OPTIONS, SECOND);
        assert_eq!(probe, Some(1400 - HEADERS - OPTIONS));
        assert!(search.fits(100) && !search.fits(101));
    }
}
