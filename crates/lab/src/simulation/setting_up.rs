//! Makes a run of a plan, ready to start.

use std::path::PathBuf;

use polypath_transport::Algorithms;

use super::Simulation;
use super::guard::Guard;
use super::hosts::Hosts;
use super::world::{Founded, Owner, World};
use crate::PlanError;
use crate::build::SharedConfigs;
use crate::capture::CaptureMode;
use crate::control::Choosers;
use crate::plan::{self, Action, Plan};
use crate::written::Elsewhere;

impl Simulation {
    /// As [`Simulation::from_plan`], with algorithms and stacks that the registries do not know.
    ///
    /// # Errors
    /// As there.
    pub fn with_algorithms(
        plan: Plan,
        captures: CaptureMode,
        directory: Option<PathBuf>,
        algorithms: Algorithms,
        elsewhere: Option<&dyn Elsewhere>,
    ) -> Result<Self, PlanError> {
        if plan.version != plan::VERSION {
            return Err(PlanError::Version {
                found: plan.version,
                expected: plan::VERSION,
            });
        }
        if plan.record.interval_ns == 0 {
            return Err(PlanError::invalid(
                "record",
                "the sampling interval must be above 0",
            ));
        }
        let Founded {
            mut world,
            plan,
            stacks,
            processes,
            sample_timer,
        } = {
            let choosers = elsewhere.map(|elsewhere| elsewhere as &dyn Choosers);
            World::found(plan, captures, directory.as_deref(), choosers)?
        };
        world.net.set_timer(sample_timer, plan.record.interval_ns);
        let mut hosts = Hosts::new(&plan, algorithms, processes);
        let mut configs = SharedConfigs::default();
        for index in 0..plan.applications.len() {
            hosts.add_application(&mut world, index, &stacks, &mut configs, elsewhere)?;
        }
        for (index, event) in plan.events.iter().enumerate() {
            if !matches!(event.action, Action::Link { .. }) {
                let timer = world.new_timer(Owner::Event(index));
                world.net.set_timer(timer, event.at_ns);
            }
        }
        Ok(Self {
            plan,
            world,
            hosts,
            sample_timer,
            ended: false,
            guard: Guard::default(),
        })
    }
}
