//! The content of streams. A connection itself knows only lengths and offsets.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The bytes of a stream that is sent. A stretch may be asked for again, as long as it is not acknowledged.
pub(super) trait Source {
    fn fill(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

impl Source for File {
    fn fill(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }
}

impl Source for Vec<u8> {
    fn fill(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..));
        let piece = rest.and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(piece.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Bytes of a stream that came and were not read, each of them once. How many there are is bounded by the window that the connection offers.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Bytes that were read.
    read: u64,
    /// By offset; none overlaps the next.
    held: BTreeMap<u64, Vec<u8>>,
}

impl Pieces {
    /// Keeps what is new of a stretch.
    pub fn put(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let mut at = offset.max(self.read);
        while at < end {
            let before = self.held.range(..=at).next_back();
            let covered = before.map_or(0, |(start, held)| start + held.len() as u64);
            if covered > at {
                at = covered;
                continue;
            }
            let next = self.held.range(at..).next();
            let until = next.map_or(end, |(start, _)| end.min(*start));
            let piece = &bytes[(at - offset) as usize..(until - offset) as usize];
            self.held.insert(at, piece.to_vec());
            at = until;
        }
    }

    /// Hands over the next `count` bytes in order.
    ///
    /// # Panics
    /// They have not come.
    pub fn take(
        &mut self,
        count: u64,
        into: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let end = self.read + count;
        while self.read < end {
            let mut piece = self.held.remove(&self.read).expect("bytes in order");
            let len = (piece.len() as u64).min(end - self.read);
            let rest = piece.split_off(len as usize);
            self.read += len;
            if !rest.is_empty() {
                self.held.insert(self.read, rest);
            }
            into(&piece)?;
        }
        Ok(())
    }

    /// Nothing more is read: what is repeated is not kept.
    pub fn end(&mut self) {
        self.read = u64::MAX;
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polypath_wire::payload;
    use proptest::prelude::*;

    const LEN: u64 = 200;

    fn stream() -> Vec<u8> {
        let mut bytes = vec![0; LEN as usize];
        payload::fill(1, 0, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn stretches_in_any_order_are_one_stream(
            stretches in prop::collection::vec((0..LEN, 0..60u64, 0..40u64), 0..40),
        ) {
            let bytes = stream();
            let (mut pieces, mut came) = (Pieces::default(), vec![false; LEN as usize]);
            let mut read = Vec::new();
            let whole = (0, LEN, LEN);
            for (offset, len, wanted) in stretches.into_iter().chain([whole]) {
                let range = offset as usize..(offset + len).min(LEN) as usize;
                pieces.put(offset, &bytes[range.clone()]);
                came[range].fill(true);
                let ready = came[read.len()..].iter().take_while(|came| **came).count();
                let mut into = |piece: &[u8]| {
                    read.extend_from_slice(piece);
                    Ok(())
                };
                pieces.take(wanted.min(ready as u64), &mut into).expect("takes all");
                let held: usize = pieces.held.values().map(Vec::len).sum();
                let unread = came[read.len()..].iter().filter(|came| **came).count();
                prop_assert_eq!(held, unread);
            }
            prop_assert_eq!(read, bytes);
        }
    }
}
