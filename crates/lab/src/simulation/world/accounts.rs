//! The accounts of connections in the run.

use std::net::IpAddr;

use polypath_net::{ChannelId, NodeId};

use super::World;
use crate::account::Control;
use crate::endpoint::Endpoint;
use crate::plan::{Action, Plan};

/// Links that are down at first and stay so: a scenario has left them out, and nothing was lost for their sake.
fn links_that_never_come_up(plan: &Plan) -> Vec<usize> {
    let comes_up = |number: usize| {
        plan.events.iter().any(
            |event| matches!(event.action, Action::Link { link, up: Some(true), .. } if link == number),
        )
    };
    let links = plan.links.iter().enumerate();
    let down = links.filter(|(_, link)| !(link.forward.up && link.backward.up));
    down.map(|(number, _)| number)
        .filter(|&number| !comes_up(number))
        .collect()
}

impl World {
    #[inline(always)]
    pub fn keeps_accounts(&self) -> bool {
        self.accounts.is_some()
    }

    /// Begins the account of an endpoint at a node, which may send between these addresses.
    pub fn open_account(
        &mut self,
        endpoint: usize,
        node: usize,
        pairs: impl Iterator<Item = (IpAddr, IpAddr)>,
        control: Control,
    ) {
        let Some(accounts) = &mut self.accounts else {
            return;
        };
        let network = &mut self.net.network;
        let node = NodeId(node as u32);
        let never = links_that_never_come_up(&self.plan);
        let is_there = |channel: &ChannelId| !never.contains(&(channel.index() / 2));
        let mut paths: Vec<Vec<ChannelId>> = Vec::new();
        for (from, to) in pairs.filter(|(from, to)| from.is_ipv4() == to.is_ipv4()) {
            let found = network.way(node, from, to).unwrap_or_default();
            if !found.is_empty() && found.iter().all(is_there) {
                paths.push(found);
            }
        }
        accounts.open(network, endpoint, &paths, control);
    }

    /// An endpoint's subflow or path `number` takes a flow.
    #[cold]
    #[inline(never)]
    pub fn place_in_account(&mut self, endpoint: usize, number: u32, flow: u32) {
        let Some(accounts) = &mut self.accounts else {
            return;
        };
        let flow = &self.net.captures.flows[flow as usize];
        let network = &mut self.net.network;
        let route = flow.route.or(flow.queued_route);
        let near = route.into_iter().flat_map(|it| network.topology().path(it));
        let path: Vec<ChannelId> = near.chain(flow.rest.iter().copied()).collect();
        accounts.place(network, endpoint, number, &path);
    }

    /// An endpoint did what it could for now. Apart, so that who keeps no account has no more than the question.
    #[cold]
    #[inline(never)]
    pub fn note_in_account(&mut self, index: usize, endpoint: &Endpoint) {
        let Some(accounts) = &mut self.accounts else {
            return;
        };
        accounts.note(&mut self.net.network, index, endpoint);
        let at = accounts.next_event();
        self.net.set_alarm(&mut accounts.alarm, at);
    }

    /// The time that accounts waited for has come.
    pub fn on_accounts_timer(&mut self) {
        if let Some(accounts) = &mut self.accounts {
            accounts.alarm.on_fired();
            accounts.on_time(&mut self.net.network);
            let at = accounts.next_event();
            self.net.set_alarm(&mut accounts.alarm, at);
        }
    }

    /// A channel's configuration has changed.
    #[cold]
    #[inline(never)]
    pub fn on_changed(&mut self, channel: ChannelId) {
        if let Some(accounts) = &mut self.accounts {
            accounts.on_changed(&mut self.net.network, channel);
        }
    }
}
