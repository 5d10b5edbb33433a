//! Link types: what a frame begins with (tcpdump.org, "Link-layer header types").

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
    /// PPP, with or without HDLC's address and control.
    Ppp,
    /// PPP as pppd hands it over: the direction stands in the address's place.
    Pppd,
    /// PPP behind a header of PPPoE.
    PppOverEthernet,
    /// What iptables' NFLOG hands over: fields, of which one is the packet.
    Nflog,
}

/// What a frame begins with, and how many bytes stand before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    Ethernet,
    Ip(usize),
    Ppp(usize),
    /// What an EtherType announces.
    Typed(usize, u16),
}

impl Begin {
    pub fn len(self) -> usize {
        match self {
            Self::Ethernet => 0,
            Self::Ip(len) | Self::Ppp(len) | Self::Typed(len, _) => len,
        }
    }
}

impl LinkType {
    pub fn of(number: i32) -> Option<Self> {
        match number {
            // 108: of OpenBSD's loopback.
            0 | 108 => Some(Self::Null),
            1 => Some(Self::Ethernet),
            9 | 50 => Some(Self::Ppp),
            // 12 and 14: in files of systems that wrote DLT_RAW as it was; 228 and 229: of one version of IP only.
            12 | 14 | 101 | 228 | 229 => Some(Self::Raw),
            51 => Some(Self::PppOverEthernet),
            113 => Some(Self::Cooked),
            166 => Some(Self::Pppd),
            239 => Some(Self::Nflog),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// What a frame begins with; None where it is too short to tell.
    pub fn begin(self, frame: &[u8]) -> Option<Begin> {
        let number = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        match self {
            Self::Null => Some(Begin::Ip(4)),
            Self::Raw => Some(Begin::Ip(0)),
            Self::Ethernet => Some(Begin::Ethernet),
            Self::Cooked => Some(Begin::Typed(16, number(14)?)),
            Self::Cooked2 => Some(Begin::Typed(20, number(0)?)),
            Self::Ppp => Some(Begin::Ppp(0)),
            Self::Pppd => Some(Begin::Ppp(2)),
            Self::PppOverEthernet => Some(Begin::Ppp(6)),
            Self::Nflog => payload(frame).map(Begin::Ip),
        }
    }
}

/// Where the packet stands among NFLOG's fields: each has its length and its kind before it, in the order of the host
/// that captured, and is filled up to four bytes.
fn payload(frame: &[u8]) -> Option<usize> {
    const PAYLOAD: u16 = 9;
    let little = frame.get(4).is_some_and(|&low| low >= 4);
    let number = |at: usize| {
        let bytes = [*frame.get(at)?, *frame.get(at + 1)?];
        Some(if little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    };
    let mut at = 4;
    loop {
        let len = usize::from(number(at)?);
        if number(at + 2)? == PAYLOAD {
            return Some(at + 4);
        }
        if len < 4 {
            return None;
        }
        at += len.next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cooked_frames_name_the_protocol_in_different_places() {
        let mut first = [0; 17];
        first[14] = 8;
        assert_eq!(
            LinkType::Cooked.begin(&first),
            Some(Begin::Typed(16, 0x0800))
        );
        let mut second = [0; 21];
        (second[0], second[1]) = (0x86, 0xdd);
        assert_eq!(
            LinkType::Cooked2.begin(&second),
            Some(Begin::Typed(20, 0x86dd))
        );
        assert_eq!(LinkType::Cooked2.begin(&second[..1]), None);
    }

    #[test]
    fn nflog_has_its_packet_among_fields_of_either_order() {
        let little = [
            2, 0, 0, 1, 6, 0, 1, 0, 8, 0, 0, 0, 5, 0, 10, 0, 0, 0, 0, 0, 44, 0, 9, 0, 0x45,
        ];
        assert_eq!(LinkType::Nflog.begin(&little), Some(Begin::Ip(24)));
        let big = [2, 0, 0, 1, 0, 8, 0, 1, 8, 0, 0, 0, 0, 44, 0, 9, 0x45];
        assert_eq!(LinkType::Nflog.begin(&big), Some(Begin::Ip(16)));
        assert_eq!(LinkType::Nflog.begin(&little[..22]), None);
        assert_eq!(LinkType::Nflog.begin(&[2, 0, 0, 1, 0, 0, 0, 0]), None);
    }
}
