//! The size of a Parquet file's content, from its footer and the headers of its pages. Nothing is decompressed.
//!
//! The format: github.com/apache/parquet-format, `parquet.thrift` and README; Thrift's compact protocol:
//! github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const MAGIC: &[u8] = b"PAR1";
/// Memory of a page besides its content, so that empty ones do not come for nothing.
const PAGE_BYTES: u64 = 256;
/// Of a page's header so much is read at first, and then more.
const HEADER_BYTES: [u64; 4] = [1 << 8, 1 << 14, 1 << 20, 1 << 24];
/// How deep structures lie in each other; the format needs six.
const DEEPEST: usize = 16;
/// Encodings whose values take no more room than their number and their pages tell: PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY.
const ENCODINGS: [i64; 4] = [0, 2, 3, 8];

/// The values of each column of a Parquet file, and the bytes of its pages without compression. Both are the largest
/// that any part of the file says. Ends early once one is more than `most`. Raises OSError, and ValueError for what is
/// no such file.
#[pyfunction]
pub(crate) fn parquet_size(py: Python<'_>, path: PathBuf, most: u64) -> PyResult<(Vec<u64>, u64)> {
    let size = py.detach(|| File::open(path).and_then(|file| measure(file, most)))?;
    size.ok_or_else(|| PyValueError::new_err("not a Parquet file as results have it"))
}

fn measure(mut file: File, most: u64) -> io::Result<Option<(Vec<u64>, u64)>> {
    let length = file.seek(SeekFrom::End(0))?;
    let Some(tail) = length.checked_sub(8) else {
        return Ok(None);
    };
    let end = window(&mut file, tail, 8)?;
    let (footer, magic) = end.split_at(end.len().min(4));
    let Ok(footer) = footer.try_into().map(u32::from_le_bytes).map(u64::from) else {
        return Ok(None);
    };
    if magic != MAGIC || footer > tail {
        return Ok(None);
    }
    let footer = window(&mut file, tail - footer, footer)?;
    let Some(found) = Footer::read(&mut Thrift::new(&footer)) else {
        return Ok(None);
    };
    let columns = found.groups.first().map_or(0, |group| group.chunks.len());
    let (mut values, mut bytes) = (vec![0_u64; columns], 0_u64);
    for group in &found.groups {
        if group.chunks.len() != columns {
            return Ok(None);
        }
        for (chunk, total) in group.chunks.iter().zip(&mut values) {
            let Some(inside) = pages(&mut file, chunk, &mut bytes, most)? else {
                return Ok(None);
            };
            *total = total.saturating_add(inside.max(chunk.values).max(group.rows));
            if *total > most || bytes > most {
                return Ok(Some((values, bytes)));
            }
        }
    }
    for total in &mut values {
        *total = found.rows.max(*total);
    }
    Ok(Some((values, bytes)))
}

/// The values of a column's pages, whose bytes are added.
fn pages(file: &mut File, chunk: &Chunk, bytes: &mut u64, most: u64) -> io::Result<Option<u64>> {
    let (mut at, mut values) = (chunk.begin, 0_u64);
    let Some(end) = chunk.begin.checked_add(chunk.compressed) else {
        return Ok(None);
    };
    while at < end && *bytes <= most {
        let mut found = None;
        for room in HEADER_BYTES {
            let room = room.min(end - at);
            let header = window(file, at, room)?;
            let mut thrift = Thrift::new(&header);
            found = Page::read(&mut thrift).map(|page| (page, thrift.at as u64));
            if found.is_some() || header.len() as u64 == end - at {
                break;
            }
        }
        let Some((page, header)) = found else {
            return Ok(None);
        };
        if !ENCODINGS.contains(&page.encoding) {
            return Ok(None);
        }
        values = values.saturating_add(page.values);
        *bytes = bytes.saturating_add(page.uncompressed.saturating_add(PAGE_BYTES));
        at = at.saturating_add(header).saturating_add(page.compressed);
    }
    Ok(Some(values))
}

/// At most so many bytes of the file from `at` on.
fn window(file: &mut File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What of a `FileMetaData` counts.
#[derive(Default)]
struct Footer {
    rows: u64,
    groups: Vec<Group>,
}

#[derive(Default)]
struct Group {
    rows: u64,
    chunks: Vec<Chunk>,
}

/// Where the pages of a column are.
#[derive(Default)]
struct Chunk {
    values: u64,
    compressed: u64,
    begin: u64,
}

#[derive(Default)]
struct Page {
    uncompressed: u64,
    compressed: u64,
    /// None of a page that has a dictionary or an index.
    values: u64,
    encoding: i64,
}

impl Footer {
    fn read(thrift: &mut Thrift<'_>) -> Option<Self> {
        let mut found = Self::default();
        thrift.fields(|thrift, id, kind| match id {
            3 => thrift.size(kind).map(|rows| found.rows = rows),
            4 => thrift.list(kind, |thrift| {
                Group::read(thrift).map(|group| found.groups.push(group))
            }),
            _ => thrift.skip(kind, 0),
        })?;
        Some(found)
    }
}

impl Group {
    fn read(thrift: &mut Thrift<'_>) -> Option<Self> {
        let mut found = Self::default();
        thrift.fields(|thrift, id, kind| match id {
            1 => thrift.list(kind, |thrift| {
                Chunk::read(thrift).map(|chunk| found.chunks.push(chunk))
            }),
            3 => thrift.size(kind).map(|rows| found.rows = rows),
            _ => thrift.skip(kind, 0),
        })?;
        Some(found)
    }
}

impl Chunk {
    fn read(thrift: &mut Thrift<'_>) -> Option<Self> {
        let mut found = None;
        thrift.fields(|thrift, id, kind| match id {
            1 => None, // its pages are in another file
            3 => {
                found = Some(Self::described(thrift, kind)?);
                Some(())
            }
            _ => thrift.skip(kind, 0),
        })?;
        found
    }

    fn described(thrift: &mut Thrift<'_>, kind: u8) -> Option<Self> {
        let (mut found, mut data, mut dictionary) = (Self::default(), None, None);
        thrift.is(kind, STRUCT)?;
        thrift.fields(|thrift, id, kind| {
            match id {
                5 => found.values = thrift.size(kind)?,
                7 => found.compressed = thrift.size(kind)?,
                9 => data = Some(thrift.size(kind)?),
                11 => dictionary = Some(thrift.size(kind)?),
                _ => thrift.skip(kind, 0)?,
            }
            Some(())
        })?;
        // Some writers say 0 where there is no dictionary; others begin there.
        found.begin = match dictionary {
            Some(at) if at > 0 => at.min(data?),
            _ => data?,
        };
        Some(found)
    }
}

impl Page {
    fn read(thrift: &mut Thrift<'_>) -> Option<Self> {
        let mut found = Self::default();
        thrift.fields(|thrift, id, kind| match id {
            2 => thrift.size(kind).map(|size| found.uncompressed = size),
            3 => thrift.size(kind).map(|size| found.compressed = size),
            5 | 8 => {
                thrift.is(kind, STRUCT)?;
                let of_encoding = if id == 5 { 2 } else { 4 };
                thrift.fields(|thrift, inner, kind| match inner {
                    1 => thrift.size(kind).map(|values| found.values = values),
                    _ if inner == of_encoding => {
                        thrift.int(kind).map(|encoding| found.encoding = encoding)
                    }
                    _ => thrift.skip(kind, 0),
                })
            }
            _ => thrift.skip(kind, 0),
        })?;
        Some(found)
    }
}

const BYTE: u8 = 3;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Thrift's compact protocol; each method gives None where the bytes end or are none.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn is(&self, kind: u8, wanted: u8) -> Option<()> {
        (kind == wanted).then_some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn advance(&mut self, count: u64) -> Option<()> {
        let at = self.at.checked_add(usize::try_from(count).ok()?)?;
        (at <= self.bytes.len()).then(|| self.at = at)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn int(&mut self, kind: u8) -> Option<i64> {
        if !(BYTE + 1..=I64).contains(&kind) {
            return None;
        }
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that is not negative.
    fn size(&mut self, kind: u8) -> Option<u64> {
        self.int(kind)?.try_into().ok()
    }

    /// Each field of a structure, in the order of their numbers; `take` reads its value.
    fn fields(&mut self, mut take: impl FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        let mut last = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            let id = match head >> 4 {
                0 => self.int(I64)?,
                more => last + i64::from(more),
            };
            if id <= last || id > i64::from(i16::MAX) {
                return None;
            }
            last = id;
            take(self, id, head & 0xf)?;
        }
    }

    fn items(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        Some((head & 0xf, count))
    }

    /// Each structure of a list.
    fn list(&mut self, kind: u8, mut take: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.is(kind, LIST)?;
        let (of, count) = self.items()?;
        if count > 0 {
            self.is(of, STRUCT)?;
        }
        (0..count).try_for_each(|_| take(self))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            1 | 2 => Some(()),
            BYTE => self.advance(1),
            4..=I64 => self.varint().map(|_| ()),
            DOUBLE => self.advance(8),
            BINARY => {
                let length = self.varint()?;
                self.advance(length)
            }
            LIST | SET => {
                let (of, count) = self.items()?;
                (0..count).try_for_each(|_| self.skip_item(of, depth))
            }
            MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip_item(kinds >> 4, depth)?;
                    self.skip_item(kinds & 0xf, depth)
                })
            }
            STRUCT => self.fields(|thrift, _, kind| thrift.skip(kind, depth + 1)),
            _ => None,
        }
    }

    /// As a field, but that a truth value takes a byte of its own.
    fn skip_item(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            1 | 2 => self.advance(1),
            _ => self.skip(kind, depth + 1),
        }
    }
}
