//! The loop between a connection and an interface, in real time.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use polypath_transport::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

use crate::settings::{Outcome, Settings};
use crate::{LiveError, Peer};

/// The longest packet that an interface hands over.
const LONGEST: usize = 65_536;
/// Packets of the peer that still come when the connection is over (its last ACK) are answered for this long.
const LINGER: Duration = Duration::from_millis(200);

/// Runs one connection over a TUN interface (without packet information) to its end.
///
/// # Errors
/// An algorithm that does not exist; an interface that cannot be read or written.
pub fn run(settings: Settings, interface: &impl AsFd) -> Result<Outcome, LiveError> {
    let began = Instant::now();
    let time = || began.elapsed().as_nanos() as Nanos;
    let mut outside = File::from(interface.as_fd().try_clone_to_owned()?);
    ioctl_fionbio(&outside, true).map_err(std::io::Error::from)?;
    let mut peer = Peer::new(settings, time())?;
    let mut buffer = vec![0; LONGEST];
    let mut over_since = None;
    loop {
        // The time is taken before packets are read. After a pause of this process, acknowledgements that arrived meanwhile thus come
        // before the timer that waits for them.
        let now = time();
        while let Some(length) = read(&mut outside, &mut buffer)? {
            peer.receive(&buffer[..length], now)?;
        }
        peer.tick(now);
        for packet in peer.transmit() {
            outside.write_all(&packet)?;
        }
        if peer.over(now) && over_since.get_or_insert_with(Instant::now).elapsed() > LINGER {
            return Ok(peer.outcome());
        }
        let wait = Duration::from_nanos(peer.next_deadline().saturating_sub(time())).min(LINGER);
        wait_for(&outside, wait)?;
    }
}

/// The length of the next packet; None if no packet is there.
fn read(interface: &mut File, buffer: &mut [u8]) -> Result<Option<usize>, LiveError> {
    match interface.read(buffer) {
        Ok(0) => Err(std::io::Error::from(ErrorKind::UnexpectedEof).into()),
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns when the interface has a packet or the time is over.
fn wait_for(interface: &File, wait: Duration) -> Result<(), LiveError> {
    let limit = Timespec {
        tv_sec: wait.as_secs() as i64,
        tv_nsec: i64::from(wait.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(interface, PollFlags::IN)], Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}
