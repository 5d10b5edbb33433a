//! Variable-length integers (RFC 9000 section 16).

use super::MAX_VARINT;
use crate::EmitError;
use crate::bytes::{array_at, u32_at, u64_at};

/// Bytes of the shortest encoding.
#[inline]
pub const fn varint_len(value: u64) -> u32 {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// The value at the start of `bytes` and the length of its encoding; absent if `bytes` ends before it does.
#[inline]
pub fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let len = 1 << (bytes.first()? >> 6);
    if bytes.len() < len {
        return None;
    }
    let value = match len {
        1 => u64::from(bytes[0]),
        2 => u64::from(u16::from_be_bytes([bytes[0] & 0x3f, bytes[1]])),
        4 => u64::from(u32_at(bytes, 0) & 0x3fff_ffff),
        _ => u64_at(bytes, 0) & MAX_VARINT,
    };
    Some((value, len))
}

/// Appends the shortest encoding.
#[inline]
pub fn write_varint(value: u64, out: &mut Vec<u8>) -> Result<(), EmitError> {
    write_varint_of(varint_len(value), value, out)
}

/// Appends an encoding of `len` bytes, which may be longer than needed.
pub(super) fn write_varint_of(len: u32, value: u64, out: &mut Vec<u8>) -> Result<(), EmitError> {
    if value > MAX_VARINT || len < varint_len(value) {
        return Err(EmitError::Field("a variable-length integer is too large"));
    }
    let start = out.len();
    out.extend_from_slice(&value.to_be_bytes()[8 - len as usize..]);
    out[start] |= (len.ilog2() as u8) << 6;
    Ok(())
}

/// Fields in order. A method returns nothing if the bytes end too early.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let (value, len) = read_varint(self.bytes)?;
        self.bytes = &self.bytes[len..];
        Some(value)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = (self.bytes.len() >= N).then(|| array_at(self.bytes, 0))?;
        self.bytes = &self.bytes[N..];
        Some(array)
    }

    pub fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(usize::try_from(len).ok()?)?;
        self.bytes = rest;
        Some(taken)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }
}
