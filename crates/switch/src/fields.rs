//! The fields of a packet, and an entry's match on them.

use std::net::{IpAddr, SocketAddr};

/// The header fields of a packet that a match can look at (section 7.2.3.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fields {
    /// The number of the port that it came in by; ports count from 1.
    pub in_port: u32,
    /// IP's version; 0: it is no IP packet.
    pub version: u8,
    /// Left-aligned in 128 bits, as `destination` is.
    pub source: u128,
    pub destination: u128,
    /// IP's protocol number.
    pub protocol: u8,
    pub source_port: u16,
    pub destination_port: u16,
    pub ethertype: u16,
    /// In the low 48 bits, as `ethernet_destination` is; 0 where nobody asks for Ethernet addresses.
    pub ethernet_source: u64,
    pub ethernet_destination: u64,
}

/// EtherTypes (IANA, IEEE 802 Numbers).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// An address's version and bits.
fn bits(address: IpAddr) -> (u8, u128) {
    match address {
        IpAddr::V4(v4) => (4, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (6, v6.to_bits()),
    }
}

impl Fields {
    /// The fields of a packet between two addresses of one IP version.
    pub fn new(in_port: u32, protocol: u8, source: SocketAddr, destination: SocketAddr) -> Self {
        let ((version, from), (_, to)) = (bits(source.ip()), bits(destination.ip()));
        Self {
            in_port,
            version,
            source: from,
            destination: to,
            protocol,
            source_port: source.port(),
            destination_port: destination.port(),
            ethertype: if version == 4 { IPV4 } else { IPV6 },
            ..Self::default()
        }
    }

    /// The same packet between these Ethernet addresses.
    pub fn between(self, ethernet_source: u64, ethernet_destination: u64) -> Self {
        Self {
            ethernet_source,
            ethernet_destination,
            ..self
        }
    }

    /// What a packet has in common with the others of its flow, wherever they are.
    pub(crate) fn flow(self) -> Self {
        self.between(0, 0).at(0)
    }

    /// The same packet at another port.
    pub fn at(self, in_port: u32) -> Self {
        Self { in_port, ..self }
    }

    fn and(&self, mask: &Self) -> Self {
        Self {
            in_port: self.in_port & mask.in_port,
            version: self.version & mask.version,
            source: self.source & mask.source,
            destination: self.destination & mask.destination,
            protocol: self.protocol & mask.protocol,
            source_port: self.source_port & mask.source_port,
            destination_port: self.destination_port & mask.destination_port,
            ethertype: self.ethertype & mask.ethertype,
            ethernet_source: self.ethernet_source & mask.ethernet_source,
            ethernet_destination: self.ethernet_destination & mask.ethernet_destination,
        }
    }

    fn xor(&self, other: &Self) -> Self {
        Self {
            in_port: self.in_port ^ other.in_port,
            version: self.version ^ other.version,
            source: self.source ^ other.source,
            destination: self.destination ^ other.destination,
            protocol: self.protocol ^ other.protocol,
            source_port: self.source_port ^ other.source_port,
            destination_port: self.destination_port ^ other.destination_port,
            ethertype: self.ethertype ^ other.ethertype,
            ethernet_source: self.ethernet_source ^ other.ethernet_source,
            ethernet_destination: self.ethernet_destination ^ other.ethernet_destination,
        }
    }

    /// As 64-bit words, for hashing: all but the port that it came in by and what is Ethernet's.
    pub(crate) fn words(&self) -> [u64; 5] {
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        [
            (self.source >> 64) as u64,
            self.source as u64,
            (self.destination >> 64) as u64,
            self.destination as u64,
            ports << 16 | u64::from(self.protocol) << 8 | u64::from(self.version),
        ]
    }
}

/// Which packets an entry is for: those that agree with `value` in the bits of `mask`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    value: Fields,
    mask: Fields,
}

impl Match {
    /// Every packet.
    pub fn any() -> Self {
        Self::default()
    }

    /// Packets that have the bits of `mask` as `value` has them.
    pub fn new(value: &Fields, mask: &Fields) -> Self {
        Self {
            value: value.and(mask),
            mask: *mask,
        }
    }

    /// The packets of one flow, by whichever port they come.
    pub fn flow(fields: &Fields) -> Self {
        Self::new(fields, &ALL.at(0))
    }

    pub fn in_port(mut self, port: u32) -> Self {
        (self.value.in_port, self.mask.in_port) = (port, u32::MAX);
        self
    }

    /// Packets whose source agrees with `address` in its first `length` bits.
    pub fn source(mut self, address: IpAddr, length: u8) -> Self {
        let (version, own, mask) = prefix(address, length);
        (self.value.version, self.mask.version) = (version, u8::MAX);
        (self.value.source, self.mask.source) = (own, mask);
        self
    }

    /// As [`Match::source`], of the destination.
    pub fn destination(mut self, address: IpAddr, length: u8) -> Self {
        let (version, own, mask) = prefix(address, length);
        (self.value.version, self.mask.version) = (version, u8::MAX);
        (self.value.destination, self.mask.destination) = (own, mask);
        self
    }

    pub fn protocol(mut self, protocol: u8) -> Self {
        (self.value.protocol, self.mask.protocol) = (protocol, u8::MAX);
        self
    }

    /// Packets whose source port agrees with `port` in the bits of `mask`.
    pub fn source_port(mut self, port: u16, mask: u16) -> Self {
        (self.value.source_port, self.mask.source_port) = (port & mask, mask);
        self
    }

    /// As [`Match::source_port`], of the destination.
    pub fn destination_port(mut self, port: u16, mask: u16) -> Self {
        (self.value.destination_port, self.mask.destination_port) = (port & mask, mask);
        self
    }

    pub fn covers(&self, fields: &Fields) -> bool {
        fields.and(&self.mask) == self.value
    }

    /// Whether it is for every packet that `other` is for (section 6.4, non-strict commands).
    pub fn includes(&self, other: &Self) -> bool {
        self.mask.and(&other.mask) == self.mask && self.covers(&other.value)
    }

    /// Whether some packet could match both (section 6.4, `OFPFF_CHECK_OVERLAP`).
    pub fn overlaps(&self, other: &Self) -> bool {
        let common = self.mask.and(&other.mask);
        self.value.xor(&other.value).and(&common) == Fields::default()
    }

    /// The one flow that it is for, if it asks for all fields of IP and its transport; whether it asks for ports of the switch and for Ethernet
    /// addresses, too, plays no part.
    pub fn only_flow(&self) -> Option<Fields> {
        (self.mask.flow() == ALL.flow()).then_some(self.value.flow())
    }

    pub fn mask(&self) -> &Fields {
        &self.mask
    }

    pub fn value(&self) -> &Fields {
        &self.value
    }

    pub(crate) fn masked(mask: &Fields, fields: &Fields) -> Fields {
        fields.and(mask)
    }
}

/// All fields of IP and its transport, and the port.
const ALL: Fields = Fields {
    in_port: u32::MAX,
    version: u8::MAX,
    source: u128::MAX,
    destination: u128::MAX,
    protocol: u8::MAX,
    source_port: u16::MAX,
    destination_port: u16::MAX,
    ethertype: u16::MAX,
    ethernet_source: 0,
    ethernet_destination: 0,
};

/// Version, bits and mask of the addresses that agree with one in their first `length` bits; a longer length counts as all of them.
fn prefix(address: IpAddr, length: u8) -> (u8, u128, u128) {
    let (version, own) = bits(address);
    let width = if version == 4 { 32 } else { 128 };
    let free = 128 - u32::from(length.min(width));
    let mask = u128::MAX.checked_shl(free).unwrap_or(0);
    (version, own & mask, mask)
}
