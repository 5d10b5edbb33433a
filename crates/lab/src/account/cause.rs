//! What became of the time of a link, seen from one end of a connection that sends over it.

/// What a link did, or why it idled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// It sent data of this end for the first time, which was not lost behind it.
    Delivered,
    /// It sent headers of this end: link, IP, transport; whole packets without data.
    Headers,
    /// It sent data again that it, or another link, had carried before.
    Retransmitted,
    /// The same, as a copy for another path.
    Reinjected,
    /// It sent data that a later link lost.
    LostBehind,
    /// It sent packets of this end whose narrowest link is another one.
    OtherPaths,
    /// It sent packets of others.
    Others,
    /// It idled, or sent packets of others, while others wanted more of it as well: their part of that.
    Shared,
    /// What it sent is still on its way.
    UnderWay,
    /// The connection was not established.
    Handshake,
    /// There was no subflow or path over it.
    Unused,
    /// There was one, in its handshake.
    Joining,
    /// There was one, which is closed.
    Closed,
    /// There was one, taken for dead.
    Failed,
    /// There was one, kept as a backup while others worked.
    Backup,
    /// A link was down.
    Down,
    /// The application had written nothing more.
    Application,
    /// Everything was sent.
    Finished,
    /// The send buffer was full of data that was not acknowledged.
    SendBuffer,
    /// The peer's window was full.
    ReceiveWindow,
    /// The scheduler chose another path, or waited for one.
    Scheduler,
    /// A pacer held packets back.
    Pacing,
    /// Data was given to the subflow, which held it for more (Nagle, a cork, a queue of the host).
    Held,
    /// The congestion window had not grown yet: nothing had reduced it.
    SlowStart,
    /// The window was short after a queue had dropped packets.
    QueueLoss,
    /// The window was short after a link had lost packets at random.
    RandomLoss,
    /// The window was short after what its sender took for a loss, and was none.
    Reordering,
    /// The window was short after a mark (ECN).
    Mark,
    /// The window was reset because nothing had been sent for a while.
    Idleness,
    /// The window was short because a coupled controller grows it more slowly than it would alone.
    Coupling,
    /// The controller reduced the window by its own rule.
    Controller,
}

impl Kind {
    /// What recordings call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Headers => "headers",
            Self::Retransmitted => "retransmitted",
            Self::Reinjected => "reinjected",
            Self::LostBehind => "lost-behind",
            Self::OtherPaths => "other-paths",
            Self::Others => "others",
            Self::Shared => "shared",
            Self::UnderWay => "under-way",
            Self::Handshake => "handshake",
            Self::Unused => "unused",
            Self::Joining => "joining",
            Self::Closed => "closed",
            Self::Failed => "failed",
            Self::Backup => "backup",
            Self::Down => "down",
            Self::Application => "application",
            Self::Finished => "finished",
            Self::SendBuffer => "send-buffer",
            Self::ReceiveWindow => "receive-window",
            Self::Scheduler => "scheduler",
            Self::Pacing => "pacing",
            Self::Held => "held",
            Self::SlowStart => "slow-start",
            Self::QueueLoss => "queue-loss",
            Self::RandomLoss => "random-loss",
            Self::Reordering => "reordering",
            Self::Mark => "mark",
            Self::Idleness => "idleness",
            Self::Coupling => "coupling",
            Self::Controller => "controller",
        }
    }

    /// How near a subflow was to sending: of several over one link the nearest is what kept it idle.
    pub fn nearness(self) -> u8 {
        match self {
            Self::Unused => 0,
            Self::Closed => 1,
            Self::Handshake | Self::Joining => 2,
            Self::Down | Self::Failed => 3,
            Self::Backup => 4,
            Self::Application | Self::Finished | Self::SendBuffer => 5,
            Self::Scheduler | Self::Held | Self::ReceiveWindow => 6,
            Self::Pacing => 7,
            _ => 8,
        }
    }

    /// Whether the end would have sent more if this had not kept it from doing so.
    pub fn wants(self) -> bool {
        self == Self::Down || self.nearness() > 5
    }
}

/// A kind, and where or on what it happened, as far as that can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause {
    pub kind: Kind,
    /// The link that dropped, lost or was down.
    pub link: Option<u32>,
    /// The subflow that carried the first byte that was not acknowledged.
    pub head: Option<u32>,
}

impl Cause {
    pub fn of(kind: Kind) -> Self {
        Self {
            kind,
            link: None,
            head: None,
        }
    }

    pub fn at(kind: Kind, link: u32) -> Self {
        Self {
            link: Some(link),
            ..Self::of(kind)
        }
    }

    pub fn behind(kind: Kind, head: Option<u32>) -> Self {
        Self {
            head,
            ..Self::of(kind)
        }
    }
}

/// So many parts a charge is divided into.
pub(super) const PARTS: u8 = 16;

/// What an idle link is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    pub cause: Cause,
    /// Of [`PARTS`], those that the coupling of congestion control is charged with instead.
    pub coupling: u8,
}

impl From<Cause> for Charge {
    fn from(cause: Cause) -> Self {
        Self { cause, coupling: 0 }
    }
}
