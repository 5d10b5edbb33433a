//! Two threads that call one machine: packetdrill's main thread, which lets time pass, and the thread of calls that
//! block.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use polypath_transport::{MICROSECOND, Manner, Nanos, SECOND};

use crate::Errno;
use crate::call::{Answer, Call, Reply, Waiting};
use crate::host::Host;
use crate::machine::{Departure, Machine};

/// packetdrill sleeps until so long before an event and then asks for the time until it has come (`MAX_SPIN_USECS`).
const SPIN: Nanos = 20 * MICROSECOND;
/// Calls of the main thread that wait longer never return.
const PATIENCE: Nanos = 60 * SECOND;

thread_local! {
    /// When the call ended that blocked this thread, until it has asked for the time.
    static ENDED: Cell<Option<Nanos>> = const { Cell::new(None) };
}

pub(crate) struct Shim {
    machine: Mutex<Machine>,
    answered: Condvar,
    main: ThreadId,
}

impl Shim {
    pub fn new() -> Self {
        Self {
            machine: Mutex::new(Machine::new(Host::from_environment())),
            answered: Condvar::new(),
            main: thread::current().id(),
        }
    }

    /// The machine, with what the script's commands have set by now.
    pub fn machine(&self) -> MutexGuard<'_, Machine> {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        if machine.host.refresh() {
            machine.look_at_routes();
        }
        machine
    }

    /// Wakes the other thread if its call is done.
    fn wake(&self, machine: &Machine) {
        if machine
            .waiting
            .as_ref()
            .is_some_and(|it| it.answer.is_some())
        {
            self.answered.notify_all();
        }
    }

    /// Does something to the machine.
    pub fn with<T>(&self, act: impl FnOnce(&mut Machine) -> T) -> T {
        let mut machine = self.machine();
        let result = act(&mut machine);
        machine.settle();
        self.wake(&machine);
        result
    }

    /// The answer of a call that may block.
    pub fn perform(&self, call: Call, blocking: bool) -> Answer {
        let mut machine = self.machine();
        let mut answer = machine.attempt(&call);
        if answer.is_none() && !blocking {
            answer = Some(machine.give_up(&call));
        }
        if answer.is_none() && thread::current().id() == self.main {
            answer = Some(wait(&mut machine, &call));
        }
        if let Some(answer) = answer {
            machine.settle();
            self.wake(&machine);
            return answer;
        }
        machine.waiting = Some(Waiting::new(call));
        loop {
            if let Some((at, answer)) = machine.waiting.as_mut().and_then(|it| it.answer.take()) {
                machine.waiting = None;
                ENDED.set(Some(at));
                return answer;
            }
            machine = self
                .answered
                .wait(machine)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn socket_blocks(&self, fd: i32) -> bool {
        self.machine()
            .socket(fd)
            .is_ok_and(|socket| socket.blocking)
    }

    pub fn accept(&self, fd: i32) -> Answer {
        self.perform(Call::Accept { fd }, self.socket_blocks(fd))
    }

    pub fn connect(&self, fd: i32, remote: SocketAddr) -> Answer {
        self.with(|machine| machine.connect(fd, remote))?;
        self.perform(Call::Connect { fd }, self.socket_blocks(fd))
    }

    pub fn read(&self, fd: i32, len: u64, peek: bool, wait: bool) -> Answer {
        let blocking = wait && self.socket_blocks(fd);
        self.perform(Call::Read { fd, len, peek }, blocking)
    }

    pub fn write(&self, fd: i32, len: u64, manner: Manner, wait: bool) -> Answer {
        let blocking = wait && self.socket_blocks(fd);
        let before = self.with(|machine| machine.write(fd, len, manner))?;
        self.perform(Call::Write { fd, before, len }, blocking)
    }

    /// Time passes.
    pub fn sleep(&self, micros: u64) {
        let mut machine = self.machine();
        let until = machine.now + micros * MICROSECOND + SPIN;
        machine.advance(until);
        self.wake(&machine);
    }

    /// Microseconds of the virtual clock; it goes on by one each time the main thread asks.
    pub fn time(&self) -> u64 {
        if let Some(ended) = ENDED.take() {
            return ended / MICROSECOND;
        }
        let mut machine = self.machine();
        if thread::current().id() == self.main {
            let next = machine.now + MICROSECOND;
            machine.advance(next);
            self.wake(&machine);
        }
        machine.now / MICROSECOND
    }

    pub fn next_packet(&self) -> Option<Departure> {
        let mut machine = self.machine();
        let packet = machine.next_packet();
        self.wake(&machine);
        packet
    }
}

/// The main thread waits: time passes until its call is done.
fn wait(machine: &mut Machine, call: &Call) -> Answer {
    let limit = call.deadline().min(machine.now + PATIENCE);
    while machine.step(limit) {
        if let Some(answer) = machine.attempt(call) {
            return answer;
        }
    }
    if call.deadline() <= limit {
        machine.advance(limit);
    }
    machine.give_up(call)
}

/// A call's number, where it gives nothing else.
pub(crate) fn value(answer: Answer) -> Result<i64, Errno> {
    match answer? {
        Reply::Value(value) => Ok(value),
        _ => Ok(0),
    }
}
