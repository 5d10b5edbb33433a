//! Whether the peer receives at the addresses of a path (RFC 9000 sections 8 and 9).
//!
//! This covers challenges, answers and the amplification limit, and the state that is kept while the addresses change.

use polypath_wire::quic::ConnectionId;

use super::challenge::Challenges;
use crate::{NEVER, Nanos, Tuple};

/// What an address that is not validated may be sent, as a multiple of what came from it (RFC 9000 section 8.1).
const AMPLIFICATION: u64 = 3;
/// Challenges that wait for an answer; the oldest are forgotten.
const MOST_ANSWERS: usize = 4;
/// Probe timeouts until an unanswered challenge means that the path does not work (RFC 9000 section 8.2.4).
const ATTEMPT: Nanos = 3;

/// A challenge to be answered: what it holds, where it came from, and the length of the datagram that brought it.
type Response = (u64, Tuple, u32);

/// What is known of a path's addresses.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// The peer has shown that it receives there.
    validated: bool,
    challenges: Challenges,
    responses: Vec<Response>,
    /// UDP payload bytes that came and went, for the amplification limit.
    came: u64,
    went: u64,
    /// The last addresses that were validated, while others are being validated.
    former: Option<Tuple>,
    /// A challenge to them is to be sent.
    former_due: bool,
    /// The id that packets to them had, if others have another one now.
    former_id: Option<ConnectionId>,
    /// What the peer addresses its packets to.
    destination: Option<ConnectionId>,
    /// Packets sent earlier tell nothing of the path as it is now.
    since: Nanos,
}

impl Reach {
    pub fn validated(&self) -> bool {
        self.validated
    }

    pub fn validate(&mut self) {
        self.validated = true;
    }

    /// Another challenge is to be sent.
    pub fn ask(&mut self) {
        self.challenges.ask();
    }

    /// A challenge is to be sent.
    pub fn asks(&self) -> bool {
        self.challenges.due()
    }

    /// A challenge leaves; `full`: in a datagram of the least length that every path takes.
    pub fn on_asked(&mut self, data: u64, full: bool, now: Nanos) {
        self.challenges.on_sent(data, full, now);
    }

    /// The validation begins again at the same addresses.
    pub fn persist(&mut self) {
        self.challenges.persist();
    }

    /// Of an answer to a challenge: whether that one was of full length.
    pub fn answered(&self, data: u64) -> Option<bool> {
        self.challenges.answered(data)
    }

    /// A challenge was answered, which was of `full` length: the path works in both directions.
    pub fn on_answer(&mut self, full: bool) {
        self.settle();
        if !full {
            // A short one says nothing of what the path takes (RFC 9000 section 8.2.3).
            self.challenges.ask();
        }
    }

    /// The addresses of now are validated.
    fn settle(&mut self) {
        self.validated = true;
        self.challenges.settle();
        self.former = None;
        self.former_due = false;
    }

    /// When the validation is given up, whose attempts are so long each.
    pub fn given_up_at(&self, attempt: Nanos) -> Nanos {
        let begun_at = self.challenges.begun_at();
        begun_at.map_or(NEVER, |since| since + ATTEMPT * attempt)
    }

    /// When another challenge is sent, since none was answered.
    pub fn asks_at(&self, timeout: Nanos) -> Nanos {
        self.challenges.next_at(timeout)
    }

    /// There is something to be asked or answered, at the former addresses too.
    pub fn has_errand(&self) -> bool {
        self.speaks() || self.former_due
    }

    /// There is something to be asked or answered.
    pub fn speaks(&self) -> bool {
        self.challenges.due() || !self.responses.is_empty()
    }

    /// A challenge came from `tuple.remote` in a datagram of so many bytes.
    pub fn note_challenge(&mut self, data: u64, tuple: Tuple, len: u32) {
        if self.responses.len() == MOST_ANSWERS {
            self.responses.remove(0);
        }
        self.responses.push((data, tuple, len));
    }

    /// The challenges that came from elsewhere than `here`: an answer goes where they came from (RFC 9000 section 8.2.2).
    pub fn take_elsewhere(&mut self, here: Tuple) -> Vec<Response> {
        let all = std::mem::take(&mut self.responses);
        let (here, elsewhere) = all.into_iter().partition(|(_, tuple, _)| *tuple == here);
        self.responses = here;
        elsewhere
    }

    /// Answers as many challenges as `fits` takes; whether any.
    pub fn answer(&mut self, mut fits: impl FnMut(u64) -> bool) -> bool {
        let before = self.responses.len();
        self.responses.retain(|(data, ..)| !fits(*data));
        self.responses.len() < before
    }

    /// What may be sent to an address from which a datagram of so many bytes came.
    pub fn answer_to(len: u32) -> u32 {
        len.saturating_mul(AMPLIFICATION as u32)
    }

    pub fn on_received(&mut self, bytes: u32) {
        self.came += u64::from(bytes);
    }

    pub fn on_sent(&mut self, bytes: u32) {
        self.went += u64::from(bytes);
    }

    /// Bytes that may go to an address that is not validated; `client`: it chose the address itself.
    pub fn allowance(&self, client: bool) -> u64 {
        if client || self.validated {
            return u64::MAX;
        }
        (AMPLIFICATION * self.came).saturating_sub(self.went)
    }

    /// A packet for the path had this destination.
    pub fn note_destination(&mut self, destination: ConnectionId) {
        self.destination = Some(destination);
    }

    /// As [`Reach::note_destination`], of a packet by which the peer moved. Whether it moved on purpose: then it uses another id.
    pub fn moved_on_purpose(&mut self, destination: ConnectionId) -> bool {
        self.destination.replace(destination) != Some(destination)
    }

    /// The peer moved from `left` to `tuple`, as a datagram of so many bytes shows.
    pub fn follow(&mut self, left: Tuple, tuple: Tuple, len: u32) {
        let returned = self.former == Some(tuple);
        if self.validated {
            // Whoever is there answers if it is still the peer (RFC 9000 section 9.3.3).
            self.former = Some(left);
            self.former_due = true;
        }
        if returned {
            self.settle();
        } else {
            self.begin();
            self.came = len.into();
            self.went = 0;
        }
    }

    /// This side moved from `left`.
    pub fn leave(&mut self, left: Tuple) {
        if self.validated {
            self.former = Some(left);
        }
        self.begin();
    }

    fn begin(&mut self) {
        self.validated = false;
        self.challenges.begin();
    }

    /// Packets sent so far tell nothing of the path any more.
    pub fn restart(&mut self, now: Nanos) {
        self.since = now;
    }

    /// Packets sent earlier tell nothing of the path as it is now.
    pub fn since(&self) -> Nanos {
        self.since
    }

    pub fn former(&self) -> Option<Tuple> {
        self.former
    }

    /// Packets to the former addresses had this id.
    pub fn keep_former_id(&mut self, id: Option<ConnectionId>) {
        self.former_id = id;
    }

    /// The former addresses, if they are to be asked, and the id that packets to them had.
    pub fn ask_former(&mut self) -> Option<(Tuple, Option<ConnectionId>)> {
        let former = self.former.filter(|_| self.former_due);
        self.former_due = false;
        Some((former?, self.former_id.take()))
    }

    /// Nobody answers at the new addresses: back to those that were validated last (RFC 9000 section 9.3.2), if there are any.
    pub fn return_to_former(&mut self) -> Option<Tuple> {
        let former = self.former.take()?;
        self.settle();
        Some(former)
    }
}
