//! Cuts long segments into shorter ones.

use polypath_transport::registry::{Entry, Parameter};
use polypath_wire::tcp::Flags;

use super::work::{Middlebox, Passing, Way, Work};

pub(super) const ENTRY: Entry<dyn Middlebox> = Entry {
    name: "split",
    description: "Cuts segments into shorter ones",
    source: "RFC 8684 sections 3.3.1 and 6 (as segmentation offload does, each piece may carry the same mapping)",
    parameters: || {
        vec![
            Parameter::integer("bytes", 536, 128, 65_535, "longest payload that it lets by"),
            Parameter::boolean(
                "copy_options",
                true,
                "give every piece the segment's options, not the first alone",
            ),
            Way::parameter(),
        ]
    },
    make: |parameters| {
        Box::new(Split {
            bytes: parameters.integer("bytes") as u32,
            copy_options: parameters.boolean("copy_options"),
            way: Way::of(parameters),
        })
    },
};

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
