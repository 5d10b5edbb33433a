//! Growable columns of one type each, and their form in Arrow.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use crate::table::Text;

/// A type that a row's field can have.
pub(crate) trait Value {
    /// Where its values are kept.
    type Column: Clone + std::fmt::Debug + Default;
    const TYPE: DataType;
    const NULLABLE: bool;

    /// Bytes of memory that a column takes at most, here or as an array that Python has.
    fn bytes(column: &Self::Column) -> usize;
    fn push(self, column: &mut Self::Column);
    fn remove(column: &mut Self::Column, rows: Range<usize>);
    /// The rows from `first` on, which are there.
    fn tail(column: &Self::Column, first: usize) -> Self::Column;
    /// A number's column becomes its array without being copied.
    fn array(column: Self::Column) -> ArrayRef;
    fn digest(column: &Self::Column, hasher: &mut Sha256);
}

/// A fixed-width type, of which a column of optional values exists as well.
trait Number: Copy + std::fmt::Debug {
    const TYPE: DataType;
    fn array(values: Vec<Self>) -> ArrayRef;
    fn nullable_array(values: Vec<Option<Self>>) -> ArrayRef;
    fn digest(self, hasher: &mut Sha256);
}

macro_rules! number {
    ($type:ty, $array:ty, $data_type:expr, $bytes:expr) => {
        impl Number for $type {
            const TYPE: DataType = $data_type;
            fn array(values: Vec<Self>) -> ArrayRef {
                Arc::new(<$array>::from(values))
            }
            fn nullable_array(values: Vec<Option<Self>>) -> ArrayRef {
                Arc::new(<$array>::from(values))
            }
            fn digest(self, hasher: &mut Sha256) {
                let bytes: fn(Self) -> _ = $bytes;
                hasher.update(bytes(self));
            }
        }
        impl Value for $type {
            type Column = Vec<$type>;
            const TYPE: DataType = <$type as Number>::TYPE;
            const NULLABLE: bool = false;
            fn bytes(column: &Self::Column) -> usize {
                column.len() * size_of::<$type>()
            }
            fn push(self, column: &mut Self::Column) {
                column.push(self);
            }
            fn remove(column: &mut Self::Column, rows: Range<usize>) {
                column.drain(rows);
            }
            fn tail(column: &Self::Column, first: usize) -> Self::Column {
                column[first..].to_vec()
            }
            fn array(column: Self::Column) -> ArrayRef {
                <$type as Number>::array(column)
            }
            fn digest(column: &Self::Column, hasher: &mut Sha256) {
                for value in column {
                    Number::digest(*value, hasher);
                }
            }
        }
    };
}

number!(i64, Int64Array, DataType::Int64, i64::to_le_bytes);
number!(u32, UInt32Array, DataType::UInt32, u32::to_le_bytes);
number!(u64, UInt64Array, DataType::UInt64, u64::to_le_bytes);
number!(f64, Float64Array, DataType::Float64, f64::to_le_bytes);
number!(bool, BooleanArray, DataType::Boolean, |value| [u8::from(
    value
)]);

impl<T: Number> Value for Option<T> {
    type Column = Vec<Option<T>>;
    const TYPE: DataType = T::TYPE;
    const NULLABLE: bool = true;

    fn bytes(column: &Self::Column) -> usize {
        column.len() * size_of::<Self>()
    }

    fn push(self, column: &mut Self::Column) {
        column.push(self);
    }

    fn remove(column: &mut Self::Column, rows: Range<usize>) {
        column.drain(rows);
    }

    fn tail(column: &Self::Column, first: usize) -> Self::Column {
        column[first..].to_vec()
    }

    fn array(column: Self::Column) -> ArrayRef {
        T::nullable_array(column)
    }

    fn digest(column: &Self::Column, hasher: &mut Sha256) {
        for value in column {
            hasher.update([u8::from(value.is_some())]);
            if let Some(value) = value {
                value.digest(hasher);
            }
        }
    }
}

/// Strings, each distinct one kept once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strings {
    /// A row's string as a position in `distinct`.
    rows: Vec<u32>,
    /// In the order of first appearance.
    distinct: Vec<Text>,
    positions: FxHashMap<Text, u32>,
    /// Bytes of the distinct strings, and of those of all rows.
    distinct_bytes: usize,
    row_bytes: usize,
}

/// Memory of a distinct string besides its bytes: in both places where it is kept.
const DISTINCT_BYTES: usize = 2 * size_of::<Text>() + 2 * size_of::<u32>();
/// Memory of a row's string besides its bytes: in its column, in an Arrow array (an offset), in polars (a view).
const ROW_BYTES: usize = size_of::<u32>() + size_of::<i64>() + 16;

impl Strings {
    fn position(&mut self, value: Text) -> u32 {
        if let Some(&position) = self.positions.get(&value) {
            return position;
        }
        let position = self.distinct.len() as u32;
        self.distinct_bytes += 2 * value.len() + DISTINCT_BYTES;
        self.distinct.push(value.clone());
        self.positions.insert(value, position);
        position
    }
}

impl Value for Text {
    type Column = Strings;
    const TYPE: DataType = DataType::LargeUtf8;
    const NULLABLE: bool = false;

    fn bytes(column: &Strings) -> usize {
        column.distinct_bytes + column.row_bytes + column.rows.len() * ROW_BYTES
    }

    fn push(self, column: &mut Strings) {
        column.row_bytes += self.len();
        let last = column.rows.last().copied();
        let position = match last {
            Some(last) if column.distinct[last as usize] == self => last,
            _ => column.position(self),
        };
        column.rows.push(position);
    }

    /// The column is then as if these rows had never been pushed, which its digest depends on.
    fn remove(column: &mut Strings, rows: Range<usize>) {
        let mut old = std::mem::take(column);
        old.rows.drain(rows);
        for row in old.rows {
            old.distinct[row as usize].clone().push(column);
        }
    }

    fn tail(column: &Strings, first: usize) -> Strings {
        let mut tail = Strings::default();
        for &row in &column.rows[first..] {
            column.distinct[row as usize].clone().push(&mut tail);
        }
        tail
    }

    fn array(column: Strings) -> ArrayRef {
        let values = column
            .rows
            .iter()
            .map(|row| &*column.distinct[*row as usize]);
        Arc::new(LargeStringArray::from_iter_values(values))
    }

    /// The distinct strings in order of first appearance and the rows that point to them say the
    /// same as the strings themselves.
    fn digest(column: &Strings, hasher: &mut Sha256) {
        hasher.update((column.distinct.len() as u64).to_le_bytes());
        for text in &column.distinct {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        for row in &column.rows {
            hasher.update(row.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of<V: Value>(column: &V::Column) -> [u8; 32] {
        let mut hasher = Sha256::new();
        V::digest(column, &mut hasher);
        hasher.finalize().into()
    }

    #[test]
    fn strings_are_kept_once_and_come_back_in_order() {
        let mut column = Strings::default();
        for text in ["client", "client", "server", "client", ""] {
            Text::from(text).push(&mut column);
        }
        assert_eq!(column.distinct, ["client", "server", ""]);
        let array = Text::array(column);
        let array = array.as_any().downcast_ref::<LargeStringArray>().unwrap();
        let back: Vec<_> = array.iter().flatten().collect();
        assert_eq!(back, ["client", "client", "server", "client", ""]);
    }

    #[test]
    fn a_tail_is_as_if_nothing_had_been_before() {
        let [mut column, mut only] = <[Strings; 2]>::default();
        for text in ["client", "server", "client", "link"] {
            Text::from(text).push(&mut column);
        }
        for text in ["client", "link"] {
            Text::from(text).push(&mut only);
        }
        assert_eq!(
            digest_of::<Text>(&Text::tail(&column, 2)),
            digest_of::<Text>(&only)
        );
        assert_eq!(u32::tail(&vec![1, 2, 3], 3), Vec::<u32>::new());
    }

    #[test]
    fn an_absent_number_is_not_zero() {
        assert_ne!(
            digest_of::<Option<u32>>(&vec![None, Some(0)]),
            digest_of::<Option<u32>>(&vec![Some(0), None])
        );
        let array = Option::<u32>::array(vec![None, Some(7)]);
        assert_eq!(*array, UInt32Array::from(vec![None, Some(7)]));
    }

    #[test]
    fn removed_rows_leave_no_trace_in_the_digest() {
        let column = |texts: &[&'static str]| {
            let mut column = Strings::default();
            for &text in texts {
                Text::from(text).push(&mut column);
            }
            column
        };
        let mut cut = column(&["open", "late", "open", "closed"]);
        Text::remove(&mut cut, 1..3);
        assert_eq!(
            digest_of::<Text>(&cut),
            digest_of::<Text>(&column(&["open", "closed"]))
        );
        let mut numbers = vec![1u32, 2, 3, 4];
        u32::remove(&mut numbers, 1..3);
        assert_eq!(numbers, [1, 4]);
    }

    #[test]
    fn where_one_string_ends_matters() {
        let column = |texts: [&'static str; 2]| {
            let mut column = Strings::default();
            texts
                .into_iter()
                .for_each(|text| Text::from(text).push(&mut column));
            digest_of::<Text>(&column)
        };
        assert_ne!(column(["ab", "c"]), column(["a", "bc"]));
    }
}
