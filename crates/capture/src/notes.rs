//! What is to be said of a trace beside its tables.

use std::collections::BTreeMap;

use polypath_wire::ip;

use crate::analysis::Analysis;
use crate::connection::Subflow;
use crate::file::FileReport;
use crate::hosts::{Host, Hosts};
use crate::join::Joined;
use crate::layers::Other;
use crate::packet::Merged;
use crate::quic::Quic;

/// A connection's ends, by their hosts' positions, and the paths between them.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ConnectionTold {
    pub client: usize,
    pub server: usize,
    pub port: u16,
    pub start_ns: i64,
}

/// Everything beside the tables.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Told {
    pub files: Vec<FileReport>,
    pub hosts: Vec<Host>,
    pub connections: Vec<ConnectionTold>,
    /// When the Recording's time 0 was, in nanoseconds since 1970.
    pub start_unix_ns: i64,
    /// Where captures were taken, what is missing, what does not fit together: a line each.
    pub notes: Vec<String>,
    pub interrupted: bool,
}

impl Told {
    pub(crate) fn of(
        analysis: &Analysis,
        quic: Option<&Quic>,
        hosts: &Hosts,
        files: &Merged,
        (ahead, unchecked): (&[i64], &[bool]),
        interrupted: bool,
    ) -> Self {
        let followed = quic.map_or(0, |quic| quic.datagrams);
        let mut others = files.others.other.clone();
        if let Some(count) = others.get_mut(&Other::Protocol(ip::protocol::UDP)) {
            *count = count.saturating_sub(followed);
        }
        others.retain(|_, count| *count > 0);
        let over_quic = quic.iter().flat_map(|quic| &quic.connections);
        let over_quic = over_quic.map(|connection| {
            let first = &connection.paths[0];
            ConnectionTold {
                client: hosts.number(first.client.ip()),
                server: hosts.number(first.server.ip()),
                port: first.server.port(),
                start_ns: connection.first_ns,
            }
        });
        let connections = analysis.connections.iter().map(|connection| {
            let first = &connection.subflows[0].info;
            ConnectionTold {
                client: hosts.number(first.client.ip()),
                server: hosts.number(first.server.ip()),
                port: first.server.port(),
                start_ns: analysis.relative(connection.info.first_ns),
            }
        });
        let mut notes = Vec::new();
        count(
            &mut notes,
            analysis,
            |subflow| !subflow.info.opened,
            "began before the capture: their totals are of what was captured",
        );
        count(
            &mut notes,
            analysis,
            |subflow| subflow.info.joined == Joined::Unknown,
            "joined a connection whose keys were not captured, and are shown as one of their own",
        );
        count(
            &mut notes,
            analysis,
            |subflow| subflow.info.joined == Joined::ByData,
            "belong to a connection by their data sequence numbers alone: its keys were not captured",
        );
        count(
            &mut notes,
            analysis,
            |subflow| subflow.info.joined == Joined::WrongHmac,
            "joined with an HMAC that does not follow from the keys",
        );
        let far = |side: usize| move |subflow: &Subflow| !subflow.info.near[side];
        count(
            &mut notes,
            analysis,
            far(0),
            "were captured nearer to the server only: what the client received is what it acknowledged",
        );
        count(
            &mut notes,
            analysis,
            far(1),
            "were captured nearer to the client only: what the server received is what it acknowledged",
        );
        for (report, &ahead) in files.reports().iter().zip(ahead) {
            if ahead != 0 {
                notes.push(format!(
                    "{}: its clock is {:.3} ms {} the first file's, and its times are set right",
                    report.file,
                    ahead.abs() as f64 / 1e6,
                    if ahead > 0 { "ahead of" } else { "behind" },
                ));
            }
        }
        for (report, _) in files.reports().iter().zip(unchecked).filter(|it| *it.1) {
            notes.push(format!(
                "{}: no handshake is in it and in the others, so its clock is taken for right; if it is not, what arrived is told wrong",
                report.file
            ));
        }
        let twice = analysis
            .connections
            .iter()
            .filter(|connection| connection.info.twice)
            .count();
        if twice > 0 {
            notes.push(format!(
                "{twice} connections have the keys of another: both sides of something that changes addresses or sequence numbers, \
                 each shown as it was seen"
            ));
        }
        let beyond: u64 = analysis
            .connections
            .iter()
            .map(|connection| connection.info.beyond)
            .sum();
        if beyond > 0 {
            notes.push(format!(
                "flows that are a subflow seen from beyond something that changes addresses, and are left out: {beyond}"
            ));
        }
        let unseen: u64 = analysis
            .connections
            .iter()
            .flat_map(|connection| &connection.subflows)
            .flat_map(|subflow| &subflow.halves)
            .map(|half| half.unseen_bytes)
            .sum();
        if unseen > 0 {
            notes.push(format!(
                "{unseen} bytes were acknowledged that no capture has: packets are missing"
            ));
        }
        if analysis.corrupted > 0 {
            notes.push(format!(
                "{} segments arrived with a wrong checksum and are left out",
                analysis.corrupted
            ));
        }
        if analysis.copies > 0 {
            notes.push(format!(
                "{} packets are in a file twice, perhaps of two interfaces, and count once",
                analysis.copies
            ));
        }
        if files.others.unreadable > 0 {
            notes.push(format!(
                "{} packets were not captured far enough, or are fragments, and are left out",
                files.others.unreadable
            ));
        }
        if files.others.cut > 0 {
            notes.push(format!(
                "{} segments were cut within their options: Multipath TCP may be taken for TCP",
                files.others.cut
            ));
        }
        notes.extend(quic.iter().flat_map(|quic| quic.notes()));
        if !others.is_empty() {
            notes.push(left_out(&others));
        }
        Self {
            files: files.reports(),
            hosts: hosts.list.clone(),
            connections: connections.chain(over_quic).collect(),
            start_unix_ns: analysis.zero_ns(),
            notes,
            interrupted,
        }
    }
}

fn count(
    notes: &mut Vec<String>,
    analysis: &Analysis,
    holds: impl Fn(&Subflow) -> bool,
    what: &str,
) {
    let all = analysis.connections.iter().flat_map(|each| &each.subflows);
    let (mut found, mut total) = (0, 0);
    for subflow in all {
        total += 1;
        found += u64::from(holds(subflow));
    }
    if found > 0 {
        notes.push(format!("{found} of {total} subflows {what}"));
    }
}

/// Kinds of packets that are named.
const MOST_NAMED: usize = 3;

/// What is not TCP, the most frequent first.
fn left_out(others: &BTreeMap<Other, u64>) -> String {
    let mut kinds: Vec<_> = others.iter().collect();
    kinds.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let named: Vec<_> = kinds
        .iter()
        .take(MOST_NAMED)
        .map(|(what, count)| format!("{count} of {what}"))
        .collect();
    let more = if kinds.len() > MOST_NAMED { ", .." } else { "" };
    format!(
        "{} packets are neither TCP nor QUIC and are left out: {}{more}",
        others.values().sum::<u64>(),
        named.join(", ")
    )
}
