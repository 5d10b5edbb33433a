//! What keeps an end from sending on one of its subflows or paths.

use polypath_transport::{Sending, Standing};

use super::cause::{Cause, Kind};
use super::control::Control;
use super::window::Window;
use crate::carrier::Carrier;
use crate::endpoint::Endpoint;

/// Whether any subflow that is no backup works.
pub(super) fn any_regular(connection: &Carrier) -> bool {
    (0..connection.lanes()).any(|place| {
        let lane = connection.lane(place);
        let path = lane.path;
        path.established && !path.closing && !path.potentially_failed && !lane.backup
    })
}

/// The first thing that keeps `endpoint` from sending at `place`. `regular`: some subflow works that is no backup.
pub(super) fn hold(
    endpoint: &Endpoint,
    connection: &Carrier,
    place: usize,
    standing: Standing,
    regular: bool,
    control: Control,
    window: &Window,
) -> Cause {
    let lane = connection.lane(place);
    let path = lane.path;
    if lane.closed_at.is_some() {
        return Cause::of(Kind::Closed);
    }
    if !path.established {
        let first = endpoint.established_at.is_none();
        return Cause::of(if first {
            Kind::Handshake
        } else {
            Kind::Joining
        });
    }
    let head = standing.head.map(|place| endpoint.number(place));
    let nothing_new = match standing.sending {
        Sending::Idle => Some(Cause::of(Kind::Application)),
        Sending::Finished => Some(Cause::of(Kind::Finished)),
        Sending::SendBuffer => Some(Cause::behind(Kind::SendBuffer, head)),
        Sending::ReceiveWindow | Sending::Ready => None,
    };
    if let Some(cause) = nothing_new
        && path.queued == 0
    {
        // What is lost is still to be sent.
        return if window.repairs() && path.in_flight > 0 {
            window.cause()
        } else {
            cause
        };
    }
    if path.closing {
        return Cause::of(Kind::Closed);
    }
    if path.potentially_failed {
        let cause = window.cause();
        return match cause.kind {
            Kind::Down => cause,
            _ => Cause::of(Kind::Failed),
        };
    }
    if lane.backup && regular {
        return Cause::of(Kind::Backup);
    }
    // Recovery sends by its own rules, even if the window has room (RFC 6937).
    if path.window_full() || window.repairs() {
        return window.cause();
    }
    if path.paced {
        // Without a controller that sets a rate, it follows the window (RFC 9002 section 7.7).
        return match control.sets_rate {
            true => Cause::of(Kind::Pacing),
            false => window.cause(),
        };
    }
    match standing.sending {
        Sending::ReceiveWindow => Cause::behind(Kind::ReceiveWindow, head),
        _ if path.queued > 0 || !path.multipath && connection.lanes() == 1 => Cause::of(Kind::Held),
        _ => Cause::of(Kind::Scheduler),
    }
}
