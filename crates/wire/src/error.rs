//! The errors of parsers and emitters.

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Fewer bytes than the header, or a length in it, asks for.
    #[error("{what}: {needed} bytes needed, {found} found")]
    Truncated {
        what: &'static str,
        needed: usize,
        found: usize,
    },
    /// The version field of an IP header is not the parser's.
    #[error("IP version {found}")]
    Version { found: u8 },
    /// A length field that no valid packet has.
    #[error("{what}: invalid length {len}")]
    Length { what: &'static str, len: usize },
    /// A checksum over the header itself is wrong.
    #[error("{what}: wrong checksum")]
    Checksum { what: &'static str },
    /// A message that is well-formed as far as it was read, of a type that the parser has no form for.
    #[error("{what}: type {kind} is not supported")]
    Unsupported { what: &'static str, kind: u8 },
    /// A TCP option whose length is below 2 or goes beyond the header.
    #[error("TCP option of kind {kind} with length {len} where {room} bytes are left")]
    OptionLength { kind: u8, len: u8, room: usize },
}

/// Why a packet cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The options take more than the 40 bytes that a TCP header has for them.
    #[error("TCP options of {len} bytes; 40 fit")]
    OptionSpace { len: usize },
    /// The header speaks of another number of payload bytes than were given.
    #[error("payload of {declared} bytes declared, {given} given")]
    PayloadLength { declared: usize, given: usize },
    /// The length does not fit its 16-bit field.
    #[error("{what}: {len} bytes do not fit a 16-bit length")]
    TooLong { what: &'static str, len: usize },
    /// Source and destination are not of one IP version, or not of the one that the protocol needs.
    #[error("source and destination address are of different or unfit IP versions")]
    AddressFamilies,
    /// A combination of fields that has no form on the wire.
    #[error("{0}")]
    Field(&'static str),
}
