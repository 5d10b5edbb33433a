//! The recording of a run, passed to Python without copying through the Arrow PyCapsule interface.

use arrow_array::RecordBatch;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3_arrow::PyTable;

/// The tables of docs/recording.md.
#[pyclass(frozen, module = "polypath._core")]
pub struct Recording {
    tables: Vec<(&'static str, RecordBatch)>,
    hash: [u8; 32],
}

impl Recording {
    pub fn new(tables: Vec<(&'static str, RecordBatch)>, hash: [u8; 32]) -> Self {
        Self { tables, hash }
    }
}

#[pymethods]
impl Recording {
    #[getter]
    fn names(&self) -> Vec<&'static str> {
        self.tables.iter().map(|(name, _)| *name).collect()
    }

    fn table(&self, name: &str) -> PyResult<PyTable> {
        let (_, batch) = self
            .tables
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| PyKeyError::new_err(format!("no table '{name}'")))?;
        PyTable::try_new(vec![batch.clone()], batch.schema())
    }

    #[getter]
    fn sha256(&self) -> String {
        self.hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
