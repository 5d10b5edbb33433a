//! Calls that may block: when they are done, and what they return.

use std::net::SocketAddr;

use polypath_transport::{Manner, NEVER, Nanos};

use crate::descriptor::Role;
use crate::epoll::Ready;
use crate::machine::Machine;
use crate::{Errno, unsupported};

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Accept {
        fd: i32,
    },
    Connect {
        fd: i32,
    },
    Read {
        fd: i32,
        len: u64,
        peek: bool,
    },
    /// Up to `len` bytes are handed over; the connection had taken `before` bytes.
    Write {
        fd: i32,
        before: u64,
        len: u64,
    },
    /// Descriptors with the events that are asked for.
    Poll {
        wanted: Vec<(i32, i16)>,
        until: Nanos,
    },
    Wait {
        epoll: i32,
        most: usize,
        until: Nanos,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Value(i64),
    Accepted(i32, SocketAddr),
    /// The events of each descriptor that was polled.
    Polled(Vec<i16>),
    /// Events and data.
    Events(Vec<(u32, u64)>),
}

pub(crate) type Answer = Result<Reply, Errno>;

/// The call of the other thread, which waits for its answer.
pub(crate) struct Waiting {
    call: Call,
    /// And when it came.
    pub answer: Option<(Nanos, Answer)>,
}

impl Waiting {
    pub fn new(call: Call) -> Self {
        Self { call, answer: None }
    }

    pub fn deadline(&self) -> Nanos {
        match self.answer {
            Some(_) => NEVER,
            None => self.call.deadline(),
        }
    }

    pub fn go_on(&mut self, machine: &mut Machine) {
        if self.answer.is_some() {
            return;
        }
        let answer = machine
            .attempt(&self.call)
            .or_else(|| (self.call.deadline() <= machine.now).then(|| machine.give_up(&self.call)));
        self.answer = answer.map(|answer| (machine.now, answer));
    }
}

impl Call {
    pub fn deadline(&self) -> Nanos {
        match self {
            Self::Poll { until, .. } | Self::Wait { until, .. } => *until,
            _ => NEVER,
        }
    }
}

impl Machine {
    /// A call's answer, if it need not wait.
    pub fn attempt(&mut self, call: &Call) -> Option<Answer> {
        match *call {
            Call::Accept { fd } => match self.hand_out(fd) {
                Err(error) => Some(Err(error)),
                Ok(None) => None,
                Ok(Some((fd, peer))) => Some(Ok(Reply::Accepted(fd, peer))),
            },
            Call::Connect { fd } => {
                let endpoint = match self.endpoint(fd) {
                    Ok(endpoint) => endpoint,
                    Err(error) => return Some(Err(error)),
                };
                if let Some(error) = endpoint.error.take() {
                    return Some(Err(error));
                }
                endpoint
                    .connection
                    .established()
                    .then_some(Ok(Reply::Value(0)))
            }
            Call::Read { fd, len, peek } => self.read(fd, len, peek).transpose(),
            Call::Write { fd, before, len } => self.wrote(fd, before, len).transpose(),
            Call::Poll { ref wanted, .. } => {
                let polled: Vec<i16> = wanted
                    .iter()
                    .map(|&(fd, events)| self.polled(fd, events))
                    .collect();
                let any = polled.iter().any(|events| *events != 0);
                any.then_some(Ok(Reply::Polled(polled)))
            }
            Call::Wait { epoll, most, .. } => match self.events(epoll, most) {
                Err(error) => Some(Err(error)),
                Ok(events) if events.is_empty() => None,
                Ok(events) => Some(Ok(Reply::Events(events))),
            },
        }
    }

    /// The answer of a call that does not block, or waited long enough.
    pub fn give_up(&mut self, call: &Call) -> Answer {
        match *call {
            Call::Accept { .. } | Call::Read { .. } => Err(libc::EAGAIN),
            Call::Connect { .. } => Err(libc::EINPROGRESS),
            Call::Write { fd, before, .. } => {
                let connection = &mut self.endpoint(fd)?.connection;
                connection.cancel_writes();
                match connection.written() - before {
                    0 => Err(libc::EAGAIN),
                    written => Ok(Reply::Value(written as i64)),
                }
            }
            Call::Poll { ref wanted, .. } => Ok(Reply::Polled(vec![0; wanted.len()])),
            Call::Wait { .. } => Ok(Reply::Events(Vec::new())),
        }
    }

    fn read(&mut self, fd: i32, len: u64, peek: bool) -> Result<Option<Reply>, Errno> {
        let now = self.now;
        let endpoint = self.endpoint(fd)?;
        let available = endpoint.connection.available();
        if available > 0 && len > 0 {
            let read = if peek {
                available.min(len)
            } else {
                endpoint.connection.read(len, now)
            };
            self.settle_after_read();
            return Ok(Some(Reply::Value(read as i64)));
        }
        if let Some(error) = endpoint.error.take() {
            return Err(error);
        }
        let ends = endpoint.shut_read || endpoint.over() || len == 0;
        Ok(ends.then_some(Reply::Value(0)))
    }

    /// Hands bytes to a connection. Gives how many it had before.
    pub fn write(&mut self, fd: i32, len: u64, manner: Manner) -> Result<u64, Errno> {
        let now = self.now;
        let unsent = self.unsent_limit(fd)?;
        let multipath = self.socket(fd)?.multipath;
        if multipath && manner.record {
            return Err(unsupported("MSG_EOR of Multipath TCP"));
        }
        let endpoint = self.endpoint(fd)?;
        if let Some(error) = endpoint.error.take() {
            return Err(error);
        }
        if endpoint.shut_write || endpoint.connection.ended().is_some() {
            return Err(libc::EPIPE);
        }
        let before = endpoint.connection.written();
        endpoint.connection.limit_unsent(unsent);
        endpoint.connection.write_as(len, manner, now);
        self.settle();
        Ok(before)
    }

    fn wrote(&mut self, fd: i32, before: u64, len: u64) -> Result<Option<Reply>, Errno> {
        let endpoint = self.endpoint(fd)?;
        let written = endpoint.connection.written() - before;
        if written >= len {
            return Ok(Some(Reply::Value(len as i64)));
        }
        if endpoint.connection.ended().is_none() {
            return Ok(None);
        }
        match written {
            0 => Err(endpoint.error.take().unwrap_or(libc::EPIPE)),
            written => Ok(Some(Reply::Value(written as i64))),
        }
    }

    /// What a descriptor is ready for.
    fn ready(&mut self, fd: i32) -> Result<Ready, Errno> {
        let bits = |events: i32| events as u32;
        let socket = self.socket(fd)?;
        let index = match &socket.role {
            Role::Fresh => {
                let events = bits(libc::EPOLLOUT | libc::EPOLLHUP);
                return Ok(Ready {
                    events,
                    wakes: (0, 0),
                });
            }
            Role::Listening(queue) => {
                let events = if queue.is_empty() {
                    0
                } else {
                    bits(libc::EPOLLIN)
                };
                return Ok(Ready {
                    events,
                    wakes: (queue.len() as u64, 0),
                });
            }
            Role::Connected(_) => self.endpoint(fd)?,
        };
        let endpoint = index;
        let mut events = 0;
        let ended = endpoint.connection.ended().is_some();
        let half = endpoint.shut_read || endpoint.connection.at_end();
        if endpoint.readable() {
            events |= bits(libc::EPOLLIN | libc::EPOLLRDNORM);
        }
        if half || ended {
            events |= bits(libc::EPOLLRDHUP);
        }
        if ended || half && endpoint.shut_write {
            events |= bits(libc::EPOLLHUP);
        }
        if endpoint.error.is_some() {
            events |= bits(libc::EPOLLERR);
        }
        if endpoint.connection.writable() || ended || endpoint.shut_write {
            events |= bits(libc::EPOLLOUT | libc::EPOLLWRNORM);
        }
        Ok(Ready {
            events,
            wakes: endpoint.wakes,
        })
    }

    fn polled(&mut self, fd: i32, wanted: i16) -> i16 {
        let always = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        match self.ready(fd) {
            Ok(ready) => ready.events as i16 & (wanted | always),
            Err(_) => libc::POLLNVAL,
        }
    }

    fn events(&mut self, epoll: i32, most: usize) -> Result<Vec<(u32, u64)>, Errno> {
        let mut events = Vec::new();
        for fd in self.epoll(epoll)?.descriptors() {
            let Ok(ready) = self.ready(fd) else {
                continue;
            };
            if events.len() < most {
                events.extend(self.epoll(epoll)?.report(fd, ready, true));
            }
        }
        Ok(events)
    }
}
