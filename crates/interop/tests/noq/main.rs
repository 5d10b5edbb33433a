//! Our QUIC endpoint and noq-proto over simulated links.

mod ack_frequency;
mod changes;
mod ecn;
mod moves;
mod paths;
mod random;
mod retry;
mod transfer;

use polypath_interop::{Fate, Link, Seen};
use polypath_transport::{Config, MILLISECOND as MS, Nanos};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

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
        queue: 100_000,
    }
}

/// Percentages of datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    pub lost: u64,
    pub late: u64,
    pub twice: u64,
}

impl Trouble {
    pub fn hook(self, seed: u64) -> Box<dyn FnMut(Seen) -> Fate> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        Box::new(move |_| {
            let draw = random.next_u64() % 100;
            if draw < self.lost {
                Fate::Drop
            } else if draw < self.lost + self.late {
                Fate::Late((1 + random.next_u64() % 30) * MS)
            } else if draw < self.lost + self.late + self.twice {
                Fate::Twice
            } else {
                Fate::Pass
            }
        })
    }
}
