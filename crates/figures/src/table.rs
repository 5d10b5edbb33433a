//! Tables of a recording, by the names of their columns.

use std::hash::Hash;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use rustc_hash::FxHashMap;

/// A table is not as docs/recording.md has it.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("table '{table}' has no column '{column}'")]
    NoColumn {
        table: &'static str,
        column: &'static str,
    },
    #[error("column '{column}' of table '{table}' holds {found}, which is not {wanted}")]
    Type {
        table: &'static str,
        column: &'static str,
        found: DataType,
        wanted: &'static str,
    },
}

/// The names of the tables that figures are made of.
pub const NAMES: [&str; 13] = [
    "subflows",
    "connections",
    "links",
    "account",
    "events",
    "requests",
    "counters",
    "connection_ends",
    "subflow_ends",
    "link_ends",
    "datagrams",
    "datagram_samples",
    "segments",
];

/// A table in any number of batches; none: it has no rows.
#[derive(Clone, Debug)]
pub struct Table {
    name: &'static str,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub fn new(name: &'static str, batches: Vec<RecordBatch>) -> Self {
        Self { name, batches }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// A column of whole numbers of any width.
    pub fn integers(&self, column: &'static str) -> Result<Vec<Option<i64>>, TableError> {
        macro_rules! appended {
            ($type:ty, $array:expr, $found:expr) => {
                $found.extend(
                    $array
                        .as_primitive::<$type>()
                        .iter()
                        .map(|value| value.map(|value| value as i64)),
                )
            };
        }
        let mut found = Vec::with_capacity(self.rows());
        for array in self.arrays(column)? {
            match array.data_type() {
                DataType::Int64 => appended!(Int64Type, array, found),
                DataType::UInt64 => appended!(UInt64Type, array, found),
                DataType::UInt32 => appended!(UInt32Type, array, found),
                DataType::Int32 => appended!(Int32Type, array, found),
                DataType::Null => found.extend(std::iter::repeat_n(None, array.len())),
                other => return Err(self.unfit(column, other, "a whole number")),
            }
        }
        Ok(found)
    }

    /// A column of whole numbers in which none is missing: absent ones are 0.
    pub fn counts(&self, column: &'static str) -> Result<Vec<i64>, TableError> {
        let found = self.integers(column)?;
        Ok(found.into_iter().map(Option::unwrap_or_default).collect())
    }

    pub fn reals(&self, column: &'static str) -> Result<Vec<Option<f64>>, TableError> {
        let mut found = Vec::with_capacity(self.rows());
        for array in self.arrays(column)? {
            match array.data_type() {
                DataType::Float64 => found.extend(array.as_primitive::<Float64Type>().iter()),
                DataType::Null => found.extend(std::iter::repeat_n(None, array.len())),
                other => return Err(self.unfit(column, other, "a number")),
            }
        }
        Ok(found)
    }

    /// A column of strings; absent ones are empty.
    pub fn texts(&self, column: &'static str) -> Result<Vec<&str>, TableError> {
        let mut found = Vec::with_capacity(self.rows());
        for array in self.arrays(column)? {
            match array.data_type() {
                DataType::Utf8View => {
                    found.extend(array.as_string_view().iter().map(Option::unwrap_or_default));
                }
                DataType::LargeUtf8 => {
                    found.extend(
                        array
                            .as_string::<i64>()
                            .iter()
                            .map(Option::unwrap_or_default),
                    );
                }
                DataType::Utf8 => {
                    found.extend(
                        array
                            .as_string::<i32>()
                            .iter()
                            .map(Option::unwrap_or_default),
                    );
                }
                DataType::Null => found.extend(std::iter::repeat_n("", array.len())),
                other => return Err(self.unfit(column, other, "text")),
            }
        }
        Ok(found)
    }

    /// A column of truths; absent ones are false.
    pub fn flags(&self, column: &'static str) -> Result<Vec<bool>, TableError> {
        let mut found = Vec::with_capacity(self.rows());
        for array in self.arrays(column)? {
            match array.data_type() {
                DataType::Boolean => {
                    found.extend(array.as_boolean().iter().map(Option::unwrap_or_default));
                }
                DataType::Null => found.extend(std::iter::repeat_n(false, array.len())),
                other => return Err(self.unfit(column, other, "a truth")),
            }
        }
        Ok(found)
    }

    fn arrays(&self, column: &'static str) -> Result<Vec<&dyn Array>, TableError> {
        let of = |batch: &'_ RecordBatch| batch.schema_ref().index_of(column);
        self.batches
            .iter()
            .map(|batch| {
                let place = of(batch).map_err(|_| TableError::NoColumn {
                    table: self.name,
                    column,
                })?;
                Ok(&**batch.column(place))
            })
            .collect()
    }

    fn unfit(&self, column: &'static str, found: &DataType, wanted: &'static str) -> TableError {
        TableError::Type {
            table: self.name,
            column,
            found: found.clone(),
            wanted,
        }
    }
}

/// The rows of a table by key, in each group in the order of `then`; equal ones keep their order.
pub fn grouped<K: Eq + Hash, T: Ord>(
    keys: impl IntoIterator<Item = K>,
    then: &[T],
) -> FxHashMap<K, Vec<usize>> {
    let mut groups: FxHashMap<K, Vec<usize>> = FxHashMap::default();
    for (row, key) in keys.into_iter().enumerate() {
        groups.entry(key).or_default().push(row);
    }
    for rows in groups.values_mut() {
        if !rows.is_sorted_by_key(|row| &then[*row]) {
            rows.sort_by_key(|row| &then[*row]);
        }
    }
    groups
}
