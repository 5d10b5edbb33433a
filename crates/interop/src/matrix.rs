//! Every scenario between our endpoint and each peer, in both roles, and the page that shows it.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::end::Side;
use crate::peer::{Peer, Polypath};
use crate::scenario::{LEFT_OUT, REGISTRY, Scenario, Verdict, run};

/// Between these lines of the page is what a run writes.
const BEGIN: &str = "<!-- made by `make interop`: begin -->";
const END: &str = "<!-- made by `make interop`: end -->";

/// Seeds of a scenario's connections are apart from those of the next seed.
const APART: u64 = 1000;

/// How a peer did in a role; our endpoint had the other.
pub struct Cell {
    pub scenario: &'static Scenario,
    pub peer: String,
    pub role: Side,
    pub verdict: Verdict,
}

impl Cell {
    /// Of several seeds the first that did not pass counts.
    pub fn play(
        scenario: &'static Scenario,
        peer: &dyn Peer,
        role: Side,
        seeds: impl IntoIterator<Item = u64>,
    ) -> Self {
        let play = |seed: u64| match role {
            Side::Client => run(scenario, peer, &Polypath, seed * APART),
            Side::Server => run(scenario, &Polypath, peer, seed * APART),
        };
        let mut verdicts = seeds.into_iter().map(play);
        let verdict = verdicts.find(|verdict| *verdict != Verdict::Passed);
        Self {
            scenario,
            peer: peer.name().to_string(),
            role,
            verdict: verdict.unwrap_or(Verdict::Passed),
        }
    }

    /// In the words of the page.
    pub fn word(&self) -> String {
        match &self.verdict {
            Verdict::Passed => "passed".to_string(),
            Verdict::Failed(reason) => format!("failed: {reason}"),
            Verdict::NotOffered(by) => {
                let names: Vec<&str> = by.iter().map(|(name, _)| name.as_str()).collect();
                format!("not offered by {}", names.join(" and "))
            }
        }
    }

    fn column(&self) -> String {
        column(&self.peer, self.role)
    }
}

fn column(peer: &str, role: Side) -> String {
    let role = match role {
        Side::Client => "client",
        Side::Server => "server",
    };
    format!("{peer} as {role}")
}

/// The page with these cells in place of those that it has.
///
/// # Errors
/// It has no place for them.
pub fn written(page: &str, peers: &[&dyn Peer], cells: &[Cell]) -> Result<String, String> {
    let missing = || format!("the page lacks the line {BEGIN} or the line {END}");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let tables = tables(peers, cells);
    Ok(format!("{before}{BEGIN}\n\n{tables}\n{END}{after}"))
}

fn tables(peers: &[&dyn Peer], cells: &[Cell]) -> String {
    let roles = [Side::Client, Side::Server];
    let columns = peers
        .iter()
        .flat_map(|peer| roles.map(|role| column(peer.name(), role)));
    let columns: Vec<String> = columns.collect();
    let mut text = format!("| test case | {} |\n", columns.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(1 + columns.len()));
    for scenario in REGISTRY {
        let of = |column: &String| {
            let mut own = cells
                .iter()
                .filter(|cell| cell.scenario.name == scenario.name);
            let cell = own.find(|cell| cell.column() == *column);
            cell.map_or("not run".to_string(), Cell::word)
        };
        let words: Vec<String> = columns.iter().map(of).collect();
        let _ = writeln!(text, "| {} | {} |", scenario.name, words.join(" | "));
    }
    let mut reasons = BTreeSet::new();
    for cell in cells {
        if let Verdict::NotOffered(by) = &cell.verdict {
            let name = cell.scenario.name;
            reasons.extend(by.iter().map(|(by, why)| format!("{name}, {by}: {why}.")));
        }
    }
    text.push_str("\nFeatures that are not offered:\n\n");
    for reason in reasons {
        let _ = writeln!(text, "- {reason}");
    }
    text.push_str("\n| test case | requirement |\n|---|---|\n");
    for scenario in REGISTRY {
        let _ = writeln!(text, "| {} | {} |", scenario.name, scenario.asks);
    }
    text.push_str("\n| published, but not run here | reason |\n|---|---|\n");
    for (name, why) in LEFT_OUT {
        let _ = writeln!(text, "| {name} | {why} |");
    }
    text
}

/// What the page says of a scenario, a peer of whichever version, and a role.
pub fn stands(page: &str, scenario: &str, peer: &str, role: Side) -> Option<String> {
    let row = |line: &str| -> Vec<String> {
        let words = line.trim_matches('|').split('|');
        words.map(|word| word.trim().to_string()).collect()
    };
    let mut lines = page.lines();
    let head = row(lines.find(|line| line.starts_with("| test case |"))?);
    let column = column(peer, role);
    let ends = |text: &str| {
        let mut words = text.split(' ');
        Some((words.next()?.to_string(), words.next_back()?.to_string()))
    };
    let at = head.iter().position(|it| ends(it) == ends(&column))?;
    lines
        .map(row)
        .find(|row| row[0] == scenario)?
        .get(at)
        .cloned()
}
