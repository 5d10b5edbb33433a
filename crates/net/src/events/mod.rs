//! The queue of pending events: at most one per entity, in the order of (time, id).

mod heap;
mod timers;
mod wheel;

pub use heap::Heap;
pub use wheel::Wheel;

pub(crate) use timers::Timers;

use crate::ids::Nanos;

/// A queue of pending events, one an entity. The order is total, so that every implementation gives the same sequence.
///
/// No event may be set earlier than the latest `until` that [`EventQueue::pop_until`] was given.
pub trait EventQueue {
    /// An empty queue for entities `0..entities`.
    fn with_entities(entities: u32) -> Self;

    /// Adds one entity, whose id is the next free one.
    fn add_entity(&mut self);

    /// Sets or moves the entity's event. `Nanos::MAX` removes it.
    fn set(&mut self, id: u32, at: Nanos);

    /// Sets the event of an entity that has none.
    fn insert(&mut self, id: u32, at: Nanos);

    /// The time of the entity's event; `Nanos::MAX` if it has none.
    fn time(&self, id: u32) -> Nanos;

    /// The first event, if there is any.
    fn peek(&self) -> Option<(Nanos, u32)>;

    /// Whether an event is pending at `now`, the time of the event removed last.
    fn another_at(&self, now: Nanos) -> bool {
        self.peek().is_some_and(|(at, _)| at == now)
    }

    /// Whether so much is pending that what it is about does not stay in caches.
    fn is_crowded(&self) -> bool {
        false
    }

    /// What comes up after so many others, where that is known without looking for it.
    fn upcoming(&self, _after: usize) -> Option<u32> {
        None
    }

    /// Removes the first event, unless it is later than `until`.
    fn pop_until(&mut self, until: Nanos) -> Option<(Nanos, u32)>;
}
