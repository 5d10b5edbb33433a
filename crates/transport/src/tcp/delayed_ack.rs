//! When to acknowledge: delayed ACKs (RFC 9293 section 3.8.6.3) with Linux's quick ACKs, interactive sessions and compression of duplicate
//! ACKs.

use crate::settings::Config;
use crate::{NEVER, Nanos};

/// When a socket acknowledges.
#[derive(Clone, Debug)]
pub(super) struct AckPolicy {
    /// The last acknowledgement number sent.
    acknowledged: u64,
    deadline: Nanos,
    now: bool,
    /// It comes from the reader, who has taken the last segment.
    by_reader: bool,
    /// ACKs still to be sent without delay.
    quick: u8,
    /// The session alternates between directions: delayed ACKs ride on answers.
    interactive: bool,
    /// The present delay (Linux `icsk_ack.ato`).
    delay: Nanos,
    last_received: Nanos,
    /// Segments since the last ACK that ended what the peer had to send: pushed, or short (Linux `ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`).
    pushed: u8,
    duplicates: Duplicates,
}

/// Acknowledgements of out-of-order segments, of which several are compressed into one (Linux `compressed_ack`).
#[derive(Clone, Copy, Debug, Default)]
struct Duplicates {
    /// How many went at once while `position` was the next byte expected (`dup_ack_counter`, `compressed_ack_rcv_nxt`).
    sent: u8,
    position: u64,
    /// How many wait for the deadline to be one.
    waiting: u8,
}

/// Duplicate ACKs that a sender in doubt gets one by one (TCP_FASTRETRANS_THRESH).
const ONE_BY_ONE: u8 = 3;
/// At most so many wait (tcp_comp_sack_nr), and so long: a third of the round trip up to a millisecond, and the timer's slack
/// (tcp_comp_sack_rtt_percent, tcp_comp_sack_delay_ns, tcp_comp_sack_slack_ns).
const MOST_COMPRESSED: u8 = 44;
const COMPRESSION_PERCENT: Nanos = 33;
const LONGEST_COMPRESSION: Nanos = crate::MILLISECOND;
const COMPRESSION_SLACK: Nanos = 10 * crate::MICROSECOND;

impl Default for AckPolicy {
    fn default() -> Self {
        Self {
            acknowledged: 0,
            deadline: NEVER,
            now: false,
            by_reader: false,
            quick: 0,
            interactive: false,
            delay: 0,
            last_received: 0,
            pushed: 0,
            duplicates: Duplicates::default(),
        }
    }
}

/// Quick ACKs at the start and after a pause (TCP_MAX_QUICKACKS).
pub(super) const QUICK_ACKS: u8 = 16;
/// The longest delay of an ACK in an interactive session (TCP_DELACK_MAX).
const LONGEST_DELAY: Nanos = 200 * crate::MILLISECOND;

impl AckPolicy {
    /// The peer's SYN came.
    pub fn begin(&mut self) {
        self.acknowledged = 1;
    }

    /// The last acknowledgement number sent.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// When what was put off is due; [`NEVER`] while nothing is.
    pub fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// When data came last.
    pub fn last_received(&self) -> Nanos {
        self.last_received
    }

    /// Nothing is put off any more.
    pub fn stop(&mut self) {
        self.deadline = NEVER;
    }

    pub fn immediately(&mut self) {
        self.now = true;
        self.by_reader = false;
    }

    /// A reader that waits takes the last segment and acknowledges it (Linux `tcp_cleanup_rbuf`).
    pub fn by_reader(&mut self) {
        self.by_reader = !self.now;
        self.now = true;
    }

    pub fn reader_sends(&self) -> bool {
        self.by_reader
    }

    pub fn due(&self) -> bool {
        self.now
    }

    pub fn quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// An ACK left, alone or on data.
    pub fn sent(&mut self, acknowledged: u64) {
        if acknowledged > self.acknowledged {
            self.quick = self.quick.saturating_sub(1);
        }
        self.acknowledged = acknowledged;
        self.deadline = NEVER;
        self.now = false;
        self.by_reader = false;
        self.pushed = 0;
        self.duplicates.waiting = 0;
    }

    /// An out-of-order segment came while `position` is the next byte expected: acknowledges it now or with others that come within a
    /// part of the round trip `rtt` (Linux `__tcp_ack_snd_check`).
    pub fn duplicate(&mut self, now: Nanos, position: u64, rtt: Nanos) {
        let Duplicates { waiting, .. } = self.duplicates;
        if self.quick() {
            self.quick -= 1;
            return self.immediately();
        }
        if waiting >= MOST_COMPRESSED {
            return self.immediately();
        }
        if self.duplicates.position != position {
            self.duplicates.position = position;
            self.duplicates.sent = 0;
        }
        if self.duplicates.sent < ONE_BY_ONE {
            self.duplicates.sent += 1;
            return self.immediately();
        }
        self.duplicates.waiting += 1;
        if waiting == 0 {
            let delay = (rtt * COMPRESSION_PERCENT / 100).min(LONGEST_COMPRESSION);
            self.deadline = self.deadline.min(now + delay + COMPRESSION_SLACK);
        }
    }

    /// How many ACKs wait to be one.
    pub fn compressed(&self) -> u8 {
        self.duplicates.waiting
    }

    /// A segment that ends what the peer had to send for now.
    pub fn pushed(&mut self) {
        self.pushed = self.pushed.saturating_add(1);
    }

    /// A reader that takes the last byte acknowledges at once: the second pushed segment, or the first where no answer is expected
    /// (Linux `tcp_cleanup_rbuf`).
    pub fn reader_acknowledges(&self) -> bool {
        self.pushed > 1 || (self.pushed == 1 && !self.interactive)
    }

    /// Out-of-order or duplicate data: the next `quick` ACKs go at once and the session no longer counts as interactive.
    pub fn trouble(&mut self, quick: u8) {
        self.interactive = false;
        self.quick = self.quick.max(quick);
        self.delay = 0;
        self.now = true;
    }

    /// ACKs may be delayed from now on.
    pub fn end_quick(&mut self) {
        self.quick = 0;
    }

    /// New data arrived: adapts the delay to the gaps between segments. `quick`: ACKs without delay at the start and after a pause.
    pub fn data_received(&mut self, now: Nanos, rto: Nanos, quick: u8, config: &Config) {
        let shortest = config.delayed_ack_ns;
        if self.delay == 0 {
            self.quick = self.quick.max(quick);
            self.delay = shortest;
        } else {
            let gap = now - self.last_received;
            if gap <= shortest / 2 {
                self.delay = self.delay / 2 + shortest / 2;
            } else if gap < self.delay {
                self.delay = (self.delay / 2 + gap).min(rto);
            } else if gap > rto {
                self.quick = self.quick.max(quick);
            }
        }
        self.last_received = now;
    }

    /// The receive window grew: the next ACK goes at once (Linux `tcp_grow_window`).
    pub fn window_grew(&mut self) {
        self.quick |= 1;
    }

    /// Data left: an answer within the ACK delay makes the session interactive.
    pub fn data_sent(&mut self, now: Nanos) {
        if self.last_received > 0 && now - self.last_received < self.delay {
            self.interactive = true;
        }
    }

    /// Puts the ACK off.
    pub fn postpone(&mut self, now: Nanos, srtt: Nanos, config: &Config) {
        let mut delay = self.delay.max(config.delayed_ack_ns);
        if delay > config.delayed_ack_ns {
            let mut longest = if self.interactive {
                LONGEST_DELAY
            } else {
                crate::SECOND / 2
            };
            if srtt > 0 {
                longest = longest.min(srtt.max(config.delayed_ack_ns));
            }
            delay = delay.min(longest);
        }
        self.deadline = self.deadline.min(now + delay);
    }
}
