//! Packet numbers on the wire (RFC 9000 section 17.1, appendix A).

/// Bytes that the packet number `full` needs, 1 to 4, so that a receiver can tell it from those in flight (appendix A.2).
///
/// `largest_acked` is absent before the first acknowledgement in the number space.
#[inline]
pub fn number_len(full: u64, largest_acked: Option<u64>) -> u8 {
    let unacked = match largest_acked {
        Some(acked) => full.saturating_sub(acked),
        None => full.saturating_add(1),
    };
    // The range of the encoding is twice as many numbers.
    match unacked {
        0..=0x80 => 1,
        0x81..=0x8000 => 2,
        0x8001..=0x80_0000 => 3,
        _ => 4,
    }
}

/// The packet number whose lowest `bits` are `truncated` and which is nearest to the one expected next (appendix A.3).
///
/// `largest` is the largest number received in the number space. `bits` is 8, 16, 24 or 32.
#[inline]
pub fn decode_number(largest: Option<u64>, truncated: u64, bits: u32) -> u64 {
    let expected = largest.map_or(0, |largest| largest + 1);
    let window = 1 << bits;
    let candidate = (expected & !(window - 1)) | truncated;
    if candidate + window / 2 <= expected && candidate + window < 1 << 62 {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}
