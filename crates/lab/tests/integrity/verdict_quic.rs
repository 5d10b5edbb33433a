//! The rules that every connection of QUIC must obey.

use polypath_lab::plan::{Action, Application, Loss};

use crate::draw::SECOND;
use crate::over_quic::forgets;
use crate::scenario::{Fate, LAST_CHANGE, SERVER, bytes_depend_on_time, stack_of};
use crate::verdict::{Run, Seen, number, require};

/// The idle timeout of both sides (RFC 9000 section 10.1).
const IDLE: u64 = 30 * SECOND;
/// Of a network that fell silent for so long, probes with backoff may come back only after the idle timeout.
const OUTAGE: u64 = 5 * SECOND;
/// After the network healed: what is left to send, and the application's own pauses.
const AFTER_HEALING: u64 = 600 * SECOND;

impl Run<'_> {
    pub fn quic_connection(
        &self,
        index: usize,
        application: &Application,
        fate: Fate,
    ) -> Result<Seen, String> {
        let rows = self.rows("connection_ends", &[("application", &index.to_string())]);
        let [end] = rows[..] else {
            return Err(format!("{} connections", rows.len()));
        };
        let received = [
            number(end, "client_received_bytes"),
            number(end, "server_received_bytes"),
        ];
        let id = &*end["connection"];
        let ends = ["client", "server"].map(|side| self.reason(id, side));
        let [client, server] = ends.each_ref().map(|end| end.as_deref());
        let answered = self.rows("requests", &[("application", &index.to_string())]);
        let expected = self.written(index, application, id, answered.len() as u64);
        let mut seen = Seen {
            bytes: received[0] + received[1],
            ..Seen::default()
        };
        // A packet's row in the table of segments has the place of its first frame alone, so what was written for a time is not known.
        let timed = bytes_depend_on_time(&application.work);
        if client == Some("finished") {
            // The client closes when both sides have said and heard everything.
            require(timed || received == expected, || {
                format!("received {received:?} of {expected:?} bytes")
            })?;
            require(
                answered.iter().all(|row| !row["delay_ns"].is_empty()),
                || "finished with a request unanswered".into(),
            )?;
            require(
                matches!(server, None | Some("finished" | "timed-out" | "reset")),
                || format!("the server ended as {server:?} though the client finished"),
            )?;
            let ended = number(end, "end_ns");
            if fate == Fate::Heals {
                require(ended <= LAST_CHANGE + AFTER_HEALING, || {
                    format!("ended only at {} s", ended / SECOND)
                })?;
            }
            seen.finished = 1;
            return Ok(seen);
        }
        if !timed {
            require((0..2).all(|side| received[side] <= expected[side]), || {
                format!("received {received:?} of {expected:?} bytes")
            })?;
        }
        if forgets(self.plan)
            && ends == [Some("reset".into()), None]
            && self.asks_for_tokens(application)
        {
            // The client's port changed before it returned the token (RFC 9000 section 8.1.4).
            seen.broken = 1;
            return Ok(seen);
        }
        let silent = |end: Option<&str>| matches!(end, Some("timed-out" | "unreachable"));
        let plausible = silent(client) && (server.is_none() || silent(server))
            || client == Some("reset") && silent(server)
            || silent(client) && server == Some("reset");
        require(plausible, || {
            format!("ended as {client:?} and {server:?} with {received:?} of {expected:?} bytes")
        })?;
        let gave_up = self.gave_up_at(id);
        require(gave_up >= application.start_ns + IDLE, || {
            format!("gave up at {gave_up} ns, before the idle timeout")
        })?;
        if matches!(fate, Fate::Dies(_)) {
            seen.given_up = 1;
            return Ok(seen);
        }
        if self.shut_out() || forgets(self.plan) {
            seen.broken = 1;
            return Ok(seen);
        }
        let unmet = [("client", client), ("server", server)]
            .iter()
            .any(|&(side, end)| end == Some("unreachable") && !self.established(id, side));
        if unmet {
            // Five Initial packets in a row, or their answers, were lost, or five with the client's Finished.
            seen.unlucky = 1;
            return Ok(seen);
        }
        if self.bursts() {
            seen.unlucky = 1;
            return Ok(seen);
        }
        require(self.outage(), || {
            format!(
                "ended as {client:?} and {server:?} with {received:?} of {expected:?} bytes over a network that lives"
            )
        })?;
        seen.impatient = 1;
        Ok(seen)
    }

    fn asks_for_tokens(&self, application: &Application) -> bool {
        stack_of(self.plan, application, SERVER).config.retry
    }

    /// Whether losses come in bursts that last until packets end them, so that all probes of an idle timeout may fall into one.
    fn bursts(&self) -> bool {
        let sides = self.plan.links.iter();
        let mut sides = sides.flat_map(|link| [&link.forward, &link.backward]);
        let long =
            |loss: &Loss| matches!(loss, Loss::GilbertElliott(chain) if chain.bad_loss > 0.7);
        let later = self.plan.events.iter().any(
            |event| matches!(&event.action, Action::Link { loss: Some(loss), .. } if long(loss)),
        );
        later || sides.any(|side| long(&side.loss))
    }

    /// Whether something was down for long.
    fn outage(&self) -> bool {
        let mut downs: Vec<(String, u64)> = Vec::new();
        let mut longest = 0;
        for event in &self.plan.events {
            let (what, up) = match event.action {
                Action::Link {
                    link, up: Some(up), ..
                } => (format!("link {link}"), up),
                Action::Interface {
                    node,
                    interface,
                    up,
                } => (format!("interface {node} {interface}"), up),
                _ => continue,
            };
            if up {
                let began = downs
                    .iter()
                    .filter(|down| down.0 == what)
                    .map(|down| down.1);
                longest = longest.max(began.min().map_or(0, |began| event.at_ns - began));
                downs.retain(|down| down.0 != what);
            } else {
                downs.push((what, event.at_ns));
            }
        }
        longest >= OUTAGE
    }
}
