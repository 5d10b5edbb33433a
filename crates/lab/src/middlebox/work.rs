//! The packets that pass a middlebox, and the tools that it works with.

use std::net::{IpAddr, SocketAddr};

use polypath_net::Ecn;
use polypath_settings::{Given, Group, Measure, ModelError, Parameter, Value, choice};
use polypath_transport::{NEVER, Nanos, Segment};
use rand_pcg::Pcg64Mcg;

use crate::flow::{Body, Content, End};

/// A packet as a middlebox sees it.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    /// It goes from the link's first end to its second.
    pub forward: bool,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub ecn: Ecn,
    pub body: Body,
    /// The flow that brought it; absent if the middlebox made it.
    pub flow: Option<u32>,
    pub conversation: Conversation,
    /// Of a report: the packet that it quotes.
    pub about: Option<Box<About>>,
}

/// A packet that a report is about, as far as the report shows it.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub content: Content,
}

impl Passing {
    pub fn segment(&mut self) -> Option<&mut Segment> {
        match &mut self.body.content {
            Content::Tcp(segment) => Some(segment),
            _ => None,
        }
    }

    /// Addresses and ports, source first.
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.source, self.destination)
    }
}

/// Whose bytes a flow carries, whatever its addresses become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversation {
    pub sender: End,
    pub stream: u64,
    pub first_dsn: Option<u64>,
}

/// Packets of a middlebox so far: `received + made == sent + dropped + absorbed + held`, where it says what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub received: u64,
    /// Sent on otherwise than they came.
    pub changed: u64,
    /// Of its own: pieces beyond the first, answers.
    pub made: u64,
    pub sent: u64,
    pub dropped: u64,
    /// Ended here: merged into another packet, or received in place of the host.
    pub absorbed: u64,
}

/// What a middlebox did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiddleboxReport {
    /// Index of its link in the plan.
    pub link: usize,
    /// Its position on the link, from the first end.
    pub position: usize,
    pub name: String,
    pub tally: Tally,
    /// Packets that it holds back.
    pub held: u64,
}

/// What a middlebox works with while it handles a packet or a deadline.
pub(crate) struct Work<'a> {
    pub now: Nanos,
    pub random: &'a mut Pcg64Mcg,
    pub tally: &'a mut Tally,
    out: Vec<Passing>,
}

impl<'a> Work<'a> {
    pub fn new(now: Nanos, random: &'a mut Pcg64Mcg, tally: &'a mut Tally) -> Self {
        Self {
            now,
            random,
            tally,
            out: Vec::new(),
        }
    }

    /// Sends a packet on, the way that it goes.
    pub fn send(&mut self, packet: Passing) {
        self.tally.sent += 1;
        self.out.push(packet);
    }

    pub fn sent(self) -> Vec<Passing> {
        self.out
    }
}

/// One middlebox.
pub(crate) trait Middlebox: Send {
    /// A packet came.
    fn pass(&mut self, packet: Passing, work: &mut Work<'_>);

    /// When [`Middlebox::on_time`] is to be called next.
    fn deadline(&self) -> Nanos {
        NEVER
    }

    fn on_time(&mut self, _work: &mut Work<'_>) {}

    /// Packets that it holds back.
    fn held(&self) -> u64 {
        0
    }

    /// Gives it the address that it is known by outside, if it needs one, and says which it takes.
    ///
    /// # Errors
    /// What is wrong with the one that it was told to take.
    fn settle(&mut self, _spare: IpAddr) -> Result<Option<IpAddr>, String> {
        Ok(None)
    }

    /// That address, and whether the outside lies behind the link's second end.
    fn outside(&self) -> Option<(IpAddr, bool)> {
        None
    }
}

choice! {
    /// Which way packets go that a middlebox changes.
    Way {
        Both = "both",
        Forward = "forward",
        Backward = "backward",
    }
}

const DIRECTION: &str = "direction";

/// The setting of a middlebox that changes packets of both directions unless a scenario says otherwise, and of one that changes those of the
/// link's first end.
pub(super) const BOTH: &[Parameter] = &[WAY.or(Value::Text("both"))];
pub(super) const FORWARD: &[Parameter] = &[Parameter {
    choices: &["forward", "backward", "both"],
    ..WAY.or(Value::Text("forward"))
}];

const WAY: Parameter = Parameter::new::<Way>(
    DIRECTION,
    Measure::Text,
    "packets of which direction; forward is from the link's first end to its second",
);

impl Group for Way {
    fn take(given: &Given) -> Result<Self, ModelError> {
        given.take(DIRECTION)
    }
}

impl Way {
    pub fn includes(self, forward: bool) -> bool {
        match self {
            Self::Both => true,
            Self::Forward => forward,
            Self::Backward => !forward,
        }
    }
}
