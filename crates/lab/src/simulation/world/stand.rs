//! The middleboxes of a link, and where they stand.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use polypath_net::{InterfaceId, NodeId, random};
use polypath_transport::{NEVER, Nanos};
use rand_pcg::Pcg64Mcg;

use crate::PlanError;
use crate::alarm::Alarm;
use crate::build::Built;
use crate::flow::{Body, End};
use crate::middlebox::{Middlebox, MiddleboxReport, REGISTRY, Tally};
use crate::plan::{self, NodeKind, Plan};

/// The middleboxes of a link, in order from its first end to its second.
pub(crate) struct Stand {
    pub link: usize,
    pub node: NodeId,
    pub interface: InterfaceId,
    pub boxes: Vec<Placed>,
    pub alarm: Alarm,
    /// The flows that lead on from here.
    pub onward: BTreeMap<(SocketAddr, SocketAddr, End, bool), u32>,
}

/// A middlebox in its place.
pub(super) struct Placed {
    pub name: String,
    pub middlebox: Box<dyn Middlebox>,
    pub random: Pcg64Mcg,
    pub tally: Tally,
}

impl Stand {
    pub fn reports(&self) -> impl Iterator<Item = MiddleboxReport> {
        let boxes = self.boxes.iter().enumerate();
        boxes.map(|(position, each)| MiddleboxReport {
            link: self.link,
            position,
            name: each.name.clone(),
            tally: each.tally,
            held: each.middlebox.held(),
        })
    }

    pub fn deadline(&self) -> Nanos {
        let times = self.boxes.iter().map(|each| each.middlebox.deadline());
        times.min().unwrap_or(NEVER)
    }
}

/// Addresses outside for those that need one and were given none: from TEST-NET-3 of RFC 5737 on.
fn spare(number: u32) -> IpAddr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(203, 0, 113, 1)) + number).into()
}

/// Where a link's middleboxes stand.
fn place(plan: &Plan, link: &plan::Link) -> plan::Attachment {
    let is_host = |end: plan::Attachment| plan.nodes[end.node].kind == NodeKind::Host;
    if is_host(link.b) && !is_host(link.a) {
        link.a
    } else {
        link.b
    }
}

/// Puts up the middleboxes of a plan.
pub(super) fn stands(plan: &Plan, built: &mut Built<Body>) -> Result<Vec<Stand>, PlanError> {
    let mut stands = Vec::new();
    let mut count = 0;
    for (index, link) in plan.links.iter().enumerate() {
        if link.middleboxes.is_empty() {
            continue;
        }
        let place_name = format!("link {}", link.name);
        let (leaves, reaches) = (built.channels[index].0, place(plan, link) == link.b);
        let (first, second) = built
            .network
            .topology()
            .ends(leaves)
            .ok_or_else(|| PlanError::invalid(&*place_name, "it has no ends"))?;
        let interface = if reaches { second } else { first };
        let mut boxes = Vec::new();
        for (number, choice) in link.middleboxes.iter().enumerate() {
            let parameters = choice.parameters.clone().into_iter().collect();
            let made = REGISTRY.make(&choice.name, &parameters);
            let mut middlebox = made.map_err(|error| PlanError::Registry {
                place: place_name.clone(),
                error,
            })?;
            let own = middlebox
                .settle(spare(count))
                .map_err(|problem| PlanError::invalid(&*place_name, problem))?;
            if let Some(address) = own {
                built
                    .network
                    .add_address(interface, address)
                    .map_err(|error| PlanError::Topology {
                        place: place_name.clone(),
                        error,
                    })?;
            }
            count += 1;
            boxes.push(Placed {
                name: choice.name.clone(),
                middlebox,
                random: random::stream(
                    plan.seed,
                    "middlebox",
                    (index as u64) << 16 | number as u64,
                    "draws",
                ),
                tally: Tally::default(),
            });
        }
        stands.push(Stand {
            link: index,
            node: NodeId(place(plan, link).node as u32),
            interface,
            boxes,
            alarm: Alarm::new(built.network.new_timer()),
            onward: BTreeMap::new(),
        });
    }
    Ok(stands)
}
