//! Requests as bars: how long each waited for its answer, how long that took to come, and by which path.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::chart::{differences, micros};
use crate::connection::{Connection, Side};
use crate::figures::Figures;
use crate::samples::Sampled;
use crate::subflow::Subflow;
use crate::table::TableError;

/// More are not shown one by one: those without an answer and the longest stay.
const MOST: usize = 10_000;

/// A connection's requests in the order of sending. Times are in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// How many there were before some were left out.
    of: usize,
    /// Whether they are messages, which have no answer but an arrival.
    messages: bool,
    /// The next two as differences.
    index: Vec<Option<i64>>,
    sent: Vec<Option<i64>>,
    /// Absent: unanswered.
    delay: Vec<Option<i64>>,
    /// From the request to the first byte of the answer; known where segments are recorded.
    first: Vec<Option<i64>>,
    /// Bytes of each answer by subflow; absent of one that is not known.
    by: Option<Vec<Option<Vec<i64>>>>,
    /// Whether `by` is of samples.
    sampled: bool,
}

/// The requests of an application, in the order of sending.
#[derive(Default)]
struct Rows {
    index: Vec<i64>,
    sent_ns: Vec<i64>,
    delay_ns: Vec<Option<i64>>,
}

impl Rows {
    /// When each was answered; nothing where several are open at once: whose answer came on a subflow is not known.
    fn ends_ns(&self) -> Option<Vec<Option<i64>>> {
        let ends: Vec<Option<i64>> = (self.sent_ns.iter().zip(&self.delay_ns))
            .map(|(sent, delay)| delay.map(|delay| sent + delay))
            .collect();
        let mut next = ends.iter().zip(self.sent_ns.iter().skip(1));
        next.all(|(end, sent)| end.is_some_and(|end| end <= *sent))
            .then_some(ends)
    }
}

/// What is known of the answers: when the first byte of each was sent, and its bytes by subflow.
#[derive(Default)]
struct Answers {
    first_ns: Option<Vec<Option<i64>>>,
    by: Option<Vec<Option<Vec<i64>>>>,
}

impl Figures {
    /// A connection's requests; nothing where it sends none.
    ///
    /// Paths of answers need requests of which the next is sent after the answer of the one before. With recorded
    /// segments `by` is what the server sent on each subflow, otherwise what arrived there, from the samples.
    pub fn asked(&self, of: &Connection, lanes: &[Subflow]) -> Result<Option<Asked>, TableError> {
        let rows = self.rows_of(of)?;
        if rows.sent_ns.is_empty() {
            return Ok(None);
        }
        let applications = &self.plan().applications;
        let messages = (applications.get(of.application))
            .is_some_and(|application| application.work.kind == "messages");
        let answers = match (of.id, rows.ends_ns()) {
            (Some(id), Some(ends)) if !messages => self.answers(of, id, lanes, &rows, &ends)?,
            _ => Answers::default(),
        };
        let sampled = answers.by.is_some() && answers.first_ns.is_none();
        let kept = kept(&rows, self.end_ns());
        let first = |row: usize| {
            let at = answers.first_ns.as_ref()?[row]?;
            Some(micros(at - rows.sent_ns[row]))
        };
        Ok(Some(Asked {
            of: rows.sent_ns.len(),
            messages,
            index: differences(kept.iter().map(|row| Some(rows.index[*row]))),
            sent: differences(kept.iter().map(|row| Some(micros(rows.sent_ns[*row])))),
            delay: kept
                .iter()
                .map(|row| rows.delay_ns[*row].map(micros))
                .collect(),
            first: kept.iter().map(|row| first(*row)).collect(),
            by: answers
                .by
                .as_ref()
                .map(|by| kept.iter().map(|row| by[*row].clone()).collect()),
            sampled,
        }))
    }

    fn rows_of(&self, of: &Connection) -> Result<Rows, TableError> {
        let table = self.table("requests");
        let (index, sent) = (table.counts("index")?, table.counts("sent_ns")?);
        let (applications, delays) = (table.counts("application")?, table.integers("delay_ns")?);
        let mut own: Vec<usize> = (0..index.len())
            .filter(|row| applications[*row] == of.application as i64)
            .collect();
        own.sort_by_key(|row| (sent[*row], index[*row]));
        Ok(Rows {
            index: own.iter().map(|row| index[*row]).collect(),
            sent_ns: own.iter().map(|row| sent[*row]).collect(),
            delay_ns: own.iter().map(|row| delays[*row]).collect(),
        })
    }

    fn answers(
        &self,
        of: &Connection,
        id: i64,
        lanes: &[Subflow],
        rows: &Rows,
        ends: &[Option<i64>],
    ) -> Result<Answers, TableError> {
        if let Some(found) = self.sent_answers(id, lanes, rows, ends)? {
            return Ok(found);
        }
        if of.over_quic() {
            // of a path whole packets are counted, ACKs, too
            return Ok(Answers::default());
        }
        let by = self.sampled_answers(id, lanes, rows, ends)?;
        Ok(Answers { first_ns: None, by })
    }

    /// From the server's segments; nothing where none is recorded.
    fn sent_answers(
        &self,
        id: i64,
        lanes: &[Subflow],
        rows: &Rows,
        ends: &[Option<i64>],
    ) -> Result<Option<Answers>, TableError> {
        let table = self.table("segments");
        if table.rows() == 0 {
            return Ok(None);
        }
        let times = table.counts("time_ns")?;
        let (connections, sides) = (table.integers("connection")?, table.texts("side")?);
        let (subflows, kinds) = (table.counts("subflow")?, table.texts("kind")?);
        let (lengths, numbers) = (table.counts("payload_bytes")?, table.integers("dsn")?);
        let mut sent: Vec<usize> = (0..times.len())
            .filter(|row| connections[*row] == Some(id) && sides[*row] == Side::Server.name())
            .filter(|row| lengths[*row] > 0 && numbers[*row].is_some())
            .collect();
        if sent.is_empty() {
            return Ok(None);
        }
        sent.sort_by_key(|row| times[*row]);
        let places = places(lanes);
        let mut by = vec![vec![0; lanes.len()]; rows.sent_ns.len()];
        let mut first_ns = vec![None; rows.sent_ns.len()];
        let mut number = 0;
        for row in sent {
            let time = times[row];
            while rows
                .sent_ns
                .get(number + 1)
                .is_some_and(|next| time >= *next)
            {
                number += 1;
            }
            if time < rows.sent_ns[number] || ends[number].is_some_and(|end| time > end) {
                continue;
            }
            first_ns[number].get_or_insert(time);
            if let (Some(place), true) =
                (places.get(&subflows[row]), kinds[row] != "retransmission")
            {
                by[number][*place] += lengths[row];
            }
        }
        Ok(Some(Answers {
            first_ns: Some(first_ns),
            by: Some(by.into_iter().map(Some).collect()),
        }))
    }

    /// The bytes of each answer by subflow, as the client received them; nothing where no samples tell of any.
    ///
    /// Exact: between a sample after the answer before and up to the request, and one after the answer and up to the next
    /// request, nothing else is on the way, unless a copy of the answer before comes late.
    fn sampled_answers(
        &self,
        id: i64,
        lanes: &[Subflow],
        rows: &Rows,
        ends: &[Option<i64>],
    ) -> Result<Option<Vec<Option<Vec<i64>>>>, TableError> {
        // At a sampling instant each subflow has a row; at others only the one that changed.
        let mut times = self.connection_samples()?.times(id, Side::Client);
        times.dedup();
        let mut totals = vec![vec![0; times.len()]; lanes.len()];
        for (lane, totals) in lanes.iter().zip(&mut totals) {
            let samples = self.subflow_samples()?;
            for (time, received) in samples.rows(id, lane.id, Side::Client, Sampled::Received) {
                let Ok(place) = times.binary_search(&time) else {
                    continue;
                };
                let Some(received) = received else {
                    return Ok(None);
                };
                totals[place] = received;
            }
        }
        let part = |number: usize| {
            let start = rows.sent_ns[number];
            let before = times.partition_point(|time| *time <= start).checked_sub(1);
            let next = rows.sent_ns.get(number + 1);
            let beyond = next.copied().unwrap_or(self.end_ns());
            let apart = number == 0
                || before.is_some_and(|before| {
                    ends[number - 1].is_some_and(|since| times[before] >= since)
                });
            let end = ends[number]?;
            let after = times.partition_point(|time| *time < end);
            if !apart || times.get(after).is_none_or(|time| *time > beyond) {
                return None;
            }
            let had = |total: &Vec<i64>| before.map_or(0, |before| total[before]);
            Some(
                totals
                    .iter()
                    .map(|total| total[after] - had(total))
                    .collect(),
            )
        };
        let found: Vec<Option<Vec<i64>>> = (0..rows.sent_ns.len()).map(part).collect();
        Ok(found.iter().any(Option::is_some).then_some(found))
    }
}

fn places(lanes: &[Subflow]) -> FxHashMap<i64, usize> {
    let numbered = lanes.iter().enumerate();
    numbered.map(|(place, lane)| (lane.id, place)).collect()
}

/// The rows that are shown, in the order of sending.
fn kept(rows: &Rows, end_ns: i64) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..rows.sent_ns.len()).collect();
    if kept.len() > MOST {
        kept.sort_by_key(|row| std::cmp::Reverse(rows.delay_ns[*row].unwrap_or(end_ns)));
        kept.truncate(MOST);
        kept.sort_unstable();
    }
    kept
}
