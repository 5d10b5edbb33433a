//! The networks of the published scenarios, as quic-network-simulator describes them.

use polypath_transport::{MILLISECOND as MS, Nanos, SECOND};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

use crate::end::Side;
use crate::world::{Fate, Hook, Link};

/// A packet of the queue's length, with headers.
const PACKET: u64 = 1500;
/// Corruption hits one of so many first bytes: often the header.
const HEAD: u64 = 50;

/// A bottleneck of 10 Mbit/s with a queue of 25 packets, and what it does to packets.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub one_way: Nanos,
    pub impairment: Impairment,
    pub rebinding: Option<Rebinding>,
}

/// What becomes of packets.
#[derive(Clone, Copy, Debug)]
pub enum Impairment {
    None,
    /// Of each direction so many percent are dropped, and no more than so many in a row.
    Drop {
        percent: u64,
        burst: u32,
    },
    /// The same with a byte of them altered.
    Corrupt {
        percent: u64,
        burst: u32,
    },
    /// These of the datagrams to the server are dropped, counted from 1.
    DropToServer(&'static [u32]),
    /// Everything is dropped for a while, again and again.
    Blackhole {
        on: Nanos,
        off: Nanos,
    },
}

/// A translator on the way forgets the client's addresses.
#[derive(Clone, Copy, Debug)]
pub struct Rebinding {
    pub first: Nanos,
    pub every: Nanos,
    /// The address changes, and not the port alone.
    pub address: bool,
}

impl Network {
    /// `simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25`, on which the others build.
    pub const SIMPLE: Self = Self {
        one_way: 15 * MS,
        impairment: Impairment::None,
        rebinding: None,
    };

    /// `rebind --first-rebind=1s --rebind-freq=5s`.
    pub const fn rebinding(address: bool) -> Self {
        Self {
            rebinding: Some(Rebinding {
                first: SECOND,
                every: 5 * SECOND,
                address,
            }),
            ..Self::SIMPLE
        }
    }

    pub const fn impaired(impairment: Impairment) -> Self {
        Self {
            impairment,
            ..Self::SIMPLE
        }
    }

    pub fn link(&self) -> Link {
        Link {
            one_way: self.one_way,
            rate: 10_000_000,
            queue: 25 * PACKET,
        }
    }

    pub fn is_lossless(&self) -> bool {
        matches!(self.impairment, Impairment::None)
    }

    /// Among many handshakes, one or the other may run into an idle timeout: with 30 % of packets lost, probes become rare before they arrive.
    pub fn is_by_chance(&self) -> bool {
        match self.impairment {
            Impairment::Drop { percent, .. } | Impairment::Corrupt { percent, .. } => percent >= 30,
            _ => false,
        }
    }

    pub fn hook(&self, seed: u64) -> Hook {
        match self.impairment {
            Impairment::None => Box::new(|_| Fate::Pass),
            Impairment::Drop { percent, burst } => {
                let mut directions = [0, 1].map(|side| Chance::new(seed, side, percent, burst));
                Box::new(move |seen| {
                    let hit = directions[seen.from as usize].hits();
                    if hit { Fate::Drop } else { Fate::Pass }
                })
            }
            Impairment::Corrupt { percent, burst } => {
                let mut directions = [0, 1].map(|side| Chance::new(seed, side, percent, burst));
                Box::new(move |seen| {
                    let chance = &mut directions[seen.from as usize];
                    if !chance.hits() {
                        return Fate::Pass;
                    }
                    Fate::Corrupted {
                        at: chance.draw(HEAD.min(seen.len.into())) as usize,
                        bits: 1 + chance.draw(255) as u8,
                    }
                })
            }
            Impairment::DropToServer(numbers) => {
                let mut count = 0;
                Box::new(move |seen| {
                    count += u32::from(seen.from == Side::Client);
                    let dropped = seen.from == Side::Client && numbers.contains(&count);
                    if dropped { Fate::Drop } else { Fate::Pass }
                })
            }
            Impairment::Blackhole { on, off } => Box::new(move |seen| {
                if seen.at % (on + off) < on {
                    Fate::Pass
                } else {
                    Fate::Drop
                }
            }),
        }
    }
}

/// Hits a percentage, and no more than `burst` in a row.
struct Chance {
    random: Pcg64Mcg,
    percent: u64,
    burst: u32,
    in_a_row: u32,
}

impl Chance {
    fn new(seed: u64, side: u64, percent: u64, burst: u32) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed << 1 | side),
            percent,
            burst,
            in_a_row: 0,
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    fn hits(&mut self) -> bool {
        let hit = self.in_a_row < self.burst && self.draw(100) < self.percent;
        self.in_a_row = if hit { self.in_a_row + 1 } else { 0 };
        hit
    }
}
