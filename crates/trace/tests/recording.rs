//! The recording's tables are those of docs/recording.md, describe themselves, hold the rows pushed into them, and hash them.

use arrow_array::{Array, Float64Array, Int64Array, LargeStringArray, UInt32Array};
use polypath_trace::{EventRow, Recording, RequestRow, SwitchRow};

const DOCUMENT: &str = include_str!("../../../docs/recording.md");

/// Tables of the document, in its order.
fn documented() -> Vec<&'static str> {
    let (tables, _) = DOCUMENT
        .split_once("\n## Kinds of events")
        .expect("sections after the tables");
    let rows = tables.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| line.split('`').nth(1).expect("a name in code"))
        .collect()
}

#[test]
fn tables_are_the_documented_ones() {
    let schemas = Recording::schemas();
    let declared: Vec<_> = schemas.iter().map(|(name, _)| *name).collect();
    assert_eq!(declared, documented());
}

#[test]
fn tables_describe_themselves() {
    let described = Recording::described();
    assert!(described.iter().all(|table| table.about.ends_with('.')));
    let table = |name: &str| described.iter().find(|table| table.name == name).unwrap();
    assert!(table("programs").optional && !table("segments").optional);
    let dsn = &table("segments").columns[6];
    assert_eq!((&*dsn.name, dsn.nullable), ("dsn", true));
    assert_eq!(
        dsn.about,
        "The data sequence number, relative to the initial one."
    );
    assert_eq!(table("segments").columns[0].about, "");
}

fn event(detail: &'static str) -> EventRow {
    EventRow {
        time_ns: 5,
        kind: "timeout".into(),
        host: String::from("phone").into(),
        connection: Some(0),
        subflow: None,
        link: None,
        value: Some(1.5),
        detail: detail.into(),
    }
}

/// Tables that are not there without rows.
const OPTIONAL: [&str; 15] = [
    "account",
    "chunks",
    "objects",
    "sack_blocks",
    "headers",
    "packets",
    "stream_frames",
    "tunnels",
    "programs",
    "datagram_samples",
    "switches",
    "switch_ends",
    "flow_setups",
    "bridge_ports",
    "bridge_ends",
];

#[test]
fn an_optional_table_is_there_as_soon_as_it_has_a_row() {
    let names = |recording: &Recording| -> Vec<&str> {
        let tables = recording.tables();
        tables.iter().map(|(name, _)| *name).collect()
    };
    let mut recording = Recording::default();
    let (before, hash) = (names(&recording), recording.hash());
    assert!(before.iter().all(|name| !OPTIONAL.contains(name)));
    recording.switches.push(SwitchRow {
        time_ns: 5,
        switch: 1,
        entries: 2,
        packet_ins: 3,
        packet_outs: 3,
        flow_mods: 4,
    });
    assert_eq!(names(&recording), [&before[..], &["switches"]].concat());
    assert_ne!(recording.hash(), hash);
    recording.switches.remove(0..1);
    assert_eq!((names(&recording), recording.hash()), (before, hash));
}

#[test]
fn rows_come_back() {
    let mut recording = Recording::default();
    recording.events.push(event("first"));
    recording.events.push(EventRow {
        connection: None,
        value: None,
        ..event("second")
    });
    let tables = recording.tables();
    assert_eq!(tables.len(), Recording::schemas().len() - OPTIONAL.len());
    let (_, events) = tables
        .into_iter()
        .find(|(name, _)| *name == "events")
        .unwrap();
    assert_eq!(events.num_rows(), 2);
    let column = |name: &str| events.column_by_name(name).unwrap().clone();
    assert_eq!(*column("time_ns"), Int64Array::from(vec![5, 5]));
    assert_eq!(
        *column("host"),
        LargeStringArray::from(vec!["phone", "phone"])
    );
    assert_eq!(
        *column("connection"),
        UInt32Array::from(vec![Some(0), None])
    );
    assert_eq!(*column("value"), Float64Array::from(vec![Some(1.5), None]));
    assert_eq!(
        *column("detail"),
        LargeStringArray::from(vec!["first", "second"])
    );
    assert_eq!(column("link").null_count(), 2);
}

#[test]
fn empty_tables_have_their_schema() {
    let mut declared = Recording::schemas();
    declared.retain(|(name, _)| !OPTIONAL.contains(name));
    let tables = Recording::default().tables();
    assert_eq!(tables.len(), declared.len());
    for ((name, batch), (expected, schema)) in tables.iter().zip(declared) {
        assert_eq!((*name, batch.num_rows()), (expected, 0));
        assert_eq!(*batch.schema(), schema);
    }
}

#[test]
fn the_hash_follows_the_contents() {
    let recording = |details: &[&'static str]| {
        let mut recording = Recording::default();
        details
            .iter()
            .for_each(|detail| recording.events.push(event(detail)));
        recording.hash()
    };
    assert_eq!(recording(&["a", "b"]), recording(&["a", "b"]));
    assert_ne!(recording(&["a", "b"]), recording(&["b", "a"]));
    assert_ne!(recording(&["a"]), recording(&["a", "a"]));

    let answered = |delay_ns| {
        let mut recording = Recording::default();
        recording.requests.push(RequestRow {
            application: 0,
            index: 0,
            sent_ns: 0,
            delay_ns,
        });
        recording.hash()
    };
    assert_ne!(answered(None), answered(Some(0)));
}

/// What a limit of memory is held against: more than the arrays take, in whatever form.
#[test]
fn as_much_memory_is_counted_as_the_arrays_take() {
    let long = "a detail that no other event has, longer than a view holds".repeat(20);
    for detail in [None, Some(&long)] {
        let mut recording = Recording::default();
        let empty = recording.bytes();
        for number in 0..1000 {
            recording.events.push(EventRow {
                detail: detail.map_or("same".into(), |long| format!("{long}{number}").into()),
                ..event("")
            });
        }
        let counted = (recording.bytes() - empty) as usize;
        let arrays: usize = recording
            .into_tables()
            .iter()
            .flat_map(|(_, batch)| batch.columns())
            .map(|column| column.to_data().get_slice_memory_size().unwrap())
            .sum();
        // a view of polars: 16 bytes of each of the three strings of a row
        assert!(counted > arrays + 3 * 16 * 1000, "{counted} {arrays}");
        assert!(counted < 4 * (arrays + 3 * 16 * 1000), "{counted} {arrays}");
    }
}
