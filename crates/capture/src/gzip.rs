//! What a file holds that gzip has compressed.

use std::io::{BufRead, Read, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;

/// How such a file begins (RFC 1952 section 2.3.1).
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads as many bytes as there is room for, until the end or damage: a parser takes a short first read for a damaged beginning,
/// and an error of the second for one of the first.
pub struct Decoder<R> {
    inner: MultiGzDecoder<R>,
    damage: Damage,
}

/// Whether a decoder met damage, which is the end of what it reads.
#[derive(Clone, Default)]
pub struct Damage(Arc<AtomicBool>);

impl Damage {
    pub fn is_met(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<R: BufRead> Decoder<R> {
    pub fn new(compressed: R) -> Self {
        Self {
            inner: MultiGzDecoder::new(compressed),
            damage: Damage::default(),
        }
    }

    pub fn damage(&self) -> Damage {
        self.damage.clone()
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < room.len() && !self.damage.is_met() {
            match self.inner.read(&mut room[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(_) => self.damage.0.store(true, Ordering::Relaxed),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::Decoder;

    fn compressed(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// What one read gives, and whether the next one ends in damage.
    fn read(file: &[u8]) -> (Vec<u8>, bool) {
        let mut decoder = Decoder::new(file);
        let mut room = vec![0; 1 << 20];
        let filled = decoder.read(&mut room).unwrap();
        room.truncate(filled);
        assert_eq!(decoder.read(&mut [0; 16]).unwrap(), 0);
        (room, decoder.damage().is_met())
    }

    #[test]
    fn one_read_fills_the_room_from_several_members() {
        let content: Vec<u8> = (0..200_000_u32)
            .map(|each| each.wrapping_mul(each).to_le_bytes()[1])
            .collect();
        let file = [compressed(&content[..30]), compressed(&content[30..])].concat();
        assert_eq!(read(&file), (content, false));
        assert_eq!(read(&compressed(&[])), (Vec::new(), false));
    }

    #[test]
    fn damage_is_the_end() {
        let content: Vec<u8> = (0..200_000_u32)
            .map(|each| each.wrapping_mul(each).to_le_bytes()[1])
            .collect();
        let whole = compressed(&content);
        let cut = read(&whole[..whole.len() / 2]);
        assert!(cut.1 && !cut.0.is_empty() && content.starts_with(&cut.0));
        let without_checksum = read(&whole[..whole.len() - 8]);
        assert_eq!(without_checksum, (content.clone(), true));
        let more = [whole, b"no gzip".to_vec()].concat();
        assert_eq!(read(&more), (content, true));
        assert_eq!(read(b"\x1f\x8b"), (Vec::new(), true));
    }
}
