//! The works that the simulator's speed is measured by.
