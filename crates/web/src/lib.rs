//! What a page asks of the simulator: a plan in, what the page shows of its run out.

mod page;
mod run;

pub use run::Run;
