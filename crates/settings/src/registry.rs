//! Registries: the entries that can be chosen by name.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json};

use crate::{Model, ModelError, Settings};

/// Settings that an algorithm is made of.
pub trait Algorithm<T: ?Sized>: Settings {
    fn make(self) -> Box<T>;
}

type Made<T> = Result<Box<T>, ModelError>;

/// An algorithm of a registry.
pub struct Entry<T: ?Sized> {
    pub model: Model,
    make: fn(&Map<String, Json>) -> Made<T>,
}

impl<T: ?Sized> Entry<T> {
    /// The algorithm that is made of these settings.
    pub const fn of<A: Algorithm<T>>() -> Self {
        Self {
            model: A::MODEL,
            make: |given| Ok(A::read(given)?.make()),
        }
    }
}

/// Why an algorithm could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RegistryError {
    #[error("no {kind} is called \"{name}\"; there are {known}")]
    Unknown {
        kind: &'static str,
        name: String,
        known: String,
    },
    #[error(transparent)]
    Settings(#[from] ModelError),
    #[error("there is a {kind} called \"{name}\" already")]
    Taken {
        kind: &'static str,
        name: &'static str,
    },
    #[error("a {kind} is added after others were; add all at once")]
    Added { kind: &'static str },
    /// From what makes an algorithm that is written elsewhere.
    #[error("{0}")]
    Foreign(String),
}

/// All algorithms of one kind: those of the crate that has it, and those that were added.
pub struct Registry<T: ?Sized + 'static> {
    kind: &'static str,
    own: &'static [Entry<T>],
    added: OnceLock<&'static [Entry<T>]>,
}

impl<T: ?Sized> Registry<T> {
    pub const fn new(kind: &'static str, own: &'static [Entry<T>]) -> Self {
        Self {
            kind,
            own,
            added: OnceLock::new(),
        }
    }

    /// Adds algorithms from elsewhere, once, before any is made: what made plans and read them would not agree otherwise.
    ///
    /// # Errors
    /// Some were added before, or one has a name that is taken.
    pub fn add(&self, entries: &'static [Entry<T>]) -> Result<(), RegistryError> {
        for (index, entry) in entries.iter().enumerate() {
            let before = self.own.iter().chain(&entries[..index]);
            let name = entry.model.name;
            if before
                .map(|entry| entry.model.name)
                .any(|other| other == name)
            {
                return Err(RegistryError::Taken {
                    kind: self.kind,
                    name,
                });
            }
        }
        let added = self.added.set(entries);
        added.map_err(|_| RegistryError::Added { kind: self.kind })
    }

    /// Whether it has algorithms from elsewhere.
    pub fn has_grown(&self) -> bool {
        !self.added().is_empty()
    }

    fn added(&self) -> &'static [Entry<T>] {
        self.added.get().copied().unwrap_or_default()
    }

    fn entries(&self) -> impl Iterator<Item = &'static Entry<T>> + use<T> {
        self.own.iter().chain(self.added())
    }

    /// Makes the algorithm called `name` with the settings given.
    ///
    /// # Errors
    /// There is none of that name, or it does not take these settings.
    pub fn make(&self, name: &str, given: &Map<String, Json>) -> Result<Box<T>, RegistryError> {
        match self.entries().find(|entry| entry.model.name == name) {
            Some(entry) => Ok((entry.make)(given)?),
            None => Err(RegistryError::Unknown {
                kind: self.kind,
                name: name.into(),
                known: self.names().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<T> {
        self.entries().map(|entry| entry.model.name)
    }

    pub fn describe(&self) -> Vec<Model> {
        self.entries().map(|entry| entry.model).collect()
    }
}

/// A table of a plan that names an added algorithm by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Added {
    pub kind: String,
    #[serde(flatten)]
    pub settings: Map<String, Json>,
}

impl Added {
    /// The table, if it names one that was added to the registry.
    ///
    /// # Errors
    /// What `otherwise` finds wrong with a table of another kind.
    pub fn read<'de, T: ?Sized, D: Deserializer<'de>, M>(
        registry: &Registry<T>,
        deserializer: D,
        added: fn(Self) -> M,
        otherwise: impl FnOnce(Json) -> serde_json::Result<M>,
    ) -> Result<M, D::Error> {
        let table = Json::deserialize(deserializer)?;
        let named = |entry: &Entry<T>| table["kind"] == entry.model.name;
        let read = match registry.added().iter().any(named) {
            true => serde_json::from_value(table).map(added),
            false => otherwise(table),
        };
        read.map_err(D::Error::custom)
    }
}
