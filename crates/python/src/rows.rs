//! Small tables as Python's dicts, a row each: quicker than a data frame where there are few rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use polypath_lab::Recording;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The rows of each table that has any.
pub fn of<'py>(py: Python<'py>, recording: Recording) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, batch) in recording.into_tables() {
        if batch.num_rows() > 0 {
            found.set_item(name, rows(py, &batch)?)?;
        }
    }
    Ok(found)
}

fn rows<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for _ in 0..batch.num_rows() {
        rows.append(PyDict::new(py))?;
    }
    let schema = batch.schema();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        for (at, row) in rows.iter().enumerate() {
            row.set_item(field.name(), value(py, column, at)?)?;
        }
    }
    Ok(rows)
}

fn value<'py>(py: Python<'py>, column: &dyn Array, at: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(at) {
        return Ok(py.None().into_bound(py));
    }
    if let Some(column) = column.as_primitive_opt::<Int64Type>() {
        column.value(at).into_bound_py_any(py)
    } else if let Some(column) = column.as_primitive_opt::<UInt32Type>() {
        column.value(at).into_bound_py_any(py)
    } else if let Some(column) = column.as_primitive_opt::<UInt64Type>() {
        column.value(at).into_bound_py_any(py)
    } else if let Some(column) = column.as_primitive_opt::<Float64Type>() {
        column.value(at).into_bound_py_any(py)
    } else if let Some(column) = column.as_boolean_opt() {
        column.value(at).into_bound_py_any(py)
    } else if let Some(column) = column.as_string_opt::<i64>() {
        column.value(at).into_bound_py_any(py)
    } else {
        let what = format!("a column of {} has no form in Python", column.data_type());
        Err(PyTypeError::new_err(what))
    }
}
