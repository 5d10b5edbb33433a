//! Reasons why a connection as a whole does not send new data.

/// Why no new data leaves, whatever its paths admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Everything that the application wrote was sent, or what is left is too little to be.
    Idle,
    /// The same, and nothing will follow.
    Finished,
    /// Everything in the send buffer was sent, and the application waits for room.
    SendBuffer,
    /// The peer's window has no room for what comes next.
    ReceiveWindow,
    /// Nothing: scheduler and paths decide.
    Ready,
}

/// How a connection stands, and the path that carries its first unacknowledged byte, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub sending: Sending,
    pub head: Option<usize>,
}
