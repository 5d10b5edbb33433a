//! What the owner of a run sees and changes between two steps.

use polypath_trace::Recording;
use polypath_transport::Nanos;

use super::{OUTPUTS_A_STEP, Simulation, Step};
use crate::PlanError;
use crate::plan::Action;

impl Simulation {
    /// As [`Simulation::step`], but only to the first event that is recorded.
    ///
    /// # Errors
    /// As there.
    pub fn step_to_event(&mut self, until: Nanos) -> Result<Step, PlanError> {
        let before = self.recorded_events();
        for _ in 0..OUTPUTS_A_STEP {
            let step = self.advance(until, 1)?;
            if step != Step::Partly || self.recorded_events() > before {
                return Ok(step);
            }
        }
        Ok(Step::Partly)
    }

    /// How connections, their subflows and links stand: the rows that a sample would record now. The run's recording stays as it is.
    pub fn observe(&mut self) -> Recording {
        self.world.observe(self.hosts.endpoints())
    }

    /// How many events were recorded so far.
    pub fn recorded_events(&mut self) -> usize {
        self.world.recorder().recording.events.len()
    }

    /// The events that were recorded after the first `known`.
    pub fn events_since(&mut self, known: usize) -> Recording {
        Recording {
            events: self.world.recorder().recording.events.tail(known),
            ..Recording::default()
        }
    }

    /// Changes the network or a host now, as an event of the plan would.
    ///
    /// # Errors
    /// What the action names is not there, or cannot be so.
    pub fn change(&mut self, action: &Action) -> Result<(), PlanError> {
        self.world.change(action)?;
        if !matches!(action, Action::Link { .. }) {
            self.hosts.on_action(&mut self.world, action);
        }
        Ok(())
    }
}
