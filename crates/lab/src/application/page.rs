//! A web page: each object is fetched once the objects that it depends on have arrived. HTTP/1.1 uses several
//! connections with one object at a time. QUIC uses a stream for each object.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polypath_settings::Model;
use polypath_transport::Nanos;

use super::http::{request_head, response_head};
use super::kind::{Beginning, Begun, CONNECTIONS, Delays, Direction, Entry, Kind, Traffic};
use super::load::{Load, Loaded, Pages};
use super::session::{Io, Request, Session, Side};
use crate::plan::Page;

/// Its objects are no settings with a unit, a bound and a default each: a scenario has its own words for them.
pub(super) const ENTRY: Entry = Entry {
    model: Model {
        name: "page",
        summary: "A web page: objects that wait for others, over several connections of HTTP/1.1 or on streams of QUIC",
        source: "RFC 9112 section 9.4; HAR 1.2; Wang et al., NSDI 2013 (dependencies of a page's objects)",
        parameters: &[],
        groups: &[],
    },
    transports: CONNECTIONS,
    traffic: Traffic::of(Direction::Fetched, Delays::Parts),
};

impl Kind for Page {
    fn fault(&self) -> Option<String> {
        Page::fault(self).map(str::to_owned)
    }

    fn begin(&self, at: Beginning) -> Begun {
        Begun::session(Browser::new(self, at.number, at.quic, at.pages))
    }
}

struct Browser {
    load: Arc<Mutex<Load>>,
    /// The application that this is.
    own: usize,
    quic: bool,
    /// What is under way, as the client sees it.
    asked: Vec<Asked>,
    /// Requests on their way, in order of TCP or by stream; and what has come of those.
    requests: VecDeque<Wanted>,
    heard: u64,
    /// Answers of the server, by when they are due.
    answers: BTreeMap<(Nanos, usize), Wanted>,
}

/// An object that the client waits for.
struct Asked {
    object: usize,
    stream: u64,
    request: usize,
    /// Bytes that have not come.
    missing: u64,
}

/// A request for an object.
#[derive(Clone, Copy)]
struct Wanted {
    object: usize,
    stream: u64,
    /// Bytes of it that have not come.
    missing: u64,
}

impl Browser {
    fn new(page: &Page, own: usize, quic: bool, pages: &mut Pages) -> Self {
        Self {
            load: pages.of(page.of.unwrap_or(own), page),
            own,
            quic,
            asked: Vec::new(),
            requests: VecDeque::new(),
            heard: 0,
            answers: BTreeMap::new(),
        }
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head of the request for an object; over QUIC, HTTP/0.9's line.
    fn request(&self, object: usize) -> String {
        let load = self.load();
        let path = &load.page.objects[object].path;
        if self.quic {
            format!("GET {path}\r\n")
        } else {
            request_head(path)
        }
    }

    fn size(&self, object: usize) -> u64 {
        self.load().page.objects[object].size_bytes
    }

    /// Takes what has come of answers.
    fn hear(&mut self, io: &mut Io) {
        if self.quic {
            let mut index = 0;
            while let Some((stream, bytes)) = io.arrival(index) {
                index += 1;
                let ends = io.stream_at_end(stream);
                for asked in self.asked.iter_mut().filter(|it| it.stream == stream) {
                    // One more than the object has is the end of its stream.
                    asked.missing = asked.missing.saturating_sub(bytes);
                    if ends {
                        asked.missing = 0;
                    }
                }
            }
        } else if let Some(asked) = self.asked.first_mut() {
            asked.missing = asked.missing.saturating_sub(io.arrived);
        }
        let (come, waiting): (Vec<Asked>, Vec<Asked>) =
            (self.asked.drain(..)).partition(|asked| asked.missing == 0);
        self.asked = waiting;
        for asked in come {
            let request = &mut io.requests[asked.request];
            request.delay = Some(io.now - request.sent_at);
            let roused = self.load().arrived(asked.object, io.now);
            let clients = roused.into_iter().map(|page| (page, Side::Client));
            io.roused.extend(clients);
        }
    }

    fn client(&mut self, io: &mut Io) {
        self.hear(io);
        while self.quic || self.asked.is_empty() {
            if self.load().ready.is_empty() {
                break;
            }
            let Some(stream) = (if self.quic { io.open() } else { Some(0) }) else {
                break;
            };
            let Some(object) = self.load().next(self.own, io.now) else {
                break;
            };
            self.ask(io, object, stream);
        }
        let unasked = self.load().unasked;
        if unasked == 0 && self.asked.is_empty() {
            io.close();
        } else if self.asked.is_empty() {
            self.load().idle.insert(self.own);
        }
    }

    fn ask(&mut self, io: &mut Io, object: usize, stream: u64) {
        let (head, size) = (self.request(object), self.size(object));
        let missing = if self.quic {
            io.write_last(stream, head.len() as u64);
            size + 1
        } else {
            io.write_message(&head, 0);
            response_head(size).len() as u64 + size
        };
        self.asked.push(Asked {
            object,
            stream,
            request: io.requests.len(),
            missing,
        });
        self.requests.push_back(Wanted {
            object,
            stream,
            missing: head.len() as u64,
        });
        io.requests.push(Request {
            sent_at: io.now,
            delay: None,
        });
    }

    fn server(&mut self, io: &mut Io) {
        if self.quic {
            let mut index = 0;
            while let Some((stream, bytes)) = io.arrival(index) {
                index += 1;
                let mut asks = false;
                for wanted in self.requests.iter_mut().filter(|it| it.stream == stream) {
                    wanted.missing = wanted.missing.saturating_sub(bytes);
                    asks = true;
                }
                // A stream without a request, which the client opened to close the connection.
                if !asks && io.stream_at_end(stream) {
                    io.finish(stream);
                }
            }
        } else {
            self.heard += io.arrived;
            for wanted in &mut self.requests {
                let taken = wanted.missing.min(self.heard);
                wanted.missing -= taken;
                self.heard -= taken;
            }
        }
        let (heard, coming): (VecDeque<Wanted>, VecDeque<Wanted>) =
            (self.requests.drain(..)).partition(|wanted| wanted.missing == 0);
        self.requests = coming;
        for wanted in heard {
            let think = self.load().page.objects[wanted.object].think_ns;
            let due = io.now.saturating_add(think);
            self.answers.insert((due, wanted.object), wanted);
        }
        self.answer(io);
        if !self.quic && self.answers.is_empty() && io.connection.at_end() {
            io.close();
        }
    }

    fn answer(&mut self, io: &mut Io) {
        while let Some(entry) = self.answers.first_entry() {
            let (due, object) = *entry.key();
            if !io.due(due) {
                *io.wake = due;
                return;
            }
            let wanted = entry.remove();
            let size = self.size(object);
            if !self.quic {
                io.write_message(&response_head(size), size);
            } else if size > 0 {
                io.write_last(wanted.stream, size);
            } else {
                io.finish(wanted.stream);
            }
        }
    }
}

impl Session for Browser {
    fn run(&mut self, io: &mut Io) {
        match io.side {
            Side::Client => self.client(io),
            Side::Server => self.server(io),
        }
    }

    fn loaded(&self) -> Vec<Loaded> {
        let load = self.load();
        let own = load.loaded.values().filter(|it| it.by == self.own);
        own.copied().collect()
    }
}
