//! An application of both sides.

use polypath_transport::Nanos;

use crate::end::{End, Received, Side};

/// Streams that one side opens, and what is sent on them.
#[derive(Clone, Debug, Default)]
struct Plan {
    bidirectional: bool,
    bytes: u64,
    /// Sent back once the whole has come.
    answer: u64,
    stream: Option<u64>,
    answered: bool,
    /// Everything has come, to the end.
    complete: bool,
}

/// Requests and answers, begun by either side as soon as it has the handshake behind it.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    plans: [Vec<Plan>; 2],
}

impl Exchange {
    /// A side opens a bidirectional stream, on which the other answers.
    #[must_use]
    pub fn request(mut self, by: Side, bytes: u64, answer: u64) -> Self {
        self.plans[by as usize].push(Plan {
            bidirectional: true,
            bytes,
            answer,
            ..Plan::default()
        });
        self
    }

    /// A side sends on a stream of one direction.
    #[must_use]
    pub fn tell(mut self, by: Side, bytes: u64) -> Self {
        self.plans[by as usize].push(Plan {
            bytes,
            answered: true,
            ..Plan::default()
        });
        self
    }

    /// Does what can be done now. Whether everything has come, to the end.
    pub fn drive(&mut self, client: &mut impl End, server: &mut impl End, now: Nanos) -> bool {
        let [first, second] = &mut self.plans;
        let one = drive(first, client, server, now);
        let other = drive(second, server, client, now);
        one && other
    }
}

fn drive(plans: &mut [Plan], opener: &mut impl End, other: &mut impl End, now: Nanos) -> bool {
    if !opener.established() {
        return false;
    }
    let mut complete = true;
    for plan in plans.iter_mut().filter(|plan| !plan.complete) {
        let Some(stream) = plan.stream.or_else(|| opener.open(plan.bidirectional, now)) else {
            complete = false;
            continue;
        };
        if plan.stream.replace(stream).is_none() {
            opener.send(stream, plan.bytes, now);
        }
        let arrived = has(other, stream, plan.bytes);
        if arrived && !plan.answered {
            plan.answered = true;
            other.send(stream, plan.answer, now);
        }
        plan.complete = arrived && (!plan.bidirectional || has(opener, stream, plan.answer));
        complete &= plan.complete;
    }
    complete
}

/// The whole of a stream has come.
///
/// # Panics
/// More has come, or another end.
fn has(end: &impl End, stream: u64, bytes: u64) -> bool {
    let received = end.received().get(&stream).copied().unwrap_or_default();
    let over = Received { bytes, ended: true };
    assert!(
        received == over || (received.bytes <= bytes && !received.ended),
        "{received:?} of {bytes} bytes on stream {stream}"
    );
    received == over
}
