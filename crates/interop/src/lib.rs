//! Our QUIC endpoint against independent ones, in virtual time.
//!
//! | piece | what it is for |
//! |---|---|
//! | [`World`] | a client and a server over links of given rate, delay and queue; a hook sees each datagram and says its [`Fate`] |
//! | [`End`] | what a world and an [`Exchange`] need of an endpoint |
//! | [`Ours`], [`Noq`], [`Quinn`] | the endpoints |
//! | [`Exchange`] | requests and answers on streams of each kind, every byte of which is checked |
//! | [`trace`] | what was on the wire, decrypted with a key log |
//! | [`peer`], [`scenario`] | implementations by name, and the published test cases that they meet in |
//! | [`matrix`] | every test case with every peer, and the page that shows it |

mod aioquic;
mod end;
mod exchange;
pub mod matrix;
mod noq;
mod ours;
pub mod peer;
mod quinn;
pub mod scenario;
pub mod trace;
mod world;

pub use end::{Arrival, Departure, End, Outcome, Received, Side};
pub use exchange::Exchange;
pub use noq::{Noq, Settings};
pub use ours::Ours;
pub use quinn::Quinn;
pub use world::{Captured, Fate, Link, Seen, World, client_address, server_address};
