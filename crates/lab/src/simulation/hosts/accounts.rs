//! Where the accounts of an application's two ends begin.

use std::net::IpAddr;

use super::Hosts;
use crate::account::Control;
use crate::application::Side;
use crate::plan::Plan;
use crate::simulation::world::World;

impl Hosts {
    /// Begins the accounts of an application's endpoints, the first of which is the client's.
    #[cold]
    pub(super) fn open_accounts(&self, world: &mut World, first: usize) {
        let application = self.endpoints[first].application;
        let settings = &self.plan.applications[application];
        let others = [first, first + 1];
        if others
            .iter()
            .any(|&end| self.stacks.of(&self.endpoints[end]).is_some())
        {
            return; // It does not tell how it stands.
        }
        let (own, peer) = self.apps[application].addresses;
        let (own, peer) = (own.ip(), peer.ip());
        let pairs = if settings.transport.is_multipath() {
            let (own, peer) = (
                addresses(&self.plan, settings.client),
                addresses(&self.plan, settings.server),
            );
            let with_each = |&own: &IpAddr| peer.iter().map(move |&peer| (own, peer));
            own.iter().flat_map(with_each).collect()
        } else {
            vec![(own, peer)]
        };
        let back = pairs.iter().map(|&(own, peer)| (peer, own));
        let control = |side: Side| {
            let configs = self.apps[application].configs.as_ref();
            configs.map_or_else(Control::default, |it| Control::of(&it[side as usize]))
        };
        let there = pairs.iter().copied();
        world.open_account(first, settings.client, there, control(Side::Client));
        world.open_account(first + 1, settings.server, back, control(Side::Server));
    }
}

fn addresses(plan: &Plan, node: usize) -> Vec<IpAddr> {
    let interfaces = plan.nodes[node].interfaces.iter();
    interfaces
        .flat_map(|it| it.addresses.iter().copied())
        .collect()
}
