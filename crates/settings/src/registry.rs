//! What can be chosen by its name.

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
    /// From what makes an algorithm that is written elsewhere.
    #[error("{0}")]
    Foreign(String),
}

/// All algorithms of one kind.
pub struct Registry<T: ?Sized + 'static> {
    pub kind: &'static str,
    pub entries: &'static [Entry<T>],
}

impl<T: ?Sized> Registry<T> {
    /// Makes the algorithm called `name` with the settings given.
    ///
    /// # Errors
    /// There is none of that name, or it does not take these settings.
    pub fn make(&self, name: &str, given: &Map<String, Json>) -> Result<Box<T>, RegistryError> {
        let mut entries = self.entries.iter();
        match entries.find(|entry| entry.model.name == name) {
            Some(entry) => Ok((entry.make)(given)?),
            None => Err(RegistryError::Unknown {
                kind: self.kind,
                name: name.into(),
                known: self.names().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|entry| entry.model.name)
    }

    pub fn describe(&self) -> Vec<Model> {
        self.entries.iter().map(|entry| entry.model).collect()
    }
}
