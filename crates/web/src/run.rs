//! One run of the simulator, from a plan to the page's view of it.

use std::fmt::Write;

use polypath_figures::{Figures, NAMES, Plan};
use polypath_lab::transport::Algorithms;
use polypath_lab::{Aside, CaptureMode, PlanError, Simulation, Step, plan};

use crate::page::Shown;

/// A simulation on its way.
pub struct Run {
    simulation: Simulation,
    plan: Plan,
    /// The account of what held each connection back.
    aside: Aside,
}

/// With more connections nobody reads each one's account.
const MOST_ACCOUNTS: usize = 100;

impl Run {
    /// Reads a plan.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn new(plan_json: &str) -> Result<Self, String> {
        let plan = serde_json::from_str(plan_json).map_err(|error| error.to_string())?;
        let mut planned: plan::Plan =
            serde_json::from_str(plan_json).map_err(|error| error.to_string())?;
        let account = planned.applications.len() <= MOST_ACCOUNTS;
        let aside = Aside::ask(&mut planned, false, account);
        let simulation = Simulation::with_algorithms(
            planned,
            CaptureMode::None,
            None,
            Algorithms::default(),
            None,
        )
        .map_err(text)?;
        Ok(Self {
            simulation,
            plan,
            aside,
        })
    }

    /// Nanoseconds since the start of the run.
    pub fn now(&self) -> u64 {
        self.simulation.now()
    }

    /// Advances to a time; whether the run is over.
    ///
    /// # Errors
    /// As of [`Simulation::step`].
    pub fn step(&mut self, until_ns: u64) -> Result<bool, String> {
        Ok(self.simulation.step(until_ns).map_err(text)? == Step::Over)
    }

    /// What there is so far, as JSON for the page.
    ///
    /// # Errors
    /// As of [`Simulation::finish`].
    pub fn finish(self) -> Result<String, String> {
        let end_ns = self.simulation.now();
        let mut recording = self.simulation.finish().map_err(text)?;
        let hash = hexadecimal(&self.aside.hash(&mut recording));
        let tables = recording.into_tables().into_iter();
        let asked = tables.filter(|(name, _)| NAMES.contains(name));
        let tables = asked.map(|(name, batch)| (name.to_owned(), vec![batch]));
        let figures = Figures::new(self.plan, tables, end_ns as i64, false);
        let shown = Shown::of(&figures, hash).map_err(|error| error.to_string())?;
        serde_json::to_string(&shown).map_err(|error| error.to_string())
    }
}

fn text(error: PlanError) -> String {
    error.to_string()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes what is written to it");
        text
    })
}
