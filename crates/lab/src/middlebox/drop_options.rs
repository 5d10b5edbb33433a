//! Drops SYNs that carry an option, as firewalls do with options that they do not know.

use polypath_settings::{Algorithm, algorithm};
use polypath_wire::tcp::Flags;

use super::work::{Middlebox, Passing, Work};

algorithm! {
    "drop-options",
    "Drops SYNs that have an option of MPTCP",
    "RFC 8684 sections 3.1 and 6; Honda et al., Is it still possible to extend TCP? (IMC 2011)";
    DropOptions
}

impl Algorithm<dyn Middlebox> for DropOptions {
    fn make(self) -> Box<dyn Middlebox> {
        Box::new(self)
    }
}

#[derive(Default)]
pub(super) struct DropOptions;

impl Middlebox for DropOptions {
    fn pass(&mut self, mut packet: Passing, work: &mut Work<'_>) {
        let segment = packet.segment();
        if segment.is_some_and(|it| it.flags.contains(Flags::SYN) && !it.mptcp().is_empty()) {
            work.tally.dropped += 1;
        } else {
            work.send(packet);
        }
    }
}
