//! The options of RFC 8684 section 3 on the wire.
//!
//! A receiver must ignore a length that a subtype does not have, and MP_CAPABLE with flag B set. The codec keeps these
//! as [`MptcpOption::Unknown`]; there is no parse error. Reserved bits are dropped when parsed and zero when emitted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{DataAck, Dsn, Dss, KIND, Mapping, MpCapable, MpJoin, MptcpOption};
use crate::EmitError;
use crate::bytes::{array_at, u16_at, u32_at, u64_at};

/// Subtypes (RFC 8684 section 8.2).
mod subtype {
    pub const CAPABLE: u8 = 0x0;
    pub const JOIN: u8 = 0x1;
    pub const DSS: u8 = 0x2;
    pub const ADD_ADDR: u8 = 0x3;
    pub const REMOVE_ADDR: u8 = 0x4;
    pub const PRIO: u8 = 0x5;
    pub const FAIL: u8 = 0x6;
    pub const FAST_CLOSE: u8 = 0x7;
    pub const TCP_RST: u8 = 0x8;
}

/// Flags of MP_CAPABLE in its fourth byte (RFC 8684 section 3.1).
mod capable {
    pub const CHECKSUM: u8 = 0x80;
    pub const EXTENSIBILITY: u8 = 0x40;
    pub const DENY_JOIN: u8 = 0x20;
    pub const HMAC_SHA256: u8 = 0x01;
}

/// Flags of DSS in its fourth byte (RFC 8684 section 3.3).
mod dss {
    pub const ACK: u8 = 0x01;
    pub const ACK_LONG: u8 = 0x02;
    pub const MAPPING: u8 = 0x04;
    pub const DSN_LONG: u8 = 0x08;
    pub const DATA_FIN: u8 = 0x10;
}

/// The flag beside the subtype: B of MP_JOIN and MP_PRIO, E of ADD_ADDR.
const LOW_FLAG: u8 = 0x01;

/// An MPTCP option as parsed: DSS has its own field in a segment.
pub(crate) enum Parsed {
    Dss(Dss),
    Other(MptcpOption),
}

/// Parses a whole option, kind and length included; `option` has at least the subtype's byte.
pub(crate) fn parse(option: &[u8]) -> Parsed {
    let known = match option[2] >> 4 {
        subtype::DSS => match parse_dss(option) {
            Some(dss) => return Parsed::Dss(dss),
            None => None,
        },
        subtype::CAPABLE => parse_capable(option),
        subtype::JOIN => parse_join(option),
        subtype::ADD_ADDR => parse_add_addr(option),
        subtype::REMOVE_ADDR => (option.len() > 3).then(|| MptcpOption::RemoveAddr {
            address_ids: option[3..].to_vec(),
        }),
        subtype::PRIO => (option.len() == 3).then(|| MptcpOption::Prio {
            backup: option[2] & LOW_FLAG != 0,
        }),
        subtype::FAIL => (option.len() == 12).then(|| MptcpOption::Fail {
            dsn: u64_at(option, 4),
        }),
        subtype::FAST_CLOSE => (option.len() == 12).then(|| MptcpOption::FastClose {
            receiver_key: u64_at(option, 4),
        }),
        subtype::TCP_RST => (option.len() == 4).then(|| MptcpOption::TcpRst {
            flags: option[2] & 0x0f,
            reason: option[3],
        }),
        _ => None,
    };
    Parsed::Other(known.unwrap_or_else(|| MptcpOption::Unknown {
        subtype: option[2] >> 4,
        flags: option[2] & 0x0f,
        body: option[3..].to_vec(),
    }))
}

fn parse_capable(option: &[u8]) -> Option<MptcpOption> {
    let len = option.len();
    if !matches!(len, 4 | 12 | 20 | 22 | 24) || option[3] & capable::EXTENSIBILITY != 0 {
        return None;
    }
    Some(MptcpOption::Capable(MpCapable {
        version: option[2] & 0x0f,
        checksum_required: option[3] & capable::CHECKSUM != 0,
        deny_join_initial: option[3] & capable::DENY_JOIN != 0,
        hmac_sha256: option[3] & capable::HMAC_SHA256 != 0,
        sender_key: (len >= 12).then(|| u64_at(option, 4)),
        receiver_key: (len >= 20).then(|| u64_at(option, 12)),
        data: (len >= 22).then(|| (u16_at(option, 20), (len == 24).then(|| u16_at(option, 22)))),
    }))
}

fn parse_join(option: &[u8]) -> Option<MptcpOption> {
    let backup = option[2] & LOW_FLAG != 0;
    let join = match option.len() {
        12 => MpJoin::Syn {
            backup,
            address_id: option[3],
            token: u32_at(option, 4),
            nonce: u32_at(option, 8),
        },
        16 => MpJoin::SynAck {
            backup,
            address_id: option[3],
            hmac: u64_at(option, 4),
            nonce: u32_at(option, 12),
        },
        24 => MpJoin::Ack {
            hmac: array_at(option, 4),
        },
        _ => return None,
    };
    Some(MptcpOption::Join(join))
}

fn parse_dss(option: &[u8]) -> Option<Dss> {
    let flags = *option.get(3)?;
    let has = |bit: u8| flags & bit != 0;
    let ack_len = if !has(dss::ACK) {
        0
    } else if has(dss::ACK_LONG) {
        8
    } else {
        4
    };
    let dsn_len = if has(dss::DSN_LONG) { 8 } else { 4 };
    let mapping_len = if has(dss::MAPPING) { dsn_len + 6 } else { 0 };
    let plain = 4 + ack_len + mapping_len;
    let with_checksum = option.len() == plain + 2;
    if option.len() != plain && !(with_checksum && has(dss::MAPPING)) {
        return None;
    }
    let data_ack = match ack_len {
        4 => Some(DataAck::Short(u32_at(option, 4))),
        8 => Some(DataAck::Long(u64_at(option, 4).into())),
        _ => None,
    };
    let at = 4 + ack_len;
    let mapping = has(dss::MAPPING).then(|| Mapping {
        dsn: if dsn_len == 8 {
            Dsn::Long(u64_at(option, at).into())
        } else {
            Dsn::Short(u32_at(option, at))
        },
        subflow_seq: u32_at(option, at + dsn_len),
        len: u16_at(option, at + dsn_len + 4),
        checksum: with_checksum.then(|| u16_at(option, plain)),
    });
    Some(Dss {
        data_ack,
        mapping,
        data_fin: has(dss::DATA_FIN),
    })
}

fn parse_add_addr(option: &[u8]) -> Option<MptcpOption> {
    let echo = option[2] & LOW_FLAG != 0;
    let body = option.len().checked_sub(if echo { 4 } else { 12 })?;
    let (address, address_len) = match body {
        4 | 6 => (IpAddr::V4(Ipv4Addr::from(array_at::<4>(option, 4))), 4),
        16 | 18 => (IpAddr::V6(Ipv6Addr::from(array_at::<16>(option, 4))), 16),
        _ => return None,
    };
    Some(MptcpOption::AddAddr {
        echo,
        address_id: option[3],
        address,
        port: (body > address_len).then(|| u16_at(option, 4 + address_len)),
        hmac: (!echo).then(|| u64_at(option, 4 + body)),
    })
}

impl Dss {
    /// Length of the option on the wire in bytes, without padding.
    pub fn wire_len(&self) -> usize {
        let ack = match self.data_ack {
            None => 0,
            Some(DataAck::Short(_)) => 4,
            Some(DataAck::Long(_)) => 8,
        };
        let mapping = self.mapping.map_or(0, |mapping| {
            let dsn = match mapping.dsn {
                Dsn::Short(_) => 4,
                Dsn::Long(_) => 8,
            };
            dsn + 6 + if mapping.checksum.is_some() { 2 } else { 0 }
        });
        4 + ack + mapping
    }
}

impl MptcpOption {
    /// Length of the option on the wire in bytes, without padding.
    pub fn wire_len(&self) -> usize {
        match self {
            Self::Capable(capable) => {
                let keys = usize::from(capable.sender_key.is_some())
                    + usize::from(capable.receiver_key.is_some());
                let data = match capable.data {
                    None => 0,
                    Some((_, None)) => 2,
                    Some((_, Some(_))) => 4,
                };
                4 + 8 * keys + data
            }
            Self::Join(MpJoin::Syn { .. }) => 12,
            Self::Join(MpJoin::SynAck { .. }) => 16,
            Self::Join(MpJoin::Ack { .. }) => 24,
            Self::AddAddr {
                address,
                port,
                hmac,
                ..
            } => {
                let address = if address.is_ipv4() { 4 } else { 16 };
                let port = if port.is_some() { 2 } else { 0 };
                let hmac = if hmac.is_some() { 8 } else { 0 };
                4 + address + port + hmac
            }
            Self::RemoveAddr { address_ids } => 3 + address_ids.len(),
            Self::Prio { .. } => 3,
            Self::Fail { .. } | Self::FastClose { .. } => 12,
            Self::TcpRst { .. } => 4,
            Self::Unknown { body, .. } => 3 + body.len(),
        }
    }

    /// Whether the fields have a form on the wire.
    pub(crate) fn check(&self) -> Result<(), EmitError> {
        let fault = match self {
            Self::Capable(capable) if capable.version > 0x0f => "MP_CAPABLE: version above 15",
            Self::Capable(capable)
                if capable.receiver_key.is_some() && capable.sender_key.is_none() =>
            {
                "MP_CAPABLE: receiver's key without the sender's"
            }
            Self::Capable(capable) if capable.data.is_some() && capable.receiver_key.is_none() => {
                "MP_CAPABLE: data length without both keys"
            }
            Self::AddAddr { echo, hmac, .. } if *echo == hmac.is_some() => {
                "ADD_ADDR: the HMAC is absent exactly in an echo"
            }
            Self::RemoveAddr { address_ids } if address_ids.is_empty() => {
                "REMOVE_ADDR: no address id"
            }
            Self::TcpRst { flags, .. } if *flags > 0x0f => "MP_TCPRST: flags above four bits",
            Self::Unknown { subtype, flags, .. } if *subtype > 0x0f || *flags > 0x0f => {
                "MPTCP option: subtype or flags above four bits"
            }
            _ => return Ok(()),
        };
        Err(EmitError::Field(fault))
    }
}

fn start(subtype: u8, low: u8, len: usize, out: &mut Vec<u8>) {
    out.extend([KIND, len as u8, subtype << 4 | low]);
}

pub(crate) fn emit_dss(signal: &Dss, out: &mut Vec<u8>) {
    start(subtype::DSS, 0, signal.wire_len(), out);
    let mut flags = if signal.data_fin { dss::DATA_FIN } else { 0 };
    flags |= match signal.data_ack {
        None => 0,
        Some(DataAck::Short(_)) => dss::ACK,
        Some(DataAck::Long(_)) => dss::ACK | dss::ACK_LONG,
    };
    flags |= match signal.mapping.map(|mapping| mapping.dsn) {
        None => 0,
        Some(Dsn::Short(_)) => dss::MAPPING,
        Some(Dsn::Long(_)) => dss::MAPPING | dss::DSN_LONG,
    };
    out.push(flags);
    match signal.data_ack {
        None => {}
        Some(DataAck::Short(ack)) => out.extend(ack.to_be_bytes()),
        Some(DataAck::Long(ack)) => out.extend(ack.get().to_be_bytes()),
    }
    if let Some(mapping) = signal.mapping {
        match mapping.dsn {
            Dsn::Short(dsn) => out.extend(dsn.to_be_bytes()),
            Dsn::Long(dsn) => out.extend(dsn.get().to_be_bytes()),
        }
        out.extend(mapping.subflow_seq.to_be_bytes());
        out.extend(mapping.len.to_be_bytes());
        if let Some(checksum) = mapping.checksum {
            out.extend(checksum.to_be_bytes());
        }
    }
}

/// Appends an option that [`MptcpOption::check`] has accepted.
pub(crate) fn emit(option: &MptcpOption, out: &mut Vec<u8>) {
    let len = option.wire_len();
    match option {
        MptcpOption::Capable(capable) => emit_capable(capable, len, out),
        MptcpOption::Join(join) => emit_join(join, len, out),
        MptcpOption::AddAddr {
            echo,
            address_id,
            address,
            port,
            hmac,
        } => {
            start(subtype::ADD_ADDR, u8::from(*echo), len, out);
            out.push(*address_id);
            match address {
                IpAddr::V4(address) => out.extend(address.octets()),
                IpAddr::V6(address) => out.extend(address.octets()),
            }
            if let Some(port) = port {
                out.extend(port.to_be_bytes());
            }
            if let Some(hmac) = hmac {
                out.extend(hmac.to_be_bytes());
            }
        }
        MptcpOption::RemoveAddr { address_ids } => {
            start(subtype::REMOVE_ADDR, 0, len, out);
            out.extend_from_slice(address_ids);
        }
        MptcpOption::Prio { backup } => start(subtype::PRIO, u8::from(*backup), len, out),
        MptcpOption::Fail { dsn } => {
            start(subtype::FAIL, 0, len, out);
            out.push(0);
            out.extend(dsn.to_be_bytes());
        }
        MptcpOption::FastClose { receiver_key } => {
            start(subtype::FAST_CLOSE, 0, len, out);
            out.push(0);
            out.extend(receiver_key.to_be_bytes());
        }
        MptcpOption::TcpRst { flags, reason } => {
            start(subtype::TCP_RST, *flags, len, out);
            out.push(*reason);
        }
        MptcpOption::Unknown {
            subtype,
            flags,
            body,
        } => {
            start(*subtype, *flags, len, out);
            out.extend_from_slice(body);
        }
    }
}

fn emit_capable(option: &MpCapable, len: usize, out: &mut Vec<u8>) {
    start(subtype::CAPABLE, option.version, len, out);
    let mut flags = 0;
    for (set, bit) in [
        (option.checksum_required, capable::CHECKSUM),
        (option.deny_join_initial, capable::DENY_JOIN),
        (option.hmac_sha256, capable::HMAC_SHA256),
    ] {
        if set {
            flags |= bit;
        }
    }
    out.push(flags);
    for key in [option.sender_key, option.receiver_key]
        .into_iter()
        .flatten()
    {
        out.extend(key.to_be_bytes());
    }
    if let Some((data_len, checksum)) = option.data {
        out.extend(data_len.to_be_bytes());
        if let Some(checksum) = checksum {
            out.extend(checksum.to_be_bytes());
        }
    }
}

fn emit_join(join: &MpJoin, len: usize, out: &mut Vec<u8>) {
    match *join {
        MpJoin::Syn {
            backup,
            address_id,
            token,
            nonce,
        } => {
            start(subtype::JOIN, u8::from(backup), len, out);
            out.push(address_id);
            out.extend(token.to_be_bytes());
            out.extend(nonce.to_be_bytes());
        }
        MpJoin::SynAck {
            backup,
            address_id,
            hmac,
            nonce,
        } => {
            start(subtype::JOIN, u8::from(backup), len, out);
            out.push(address_id);
            out.extend(hmac.to_be_bytes());
            out.extend(nonce.to_be_bytes());
        }
        MpJoin::Ack { hmac } => {
            start(subtype::JOIN, 0, len, out);
            out.push(0);
            out.extend(hmac);
        }
    }
}
