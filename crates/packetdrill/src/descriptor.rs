//! The objects behind descriptors.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use crate::epoll::Epoll;

pub(crate) enum Descriptor {
    Socket(Socket),
    Epoll(Epoll),
}

/// What a socket became.
#[derive(Debug, Default)]
pub(crate) enum Role {
    #[default]
    Fresh,
    /// Connections of its machine that nobody accepted yet.
    Listening(VecDeque<usize>),
    /// A connection of its machine.
    Connected(usize),
}

#[derive(Debug)]
pub(crate) struct Socket {
    pub ipv6: bool,
    pub multipath: bool,
    pub blocking: bool,
    pub bound: Option<SocketAddr>,
    pub role: Role,
    pub options: Options,
}

/// Options that accepted sockets inherit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub nodelay: bool,
    pub cork: bool,
    pub reuse: bool,
    pub keepalive: bool,
    /// Milliseconds.
    pub user_timeout: u32,
    /// What SO_SNDBUF and SO_RCVBUF say, doubled already.
    pub send_buffer: Option<u64>,
    pub receive_buffer: Option<u64>,
    pub unsent_limit: Option<u32>,
    /// Reports of a smaller MTU are not heard (IP_PMTUDISC_DONT).
    pub fixed_mtu: bool,
    /// What is left to read is told to who reads (TCP_INQ).
    pub tells_rest: bool,
    /// Closing resets the connection (SO_LINGER with no time).
    pub aborts: bool,
}

impl Socket {
    /// Whether packets to `address` are for this listener.
    pub fn listens(&self, address: SocketAddr) -> bool {
        let same = |bound: SocketAddr| {
            bound.port() == address.port()
                && (bound.ip().is_unspecified() || bound.ip() == address.ip())
        };
        matches!(self.role, Role::Listening(_)) && self.bound.is_some_and(same)
    }

    pub fn connection(&self) -> Option<usize> {
        match self.role {
            Role::Connected(connection) => Some(connection),
            _ => None,
        }
    }
}

/// The address that IPv4 in IPv6 stands for.
pub(crate) fn unmapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
