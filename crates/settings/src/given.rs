//! Reads the values given for an algorithm into its settings.

use std::str::FromStr;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};

use crate::{Measure, Model, ModelError, Parameter, Typed};

/// The settings of an algorithm.
pub trait Settings: Sized {
    const MODEL: Model;

    /// # Errors
    /// The first setting that is not as it is declared.
    fn take(given: &Given) -> Result<Self, ModelError>;

    /// The settings given, and the defaults of the others.
    ///
    /// # Errors
    /// The first setting that does not exist, or is not as it is declared.
    fn read(values: &Map<String, Json>) -> Result<Self, ModelError> {
        let model = Self::MODEL;
        let known = |name: &String| model.declared().any(|each| each.field == name);
        match values.keys().find(|name| !known(name)) {
            Some(name) => Err(ModelError::Unknown {
                model: model.name,
                parameter: name.clone(),
            }),
            None => Self::take(&Given { model, values }),
        }
    }
}

/// Settings that several algorithms have in common.
pub trait Group: Sized {
    /// # Errors
    /// The first setting that is not as it is declared.
    fn take(given: &Given) -> Result<Self, ModelError>;
}

/// What is given for an algorithm.
pub struct Given<'a> {
    model: Model,
    values: &'a Map<String, Json>,
}

impl Given<'_> {
    /// A setting: what is given, or its default.
    ///
    /// # Errors
    /// It is not as it is declared.
    pub fn take<T: DeserializeOwned>(&self, field: &str) -> Result<T, ModelError> {
        let model = self.model.name;
        let mut declared = self.model.declared();
        let Some(parameter) = declared.find(|each| each.field == field) else {
            return Err(ModelError::Unknown {
                model,
                parameter: field.to_owned(),
            });
        };
        let problem = |problem: String| ModelError::Value {
            model,
            parameter: parameter.name,
            problem,
        };
        let value = match (self.values.get(field), parameter.default) {
            (Some(value), _) => value.clone(),
            (None, Some(default)) => {
                serde_json::to_value(default).map_err(|error| problem(error.to_string()))?
            }
            (None, None) => {
                return Err(ModelError::Missing {
                    model,
                    parameter: parameter.name,
                });
            }
        };
        self.hold(parameter, &value)?;
        if parameter.kind == Measure::Integers && value.as_array().is_some_and(Vec::is_empty) {
            return Err(problem("at least one is needed".to_owned()));
        }
        serde_json::from_value(value).map_err(|error| problem(error.to_string()))
    }

    /// Holds a number, or each of a list, against its bounds.
    fn hold(&self, parameter: &Parameter, value: &Json) -> Result<(), ModelError> {
        let each = match value {
            Json::Array(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        let mut numbers = each.iter().filter_map(Json::as_f64);
        numbers.try_for_each(|number| parameter.holds(self.model.name, number))
    }
}

/// A list of texts that follow a grammar.
#[derive(Clone, Debug, Default)]
pub struct Lines<T>(pub Vec<T>);

impl<T> Typed for Lines<T> {}

impl<'de, T: FromStr<Err = String>> Deserialize<'de> for Lines<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: String| {
            let parsed = text.parse();
            parsed.map_err(|problem| D::Error::custom(format!("\"{text}\": {problem}")))
        };
        let texts = Vec::<String>::deserialize(deserializer)?;
        let lines: Result<_, _> = texts.into_iter().map(read).collect();
        lines.map(Self)
    }
}
