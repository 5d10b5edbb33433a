//! Writes fields one after another, and lengths once they are known.

/// Appends to a message.
pub(super) struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn pad(&mut self, len: usize) -> &mut Self {
        self.0.resize(self.0.len() + len, 0);
        self
    }

    /// The low `width` bytes of a number.
    pub fn number(&mut self, value: u128, width: usize) -> &mut Self {
        self.bytes(&value.to_be_bytes()[16 - width..])
    }

    /// Text of a fixed length, of which a NUL is the last.
    pub fn text(&mut self, text: &[u8], len: usize) -> &mut Self {
        let text = &text[..text.len().min(len - 1)];
        self.bytes(text).pad(len - text.len())
    }

    /// Where the next byte goes.
    pub fn at(&self) -> usize {
        self.0.len()
    }

    /// Writes the length of what began at `start` into the two bytes at `place`. One that is too long for them is found by the header's length.
    pub fn length(&mut self, start: usize, place: usize) -> &mut Self {
        let len = (self.0.len() - start) as u16;
        self.0[place..place + 2].copy_from_slice(&len.to_be_bytes());
        self
    }
}
