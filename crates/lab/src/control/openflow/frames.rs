//! Packets that a controller holds as bytes. Bytes that come back are matched with their packets here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::control::Held;

/// How many are known at most, the latest.
const MOST: usize = 1 << 14;

#[derive(Debug, Default)]
pub(crate) struct Frames {
    known: BTreeMap<Arc<[u8]>, Held>,
    order: VecDeque<Arc<[u8]>>,
    /// Flow and number of frames that are the controller's own.
    own: BTreeMap<Arc<[u8]>, (u32, u32)>,
}

impl Frames {
    /// A packet has gone to the controller as this frame.
    pub fn remember(&mut self, frame: &[u8], held: Held) {
        if let Some(known) = self.known.get_mut(frame) {
            *known = held;
            return;
        }
        if self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        let frame: Arc<[u8]> = frame.into();
        self.order.push_back(frame.clone());
        self.known.insert(frame, held);
    }

    /// The packet that a frame of the controller is.
    pub fn find(&self, frame: &[u8]) -> Option<&Held> {
        self.known.get(frame)
    }

    /// Flow and number of a frame of the controller's own; `make` gives it them.
    pub fn own(&mut self, frame: &Arc<[u8]>, make: impl FnOnce() -> (u32, u32)) -> (u32, u32) {
        *self.own.entry(frame.clone()).or_insert_with(make)
    }
}
