//! The routes that a plan gives its packets.

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
        Ok(found.map(|way| way.into_iter().map(hop).collect()))
    }

    #[allow(clippy::needless_pass_by_value)]
    fn narrowest(&self, ways: Vec<Vec<(usize, String)>>) -> PyResult<Vec<(usize, &'static str)>> {
        let way = |hops: &Vec<(usize, String)>| hops.iter().map(crossed).collect();
        let ways: Vec<Vec<_>> = ways.iter().map(way).collect();
        let found = guarded(|| self.ways.narrowest(&ways))?;
        Ok(found.into_iter().map(hop).collect())
    }
}

fn hop((link, direction): (usize, Direction)) -> (usize, &'static str) {
    match direction {
        Direction::Backward => (link, "backward"),
        Direction::Forward | Direction::Both => (link, "forward"),
    }
}

fn crossed((link, direction): &(usize, String)) -> (usize, Direction) {
    match direction.as_str() {
        "backward" => (*link, Direction::Backward),
        _ => (*link, Direction::Forward),
    }
}

fn address(text: &str) -> PyResult<IpAddr> {
    text.parse()
        .map_err(|_| PyValueError::new_err(format!("'{text}' is no IP address")))
}
