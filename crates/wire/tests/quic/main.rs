//! The codec of QUIC: byte by byte, and in round trips.

mod frames;
mod packets;
mod parameters;
mod roundtrip;
mod strategies;

/// Bytes of hexadecimal digits; whatever else stands between them is for the reader.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|c| c.to_digit(16)).collect();
    digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}
