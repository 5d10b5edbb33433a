//! An indexed heap with four children a node: the reference that the wheel is tested against.

use super::EventQueue;
use crate::ids::{NEVER, Nanos};

const ARITY: usize = 4;
const ABSENT: u32 = u32::MAX;

/// The plain implementation of [`EventQueue`].
#[derive(Clone, Debug)]
pub struct Heap {
    items: Vec<(Nanos, u32)>,
    /// Each entity's position in `items`.
    position: Vec<u32>,
}

impl Heap {
    fn place(&mut self, index: usize, item: (Nanos, u32)) {
        self.items[index] = item;
        self.position[item.1 as usize] = index as u32;
    }

    fn sift_up(&mut self, mut index: usize) {
        let item = self.items[index];
        while index > 0 {
            let parent = (index - 1) / ARITY;
            if self.items[parent] <= item {
                break;
            }
            self.place(index, self.items[parent]);
            index = parent;
        }
        self.place(index, item);
    }

    fn sift_down(&mut self, mut index: usize) {
        let item = self.items[index];
        loop {
            let first = index * ARITY + 1;
            let last = (first + ARITY).min(self.items.len());
            let Some(child) = (first..last).min_by_key(|child| self.items[*child]) else {
                break;
            };
            if item <= self.items[child] {
                break;
            }
            self.place(index, self.items[child]);
            index = child;
        }
        self.place(index, item);
    }

    fn remove(&mut self, id: u32) {
        let index = self.position[id as usize] as usize;
        self.position[id as usize] = ABSENT;
        let Some(last) = self.items.pop() else {
            return;
        };
        if index < self.items.len() {
            self.place(index, last);
            self.sift_up(index);
            self.sift_down(self.position[last.1 as usize] as usize);
        }
    }
}

impl EventQueue for Heap {
    fn with_entities(entities: u32) -> Self {
        Self {
            items: Vec::new(),
            position: vec![ABSENT; entities as usize],
        }
    }

    fn add_entity(&mut self) {
        self.position.push(ABSENT);
    }

    fn set(&mut self, id: u32, at: Nanos) {
        if self.position[id as usize] != ABSENT {
            self.remove(id);
        }
        self.insert(id, at);
    }

    fn insert(&mut self, id: u32, at: Nanos) {
        if at != NEVER {
            self.items.push((at, id));
            self.sift_up(self.items.len() - 1);
        }
    }

    fn time(&self, id: u32) -> Nanos {
        match self.position[id as usize] {
            ABSENT => NEVER,
            index => self.items[index as usize].0,
        }
    }

    fn peek(&self) -> Option<(Nanos, u32)> {
        self.items.first().copied()
    }

    fn pop_until(&mut self, until: Nanos) -> Option<(Nanos, u32)> {
        let first = self.peek().filter(|(at, _)| *at <= until)?;
        self.remove(first.1);
        Some(first)
    }
}
