//! The loop between a connection and an interface, in real time.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use polypath_transport::Nanos;

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
    let now = || began.elapsed().as_nanos() as Nanos;
    let mut outside = File::from(interface.as_fd().try_clone_to_owned()?);
    let packets = reader(File::from(interface.as_fd().try_clone_to_owned()?));
    let mut peer = Peer::new(settings, now())?;
    let mut over_since = None;
    loop {
        peer.tick(now());
        for packet in peer.transmit() {
            outside.write_all(&packet)?;
        }
        if peer.over(now()) && over_since.get_or_insert_with(Instant::now).elapsed() > LINGER {
            return Ok(peer.outcome());
        }
        let wait = Duration::from_nanos(peer.next_deadline().saturating_sub(now())).min(LINGER);
        match packets.recv_timeout(wait) {
            Ok(packet) => peer.receive(&packet, now())?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

/// Packets as they come, from a thread that ends with the process.
fn reader(mut interface: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = vec![0; LONGEST];
        while let Ok(len) = interface.read(&mut buffer) {
            if len == 0 || sender.send(buffer[..len].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
