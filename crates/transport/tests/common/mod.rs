//! Two ways to drive endpoints in virtual time.
//!
//! | piece | what it is for |
//! |---|---|
//! | [`Pair`] | two [`Connection`]s over paths of given delay and rate; a hook sees each packet and may drop, delay, duplicate, corrupt or edit it |
//! | [`script::Script`] | one [`Connection`]; the test plays the peer with segments written by hand |

pub mod pair;
pub mod script;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use polypath_transport::{
    Accept, Algorithms, BlackHoles, Config, Nanos, Ports, Profile, Retained, Sessions, Tuple,
};
use rand_pcg::Pcg64Mcg;

pub use pair::{Fate, Link, Pair, Side};
pub use polypath_transport::{MILLISECOND as MS, SECOND};

pub const CLIENT_PORT: u16 = 20_000;
pub const SERVER_PORT: u16 = 80;
/// The least timeout of most tests: a shorter one than the second of RFC 6298 section 2.4, so that timeouts come while little else happens.
pub const RTO_MIN: Nanos = 200 * MS;

/// The client's address on path `index`.
pub fn client_address(index: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, index as u8, 1).into()
}

/// The server's address `index`; connections are opened to the first.
pub fn server_address(index: usize) -> IpAddr {
    Ipv4Addr::new(10, 1, index as u8, 1).into()
}

/// The first subflow as the client sees it.
pub fn first_tuple() -> Tuple {
    Tuple {
        local: SocketAddr::new(client_address(0), CLIENT_PORT),
        remote: SocketAddr::new(server_address(0), SERVER_PORT),
    }
}

pub fn reversed(tuple: Tuple) -> Tuple {
    Tuple {
        local: tuple.remote,
        remote: tuple.local,
    }
}

/// What a host gives to its connection; hosts differ by `seed`.
pub fn host(config: &Config, addresses: Vec<IpAddr>, seed: u128) -> Accept {
    Accept {
        config: Arc::new(config.clone()),
        algorithms: Algorithms::default(),
        addresses: addresses
            .into_iter()
            .map(|address| (address, false))
            .collect(),
        mtus: Vec::new(),
        ports: Ports::default(),
        black_holes: BlackHoles::default(),
        random: Pcg64Mcg::new(seed | 1),
        sessions: Sessions::default(),
        retained: Retained::default(),
        isn: None,
    }
}

/// Plain TCP with Reno, whose windows are easy to follow.
pub fn tcp() -> Config {
    Config {
        multipath: false,
        congestion: "reno".into(),
        rto_min_ns: RTO_MIN,
        ..Config::default()
    }
}

/// MPTCP with Reno on each subflow.
pub fn mptcp() -> Config {
    Config {
        congestion: "reno".into(),
        rto_min_ns: RTO_MIN,
        ..Config::default()
    }
}

pub fn with_profile(profile: Profile, config: Config) -> Config {
    Config { profile, ..config }
}
