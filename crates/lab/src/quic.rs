//! A connection of QUIC, either of `polypath_transport` or of a third-party stack.
//!
//! Two ends of `polypath_transport` exchange packets as plain data. If either end is another stack, both exchange real
//! bytes.

use std::net::IpAddr;

use polypath_transport::quic::bytes::Protector;
use polypath_transport::quic::{Codepoint, Connection};
use polypath_transport::{Blocked, CloseReason, Event, Nanos, Purpose, Tuple};
use polypath_wire::quic::{Carried, Datagram, Frame, Packet};

use crate::application::Frames;
use crate::flow::Sealed;
use crate::lane::Lane;
use crate::names::Names;
use crate::other_stack::{Departure, OtherConnection};

pub(crate) enum Quic {
    Ours(Box<Ours>),
    Other(Box<dyn OtherConnection>),
}

/// A connection of `polypath_transport`.
pub(crate) struct Ours {
    connection: Connection,
    /// Makes bytes of it, for captures and for another stack.
    sealer: Option<Sealer>,
    /// The peer takes bytes alone.
    real: bool,
}

struct Sealer {
    protector: Protector,
    names: Names,
}

/// Calls the same method of either.
macro_rules! either {
    ($self:expr, $connection:ident => $call:expr) => {
        match $self {
            Quic::Ours(ours) => {
                let $connection = &mut ours.connection;
                $call
            }
            Quic::Other($connection) => $call,
        }
    };
}

/// The same for what changes nothing.
macro_rules! asked {
    ($self:expr, $connection:ident => $call:expr) => {
        match $self {
            Quic::Ours(ours) => {
                let $connection = &ours.connection;
                $call
            }
            Quic::Other($connection) => $call,
        }
    };
}

// What is not inlined would take registers from applications that run over TCP.
impl Quic {
    /// `captured`: its bytes are wanted; `real`: the peer takes nothing else.
    pub fn ours(connection: Connection, names: Names, captured: bool, real: bool) -> Self {
        let sealer = (captured || real).then(|| Sealer {
            protector: Protector::new(&connection),
            names,
        });
        Self::Ours(Box::new(Ours {
            connection,
            sealer,
            real,
        }))
    }

    /// Whether a packet is for it, as far as that can be asked.
    #[inline(always)]
    pub fn knows(&self, packet: &Packet) -> bool {
        match self {
            Self::Ours(ours) => ours.connection.identity().knows_packet(packet),
            Self::Other(_) => false,
        }
    }

    /// A datagram of `len` bytes came, which was sent for a purpose.
    pub fn receive(
        &mut self,
        tuple: Tuple,
        sealed: &Sealed,
        len: u32,
        ecn: Codepoint,
        purpose: Purpose,
        now: Nanos,
    ) {
        let bytes = &sealed.bytes[..];
        match self {
            Self::Ours(ours) => match (&sealed.datagram, &mut ours.sealer) {
                (Some(datagram), _) => {
                    ours.connection.expect_purpose(purpose);
                    ours.connection.on_datagram(tuple, datagram, len, ecn, now);
                }
                (None, Some(sealer)) => sealer.open(&mut ours.connection, tuple, bytes, ecn, now),
                (None, None) => {}
            },
            Self::Other(connection) => connection.receive(tuple, bytes, ecn, now),
        }
    }

    /// A connection of `polypath_transport`.
    pub fn own(&self) -> Option<&Connection> {
        match self {
            Self::Ours(ours) => Some(&ours.connection),
            Self::Other(_) => None,
        }
    }

    pub fn own_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Self::Ours(ours) => Some(&mut ours.connection),
            Self::Other(_) => None,
        }
    }

    /// As bytes what a connection of `polypath_transport` sends, where somebody wants them.
    pub fn seal(&mut self, datagram: &Datagram) -> Vec<u8> {
        match self {
            Self::Ours(ours) => match &mut ours.sealer {
                Some(sealer) => sealer.seal(&mut ours.connection, datagram),
                None => Vec::new(),
            },
            Self::Other(_) => Vec::new(),
        }
    }

    /// Whether [`Quic::seal`] gives any.
    pub fn seals(&self) -> bool {
        matches!(self, Self::Ours(ours) if ours.sealer.is_some())
    }

    /// What a stack by others sends.
    pub fn departures(&mut self) -> Vec<Departure> {
        match self {
            Self::Ours(_) => Vec::new(),
            Self::Other(connection) => connection.departures(),
        }
    }

    /// Whether the peer takes nothing but bytes.
    pub fn real(&self) -> bool {
        match self {
            Self::Ours(ours) => ours.real,
            Self::Other(_) => true,
        }
    }

    /// Lines of a key log since this was last asked.
    pub fn take_secrets(&mut self) -> Vec<String> {
        match self {
            Self::Ours(ours) => match &mut ours.sealer {
                Some(sealer) => sealer.protector.take_secrets(&mut ours.connection),
                None => Vec::new(),
            },
            Self::Other(connection) => connection.take_secrets(),
        }
    }

    /// Adds what came since this was last called: in-order bytes by stream, which are read now, a stream at its end with nothing; and datagrams,
    /// none of them over a stack by others. Whether there was any.
    pub fn read(&mut self, now: Nanos, into: &mut Frames) -> bool {
        match self {
            Self::Ours(ours) => {
                let connection = &mut ours.connection;
                connection.read_all(now, &mut into.streams);
                if connection.has_datagrams() {
                    into.datagrams = connection.received_datagrams();
                }
            }
            Self::Other(connection) => into.streams.extend(connection.take_arrivals()),
        }
        !into.is_empty()
    }

    pub fn send_datagram(&mut self, len: u32, now: Nanos) -> bool {
        self.own_mut()
            .is_some_and(|connection| connection.send_datagram(len, now))
    }

    pub fn open(&mut self, bidirectional: bool) -> Option<u64> {
        either!(self, it => it.open(bidirectional))
    }

    pub fn write_to(&mut self, stream: u64, bytes: u64, now: Nanos) {
        either!(self, it => it.write_to(stream, bytes, now));
    }

    pub fn write_last(&mut self, stream: u64, bytes: u64, now: Nanos) {
        either!(self, it => it.write_last(stream, bytes, now));
    }

    pub fn set_priority(&mut self, stream: u64, priority: i32) {
        either!(self, it => it.set_priority(stream, priority));
    }

    pub fn finish(&mut self, stream: u64, now: Nanos) {
        either!(self, it => it.finish(stream, now));
    }

    pub fn stream_at_end(&self, stream: u64) -> bool {
        asked!(self, it => it.stream_at_end(stream))
    }

    #[inline(never)]
    pub fn write(&mut self, bytes: u64, now: Nanos) {
        either!(self, it => it.write(bytes, now));
    }

    #[inline(never)]
    pub fn close(&mut self, now: Nanos) {
        either!(self, it => it.close(now));
    }

    #[inline(never)]
    pub fn cancel_writes(&mut self) -> u64 {
        either!(self, it => it.cancel_writes())
    }

    /// Whether it is established, and [`Quic::at_end`]; for callers that know of QUIC alone.
    #[inline(always)]
    pub fn standing(&self) -> (bool, bool) {
        asked!(self, it => (it.established(), it.at_end()))
    }

    /// As [`Quic::next_deadline`].
    #[inline(always)]
    pub fn deadline(&self) -> Nanos {
        asked!(self, it => it.next_deadline())
    }

    #[inline(never)]
    pub fn at_end(&self) -> bool {
        asked!(self, it => it.at_end())
    }

    pub fn ended(&self) -> Option<CloseReason> {
        asked!(self, it => it.ended())
    }

    pub fn multipath(&self) -> bool {
        asked!(self, it => it.multipath())
    }

    #[inline(never)]
    pub fn next_deadline(&self) -> Nanos {
        asked!(self, it => it.next_deadline())
    }

    #[inline(never)]
    pub fn on_time(&mut self, now: Nanos) {
        either!(self, it => it.on_time(now));
    }

    pub fn has_events(&self) -> bool {
        match self {
            Self::Ours(ours) => ours.connection.has_events(),
            // It is asked for them.
            Self::Other(_) => true,
        }
    }

    #[inline(never)]
    pub fn events(&mut self) -> &mut Vec<Event> {
        either!(self, it => it.events())
    }

    pub fn set_address_up(&mut self, address: IpAddr, up: bool, now: Nanos) {
        either!(self, it => it.set_address_up(address, up, now));
    }

    pub fn set_backup(&mut self, address: IpAddr, backup: bool, now: Nanos) {
        either!(self, it => it.set_backup(address, backup, now));
    }

    pub fn migrate(&mut self, from: IpAddr, to: IpAddr, now: Nanos) {
        either!(self, it => it.migrate(from, to, now));
    }

    pub fn buffers(&self) -> (u64, u64) {
        asked!(self, it => it.buffers())
    }

    pub fn receive_window(&self) -> u64 {
        asked!(self, it => it.receive_window())
    }

    /// Nothing of a stack by others, which does not tell.
    pub fn reassembly_bytes(&self) -> u64 {
        match self {
            Self::Ours(ours) => ours.connection.streams().reassembly_bytes(),
            Self::Other(_) => 0,
        }
    }

    /// How long received data waited, and what for. Neither a stack by others nor its packets tell.
    pub fn blocked(&self, now: Nanos) -> Vec<Blocked> {
        match self {
            Self::Ours(ours) if !ours.real => ours.connection.streams().blocked(now),
            _ => Vec::new(),
        }
    }

    pub fn send_queue(&self) -> (u64, u64) {
        asked!(self, it => it.send_queue())
    }

    pub fn lanes(&self) -> usize {
        match self {
            Self::Ours(ours) => ours.connection.members().len(),
            Self::Other(connection) => connection.lanes(),
        }
    }

    /// The id of each path, which both ends know.
    pub fn path_ids(&self) -> Vec<u64> {
        match self {
            Self::Ours(ours) => {
                let members = ours.connection.members().iter();
                members.map(|member| member.id()).collect()
            }
            Self::Other(connection) => {
                let lanes = 0..connection.lanes();
                lanes.map(|lane| connection.path_id(lane)).collect()
            }
        }
    }

    pub fn tuple(&self, lane: usize) -> Tuple {
        match self {
            Self::Ours(ours) => ours.connection.members()[lane].tuple(),
            Self::Other(connection) => connection.lane(lane).tuple,
        }
    }

    pub fn gateways(&self, lane: usize) -> Option<&[IpAddr]> {
        match self {
            Self::Ours(ours) => {
                let member = ours.connection.members().get(lane);
                member.map(|member| member.gateways())
            }
            Self::Other(_) => None,
        }
    }

    pub fn lane(&self, lane: usize) -> Lane<'_> {
        match self {
            Self::Ours(ours) => {
                let it = &ours.connection;
                let member = &it.members()[lane];
                Lane {
                    tuple: member.tuple(),
                    path: &it.paths()[lane],
                    state: member.state_name(),
                    totals: *member.totals(),
                    out_of_order_bytes: 0,
                    backup: member.is_backup(),
                    established_at: member.established_at(),
                    closed_at: member.closed_at(),
                }
            }
            Self::Other(connection) => connection.lane(lane),
        }
    }
}

impl Sealer {
    fn seal(&mut self, connection: &mut Connection, datagram: &Datagram) -> Vec<u8> {
        let names = self.names;
        self.protector
            .seal(connection, datagram, &mut |carried, out| match carried {
                Carried::Stream { stream, offset } => names.fill(stream, offset, out),
                Carried::Datagram { number } => {
                    names.fill_datagram(number, out);
                }
            })
    }

    fn open(
        &mut self,
        connection: &mut Connection,
        tuple: Tuple,
        bytes: &[u8],
        ecn: Codepoint,
        now: Nanos,
    ) {
        let names = self.names;
        let mut take = |frame: &mut Frame, bytes: &[u8]| {
            if let Frame::Stream { stream, offset, .. } = frame {
                names.came(*stream, *offset, bytes);
            }
        };
        self.protector
            .receive(connection, tuple, bytes, ecn, now, &mut take);
    }
}
