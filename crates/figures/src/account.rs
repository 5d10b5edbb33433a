//! Why a connection was not faster, in bytes that add up: what its links could carry, and how that capacity was used.
//!
//! The table `account` holds running totals. docs/explain.md has the rules.

use rustc_hash::FxHashMap;

use crate::connection::Connection;
use crate::figures::Figures;
use crate::table::TableError;
use crate::uplinks::uplink;

/// What reached the receiver for the first time; it is no cause.
const DELIVERED: &str = "delivered";
const CLOSED: &str = "closed";

/// What one cause cost on one of the links that bound a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// A name of docs/explain.md.
    pub cause: String,
    /// The link that sent or idled.
    pub path: String,
    pub bytes: i64,
    /// The link that dropped or lost packets, or was down.
    pub at: Option<String>,
    /// The subflow or path that carried the first byte that was not acknowledged.
    pub head: Option<String>,
    /// When the sampling interval began in which it cost most.
    pub worst_ns: i64,
    /// A subflow over the link was reset, which says more than that it is closed.
    pub reset: bool,
}

/// `capacity_bytes` is `delivered_bytes` and the bytes of all charges, exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// What its links could have carried.
    pub capacity_bytes: i64,
    pub delivered_bytes: i64,
    /// The dearest first.
    pub charges: Vec<Charge>,
    /// The stretch of time that it is of.
    pub since_ns: i64,
    pub until_ns: i64,
}

/// What a row adds to: link, direction, cause, the link of the cause, the subflow at the head.
type Key<'a> = (i64, &'a str, &'a str, Option<i64>, Option<i64>);

/// Running totals over time.
type Course = Vec<(i64, i64)>;

impl Figures {
    /// The account of a connection's sender, or of a stretch of time between samples; absent where none was kept.
    pub fn account(
        &self,
        of: &Connection,
        since_ns: i64,
        until_ns: Option<i64>,
    ) -> Result<Option<Account>, TableError> {
        let Some(id) = of.id else {
            return Ok(None);
        };
        let courses = self.courses(id, of.receiver.other().name(), until_ns)?;
        let last = courses.iter().filter_map(|(_, course)| course.last());
        let Some(last_ns) = last.map(|(time, _)| *time).max() else {
            return Ok(None);
        };
        let labels: FxHashMap<i64, String> = self
            .subflows(of)?
            .iter()
            .map(|subflow| (subflow.id, subflow.label()))
            .collect();
        let links = &self.plan().links;
        let link = |number: i64| match links.get(number as usize) {
            Some(link) => link.name.clone(),
            None => format!("link {number}"),
        };
        let reset = self.reset_links(of)?;
        let (mut charges, mut delivered_bytes) = (Vec::new(), 0);
        for ((number, _, cause, at, head), course) in courses {
            let before = course.partition_point(|(time, _)| *time <= since_ns);
            let begun = before.checked_sub(1).map_or(0, |row| course[row].1);
            let bytes = course.last().map_or(0, |(_, total)| total - begun);
            if bytes == 0 {
                continue;
            }
            if cause == DELIVERED {
                delivered_bytes += bytes;
                continue;
            }
            let path = link(number);
            charges.push(Charge {
                cause: cause.to_owned(),
                reset: cause == CLOSED && reset.contains(&path),
                path,
                bytes,
                at: at.map(link),
                head: head.and_then(|head| labels.get(&head).cloned()),
                worst_ns: worst(&course[before..], self.plan().record.interval_ns),
            });
        }
        charges.sort_by(|one, other| {
            let by = |it: &Charge| (-it.bytes, it.path.clone(), it.cause.clone());
            by(one).cmp(&by(other))
        });
        let charged: i64 = charges.iter().map(|charge| charge.bytes).sum();
        Ok(Some(Account {
            capacity_bytes: delivered_bytes + charged,
            delivered_bytes,
            charges,
            since_ns: since_ns.max(of.start_ns),
            until_ns: last_ns,
        }))
    }

    /// The names of the client's links over which a subflow was reset.
    fn reset_links(&self, of: &Connection) -> Result<Vec<String>, TableError> {
        let events = self.table("events");
        let kinds = events.texts("kind")?;
        let (connections, numbers) = (events.integers("connection")?, events.integers("subflow")?);
        let was_reset = |number: i64| {
            (0..kinds.len()).any(|row| {
                kinds[row] == "reset" && connections[row] == of.id && numbers[row] == Some(number)
            })
        };
        let subflows = self.subflows(of)?;
        let lanes = subflows.iter().filter(|subflow| was_reset(subflow.id));
        Ok(lanes
            .map(|subflow| uplink(self.plan(), of, &subflow.interface).to_owned())
            .collect())
    }

    /// By what a row adds to, in the order of first appearance.
    fn courses(
        &self,
        connection: i64,
        side: &str,
        until_ns: Option<i64>,
    ) -> Result<Vec<(Key<'_>, Course)>, TableError> {
        let table = self.table("account");
        let times = table.counts("time_ns")?;
        let connections = table.counts("connection")?;
        let sides = table.texts("side")?;
        let (links, ways) = (table.counts("link")?, table.texts("direction")?);
        let causes = table.texts("cause")?;
        let (at, heads) = (table.integers("at_link")?, table.integers("head")?);
        let bytes = table.counts("bytes")?;
        let mut found: Vec<(Key, Course)> = Vec::new();
        let mut places: FxHashMap<Key, usize> = FxHashMap::default();
        for row in 0..times.len() {
            let is_own = connections[row] == connection && sides[row] == side;
            if !is_own || until_ns.is_some_and(|until| times[row] > until) {
                continue;
            }
            let key = (links[row], ways[row], causes[row], at[row], heads[row]);
            let place = *places.entry(key).or_insert_with(|| {
                found.push((key, Vec::new()));
                found.len() - 1
            });
            found[place].1.push((times[row], bytes[row]));
        }
        Ok(found)
    }
}

/// When the sampling interval began in which a running total grew most.
fn worst(course: &[(i64, i64)], interval_ns: i64) -> i64 {
    let mut before = 0;
    let mut most: Option<(i64, i64)> = None;
    for (time, total) in course {
        let grown = total - std::mem::replace(&mut before, *total);
        if most.is_none_or(|(least, _)| grown > least) {
            most = Some((grown, *time));
        }
    }
    most.map_or(0, |(_, time)| (time - interval_ns).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_interval_is_the_first_of_those_that_cost_most() {
        let course = [(100, 5), (200, 25), (300, 30), (400, 50)];
        assert_eq!(worst(&course, 100), 100);
        assert_eq!(worst(&[(100, 5)], 100), 0);
        assert_eq!(worst(&[], 100), 0);
    }
}
