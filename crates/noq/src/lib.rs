//! noq-proto, an independent implementation of QUIC and Multipath QUIC, as a stack of the lab.
//!
//! noq decides everything that a QUIC stack decides. This crate is its application: it has no socket and no clock,
//! draws from a seed, and asks for paths.
//!
//! | piece | what it is for |
//! |---|---|
//! | [`Endpoint`] | an endpoint with one connection: bytes in, bytes out, a deadline |
//! | [`Connection`] | the same with the calls of `polypath_transport::quic::Connection`: a path manager, paths, events |
//! | [`Settings`] | the settings of noq |

mod connection;
mod endpoint;
mod lanes;
mod meter;
mod settings;

pub use connection::{Connection, Lane};
pub use endpoint::{Arrival, Content, Departure, Endpoint, News};
pub use noq_proto;
pub use settings::{Congestion, LONGEST_DATAGRAM, Settings};
