//! Removes TCP options, as firewalls do with options that they do not know.

use polypath_settings::{Algorithm, algorithm, choice};
use polypath_wire::tcp::{Flags, SackBlocks};

use super::work::{self, Middlebox, Passing, Way, Work};

algorithm! {
    "strip-options",
    "Removes TCP options from segments",
    "RFC 8684 sections 3.7 and 6; Honda et al., Is it still possible to extend TCP? (IMC 2011)";
    /// Settings of removing.
    StripOptionsConfig {
        /// segments of which it removes them: all, those with SYN, or those without
        on: Segments as Text = Text("all"),
        /// those of MPTCP, or all but the maximum segment size
        options: Removed as Text = Text("mptcp"),
        ..way: Way = work::BOTH
    }
}

choice! {
    /// Segments that lose options.
    Segments {
        All = "all",
        Syn = "syn",
        Data = "data",
    }
}

choice! {
    /// Options that are removed.
    Removed {
        Mptcp = "mptcp",
        All = "all",
    }
}

impl Algorithm<dyn Middlebox> for StripOptionsConfig {
    fn make(self) -> Box<dyn Middlebox> {
        Box::new(StripOptions {
            syn: self.on != Segments::Data,
            data: self.on != Segments::Syn,
            every: self.options == Removed::All,
            way: self.way,
        })
    }
}

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
