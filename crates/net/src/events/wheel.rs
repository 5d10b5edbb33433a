//! A calendar that rolls on (Brown 1988) over a hierarchical timing wheel (Varghese and Lauck 1987). The lists run
//! through the entities themselves.

use polypath_prefetch::prefetch;

use super::EventQueue;
use crate::ids::{NEVER, Nanos};

/// Slots are 2^`shift` ns wide and counted from time 0. The near level has 2^`NEAR_BITS` of them, from the cursor's on. Each far level has
/// 64 lists, each as wide as all of the level below.
const NEAR_BITS: u32 = 12;
const NEAR_SLOTS: usize = 1 << NEAR_BITS;
const NEAR_MASK: u64 = NEAR_SLOTS as u64 - 1;
const FAR_BITS: u32 = 6;
const FAR_LISTS: usize = 1 << FAR_BITS;

/// In a slot of more events than this they are sorted; among fewer the first is found by looking at all.
const FEW: u32 = 6;

/// Entities of which there is more than caches hold: 2^`CROWDED`. Slots then have some 16 events each, which are sorted, so that it is known
/// what comes next.
const CROWDED: u32 = 12;

/// End of a list.
const NIL: u32 = u32::MAX;
/// In `prev` of an entity in the near level, which is linked in one direction only.
const NEAR: u32 = u32::MAX - 1;
/// In `prev` of an entity in the open slot.
const OPEN: u32 = u32::MAX - 2;
/// Set in `prev` of the first entity of a far list; the other bits are the list's number.
const FIRST: u32 = 1 << 31;

/// The slot of what is not there.
const NOWHERE: u64 = u64::MAX;

/// The fast implementation of [`EventQueue`].
///
/// An event belongs to the near level when its slot is less than `NEAR_SLOTS` beyond the cursor's, otherwise to the far level of the
/// highest bit where the two differ. A far list is taken apart before the cursor gets beyond its start, so that all events of a far level
/// come before those of the next. The events of a near slot are in no order.
#[derive(Clone, Debug)]
pub struct Wheel {
    shift: u32,
    /// There are so many entities that every slot of more than two events is sorted.
    crowded: bool,
    /// The slot that was reached. No pending event lies in an earlier one.
    cursor: u64,
    /// Where the first far list begins, as a slot. It lies beyond the cursor.
    far_next: u64,
    /// Events of the cursor's slot if there were many, the last one first: offset from the slot's start above, entity below.
    open: Vec<u64>,
    /// An entity of the slot after the open one, whose node has been fetched.
    ahead: u32,
    nodes: Vec<Node>,
    /// First entity of each near slot.
    near: Box<[u32; NEAR_SLOTS]>,
    near_words: [u64; NEAR_SLOTS / 64],
    /// Which of `near_words` are not zero.
    near_summary: u64,
    /// First entity of each far list, level by level.
    far: Vec<u32>,
    far_words: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    at: Nanos,
    next: u32,
    prev: u32,
}

/// A slot's events were sorted.
struct Sorted;

const ABSENT: Node = Node {
    at: NEVER,
    next: NIL,
    prev: NIL,
};

impl Wheel {
    fn key(&self, id: u32, at: Nanos) -> u64 {
        (at - (self.cursor << self.shift)) << 32 | u64::from(id)
    }

    /// Links an entity into the list of its slot, unless that is open.
    #[inline(always)]
    fn link(&mut self, id: u32, at: Nanos) {
        let slot = at >> self.shift;
        if slot - self.cursor >= NEAR_SLOTS as u64 {
            return self.link_far(id, at, slot);
        }
        let index = (slot & NEAR_MASK) as usize;
        let word = &mut self.near_words[index / 64];
        if *word == 0 {
            self.near_summary |= 1 << (index / 64);
        }
        *word |= 1 << (index % 64);
        let next = std::mem::replace(&mut self.near[index], id);
        self.nodes[id as usize] = Node {
            at,
            next,
            prev: NEAR,
        };
    }

    #[cold]
    #[inline(never)]
    fn link_far(&mut self, id: u32, at: Nanos, slot: u64) {
        let difference = (slot ^ self.cursor) >> NEAR_BITS;
        let level = (63 - difference.leading_zeros()) / FAR_BITS;
        let width = NEAR_BITS + level * FAR_BITS;
        let index = (slot >> width) as usize & (FAR_LISTS - 1);
        let list = level as usize * FAR_LISTS + index;
        self.far_words[level as usize] |= 1 << index;
        self.far_next = self.far_next.min(slot >> width << width);
        let next = std::mem::replace(&mut self.far[list], id);
        if let Some(node) = self.nodes.get_mut(next as usize) {
            node.prev = id;
        }
        self.nodes[id as usize] = Node {
            at,
            next,
            prev: FIRST | list as u32,
        };
    }

    #[cold]
    fn remove(&mut self, id: u32) {
        let Node { at, next, prev } = std::mem::replace(&mut self.nodes[id as usize], ABSENT);
        match prev {
            OPEN => {
                let key = self.key(id, at);
                let index = self.open.partition_point(|other| *other > key);
                self.open.remove(index);
            }
            NEAR => self.remove_near(id, (at >> self.shift & NEAR_MASK) as usize, next),
            _ => self.remove_far(next, prev),
        }
    }

    fn remove_near(&mut self, id: u32, index: usize, next: u32) {
        let mut before = self.near[index];
        if before == id {
            self.near[index] = next;
            if next == NIL {
                self.clear_near(index);
            }
            return;
        }
        while self.nodes[before as usize].next != id {
            before = self.nodes[before as usize].next;
        }
        self.nodes[before as usize].next = next;
    }

    fn remove_far(&mut self, next: u32, prev: u32) {
        if let Some(node) = self.nodes.get_mut(next as usize) {
            node.prev = prev;
        }
        if prev & FIRST == 0 {
            self.nodes[prev as usize].next = next;
            return;
        }
        let list = (prev & !FIRST) as usize;
        self.far[list] = next;
        if next == NIL {
            self.clear_far(list);
        }
    }

    /// Notes that a near slot's list is empty.
    #[inline(always)]
    fn clear_near(&mut self, index: usize) {
        let word = &mut self.near_words[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.near_summary &= !(1 << (index / 64));
        }
    }

    /// Notes that a far list is empty.
    fn clear_far(&mut self, list: usize) {
        self.far_words[list / FAR_LISTS] &= !(1 << (list % FAR_LISTS));
        self.far_next = self
            .first_far()
            .map_or(NOWHERE, |(level, index)| self.far_start(level, index));
    }

    /// Level and number of the first far list that is not empty.
    fn first_far(&self) -> Option<(usize, usize)> {
        let level = self.far_words.iter().position(|word| *word != 0)?;
        Some((level, self.far_words[level].trailing_zeros() as usize))
    }

    /// The slot at which a far list begins.
    fn far_start(&self, level: usize, index: usize) -> u64 {
        let width = NEAR_BITS + level as u32 * FAR_BITS;
        let block = width + FAR_BITS;
        let base = if block < 64 {
            self.cursor >> block << block
        } else {
            0
        };
        base | (index as u64) << width
    }

    /// The first near slot that is not empty, or [`NOWHERE`].
    #[inline(always)]
    fn next_near(&self) -> u64 {
        let here = (self.cursor & NEAR_MASK) as usize;
        let ahead = self.near_words[here / 64] >> (here % 64);
        if ahead != 0 {
            return self.cursor + u64::from(ahead.trailing_zeros());
        }
        if self.near_summary == 0 {
            return NOWHERE;
        }
        let turn = here / 64 + 1;
        let words = self.near_summary.rotate_right(turn as u32).trailing_zeros();
        let word = (turn + words as usize) & 63;
        let index = word * 64 + self.near_words[word].trailing_zeros() as usize;
        self.cursor + (index.wrapping_sub(here) as u64 & NEAR_MASK)
    }

    /// Moves on to the start of the first far list: its events go to lower levels.
    #[cold]
    #[inline(never)]
    fn open_far(&mut self) {
        let Some((level, index)) = self.first_far() else {
            return;
        };
        self.cursor = self.far_next;
        let list = level * FAR_LISTS + index;
        let mut id = std::mem::replace(&mut self.far[list], NIL);
        self.clear_far(list);
        while id != NIL {
            let Node { at, next, .. } = self.nodes[id as usize];
            self.link(id, at);
            id = next;
        }
    }

    /// Moves on to a near slot of many events and sorts them.
    #[cold]
    #[inline(never)]
    fn open_near(&mut self, slot: u64) {
        self.cursor = slot;
        let index = (slot & NEAR_MASK) as usize;
        self.clear_near(index);
        let mut id = std::mem::replace(&mut self.near[index], NIL);
        while id != NIL {
            let Node { at, next, .. } = self.nodes[id as usize];
            self.open.push(self.key(id, at));
            self.nodes[id as usize].prev = OPEN;
            id = next;
        }
        self.open.sort_unstable_by(|a, b| b.cmp(a));
        if self.crowded {
            self.ahead = match self.next_near() {
                NOWHERE => NIL,
                slot => self.near[(slot & NEAR_MASK) as usize],
            };
            self.fetch_ahead();
        }
    }

    #[inline(always)]
    fn fetch_ahead(&self) {
        if let Some(node) = self.nodes.get(self.ahead as usize) {
            prefetch(node);
        }
    }

    /// Goes one entity further in the slot after the open one, so that its list is in cache when it is walked.
    #[inline(always)]
    fn go_ahead(&mut self) {
        if let Some(node) = self.nodes.get(self.ahead as usize) {
            self.ahead = node.next;
            self.fetch_ahead();
        }
    }

    /// Takes the first event out of a near slot of several, of which `head` is one, unless it is later than `until`.
    ///
    /// # Errors
    /// There are so many that they were sorted into the open slot instead.
    #[inline(never)]
    fn pop_of_several(
        &mut self,
        slot: u64,
        head: u32,
        until: Nanos,
    ) -> Result<Option<(Nanos, u32)>, Sorted> {
        if self.crowded {
            if slot << self.shift > until {
                return Ok(None);
            }
            self.open_near(slot);
            return Err(Sorted);
        }
        let Node { at, next, .. } = self.nodes[head as usize];
        let mut first = (at, head);
        let (mut before, mut last) = (NIL, head);
        let (mut id, mut seen) = (next, 1);
        while id != NIL {
            let Node { at, next, .. } = self.nodes[id as usize];
            if (at, id) < first {
                (first, before) = ((at, id), last);
            }
            (last, id) = (id, next);
            seen += 1;
        }
        if seen > FEW && slot << self.shift <= until {
            self.open_near(slot);
            return Err(Sorted);
        }
        if first.0 > until {
            return Ok(None);
        }
        self.cursor = slot;
        let after = std::mem::replace(&mut self.nodes[first.1 as usize], ABSENT).next;
        match before {
            NIL => self.near[(slot & NEAR_MASK) as usize] = after,
            _ => self.nodes[before as usize].next = after,
        }
        Ok(Some(first))
    }

    /// The first event of the list that begins with `id`.
    fn first_of(&self, mut id: u32) -> (Nanos, u32) {
        let mut first = (NEVER, NIL);
        while id != NIL {
            let node = &self.nodes[id as usize];
            first = first.min((node.at, id));
            id = node.next;
        }
        first
    }
}

impl EventQueue for Wheel {
    fn with_entities(entities: u32) -> Self {
        // About one event in four slots when each entity has one every 100 us or so, or 16 in each.
        let magnitude = entities.max(1).ilog2();
        let crowded = magnitude >= CROWDED;
        let entities_a_slot = if crowded { 21u32 } else { 15 };
        let shift = entities_a_slot.saturating_sub(magnitude).clamp(5, 12);
        let levels = (64 - shift - NEAR_BITS).div_ceil(FAR_BITS) as usize;
        Self {
            shift,
            crowded,
            cursor: 0,
            far_next: NOWHERE,
            open: Vec::new(),
            ahead: NIL,
            nodes: vec![ABSENT; entities as usize],
            near: Box::new([NIL; NEAR_SLOTS]),
            near_words: [0; NEAR_SLOTS / 64],
            near_summary: 0,
            far: vec![NIL; levels * FAR_LISTS],
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
        self.insert(id, at);
    }

    #[inline(always)]
    fn insert(&mut self, id: u32, at: Nanos) {
        if at == NEVER {
            return;
        }
        debug_assert!(
            at >> self.shift >= self.cursor,
            "an event before the present"
        );
        if self.open.is_empty() || at >> self.shift != self.cursor {
            return self.link(id, at);
        }
        let key = self.key(id, at);
        self.nodes[id as usize] = Node {
            at,
            next: NIL,
            prev: OPEN,
        };
        let index = self.open.partition_point(|other| *other > key);
        self.open.insert(index, key);
    }

    #[inline]
    fn time(&self, id: u32) -> Nanos {
        self.nodes[id as usize].at
    }

    fn peek(&self) -> Option<(Nanos, u32)> {
        if let Some(key) = self.open.last() {
            return Some(((self.cursor << self.shift) + (key >> 32), *key as u32));
        }
        let near = self.next_near();
        let first_near = match near {
            NOWHERE => None,
            _ => Some(self.first_of(self.near[(near & NEAR_MASK) as usize])),
        };
        if near < self.far_next {
            return first_near;
        }
        let far = self.first_far();
        let first_far =
            far.map(|(level, index)| self.first_of(self.far[level * FAR_LISTS + index]));
        first_near.into_iter().chain(first_far).min()
    }

    /// Every event of the present time is in the cursor's slot.
    #[inline]
    fn another_at(&self, now: Nanos) -> bool {
        if let Some(key) = self.open.last() {
            return (self.cursor << self.shift) + (key >> 32) == now;
        }
        self.first_of(self.near[(self.cursor & NEAR_MASK) as usize])
            .0
            == now
    }

    #[inline(always)]
    fn is_crowded(&self) -> bool {
        self.crowded
    }

    #[inline(always)]
    fn upcoming(&self, after: usize) -> Option<u32> {
        let index = self.open.len().checked_sub(after + 1)?;
        Some(self.open[index] as u32)
    }

    #[inline(always)]
    fn pop_until(&mut self, until: Nanos) -> Option<(Nanos, u32)> {
        loop {
            if let Some(key) = self.open.last() {
                let (at, id) = ((self.cursor << self.shift) + (key >> 32), *key as u32);
                if at > until {
                    return None;
                }
                self.open.pop();
                self.go_ahead();
                self.nodes[id as usize].at = NEVER;
                return Some((at, id));
            }
            let slot = self.next_near();
            if slot >= self.far_next {
                if self.far_next == NOWHERE || self.far_next << self.shift > until {
                    return None;
                }
                self.open_far();
                continue;
            }
            let index = (slot & NEAR_MASK) as usize;
            let id = self.near[index];
            let node = &mut self.nodes[id as usize];
            let (at, second) = (node.at, node.next);
            if second == NIL {
                if at > until {
                    return None;
                }
                node.at = NEVER;
                self.near[index] = NIL;
                self.clear_near(index);
                self.cursor = slot;
                return Some((at, id));
            }
            let other = &mut self.nodes[second as usize];
            if other.next != NIL {
                match self.pop_of_several(slot, id, until) {
                    Ok(popped) => return popped,
                    Err(Sorted) => continue,
                }
            }
            let first = (at, id).min((other.at, second));
            if first.0 > until {
                return None;
            }
            self.cursor = slot;
            if first.1 == second {
                other.at = NEVER;
                self.nodes[id as usize].next = NIL;
            } else {
                self.nodes[id as usize].at = NEVER;
                self.near[index] = second;
            }
            return Some(first);
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
        fn the_wheel_gives_the_heaps_order(steps in proptest::collection::vec(step(), 1..400), entities in prop_oneof![1u32..2000, 4096u32..9000]) {
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
