//! Prefixes of addresses, and the static routes to them.

use std::net::IpAddr;

use crate::ids::InterfaceId;

/// Addresses that agree with `address` in their first `length` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the prefix length of {address} must be at most {limit}, not {length}", limit = bits(*.address).1)]
pub struct PrefixError {
    pub address: IpAddr,
    pub length: u8,
}

/// An address's bits, left-aligned in 128, and how many there are.
fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

impl Prefix {
    /// # Errors
    /// A length beyond the address's bits.
    pub fn new(address: IpAddr, length: u8) -> Result<Self, PrefixError> {
        if length > bits(address).1 {
            return Err(PrefixError { address, length });
        }
        Ok(Self { address, length })
    }

    pub fn length(&self) -> u8 {
        self.length
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, width) = bits(self.address);
        let (other, other_width) = bits(address);
        let mask = u128::MAX
            .checked_shl(128 - u32::from(self.length))
            .unwrap_or(0);
        width == other_width && (own ^ other) & mask == 0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct StaticRoute {
    pub source: Option<Prefix>,
    pub destination: Prefix,
    pub out: InterfaceId,
}

impl StaticRoute {
    pub fn matches(&self, src: IpAddr, dst: IpAddr) -> bool {
        self.destination.contains(dst) && self.source.is_none_or(|source| source.contains(src))
    }
}
