//! UDP sockets, one for each address and port that connections send from.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

use polypath_transport::{Nanos, SECOND, Tuple};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::LONGEST_WAIT;
use crate::LiveError;

/// The longest datagram.
const LONGEST: usize = 65_536;
/// Datagrams taken from a socket before the others' turn.
const IN_TURN: usize = 64;
/// Asked for; the kernel gives what it admits. With its default a burst of one window is lost.
const RECEIVE_BUFFER: usize = 4 << 20;

struct Socket {
    /// The address and port by which connections know it. The kernel chooses the port of a client's socket, so that it is free.
    name: SocketAddr,
    udp: UdpSocket,
    /// Datagrams for which the socket had no room.
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl Socket {
    fn bind(name: SocketAddr, at: SocketAddr) -> Result<Self, LiveError> {
        let udp = open(at).map_err(|error| LiveError::Bind(at.ip(), error))?;
        Ok(Self {
            name,
            udp,
            waiting: VecDeque::new(),
        })
    }

    /// Sends what waits, as far as there is room. What the kernel refuses is lost, as on the wire: no route, an interface that is down, a
    /// datagram that is longer than it takes.
    fn send_waiting(&mut self) {
        while let Some((to, bytes)) = self.waiting.front() {
            match self.udp.send_to(bytes, to) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => {
                    self.waiting.pop_front();
                }
            }
        }
    }
}

fn open(at: SocketAddr) -> io::Result<UdpSocket> {
    let udp = UdpSocket::bind(at)?;
    udp.set_nonblocking(true)?;
    set_socket_recv_buffer_size(&udp, RECEIVE_BUFFER)?;
    forbid_fragments(&udp, at)?;
    Ok(udp)
}

/// A datagram of QUIC is not fragmented (RFC 9000 section 14); how long it may be is found out by probes, not from ICMP.
#[cfg(target_os = "linux")]
fn forbid_fragments(udp: &UdpSocket, at: SocketAddr) -> io::Result<()> {
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };

    match at {
        SocketAddr::V4(_) => set_ip_mtu_discover(udp, Ipv4PathMtuDiscovery::PROBE)?,
        SocketAddr::V6(_) => set_ipv6_mtu_discover(udp, Ipv6PathMtuDiscovery::PROBE)?,
    }
    Ok(())
}

/// Elsewhere the system decides.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps, reason = "the signature is Linux's")]
fn forbid_fragments(_: &UdpSocket, _: SocketAddr) -> io::Result<()> {
    Ok(())
}

pub(super) struct Sockets {
    open: Vec<Socket>,
    buffer: Vec<u8>,
}

impl Sockets {
    /// Sockets at these addresses, named after themselves; port 0: the kernel chooses.
    pub fn listen(addresses: &[SocketAddr]) -> Result<Self, LiveError> {
        let mut open = Vec::new();
        for &address in addresses {
            if address.ip().is_unspecified() {
                return Err(LiveError::Unspecified(address.ip()));
            }
            let mut socket = Socket::bind(address, address)?;
            socket.name = socket.udp.local_addr()?;
            open.push(socket);
        }
        Ok(Self {
            open,
            buffer: vec![0; LONGEST],
        })
    }

    /// The addresses of [`Sockets::listen`].
    pub fn names(&self) -> Vec<SocketAddr> {
        self.open.iter().map(|socket| socket.name).collect()
    }

    /// The socket that connections know by a name, bound now if there is none.
    pub fn named(&mut self, name: SocketAddr) -> Result<usize, LiveError> {
        let known = self.open.iter().position(|socket| socket.name == name);
        if let Some(known) = known {
            return Ok(known);
        }
        let socket = Socket::bind(name, SocketAddr::new(name.ip(), 0))?;
        self.open.push(socket);
        Ok(self.open.len() - 1)
    }

    /// What a socket is bound to.
    pub fn bound(&self, name: SocketAddr) -> SocketAddr {
        let socket = self.open.iter().find(|socket| socket.name == name);
        let bound = socket.and_then(|socket| socket.udp.local_addr().ok());
        bound.unwrap_or(name)
    }

    pub fn send(&mut self, tuple: Tuple, bytes: Vec<u8>) -> Result<(), LiveError> {
        let at = self.named(tuple.local)?;
        let socket = &mut self.open[at];
        socket.waiting.push_back((tuple.remote, bytes));
        socket.send_waiting();
        Ok(())
    }

    /// Hands over datagrams that came, as their receiver sees the addresses.
    pub fn take(&mut self, mut each: impl FnMut(Tuple, &[u8])) -> Result<(), LiveError> {
        for Socket { name, udp, .. } in &mut self.open {
            for _ in 0..IN_TURN {
                match udp.recv_from(&mut self.buffer) {
                    Ok((length, remote)) => {
                        let local = *name;
                        each(Tuple { local, remote }, &self.buffer[..length]);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // An ICMP message about a datagram that was sent.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Returns when a datagram has come, when one that waits can be sent, or when the time is over.
    pub fn wait(&mut self, wait: Nanos) -> Result<(), LiveError> {
        let mut polled: Vec<_> = self
            .open
            .iter()
            .map(|socket| {
                let mut flags = PollFlags::IN;
                flags.set(PollFlags::OUT, !socket.waiting.is_empty());
                PollFd::new(&socket.udp, flags)
            })
            .collect();
        let wait = wait.min(LONGEST_WAIT);
        let limit = Timespec {
            tv_sec: (wait / SECOND) as i64,
            tv_nsec: (wait % SECOND) as i64,
        };
        match poll(&mut polled, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        for socket in &mut self.open {
            socket.send_waiting();
        }
        Ok(())
    }
}
