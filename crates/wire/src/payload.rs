//! The bytes of an application stream as a function of their offset.
//!
//! No payload is stored anywhere. A capture or a live interface asks for the bytes when it needs them. A receiver can
//! check any part of a stream independently. The bytes are the letters a to p. Binary bytes would occasionally look
//! like some protocol's header to Wireshark's heuristic dissectors.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes that come from one mixing.
const WORD: u64 = 8;

/// Four bits of each byte choose its letter.
const BITS: u64 = u64::from_ne_bytes([0x0f; 8]);
const LETTERS: u64 = u64::from_ne_bytes([b'a'; 8]);

/// The byte at `offset` of the stream `stream` (any number that names connection and direction).
pub fn byte(stream: u64, offset: u64) -> u8 {
    word(stream, offset / WORD)[(offset % WORD) as usize]
}

/// Fills `out` with the stream's bytes from `offset` on. Offsets wrap at 2^64.
pub fn fill(stream: u64, offset: u64, out: &mut [u8]) {
    let mut index = offset / WORD;
    let skip = (offset % WORD) as usize;
    let head_len = if skip == 0 {
        0
    } else {
        out.len().min(WORD as usize - skip)
    };
    let (head, rest) = out.split_at_mut(head_len);
    if head_len > 0 {
        head.copy_from_slice(&word(stream, index)[skip..skip + head_len]);
        index = next(index);
    }
    let mut words = rest.chunks_exact_mut(WORD as usize);
    for slot in &mut words {
        slot.copy_from_slice(&word(stream, index));
        index = next(index);
    }
    let tail = words.into_remainder();
    let tail_len = tail.len();
    tail.copy_from_slice(&word(stream, index)[..tail_len]);
}

/// Checks received bytes against the stream's from `offset` on.
///
/// # Errors
/// The offset in the stream of the first byte that differs.
pub fn check(stream: u64, offset: u64, bytes: &[u8]) -> Result<(), u64> {
    let mut expected = [0; 256];
    let mut at = offset;
    for piece in bytes.chunks(expected.len()) {
        let expected = &mut expected[..piece.len()];
        fill(stream, at, expected);
        if let Some(wrong) = piece
            .iter()
            .zip(&*expected)
            .position(|(found, right)| found != right)
        {
            return Err(at.wrapping_add(wrong as u64));
        }
        at = at.wrapping_add(piece.len() as u64);
    }
    Ok(())
}

/// Stretches of streams whose bytes are given; all others are as [`fill`] makes them.
#[derive(Clone, Debug, Default)]
pub struct Texts(BTreeMap<(u64, u64), Arc<[u8]>>);

impl Texts {
    /// Gives the bytes of `stream` from `offset` on. Stretches do not overlap.
    pub fn insert(&mut self, stream: u64, offset: u64, text: Arc<[u8]>) {
        self.0.insert((stream, offset), text);
    }

    /// As [`fill`], with the bytes that are given.
    pub fn fill(&self, stream: u64, offset: u64, out: &mut [u8]) {
        fill(stream, offset, out);
        if self.0.is_empty() {
            return;
        }
        let end = offset.saturating_add(out.len() as u64);
        let before = self.0.range((stream, 0)..=(stream, offset)).next_back();
        let first = before.map_or(offset, |(&(_, at), _)| at);
        for (&(_, at), text) in self.0.range((stream, first)..(stream, end)) {
            let from = at.max(offset);
            let until = end.min(at + text.len() as u64);
            if from < until {
                let shown = &text[(from - at) as usize..(until - at) as usize];
                out[(from - offset) as usize..][..shown.len()].copy_from_slice(shown);
            }
        }
    }
}

/// The eight bytes from offset `8 * index` on.
fn word(stream: u64, index: u64) -> [u8; 8] {
    let mixed = mix(stream ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    ((mixed & BITS) + LETTERS).to_le_bytes()
}

fn next(index: u64) -> u64 {
    (index + 1) % (u64::MAX / WORD + 1)
}

/// A 64-bit finaliser (the constants of splitmix64).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offsets() -> impl Strategy<Value = u64> {
        prop_oneof![0..40u64, any::<u64>(), u64::MAX - 40..=u64::MAX]
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn fill_is_byte_at_every_offset(stream: u64, offset in offsets(), len in 0..600usize) {
            let mut filled = vec![0; len];
            fill(stream, offset, &mut filled);
            let single: Vec<u8> =
                (0..len as u64).map(|i| byte(stream, offset.wrapping_add(i))).collect();
            prop_assert_eq!(filled, single);
        }

        #[test]
        fn check_names_the_first_wrong_byte(
            stream: u64, offset in offsets(), len in 1..600usize, wrong: prop::sample::Index, flip in 1..=255u8,
        ) {
            let mut bytes = vec![0; len];
            fill(stream, offset, &mut bytes);
            prop_assert_eq!(check(stream, offset, &bytes), Ok(()));
            let wrong = wrong.index(len);
            bytes[wrong] ^= flip;
            prop_assert_eq!(check(stream, offset, &bytes), Err(offset.wrapping_add(wrong as u64)));
        }
    }

    #[test]
    fn texts_stand_where_they_were_put() {
        let mut texts = Texts::default();
        texts.insert(1, 10, Arc::from(*b"GET /"));
        texts.insert(1, 30, Arc::from(*b"HTTP"));
        texts.insert(2, 0, Arc::from(*b"other"));
        let (mut whole, mut plain) = ([0; 40], [0; 40]);
        texts.fill(1, 0, &mut whole);
        fill(1, 0, &mut plain);
        plain[10..15].copy_from_slice(b"GET /");
        plain[30..34].copy_from_slice(b"HTTP");
        assert_eq!(whole, plain);
        for (from, until) in (0..40).flat_map(|from| (from..=40).map(move |until| (from, until))) {
            let mut part = vec![0; until - from];
            texts.fill(1, from as u64, &mut part);
            assert_eq!(part, plain[from..until], "{from}..{until}");
        }
    }

    #[test]
    fn bytes_are_letters() {
        let mut bytes = [0; 4_000];
        fill(3, 5, &mut bytes);
        assert!(bytes.iter().all(|byte| (b'a'..=b'p').contains(byte)));
        let once = |letter| bytes.contains(&letter);
        assert!((b'a'..=b'p').all(once));
    }

    #[test]
    fn streams_differ() {
        let (mut one, mut other) = ([0; 64], [0; 64]);
        fill(1, 0, &mut one);
        fill(2, 0, &mut other);
        assert_ne!(one, other);
    }
}
