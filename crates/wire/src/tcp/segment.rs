//! A TCP segment as plain data. Endpoints exchange it, and the codec parses and emits it.
//!
//! The fields that every data segment and ACK carries are inline; options of the handshake and of path management are
//! rare and boxed. Payload bytes are not part of a segment: `payload` says which part of the application's byte stream
//! it carries (see [`crate::payload`]).

use super::{MAX_OPTIONS_LEN, options_len};
use crate::mptcp::{Dss, MptcpOption};

bitflags::bitflags! {
    /// The control bits of the TCP header (RFC 9293 section 3.1), AE included.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Flags: u16 {
        const FIN = 0x01;
        const SYN = 0x02;
        const RST = 0x04;
        const PSH = 0x08;
        const ACK = 0x10;
        const URG = 0x20;
        const ECE = 0x40;
        const CWR = 0x80;
        /// Accurate ECN (RFC 9768 section 3.1); with CWR and ECE the ACE field.
        const AE = 0x100;
    }
}

/// Up to four SACK blocks (RFC 2018 section 3), each `[left, right)` in sequence numbers. Few segments have any, so they are boxed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks(Option<Box<Blocks>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Blocks {
    len: u8,
    all: [(u32, u32); SackBlocks::MAX],
}

impl SackBlocks {
    pub const MAX: usize = 4;

    /// Appends a block; a fifth block is not stored.
    pub fn push(&mut self, left: u32, right: u32) {
        let blocks = self.0.get_or_insert_default();
        if let Some(place) = blocks.all.get_mut(blocks.len as usize) {
            *place = (left, right);
            blocks.len += 1;
        }
    }

    /// Keeps the first `len` blocks.
    pub fn truncate(&mut self, len: usize) {
        if len == 0 {
            self.0 = None;
        }
        if let Some(blocks) = &mut self.0 {
            let len = len.min(blocks.len.into());
            blocks.all[len..].fill((0, 0));
            blocks.len = len as u8;
        }
    }

    /// Whether the first block reports data that arrived twice (RFC 2883 section 4): it begins below the segment's `ack`, or lies within the
    /// second block.
    pub fn reports_duplicate(&self, ack: u32) -> bool {
        let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
        match *self.as_slice() {
            [(left, _), ..] if before(left, ack) => true,
            [(left, right), (wide_left, wide_right), ..] => {
                !before(left, wide_left) && !before(wide_right, right)
            }
            _ => false,
        }
    }

    pub fn as_slice(&self) -> &[(u32, u32)] {
        let blocks = self.0.as_ref();
        blocks.map_or(&[], |blocks| &blocks.all[..blocks.len as usize])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn len(&self) -> usize {
        self.as_slice().len()
    }
}

/// The stretch of the sender's application stream that a segment carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub struct Payload {
    /// Offset of the first byte in the application's stream.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// Options that few segments carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RareOptions {
    /// Maximum segment size (RFC 9293 section 3.7.1), on SYN.
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323 section 2), on SYN, 0..=14.
    pub window_scale: Option<u8>,
    /// SACK-permitted (RFC 2018 section 2), on SYN.
    pub sack_permitted: bool,
    /// MPTCP options other than DSS, in the order on the wire.
    pub mptcp: Vec<MptcpOption>,
    /// Options of other kinds: kind and body, in the order on the wire.
    pub unknown: Vec<(u8, Vec<u8>)>,
}

impl RareOptions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds an MPTCP option; few segments have more than one.
    pub fn add_mptcp(&mut self, option: MptcpOption) {
        self.mptcp.reserve_exact(1);
        self.mptcp.push(option);
    }
}

/// A TCP segment without addresses and ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    pub seq: u32,
    /// Valid when `flags` has ACK.
    pub ack: u32,
    /// The window field as it stands in the header, not scaled.
    pub window: u16,
    pub flags: Flags,
    /// TSval and TSecr (RFC 7323 section 3).
    pub timestamps: Option<(u32, u32)>,
    pub sack: SackBlocks,
    pub dss: Option<Dss>,
    pub payload: Payload,
    pub rare: Option<Box<RareOptions>>,
}

impl Segment {
    /// Length in sequence space: payload plus one each for SYN and FIN (RFC 9293 section 3.4).
    pub fn seq_len(&self) -> u32 {
        self.payload.len
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }

    /// The rare options, made if there are none yet.
    pub fn rare_mut(&mut self) -> &mut RareOptions {
        self.rare.get_or_insert_default()
    }

    /// Whether it has nothing on the heap, so that it may be forgotten in place of dropped.
    #[inline]
    pub fn owns_nothing(&self) -> bool {
        self.rare.is_none() && self.sack.is_empty()
    }

    /// Leaves out what the option space has no room for: of an acknowledgement with a long MPTCP option the data ACK, then the timestamps,
    /// and of the SACK blocks, which get what is left, the last.
    pub fn fit_options(&mut self) {
        let sack = std::mem::take(&mut self.sack);
        if options_len(self) > MAX_OPTIONS_LEN {
            self.dss = None;
        }
        if options_len(self) > MAX_OPTIONS_LEN {
            self.timestamps = None;
        }
        self.sack = sack;
        while !self.sack.is_empty() && options_len(self) > MAX_OPTIONS_LEN {
            self.sack.truncate(self.sack.len() - 1);
        }
    }

    /// The MPTCP options other than DSS.
    pub fn mptcp(&self) -> &[MptcpOption] {
        self.rare.as_ref().map_or(&[], |rare| &rare.mptcp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(ack: u32, blocks: &[(u32, u32)]) -> bool {
        let mut sack = SackBlocks::default();
        for &(left, right) in blocks {
            sack.push(left, right);
        }
        sack.reports_duplicate(ack)
    }

    /// ADD_ADDR of IPv6 with a port is 30 bytes, timestamps are 12 and a long data ACK is 12, with padding; a SACK block is 8, the first 12.
    #[test]
    fn sack_blocks_get_what_is_left() {
        let option = |address: &str| MptcpOption::AddAddr {
            echo: false,
            address_id: 1,
            address: address.parse().expect("an address"),
            port: Some(80),
            hmac: Some(7),
        };
        let mut given = Segment {
            timestamps: Some((1, 2)),
            ..Segment::default()
        };
        given.sack.push(1, 2);
        given.sack.push(3, 4);
        let mut short = given.clone();
        short.rare_mut().add_mptcp(option("10.0.0.1"));
        short.fit_options();
        assert!(short.timestamps.is_some() && short.sack.is_empty());
        let mut long = given;
        long.rare_mut().add_mptcp(option("fd00::1"));
        long.fit_options();
        assert!(long.timestamps.is_none() && long.sack.is_empty());
        assert!(options_len(&long) <= MAX_OPTIONS_LEN);
    }

    /// The examples of RFC 2883 section 4, with a wrap.
    #[test]
    fn the_first_block_reports_a_duplicate_below_the_ack_or_within_the_second() {
        assert!(reports(4_000, &[(3_000, 3_500)]));
        assert!(reports(4_000, &[(3_000, 3_500), (4_500, 5_000)]));
        assert!(reports(4_000, &[(5_000, 5_500), (4_500, 6_000)]));
        assert!(reports(100, &[(u32::MAX - 100, 50)]));
        assert!(!reports(4_000, &[(4_500, 5_000)]));
        assert!(!reports(4_000, &[(4_500, 5_000), (5_500, 6_000)]));
        assert!(!reports(4_000, &[(4_500, 6_500), (4_500, 6_000)]));
        assert!(!reports(4_000, &[]));
    }
}
