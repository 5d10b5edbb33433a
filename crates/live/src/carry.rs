//! The loop between a [`Carrier`] and hosts' interfaces, in real time.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use polypath_net::Nanos;
use polypath_transport::NEVER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read, retry_on_intr};

use crate::LiveError;
use crate::carrier::{Carrier, Tally};

/// The longest frame that an interface hands over.
const LONGEST: usize = 65_536 + 14;
/// Frames taken from an interface before the others' turn.
const IN_TURN: usize = 64;
const SECOND: u64 = 1_000_000_000;
/// A byte of `stop` that ends the record alone: SIGUSR1, as Python's wake-up descriptor has it.
const RECORDED: u8 = 10;

/// The clock of a run: when its time 0 was or will be.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    /// Nanoseconds of the run's time at `began`; negative: it begins later.
    offset: i64,
}

impl Clock {
    pub fn starting_at(offset: i64) -> Self {
        Self {
            began: Instant::now(),
            offset,
        }
    }

    /// The run's time; 0 before it begins.
    pub(crate) fn now(&self) -> Nanos {
        let elapsed = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        self.offset.saturating_add(elapsed).max(0) as u64
    }
}

/// Carries frames until `stop` has a byte or its end. Samples of the links are written to `log` at each multiple of `interval` and at the end,
/// each at once; a byte `RECORDED` takes the last of them before that end.
///
/// # Errors
/// Interfaces that cannot be read, a log that cannot be written.
pub fn carry(
    mut carrier: Carrier,
    interfaces: &[File],
    stop: &impl AsFd,
    clock: Clock,
    interval: Nanos,
    log: &mut impl Write,
) -> Result<Tally, LiveError> {
    for interface in interfaces {
        ioctl_fionbio(interface, true).map_err(std::io::Error::from)?;
    }
    let mut buffer = vec![0; LONGEST];
    let mut next_sample = 0;
    loop {
        let now = clock.now();
        carrier.step(now);
        hand_over(&mut carrier, interfaces, &clock);
        if now >= next_sample {
            sample(&mut carrier, now, log)?;
            next_sample = (now / interval + 1) * interval;
        }
        let until = carrier.next_time().unwrap_or(next_sample).min(next_sample);
        let wait = until.saturating_sub(clock.now());
        let ready = wait_for(interfaces, stop, wait)?;
        if ready.last() == Some(&true) {
            let ends = !only_recorded(stop)?;
            let now = clock.now();
            carrier.step(now);
            if next_sample != NEVER {
                sample(&mut carrier, now, log)?;
            }
            if ends {
                return Ok(carrier.tally());
            }
            next_sample = NEVER;
        }
        for (port, mut interface) in interfaces.iter().enumerate() {
            if !ready[port] {
                continue;
            }
            for _ in 0..IN_TURN {
                let length = match interface.read(&mut buffer) {
                    Ok(length) => length,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                };
                carrier.step(clock.now());
                carrier.take(port, &buffer[..length]);
            }
        }
    }
}

/// Written through: a run that is interrupted keeps what it has.
fn sample(carrier: &mut Carrier, now: Nanos, log: &mut impl Write) -> Result<(), LiveError> {
    log.write_all(carrier.sample(now).as_bytes())?;
    Ok(log.flush()?)
}

fn only_recorded(stop: &impl AsFd) -> Result<bool, LiveError> {
    let mut bytes = [0; 16];
    let count = retry_on_intr(|| read(stop, &mut bytes)).map_err(std::io::Error::from)?;
    Ok(count > 0 && bytes[..count].iter().all(|&byte| byte == RECORDED))
}

/// An interface that is down takes nothing: what is written to it is lost, as on the wire.
fn hand_over(carrier: &mut Carrier, interfaces: &[File], clock: &Clock) {
    for delivery in carrier.deliveries() {
        let _ = (&interfaces[delivery.port]).write(&delivery.frame);
        carrier.handed_over(delivery.due, clock.now());
    }
}

/// Which interfaces can be read, and at the end whether `stop` can, within so many nanoseconds.
fn wait_for(interfaces: &[File], stop: &impl AsFd, wait: Nanos) -> Result<Vec<bool>, LiveError> {
    let mut polled: Vec<_> = interfaces
        .iter()
        .map(|interface| PollFd::new(interface, PollFlags::IN))
        .chain([PollFd::new(stop, PollFlags::IN)])
        .collect();
    let limit = Timespec {
        tv_sec: (wait / SECOND) as i64,
        tv_nsec: (wait % SECOND) as i64,
    };
    match poll(&mut polled, Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(std::io::Error::from(error).into()),
    }
    Ok(polled
        .iter()
        .map(|polled| polled.revents().intersects(PollFlags::IN | PollFlags::HUP))
        .collect())
}
