//! Cuts long segments into shorter ones.

use polypath_settings::{Algorithm, algorithm};
use polypath_wire::tcp::Flags;

use super::work::{self, Middlebox, Passing, Way, Work};

algorithm! {
    "split",
    "Cuts segments into shorter ones",
    "RFC 8684 sections 3.3.1 and 6 (as segmentation offload does, each piece may carry the same mapping)";
    /// Settings of cutting.
    SplitConfig {
        /// longest payload that it lets by
        bytes: u32 as Integer.at_least(128).at_most(65_535) = Integer(536),
        /// give every piece the segment's options, not the first alone
        copy_options: bool as Boolean = Boolean(true),
        ..way: Way = work::BOTH
    }
}

impl Algorithm<dyn Middlebox> for SplitConfig {
    fn make(self) -> Box<dyn Middlebox> {
        Box::new(Split {
            bytes: self.bytes,
            copy_options: self.copy_options,
            way: self.way,
        })
    }
}

struct Split {
    bytes: u32,
    copy_options: bool,
    way: Way,
}

/// What only the last piece has.
const AT_END: Flags = Flags::FIN.union(Flags::PSH);

impl Middlebox for Split {
    fn pass(&mut self, mut packet: Passing, work: &mut Work<'_>) {
        let wanted = self.way.includes(packet.forward);
        let whole = packet.segment().cloned();
        let Some(whole) = whole.filter(|segment| wanted && segment.payload.len > self.bytes) else {
            return work.send(packet);
        };
        work.tally.changed += 1;
        let total = whole.payload.len;
        let mut at = 0;
        while at < total {
            let mut piece = packet.clone();
            let len = self.bytes.min(total - at);
            if let Some(segment) = piece.segment() {
                segment.seq = whole.seq.wrapping_add(at);
                segment.payload.offset = whole.payload.offset.wrapping_add(u64::from(at));
                segment.payload.len = len;
                if at + len < total {
                    segment.flags.remove(AT_END);
                }
                if at > 0 {
                    segment.flags.remove(Flags::CWR);
                    if !self.copy_options {
                        segment.dss = None;
                        segment.rare = None;
                    }
                }
            }
            work.tally.made += u64::from(at > 0);
            work.send(piece);
            at += len;
        }
    }
}
