//! The recording of a run, passed to Python without copying through the Arrow PyCapsule interface.

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use serde_json::json;

/// What a recording has: each table with its columns, as a JSON list.
#[pyfunction]
pub fn tables() -> String {
    let described = polypath_lab::Recording::described();
    let tables = described.iter().map(|table| {
        let columns = table.columns.iter().map(|column| {
            json!({
                "name": column.name,
                "type": type_name(&column.data_type),
                "nullable": column.nullable,
                "about": column.about,
            })
        });
        json!({
            "name": table.name,
            "about": table.about,
            "optional": table.optional,
            "columns": columns.collect::<Vec<_>>(),
        })
    });
    json!(tables.collect::<Vec<_>>()).to_string()
}

fn type_name(of: &DataType) -> &'static str {
    match of {
        DataType::Int64 => "i64",
        DataType::UInt32 => "u32",
        DataType::UInt64 => "u64",
        DataType::Float64 => "f64",
        DataType::Boolean => "bool",
        DataType::LargeUtf8 => "str",
        other => unreachable!("no column has the type {other}"),
    }
}

/// The tables that [`tables`] describes.
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
