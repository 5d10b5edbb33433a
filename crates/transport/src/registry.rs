//! What a registry says of each of its entries.

use serde::Serialize;
use serde_json::{Map, Value};

/// Says what is wrong with a text.
pub type Grammar = fn(&str) -> Result<(), String>;

/// A parameter of an algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct Parameter {
    pub name: &'static str,
    /// `integer`, `integers`, `number`, `boolean`, `text` or `texts`.
    pub kind: &'static str,
    pub default: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub choices: &'static [&'static str],
    pub description: &'static str,
    /// What is wrong with a text of a list, which the other fields cannot say.
    #[serde(skip)]
    pub grammar: Option<Grammar>,
}

impl Parameter {
    pub fn integer(
        name: &'static str,
        default: u64,
        minimum: u64,
        maximum: u64,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind: "integer",
            default: default.into(),
            minimum: Some(minimum as f64),
            maximum: Some(maximum as f64),
            choices: &[],
            description,
            grammar: None,
        }
    }

    /// A list of whole numbers, each within the bounds.
    pub fn integers(
        name: &'static str,
        default: &[u64],
        minimum: u64,
        maximum: u64,
        description: &'static str,
    ) -> Self {
        Self {
            kind: "integers",
            default: default.into(),
            ..Self::integer(name, 0, minimum, maximum, description)
        }
    }

    /// A list of texts that follow a grammar of their own; empty unless given.
    pub fn texts(name: &'static str, grammar: Grammar, description: &'static str) -> Self {
        Self {
            kind: "texts",
            default: Value::Array(Vec::new()),
            grammar: Some(grammar),
            ..Self::boolean(name, false, description)
        }
    }

    pub fn number(
        name: &'static str,
        default: f64,
        minimum: f64,
        maximum: f64,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind: "number",
            default: default.into(),
            minimum: Some(minimum),
            maximum: Some(maximum),
            choices: &[],
            description,
            grammar: None,
        }
    }

    pub fn boolean(name: &'static str, default: bool, description: &'static str) -> Self {
        Self {
            name,
            kind: "boolean",
            default: default.into(),
            minimum: None,
            maximum: None,
            choices: &[],
            description,
            grammar: None,
        }
    }

    /// A boolean without a default: left out, the algorithm decides.
    pub fn flag(name: &'static str, description: &'static str) -> Self {
        Self {
            default: Value::Null,
            ..Self::boolean(name, false, description)
        }
    }

    /// A number without a default: left out, the algorithm decides.
    pub fn own_number(
        name: &'static str,
        minimum: f64,
        maximum: f64,
        description: &'static str,
    ) -> Self {
        Self {
            default: Value::Null,
            ..Self::number(name, minimum, minimum, maximum, description)
        }
    }

    pub fn choice(
        name: &'static str,
        choices: &'static [&'static str],
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind: "text",
            default: choices[0].into(),
            minimum: None,
            maximum: None,
            choices,
            description,
            grammar: None,
        }
    }
}

/// Why an algorithm could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("no {kind} is called \"{name}\"; there are {known}")]
    Unknown {
        kind: &'static str,
        name: String,
        known: String,
    },
    #[error("{name} has no parameter \"{parameter}\"")]
    UnknownParameter {
        name: &'static str,
        parameter: String,
    },
    #[error("{name}: {parameter} must be {expected}")]
    BadParameter {
        name: &'static str,
        parameter: &'static str,
        expected: String,
    },
    #[error("{name}: \"{text}\" among {parameter}: {problem}")]
    BadText {
        name: &'static str,
        parameter: &'static str,
        text: String,
        problem: String,
    },
    /// From what makes an algorithm that is written elsewhere.
    #[error("{0}")]
    Foreign(String),
}

/// The parameters given for one entry, checked against what it declares.
#[derive(Clone, Debug)]
pub struct Parameters {
    values: Map<String, Value>,
}

impl Parameters {
    fn check(
        name: &'static str,
        declared: &[Parameter],
        given: &Map<String, Value>,
    ) -> Result<Self, RegistryError> {
        if let Some(parameter) = given
            .keys()
            .find(|key| declared.iter().all(|p| p.name != **key))
        {
            return Err(RegistryError::UnknownParameter {
                name,
                parameter: parameter.clone(),
            });
        }
        let mut values = Map::new();
        for parameter in declared {
            let value = given.get(parameter.name).unwrap_or(&parameter.default);
            if value.is_null() && parameter.default.is_null() {
                continue;
            }
            parameter
                .validate(value)
                .map_err(|expected| RegistryError::BadParameter {
                    name,
                    parameter: parameter.name,
                    expected,
                })?;
            parameter
                .parse(value)
                .map_err(|(text, problem)| RegistryError::BadText {
                    name,
                    parameter: parameter.name,
                    text,
                    problem,
                })?;
            values.insert(parameter.name.into(), value.clone());
        }
        Ok(Self { values })
    }

    pub fn integer(&self, name: &str) -> u64 {
        self.values[name]
            .as_u64()
            .expect("checked against the declaration")
    }

    pub fn integers(&self, name: &str) -> Vec<u64> {
        let list = self.values[name].as_array();
        list.expect("checked against the declaration")
            .iter()
            .filter_map(Value::as_u64)
            .collect()
    }

    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = self.values[name].as_array();
        list.expect("checked against the declaration")
            .iter()
            .filter_map(Value::as_str)
    }

    pub fn number(&self, name: &str) -> f64 {
        self.values[name]
            .as_f64()
            .expect("checked against the declaration")
    }

    /// A number, or what stands for it where it was left out and has no default.
    pub fn number_or(&self, name: &str, otherwise: f64) -> f64 {
        let given = self.values.get(name).and_then(Value::as_f64);
        given.unwrap_or(otherwise)
    }

    pub fn boolean(&self, name: &str) -> bool {
        self.values[name]
            .as_bool()
            .expect("checked against the declaration")
    }

    /// A boolean; nothing where it was left out and has no default.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.values.get(name).and_then(Value::as_bool)
    }

    /// A text; nothing where the entry has no such parameter.
    pub fn chosen(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Value::as_str)
    }

    pub fn text(&self, name: &str) -> &str {
        self.values[name]
            .as_str()
            .expect("checked against the declaration")
    }
}

impl Parameter {
    fn validate(&self, value: &Value) -> Result<(), String> {
        let in_range =
            |x: f64| self.minimum.is_none_or(|m| x >= m) && self.maximum.is_none_or(|m| x <= m);
        let whole = |value: &Value| value.as_u64().is_some_and(|x| in_range(x as f64));
        let fits = match self.kind {
            "integer" => whole(value),
            "integers" => value
                .as_array()
                .is_some_and(|list| !list.is_empty() && list.iter().all(whole)),
            "number" => value.as_f64().is_some_and(in_range),
            "boolean" => value.is_boolean(),
            "texts" => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string)),
            _ => value
                .as_str()
                .is_some_and(|text| self.choices.is_empty() || self.choices.contains(&text)),
        };
        if fits {
            return Ok(());
        }
        let range = match (self.minimum, self.maximum) {
            (Some(low), Some(high)) => format!(" from {low} to {high}"),
            (Some(low), None) => format!(" of at least {low}"),
            _ => String::new(),
        };
        Err(if self.choices.is_empty() {
            format!("of kind {}{range}, not {value}", self.kind)
        } else {
            format!("one of {}, not {value}", self.choices.join(", "))
        })
    }

    /// The first text of a list that does not follow the grammar, and why.
    fn parse(&self, value: &Value) -> Result<(), (String, String)> {
        let (Some(grammar), Some(list)) = (self.grammar, value.as_array()) else {
            return Ok(());
        };
        for text in list.iter().filter_map(Value::as_str) {
            grammar(text).map_err(|problem| (text.to_owned(), problem))?;
        }
        Ok(())
    }
}

/// An entry: a description and a constructor.
pub struct Entry<T: ?Sized> {
    pub name: &'static str,
    pub description: &'static str,
    /// Paper, RFC section or kernel file that the rule was implemented from.
    pub source: &'static str,
    pub parameters: fn() -> Vec<Parameter>,
    pub make: fn(&Parameters) -> Box<T>,
}

impl<T: ?Sized> Entry<T> {
    fn check(&self, given: &Map<String, Value>) -> Result<Parameters, RegistryError> {
        Parameters::check(self.name, &(self.parameters)(), given)
    }
}

/// A description as handed to front ends.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub name: &'static str,
    pub description: &'static str,
    pub source: &'static str,
    pub parameters: Vec<Parameter>,
}

/// All entries of one kind.
pub struct Registry<T: ?Sized + 'static> {
    pub kind: &'static str,
    pub entries: &'static [Entry<T>],
}

impl<T: ?Sized> Registry<T> {
    /// Makes the entry called `name`.
    pub fn make(
        &self,
        name: &str,
        parameters: &Map<String, Value>,
    ) -> Result<Box<T>, RegistryError> {
        let entry = self.entry(name)?;
        Ok((entry.make)(&entry.check(parameters)?))
    }

    /// The parameters of the entry called `name`, with its defaults.
    pub fn parameters(
        &self,
        name: &str,
        parameters: &Map<String, Value>,
    ) -> Result<Parameters, RegistryError> {
        self.entry(name)?.check(parameters)
    }

    fn entry(&self, name: &str) -> Result<&Entry<T>, RegistryError> {
        self.entries
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| RegistryError::Unknown {
                kind: self.kind,
                name: name.into(),
                known: self
                    .entries
                    .iter()
                    .map(|entry| entry.name)
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }

    pub fn describe(&self) -> Vec<Description> {
        self.entries
            .iter()
            .map(|entry| Description {
                name: entry.name,
                description: entry.description,
                source: entry.source,
                parameters: (entry.parameters)(),
            })
            .collect()
    }
}

/// For entries without parameters.
pub fn no_parameters() -> Vec<Parameter> {
    Vec::new()
}
