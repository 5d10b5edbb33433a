//! The reasons why a connection waits, for those who keep an account of it.

use super::connection::Connection;
use crate::{Sending, Standing};

/// What a connection waits for at present. No send buffer holds up an application over QUIC. It may open another stream
/// until it has closed all of them.
pub fn standing(connection: &Connection) -> Standing {
    let streams = &connection.transfer.streams;
    let outgoing = streams.outgoing();
    let sending = match outgoing.unsent() {
        0 if streams.closed() => Sending::Finished,
        0 => Sending::Idle,
        _ if outgoing.next_new().is_none() => Sending::ReceiveWindow,
        _ => Sending::Ready,
    };
    let head = outgoing.first_holder();
    Standing { sending, head }
}
