//! The bytes of an application stream as a function of their offset.
//!
//! No payload is stored anywhere: a capture or a live interface asks for the bytes when it needs
//! them, and a receiver can check any stretch of a stream by itself.

/// The byte at `offset` of the stream `stream` (any number that names connection and direction).
pub fn byte(stream: u64, offset: u64) -> u8 {
    let word = mix(stream ^ (offset >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (word >> ((offset & 7) * 8)) as u8
}

/// Fills `out` with the stream's bytes from `offset` on.
pub fn fill(stream: u64, offset: u64, out: &mut [u8]) {
    for (i, slot) in out.iter_mut().enumerate() {
        *slot = byte(stream, offset + i as u64);
    }
}

/// A 64-bit finaliser (the constants of splitmix64).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
