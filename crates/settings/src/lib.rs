//! A setting: its name, unit, bounds, default and text.
//!
//! A table of settings is declared once, with its type. The code that reads scenarios, checks them and lists the
//! settings follows from it.
//!
//! Three macros declare a table:
//!
//! - [`model!`] declares a table of a plan, which gives every setting.
//! - [`algorithm!`] declares the settings of an algorithm that is chosen by its name in a [`Registry`]. Some are given, and the others have
//!   defaults.
//! - [`settings!`] declares a host's settings.

mod given;
mod registry;

use serde::ser::{Serialize, SerializeStruct, Serializer};

pub use given::{Given, Group, Lines, Settings};
pub use registry::{Added, Algorithm, Entry, Registry, RegistryError};
pub use serde_json;

/// What a parameter is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    Boolean,
    Integer,
    /// A list of integers, one at least.
    Integers,
    Number,
    /// One of several words, or any text.
    Text,
    /// A list of texts.
    Texts,
    Packets,
    /// A probability.
    Share,
    /// Bit/s; its field ends in `_bps`.
    Rate,
    /// Nanoseconds, which may be none; its field ends in `_ns`.
    Time,
    /// Nanoseconds; its field ends in `_ns`.
    Period,
    /// Bytes; its field ends in `_bytes`.
    Size,
    /// Bytes, which may be none; its field ends in `_bytes`.
    Depth,
}

impl Measure {
    const fn bounds(self) -> (f64, f64) {
        match self {
            Self::Share => (0.0, 1.0),
            Self::Boolean
            | Self::Integer
            | Self::Integers
            | Self::Number
            | Self::Text
            | Self::Texts => (f64::NEG_INFINITY, f64::INFINITY),
            Self::Time | Self::Depth => (0.0, f64::INFINITY),
            Self::Packets | Self::Rate | Self::Period | Self::Size => (1.0, f64::INFINITY),
        }
    }

    /// What a field has at its end.
    const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "_bps",
            Self::Time | Self::Period => "_ns",
            Self::Size | Self::Depth => "_bytes",
            _ => "",
        }
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    Boolean(bool),
    Integer(u64),
    Integers(&'static [u64]),
    Number(f64),
    Text(&'static str),
    Texts(&'static [&'static str]),
    /// Left out, and that means something of its own.
    Absent(()),
}

impl Value {
    fn number(self) -> Option<f64> {
        match self {
            Self::Boolean(_)
            | Self::Integers(_)
            | Self::Text(_)
            | Self::Texts(_)
            | Self::Absent(()) => None,
            Self::Integer(value) => Some(value as f64),
            Self::Number(value) => Some(value),
        }
    }
}

/// The type of a setting, as it is declared.
pub trait Typed {
    const REAL: bool = false;
    /// The words that it may be, where it is one of several.
    const CHOICES: &'static [&'static str] = &[];
}

impl Typed for bool {}
impl Typed for u32 {}
impl Typed for u64 {}
impl Typed for String {}
impl Typed for Vec<u32> {}

impl Typed for f64 {
    const REAL: bool = true;
}

impl<T: Typed> Typed for Option<T> {
    const REAL: bool = T::REAL;
    const CHOICES: &'static [&'static str] = T::CHOICES;
}

/// The type of a setting that tells its value.
pub trait Setting: Typed + Copy {
    fn value(self) -> Value;
}

impl Setting for bool {
    fn value(self) -> Value {
        Value::Boolean(self)
    }
}

impl Setting for u32 {
    fn value(self) -> Value {
        Value::Integer(self.into())
    }
}

impl Setting for u64 {
    fn value(self) -> Value {
        Value::Integer(self)
    }
}

impl Setting for f64 {
    fn value(self) -> Value {
        Value::Number(self)
    }
}

impl<T: Setting> Setting for Option<T> {
    fn value(self) -> Value {
        self.map_or(Value::Absent(()), T::value)
    }
}

/// A parameter of a model.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Parameter {
    /// That of its field without a unit at its end, unless it is called otherwise.
    pub name: &'static str,
    pub field: &'static str,
    pub kind: Measure,
    /// A Plan has it as a number with a fraction, be that zero.
    pub real: bool,
    /// Absent: it has to be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    pub minimum: f64,
    /// The minimum itself is not allowed.
    pub exclusive: bool,
    pub maximum: f64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub choices: &'static [&'static str],
    /// Left out of a scenario, it is the time from the start to the end of the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rest: bool,
    /// A Plan has it only where it is not the default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub seldom: bool,
    /// Of what alone it is a setting; empty: of all.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub only: &'static str,
    pub description: &'static str,
}

impl Parameter {
    pub const fn new<T: Typed>(
        field: &'static str,
        kind: Measure,
        description: &'static str,
    ) -> Self {
        let (minimum, maximum) = kind.bounds();
        Self {
            name: without(field, kind.unit()),
            field,
            kind,
            real: T::REAL,
            default: None,
            minimum,
            exclusive: false,
            maximum,
            choices: T::CHOICES,
            rest: false,
            seldom: false,
            only: "",
            description: description.trim_ascii(),
        }
    }

    pub const fn or(self, default: Value) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    pub const fn at_least(self, minimum: u64) -> Self {
        Self {
            minimum: minimum as f64,
            ..self
        }
    }

    pub const fn at_most(self, maximum: u64) -> Self {
        Self {
            maximum: maximum as f64,
            ..self
        }
    }

    /// Of a number with a fraction.
    pub const fn within(self, minimum: f64, maximum: f64) -> Self {
        Self {
            minimum,
            maximum,
            ..self
        }
    }

    pub const fn above(self, minimum: u64) -> Self {
        Self {
            exclusive: true,
            ..self.at_least(minimum)
        }
    }

    /// What a scenario calls it, where that is not its field's name.
    pub const fn called(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Left out, it is the rest of the run.
    pub const fn or_rest(self) -> Self {
        Self { rest: true, ..self }.or(Value::Absent(()))
    }

    pub const fn seldom(self) -> Self {
        Self {
            seldom: true,
            ..self
        }
    }

    /// A setting of that alone.
    pub const fn only(self, only: &'static str) -> Self {
        Self { only, ..self }
    }

    fn holds(&self, model: &'static str, value: f64) -> Result<(), ModelError> {
        if self.admits(value) {
            return Ok(());
        }
        Err(ModelError::Bounds {
            model,
            parameter: self.name,
            expected: self.expected(),
            value,
        })
    }

    fn admits(&self, value: f64) -> bool {
        let low_enough = value <= self.maximum && value.is_finite();
        low_enough && (value > self.minimum || value == self.minimum && !self.exclusive)
    }

    fn expected(&self) -> String {
        let Self {
            minimum, maximum, ..
        } = *self;
        match (self.exclusive, maximum.is_finite()) {
            (_, true) if minimum.is_infinite() => format!("at most {maximum}"),
            (true, true) => format!("above {minimum} and at most {maximum}"),
            (true, false) => format!("above {minimum}"),
            (false, true) => format!("between {minimum} and {maximum}"),
            (false, false) => format!("at least {minimum}"),
        }
    }
}

const fn without(field: &'static str, unit: &str) -> &'static str {
    if unit.is_empty() || field.len() <= unit.len() {
        return field;
    }
    let (stem, _) = field.as_bytes().split_at(field.len() - unit.len());
    match std::str::from_utf8(stem) {
        Ok(stem) => stem,
        Err(_) => field,
    }
}

/// A model of a registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    pub name: &'static str,
    pub summary: &'static str,
    /// Paper, RFC or kernel file that defines it.
    pub source: &'static str,
    /// Its own.
    pub parameters: &'static [Parameter],
    /// Those that it has in common with others.
    pub groups: &'static [&'static [Parameter]],
}

impl Model {
    /// All parameters, its own first.
    pub fn declared(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        let (own, groups) = (self.parameters, self.groups);
        own.iter().chain(groups.iter().copied().flatten())
    }

    /// Holds the values, in the order of the parameters, against their bounds.
    ///
    /// # Errors
    /// The first value that is out of them.
    pub fn check(&self, values: &[Value]) -> Result<(), ModelError> {
        within_bounds(self.name, self.parameters, values)
    }
}

/// As front ends have it.
impl Serialize for Model {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let declared: Vec<_> = self.declared().collect();
        let mut entry = serializer.serialize_struct("Model", 4)?;
        entry.serialize_field("name", self.name)?;
        entry.serialize_field("description", self.summary)?;
        entry.serialize_field("source", self.source)?;
        entry.serialize_field("parameters", &declared)?;
        entry.end()
    }
}

/// Holds the values, in the order of the parameters, against their bounds; `model` is what they are of.
///
/// # Errors
/// The first value that is out of them.
pub fn within_bounds(
    model: &'static str,
    parameters: &[Parameter],
    values: &[Value],
) -> Result<(), ModelError> {
    for (parameter, value) in parameters.iter().zip(values) {
        if let Some(value) = value.number() {
            parameter.holds(model, value)?;
        }
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    #[error("'{parameter}' of {model} must be {expected}, not {value}")]
    Bounds {
        model: &'static str,
        parameter: &'static str,
        expected: String,
        value: f64,
    },
    #[error("'{greater}' of {model} must be greater than '{less}'")]
    Order {
        model: &'static str,
        less: &'static str,
        greater: &'static str,
    },
    #[error("{model} has no parameter '{parameter}'")]
    Unknown {
        model: &'static str,
        parameter: String,
    },
    #[error("'{parameter}' of {model} must be given")]
    Missing {
        model: &'static str,
        parameter: &'static str,
    },
    #[error("'{parameter}' of {model}: {problem}")]
    Value {
        model: &'static str,
        parameter: &'static str,
        problem: String,
    },
}

/// A model and its settings, declared together: each field has its text, type, measure, bounds and default. A module has one, whose name,
/// text and source come first.
#[macro_export]
macro_rules! model {
    (
        $name:literal, $summary:literal, $source:literal;
        $(#[doc = $about:literal])+
        $config:ident {
            $(
                $(#[doc = $text:literal])+
                $(#[serde($($serde:tt)+)])?
                $field:ident: $type:ty as $measure:ident $(.$bound:ident($($limit:expr)?))* $(= $kind:ident($default:expr))?
            ),* $(,)?
        }
    ) => {
        pub(super) const MODEL: $crate::Model = $crate::Model {
            name: $name,
            summary: $summary,
            source: $source,
            parameters: &[$(
                $crate::Parameter::new::<$type>(
                    stringify!($field),
                    $crate::Measure::$measure,
                    concat!($($text),+),
                )
                $(.$bound($($limit)?))*
                $(.or($crate::Value::$kind($default)))?
            ),*],
            groups: &[],
        };

        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $config {
            $(
                $(#[doc = $text])+
                $(#[serde($($serde)+)])?
                pub $field: $type,
            )*
        }

        impl $config {
            /// Holds every setting against its bounds.
            pub(super) fn within_bounds(&self) -> Result<(), $crate::ModelError> {
                MODEL.check(&[$($crate::Setting::value(self.$field)),*])
            }
        }
    };
}

/// An algorithm and its settings, declared together: first its name, text and source, then each setting as in [`model!`]. Behind `..` come groups of
/// settings that it has in common with others, each a field with its [`Group`] and how the group is declared here. One without settings is
/// its type's default.
#[macro_export]
macro_rules! algorithm {
    ($name:literal, $summary:literal, $source:literal; $algorithm:ident) => {
        impl $crate::Settings for $algorithm {
            const MODEL: $crate::Model = $crate::Model {
                name: $name,
                summary: $summary,
                source: $source,
                parameters: &[],
                groups: &[],
            };

            fn take(_: &$crate::Given) -> Result<Self, $crate::ModelError> {
                Ok(Self::default())
            }
        }
    };
    (
        $name:literal, $summary:literal, $source:literal;
        $(#[doc = $about:literal])+
        $config:ident {
            $(
                $(#[doc = $text:literal])+
                $field:ident: $type:ty as $measure:ident $(.$bound:ident($($limit:expr),*))* $(= $kind:ident($default:expr))?
            ),* $(,)?
            $(..$group:ident: $shared:ty = $declared:expr),*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub struct $config {
            $(
                $(#[doc = $text])+
                pub $field: $type,
            )*
            $(pub $group: $shared,)*
        }

        impl $crate::Settings for $config {
            const MODEL: $crate::Model = $crate::Model {
                name: $name,
                summary: $summary,
                source: $source,
                parameters: &[$(
                    $crate::Parameter::new::<$type>(
                        stringify!($field),
                        $crate::Measure::$measure,
                        concat!($($text),+),
                    )
                    $(.$bound($($limit),*))*
                    $(.or($crate::Value::$kind($default)))?
                ),*],
                groups: &[$($declared),*],
            };

            fn take(given: &$crate::Given) -> Result<Self, $crate::ModelError> {
                Ok(Self {
                    $($field: given.take(stringify!($field))?,)*
                    $($group: <$shared as $crate::Group>::take(given)?,)*
                })
            }
        }
    };
}

/// A struct of settings, each with its text, type, measure, bounds and default, and behind `..` fields that nothing else is made from. What
/// the settings are of comes first, for messages.
#[macro_export]
macro_rules! settings {
    (
        $of:literal;
        $(#[$about:meta])+
        $config:ident {
            $(
                $(#[doc = $text:literal])+
                $(#[serde($($serde:tt)+)])?
                $field:ident: $type:ty as $measure:ident $(.$bound:ident($($limit:expr)?))* = $default:expr,
            )*
            ..
            $(
                $(#[$note:meta])*
                $other:ident: $other_type:ty = $other_default:expr,
            )*
        }
    ) => {
        $(#[$about])+
        pub struct $config {
            $(
                $(#[doc = $text])+
                $(#[serde($($serde)+)])?
                pub $field: $type,
            )*
            $(
                $(#[$note])*
                pub $other: $other_type,
            )*
        }

        impl Default for $config {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($other: $other_default,)*
                }
            }
        }

        impl $config {
            const DECLARED: &[$crate::Parameter] = &[$(
                $crate::Parameter::new::<$type>(
                    stringify!($field),
                    $crate::Measure::$measure,
                    concat!($($text),+),
                )
                $(.$bound($($limit)?))*
            ),*];

            fn values(&self) -> Vec<$crate::Value> {
                vec![$($crate::Setting::value(self.$field)),*]
            }

            /// The declared settings, with what they are here as their defaults.
            pub fn described(&self) -> Vec<$crate::Parameter> {
                let declared = Self::DECLARED.iter().zip(self.values());
                declared.map(|(setting, value)| setting.or(value)).collect()
            }

            /// Holds every declared setting against its bounds.
            pub(super) fn within_bounds(&self) -> Result<(), $crate::ModelError> {
                $crate::within_bounds($of, Self::DECLARED, &self.values())
            }
        }
    };
}

/// The words of a setting that is one of several, each with what it stands for.
#[macro_export]
macro_rules! choice {
    (
        $(#[$about:meta])+
        $choice:ident { $( $(#[$note:meta])* $name:ident = $word:literal ),+ $(,)? }
    ) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $choice {
            $(
                $(#[$note])*
                #[serde(rename = $word)]
                $name,
            )+
        }

        impl $crate::Typed for $choice {
            const CHOICES: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::Setting for $choice {
            fn value(self) -> $crate::Value {
                $crate::Value::Text(match self { $(Self::$name => $word),+ })
            }
        }
    };
}
