//! Stacks of QUIC that are written elsewhere, for example in Python around a library.
//!
//! Such a stack has no socket and no clock. It is asked after each call what it sends, what happened and when it wants
//! to be called. The lab is its application: it writes, reads, and asks for paths.

mod connection;
mod interface;
mod lanes;

use std::sync::Arc;

use polypath_transport::Config;

pub use self::interface::{
    Asked, Beginning, Content, Elsewhere, Figures, News, Polled, WrittenEnd, WrittenStack,
};
use crate::other_stack::OtherStack;
use crate::plan::Transport;

/// UDP's header, and IP's of either version.
const UDP_HEADERS: (u32, u32) = (20 + 8, 40 + 8);

/// The stack of that name, as an end of an application has it set; nothing where it is none of those written elsewhere.
pub(crate) fn make(
    elsewhere: Option<&dyn Elsewhere>,
    name: &str,
    config: &Config,
    transport: Transport,
    ipv6: bool,
) -> Option<Result<Arc<dyn OtherStack>, String>> {
    let headers = if ipv6 { UDP_HEADERS.1 } else { UDP_HEADERS.0 };
    let asked = Asked {
        multipath: transport.is_multipath(),
        congestion: config.congestion.name.clone(),
        initial_window: config.initial_window,
        receive_window: config.receive_buffer.maximum,
        longest_datagram: config.mtu.saturating_sub(headers),
        keepalive: config.keepalive.map(|keepalive| keepalive.time),
        retry: config.retry,
    };
    let made = elsewhere?.stack(name, &asked)?;
    if !transport.is_quic() {
        return Some(Err(format!("{name} speaks only QUIC")));
    }
    let stack = made.map(|stack| connection::Stack {
        stack,
        windows: (config.send_buffer.maximum, config.receive_buffer.maximum),
    });
    Some(stack.map(|stack| Arc::new(stack) as Arc<dyn OtherStack>))
}
