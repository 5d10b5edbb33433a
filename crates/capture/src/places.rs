//! Which interfaces of a file are one place of capture, flow by flow.
//!
//! The file of one host is one place: a packet that comes in on one interface may be answered on another. A packet that two
//! interfaces have, one after the other, was on its way between them; they are places of their own. So are those that `mergecap`
//! took from several hosts.

use std::collections::HashMap;

use polypath_wire::tcp::Flags;

use crate::flows::FlowId;
use crate::half::Mark;
use crate::packet::{Packet, Tap};
use crate::survey::{Both, Seen, Surveyed};

/// A witness is looked for so long at first, and twice as long each time.
const FIRST_HOLD_NS: i64 = 100_000_000;

/// What two interfaces have of one packet, and of no two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
    seq: u32,
    ack: u32,
    len: u32,
    flags: Flags,
    sack: Option<(u32, u32)>,
    mark: Mark,
}

impl Print {
    fn of(packet: &Packet) -> Self {
        let segment = &packet.segment;
        Self {
            seq: segment.seq,
            ack: segment.ack,
            len: segment.payload.len,
            flags: segment.flags,
            sack: segment.sack.as_slice().first().copied(),
            mark: Mark::of(segment, packet.identification),
        }
    }
}

/// A packet of a direction that the file's other interfaces may have, too. A longer and longer hold outlasts every way, and
/// what was lost on it costs one try.
#[derive(Clone, Copy, Debug)]
struct Witness {
    print: Print,
    since_ns: i64,
    hold_ns: i64,
}

/// The witnesses of a tap, of each direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Witnesses(Both<Option<Witness>>);

impl Witnesses {
    pub fn see(&mut self, direction: usize, packet: &Packet) {
        let hold_ns = match self.0[direction] {
            None => FIRST_HOLD_NS,
            Some(held) if packet.time_ns.saturating_sub(held.since_ns) >= held.hold_ns => {
                held.hold_ns.saturating_mul(2)
            }
            Some(_) => return,
        };
        self.0[direction] = Some(Witness {
            print: Print::of(packet),
            since_ns: packet.time_ns,
            hold_ns,
        });
    }
}

/// Two taps of a file that had the same packet: the first is nearer to the end with the lower address.
pub type Apart = (Tap, Tap);

/// The taps of the packet's file that had it before `tap`, each as the pair that this makes.
pub fn apart<'a>(
    taps: &'a [Seen],
    direction: usize,
    packet: &'a Packet,
    tap: Tap,
) -> impl Iterator<Item = Apart> + 'a {
    let others = taps
        .iter()
        .filter(move |seen| seen.tap.file == tap.file && seen.tap != tap);
    others
        .filter(move |seen| {
            seen.witnesses.0[direction].is_some_and(|held| held.print == Print::of(packet))
        })
        .map(move |seen| match direction {
            0 => (seen.tap, tap),
            _ => (tap, seen.tap),
        })
}

/// The taps that are one place with others, of each flow that has any: by the first of them that saw the flow.
pub type Places = HashMap<FlowId, Vec<Vec<Tap>>>;

pub fn places(found: &[Surveyed]) -> Places {
    let several = |flow: &&Surveyed| flow.taps.len() > 1;
    let known = found.iter().enumerate().filter(|(_, flow)| several(flow));
    known
        .map(|(id, flow)| (id, of_flow(flow)))
        .filter(|(_, groups)| !groups.is_empty())
        .collect()
}

fn of_flow(flow: &Surveyed) -> Vec<Vec<Tap>> {
    let mut groups: Vec<((u16, Stand), Vec<Tap>)> = Vec::new();
    for seen in &flow.taps {
        let key = (seen.tap.file, Stand::of(seen, flow));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(seen.tap),
            None => groups.push((key, vec![seen.tap])),
        }
    }
    let groups = groups.into_iter().map(|(_, group)| group);
    groups.filter(|group| group.len() > 1).collect()
}

/// Where a tap stands among those of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// No interface of the file has a packet of another: the file is one place.
    Alone,
    /// Nobody is nearer to the end with the lower address, or to the other.
    End(usize),
    /// So many are, one behind the other.
    Between(usize),
}

impl Stand {
    fn of(seen: &Seen, flow: &Surveyed) -> Self {
        let own: Vec<Apart> = flow
            .apart
            .iter()
            .filter(|(tap, _)| tap.file == seen.tap.file)
            .copied()
            .collect();
        if own.is_empty() {
            return Self::Alone;
        }
        let behind = own.iter().any(|(_, farther)| *farther == seen.tap);
        let before = own.iter().any(|(nearer, _)| *nearer == seen.tap);
        match (behind, before) {
            (false, true) => Self::End(0),
            (true, false) => Self::End(1),
            (true, true) => Self::Between(depth(seen.tap, &own)),
            // What nobody else has was lost on its way, or went where nothing was captured: the tap is its sender's.
            (false, false) => Self::End(seen.sender()),
        }
    }
}

/// Taps that stand before a tap, in the longest row.
fn depth(tap: Tap, apart: &[Apart]) -> usize {
    let mut depths: HashMap<Tap, usize> = HashMap::new();
    // Times that contradict each other make a circle, which has no end.
    for _ in 0..apart.len() {
        for (nearer, farther) in apart {
            let before = depths.get(nearer).copied().unwrap_or(0);
            let known = depths.entry(*farther).or_default();
            *known = (*known).max(before + 1);
        }
    }
    depths.get(&tap).copied().unwrap_or(0)
}

/// The tap that stands for another of the same place.
pub fn standing_for(places: &Places, flow: FlowId, tap: Tap) -> Tap {
    let group = places
        .get(&flow)
        .and_then(|groups| groups.iter().find(|group| group.contains(&tap)));
    group.map_or(tap, |group| group[0])
}
