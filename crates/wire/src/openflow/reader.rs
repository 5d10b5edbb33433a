//! Reads fields one after another.

use super::Fault;
use crate::bytes::array_at;

/// Bytes that are left, and the error if they are too few.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    short: Fault,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], short: Fault) -> Self {
        Self { bytes, short }
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(self.short)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// The next `len` bytes on their own: too few there are another error.
    pub fn part(&mut self, len: usize, short: Fault) -> Result<Self, Fault> {
        Ok(Self::new(self.take(len)?, short))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        Ok(array_at(self.take(N)?, 0))
    }

    pub fn u8(&mut self) -> Result<u8, Fault> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub fn u16(&mut self) -> Result<u16, Fault> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub fn mac(&mut self) -> Result<[u8; 6], Fault> {
        self.array()
    }

    /// A big-endian number of `width` bytes, 16 at most.
    pub fn number(&mut self, width: usize) -> Result<u128, Fault> {
        let bytes = self.take(width)?;
        Ok(bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u128::from(*byte)))
    }

    /// Text of a fixed length, as far as its first NUL.
    pub fn text(&mut self, len: usize) -> Result<Vec<u8>, Fault> {
        let bytes = self.take(len)?;
        Ok(bytes
            .iter()
            .copied()
            .take_while(|byte| *byte != 0)
            .collect())
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Refuses bytes that are left over.
    pub fn end(self) -> Result<(), Fault> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(self.short)
        }
    }
}
