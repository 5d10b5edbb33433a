//! Drops SYNs for an option, as firewalls do with what they do not know.

use polypath_transport::registry::Entry;
use polypath_wire::tcp::Flags;

use super::work::{Middlebox, Passing, Work};

pub(super) const ENTRY: Entry<dyn Middlebox> = Entry {
    name: "drop-options",
    description: "Drops SYNs that have an option of MPTCP",
    source: "RFC 8684 sections 3.1 and 6; Honda et al., Is it still possible to extend TCP? (IMC 2011)",
    parameters: Vec::new,
    make: |_| Box::new(DropOptions),
};

struct DropOptions;

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
