//! Ends a run that would not end on its own: its time stands still, or it takes more memory than it may.

use super::Simulation;
use crate::PlanError;
use crate::application::Request;
use crate::plan::{Channel, Plan};

/// At most so many packets, timers and changes are handled at one instant: some for the network, and some for each endpoint.
const AT_ONCE: u64 = 1 << 20;
const AT_ONCE_PER_ENDPOINT: u64 = 1 << 14;
/// Memory of a packet under way: its slot, header and event.
const PACKET_BYTES: u64 = 256;

impl Simulation {
    /// Called after each `handled` outputs of the network.
    #[cold]
    pub(super) fn look_after(&mut self, handled: u64) -> Result<(), PlanError> {
        let now = self.world.net.now();
        let handled = self.guard.handled_at(now, handled);
        let most = AT_ONCE + AT_ONCE_PER_ENDPOINT * self.hosts.endpoints().len() as u64;
        if handled > most {
            return Err(PlanError::StandsStill {
                seconds: now as f64 / 1e9,
                handled,
                links: instant_links(&self.plan),
            });
        }
        self.require_room()
    }

    /// Called by [`Self::look_after`] and after each sample, which has a row for each link and subflow. A run whose files cannot be written
    /// is not worth going on with.
    #[cold]
    pub(super) fn require_room(&mut self) -> Result<(), PlanError> {
        self.world.require_written()?;
        self.require_memory()
    }

    fn require_memory(&self) -> Result<(), PlanError> {
        let limit = self.plan.record.memory_bytes;
        let requests = self.hosts.apps.requests() * size_of::<Request>() as u64;
        let packets = self.world.net.totals().in_flight * PACKET_BYTES;
        let rows = self.world.recorded_bytes();
        if rows + requests + packets <= limit {
            return Ok(());
        }
        let (largest, remedy) = if packets > rows.max(requests) {
            ("packets under way", "send fewer at a time")
        } else if requests > rows {
            ("requests", "send fewer")
        } else if self.plan.record.segments || self.plan.record.decisions {
            (
                "segments, decisions and samples",
                "record fewer kinds, or raise [record] interval",
            )
        } else {
            ("samples", "raise [record] interval")
        };
        Err(PlanError::Memory {
            seconds: self.world.net.now() as f64 / 1e9,
            limit,
            largest,
            remedy,
        })
    }
}

/// What takes no time: the control links, or links in some direction, by name.
fn instant_links(plan: &Plan) -> String {
    let controller = plan.controller.as_ref();
    if controller.is_some_and(|it| it.app.is_some() && it.rate_bps.is_none() && it.delay_ns == 0) {
        return "[controller]".into();
    }
    let instant = |channel: &Channel| {
        channel.rate_bps.is_none() && channel.wifi.is_none() && channel.delay_ns == 0
    };
    let links = plan.links.iter();
    let names: Vec<&str> = links
        .filter(|link| instant(&link.forward) || instant(&link.backward))
        .map(|link| &*link.name)
        .collect();
    match names.as_slice() {
        [] => "a link".into(),
        [one] => format!("link '{one}'"),
        [first, .., last] => format!("one of the links '{first}' to '{last}'"),
    }
}
