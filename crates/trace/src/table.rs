//! One declaration per table: its row, its columns, its schema.

use std::borrow::Cow;

/// A string in a row. Both `"client".into()` and `name.clone().into()` make one.
pub type Text = Cow<'static, str>;

/// A table of a recording, for those who read it.
#[derive(Clone, Debug)]
pub struct Described {
    pub name: &'static str,
    /// What one row is.
    pub about: &'static str,
    /// It is not there unless it has rows.
    pub optional: bool,
    pub columns: Vec<Column>,
}

/// What the text of a column says that is null in recordings of some engines, and never in the simulator's.
pub(crate) const UNKNOWN: &str = "Null if the engine or the capture does not know it.";

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub data_type: arrow_schema::DataType,
    /// In some engine's recording.
    pub nullable: bool,
    /// Empty where the name says it all.
    pub about: &'static str,
}

/// Declares the tables of a recording: of each the row's type, the table's type and the columns in
/// their order; and the recording that holds one of each. Those marked `[optional]` are not there unless they have rows.
macro_rules! tables {
    (
        $(#[$recording_doc:meta])*
        $recording:ident {
            $(
                $(#[doc = $row_doc:literal])+
                $name:ident: $table:ident of $row:ident $([$optional:ident])? {
                    $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty, )+
                }
            )+
        }
    ) => {
        $(
            $(#[doc = $row_doc])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $row {
                $( $(#[doc = $field_doc])* pub $field: $type, )+
            }

            #[doc = concat!("The table `", stringify!($name), "`, a column for each field of [`", stringify!($row), "`].")]
            #[derive(Clone, Debug, Default)]
            pub struct $table {
                rows: usize,
                $( $field: <$type as $crate::columns::Value>::Column, )+
            }

            impl $table {
                /// Appends a row.
                pub fn push(&mut self, row: $row) {
                    self.rows += 1;
                    $( $crate::columns::Value::push(row.$field, &mut self.$field); )+
                }

                /// Removes rows; the others move up.
                pub fn remove(&mut self, rows: std::ops::Range<usize>) {
                    self.rows -= rows.len();
                    $( <$type as $crate::columns::Value>::remove(&mut self.$field, rows.clone()); )+
                }

                /// The rows from the one at `first` on, copied.
                pub fn tail(&self, first: usize) -> Self {
                    let first = first.min(self.rows);
                    Self {
                        rows: self.rows - first,
                        $( $field: <$type as $crate::columns::Value>::tail(&self.$field, first), )+
                    }
                }

                /// Number of rows.
                pub fn len(&self) -> usize {
                    self.rows
                }

                pub fn is_empty(&self) -> bool {
                    self.rows == 0
                }

                /// Names, types and nullability of the columns.
                pub fn schema() -> arrow_schema::Schema {
                    arrow_schema::Schema::new(vec![
                        $( arrow_schema::Field::new(
                            stringify!($field),
                            <$type as $crate::columns::Value>::TYPE,
                            <$type as $crate::columns::Value>::NULLABLE,
                        ), )+
                    ])
                }

                /// The rows as one Arrow batch; each column is dropped once its array is made.
                pub fn into_batch(self) -> arrow_array::RecordBatch {
                    let columns =
                        vec![ $( <$type as $crate::columns::Value>::array(self.$field), )+ ];
                    arrow_array::RecordBatch::try_new(std::sync::Arc::new(Self::schema()), columns)
                        .expect("push appends to every column")
                }

                /// Bytes of memory that the rows take, here or in Python.
                fn bytes(&self) -> u64 {
                    let columns = 0 $( + <$type as $crate::columns::Value>::bytes(&self.$field) )+;
                    columns as u64
                }

                /// Whether the recording has this table: one that is optional only if it has rows.
                fn is_there(&self) -> bool {
                    let always = true $( && stringify!($optional).is_empty() )?;
                    always || self.rows > 0
                }

                fn digest(&self, hasher: &mut sha2::Sha256) {
                    use sha2::Digest;
                    if !self.is_there() {
                        return;
                    }
                    hasher.update(concat!(stringify!($name), "\0"));
                    hasher.update((self.rows as u64).to_le_bytes());
                    $(
                        hasher.update(concat!(stringify!($field), "\0"));
                        <$type as $crate::columns::Value>::digest(&self.$field, hasher);
                    )+
                }
            }
        )+

        $(#[$recording_doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $recording {
            $( pub $name: $table, )+
        }

        impl $recording {
            /// Every table with its name, in the order of their declaration: empty ones too, unless they are optional.
            pub fn into_tables(self) -> Vec<(&'static str, arrow_array::RecordBatch)> {
                let mut tables = Vec::new();
                $( if self.$name.is_there() {
                    tables.push((stringify!($name), self.$name.into_batch()));
                } )+
                tables
            }

            /// As [`Self::into_tables`], of a copy.
            pub fn tables(&self) -> Vec<(&'static str, arrow_array::RecordBatch)> {
                self.clone().into_tables()
            }

            /// Name and schema of every table.
            pub fn schemas() -> Vec<(&'static str, arrow_schema::Schema)> {
                vec![ $( (stringify!($name), $table::schema()), )+ ]
            }

            /// What every table and its columns hold, in words.
            pub fn described() -> Vec<$crate::Described> {
                vec![ $( $crate::Described {
                    name: stringify!($name),
                    about: concat!($($row_doc),+).trim(),
                    optional: !concat!($(stringify!($optional))?).is_empty(),
                    columns: $table::schema()
                        .fields()
                        .iter()
                        .zip([ $( concat!($($field_doc),*).trim() ),+ ])
                        .map(|(field, about)| $crate::Column {
                            name: field.name().clone(),
                            data_type: field.data_type().clone(),
                            nullable: field.is_nullable() || about.contains($crate::table::UNKNOWN),
                            about,
                        })
                        .collect(),
                }, )+ ]
            }

            /// Bytes of memory that all rows take, here or in Python.
            pub fn bytes(&self) -> u64 {
                0 $( + self.$name.bytes() )+
            }

            /// SHA-256 over names and contents of all tables: equal for two runs exactly when
            /// their recordings are, on any machine.
            pub fn hash(&self) -> [u8; 32] {
                use sha2::Digest;
                let mut hasher = sha2::Sha256::new();
                $( self.$name.digest(&mut hasher); )+
                hasher.finalize().into()
            }
        }
    };
}

pub(crate) use tables;
