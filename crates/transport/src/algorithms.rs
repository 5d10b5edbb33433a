//! Makes algorithms by name, from the registries and from code that is written elsewhere.

use std::fmt::Debug;
use std::sync::Arc;

use polypath_settings::{ModelError, RegistryError};

use crate::congestion::{self, CongestionControl};
use crate::path_manager::{self, PASSIVE, PathManager};
use crate::scheduler::{self, Scheduler};
use crate::settings::{Choice, Config};

/// Makes algorithms that are written elsewhere, for example in Python.
pub trait Foreign: Debug + Send + Sync {
    /// The congestion control chosen; nothing where the name is none of its own.
    fn congestion(
        &self,
        choice: &Choice,
    ) -> Option<Result<Box<dyn CongestionControl>, RegistryError>>;

    /// The scheduler chosen; nothing where the name is none of its own.
    fn scheduler(&self, choice: &Choice) -> Option<Result<Box<dyn Scheduler>, RegistryError>>;

    /// The path manager chosen; nothing where the name is none of its own.
    fn path_manager(&self, choice: &Choice) -> Option<Result<Box<dyn PathManager>, RegistryError>>;
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Algorithm(#[from] RegistryError),
    #[error(transparent)]
    Setting(#[from] ModelError),
}

/// Makes the algorithms that a host's settings name.
#[derive(Clone, Debug, Default)]
pub struct Algorithms {
    /// Asked before the registries.
    foreign: Option<Arc<dyn Foreign>>,
}

impl Algorithms {
    /// Those of the registries, and before them those that `foreign` makes.
    pub fn with(foreign: Arc<dyn Foreign>) -> Self {
        Self {
            foreign: Some(foreign),
        }
    }

    /// # Errors
    /// The congestion control or one of its parameters does not exist.
    pub fn congestion(&self, config: &Config) -> Result<Box<dyn CongestionControl>, RegistryError> {
        let chosen = &config.congestion;
        let foreign = self.foreign.as_ref();
        foreign
            .and_then(|foreign| foreign.congestion(chosen))
            .unwrap_or_else(|| congestion::REGISTRY.make(&chosen.name, &chosen.parameters))
    }

    /// # Errors
    /// The scheduler or one of its parameters does not exist.
    pub fn scheduler(&self, config: &Config) -> Result<Box<dyn Scheduler>, RegistryError> {
        let chosen = &config.scheduler;
        let foreign = self.foreign.as_ref();
        foreign
            .and_then(|foreign| foreign.scheduler(chosen))
            .unwrap_or_else(|| scheduler::REGISTRY.make(&chosen.name, &chosen.parameters))
    }

    /// # Errors
    /// The path manager or one of its parameters does not exist.
    pub fn path_manager(&self, config: &Config) -> Result<Box<dyn PathManager>, RegistryError> {
        let chosen = &config.path_manager;
        let foreign = self.foreign.as_ref();
        foreign
            .and_then(|foreign| foreign.path_manager(chosen))
            .unwrap_or_else(|| {
                let made = path_manager::REGISTRY.make(&chosen.name, &chosen.parameters)?;
                let idle = chosen.name == PASSIVE && config.profile.manages_without_tasks();
                Ok(match idle {
                    true => path_manager::kernel_without_tasks(),
                    false => made,
                })
            })
    }

    /// Checks that every algorithm and parameter exists, and that every setting is within its bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self, config: &Config) -> Result<(), ConfigError> {
        self.congestion(config)?;
        self.scheduler(config)?;
        self.path_manager(config)?;
        Ok(config.within_bounds()?)
    }
}
