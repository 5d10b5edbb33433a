//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

use crate::EmitError;

/// A running ones' complement sum; pieces of odd length may follow each other.
///
/// The sum is carried in 64 bits and folded at the end (RFC 1071 section 2, deferred carries).
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    sum: u64,
    odd: bool,
}

impl Checksum {
    pub fn new() -> Self {
        Self::default()
    }

    /// The pseudo-header of TCP, UDP and ICMPv6 (RFC 9293 section 3.1, RFC 8200 section 8.1).
    ///
    /// `len` is the length of the transport header and payload in bytes.
    ///
    /// # Errors
    /// [`EmitError::AddressFamilies`] when one address is IPv4 and the other IPv6.
    pub fn pseudo_header(
        addresses: (IpAddr, IpAddr),
        protocol: u8,
        len: usize,
    ) -> Result<Self, EmitError> {
        let mut sum = Self::new();
        match addresses {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                sum.add(&source.octets());
                sum.add(&destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                sum.add(&source.octets());
                sum.add(&destination.octets());
            }
            _ => return Err(EmitError::AddressFamilies),
        }
        sum.add(&u32::from(protocol).to_be_bytes());
        sum.add(&(len as u32).to_be_bytes());
        Ok(sum)
    }

    /// Adds the next bytes of the covered text.
    pub fn add(&mut self, mut bytes: &[u8]) {
        match bytes.split_first() {
            Some((&first, rest)) if self.odd => {
                self.sum += u64::from(first);
                self.odd = false;
                bytes = rest;
            }
            _ => {}
        }
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            self.sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
        let mut pairs = words.remainder().chunks_exact(2);
        for pair in &mut pairs {
            self.sum += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
        }
        if let [last] = pairs.remainder() {
            self.sum += u64::from(*last) << 8;
            self.odd = true;
        }
    }

    /// The sum with a zero byte appended when an odd number of bytes was added.
    #[must_use]
    pub fn padded(mut self) -> Self {
        self.odd = false;
        self
    }

    /// The checksum field: the complement of the folded sum. Over text that holds a right
    /// checksum it is 0.
    pub fn finish(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn example_of_rfc_1071() {
        let mut sum = Checksum::new();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn mixed_families_are_refused() {
        let addresses = ("10.0.0.1".parse().unwrap(), "::1".parse().unwrap());
        assert_eq!(
            Checksum::pseudo_header(addresses, 6, 20).unwrap_err(),
            EmitError::AddressFamilies
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(1071), ..ProptestConfig::default() })]

        #[test]
        fn pieces_sum_to_the_whole(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9)) {
            let mut whole = Checksum::new();
            whole.add(&pieces.concat());
            let mut parts = Checksum::new();
            for piece in &pieces {
                parts.add(piece);
            }
            prop_assert_eq!(whole.finish(), parts.finish());
        }

        #[test]
        fn text_with_its_checksum_sums_to_zero(mut text in prop::collection::vec(any::<u8>(), 1..50)) {
            if text.len() % 2 == 1 {
                text.push(0);
            }
            let mut sum = Checksum::new();
            sum.add(&text);
            text.extend(sum.finish().to_be_bytes());
            let mut check = Checksum::new();
            check.add(&text);
            prop_assert_eq!(check.finish(), 0);
        }
    }
}
