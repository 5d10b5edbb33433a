//! Processed datagrams, kept so that the next ones can reuse their memory.

use polypath_wire::quic::{Ack, ConnectionId, Datagram, Frame, Header, Kind, Packet};

/// Frames that a packet commonly has.
const FRAMES: usize = 2;
/// An empty store takes over so many datagrams.
const AT_ONCE: usize = 16;

/// The kind of packet with a short header.
const SHORT: Kind = Kind::OneRtt {
    key_phase: false,
    spin: false,
};

/// A store of used datagrams. Nothing of what they said is left in those that it gives.
#[derive(Debug, Default)]
pub struct Spares {
    /// Of one packet without frames each.
    datagrams: Vec<Datagram>,
    #[allow(clippy::vec_box, reason = "a frame has its acknowledgement in a box")]
    acks: Vec<Box<Ack>>,
}

impl Spares {
    /// Takes a datagram that nobody needs any more.
    pub fn put(&mut self, mut datagram: Datagram) {
        if datagram.packets.len() > 1 {
            datagram.packets.truncate(1);
        }
        let Some(packet) = datagram.packets.first_mut() else {
            return;
        };
        while let Some(frame) = packet.frames.last() {
            // The commonest of those without memory of their own: there is nothing to be dropped.
            if let Frame::Stream { .. } = frame {
                std::mem::forget(packet.frames.pop());
            } else if let Some(Frame::Ack(ack)) = packet.frames.pop() {
                self.acks.push(ack);
            }
        }
        self.datagrams.push(datagram);
    }

    /// Takes over room of another store when it is empty: several datagrams at once, and as many acknowledgements.
    #[inline]
    pub fn replenish(&mut self, from: &mut Self) {
        if self.datagrams.is_empty() {
            self.take_over(from);
        }
    }

    fn take_over(&mut self, from: &mut Self) {
        let keep = from.datagrams.len().saturating_sub(AT_ONCE);
        self.datagrams.extend(from.datagrams.drain(keep..));
        let missing = self.datagrams.len().saturating_sub(self.acks.len());
        let keep = from.acks.len().saturating_sub(missing);
        self.acks.extend(from.acks.drain(keep..));
    }

    /// A datagram of one packet with this header and no frames.
    pub(super) fn datagram(&mut self, header: Header, path: u64) -> Datagram {
        let Some(mut datagram) = self.datagrams.pop() else {
            return begun(header, path);
        };
        let packet = &mut datagram.packets[0];
        packet.header = header;
        packet.path = path;
        datagram
    }

    /// The same with a short header.
    pub(super) fn short(
        &mut self,
        destination: ConnectionId,
        number: u64,
        number_len: u8,
        path: u64,
    ) -> Datagram {
        if let Some(last) = self.datagrams.last_mut() {
            let packet = &mut last.packets[0];
            if packet.header.kind == SHORT {
                packet.header.destination = destination;
                packet.header.number = number;
                packet.header.number_len = number_len;
                packet.path = path;
                return self.datagrams.pop().unwrap_or_default();
            }
        }
        let header = Header {
            kind: SHORT,
            version: 0,
            destination,
            source: ConnectionId::default(),
            number,
            number_len,
        };
        self.datagram(header, path)
    }

    /// An acknowledgement to be filled in, without ranges.
    pub(super) fn ack(&mut self) -> Box<Ack> {
        let mut ack = self.acks.pop().unwrap_or_default();
        ack.ranges.clear();
        ack
    }
}

#[cold]
fn begun(header: Header, path: u64) -> Datagram {
    let packet = Packet {
        header,
        path,
        frames: Vec::with_capacity(FRAMES),
    };
    Datagram {
        packets: vec![packet],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u64) -> Header {
        Header {
            kind: Kind::Handshake,
            version: 1,
            destination: ConnectionId::new(&[1; 8]),
            source: ConnectionId::default(),
            number,
            number_len: 1,
        }
    }

    #[test]
    fn a_used_datagram_is_as_good_as_new() {
        let mut spares = Spares::default();
        let mut ack = spares.ack();
        ack.ranges.push((0, 7));
        let mut used = spares.datagram(header(1), 0);
        used.packets[0].frames.push(Frame::Ack(ack));
        used.packets.push(used.packets[0].clone());
        spares.put(used);
        assert!(spares.ack().ranges.is_empty());
        let next = spares.datagram(header(2), 3);
        assert_eq!(next, begun(header(2), 3));
    }

    #[test]
    fn a_short_header_replaces_any_other() {
        let (mut spares, id) = (Spares::default(), ConnectionId::new(&[2; 4]));
        let fresh = spares.short(id, 5, 2, 1);
        for mut used in [fresh.clone(), spares.datagram(header(1), 7)] {
            used.packets[0].frames.push(Frame::Ping);
            spares.put(used);
            assert_eq!(spares.short(id, 5, 2, 1), fresh);
        }
    }

    #[test]
    fn stores_exchange_room() {
        let (mut store, mut other) = (Spares::default(), Spares::default());
        let mut used = other.datagram(header(1), 0);
        used.packets[0].frames.push(Frame::Ack(Box::default()));
        other.put(used);
        store.replenish(&mut other);
        store.replenish(&mut other);
        assert_eq!((store.datagrams.len(), store.acks.len()), (1, 1));
        assert_eq!((other.datagrams.len(), other.acks.len()), (0, 0));
        let more = (0..2 * AT_ONCE as u64).map(|number| begun(header(number), 0));
        more.for_each(|datagram| other.put(datagram));
        store.replenish(&mut other);
        assert_eq!(store.datagrams.len(), 1, "it is not empty");
        store.datagrams.clear();
        for _ in 0..2 {
            store.replenish(&mut other);
            assert_eq!(store.datagrams.len(), AT_ONCE, "once is enough");
        }
        assert_eq!(other.datagrams.len(), AT_ONCE);
    }

    #[test]
    fn a_datagram_without_packets_is_not_kept() {
        let mut spares = Spares::default();
        spares.put(Datagram::default());
        assert_eq!(spares.datagram(header(1), 0), begun(header(1), 0));
    }
}
