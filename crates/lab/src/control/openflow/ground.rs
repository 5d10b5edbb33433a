//! The fabric and the network that a switch's agent works on.

use polypath_net::Network;
use polypath_switch::Fabric;

use crate::flow::Body;

/// What an agent works on.
pub(crate) struct Ground<'a> {
    pub fabric: &'a mut Fabric,
    pub network: &'a mut Network<Body>,
}
