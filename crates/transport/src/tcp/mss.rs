//! The maximum length of a segment: the limits of both ends and of the path. In the kernels it is also at most half of
//! the peer's largest window, or all of a very small one (`tcp_sync_mss`, `tcp_bound_to_half_wnd`).

use super::{HEADER, SMALLEST_MSS, Socket, State, TIMESTAMP_OPTION};
use crate::Nanos;
use crate::path::{MtuDiscovery, Path};
use crate::settings::{Config, MtuProbing, Profile};
use crate::tcp::context::{Context, Options};

/// Windows up to this are not halved (TCP_MSS_DEFAULT).
const SMALL_WINDOW: u64 = 536;
/// The most payload of a segment for a peer that offered at most `window`, without regard to the path.
pub(crate) fn most_of_window(window: u64) -> u64 {
    if window > SMALL_WINDOW {
        window / 2
    } else {
        window.max(1)
    }
}

/// How long a segment may be, options included.
pub(crate) struct Mss {
    /// What the SYN announces: that of this subflow's address family.
    announced: u16,
    /// What both ends and the path take.
    agreed: u16,
    /// What the peer's window admits of it.
    of_window: u16,
    /// The lesser of the two.
    usable: u16,
    /// What the peer's SYN announced.
    peer: u16,
    /// The search for the path's MTU, where it is asked for, or what the path takes where its route was replaced.
    search: Option<Box<MtuDiscovery>>,
}

impl Mss {
    pub fn new(announced: u16) -> Self {
        Self {
            announced,
            agreed: announced,
            of_window: u16::MAX,
            usable: announced,
            peer: announced,
            search: None,
        }
    }

    pub fn announced(&self) -> u16 {
        self.announced
    }

    /// Announces another than that of the MTU (Linux `tcp_advertise_mss`).
    pub fn announce(&mut self, mss: u16) {
        self.announced = mss.max(SMALLEST_MSS);
    }

    pub fn agreed(&self) -> u16 {
        self.agreed
    }

    /// The peer's SYN announced this.
    pub fn meet(&mut self, peer: u16) {
        self.peer = peer;
        self.agreed = self.agreed.min(peer);
    }

    fn bound(&mut self, of_window: u16) {
        self.of_window = of_window;
    }

    fn settle(&mut self) {
        self.usable = self.agreed.min(self.of_window);
    }

    #[inline(always)]
    pub fn usable(&self) -> u16 {
        self.usable
    }

    /// The path takes another. `path` follows once the peer's SYN has come (`connected`).
    pub fn take(&mut self, path: &mut Path, mss: u16, connected: bool) {
        self.agreed = mss;
        self.follow(path, connected);
    }

    fn follow(&mut self, path: &mut Path, connected: bool) {
        let before = self.usable;
        self.settle();
        if connected {
            path.mss = (path.mss + u32::from(self.usable)).saturating_sub(before.into());
        }
    }

    /// The largest window that the peer offered admits no more than this; `path` follows. True: it changed.
    fn bound_path(&mut self, path: &mut Path, of_window: u16, connected: bool) -> bool {
        let before = self.usable;
        self.bound(of_window);
        self.follow(path, connected);
        self.usable != before
    }

    /// Has a socket that is not yet connected search for its path's MTU.
    pub fn prepare_search(&mut self, config: &Config, mtu: u32, ipv6: bool) {
        let mode = config.mtu_probing;
        self.search = (mode != MtuProbing::Off).then(|| {
            let search = MtuDiscovery::new(mode == MtuProbing::On, headers(ipv6), mtu);
            Box::new(if config.profile.heeds_bounds_late() {
                search.late()
            } else {
                search
            })
        });
    }

    /// The peer's SYN told its MSS (`tcp_mtup_init`). `answers`: it is the answer to our SYN. `options`: those of every segment.
    #[cold]
    pub fn begin_search(&mut self, config: &Config, now: Nanos, options: u32, answers: bool) {
        let base = config.limits.base_mss;
        let opened = answers && config.mtu_probing == MtuProbing::On;
        // What the SYN had is reckoned with until the handshake is done (`tcp_connect_init`).
        let of_syn = if config.timestamps {
            TIMESTAMP_OPTION
        } else {
            0
        };
        if let Some(search) = &mut self.search {
            if search.is_late() {
                search.meet(self.peer.into(), opened.then_some(base + of_syn));
            } else {
                search.begin(self.peer.into(), base + options, now);
            }
        }
        self.agreed = self.searched(options).unwrap_or(self.agreed);
    }

    /// Upstream, the handshake is done (`tcp_init_transfer`).
    #[cold]
    pub fn open_search(&mut self, config: &Config, now: Nanos, options: u32) {
        let base = config.limits.base_mss + options;
        if let Some(search) = self.search.as_mut().filter(|search| search.is_late()) {
            search.open(config.mtu_probing == MtuProbing::On, base, now);
        }
    }

    /// The host has another route to the peer, of packets of `mtu` bytes; the next segment that leaves takes it.
    pub fn reroute(&mut self, mtu: u32, ipv6: bool) {
        let (own, peer) = (u32::from(self.agreed), u32::from(self.peer));
        let headers = headers(ipv6);
        self.search
            .get_or_insert_with(|| Box::new(MtuDiscovery::unsearched(headers, own + headers, peer)))
            .reroute(mtu);
    }

    /// A segment has left.
    pub fn find_route(&mut self) {
        if let Some(search) = &mut self.search {
            search.find_route();
        }
    }

    #[inline(always)]
    pub fn searches(&self) -> bool {
        self.search.is_some()
    }

    /// Whether a probe is under way.
    pub fn probes(&self) -> bool {
        let search = self.search.as_ref();
        search.is_some_and(|search| search.probing())
    }

    pub fn search(&mut self) -> Option<&mut MtuDiscovery> {
        self.search.as_deref_mut()
    }

    /// The MSS, options included, as the search has it (`tcp_sync_mss`).
    pub fn searched(&self, options: u32) -> Option<u16> {
        let search = self.search.as_ref()?;
        Some((search.payload(options) + options) as u16)
    }
}

/// IP's and TCP's, without options.
fn headers(ipv6: bool) -> u32 {
    HEADER + if ipv6 { 40 } else { 20 }
}

/// What of a segment, options included, the largest window that there was admits (0: it is not known yet).
fn half_of_window(profile: Profile, largest: u64, options: u32) -> u16 {
    if !profile.halves_windows() || largest == 0 {
        return u16::MAX;
    }
    let most = most_of_window(largest) + u64::from(options);
    u16::try_from(most).unwrap_or(u16::MAX).max(SMALLEST_MSS)
}

impl Socket {
    /// Both SYNs are known, and in an answer to ours the peer's window.
    pub(super) fn settle_mss(&mut self, profile: Profile) {
        if self.lifetime.state() == State::SynSent {
            let options = self.negotiated.fixed_options();
            let half = half_of_window(profile, self.window.largest(), options);
            self.mss.bound(half);
        }
        self.mss.settle();
    }

    /// The peer offered more than ever (`tcp_ack_update_window`).
    #[cold]
    #[inline(never)]
    pub(super) fn note_larger_window(&mut self, cx: &mut Context<impl Options>) {
        if let Some(search) = self.mss.search() {
            search.sync();
            self.take_changed_mss(cx);
        }
        self.bound_by_window(cx);
    }

    /// No segment is longer than half of the largest window that there was.
    pub(super) fn bound_by_window(&mut self, cx: &mut Context<impl Options>) {
        let options = self.negotiated.fixed_options();
        let profile = cx.shared.config.profile;
        let half = half_of_window(profile, self.window.largest(), options);
        let connected = self.lifetime.state().has_peer();
        if self.mss.bound_path(&mut cx.path, half, connected) {
            self.queue.lengthen(cx.path.mss);
        }
    }
}
