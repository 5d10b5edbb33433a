//! Our QUIC endpoint against an independent one, noq-proto, in virtual time.
//!
//! | piece | what it is for |
//! |---|---|
//! | [`World`] | a client and a server over links of given rate, delay and queue; a hook sees each datagram and says its [`Fate`] |
//! | [`End`] | what a world and an [`Exchange`] need of an endpoint |
//! | [`Ours`], [`Noq`] | the two endpoints |
//! | [`Exchange`] | requests and answers on streams of each kind, every byte of which is checked |

mod end;
mod exchange;
mod noq;
mod ours;
mod world;

pub use end::{Arrival, Departure, End, Outcome, Received, Side};
pub use exchange::Exchange;
pub use noq::{Noq, Settings};
pub use ours::Ours;
pub use world::{Fate, Link, Seen, World, client_address, server_address};
