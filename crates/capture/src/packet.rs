//! Segments of all files in the order of time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use polypath_wire::tcp::Segment;
use polypath_wire::{ip, tcp};

use crate::Error;
use crate::file::{FileReport, Frame, Reader};
use crate::layers::{self, Left, Other};

/// Where a segment was seen: position of the file, and of the interface in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tap {
    pub file: u16,
    pub interface: u16,
}

/// A segment as it passed a tap.
#[derive(Debug)]
pub struct Packet {
    pub time_ns: i64,
    pub tap: Tap,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub segment: Segment,
    /// Of the IP packet, which version 6 does not have.
    pub identification: Option<u16>,
    /// Whether the checksum is right, of a segment that was captured whole.
    pub intact: Option<bool>,
    /// The capture ends within its options.
    cut: bool,
}

/// What is read of frames: segments, or datagrams.
pub trait Read: Sized {
    /// What a frame holds of that; time and tap are the caller's.
    fn parse(frame: &Frame) -> Result<Self, Left>;

    fn place(self, time_ns: i64, tap: Tap) -> Self;

    fn time_ns(&self) -> i64;

    /// Whether the capture ends within its options.
    fn is_cut(&self) -> bool {
        false
    }
}

/// Packets that are not followed, or not in all.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// Not TCP, by what they are.
    pub other: BTreeMap<Other, u64>,
    /// Pieces of IP packets, and TCP of which too little was captured.
    pub unreadable: u64,
    /// TCP of which not all options were captured.
    pub cut: u64,
}

impl Others {
    /// Of UDP, whatever they carry.
    pub fn datagrams(&self) -> u64 {
        let udp = Other::Protocol(ip::protocol::UDP);
        self.other.get(&udp).copied().unwrap_or_default()
    }
}

/// Merges files by time. Each is read as it was written: a frame out of order within a file stays where it is.
pub struct Merged<T = Packet> {
    readers: Vec<Reader>,
    /// The next one of each file.
    heads: Vec<Option<T>>,
    /// Nanoseconds that a file's clock is ahead of the first one's.
    ahead: Vec<i64>,
    pub others: Others,
}

impl<T: Read> Merged<T> {
    /// # Errors
    /// Where a file is no capture.
    pub fn open(paths: &[PathBuf], ahead: &[i64]) -> Result<Self, Error> {
        let readers = paths
            .iter()
            .map(|path| Reader::open(path))
            .collect::<Result<Vec<_>, _>>()?;
        let mut merged = Self {
            heads: readers.iter().map(|_| None).collect(),
            ahead: ahead.to_vec(),
            readers,
            others: Others::default(),
        };
        for file in 0..merged.readers.len() {
            merged.advance(file);
        }
        Ok(merged)
    }

    /// The next one of all files.
    pub fn next(&mut self) -> Option<T> {
        let file = (0..self.heads.len())
            .filter(|&file| self.heads[file].is_some())
            .min_by_key(|&file| self.heads[file].as_ref().map(T::time_ns))?;
        let packet = self.heads[file].take();
        self.advance(file);
        packet
    }

    fn advance(&mut self, file: usize) {
        let ahead = self.ahead.get(file).copied().unwrap_or(0);
        let (heads, others) = (&mut self.heads, &mut self.others);
        while heads[file].is_none() {
            let more = self.readers[file].next(|frame| match T::parse(frame) {
                Ok(found) => {
                    others.cut += u64::from(found.is_cut());
                    let tap = Tap {
                        file: file as u16,
                        interface: frame.interface.min(usize::from(u16::MAX)) as u16,
                    };
                    heads[file] = Some(found.place(frame.time_ns.saturating_sub(ahead), tap));
                }
                Err(Left::Unreadable) => others.unreadable += 1,
                Err(Left::Other(what)) => *others.other.entry(what).or_default() += 1,
            });
            if !more {
                return;
            }
        }
    }

    /// What the file calls the interface of a tap.
    pub fn interface_name(&self, tap: Tap) -> Option<&str> {
        let interfaces = self.readers[usize::from(tap.file)].interfaces();
        interfaces.get(usize::from(tap.interface))?.name.as_deref()
    }

    pub fn reports(&self) -> Vec<FileReport> {
        self.readers.iter().map(Reader::report).collect()
    }

    /// The secrets of TLS that the files have had up to here, as lines of a key log.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.readers.iter().map(Reader::secrets)
    }
}

impl Read for Packet {
    fn parse(frame: &Frame) -> Result<Self, Left> {
        let (header, kept, len) =
            layers::innermost(frame.link, frame.bytes, frame.wire_len, ip::protocol::TCP)?;
        let identification = match &header {
            ip::Header::V4(header) => Some(header.identification),
            ip::Header::V6(_) => None,
        };
        let (source_port, destination_port, segment) =
            tcp::parse_cut(kept, len).map_err(|_| Left::Unreadable)?;
        let (source, destination) = header.addresses();
        let whole = kept.len() == len;
        Ok(Self {
            time_ns: frame.time_ns,
            tap: Tap::default(),
            source: SocketAddr::new(source, source_port),
            destination: SocketAddr::new(destination, destination_port),
            segment,
            identification,
            cut: kept.len() < usize::from(kept[12] >> 4) * 4,
            intact: whole.then(|| tcp::verify_checksum(kept, (source, destination))),
        })
    }

    fn place(self, time_ns: i64, tap: Tap) -> Self {
        Self {
            time_ns,
            tap,
            ..self
        }
    }

    fn time_ns(&self) -> i64 {
        self.time_ns
    }

    fn is_cut(&self) -> bool {
        self.cut
    }
}
