//! Middleboxes: what networks do to packets besides forwarding them.
//!
//! A middlebox stands at an end of a link and sees the packets of both directions. It sends on whatever it makes of
//! them. The network ignores middleboxes: a route ends at the middlebox and another begins there (see
//! `simulation/middleboxes.rs`). Processing takes no time unless a middlebox holds a packet back. Packets with a wrong
//! checksum do not get through, as in Linux's connection tracking (`nf_conntrack_checksum`).
//!
//! # What it leaves out
//! Middleboxes here follow single packets or flows. None looks into application protocols, limits rates, or fails.

mod alter_payload;
mod coalesce;
mod drop_options;
mod nat;
mod proxy;
mod rewrite_sequence;
mod split;
mod strip_options;
mod work;

use polypath_settings::{Entry, Registry};

pub(crate) use work::{About, Conversation, Middlebox, Passing, Work};
pub use work::{MiddleboxReport, Tally};

/// All middleboxes.
pub(crate) static REGISTRY: Registry<dyn Middlebox> = Registry::new(
    "middlebox",
    &[
        Entry::of::<nat::NatConfig>(),
        Entry::of::<strip_options::StripOptionsConfig>(),
        Entry::of::<drop_options::DropOptions>(),
        Entry::of::<rewrite_sequence::RewriteSequenceConfig>(),
        Entry::of::<split::SplitConfig>(),
        Entry::of::<coalesce::CoalesceConfig>(),
        Entry::of::<alter_payload::AlterPayloadConfig>(),
        Entry::of::<proxy::Proxy>(),
    ],
);
