//! The progress of a page load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use polypath_transport::Nanos;

use crate::plan::Page;

/// When an object was asked for, and when all of it had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub object: usize,
    pub bytes: u64,
    /// The application that asked.
    pub by: usize,
    pub asked_at: Nanos,
    pub arrived_at: Option<Nanos>,
}

/// How far a page is, which all of its connections see.
pub(super) struct Load {
    pub page: Page,
    /// By object: how many that it depends on have not come, and what depends on it.
    missing: Vec<usize>,
    dependents: Vec<Vec<usize>>,
    /// Objects that can be asked for.
    pub ready: BTreeSet<usize>,
    pub unasked: usize,
    pub loaded: BTreeMap<usize, Loaded>,
    /// Connections that have nothing to ask for.
    pub idle: BTreeSet<usize>,
}

impl Load {
    fn new(page: &Page) -> Self {
        let objects = &page.objects;
        let missing: Vec<usize> = objects.iter().map(|it| it.after.len()).collect();
        let mut dependents = vec![Vec::new(); objects.len()];
        for (number, object) in objects.iter().enumerate() {
            for &needed in &object.after {
                dependents[needed].push(number);
            }
        }
        let ready = (0..objects.len()).filter(|&it| missing[it] == 0).collect();
        Self {
            page: page.clone(),
            missing,
            dependents,
            ready,
            unasked: objects.len(),
            loaded: BTreeMap::new(),
            idle: BTreeSet::new(),
        }
    }

    /// The next object to be asked for, if there is one.
    pub fn next(&mut self, by: usize, now: Nanos) -> Option<usize> {
        let object = self.ready.pop_first()?;
        self.unasked -= 1;
        let loaded = Loaded {
            object,
            bytes: self.page.objects[object].size_bytes,
            by,
            asked_at: now,
            arrived_at: None,
        };
        self.loaded.insert(object, loaded);
        Some(object)
    }

    /// An object is there; returns the connections that may go on.
    pub fn arrived(&mut self, object: usize, now: Nanos) -> BTreeSet<usize> {
        if let Some(loaded) = self.loaded.get_mut(&object) {
            loaded.arrived_at = Some(now);
        }
        for &dependent in &self.dependents[object] {
            self.missing[dependent] -= 1;
            if self.missing[dependent] == 0 {
                self.ready.insert(dependent);
            }
        }
        std::mem::take(&mut self.idle)
    }
}

/// The pages of a plan, by the application that has the objects.
#[derive(Default)]
pub(crate) struct Pages(BTreeMap<usize, Arc<Mutex<Load>>>);

impl Pages {
    /// How far the page of an application is, as `page` has it if nobody has begun it.
    pub(super) fn of(&mut self, owner: usize, page: &Page) -> Arc<Mutex<Load>> {
        let load = self.0.entry(owner);
        Arc::clone(load.or_insert_with(|| Arc::new(Mutex::new(Load::new(page)))))
    }
}
