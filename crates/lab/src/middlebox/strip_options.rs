//! Removes TCP options, as firewalls do with what they do not know.

use polypath_transport::registry::{Entry, Parameter};
use polypath_wire::tcp::{Flags, SackBlocks};

use super::work::{Middlebox, Passing, Way, Work};

pub(super) const ENTRY: Entry<dyn Middlebox> = Entry {
    name: "strip-options",
    description: "Removes TCP options from segments",
    source: "RFC 8684 sections 3.7 and 6; Honda et al., Is it still possible to extend TCP? (IMC 2011)",
    parameters: || {
        vec![
            Parameter::choice(
                "on",
                &["all", "syn", "data"],
                "segments of which it removes them: all, those with SYN, or those without",
            ),
            Parameter::choice(
                "options",
                &["mptcp", "all"],
                "those of MPTCP, or all but the maximum segment size",
            ),
            Way::parameter(),
        ]
    },
    make: |parameters| {
        Box::new(StripOptions {
            syn: parameters.text("on") != "data",
            data: parameters.text("on") != "syn",
            every: parameters.text("options") == "all",
            way: Way::of(parameters),
        })
    },
};

struct StripOptions {
    syn: bool,
    data: bool,
    every: bool,
    way: Way,
}

impl Middlebox for StripOptions {
    fn pass(&mut self, mut packet: Passing, work: &mut Work<'_>) {
        let (every, wanted) = (self.every, self.way.includes(packet.forward));
        if let Some(segment) = packet.segment().filter(|_| wanted) {
            let syn = segment.flags.contains(Flags::SYN);
            if if syn { self.syn } else { self.data } {
                let before = segment.clone();
                segment.dss = None;
                if let Some(rare) = &mut segment.rare {
                    rare.mptcp.clear();
                }
                if every {
                    segment.timestamps = None;
                    segment.sack = SackBlocks::default();
                    if let Some(rare) = &mut segment.rare {
                        rare.window_scale = None;
                        rare.sack_permitted = false;
                        rare.unknown.clear();
                    }
                }
                work.tally.changed += u64::from(*segment != before);
            }
        }
        work.send(packet);
    }
}
