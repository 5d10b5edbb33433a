//! The applications of a run: what runs in each, and its progress.

mod datagrams;

use std::net::SocketAddr;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use polypath_net::TimerId;
use polypath_transport::{Config, Ways};

use crate::application::{Chains, Datagrams, Pages, Request, Session, Side};

/// An application in the run.
pub(super) struct App {
    pub session: Option<Box<dyn Session>>,
    pub datagrams: Option<Datagrams>,
    /// Index of its client's endpoint; the server's follows.
    pub endpoint: Option<usize>,
    pub configs: Option<[Arc<Config>; 2]>,
    pub requests: Vec<Request>,
    pub addresses: (SocketAddr, SocketAddr),
    /// How the client reaches the server's addresses, and the server the client's.
    pub ways: [Ways; 2],
    /// Of a datagram application: there and back.
    pub flows: Option<(u32, u32)>,
    pub timer: TimerId,
    pub finished: bool,
}

pub(super) struct Apps {
    apps: Vec<App>,
    /// Ends that are to be called.
    roused: Vec<(usize, Side)>,
    pages: Pages,
    pub chains: Chains,
    unfinished: usize,
}

impl Apps {
    /// Room for so many applications, which are to be [added](Self::add).
    pub fn new(count: usize) -> Self {
        Self {
            apps: Vec::with_capacity(count),
            roused: Vec::new(),
            pages: Pages::default(),
            chains: Chains::default(),
            unfinished: count,
        }
    }

    pub fn add(&mut self, app: App) {
        self.apps.push(app);
    }

    pub fn pages(&mut self) -> &mut Pages {
        &mut self.pages
    }

    pub fn iter(&self) -> impl Iterator<Item = &App> {
        self.apps.iter()
    }

    pub fn finish(&mut self, application: usize) {
        let app = &mut self.apps[application];
        if !app.finished {
            app.finished = true;
            self.unfinished -= 1;
        }
    }

    #[inline(always)]
    pub fn all_finished(&self) -> bool {
        self.unfinished == 0
    }

    /// An application, and where it names ends of others that are to be called.
    #[inline(always)]
    pub fn with_roused(&mut self, application: usize) -> (&mut App, &mut Vec<(usize, Side)>) {
        (&mut self.apps[application], &mut self.roused)
    }

    #[inline(always)]
    pub fn rouses(&self) -> bool {
        !self.roused.is_empty()
    }

    /// Ends that are to be called.
    pub fn take_roused(&mut self) -> Vec<(usize, Side)> {
        std::mem::take(&mut self.roused)
    }

    /// Requests of all applications so far.
    pub fn requests(&self) -> u64 {
        let counts = self.apps.iter().map(|app| {
            let datagrams = app.datagrams.as_ref();
            app.requests.len() + datagrams.map_or(0, |datagrams| datagrams.requests.len())
        });
        counts.sum::<usize>() as u64
    }
}

impl Index<usize> for Apps {
    type Output = App;

    #[inline(always)]
    fn index(&self, application: usize) -> &App {
        &self.apps[application]
    }
}

impl IndexMut<usize> for Apps {
    #[inline(always)]
    fn index_mut(&mut self, application: usize) -> &mut App {
        &mut self.apps[application]
    }
}
