//! QUIC and Multipath QUIC between two endpoints of our own.

mod ack_frequency;
mod blocking;
mod bytes;
mod careful_resume;
mod closing;
#[path = "../common/mod.rs"]
#[allow(dead_code, unused_imports)]
mod common;
mod control;
mod fuzz;
mod migration;
mod moves;
mod outages;
mod pair;
mod path_mtu;
mod paths;
mod recovery;
mod resets;
mod retry;
mod sessions;
#[path = "../../../wire/tests/quic/strategies.rs"]
#[allow(dead_code)]
mod strategies;
mod transfer;
mod uniflows;
mod violations;

use polypath_transport::{Config, MILLISECOND as MS, Nanos};

use pair::Link;

pub const MBPS: u64 = 1_000_000;

pub fn quic() -> Config {
    Config {
        multipath: false,
        ..Config::default()
    }
}

pub fn multipath() -> Config {
    Config::default()
}

pub fn link(rate: u64, one_way: Nanos) -> Link {
    Link {
        one_way,
        rate,
        queue: 100 * MS,
    }
}
