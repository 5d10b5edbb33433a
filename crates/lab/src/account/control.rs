//! The facts about a congestion control that explain its windows.

use polypath_transport::{Config, congestion};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// It couples the windows of a connection's paths.
    pub couples: bool,
    /// It sets a rate, and the window only bounds what is in flight.
    pub sets_rate: bool,
}

impl Control {
    /// Of what is set; of a controller that is not ours nothing is known.
    pub fn of(config: &Config) -> Self {
        let chosen = &config.congestion;
        let made = congestion::REGISTRY.make(&chosen.name, &chosen.parameters);
        made.map_or_else(
            |_| Self::default(),
            |made| Self {
                couples: made.couples(),
                sets_rate: made.paces(),
            },
        )
    }
}
