//! TCP options in a header: which exist, and their layout.
//!
//! The layout is the one of Linux's `tcp_options_write` (net/ipv4/tcp_output.c), in this order:
//!
//! 1. MSS
//! 2. timestamps behind two NOPs, or behind SACK-permitted
//! 3. window scale behind a NOP
//! 4. SACK behind two NOPs
//! 5. other kinds, DSS, and the other MPTCP options, each padded to four bytes
//!
//! Padding within the options is of NOPs. At their end it is of zeros (RFC 9293 section 3.1), where Linux has NOPs. The
//! reason is that Wireshark takes four NOPs in one header for the trace of a router that removes options.

use super::{RareOptions, SackBlocks, Segment};
use crate::bytes::{u16_at, u32_at};
use crate::mptcp::{self, codec};
use crate::{EmitError, ParseError};

/// Room for options in a TCP header in bytes (RFC 9293 section 3.1).
pub const MAX_OPTIONS_LEN: usize = 40;

/// The largest shift of a window scale option (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u8 = 14;

/// Option kinds (IANA, TCP Option Kind Numbers).
mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// Length of the options with their padding in bytes, a multiple of 4; more than
/// [`MAX_OPTIONS_LEN`] when they do not fit.
#[inline(always)]
pub fn options_len(segment: &Segment) -> usize {
    let mut len = 0;
    if segment.timestamps.is_some() {
        len += 12;
    }
    if !segment.sack.is_empty() {
        len += 4 + 8 * segment.sack.len();
    }
    if let Some(dss) = &segment.dss {
        len += padded(dss.wire_len());
    }
    if let Some(rare) = &segment.rare {
        len += rare_len(rare, segment.timestamps.is_some());
    }
    len
}

#[inline(never)]
fn rare_len(rare: &RareOptions, timestamps: bool) -> usize {
    let mut len = 0;
    if rare.mss.is_some() {
        len += 4;
    }
    if rare.sack_permitted && !timestamps {
        len += 4;
    }
    if rare.window_scale.is_some() {
        len += 4;
    }
    len += rare
        .unknown
        .iter()
        .map(|(_, body)| padded(2 + body.len()))
        .sum::<usize>();
    len + rare
        .mptcp
        .iter()
        .map(|option| padded(option.wire_len()))
        .sum::<usize>()
}

fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// Parses an option area into `segment`.
///
/// A known kind with a length that it does not have is kept among `unknown`. Of a kind that comes
/// twice the last stands, as in Linux, but MPTCP options other than DSS, which are all kept. A
/// window scale above 14 is read as 14 (RFC 7323 section 2.3).
pub(super) fn parse(mut rest: &[u8], segment: &mut Segment) -> Result<(), ParseError> {
    while let Some(&kind) = rest.first() {
        match kind {
            kind::END => break,
            kind::NOP => {
                rest = &rest[1..];
                continue;
            }
            _ => {}
        }
        let room = rest.len();
        let len = rest.get(1).copied().unwrap_or(0);
        if len < 2 || usize::from(len) > room {
            return Err(ParseError::OptionLength { kind, len, room });
        }
        let (option, after) = rest.split_at(usize::from(len));
        parse_one(kind, option, segment);
        rest = after;
    }
    Ok(())
}

fn parse_one(kind: u8, option: &[u8], segment: &mut Segment) {
    match (kind, option.len()) {
        (kind::MSS, 4) => segment.rare_mut().mss = Some(u16_at(option, 2)),
        (kind::WINDOW_SCALE, 3) => {
            segment.rare_mut().window_scale = Some(option[2].min(MAX_WINDOW_SCALE));
        }
        (kind::SACK_PERMITTED, 2) => segment.rare_mut().sack_permitted = true,
        (kind::SACK, 10 | 18 | 26 | 34) => {
            let mut blocks = SackBlocks::default();
            for block in option[2..].chunks_exact(8) {
                blocks.push(u32_at(block, 0), u32_at(block, 4));
            }
            segment.sack = blocks;
        }
        (kind::TIMESTAMPS, 10) => {
            segment.timestamps = Some((u32_at(option, 2), u32_at(option, 6)));
        }
        (mptcp::KIND, 3..) => match codec::parse(option) {
            codec::Parsed::Dss(dss) => segment.dss = Some(dss),
            codec::Parsed::Other(option) => segment.rare_mut().mptcp.push(option),
        },
        _ => segment
            .rare_mut()
            .unknown
            .push((kind, option[2..].to_vec())),
    }
}

/// Whether the options have a form on the wire and fit the header.
pub(super) fn check(segment: &Segment) -> Result<(), EmitError> {
    if let Some(rare) = &segment.rare {
        if rare
            .window_scale
            .is_some_and(|shift| shift > MAX_WINDOW_SCALE)
        {
            return Err(EmitError::Field("window scale above 14"));
        }
        if rare
            .unknown
            .iter()
            .any(|(kind, _)| matches!(*kind, kind::END | kind::NOP))
        {
            return Err(EmitError::Field("TCP option kinds 0 and 1 have no body"));
        }
        rare.mptcp.iter().try_for_each(mptcp::MptcpOption::check)?;
    }
    let len = options_len(segment);
    if len > MAX_OPTIONS_LEN {
        return Err(EmitError::OptionSpace { len });
    }
    Ok(())
}

/// Appends the options that [`check`] has accepted, [`options_len`] bytes.
pub(super) fn emit(segment: &Segment, out: &mut Vec<u8>) {
    let start = out.len();
    let none = RareOptions::default();
    let rare = segment.rare.as_deref().unwrap_or(&none);
    if let Some(mss) = rare.mss {
        out.extend([kind::MSS, 4]);
        out.extend(mss.to_be_bytes());
    }
    match (rare.sack_permitted, segment.timestamps.is_some()) {
        (true, true) => out.extend([kind::SACK_PERMITTED, 2]),
        (true, false) => out.extend([kind::NOP, kind::NOP, kind::SACK_PERMITTED, 2]),
        (false, true) => out.extend([kind::NOP, kind::NOP]),
        (false, false) => {}
    }
    if let Some((value, echo)) = segment.timestamps {
        out.extend([kind::TIMESTAMPS, 10]);
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    if let Some(shift) = rare.window_scale {
        out.extend([kind::NOP, kind::WINDOW_SCALE, 3, shift]);
    }
    if !segment.sack.is_empty() {
        out.extend([
            kind::NOP,
            kind::NOP,
            kind::SACK,
            2 + 8 * segment.sack.len() as u8,
        ]);
        for (left, right) in segment.sack.as_slice() {
            out.extend(left.to_be_bytes());
            out.extend(right.to_be_bytes());
        }
    }
    for (kind, body) in &rare.unknown {
        emit_aligned(start, out, |out| {
            out.extend([*kind, 2 + body.len() as u8]);
            out.extend_from_slice(body);
        });
    }
    if let Some(dss) = &segment.dss {
        emit_aligned(start, out, |out| codec::emit_dss(dss, out));
    }
    for option in &rare.mptcp {
        emit_aligned(start, out, |out| codec::emit(option, out));
    }
    let end = start + options_len(segment);
    out.resize(end, kind::END);
}

/// Pads what is there since `start` with NOPs, then appends an option.
fn emit_aligned(start: usize, out: &mut Vec<u8>, option: impl FnOnce(&mut Vec<u8>)) {
    out.resize(start + padded(out.len() - start), kind::NOP);
    option(out);
}
