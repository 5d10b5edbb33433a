//! Time-sequence graphs for xplot, drawn as tcptrace draws them.
//!
//! A segment is a vertical line with an arrow at each end; what the other side acknowledges and the
//! edge of the window it offers are staircases. Times are written in microseconds, as tcptrace
//! does, so that what is closer together falls on one point.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A segment with data: `seq` to `seq + len`.
    Data,
    /// A segment with data that was sent before on the same subflow.
    Retransmission,
    /// Data that was sent before on another subflow.
    Reinjection,
    /// The next sequence number expected; `len` is not looked at.
    Ack,
    /// The right edge of the offered window; `len` is not looked at.
    Window,
    /// A block reported by SACK: `seq` to `seq + len`.
    Sack,
    /// A SYN at `seq`.
    Syn,
    /// A FIN at `seq`.
    Fin,
    /// A reset at `seq`.
    Reset,
}

/// How a kind is drawn.
enum Shape {
    Segment,
    Staircase,
    Block,
    Mark(&'static str),
}

impl Kind {
    /// Shape, colour (of data on the first subflow) and the letters beside it.
    fn style(self) -> (Shape, &'static str, &'static str) {
        match self {
            Self::Data => (Shape::Segment, DATA_COLOURS[0], ""),
            Self::Retransmission => (Shape::Segment, "red", "R"),
            Self::Reinjection => (Shape::Segment, "magenta", "I"),
            Self::Ack => (Shape::Staircase, "green", ""),
            Self::Window => (Shape::Staircase, "yellow", ""),
            Self::Sack => (Shape::Block, "purple", "S"),
            Self::Syn => (Shape::Mark("diamond"), "orange", "SYN"),
            Self::Fin => (Shape::Mark("box"), "orange", "FIN"),
            Self::Reset => (Shape::Mark("x"), "red", "RST"),
        }
    }
}

/// Data of subflow n is drawn in the n-th colour, and from the first on again.
const DATA_COLOURS: [&str; 5] = ["white", "blue", "orange", "pink", "purple"];

/// A point of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub time_ns: u64,
    pub kind: Kind,
    /// Which subflow: chooses the colour of data, and the staircase that an ACK continues.
    pub subflow: u32,
    /// In bytes, relative to the initial sequence number.
    pub seq: u64,
    /// In bytes.
    pub len: u64,
}

/// Writes a graph of rows in the order of time.
///
/// Line breaks in the title become spaces.
///
/// # Errors
/// Those of the sink.
pub fn write(
    mut sink: impl Write,
    title: &str,
    rows: impl IntoIterator<Item = Row>,
) -> io::Result<()> {
    let title = title.replace(['\n', '\r'], " ");
    writeln!(
        sink,
        "timeval unsigned\ntitle\n{title}\nxlabel\ntime\nylabel\nsequence number"
    )?;
    let mut staircases = BTreeMap::new();
    for row in rows {
        let (shape, colour, letters) = row.kind.style();
        let colour = match row.kind {
            Kind::Data => DATA_COLOURS[row.subflow as usize % DATA_COLOURS.len()],
            _ => colour,
        };
        writeln!(sink, "{colour}")?;
        let time = seconds(row.time_ns);
        let (low, high) = (row.seq, row.seq.saturating_add(row.len));
        let top = match shape {
            Shape::Segment => {
                writeln!(sink, "darrow {time} {low}\nuarrow {time} {high}")?;
                writeln!(sink, "line {time} {low} {time} {high}")?;
                high
            }
            Shape::Block => {
                writeln!(sink, "line {time} {low} {time} {high}")?;
                high
            }
            Shape::Mark(mark) => {
                writeln!(sink, "{mark} {time} {low}")?;
                low
            }
            Shape::Staircase => {
                let previous = staircases.insert((row.kind, row.subflow), (row.time_ns, low));
                if let Some((since, level)) = previous {
                    writeln!(sink, "line {} {level} {time} {level}", seconds(since))?;
                    if level == low {
                        writeln!(sink, "dtick {time} {low}")?;
                    } else {
                        writeln!(sink, "line {time} {level} {time} {low}")?;
                    }
                }
                low
            }
        };
        if !letters.is_empty() {
            writeln!(sink, "atext {time} {top}\n{letters}")?;
        }
    }
    writeln!(sink, "go")
}

/// Seconds with six decimals.
fn seconds(time_ns: u64) -> String {
    format!(
        "{}.{:06}",
        time_ns / 1_000_000_000,
        time_ns % 1_000_000_000 / 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(rows: &[Row]) -> String {
        let mut out = Vec::new();
        write(&mut out, "phone ==>\nserver", rows.iter().copied()).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn row(time_ms: u64, kind: Kind, seq: u64, len: u64) -> Row {
        Row {
            time_ns: time_ms * 1_000_000,
            kind,
            subflow: 0,
            seq,
            len,
        }
    }

    #[test]
    fn a_segment_and_its_ack() {
        let graph = graph(&[
            row(0, Kind::Ack, 1, 0),
            row(5, Kind::Data, 1, 1000),
            row(1025, Kind::Ack, 1001, 0),
        ]);
        assert_eq!(
            graph,
            "timeval unsigned\ntitle\nphone ==> server\nxlabel\ntime\nylabel\nsequence number\n\
             green\n\
             white\ndarrow 0.005000 1\nuarrow 0.005000 1001\nline 0.005000 1 0.005000 1001\n\
             green\nline 0.000000 1 1.025000 1\nline 1.025000 1 1.025000 1001\n\
             go\n"
        );
    }

    #[test]
    fn a_duplicate_ack_is_a_tick() {
        let graph = graph(&[row(0, Kind::Ack, 1, 0), row(1, Kind::Ack, 1, 0)]);
        assert!(graph.contains("dtick 0.001000 1\n"), "{graph}");
    }

    #[test]
    fn subflows_have_their_colours_and_staircases() {
        let of = |subflow, row: Row| Row { subflow, ..row };
        let graph = graph(&[
            of(0, row(0, Kind::Ack, 1, 0)),
            of(1, row(1, Kind::Ack, 500, 0)),
            of(1, row(2, Kind::Data, 1, 10)),
            of(0, row(3, Kind::Ack, 11, 0)),
        ]);
        assert!(graph.contains("blue\ndarrow 0.002000 1\n"), "{graph}");
        assert!(graph.contains("line 0.000000 1 0.003000 1\n"), "{graph}");
    }
}
