//! The charges of an account, in an engineer's words.

use crate::account::Charge;

/// A cause: its name, what it is called in a table, and what happened. In the sentence `{path}` and `{at}` are the charge's
/// links; `{behind}` tells of the data at the head, if there is some, `{closed}` how a subflow ended.
struct Reason {
    name: &'static str,
    title: &'static str,
    sentence: &'static str,
}

const fn reason(name: &'static str, title: &'static str, sentence: &'static str) -> Reason {
    Reason {
        name,
        title,
        sentence,
    }
}

const REASONS: &[Reason] = &[
    reason(
        "headers",
        "headers",
        "headers of its packets took part of {path}",
    ),
    reason(
        "retransmitted",
        "retransmitted",
        "link {path} carried retransmissions",
    ),
    reason(
        "reinjected",
        "sent twice",
        "link {path} carried copies of what another subflow had carried",
    ),
    reason(
        "lost-behind",
        "lost behind",
        "what {path} had carried was lost on {at}, behind it",
    ),
    reason(
        "other-paths",
        "its other paths",
        "link {path} carried what the connection sent over its other paths",
    ),
    reason(
        "others",
        "other traffic",
        "data waited behind the packets of others on {path}",
    ),
    reason(
        "shared",
        "others' part",
        "others wanted more of {path}, too, which gives them their part of the time in which it idled",
    ),
    reason(
        "under-way",
        "under way",
        "what {path} had carried was still on its way at the end",
    ),
    reason(
        "handshake",
        "handshake",
        "link {path} waited for the connection's handshake",
    ),
    reason("unused", "no subflow", "no subflow used {path}"),
    reason(
        "joining",
        "join under way",
        "the subflow over {path} was in its handshake",
    ),
    reason(
        "closed",
        "subflow closed",
        "the subflow over {path} was {closed}",
    ),
    reason(
        "failed",
        "potentially failed",
        "the sender took the subflow over {path} for dead",
    ),
    reason("backup", "backup", "link {path} was kept as a backup"),
    reason("down", "link down", "link {at} was down"),
    reason(
        "application",
        "nothing to send",
        "the application had nothing to send over {path}",
    ),
    reason(
        "finished",
        "all sent",
        "link {path} had nothing left to carry: everything had been sent",
    ),
    reason(
        "send-buffer",
        "send buffer",
        "the send buffer was full{behind}, so that {path} got nothing",
    ),
    reason(
        "receive-window",
        "receive window",
        "the receive window was full{behind}, so that {path} got nothing",
    ),
    reason(
        "scheduler",
        "scheduler",
        "the scheduler preferred another path to {path}, or waited for one",
    ),
    reason(
        "pacing",
        "pacing",
        "pacing sent less than {path} could carry",
    ),
    reason(
        "held",
        "held back",
        "the sender held data back from {path} (Nagle, a cork, or a queue of the host)",
    ),
    reason(
        "slow-start",
        "slow start",
        "the window on {path} was still growing in slow start",
    ),
    reason(
        "queue-loss",
        "loss in a queue",
        "the window on {path} was short after the queue of {at} had dropped packets",
    ),
    reason(
        "random-loss",
        "random loss",
        "the window on {path} was short after {at} had lost packets at random",
    ),
    reason(
        "reordering",
        "taken for loss",
        "the window on {path} was short after a loss that was none",
    ),
    reason(
        "mark",
        "ECN mark",
        "the window on {path} was short after an ECN mark",
    ),
    reason(
        "idleness",
        "after idleness",
        "the window on {path} was reset after a pause",
    ),
    reason(
        "coupling",
        "coupling",
        "coupled congestion control let the window on {path} grow more slowly than it would alone",
    ),
    reason(
        "controller",
        "controller",
        "congestion control kept the window on {path} short by its own rule",
    ),
];

fn find(cause: &str) -> Option<&'static Reason> {
    REASONS.iter().find(|reason| reason.name == cause)
}

/// What a cause is called in a table; absent of a name that is none.
pub fn title(cause: &str) -> Option<&'static str> {
    find(cause).map(|reason| reason.title)
}

/// The names of all causes.
pub fn causes() -> impl Iterator<Item = &'static str> {
    REASONS.iter().map(|reason| reason.name)
}

impl Charge {
    /// What it is called in a table, with the place where that is not the path itself.
    pub fn title(&self) -> String {
        let name = title(&self.cause).unwrap_or(&self.cause);
        let elsewhere = self.at.as_deref().filter(|at| *at != self.path);
        match elsewhere.or(self.head.as_deref()) {
            None => name.to_owned(),
            Some(place) => format!("{name} ({place})"),
        }
    }

    /// What happened, without how much.
    pub fn sentence(&self) -> String {
        let Some(reason) = find(&self.cause) else {
            return self.cause.clone();
        };
        let behind = self.head.as_ref();
        let behind = behind.map_or(String::new(), |head| format!(" behind data on {head}"));
        let text = reason
            .sentence
            .replace("{path}", &self.path)
            .replace("{at}", self.at.as_deref().unwrap_or("a link"))
            .replace("{closed}", if self.reset { "reset" } else { "closed" })
            .replace("{behind}", &behind);
        let mut letters = text.chars();
        let first = letters.next().map(|letter| letter.to_uppercase());
        first.into_iter().flatten().chain(letters).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(cause: &str, at: Option<&str>, head: Option<&str>) -> Charge {
        Charge {
            cause: cause.to_owned(),
            path: "lte".to_owned(),
            bytes: 1,
            at: at.map(str::to_owned),
            head: head.map(str::to_owned),
            worst_ns: 0,
            reset: false,
        }
    }

    #[test]
    fn a_place_is_told_that_is_not_the_path() {
        assert_eq!(
            charge("random-loss", Some("lte"), None).title(),
            "random loss"
        );
        let far = charge("random-loss", Some("server"), None);
        assert_eq!(far.title(), "random loss (server)");
        assert_eq!(
            far.sentence(),
            "The window on lte was short after server had lost packets at random"
        );
    }

    #[test]
    fn a_reset_is_not_just_an_end() {
        let closed = charge("closed", None, None);
        assert_eq!(closed.sentence(), "The subflow over lte was closed");
        let reset = Charge {
            reset: true,
            ..closed
        };
        assert_eq!(reset.sentence(), "The subflow over lte was reset");
    }

    #[test]
    fn a_full_window_tells_what_it_waits_for() {
        let behind = charge("receive-window", None, Some("subflow 1 (wifi)"));
        assert_eq!(
            behind.sentence(),
            "The receive window was full behind data on subflow 1 (wifi), so that lte got nothing"
        );
        let alone = charge("receive-window", None, None);
        assert_eq!(
            alone.sentence(),
            "The receive window was full, so that lte got nothing"
        );
    }
}
