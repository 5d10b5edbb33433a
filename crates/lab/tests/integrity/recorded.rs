//! The outcomes of some scenarios, as a table. A change of behaviour in the endpoints or the network shows as a
//! difference to review.
//!
//! A new entry of a registry changes the draws, and so the whole table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use arrow_cast::display::array_value_to_string;
use polypath_lab::plan::{Bulk, Plan, Work};
use polypath_lab::{CaptureMode, Recording, Simulation};

use crate::air;
use crate::over_quic;
use crate::scenario::Scenario;

/// Scenarios of TCP and of QUIC each, and so many of each over Wi-Fi.
const OF_EACH: u64 = 800;
const OVER_THE_AIR: u64 = 40;
/// And so many of TCP and of QUIC each with transfers of at least so many bytes.
const OF_LONGER: u64 = 200;
const LONGER: u64 = 1_000_000;
/// The first ones of a kind have a line each, all of them are in the sums.
const SHOWN: u64 = 40;

/// Sums over all rows of all runs, by table and column.
type Sums = BTreeMap<String, f64>;

/// Columns that no sum is made of.
const PLACES: [&str; 7] = [
    "application",
    "connection",
    "index",
    "link",
    "position",
    "subflow",
    "time_ns",
];

/// A table's rows as text by column.
fn rows(recording: &Recording, table: &str) -> Vec<BTreeMap<String, String>> {
    let mut rows = Vec::new();
    for (name, batch) in recording.tables() {
        let schema = batch.schema();
        for row in (0..batch.num_rows()).filter(|_| name == table) {
            let fields = schema.fields().iter().enumerate();
            let cells = fields.map(|(column, field)| {
                let text = array_value_to_string(batch.column(column), row);
                (field.name().clone(), text.expect("plain columns"))
            });
            rows.push(cells.collect());
        }
    }
    rows
}

/// How each connection ended.
fn line(seed: u64, recording: &Recording) -> String {
    let mut line = format!("{seed}:");
    for end in rows(recording, "connection_ends") {
        let nanos: Option<u64> = end["last_byte_ns"].parse().ok();
        let last = nanos.map_or("-".into(), |nanos| (nanos / 1_000).to_string());
        let (transport, state) = (&end["transport"], &end["state"]);
        let (client, server) = (&end["client_received_bytes"], &end["server_received_bytes"]);
        write!(line, " {transport} {state} {last} us {client}/{server}").expect("a string");
    }
    line
}

/// Adds the counters by their names, and every other column of numbers by its own.
fn add(sums: &mut Sums, recording: &Recording) {
    for (table, batch) in recording.tables() {
        if table == "counters" {
            continue;
        }
        for (column, field) in batch.schema().fields().iter().enumerate() {
            // ids, ports and the times of samples say nothing
            let name = field.name().as_str();
            if PLACES.contains(&name) || name.ends_with("_port") {
                continue;
            }
            let cells = (0..batch.num_rows()).map(|row| {
                let text = array_value_to_string(batch.column(column), row);
                text.expect("plain columns").parse::<f64>()
            });
            let sum: f64 = cells.flatten().filter(|value| value.is_finite()).sum();
            if sum != 0.0 {
                *sums.entry(format!("{table}.{name}")).or_default() += sum;
            }
        }
    }
    for counter in rows(recording, "counters") {
        let value: f64 = counter["value"].parse().expect("a count");
        *sums.entry(counter["name"].clone()).or_default() += value;
    }
}

/// What moves on little data, or after a while only, shows in transfers that go on.
fn longer(plan: &mut Plan) {
    for application in &mut plan.applications {
        if let Work::Bulk(Bulk {
            size_bytes: Some(bytes),
            ..
        }) = &mut application.work
        {
            *bytes = LONGER.max(*bytes);
        }
    }
}

fn table(firsts: &[u64], count: u64, change: fn(&mut Plan)) -> String {
    let (mut text, mut sums) = (String::new(), Sums::new());
    for (first, place) in firsts
        .iter()
        .flat_map(|first| (0..count).map(move |place| (first, place)))
    {
        let mut plan = Scenario::new(first + place).plan;
        change(&mut plan);
        plan.record.segments = true;
        plan.record.decisions = true;
        let mut simulation = Simulation::from_plan(plan, CaptureMode::None, None).expect("a plan");
        simulation.step_until(u64::MAX).expect("it runs");
        let recording = simulation.finish().expect("nothing is written");
        if place < SHOWN {
            text += &line(first + place, &recording);
            text.push('\n');
        }
        add(&mut sums, &recording);
    }
    for (name, sum) in sums {
        writeln!(text, "{name} {sum}").expect("a string");
    }
    text
}

#[test]
fn of_tcp() {
    insta::assert_snapshot!(table(&[0], OF_EACH, |_| {}));
}

#[test]
fn of_quic() {
    insta::assert_snapshot!(table(&[over_quic::FIRST], OF_EACH, |_| {}));
}

#[test]
fn over_wifi() {
    let firsts = [air::FIRST, over_quic::FIRST + air::FIRST];
    insta::assert_snapshot!(table(&firsts, OVER_THE_AIR, |_| {}));
}

#[test]
fn of_longer_transfers() {
    insta::assert_snapshot!(table(&[0, over_quic::FIRST], OF_LONGER, longer));
}
