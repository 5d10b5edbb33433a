//! What a connection waits for, for who keeps an account of it.

use crate::mptcp::connection::Connection;
use crate::{Sending, Standing};

/// What a connection of TCP or Multipath TCP waits for at present.
pub fn standing(connection: &Connection) -> Standing {
    let send = &connection.send;
    let small = |unsent: u64| {
        let longest = connection.paths().iter().map(|path| path.mss).max();
        unsent < longest.map_or(0, u64::from)
    };
    let sending = match send.unsent() {
        0 if send.waiting > 0 => Sending::SendBuffer,
        0 if send.closing => Sending::Finished,
        0 => Sending::Idle,
        // A segment that fits in part waits for the rest (RFC 9293 section 3.8.6.2.1).
        unsent if connection.window_is_short(unsent) => Sending::ReceiveWindow,
        // Nagle's rule holds less than a segment until there is more, or all is acknowledged.
        unsent if connection.config().nagle && small(unsent) => Sending::Idle,
        _ => Sending::Ready,
    };
    let holder = || Some(send.in_flight.front()?.holder.into());
    let head = if connection.multipath() {
        holder()
    } else {
        Some(0)
    };
    Standing { sending, head }
}
