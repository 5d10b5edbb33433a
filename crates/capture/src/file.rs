//! Frames of a pcap or pcapng file, one after another, whichever the format, compressed by gzip or not.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use pcap_parser::pcapng::{Block, SecretsType};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{PcapBlockOwned, PcapError, create_reader};

use crate::link::LinkType;
use crate::{Error, gzip};

/// Bytes of the file in memory; a block that is longer makes more room, up to [`LONGEST_BLOCK`].
const BUFFER: usize = 1 << 20;
/// A longer block is damage.
const LONGEST_BLOCK: usize = 64 << 20;
const NOT_WHOLE: &str = "its gzip data are cut or damaged";
const SECOND: i128 = 1_000_000_000;

/// Where frames were captured.
#[derive(Clone, Debug)]
pub struct Interface {
    /// As the file calls it.
    pub name: Option<String>,
    /// Or the number of one that is not known.
    link: Result<LinkType, i32>,
    /// Of what a frame's time counts: so many in a second.
    units: u64,
    offset_s: i64,
}

/// The present section of a pcapng file.
#[derive(Clone, Copy, Debug, Default)]
struct Section {
    /// Position of its first interface.
    first: usize,
    big_endian: bool,
}

/// A captured frame.
pub struct Frame<'a> {
    pub time_ns: i64,
    /// Position among the interfaces of the file.
    pub interface: usize,
    pub link: LinkType,
    pub bytes: &'a [u8],
    /// Length that the frame had, of which `bytes` may be a part.
    pub wire_len: usize,
}

/// What became of a file.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct FileReport {
    pub file: String,
    pub interfaces: Vec<String>,
    /// Frames of whatever protocol.
    pub packets: u64,
    /// What is to be said of it: damage, or what is not understood.
    pub notes: Vec<String>,
}

pub struct Reader {
    path: PathBuf,
    source: Box<dyn PcapReaderIterator + Send>,
    compression: gzip::Damage,
    /// Of all sections.
    interfaces: Vec<Interface>,
    section: Section,
    packets: u64,
    /// Frames of link types that are not known, by their numbers, and with times that are none.
    unknown: BTreeMap<i32, u64>,
    timeless: u64,
    /// Of interfaces that the file does not describe.
    strays: u64,
    /// Of the block before, which is still in the buffer.
    taken: usize,
    damage: Option<String>,
    done: bool,
    /// Lines of a key log that stood among the frames.
    secrets: String,
}

impl Reader {
    /// # Errors
    /// Where there is no file, or no capture in it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let unreadable = |error: std::io::Error| Error::Unreadable {
            path: path.to_owned(),
            reason: error
                .to_string()
                .split(" (os error")
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(Error::Unreadable {
                path: path.to_owned(),
                reason: "is a folder; name the capture files in it".to_owned(),
            });
        }
        let mut file = BufReader::new(file);
        let begin = file.fill_buf().map_err(unreadable)?;
        let (source, compression) = if begin.starts_with(&gzip::MAGIC) {
            let file = gzip::Decoder::new(file);
            let damage = file.damage();
            (create_reader(BUFFER, file), damage)
        } else {
            (create_reader(BUFFER, file), gzip::Damage::default())
        };
        let source = source.map_err(|error| match error {
            PcapError::ReadError => Error::Unreadable {
                path: path.to_owned(),
                reason: "cannot be read".to_owned(),
            },
            _ if compression.is_met() => Error::Unreadable {
                path: path.to_owned(),
                reason: NOT_WHOLE.to_owned(),
            },
            _ => Error::NoCapture {
                path: path.to_owned(),
            },
        })?;
        Ok(Self {
            path: path.to_owned(),
            source,
            compression,
            interfaces: Vec::new(),
            section: Section::default(),
            packets: 0,
            unknown: BTreeMap::new(),
            timeless: 0,
            strays: 0,
            taken: 0,
            damage: None,
            done: false,
            secrets: String::new(),
        })
    }

    /// The secrets of TLS that stood among the frames up to here, as lines of a key log.
    pub fn secrets(&self) -> &str {
        &self.secrets
    }

    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Takes the next frame and hands it over; false at the end, which damage brings about, too.
    pub fn next(&mut self, take: impl FnOnce(&Frame)) -> bool {
        let mut take = Some(take);
        while !self.done {
            if self.taken > 0 {
                self.source.consume(std::mem::take(&mut self.taken));
            }
            let trouble = match self.source.next() {
                Ok((len, block)) => {
                    self.taken = len;
                    if let PcapBlockOwned::NG(Block::DecryptionSecrets(found)) = &block
                        && found.secrets_type == SecretsType::TlsKeyLog
                    {
                        let len = found.data.len().min(found.secrets_len as usize);
                        let log = String::from_utf8_lossy(&found.data[..len]);
                        self.secrets.push_str(&log);
                        self.secrets.push('\n');
                    }
                    match read(&block, &mut self.interfaces, &mut self.section) {
                        Read::Frame(frame) => {
                            self.packets += 1;
                            if let Some(take) = take.take() {
                                take(&frame);
                            }
                            return true;
                        }
                        Read::Skipped(why) => {
                            self.packets += 1;
                            match why {
                                Why::LinkType(number) => {
                                    *self.unknown.entry(number).or_default() += 1;
                                }
                                Why::Interface => self.strays += 1,
                                Why::Time => self.timeless += 1,
                            }
                        }
                        Read::Other => {}
                    }
                    continue;
                }
                Err(error) => Trouble::of(&error),
            };
            self.more(trouble);
        }
        false
    }

    /// Reads on where the buffer holds a part of a block.
    fn more(&mut self, trouble: Trouble) {
        let ends = match trouble {
            Trouble::End => None,
            Trouble::Part => match self.source.refill() {
                Ok(()) => return,
                Err(_) => Some("reading failed"),
            },
            Trouble::Small => {
                let room = self.source.data().len().max(BUFFER) * 2;
                if room <= LONGEST_BLOCK && self.source.grow(room) {
                    if self.source.refill().is_ok() {
                        return;
                    }
                    Some("reading failed")
                } else {
                    Some("a block of more bytes than a capture has")
                }
            }
            Trouble::Cut => Some("the file ends within a packet"),
            Trouble::Damaged => Some("what follows is damaged"),
        };
        let ends = if self.compression.is_met() {
            Some(NOT_WHOLE)
        } else {
            ends
        };
        self.done = true;
        self.damage = ends.map(|what| {
            let after = self.packets;
            format!("{what}; {after} packets before it are read")
        });
    }

    pub fn report(&self) -> FileReport {
        let mut notes: Vec<_> = self.damage.iter().cloned().collect();
        for (number, count) in &self.unknown {
            notes.push(format!(
                "{count} packets of link type {number}, which is not read, are left out"
            ));
        }
        for (count, what) in [
            (
                self.strays,
                "of an interface that the file does not describe",
            ),
            (self.timeless, "with a time that is none"),
        ] {
            if count > 0 {
                notes.push(format!("{count} packets {what} are left out"));
            }
        }
        FileReport {
            file: self.path.display().to_string(),
            interfaces: self
                .interfaces
                .iter()
                .filter_map(|interface| interface.name.clone())
                .collect(),
            packets: self.packets,
            notes,
        }
    }
}

/// What stands in the way of the next block.
#[derive(Clone, Copy)]
enum Trouble {
    End,
    Part,
    Small,
    Cut,
    Damaged,
}

impl Trouble {
    fn of(error: &PcapError<&[u8]>) -> Self {
        match error {
            PcapError::Eof => Self::End,
            PcapError::Incomplete(_) => Self::Part,
            PcapError::BufferTooSmall => Self::Small,
            PcapError::UnexpectedEof => Self::Cut,
            _ => Self::Damaged,
        }
    }
}

fn known(number: i32) -> Result<LinkType, i32> {
    LinkType::of(number).ok_or(number)
}

#[derive(Clone, Copy)]
enum Why {
    /// Of the interface's link type.
    LinkType(i32),
    /// The file does not describe the interface.
    Interface,
    Time,
}

enum Read<'a> {
    Frame(Frame<'a>),
    Skipped(Why),
    Other,
}

fn read<'a>(
    block: &'a PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    section: &mut Section,
) -> Read<'a> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            interfaces.push(Interface {
                name: None,
                // Above these 16 bits is the length of the FCS (draft-ietf-opsawg-pcap section 4).
                link: known(header.network.0 & 0xffff),
                units: if header.is_nanosecond_precision() {
                    1_000_000_000
                } else {
                    1_000_000
                },
                offset_s: 0,
            });
            Read::Other
        }
        PcapBlockOwned::Legacy(packet) => {
            let units = interfaces.first().map_or(1_000_000, |it| it.units);
            let ticks = u64::from(packet.ts_sec) * units + u64::from(packet.ts_usec);
            let kept = packet.data.len().min(packet.caplen as usize);
            frame(interfaces, 0, ticks, &packet.data[..kept], packet.origlen)
        }
        PcapBlockOwned::NG(Block::SectionHeader(header)) => {
            *section = Section {
                first: interfaces.len(),
                big_endian: header.big_endian(),
            };
            Read::Other
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
            let name = described.if_name().and_then(Result::ok);
            interfaces.push(Interface {
                name: name
                    .map(|name| name.trim_matches('\0').to_owned())
                    .filter(|name| !name.is_empty()),
                link: known(described.linktype.0),
                units: units(described.if_tsresol),
                // The parser takes it for little-endian in every section.
                offset_s: if section.big_endian {
                    described.if_tsoffset.swap_bytes()
                } else {
                    described.if_tsoffset
                },
            });
            Read::Other
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let kept = packet.data.len().min(packet.caplen as usize);
            let interface = section.first + packet.if_id as usize;
            let bytes = &packet.data[..kept];
            frame(interfaces, interface, ticks, bytes, packet.origlen)
        }
        // Has no time (draft-ietf-opsawg-pcapng section 4.4).
        PcapBlockOwned::NG(Block::SimplePacket(_)) => Read::Skipped(Why::Time),
        PcapBlockOwned::NG(_) => Read::Other,
    }
}

/// Ticks in a second by if_tsresol (draft-ietf-opsawg-pcapng section 4.2); 0 for what no time has.
fn units(resolution: u8) -> u64 {
    let power = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(power).unwrap_or(0)
}

fn frame<'a>(
    interfaces: &[Interface],
    interface: usize,
    ticks: u64,
    bytes: &'a [u8],
    wire_len: u32,
) -> Read<'a> {
    let Some(described) = interfaces.get(interface) else {
        return Read::Skipped(Why::Interface);
    };
    let link = match described.link {
        Ok(link) => link,
        Err(number) => return Read::Skipped(Why::LinkType(number)),
    };
    let ns = i128::from(ticks)
        .saturating_mul(SECOND)
        .checked_div(i128::from(described.units))
        .map(|ns| ns + i128::from(described.offset_s) * SECOND);
    let Some(time_ns) = ns.and_then(|ns| i64::try_from(ns).ok()) else {
        return Read::Skipped(Why::Time);
    };
    Read::Frame(Frame {
        time_ns,
        interface,
        link,
        bytes,
        wire_len: (wire_len as usize).max(bytes.len()),
    })
}
