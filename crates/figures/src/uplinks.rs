//! The links at the client's interfaces of subflows. A person tells paths apart by them.

use rustc_hash::FxHashSet;

use crate::connection::Connection;
use crate::figures::Figures;
use crate::plan::Plan;
use crate::table::TableError;

/// The name of the link at an interface of the client; the interface's own where the plan has none.
pub fn uplink<'a>(plan: &'a Plan, of: &Connection, interface: &'a str) -> &'a str {
    let client = plan
        .applications
        .get(of.application)
        .and_then(|application| application.client);
    let Some(node) = client.and_then(|client| Some((client, plan.nodes.get(client)?))) else {
        return interface;
    };
    let (client, node) = node;
    let is_it = |end: &crate::plan::End| {
        end.node == client
            && node
                .interfaces
                .get(end.interface)
                .is_some_and(|own| own.name == interface)
    };
    plan.links
        .iter()
        .find(|link| is_it(&link.a) || is_it(&link.b))
        .map_or(interface, |link| &link.name)
}

impl Figures {
    /// The paths that the run's connections use, in the order of the plan's links; those that have no link last, by name.
    pub fn paths(&self) -> Result<Vec<&str>, TableError> {
        let mut found = Vec::new();
        let mut known = FxHashSet::default();
        let ends = self.subflow_ends()?;
        for of in self.connections()? {
            let client = self.plan().applications.get(of.application);
            for interface in ends.interfaces_of(of) {
                if known.insert((client.and_then(|it| it.client), interface)) {
                    found.push(uplink(self.plan(), of, interface));
                }
            }
        }
        let links = &self.plan().links;
        let rank = |path: &str| {
            let place = links.iter().rposition(|link| link.name == path);
            place.unwrap_or(usize::MAX)
        };
        found.sort_by_key(|path| (rank(path), *path));
        found.dedup();
        Ok(found)
    }
}
