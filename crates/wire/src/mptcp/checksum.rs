//! The checksum of a data sequence mapping (RFC 8684 section 3.3.1).

use crate::Checksum;

/// The checksum of a mapping: over its payload and the pseudo-header of 64-bit data sequence
/// number, relative subflow sequence number, length and zeros.
///
/// `dsn` is the full 64-bit number even when the option carries four bytes of it. `len` is the
/// option's length field, which counts a DATA_FIN; `data` holds the bytes alone.
pub fn dss_checksum(dsn: u64, subflow_seq: u32, len: u16, data: &[u8]) -> u16 {
    let mut sum = Checksum::new();
    sum.add(data);
    dss_checksum_over(sum, dsn, subflow_seq, len)
}

/// As [`dss_checksum`], with the mapping's payload already summed: for mappings that span segments.
///
/// A payload of odd length is padded with a zero byte.
pub fn dss_checksum_over(data: Checksum, dsn: u64, subflow_seq: u32, len: u16) -> u16 {
    let mut sum = data.padded();
    sum.add(&dsn.to_be_bytes());
    sum.add(&subflow_seq.to_be_bytes());
    sum.add(&len.to_be_bytes());
    sum.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_by_hand() {
        // 0x1 + 0x2 (dsn) + 0x3 (subflow) + 0x3 (len) + 0x6162 + 0x6300 = 0xc46b
        assert_eq!(dss_checksum(0x1_0000_0002, 3, 3, b"abc"), !0xc46b);
    }

    #[test]
    fn pieces_of_odd_length() {
        let mut sum = Checksum::new();
        sum.add(b"a");
        sum.add(b"bc");
        assert_eq!(
            dss_checksum_over(sum, 7, 1, 3),
            dss_checksum(7, 1, 3, b"abc")
        );
    }
}
