//! Link types: where the IP packet begins in a frame (tcpdump.org, "Link-layer header types").

/// What stands before the IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Four bytes of an address family in the order of the host that captured: of no use here.
    Null,
    Ethernet,
    Raw,
    /// Linux "cooked", version 1 and 2.
    Cooked,
    Cooked2,
}

mod ethertype {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    /// IEEE 802.1Q and 802.1ad, and what was there before.
    pub const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
}

impl LinkType {
    pub fn of(number: i32) -> Option<Self> {
        match number {
            // 108: of OpenBSD's loopback.
            0 | 108 => Some(Self::Null),
            1 => Some(Self::Ethernet),
            // 12 and 14: in files of systems that wrote DLT_RAW as it was; 228 and 229: of one version of IP only.
            12 | 14 | 101 | 228 | 229 => Some(Self::Raw),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// Bytes before the IP packet; None where the frame holds something else, or is too short to tell.
    pub fn header_len(self, frame: &[u8]) -> Option<usize> {
        let ethertype =
            |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let (mut at, mut len) = match self {
            Self::Null => return Some(4),
            Self::Raw => return Some(0),
            Self::Ethernet => (12, 14),
            Self::Cooked => (14, 16),
            Self::Cooked2 => (0, 20),
        };
        let mut kind = ethertype(at)?;
        while ethertype::VLAN.contains(&kind) {
            at = len + 2;
            len += 4;
            kind = ethertype(at)?;
        }
        matches!(kind, ethertype::IPV4 | ethertype::IPV6).then_some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_begins_behind_every_tag() {
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x86, 0xdd, 0x60]);
        assert_eq!(LinkType::Ethernet.header_len(&frame), Some(22));
        frame[20] = 0;
        assert_eq!(LinkType::Ethernet.header_len(&frame), None);
        assert_eq!(LinkType::Ethernet.header_len(&frame[..15]), None);
    }

    #[test]
    fn cooked_frames_name_the_protocol_in_different_places() {
        let mut first = [0; 17];
        first[14] = 8;
        assert_eq!(LinkType::Cooked.header_len(&first), Some(16));
        let mut second = [0; 21];
        (second[0], second[1]) = (0x86, 0xdd);
        assert_eq!(LinkType::Cooked2.header_len(&second), Some(20));
    }
}
