//! One configuration for all hosts with equal settings.

use std::sync::Arc;

use polypath_transport::{Algorithms, Config};

use super::config;
use crate::PlanError;
use crate::plan::Stack;

/// So many are looked through: hosts that say the same stand side by side in most plans.
const MOST: usize = 16;

/// The last configurations that were made, and what for.
#[derive(Default)]
pub(crate) struct SharedConfigs {
    made: Vec<(Stack, bool, Arc<Config>)>,
}

impl SharedConfigs {
    /// The transport settings of a stack.
    ///
    /// # Errors
    /// Those of [`config`].
    pub fn of(
        &mut self,
        stack: &Stack,
        multipath: bool,
        place: &str,
        algorithms: &Algorithms,
    ) -> Result<Arc<Config>, PlanError> {
        let mut known = self.made.iter();
        if let Some((_, _, made)) = known.find(|(of, with, _)| (of, *with) == (stack, multipath)) {
            return Ok(made.clone());
        }
        let made = config(stack, multipath, place, algorithms)?;
        if self.made.len() == MOST {
            self.made.remove(0);
        }
        self.made.push((stack.clone(), multipath, made.clone()));
        Ok(made)
    }
}
