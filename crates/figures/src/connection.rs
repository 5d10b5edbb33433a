//! The figures of each application's connection.

use rustc_hash::FxHashMap;

use crate::figures::Figures;
use crate::plan::{Plan, Work};
use crate::table::{Table, TableError};

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// The side of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Client, Self::Server]
            .into_iter()
            .find(|side| side.name() == name)
    }

    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A connection, or what an application without one did: UDP and ICMP have neither `id` nor subflows.
///
/// Times are nanoseconds since the start of the run. `polypath.results.metrics.Connection` tells of each field.
#[derive(Clone, Debug)]
pub struct Connection {
    pub application: usize,
    pub id: Option<i64>,
    pub name: String,
    pub transport: String,
    /// The end to which most bytes went.
    pub receiver: Side,
    /// Delivered in order to the receiving application.
    pub bytes: i64,
    pub start_ns: i64,
    pub established_ns: Option<i64>,
    pub end_ns: Option<i64>,
    pub last_byte_ns: Option<i64>,
    /// End of the time that goodput is taken over.
    pub until_ns: i64,
    /// Whether the application did all that it was to do; absent: it has no end of its own.
    pub finished: Option<bool>,
    /// The state in which it ended, if it did not close in order.
    pub failure: Option<String>,
}

impl Connection {
    pub fn over_quic(&self) -> bool {
        matches!(self.transport.as_str(), "quic" | "mpquic")
    }

    /// What one of its subflows is called.
    pub fn lane(&self) -> &'static str {
        if self.over_quic() { "path" } else { "subflow" }
    }

    /// Time from start to last byte; absent where it did not finish, or did not close. One that had nothing to send took
    /// until it was closed.
    pub fn completion_ns(&self) -> Option<i64> {
        let end_ns = self.end_ns?;
        if self.finished == Some(false) {
            return None;
        }
        let last = match self.last_byte_ns {
            None if self.finished == Some(true) => Some(end_ns),
            last => last,
        };
        last.map(|last| last - self.start_ns)
    }
}

/// States of a connection that did not close in order.
const FAILED: [&str; 4] = ["reset", "timed-out", "unreachable", "aborted"];

/// Requests or messages of an application: sent, and answered or arrived.
#[derive(Clone, Copy, Default)]
struct Asked {
    sent: i64,
    answered: i64,
}

fn asked(requests: &Table) -> Result<FxHashMap<i64, Asked>, TableError> {
    let mut found: FxHashMap<i64, Asked> = FxHashMap::default();
    let delays = requests.integers("delay_ns")?;
    for (application, delay) in requests.counts("application")?.into_iter().zip(delays) {
        let of = found.entry(application).or_default();
        of.sent += 1;
        of.answered += i64::from(delay.is_some());
    }
    Ok(found)
}

/// A row of `connection_ends`.
struct Ended<'a> {
    state: &'a str,
    start_ns: i64,
    end_ns: Option<i64>,
    last_byte_ns: Option<i64>,
    to_client: i64,
    to_server: i64,
}

impl Ended<'_> {
    fn failed(&self) -> bool {
        FAILED.contains(&self.state)
    }

    fn finished(&self, planned_end_ns: i64, work: &Work, asked: Asked) -> Option<bool> {
        let closed = self.end_ns.is_some();
        if let Some(duration) = work.duration_ns {
            let goes_on = self.start_ns + duration >= planned_end_ns;
            if work.kind == "messages" && !closed && goes_on {
                return None;
            }
            // Of messages some may be lost; if all are, nothing was done.
            let in_vain = asked.sent > 0 && asked.answered == 0;
            return Some(closed && !self.failed() && !in_vain);
        }
        if work.kind == "page" {
            return Some(closed && !self.failed());
        }
        let count = match work.kind.as_str() {
            "video" => work.segments,
            _ => work.count,
        };
        if let Some(count) = count {
            return Some(closed && asked.answered >= count);
        }
        let size = work.size_bytes?;
        if let Some(back) = work.reverse_bytes {
            return Some(closed && self.to_server >= size && self.to_client >= back);
        }
        if work.kind == "bulk" {
            let arrived = self.to_client.max(self.to_server);
            return Some(closed && arrived >= size && (arrived > 0 || !self.failed()));
        }
        None
    }

    fn receiver(&self, work: &Work) -> Side {
        match self.to_server.cmp(&self.to_client) {
            std::cmp::Ordering::Greater => Side::Server,
            std::cmp::Ordering::Less => Side::Client,
            std::cmp::Ordering::Equal if work.client_sends() => Side::Server,
            std::cmp::Ordering::Equal => Side::Client,
        }
    }

    fn until_ns(&self, run_end_ns: i64, work: &Work) -> i64 {
        let Some(end_ns) = self.end_ns else {
            return run_end_ns;
        };
        let last = self.last_byte_ns.unwrap_or(end_ns);
        match work.duration_ns {
            Some(duration) if work.ends_by_time() => {
                last.max(run_end_ns.min(self.start_ns + duration))
            }
            _ => last,
        }
    }
}

/// Every application's connection, in the plan's order.
pub(crate) fn connections(figures: &Figures) -> Result<Vec<Connection>, TableError> {
    let (plan, end_ns) = (figures.plan(), figures.end_ns());
    let planned_end_ns = if figures.interrupted() {
        end_ns
    } else {
        end_ns.max(plan.duration_ns.unwrap_or(end_ns))
    };
    let ends = figures.table("connection_ends");
    let asked = asked(figures.table("requests"))?;
    let applications = ends.counts("application")?;
    let ids = ends.counts("connection")?;
    let (names, transports) = (ends.texts("name")?, ends.texts("transport")?);
    let states = ends.texts("state")?;
    let starts = ends.counts("start_ns")?;
    let established = ends.integers("established_ns")?;
    let ended = ends.integers("end_ns")?;
    let last_bytes = ends.integers("last_byte_ns")?;
    let to_client = ends.counts("client_received_bytes")?;
    let to_server = ends.counts("server_received_bytes")?;
    let nothing = Work::default();
    let mut found = Vec::with_capacity(ids.len().max(plan.applications.len()));
    let mut connected = vec![false; plan.applications.len()];
    for row in 0..ids.len() {
        let application = applications[row] as usize;
        let work = plan
            .applications
            .get(application)
            .map_or(&nothing, |settings| &settings.work);
        if let Some(known) = connected.get_mut(application) {
            *known = true;
        }
        let of = Ended {
            state: states[row],
            start_ns: starts[row],
            end_ns: ended[row],
            last_byte_ns: last_bytes[row],
            to_client: to_client[row],
            to_server: to_server[row],
        };
        let requests = asked.get(&applications[row]).copied().unwrap_or_default();
        let finished = of.finished(planned_end_ns, work, requests);
        // One that failed delivers nothing from then on, as one that stays open without hearing its peer, whether or not
        // the run ends with it. Of a captured one nobody knows what it was to do: many reset what they are done with.
        let in_vain = of.failed() && finished != Some(true) && work.kind != "captured";
        found.push(Connection {
            application,
            id: Some(ids[row]),
            name: names[row].to_owned(),
            transport: transports[row].to_owned(),
            receiver: of.receiver(work),
            bytes: of.to_client.max(of.to_server),
            start_ns: of.start_ns,
            established_ns: established[row],
            end_ns: of.end_ns,
            last_byte_ns: of.last_byte_ns,
            until_ns: if in_vain {
                planned_end_ns
            } else {
                of.until_ns(end_ns, work)
            },
            finished,
            failure: of.failed().then(|| of.state.to_owned()),
        });
    }
    for (application, known) in connected.into_iter().enumerate() {
        if !known {
            found.push(without_connection(figures, plan, application)?);
        }
    }
    found.sort_by_key(|of| (of.application, of.id.unwrap_or(0)));
    Ok(found)
}

fn without_connection(
    figures: &Figures,
    plan: &Plan,
    application: usize,
) -> Result<Connection, TableError> {
    let settings = &plan.applications[application];
    let totals = figures.table("datagrams");
    let received = totals.counts("received_bytes")?;
    let bytes = totals
        .counts("application")?
        .into_iter()
        .zip(received)
        .filter_map(|(of, bytes)| (of == application as i64).then_some(bytes))
        .sum();
    let end_ns = figures.end_ns();
    let until_ns = match settings.work.duration_ns {
        None => end_ns,
        Some(duration) => {
            let last = figures.datagrams()?.last_ns(application as i64);
            end_ns.min(last.max(settings.start_ns + duration))
        }
    };
    Ok(Connection {
        application,
        id: None,
        name: settings.name.clone(),
        transport: settings.transport.clone(),
        receiver: Side::Server,
        bytes,
        start_ns: settings.start_ns,
        established_ns: None,
        end_ns: None,
        last_byte_ns: None,
        until_ns,
        finished: None,
        failure: None,
    })
}
