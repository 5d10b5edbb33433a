//! The simulator for a page: a plan goes in, and the page's view of its run comes out.

mod page;
mod run;

pub use run::Run;
