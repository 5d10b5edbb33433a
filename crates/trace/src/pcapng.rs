//! Captures in the pcapng format (draft-ietf-opsawg-pcapng), which Wireshark and tcpdump open.
//!
//! Blocks are little-endian and name no machine, so equal runs give equal files.

use std::io::{self, Write};

/// Block types (section 11.1).
mod block {
    pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub const INTERFACE_DESCRIPTION: u32 = 1;
    pub const ENHANCED_PACKET: u32 = 6;
    pub const DECRYPTION_SECRETS: u32 = 10;
}

/// Option codes: those above 1 mean what the block says (sections 4.1, 4.2, 4.3).
mod option {
    pub const END: u16 = 0;
    pub const SECTION_HARDWARE: u16 = 2;
    pub const SECTION_OS: u16 = 3;
    pub const SECTION_APPLICATION: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const INTERFACE_RESOLUTION: u16 = 9;
    pub const PACKET_FLAGS: u16 = 2;
}

/// Type and total length of a block.
const HEAD_LEN: usize = 8;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// A frame of this length and its block's other fields fit the block's length field.
const MAX_FRAME_LEN: u32 = 1 << 30;
/// "TLSK" (section 4.7).
const TLS_KEY_LOG: u32 = 0x544c_534b;
const LINKTYPE_ETHERNET: u16 = 1;
/// Timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Which way a frame went through the interface it was captured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Inbound,
    Outbound,
}

/// An interface of the capture that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    id: u32,
    snaplen: u32,
}

/// Writes a capture of one section.
///
/// Each block is one `write_all`; a sink that is a file is better buffered.
#[derive(Debug)]
pub struct Writer<W: Write> {
    sink: W,
    interfaces: u32,
    /// The block in the making, with room for its head; reused.
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a section.
    ///
    /// # Errors
    /// Those of the sink, here and below.
    pub fn new(sink: W) -> io::Result<Self> {
        let mut writer = Self {
            sink,
            interfaces: 0,
            block: vec![0; HEAD_LEN],
        };
        writer.block.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        writer.block.extend(1u16.to_le_bytes());
        writer.block.extend(0u16.to_le_bytes());
        // The length of the section is not given.
        writer.block.extend((-1i64).to_le_bytes());
        writer.option(option::SECTION_HARDWARE, b"simulated");
        writer.option(option::SECTION_OS, b"none");
        writer.option(option::SECTION_APPLICATION, b"Polypath");
        writer.option(option::END, &[]);
        writer.finish(block::SECTION_HEADER)?;
        Ok(writer)
    }

    /// Describes an interface. Of a frame longer than `snaplen` bytes only as many are kept;
    /// 0 keeps all. The name is cut at 65535 bytes.
    pub fn interface(&mut self, name: &str, snaplen: u32) -> io::Result<Interface> {
        self.block.extend(LINKTYPE_ETHERNET.to_le_bytes());
        self.block.extend(0u16.to_le_bytes());
        self.block.extend(snaplen.to_le_bytes());
        let name = &name.as_bytes()[..name.len().min(usize::from(u16::MAX))];
        self.option(option::INTERFACE_NAME, name);
        self.option(option::INTERFACE_RESOLUTION, &[NANOSECONDS]);
        self.option(option::END, &[]);
        self.finish(block::INTERFACE_DESCRIPTION)?;
        let id = self.interfaces;
        self.interfaces += 1;
        Ok(Interface { id, snaplen })
    }

    /// Writes a frame seen at `time_ns` nanoseconds.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an interface of another capture that this one has no
    /// match for, or for a frame of a gibibyte.
    pub fn packet(
        &mut self,
        interface: Interface,
        time_ns: u64,
        direction: Direction,
        frame: &[u8],
    ) -> io::Result<()> {
        let original = u32::try_from(frame.len())
            .ok()
            .filter(|len| *len < MAX_FRAME_LEN)
            .ok_or_else(|| invalid("frame of a gibibyte or more"))?;
        if interface.id >= self.interfaces {
            return Err(invalid("interface of another capture"));
        }
        let kept = match interface.snaplen {
            0 => original,
            snaplen => original.min(snaplen),
        };
        self.block.extend(interface.id.to_le_bytes());
        self.block.extend(((time_ns >> 32) as u32).to_le_bytes());
        self.block.extend((time_ns as u32).to_le_bytes());
        self.block.extend(kept.to_le_bytes());
        self.block.extend(original.to_le_bytes());
        self.block.extend_from_slice(&frame[..kept as usize]);
        self.pad();
        let flags: u32 = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        self.option(option::PACKET_FLAGS, &flags.to_le_bytes());
        self.option(option::END, &[]);
        self.finish(block::ENHANCED_PACKET)
    }

    /// Writes secrets of TLS in the form of a key log, for the packets that follow (section 4.7).
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a log that no block's length field can tell.
    pub fn tls_secrets(&mut self, log: &str) -> io::Result<()> {
        let len = u32::try_from(log.len())
            .ok()
            .filter(|len| *len < MAX_FRAME_LEN)
            .ok_or_else(|| invalid("key log of a gibibyte or more"))?;
        self.block.extend(TLS_KEY_LOG.to_le_bytes());
        self.block.extend(len.to_le_bytes());
        self.block.extend_from_slice(log.as_bytes());
        self.pad();
        self.option(option::END, &[]);
        self.finish(block::DECRYPTION_SECRETS)
    }

    /// Flushes the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// Flushes the sink and gives it back.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes what was gathered as a block: type, total length, body, total length (section 3.1).
    fn finish(&mut self, kind: u32) -> io::Result<()> {
        let len = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[..4].copy_from_slice(&kind.to_le_bytes());
        self.block[4..HEAD_LEN].copy_from_slice(&len);
        self.block.extend(len);
        let result = self.sink.write_all(&self.block);
        self.block.truncate(HEAD_LEN);
        result
    }
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types and bodies of the blocks, their lengths checked.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let len = word(&file[4..]) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(word(&file[len - 4..]) as usize, len);
            blocks.push((word(file), &file[8..len - 4]));
            file = &file[len..];
        }
        blocks
    }

    #[test]
    fn blocks_in_order_and_cut_at_the_snaplen() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let whole = writer.interface("phone-wlan", 0).unwrap();
        let cut = writer.interface("x", 3).unwrap();
        writer
            .packet(whole, 0x1_0000_0002, Direction::Outbound, &[1, 2, 3, 4, 5])
            .unwrap();
        writer
            .packet(cut, 7, Direction::Inbound, &[1, 2, 3, 4, 5])
            .unwrap();
        let file = writer.into_inner().unwrap();
        let blocks = blocks(&file);
        let kinds: Vec<_> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [block::SECTION_HEADER, 1, 1, 6, 6]);
        assert_eq!(
            blocks[3].1,
            [
                [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0].as_slice(),
                &[1, 2, 3, 4, 5, 0, 0, 0],
                &[2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0],
            ]
            .concat()
        );
        assert_eq!(
            blocks[4].1[12..28],
            [3, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 0, 2, 0, 4, 0]
        );
    }

    #[test]
    fn an_unknown_interface_is_refused() {
        let mut other = Writer::new(Vec::new()).unwrap();
        let interface = other.interface("a", 0).unwrap();
        let mut writer = Writer::new(Vec::new()).unwrap();
        let error = writer
            .packet(interface, 0, Direction::Inbound, &[0])
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
