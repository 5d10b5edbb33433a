//! Files over HTTP/0.9 on streams of QUIC, as QUIC's interoperability tests define it.
//!
//! The request is one line. The answer is the bytes of the file, up to the end of the stream.

use polypath_settings::choice;

use super::session::{Io, Request, Session, Side};

choice! {
    /// Which streams of QUIC carry the files of a fetch.
    #[derive(Default)]
    Streams {
        /// Each file has its own.
        #[default]
        Each = "each",
        /// Each file has its own, and those that were asked for first are sent first.
        Ordered = "ordered",
        /// One carries all of them, in order.
        One = "one",
    }
}

/// `GET /file` with its line end.
const REQUEST: u64 = "GET /file\r\n".len() as u64;

pub(super) struct Hq {
    size: u64,
    count: u64,
    parallel: u64,
    streams: Streams,
    /// The client's requests: the stream of each, and what of its answer has come.
    asked: Vec<(u64, u64)>,
    answered: usize,
    /// The server's streams that wait for the end of their request, and what has come of it.
    heard: Vec<(u64, u64)>,
}

impl Hq {
    /// Asks for `count` files of `size` bytes, for `parallel` at once.
    pub fn new(size: u64, count: u64, parallel: u64, streams: Streams) -> Self {
        Self {
            size,
            count,
            parallel,
            streams,
            asked: Vec::new(),
            answered: 0,
            heard: Vec::new(),
        }
    }

    /// Asks for as many files as may be under way at once.
    fn ask(&mut self, io: &mut Io) {
        while (self.asked.len() - self.answered) < self.parallel as usize
            && (self.asked.len() as u64) < self.count
        {
            let last = self.asked.len() as u64 + 1 == self.count;
            let stream = match (self.streams, self.asked.first()) {
                (Streams::One, Some(&(stream, _))) => stream,
                _ => match io.open() {
                    Some(stream) => stream,
                    None => return,
                },
            };
            if last || self.streams != Streams::One {
                io.write_last(stream, REQUEST);
            } else {
                io.write_to(stream, REQUEST);
            }
            self.asked.push((stream, 0));
            io.requests.push(Request {
                sent_at: io.now,
                delay: None,
            });
        }
    }

    fn client(&mut self, io: &mut Io) {
        let mut index = 0;
        while let Some((stream, mut bytes)) = io.arrival(index) {
            index += 1;
            for (request, (own, heard)) in self.asked.iter_mut().enumerate() {
                let taken = if *own == stream {
                    bytes.min(self.size - *heard)
                } else {
                    0
                };
                if taken == 0 {
                    continue;
                }
                bytes -= taken;
                *heard += taken;
                if *heard == self.size {
                    self.answered += 1;
                    let request = &mut io.requests[request];
                    request.delay = Some(io.now - request.sent_at);
                }
            }
        }
        self.ask(io);
        if self.answered as u64 == self.count {
            io.close();
        }
    }

    fn server(&mut self, io: &mut Io) {
        let mut index = 0;
        while let Some((stream, bytes)) = io.arrival(index) {
            index += 1;
            let known = self.heard.iter().position(|heard| heard.0 == stream);
            let at = known.unwrap_or_else(|| {
                if self.streams == Streams::Ordered {
                    let number = i32::try_from(stream >> 2).unwrap_or(i32::MAX);
                    io.set_priority(stream, -number);
                }
                self.heard.push((stream, 0));
                self.heard.len() - 1
            });
            self.heard[at].1 += bytes;
            let ends = io.stream_at_end(stream);
            while self.heard[at].1 >= REQUEST {
                self.heard[at].1 -= REQUEST;
                if ends && self.heard[at].1 < REQUEST {
                    io.write_last(stream, self.size);
                } else {
                    io.write_to(stream, self.size);
                }
            }
            if ends {
                io.finish(stream);
            }
        }
    }
}

impl Session for Hq {
    fn run(&mut self, io: &mut Io) {
        match io.side {
            Side::Client => self.client(io),
            Side::Server => self.server(io),
        }
    }
}
