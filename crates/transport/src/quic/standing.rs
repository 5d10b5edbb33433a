//! The reasons why a connection waits, for those who keep an account of it.

use super::connection::Connection;
use crate::{Sending, Standing};

/// What a connection waits for at present. An application over QUIC is not held up by a send buffer, and may open
/// another stream until the connection ends.
pub fn standing(connection: &Connection) -> Standing {
    let outgoing = connection.transfer.streams.outgoing();
    let sending = match outgoing.unsent() {
        0 => Sending::Idle,
        _ if outgoing.next_new().is_none() => Sending::ReceiveWindow,
        _ => Sending::Ready,
    };
    let head = outgoing.first_holder();
    Standing { sending, head }
}
