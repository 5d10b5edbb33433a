//! A page's view of a run, in the form of `web/src/data.ts`.

use std::collections::BTreeMap;

use polypath_figures::{
    Charge, Charts, Connection, ConnectionSummary, Figures, LinkCourses, LinkSummary, Queues,
    Subflow, TableError, uplink,
};
use serde::Serialize;

/// Connections that have charts.
const MOST_CONNECTIONS: usize = 40;
/// Events that are listed.
const MOST_EVENTS: usize = 4000;

/// A run that the page can show.
#[derive(Serialize)]
pub struct Shown<'a> {
    end_s: f64,
    recording_sha256: String,
    summary: Summary,
    connections: Vec<Described<'a>>,
    events: Vec<Event>,
    events_of: usize,
    data: Data,
    /// The links at the client's interfaces that connections use; a path's colour is its place.
    paths: Vec<&'a str>,
}

#[derive(Serialize)]
struct Summary {
    connections: Vec<ConnectionSummary>,
    links: Vec<LinkSummary>,
    /// By host and name.
    counters: BTreeMap<String, BTreeMap<String, i64>>,
}

#[derive(Serialize)]
struct Described<'a> {
    id: Option<i64>,
    lane: &'static str,
    receiver: &'static str,
    charted: bool,
    subflows: Vec<Lane>,
    account: Option<Kept>,
    #[serde(skip)]
    of: &'a Connection,
}

/// The account of what its links could have carried.
#[derive(Serialize)]
struct Kept {
    capacity_bytes: i64,
    delivered_bytes: i64,
    duration_s: f64,
    charges: Vec<Charged>,
}

#[derive(Serialize)]
struct Charged {
    title: String,
    path: String,
    bytes: i64,
    sentence: String,
    at_s: f64,
}

#[derive(Serialize)]
struct Lane {
    id: i64,
    label: String,
    /// The path's place, and how many of the connection's subflows came before on it.
    path: usize,
    shade: usize,
}

#[derive(Serialize)]
struct Event {
    t: f64,
    kind: String,
    host: String,
    connection: Option<i64>,
    subflow: Option<i64>,
    link: Option<i64>,
    value: Option<f64>,
    detail: String,
}

#[derive(Serialize)]
struct Data {
    connections: BTreeMap<usize, Charts>,
    links: LinkCourses,
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<Queues>,
}

impl<'a> Shown<'a> {
    /// Of a run's figures; the hash is its recording's.
    pub fn of(figures: &'a Figures, recording_sha256: String) -> Result<Self, TableError> {
        let connections = figures.connections()?;
        let mut busiest: Vec<usize> = (0..connections.len()).collect();
        busiest.sort_by_key(|number| std::cmp::Reverse(connections[*number].bytes));
        busiest.truncate(MOST_CONNECTIONS);
        let paths = figures.paths()?;
        let mut described = Vec::with_capacity(connections.len());
        let mut charts = BTreeMap::new();
        for (number, of) in connections.iter().enumerate() {
            let subflows = figures.subflows(of)?;
            let charted = busiest.contains(&number);
            if charted {
                charts.insert(number, figures.charts(of, &subflows, false)?);
            }
            described.push(Described {
                id: of.id,
                lane: of.lane(),
                receiver: of.receiver.name(),
                charted,
                subflows: lanes(figures, of, &subflows, &paths),
                account: if charted { kept(figures, of)? } else { None },
                of,
            });
        }
        let events = events(figures)?;
        Ok(Self {
            end_s: figures.end_ns() as f64 / 1e9,
            recording_sha256,
            summary: Summary {
                connections: described
                    .iter()
                    .map(|each| figures.summary(each.of))
                    .collect::<Result<_, _>>()?,
                links: figures.links()?,
                counters: counters(figures)?,
            },
            connections: described,
            events_of: figures.table("events").rows(),
            events,
            data: Data {
                connections: charts,
                links: figures.link_courses()?.unwrap_or_default(),
                queues: figures.queues(false)?,
            },
            paths,
        })
    }
}

fn kept(figures: &Figures, of: &Connection) -> Result<Option<Kept>, TableError> {
    let seconds = |time: i64| time as f64 / 1e9;
    let charged = |charge: &Charge| Charged {
        title: charge.title(),
        path: charge.path.clone(),
        bytes: charge.bytes,
        sentence: charge.sentence(),
        at_s: seconds(charge.worst_ns),
    };
    let account = figures.account(of, 0, None)?;
    Ok(account.map(|account| Kept {
        capacity_bytes: account.capacity_bytes,
        delivered_bytes: account.delivered_bytes,
        duration_s: seconds(account.until_ns - account.since_ns),
        charges: account.charges.iter().map(charged).collect(),
    }))
}

fn lanes(figures: &Figures, of: &Connection, subflows: &[Subflow], paths: &[&str]) -> Vec<Lane> {
    let mut on = vec![0; paths.len()];
    subflows
        .iter()
        .map(|subflow| {
            let name = uplink(figures.plan(), of, &subflow.interface);
            let path = paths.iter().position(|path| *path == name).unwrap_or(0);
            let shade = on[path];
            on[path] += 1;
            Lane {
                id: subflow.id,
                label: subflow.label(),
                path,
                shade,
            }
        })
        .collect()
}

fn events(figures: &Figures) -> Result<Vec<Event>, TableError> {
    let table = figures.table("events");
    let times = table.counts("time_ns")?;
    let (kinds, hosts) = (table.texts("kind")?, table.texts("host")?);
    let (connections, subflows) = (table.integers("connection")?, table.integers("subflow")?);
    let (links, values) = (table.integers("link")?, table.reals("value")?);
    let details = table.texts("detail")?;
    let event = |row: usize| Event {
        t: times[row] as f64 / 1e9,
        kind: kinds[row].to_owned(),
        host: hosts[row].to_owned(),
        connection: connections[row],
        subflow: subflows[row],
        link: links[row],
        value: values[row],
        detail: details[row].to_owned(),
    };
    Ok((0..times.len().min(MOST_EVENTS)).map(event).collect())
}

fn counters(figures: &Figures) -> Result<BTreeMap<String, BTreeMap<String, i64>>, TableError> {
    let table = figures.table("counters");
    let rows = table.texts("host")?.into_iter().zip(table.texts("name")?);
    let mut found: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for ((host, name), value) in rows.zip(table.counts("value")?) {
        found
            .entry(host.to_owned())
            .or_default()
            .insert(name.to_owned(), value);
    }
    Ok(found)
}
