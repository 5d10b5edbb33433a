//! Independent random losses.

use polypath_settings::model;

model! {
    "random",
    "loses each packet with the same probability, independently",
    "tc-netem(8)";
    /// Settings of independent losses.
    RandomConfig {
        /// Loss probability of a packet.
        probability: f64 as Share,
    }
}
