//! Ways that a plan gives its packets.

use std::net::IpAddr;

use polypath_lab::Ways;
use polypath_lab::plan::Direction;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::panics::guarded;
use crate::{PlanError, Undetermined};

/// A plan's network, read once for many questions.
#[pyclass(module = "polypath._core")]
pub struct Routes {
    ways: Ways,
}

#[pymethods]
impl Routes {
    #[new]
    fn new(plan_json: &str) -> PyResult<Self> {
        let ways = guarded(|| Ways::new(plan_json))?;
        let ways = ways.map_err(|error| PlanError::new_err(error.to_string()))?;
        Ok(Self { ways })
    }

    fn way(
        &mut self,
        node: usize,
        source: &str,
        destination: &str,
    ) -> PyResult<Option<Vec<(usize, &'static str)>>> {
        let (source, destination) = (address(source)?, address(destination)?);
        let found = guarded(|| self.ways.way(node, source, destination))?;
        let found = found.map_err(|error| Undetermined::new_err(error.to_string()))?;
        let hop = |(link, direction)| match direction {
            Direction::Backward => (link, "backward"),
            Direction::Forward | Direction::Both => (link, "forward"),
        };
        Ok(found.map(|way| way.into_iter().map(hop).collect()))
    }
}

fn address(text: &str) -> PyResult<IpAddr> {
    text.parse()
        .map_err(|_| PyValueError::new_err(format!("'{text}' is no IP address")))
}
