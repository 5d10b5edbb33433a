//! Packets, their storage while they travel, and their observers.

use crate::ids::{ChannelId, Nanos, RouteId};

/// The longest packet in bytes; a longer one counts as one of this length.
pub const MAX_LEN: u32 = 1 << 30;

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    #[default]
    NotEct,
    Ect0,
    Ect1,
    Ce,
}

impl Ecn {
    /// Whether a queue may mark the packet instead of dropping it.
    pub fn capable(self) -> bool {
        self != Self::NotEct
    }

    /// Whether a queue takes it for low latency: ECT(1) or CE (RFC 9331 section 5.1).
    pub fn low_latency(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

/// A packet on its route; `body` is the owner's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<B> {
    /// Length of the IP packet in bytes.
    pub len: u32,
    /// The owner's label, for whoever watches.
    pub flow: u32,
    pub route: RouteId,
    /// Channels of the route that it has crossed.
    pub hop: u16,
    pub ecn: Ecn,
    /// Whether a channel spoiled a checksum.
    pub corrupted: bool,
    pub body: B,
}

/// Why a channel did not carry a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue was at its limit.
    QueueFull,
    /// RED's early drop.
    Red,
    /// CoDel's drop of a packet that had waited too long, also FQ-CoDel's.
    Codel,
    /// PIE's early drop, also FQ-PIE's.
    Pie,
    /// DualPI2's, by its probability.
    Pi2,
    /// The longest flow's, because the queue of all flows was beyond its limit.
    Longest,
    /// Longer than the token bucket is deep.
    TooLong,
    /// Longer than the MTU.
    TooBig,
    /// The loss model.
    Loss,
    /// The channel was down or went down.
    Down,
}

impl DropReason {
    /// Lost on the link, as against dropped by the queue.
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Loss | Self::Down)
    }
}

/// Watches packets on channels. `()` watches nothing and costs nothing.
pub trait Observer<B> {
    /// Whether it wants to know of every hop. If not, only [`Observer::dropped`] is called.
    const ACTIVE: bool = true;

    /// Whether it wants to hear of [`Observer::crossed`].
    const COUNTS: bool = false;

    /// A packet of `len` bytes has crossed a channel and goes on from `position` in the table of paths: see [`crate::Network::positions`].
    fn crossed(&mut self, _at: Nanos, _position: u32, _len: u32) {}

    /// The packet is likely to be delivered soon: after few other events, or (`next`) after one.
    fn expects(&self, _packet: &Packet<B>, _next: bool) {}

    /// The channel took the packet: it is sent at once or waits.
    fn enqueued(&mut self, _at: Nanos, _channel: ChannelId, _packet: &Packet<B>) {}

    /// The packet's last bit reached the far end.
    fn arrived(&mut self, _at: Nanos, _channel: ChannelId, _packet: &Packet<B>) {}

    /// The channel did not carry the packet, or lost it on the way.
    fn dropped(
        &mut self,
        _at: Nanos,
        _channel: ChannelId,
        _packet: &Packet<B>,
        _reason: DropReason,
    ) {
    }
}

impl<B> Observer<B> for () {
    const ACTIVE: bool = false;
}

/// What a hop needs to know of a packet, kept apart from the rest so that it stays in cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// Where in the table of paths the channel stands that the packet is on.
    pub position: u32,
    pub len: u32,
}

/// The packets that are under way, by slot.
#[derive(Debug)]
pub(crate) struct Store<B> {
    pub headers: Vec<Header>,
    packets: Vec<Option<Packet<B>>>,
    free: Vec<u32>,
}

impl<B> Store<B> {
    pub fn new() -> Self {
        Self {
            headers: Vec::new(),
            packets: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Has a packet fetched.
    #[inline(always)]
    pub fn prefetch(&self, slot: u32) {
        if let Some(packet) = self.packets.get(slot as usize) {
            polypath_prefetch::prefetch(packet);
        }
    }

    /// The same with its header.
    #[inline(always)]
    pub fn prefetch_whole(&self, slot: u32) {
        if let Some(header) = self.headers.get(slot as usize) {
            polypath_prefetch::prefetch(header);
        }
        self.prefetch(slot);
    }

    /// A slot for a packet, and its place there, which is empty: the packet is put together where it stays.
    #[inline]
    pub fn reserve(&mut self, header: Header) -> (u32, &mut Option<Packet<B>>) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.headers[slot as usize] = header;
                slot
            }
            None => self.extend(header),
        };
        (slot, &mut self.packets[slot as usize])
    }

    #[cold]
    fn extend(&mut self, header: Header) -> u32 {
        self.headers.push(header);
        self.packets.push(None);
        (self.headers.len() - 1) as u32
    }

    #[inline]
    pub fn remove(&mut self, slot: u32) -> Option<Packet<B>> {
        self.free.push(slot);
        self.packets[slot as usize].take()
    }

    /// Forgets a packet, without dropping its body.
    #[inline(always)]
    pub fn forget(&mut self, slot: u32) {
        self.free.push(slot);
        std::mem::forget(self.packets[slot as usize].take());
    }

    /// Forgets all packets, which are not to be asked for any more; they still count.
    pub fn forget_all(&mut self) {
        self.packets = Vec::new();
    }

    #[inline]
    pub fn packet(&self, slot: u32) -> Option<&Packet<B>> {
        self.packets[slot as usize].as_ref()
    }

    #[inline]
    pub fn packet_mut(&mut self, slot: u32) -> Option<&mut Packet<B>> {
        self.packets[slot as usize].as_mut()
    }

    /// The owner's label of a packet.
    pub fn flow(&self, slot: u32) -> u32 {
        self.packets[slot as usize]
            .as_ref()
            .map_or(0, |packet| packet.flow)
    }

    pub fn len(&self) -> usize {
        self.headers.len() - self.free.len()
    }

    /// Sets congestion experienced if the packet is ECN-capable; whether it was.
    pub fn mark(&mut self, slot: u32) -> bool {
        match self.packet_mut(slot) {
            Some(packet) if packet.ecn.capable() => {
                packet.ecn = Ecn::Ce;
                true
            }
            _ => false,
        }
    }
}

impl<B: Clone> Store<B> {
    /// A copy of a packet, in a slot of its own.
    pub fn duplicate(&mut self, slot: u32) -> Option<u32> {
        let header = self.headers[slot as usize];
        let packet = self.packets[slot as usize].clone()?;
        let (slot, place) = self.reserve(header);
        *place = Some(packet);
        Some(slot)
    }
}
