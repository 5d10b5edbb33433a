//! Sets of descriptors to wait for (epoll(7)).

use std::collections::BTreeMap;

use crate::Errno;

/// A descriptor that a set watches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub events: u32,
    pub data: u64,
    /// Wake-ups up to these numbers were reported: to read, to write.
    seen: (u64, u64),
    fresh: bool,
    off: bool,
}

/// What a descriptor is ready for now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub events: u32,
    /// How often it woke readers and writers.
    pub wakes: (u64, u64),
}

#[derive(Debug, Default)]
pub(crate) struct Epoll {
    watched: BTreeMap<i32, Watched>,
}

/// Events of errors are always watched for.
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

impl Epoll {
    pub fn control(
        &mut self,
        operation: i32,
        fd: i32,
        events: u32,
        data: u64,
    ) -> Result<(), Errno> {
        let known = self.watched.contains_key(&fd);
        match operation {
            libc::EPOLL_CTL_ADD if known => return Err(libc::EEXIST),
            libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL if !known => return Err(libc::ENOENT),
            libc::EPOLL_CTL_DEL => {
                self.watched.remove(&fd);
            }
            libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD => {
                let watched = Watched {
                    events,
                    data,
                    seen: (0, 0),
                    fresh: true,
                    off: false,
                };
                self.watched.insert(fd, watched);
            }
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    }

    pub fn forget(&mut self, fd: i32) {
        self.watched.remove(&fd);
    }

    pub fn descriptors(&self) -> Vec<i32> {
        self.watched.keys().copied().collect()
    }

    /// The events that a wait reports of a descriptor: nothing, or its data with them. What is edge-triggered or asked for once is done with
    /// them if they are taken.
    pub fn report(&mut self, fd: i32, ready: Ready, take: bool) -> Option<(u32, u64)> {
        let watched = self.watched.get_mut(&fd)?;
        let events = ready.events & (watched.events | ALWAYS);
        if events == 0 || watched.off {
            return None;
        }
        if watched.events & libc::EPOLLET as u32 != 0 {
            let inward = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32 & watched.events != 0;
            let outward = libc::EPOLLOUT as u32 & watched.events != 0;
            let woken = watched.fresh
                || inward && ready.wakes.0 > watched.seen.0
                || outward && ready.wakes.1 > watched.seen.1;
            if !woken {
                return None;
            }
        }
        if take {
            watched.seen = ready.wakes;
            watched.fresh = false;
            watched.off = watched.events & libc::EPOLLONESHOT as u32 != 0;
        }
        Some((events, watched.data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN: u32 = libc::EPOLLIN as u32;

    fn ready(wakes: u64) -> Ready {
        Ready {
            events: IN,
            wakes: (wakes, 0),
        }
    }

    #[test]
    fn an_edge_is_reported_once_per_wake_up() {
        let mut set = Epoll::default();
        set.control(libc::EPOLL_CTL_ADD, 4, IN | libc::EPOLLET as u32, 7)
            .unwrap();
        assert_eq!(set.report(4, ready(0), true), Some((IN, 7)));
        assert_eq!(set.report(4, ready(0), true), None);
        assert_eq!(set.report(4, ready(1), true), Some((IN, 7)));
    }

    #[test]
    fn a_level_is_reported_each_time_and_one_shot_once() {
        let mut set = Epoll::default();
        set.control(libc::EPOLL_CTL_ADD, 4, IN, 7).unwrap();
        assert!(set.report(4, ready(0), true).is_some());
        assert!(set.report(4, ready(0), true).is_some());
        set.control(libc::EPOLL_CTL_MOD, 4, IN | libc::EPOLLONESHOT as u32, 7)
            .unwrap();
        assert!(set.report(4, ready(0), true).is_some());
        assert!(set.report(4, ready(0), true).is_none());
    }
}
