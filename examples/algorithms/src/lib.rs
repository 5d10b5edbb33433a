//! Algorithms that are written outside of Polypath, one of each kind (docs/extend.md).

mod aimd;
mod every_nth;
mod first_ready;
mod later;
mod lifo;

use polypath_net::{LOSS_MODELS, LossModel, QUEUE_DISCIPLINES, QueueDiscipline};
use polypath_settings::{Entry, RegistryError};
use polypath_transport::congestion::{self, CongestionControl};
use polypath_transport::path_manager::{self, PathManager};
use polypath_transport::scheduler::{self, Scheduler};

static SCHEDULERS: [Entry<dyn Scheduler>; 1] = [Entry::of::<first_ready::FirstReadyConfig>()];
static CONGESTION: [Entry<dyn CongestionControl>; 1] = [Entry::of::<aimd::AimdConfig>()];
static PATH_MANAGERS: [Entry<dyn PathManager>; 1] = [Entry::of::<later::LaterConfig>()];
static QUEUES: [Entry<dyn QueueDiscipline>; 1] = [Entry::of::<lifo::LifoConfig>()];
static LOSSES: [Entry<dyn LossModel>; 1] = [Entry::of::<every_nth::EveryNthConfig>()];

/// Adds them to the registries.
///
/// # Errors
/// Others were added before, or one has a name that is taken.
pub fn add() -> Result<(), RegistryError> {
    scheduler::REGISTRY.add(&SCHEDULERS)?;
    congestion::REGISTRY.add(&CONGESTION)?;
    path_manager::REGISTRY.add(&PATH_MANAGERS)?;
    QUEUE_DISCIPLINES.add(&QUEUES)?;
    LOSS_MODELS.add(&LOSSES)
}
