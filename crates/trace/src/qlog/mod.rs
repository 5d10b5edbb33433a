//! qlog: the events of one endpoint of a QUIC connection (draft-ietf-quic-qlog-main-schema-13,
//! draft-ietf-quic-qlog-quic-events-13).
//!
//! A [`Log`] is a JSON text sequence (RFC 7464). The additions for multiple paths have the names of noq-proto's qlog:
//! `path_id` in packet headers and metrics, the tuple `p` and the id of a path, and frame types after those of
//! RFC 10069.

mod frame;
mod packet;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};

pub use frame::error_name;
pub use packet::{header, packet, parameters};

/// What the files of the sequential form state of themselves (main-schema section 3).
const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";
const SERIALIZATION_FORMAT: &str = "application/qlog+json-seq";
/// The events, by the draft that defines them (quic-events section 2.1).
const EVENT_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-13";
/// Before each record (RFC 7464 section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// Whose events these are.
#[derive(Clone, Debug)]
pub struct Vantage<'a> {
    pub title: &'a str,
    /// The host.
    pub name: &'a str,
    pub client: bool,
    /// What the connection's traces have in common: the original destination connection id, in hexadecimal.
    pub group: &'a str,
}

/// A trace being written.
#[derive(Debug)]
pub struct Log<W: Write> {
    out: W,
}

#[derive(Serialize)]
struct Event<'a> {
    /// Milliseconds since the run began.
    time: f64,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple: Option<&'a str>,
    data: Map<String, Value>,
}

impl<W: Write> Log<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// Those of the writer, as of all methods.
    pub fn begin(mut out: W, vantage: &Vantage<'_>) -> io::Result<Self> {
        let kind = if vantage.client { "client" } else { "server" };
        let head = json!({
            "file_schema": FILE_SCHEMA,
            "serialization_format": SERIALIZATION_FORMAT,
            "title": vantage.title,
            "trace": {
                "title": vantage.title,
                "vantage_point": {"name": vantage.name, "type": kind},
                "common_fields": {
                    "group_id": vantage.group,
                    "time_format": "relative_to_epoch",
                    "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
                },
                "event_schemas": [EVENT_SCHEMA],
            },
        });
        record(&mut out, &head)?;
        Ok(Self { out })
    }

    /// An event at `at` nanoseconds; `name` without its namespace.
    ///
    /// # Errors
    /// As [`Log::begin`].
    pub fn event(
        &mut self,
        at: u64,
        name: &str,
        tuple: Option<&str>,
        data: Map<String, Value>,
    ) -> io::Result<()> {
        let event = Event {
            time: milliseconds(at),
            name: &format!("quic:{name}"),
            tuple,
            data,
        };
        record(&mut self.out, &event)
    }

    /// # Errors
    /// As [`Log::begin`].
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn record(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Nanoseconds as qlog has times.
pub fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// The fields that are there.
pub fn fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let present = fields.into_iter();
    present
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
