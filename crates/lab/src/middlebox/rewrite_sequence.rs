//! Shifts the sequence numbers of each connection, as firewalls do to make initial sequence numbers hard to guess.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use polypath_settings::{Algorithm, algorithm};
use polypath_wire::tcp::{Flags, SackBlocks};
use rand_pcg::rand_core::RngCore;

use super::work::{Middlebox, Passing, Work};

algorithm! {
    "rewrite-sequence",
    "Moves the sequence numbers of each connection by an amount drawn at its SYN",
    "RFC 8684 section 6; Honda et al., Is it still possible to extend TCP? (IMC 2011)";
    /// Settings of moving.
    RewriteSequenceConfig {
        /// move SACK blocks too; some that move sequence numbers forget them
        sack: bool as Boolean = Boolean(true),
    }
}

impl Algorithm<dyn Middlebox> for RewriteSequenceConfig {
    fn make(self) -> Box<dyn Middlebox> {
        Box::new(RewriteSequence {
            sack: self.sack,
            moved: BTreeMap::new(),
        })
    }
}

struct RewriteSequence {
    sack: bool,
    /// By source and destination: how far the source's numbers are moved.
    moved: BTreeMap<(SocketAddr, SocketAddr), u32>,
}

impl Middlebox for RewriteSequence {
    fn pass(&mut self, mut packet: Passing, work: &mut Work<'_>) {
        let (ends, sack) = (packet.ends(), self.sack);
        if let Some(segment) = packet.segment() {
            if segment.flags.contains(Flags::SYN) && !self.moved.contains_key(&ends) {
                self.moved.insert(ends, work.random.next_u32());
            }
            let by = |ends| self.moved.get(&ends).copied().unwrap_or(0);
            let (own, other) = (by(ends), by((ends.1, ends.0)));
            segment.seq = segment.seq.wrapping_add(own);
            if segment.flags.contains(Flags::ACK) {
                segment.ack = segment.ack.wrapping_sub(other);
            }
            if sack {
                let mut blocks = SackBlocks::default();
                for (left, right) in segment.sack.as_slice() {
                    blocks.push(left.wrapping_sub(other), right.wrapping_sub(other));
                }
                segment.sack = blocks;
            }
            work.tally.changed += u64::from(own != 0 || other != 0);
        }
        work.send(packet);
    }
}
