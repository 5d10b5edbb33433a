//! Switches whose flow tables decide the output, after OpenFlow 1.3.5 (section numbers below are of that text). The
//! [`spanning_tree`] protocols let bridges agree on the contents of their tables.
//!
//! A [`Fabric`] has all switches of a network and the ways that they give to packets. A [`Switch`] knows its tables, groups and ports, and no network: [`Switch::decide`] says where a packet with given header fields goes,
//! and changes nothing; [`Switch::credit`] counts what was forwarded so. Whoever asks may therefore keep a decision for as long as
//! the tables are as they were.
//!
//! # What it leaves out
//! VLANs and MPLS: a packet is known by its port, its Ethernet addresses and type, its IP addresses, its protocol and its ports. Set-field
//! actions, metadata, meters and queues. Groups name no groups and watch no groups (section 5.6 lets a switch support neither). Packets that a
//! controller gets in part are its owner's to keep.

#![forbid(unsafe_code)]

mod fabric;
mod fields;
mod group;
mod hits;
mod pipeline;
pub mod spanning_tree;
mod table;
mod wanted;

pub use fabric::{Fabric, Start, TTL};
pub use fields::{Fields, Match};
pub use group::{Bucket, Group, GroupKind};
pub use hits::Hits;
pub use pipeline::{Decision, Destination, Limits, MAX_COPIES, Switch, SwitchError};
pub use table::{
    Action, Counts, Entry, EntryId, Expired, Instructions, Port, Reason, Removed, Timeouts, WHOLE,
};
pub use wanted::Wanted;
