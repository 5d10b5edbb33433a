//! Prefetches memory for segments that are about to arrive.

use polypath_net::{Observer, Packet};
use polypath_prefetch::prefetch;

use crate::endpoint::Endpoint;
use crate::flow::{Body, End, Flow};

/// Flows and endpoints of packets that are about to arrive.
pub(super) struct Expecting<'a>(pub &'a [Flow], pub &'a [Endpoint]);

impl Observer<Body> for Expecting<'_> {
    const ACTIVE: bool = false;

    #[inline(always)]
    fn expects(&self, packet: &Packet<Body>, next: bool) {
        let Some(flow) = self.0.get(packet.flow as usize) else {
            return;
        };
        if !next {
            prefetch(flow);
        } else if let Some(End::Subflow { endpoint, .. }) = flow.receiver
            && let Some(endpoint) = self.1.get(endpoint as usize)
        {
            prefetch(endpoint);
        }
    }
}
