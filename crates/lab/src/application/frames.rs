//! Frames that arrive over QUIC besides those of a plain stream.

/// What a connection of QUIC brought.
#[derive(Default)]
pub(crate) struct Frames {
    /// Bytes by stream; a stream at its end is here with nothing.
    pub streams: Vec<(u64, u64)>,
    /// DATAGRAM frames: the sender's numbers and lengths.
    pub datagrams: Vec<(u64, u32)>,
    /// To be raised by the bytes of datagrams that the application takes.
    pub taken: u64,
}

impl Frames {
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.datagrams.is_empty()
    }
}
