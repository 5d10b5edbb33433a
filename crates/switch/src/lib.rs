//! Switches whose output is decided by flow tables, after OpenFlow 1.3.5. Section numbers below are of that text.
//!
//! The [`spanning_tree`] protocols are here as well. By them bridges agree on the content of their tables.
//!
//! A [`Fabric`] has all switches of a network and the ways that they give to packets. A [`Switch`] knows its tables,
//! groups and ports, and no network. [`Switch::decide`] says where a packet with given header fields goes, and changes
//! nothing. [`Switch::credit`] counts the packets that were forwarded so. A caller may therefore keep a decision for as
//! long as the tables are unchanged.
//!
//! # What it leaves out
//! VLANs and MPLS are left out. A packet is known by its port, its Ethernet addresses and type, its IP addresses, its
//! protocol and its ports. Set-field actions, metadata, meters and queues are left out as well. Groups name no groups
//! and watch no groups (section 5.6 lets a switch support neither). If a controller gets only a part of a packet, the
//! switch's owner keeps the packet.

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
