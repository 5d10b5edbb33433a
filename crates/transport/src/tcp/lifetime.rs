//! How far a connection has come: its state, and the FINs (RFC 9293 section 3.3.2).

/// Connection states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Closed,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::SynSent => "syn-sent",
            Self::SynReceived => "syn-received",
            Self::Established => "established",
            Self::FinWait1 => "fin-wait-1",
            Self::FinWait2 => "fin-wait-2",
            Self::CloseWait => "close-wait",
            Self::Closing => "closing",
            Self::LastAck => "last-ack",
            Self::TimeWait => "time-wait",
        }
    }

    /// Whether both SYNs were exchanged and acknowledged.
    pub fn synchronised(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// Whether the peer's SYN has come.
    pub(crate) fn has_peer(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent)
    }

    /// Whether the peer may still send data.
    pub fn receives(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether data may still be sent.
    pub(crate) fn sends(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }
}

/// How far closing has come on this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    None,
    /// To be sent after the data.
    Queued,
    /// Sent with this sequence number.
    Sent(u64),
}

/// A connection's state, and what of it the FINs decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    state: State,
    fin: Fin,
    /// Its FIN was acknowledged before the peer's came: upstream, what is left of it knows nothing of the layer above (`tcp_time_wait`).
    reduced: bool,
}

impl Lifetime {
    pub fn new() -> Self {
        Self {
            state: State::Closed,
            fin: Fin::None,
            reduced: false,
        }
    }

    #[inline(always)]
    pub fn state(&self) -> State {
        self.state
    }

    /// Sends a SYN.
    pub fn connect(&mut self) {
        self.state = State::SynSent;
    }

    /// Answers a SYN.
    pub fn accept(&mut self) {
        self.state = State::SynReceived;
    }

    /// The handshake is done.
    pub fn establish(&mut self) {
        self.state = State::Established;
    }

    /// Forgets everything.
    pub fn end(&mut self) {
        self.state = State::Closed;
    }

    /// Whether it is asked to close.
    #[inline(always)]
    pub fn closing(&self) -> bool {
        self.fin != Fin::None
    }

    /// Whether a FIN waits for the data before it.
    #[inline(always)]
    pub fn fin_waits(&self) -> bool {
        self.fin == Fin::Queued
    }

    /// Asks for a FIN after everything queued. True: for the first time, and of a connection that has one.
    pub fn close(&mut self) -> bool {
        let news = !self.closing() && self.state.synchronised();
        if news {
            self.fin = Fin::Queued;
        }
        news
    }

    /// The FIN leaves with this sequence number.
    pub fn send_fin(&mut self, seq: u64) {
        self.fin = Fin::Sent(seq);
        self.state = match self.state {
            State::CloseWait | State::LastAck => State::LastAck,
            State::Closing => State::Closing,
            _ => State::FinWait1,
        };
    }

    /// The FIN was not sent after all.
    pub fn take_back_fin(&mut self) {
        self.fin = Fin::Queued;
    }

    /// Everything below `una` is acknowledged, maybe our FIN (RFC 9293 section 3.10.7.4, fifth step). `by_fin`: the segment has a FIN. True:
    /// TIME-WAIT begins, or the connection is over.
    pub fn acknowledge(&mut self, una: u64, by_fin: bool) -> bool {
        if !matches!(self.fin, Fin::Sent(seq) if una > seq) {
            return false;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.reduced = !by_fin;
                false
            }
            State::Closing => {
                self.state = State::TimeWait;
                self.reduced = true;
                true
            }
            State::LastAck => {
                self.state = State::Closed;
                true
            }
            _ => false,
        }
    }

    /// The peer's FIN and all before it has arrived (RFC 9293 section 3.10.7.4, eighth step). True: TIME-WAIT begins.
    pub fn receive_fin(&mut self) -> bool {
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => {
                self.state = State::TimeWait;
                return true;
            }
            state => state,
        };
        false
    }

    /// A segment of the peer's FIN came again. True: TIME-WAIT begins again.
    pub fn receive_fin_again(&mut self) -> bool {
        let waits = self.state == State::TimeWait;
        self.reduced |= waits;
        waits
    }

    /// What is left of it in TIME-WAIT knows nothing of the layer above, upstream.
    pub fn is_reduced(&self) -> bool {
        self.reduced
    }
}
