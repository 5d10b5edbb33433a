//! A hierarchical timing wheel (Varghese and Lauck 1987) whose lists run through the entities themselves.

use super::EventQueue;
use crate::ids::{NEVER, Nanos};

/// Slots of the near level are 2^`shift` ns wide; there are 2^`NEAR_BITS` of them. Each far level has 64 slots, as wide as all of the
/// level below.
const NEAR_BITS: u32 = 12;
const NEAR_SLOTS: usize = 1 << NEAR_BITS;
const FAR_BITS: u32 = 6;
const FAR_SLOTS: usize = 1 << FAR_BITS;

/// End of a list.
const NIL: u32 = u32::MAX;
/// Set in `prev` of the first entity of a list; the other bits are the slot's number.
const FIRST: u32 = 1 << 31;

/// The fast implementation of [`EventQueue`].
///
/// One slot is open at a time: its events are sorted by (time, id) when it opens. An event belongs to the near level when its time
/// and the open slot's agree in all bits above that level, otherwise to the far level of the highest bit where they differ. So all
/// events of a level come before those of the next, and the next slot is found with two bit scans.
#[derive(Clone, Debug)]
pub struct Wheel {
    shift: u32,
    /// Start of the open slot. No pending event is earlier.
    origin: Nanos,
    /// Events of the open slot, the last one first: offset from `origin` above, entity below.
    open: Vec<u64>,
    nodes: Vec<Node>,
    /// First entity of each near slot.
    near: Box<[u32; NEAR_SLOTS]>,
    /// First entity of each far slot, level by level.
    far: Vec<u32>,
    near_words: [u64; NEAR_SLOTS / 64],
    /// Which of `near_words` are not zero.
    near_summary: u64,
    far_words: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    at: Nanos,
    next: u32,
    prev: u32,
}

const ABSENT: Node = Node {
    at: NEVER,
    next: NIL,
    prev: NIL,
};

impl Wheel {
    /// Links an entity into the list of its slot, which is not the open one.
    #[inline(always)]
    fn link(&mut self, id: u32, at: Nanos, difference: u64) {
        let (slot, head) = if difference >> self.shift < NEAR_SLOTS as u64 {
            let slot = (at >> self.shift) as usize & (NEAR_SLOTS - 1);
            self.near_words[slot / 64] |= 1 << (slot % 64);
            self.near_summary |= 1 << (slot / 64);
            (slot, &mut self.near[slot])
        } else {
            let near = self.shift + NEAR_BITS;
            let level = ((63 - difference.leading_zeros() - near) / FAR_BITS) as usize;
            let slot = (at >> (near + level as u32 * FAR_BITS)) as usize & (FAR_SLOTS - 1);
            self.far_words[level] |= 1 << slot;
            let far = level * FAR_SLOTS + slot;
            (NEAR_SLOTS + far, &mut self.far[far])
        };
        let next = std::mem::replace(head, id);
        if let Some(node) = self.nodes.get_mut(next as usize) {
            node.prev = id;
        }
        self.nodes[id as usize] = Node {
            at,
            next,
            prev: FIRST | slot as u32,
        };
    }

    fn key(&self, id: u32, at: Nanos) -> u64 {
        (at - self.origin) << 32 | u64::from(id)
    }

    #[cold]
    fn remove(&mut self, id: u32) {
        let Node { at, next, prev } = std::mem::replace(&mut self.nodes[id as usize], ABSENT);
        if (at ^ self.origin) >> self.shift == 0 {
            let key = self.key(id, at);
            let index = self.open.partition_point(|other| *other > key);
            self.open.remove(index);
            return;
        }
        if let Some(node) = self.nodes.get_mut(next as usize) {
            node.prev = prev;
        }
        if prev & FIRST == 0 {
            self.nodes[prev as usize].next = next;
            return;
        }
        let slot = (prev & !FIRST) as usize;
        if slot < NEAR_SLOTS {
            self.near[slot] = next;
            if next == NIL {
                self.clear_near(slot);
            }
        } else {
            self.far[slot - NEAR_SLOTS] = next;
            if next == NIL {
                self.clear_far(slot - NEAR_SLOTS);
            }
        }
    }

    /// Notes that a near slot's list is empty.
    #[inline(always)]
    fn clear_near(&mut self, slot: usize) {
        let word = &mut self.near_words[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.near_summary &= !(1 << (slot / 64));
        }
    }

    fn clear_far(&mut self, slot: usize) {
        self.far_words[slot / FAR_SLOTS] &= !(1 << (slot % FAR_SLOTS));
    }

    /// The first near slot that is not empty, and its start.
    #[inline(always)]
    fn next_near(&self) -> Option<(usize, Nanos)> {
        if self.near_summary == 0 {
            return None;
        }
        let word = self.near_summary.trailing_zeros() as usize & 63;
        let slot = (word * 64 + self.near_words[word].trailing_zeros() as usize) & (NEAR_SLOTS - 1);
        let block = self.shift + NEAR_BITS;
        Some((
            slot,
            (self.origin >> block << block) | (slot as u64) << self.shift,
        ))
    }

    /// The first far slot that is not empty, and its start.
    #[cold]
    fn next_far(&self) -> Option<(usize, Nanos)> {
        let level = self.far_words.iter().position(|word| *word != 0)?;
        let slot = self.far_words[level].trailing_zeros() as usize;
        let width = self.shift + NEAR_BITS + level as u32 * FAR_BITS;
        let block = width + FAR_BITS;
        let base = if block < 64 {
            self.origin >> block << block
        } else {
            0
        };
        let start = base | (slot as u64) << width;
        Some((level * FAR_SLOTS + slot, start))
    }

    /// Moves on to a near slot, which starts at `start`: all its events are in the open slot now.
    #[inline(always)]
    fn open_near(&mut self, slot: usize, start: Nanos) {
        self.origin = start;
        self.clear_near(slot);
        let mut id = std::mem::replace(&mut self.near[slot], NIL);
        while let Some(node) = self.nodes.get(id as usize) {
            self.open.push((node.at - start) << 32 | u64::from(id));
            id = node.next;
        }
        self.sort();
    }

    /// Moves on to a far slot: its events go to lower levels, and those of its first nanoseconds to the open slot.
    #[cold]
    #[inline(never)]
    fn open_far(&mut self, slot: usize, start: Nanos) {
        self.origin = start;
        self.clear_far(slot);
        let mut id = std::mem::replace(&mut self.far[slot], NIL);
        while id != NIL {
            let Node { at, next, .. } = self.nodes[id as usize];
            let difference = at ^ start;
            if difference >> self.shift == 0 {
                self.open.push(self.key(id, at));
            } else {
                self.link(id, at, difference);
            }
            id = next;
        }
        self.sort();
    }

    /// Sorts the open slot: by insertion, because there are few events in it as a rule.
    #[inline(always)]
    fn sort(&mut self) {
        if self.open.len() > 16 {
            self.open.sort_unstable_by(|a, b| b.cmp(a));
            return;
        }
        for end in 1..self.open.len() {
            let key = self.open[end];
            let mut place = end;
            while place > 0 && self.open[place - 1] < key {
                self.open[place] = self.open[place - 1];
                place -= 1;
            }
            self.open[place] = key;
        }
    }
}

impl EventQueue for Wheel {
    fn with_entities(entities: u32) -> Self {
        // About one event a slot when each entity has one every 100 us or so.
        let shift = 17u32.saturating_sub(entities.max(1).ilog2()).clamp(5, 12);
        let levels = (64 - shift - NEAR_BITS).div_ceil(FAR_BITS) as usize;
        Self {
            shift,
            origin: 0,
            open: Vec::new(),
            nodes: vec![ABSENT; entities as usize],
            near: Box::new([NIL; NEAR_SLOTS]),
            far: vec![NIL; levels * FAR_SLOTS],
            near_words: [0; NEAR_SLOTS / 64],
            near_summary: 0,
            far_words: vec![0; levels],
        }
    }

    fn add_entity(&mut self) {
        self.nodes.push(ABSENT);
    }

    fn set(&mut self, id: u32, at: Nanos) {
        if self.nodes[id as usize].at != NEVER {
            self.remove(id);
        }
        if at != NEVER {
            self.insert(id, at);
        }
    }

    #[inline(always)]
    fn insert(&mut self, id: u32, at: Nanos) {
        debug_assert!(at >= self.origin, "an event before the present");
        let difference = at ^ self.origin;
        if difference >> self.shift != 0 {
            if at != NEVER {
                self.link(id, at, difference);
            }
            return;
        }
        let key = self.key(id, at);
        self.nodes[id as usize].at = at;
        let index = self.open.partition_point(|other| *other > key);
        self.open.insert(index, key);
    }

    #[inline]
    fn time(&self, id: u32) -> Nanos {
        self.nodes[id as usize].at
    }

    fn peek(&self) -> Option<(Nanos, u32)> {
        if let Some(key) = self.open.last() {
            return Some((self.origin + (key >> 32), *key as u32));
        }
        let near = self.next_near().map(|(slot, _)| self.near[slot]);
        let mut id = near.or_else(|| self.next_far().map(|(slot, _)| self.far[slot]))?;
        let mut first = (NEVER, NIL);
        while id != NIL {
            let node = &self.nodes[id as usize];
            first = first.min((node.at, id));
            id = node.next;
        }
        Some(first)
    }

    /// Every event of the present time is in the open slot.
    #[inline]
    fn another_at(&self, now: Nanos) -> bool {
        let first = self.open.last();
        first.is_some_and(|key| self.origin + (key >> 32) == now)
    }

    #[inline(always)]
    fn pop_until(&mut self, until: Nanos) -> Option<(Nanos, u32)> {
        loop {
            if let Some(key) = self.open.last() {
                let (at, id) = (self.origin + (key >> 32), *key as u32);
                if at > until {
                    return None;
                }
                self.open.pop();
                self.nodes[id as usize].at = NEVER;
                return Some((at, id));
            }
            if let Some((slot, start)) = self.next_near() {
                if start > until {
                    return None;
                }
                let id = self.near[slot];
                let node = &mut self.nodes[id as usize];
                if node.next == NIL {
                    let at = node.at;
                    if at > until {
                        return None;
                    }
                    node.at = NEVER;
                    self.near[slot] = NIL;
                    self.clear_near(slot);
                    self.origin = start;
                    return Some((at, id));
                }
                self.open_near(slot, start);
            } else {
                let (slot, start) = self.next_far().filter(|(_, start)| *start <= until)?;
                self.open_far(slot, start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Heap;
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Set { id: u32, after: u64 },
        Cancel { id: u32 },
        Add,
        Pop { after: u64 },
    }

    fn step() -> impl Strategy<Value = Step> {
        let after = prop_oneof![
            0u64..4,
            0u64..5_000,
            0u64..3_000_000,
            0u64..5_000_000_000,
            0u64..1 << 45
        ];
        prop_oneof![
            4 => (0u32..20, after.clone()).prop_map(|(id, after)| Step::Set { id, after }),
            1 => (0u32..20).prop_map(|id| Step::Cancel { id }),
            1 => Just(Step::Add),
            4 => after.prop_map(|after| Step::Pop { after }),
        ]
    }

    proptest! {
        #[test]
        fn the_wheel_gives_the_heaps_order(steps in proptest::collection::vec(step(), 1..400), entities in 1u32..2000) {
            let mut wheel = Wheel::with_entities(entities);
            let mut heap = Heap::with_entities(entities);
            let mut count = entities;
            let mut now = 0;
            for step in steps {
                match step {
                    Step::Set { id, after } => {
                        wheel.set(id % count, now + after);
                        heap.set(id % count, now + after);
                    }
                    Step::Cancel { id } => {
                        wheel.set(id % count, NEVER);
                        heap.set(id % count, NEVER);
                    }
                    Step::Add => {
                        wheel.add_entity();
                        heap.add_entity();
                        count += 1;
                    }
                    Step::Pop { after } => {
                        prop_assert_eq!(wheel.peek(), heap.peek());
                        let until = now + after;
                        let popped = wheel.pop_until(until);
                        prop_assert_eq!(popped, heap.pop_until(until));
                        now = popped.map_or(until, |(at, _)| at);
                        if popped.is_some() {
                            prop_assert_eq!(wheel.another_at(now), heap.another_at(now));
                        }
                    }
                }
                for id in 0..count.min(20) {
                    prop_assert_eq!(wheel.time(id), heap.time(id));
                }
            }
            while let Some(popped) = wheel.pop_until(NEVER) {
                prop_assert_eq!(Some(popped), heap.pop_until(NEVER));
            }
            prop_assert_eq!(heap.peek(), None);
        }
    }

    #[test]
    fn many_events_at_one_time_come_by_id() {
        let mut wheel = Wheel::with_entities(100);
        for id in (0..100).rev() {
            wheel.insert(id, 777_777);
        }
        for id in 0..100 {
            assert_eq!(wheel.pop_until(777_777), Some((777_777, id)));
        }
        assert_eq!(wheel.pop_until(NEVER), None);
    }

    #[test]
    fn the_latest_time_of_all_is_reached() {
        let mut wheel = Wheel::with_entities(2);
        wheel.insert(0, NEVER - 1);
        assert_eq!(wheel.pop_until(NEVER - 2), None);
        assert_eq!(wheel.pop_until(NEVER), Some((NEVER - 1, 0)));
    }
}
