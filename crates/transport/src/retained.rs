//! What paths were found to carry, which outlasts their connections (RFC 9959).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Nanos, Tuple};

/// What a path carried: the window that was in use, in bytes, and the least round trip (RFC 9959's saved_cwnd and saved_rtt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub window: u64,
    pub rtt: Nanos,
}

/// What a host keeps of its paths, by both addresses. Clones keep the same.
#[derive(Clone, Debug, Default)]
pub struct Retained(Arc<Mutex<BTreeMap<(IpAddr, IpAddr), Capacity>>>);

impl Retained {
    /// What the last connection between these addresses found.
    pub(crate) fn of(&self, tuple: Tuple) -> Option<Capacity> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&ends(tuple)).copied()
    }

    pub(crate) fn keep(&self, tuple: Tuple, capacity: Capacity) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(ends(tuple), capacity);
    }
}

fn ends(tuple: Tuple) -> (IpAddr, IpAddr) {
    (tuple.local.ip(), tuple.remote.ip())
}
