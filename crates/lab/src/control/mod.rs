//! Controllers of switches: the path of each flow, when the tables learn of it, and what that costs on the control
//! links.

mod chosen;
mod graph;
mod hashed;
mod message;
pub(crate) mod openflow;
mod plane;
mod random;
mod routing;
mod shortest_path;
mod spanning_tree;
mod spread;
mod wires;

use polypath_settings::{Entry, Registry};
use serde_json::Map;

pub(crate) use chosen::Chosen;
pub use chosen::{Chooser, Choosers, NewFlow};
pub(crate) use graph::Graph;
pub(crate) use message::{Down, Held, Order, Up};
pub(crate) use plane::{Answer, Plane, asked};
pub(crate) use routing::{Asked, Routing, Standing};
pub(crate) use wires::{Due, Wires};

/// All controllers.
pub(crate) static REGISTRY: Registry<dyn Routing> = Registry::new(
    "controller",
    &[
        Entry::of::<hashed::Hashed>(),
        Entry::of::<random::Random>(),
        Entry::of::<shortest_path::ShortestPath>(),
        Entry::of::<spanning_tree::SpanningTree>(),
        Entry::of::<spread::Spread>(),
    ],
);

/// Whether flows that a controller places may take other ways than those of fewest links; of one that there is not, any.
pub(crate) fn strays(controller: &str) -> bool {
    let made = REGISTRY.make(controller, &Map::new());
    made.map_or(true, |routing| routing.strays())
}
