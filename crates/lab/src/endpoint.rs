//! One end of an application's connection: the transport, its flows in the network, its timer.

use polypath_net::TimerId;
use polypath_transport::{Connection, NEVER, Nanos};

use crate::application::Side;
use crate::carrier::Carrier;

pub(crate) struct Endpoint {
    /// Absent until the connection begins on this side.
    pub connection: Option<Carrier>,
    pub node: usize,
    pub application: usize,
    pub side: Side,
    /// Flow of each subflow or path in the direction from here.
    pub flows: Vec<u32>,
    /// The client's number for each subflow or path.
    pub numbers: Vec<u32>,
    pub timer: TimerId,
    /// When the timer is set to fire.
    pub timer_at: Nanos,
    /// When the application wants to be called.
    pub wake: Nanos,
    /// In-order bytes that the application read, and when the first and the last came.
    pub received: u64,
    pub first_byte_at: Option<Nanos>,
    pub last_byte_at: Option<Nanos>,
    /// The application was told that the peer's stream ended.
    pub end_seen: bool,
    pub established_at: Option<Nanos>,
    pub ended_at: Option<Nanos>,
}

impl Endpoint {
    pub fn new(node: usize, side: Side, timer: TimerId, application: usize) -> Self {
        Self {
            connection: None,
            node,
            application,
            side,
            flows: Vec::new(),
            numbers: Vec::new(),
            timer,
            timer_at: NEVER,
            wake: NEVER,
            received: 0,
            first_byte_at: None,
            last_byte_at: None,
            end_seen: false,
            established_at: None,
            ended_at: None,
        }
    }

    /// The connection where it is TCP's.
    pub fn tcp(&self) -> Option<&Connection> {
        self.connection.as_ref().and_then(Carrier::tcp)
    }

    pub fn tcp_mut(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().and_then(Carrier::tcp_mut)
    }

    pub fn next_deadline(&self) -> Nanos {
        self.connection
            .as_ref()
            .map_or(NEVER, Carrier::next_deadline)
            .min(self.wake)
    }
}
