//! The owner's timers, which are mostly moved to a later time and seldom fire.

use super::EventQueue;
use crate::ids::{NEVER, Nanos, TimerId};

/// When each timer is due. The event of a timer may be pending at an earlier time than that; when it comes up it is set again. So
/// moving a timer to a later time, which a transport does with every ACK, is one store.
#[derive(Debug)]
pub(crate) struct Timers {
    due: Vec<Nanos>,
    /// Which timers exist.
    live: Vec<bool>,
    free: Vec<TimerId>,
    /// The event queue's entity of timer 0.
    first: u32,
}

impl Timers {
    pub fn new(first: u32) -> Self {
        Self {
            due: Vec::new(),
            live: Vec::new(),
            free: Vec::new(),
            first,
        }
    }

    pub fn create(&mut self, events: &mut impl EventQueue) -> TimerId {
        let timer = self.free.pop().unwrap_or_else(|| {
            self.due.push(NEVER);
            self.live.push(true);
            events.add_entity();
            TimerId(self.due.len() as u32 - 1)
        });
        self.live[timer.index()] = true;
        timer
    }

    pub fn release(&mut self, timer: TimerId) {
        if self.live.get(timer.index()) == Some(&true) {
            self.live[timer.index()] = false;
            self.due[timer.index()] = NEVER;
            self.free.push(timer);
        }
    }

    #[inline]
    pub fn set(&mut self, timer: TimerId, at: Nanos, events: &mut impl EventQueue) {
        let Some(due) = self.due.get_mut(timer.index()) else {
            return;
        };
        *due = at;
        let id = self.first + timer.0;
        if at < events.time(id) {
            events.set(id, at);
        }
    }

    #[inline]
    pub fn cancel(&mut self, timer: TimerId) {
        if let Some(due) = self.due.get_mut(timer.index()) {
            *due = NEVER;
        }
    }

    /// The event of entity `id` came up at `at`: the timer, if it is due, otherwise its event is set again.
    pub fn fire(&mut self, id: u32, at: Nanos, events: &mut impl EventQueue) -> Option<TimerId> {
        let timer = TimerId(id - self.first);
        let due = &mut self.due[timer.index()];
        if *due <= at {
            *due = NEVER;
            return Some(timer);
        }
        if *due != NEVER {
            events.insert(id, *due);
        }
        None
    }

    /// Moves the pending event of entity `id`, if it is a timer's, to when the timer is due; whether that changed anything.
    pub fn settle(&self, id: u32, at: Nanos, events: &mut impl EventQueue) -> bool {
        let stale = id >= self.first && self.due[(id - self.first) as usize] != at;
        if stale {
            events.set(id, self.due[(id - self.first) as usize]);
        }
        stale
    }
}
