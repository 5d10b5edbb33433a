//! From captures of real traffic to a Recording: connections of TCP and Multipath TCP with their subflows, and of QUIC with their paths.
//!
//! Files are read twice. The first reading finds the connections, the subflows that belong together, and the distance
//! of each place of capture to either end. The second follows every segment at the place nearest to its sender and at
//! the one nearest to its receiver.
//!
//! If several interfaces turn out to be one place, the first reading is repeated with them as one. Memory grows with
//! the packets under way and with the tables, not with the files.

mod analysis;
mod blocking;
mod clocks;
mod connection;
mod error;
mod file;
mod flows;
pub mod fuzz;
mod gzip;
mod half;
mod hosts;
mod instants;
mod join;
mod keys;
mod layers;
mod link;
mod notes;
mod packet;
mod places;
mod quic;
mod ranges;
mod signals;
mod stream;
mod survey;
mod tables;

use std::path::PathBuf;

use arrow_array::RecordBatch;

use analysis::{Analysis, Settings};
use hosts::Hosts;
use packet::Merged;
use quic::{Datagram, KeyLog, Quic};
use survey::Survey;

pub use error::Error;
pub use notes::Told;
pub use quic::keys as quic_keys;

/// What is wanted of a trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Time between samples.
    pub interval_ns: i64,
    /// Whether there is a row for each segment. They take some 50 bytes of memory each.
    pub segments: bool,
    /// Secrets of TLS for what is sealed, as lines of a key log (SSLKEYLOGFILE); those in the captures are known besides.
    pub keys: String,
}

/// What came of captures.
pub struct Traced {
    pub tables: Vec<(&'static str, RecordBatch)>,
    pub hash: [u8; 32],
    pub end_ns: i64,
    pub told: Told,
}

/// Reads captures, of which several may be of the same traffic at different places. `progress` is told packets that were read, and
/// ends the trace by giving false: what was read until then is a result.
///
/// # Errors
/// Where a file is no capture, or none has a segment of TCP. Damage is told in [`Traced::told`] instead.
pub fn trace(
    paths: &[PathBuf],
    options: &Options,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<Traced, Error> {
    let mut survey = Survey::default();
    let mut files = Merged::open(paths, &[])?;
    let mut interrupted = !survey.read(&mut files, u64::MAX, &mut progress);
    let mut read = survey.packets;
    let datagrams = files.others.datagrams();
    if survey.packets == 0 && datagrams == 0 {
        return Err(nothing(&files));
    }
    if !interrupted && let Some(mut again) = survey.again() {
        let all = again.read(&mut Merged::open(paths, &[])?, read, |packets| {
            progress(read + packets)
        });
        // What is not surveyed again is not followed either.
        interrupted = !all;
        read += again.packets;
        survey = again;
    }
    let known = clocks::ahead(&survey, paths.len());
    let ahead: Vec<i64> = known.iter().map(|it| it.unwrap_or_default()).collect();
    survey.settle(&ahead);
    let unchecked = clocks::unchecked(&survey, &known);
    let surveyed = survey.packets;
    let joined = join::join(&survey);
    let settings = Settings {
        interval_ns: options.interval_ns.max(1),
        segments: options.segments,
    };
    let first_ns = joined.iter().map(|connection| connection.first_ns).min();
    let mut quic = (datagrams > 0 && !interrupted)
        .then(|| {
            let mut log = KeyLog::default();
            log.read(&options.keys);
            files.secrets().for_each(|lines| log.read(lines));
            let mut quic = Quic::new(&settings, log, joined.len(), first_ns);
            let mut files = Merged::<Datagram>::open(paths, &ahead)?;
            while let Some(datagram) = files.next() {
                quic.see(&datagram);
                read += 1;
                if read % STEP == 0 && !progress(read) {
                    interrupted = true;
                    break;
                }
            }
            Ok(quic)
        })
        .transpose()?
        .filter(|quic| !quic.connections.is_empty());
    let zero_ns = quic.as_ref().and_then(Quic::zero_ns).or(first_ns);
    let Some(zero_ns) = zero_ns else {
        return Err(nothing(&files));
    };
    let hosts = Hosts::of(&joined, &survey, &files, quic.as_ref());
    let mut analysis = Analysis::new(&mut survey, joined, &hosts, &settings, zero_ns);
    let mut files = Merged::open(paths, &ahead)?;
    let mut packets = 0;
    while packets < surveyed
        && let Some(packet) = files.next()
    {
        analysis.see(&packet);
        packets += 1;
        if packets % STEP == 0 && !interrupted && !progress(read + packets) {
            interrupted = true;
            break;
        }
    }
    analysis.finish();
    if let Some(quic) = &mut quic {
        analysis.end_ns = analysis.end_ns.max(quic.end_ns);
        quic.finish(&mut analysis.recording, &hosts, analysis.end_ns);
    }
    let told = Told::of(
        &analysis,
        quic.as_ref(),
        &hosts,
        &files,
        (&ahead, &unchecked),
        interrupted,
    );
    Ok(Traced {
        tables: tables::batches(&analysis.recording),
        hash: analysis.recording.hash(),
        end_ns: analysis.end_ns,
        told,
    })
}

/// No file has anything that is followed.
fn nothing(files: &Merged) -> Error {
    let reports = files.reports();
    let names: Vec<_> = reports.iter().map(|report| report.file.as_str()).collect();
    Error::NoTcp {
        what: names.join(", "),
        packets: reports.iter().map(|report| report.packets).sum(),
        why: reports
            .iter()
            .flat_map(|report| &report.notes)
            .map(|note| format!("; {note}"))
            .collect(),
    }
}

/// Packets between two looks at whether to go on.
const STEP: u64 = 1 << 14;
