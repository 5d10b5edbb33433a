//! Transport parameters (RFC 9000 section 18, RFC 9221 section 3, RFC 10069 section 2.1).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use super::frame_emit::write_connection_id;
use super::varint::{Reader, write_varint};
use super::{ConnectionId, MAX_PATH_ID, MAX_STREAMS, ParameterError, varint_len};
use crate::EmitError;

/// Ids (RFC 9000 section 18.2 and the documents named above).
mod id {
    pub const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
    pub const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub const INITIAL_MAX_DATA: u64 = 0x04;
    pub const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub const MAX_ACK_DELAY: u64 = 0x0b;
    pub const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub const PREFERRED_ADDRESS: u64 = 0x0d;
    pub const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
    pub const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    pub const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;
    pub const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    pub const INITIAL_MAX_PATH_ID: u64 = 0x3e;
    /// draft-ietf-quic-ack-frequency-14 section 11.1.
    pub const MIN_ACK_DELAY: u64 = 0xff04_de1b;
}

/// Who sent the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// Where a server would rather be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferredAddress {
    /// Unspecified and of port 0 if the server has none of this family.
    pub v4: SocketAddrV4,
    pub v6: SocketAddrV6,
    pub connection_id: ConnectionId,
    pub reset_token: [u8; 16],
}

/// The parameters of one side. What is at its default is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// Of a server alone.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// In milliseconds; 0: none.
    pub max_idle_timeout: u64,
    /// Of a server alone.
    pub stateless_reset_token: Option<[u8; 16]>,
    pub max_udp_payload_size: u64,
    pub initial_max_data: u64,
    pub initial_max_stream_data_bidi_local: u64,
    pub initial_max_stream_data_bidi_remote: u64,
    pub initial_max_stream_data_uni: u64,
    pub initial_max_streams_bidi: u64,
    pub initial_max_streams_uni: u64,
    pub ack_delay_exponent: u64,
    /// In milliseconds.
    pub max_ack_delay: u64,
    pub disable_active_migration: bool,
    /// Of a server alone.
    pub preferred_address: Option<Box<PreferredAddress>>,
    pub active_connection_id_limit: u64,
    pub initial_source_connection_id: Option<ConnectionId>,
    /// Of a server alone.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The largest DATAGRAM frame that is accepted, type and length included; 0: none.
    pub max_datagram_frame_size: u64,
    /// Absent: no multipath.
    pub initial_max_path_id: Option<u64>,
    /// In microseconds. Absent: no ACK_FREQUENCY is taken.
    pub min_ack_delay: Option<u64>,
}

impl Default for TransportParameters {
    /// What is meant by parameters that are absent (RFC 9000 section 18.2).
    fn default() -> Self {
        Self {
            original_destination_connection_id: None,
            max_idle_timeout: 0,
            stateless_reset_token: None,
            max_udp_payload_size: 65527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay: 25,
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: 2,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            max_datagram_frame_size: 0,
            initial_max_path_id: None,
            min_ack_delay: None,
        }
    }
}

impl TransportParameters {
    /// Appends the parameters: integers first, then the others.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let start = out.len();
        self.encode_all(out).inspect_err(|_| out.truncate(start))
    }

    fn encode_all(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        if let Some((_, reason)) = self.fault() {
            return Err(EmitError::Field(reason));
        }
        for (id, value, default) in self.integers() {
            if value != default {
                integer(id, value, out)?;
            }
        }
        for (id, value) in [
            (id::INITIAL_MAX_PATH_ID, self.initial_max_path_id),
            (id::MIN_ACK_DELAY, self.min_ack_delay),
        ] {
            if let Some(value) = value {
                integer(id, value, out)?;
            }
        }
        for (id, value) in [
            (
                id::ORIGINAL_DESTINATION_CONNECTION_ID,
                self.original_destination_connection_id,
            ),
            (
                id::INITIAL_SOURCE_CONNECTION_ID,
                self.initial_source_connection_id,
            ),
            (
                id::RETRY_SOURCE_CONNECTION_ID,
                self.retry_source_connection_id,
            ),
        ] {
            if let Some(value) = value {
                bytes(id, value.as_slice(), out)?;
            }
        }
        if let Some(token) = &self.stateless_reset_token {
            bytes(id::STATELESS_RESET_TOKEN, token, out)?;
        }
        if self.disable_active_migration {
            bytes(id::DISABLE_ACTIVE_MIGRATION, &[], out)?;
        }
        if let Some(preferred) = &self.preferred_address {
            bytes(id::PREFERRED_ADDRESS, &preferred.to_bytes(), out)?;
        }
        Ok(())
    }

    /// The parameters that `sender` sent. Unknown ones are ignored, among them those that are reserved for that (section 18.1).
    pub fn parse(bytes: &[u8], sender: Role) -> Result<Self, ParameterError> {
        let mut parameters = Self::default();
        let mut reader = Reader::new(bytes);
        let mut seen = Seen::default();
        while !reader.is_empty() {
            let parameter = reader.varint().ok_or(ParameterError {
                parameter: 0,
                reason: "the extension ends within an id",
            })?;
            let refuse = |reason| ParameterError { parameter, reason };
            let value = reader
                .varint()
                .and_then(|len| reader.take(len))
                .ok_or(refuse("the extension ends within it"))?;
            let mut value = Reader::new(value);
            if parameters
                .set(parameter, &mut value)
                .ok_or(refuse("its value has the wrong length"))?
            {
                if !value.is_empty() {
                    return Err(refuse("its value has the wrong length"));
                }
                if seen.replace(parameter) {
                    return Err(refuse("it stands there twice"));
                }
                if sender == Role::Client && of_servers_alone(parameter) {
                    return Err(refuse("a client sent it"));
                }
            }
        }
        match parameters.fault() {
            Some((parameter, reason)) => Err(ParameterError { parameter, reason }),
            None => Ok(parameters),
        }
    }

    /// Takes a value; says whether the parameter is known. Nothing if the value ends too early.
    fn set(&mut self, parameter: u64, value: &mut Reader<'_>) -> Option<bool> {
        let integer = match parameter {
            id::MAX_IDLE_TIMEOUT => &mut self.max_idle_timeout,
            id::MAX_UDP_PAYLOAD_SIZE => &mut self.max_udp_payload_size,
            id::INITIAL_MAX_DATA => &mut self.initial_max_data,
            id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => &mut self.initial_max_stream_data_bidi_local,
            id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                &mut self.initial_max_stream_data_bidi_remote
            }
            id::INITIAL_MAX_STREAM_DATA_UNI => &mut self.initial_max_stream_data_uni,
            id::INITIAL_MAX_STREAMS_BIDI => &mut self.initial_max_streams_bidi,
            id::INITIAL_MAX_STREAMS_UNI => &mut self.initial_max_streams_uni,
            id::ACK_DELAY_EXPONENT => &mut self.ack_delay_exponent,
            id::MAX_ACK_DELAY => &mut self.max_ack_delay,
            id::ACTIVE_CONNECTION_ID_LIMIT => &mut self.active_connection_id_limit,
            id::MAX_DATAGRAM_FRAME_SIZE => &mut self.max_datagram_frame_size,
            id::INITIAL_MAX_PATH_ID => self.initial_max_path_id.insert(0),
            id::MIN_ACK_DELAY => self.min_ack_delay.insert(0),
            _ => return self.set_other(parameter, value),
        };
        *integer = value.varint()?;
        Some(true)
    }

    fn set_other(&mut self, parameter: u64, value: &mut Reader<'_>) -> Option<bool> {
        match parameter {
            id::ORIGINAL_DESTINATION_CONNECTION_ID => {
                self.original_destination_connection_id = Some(whole_id(value)?);
            }
            id::INITIAL_SOURCE_CONNECTION_ID => {
                self.initial_source_connection_id = Some(whole_id(value)?);
            }
            id::RETRY_SOURCE_CONNECTION_ID => {
                self.retry_source_connection_id = Some(whole_id(value)?);
            }
            id::STATELESS_RESET_TOKEN => self.stateless_reset_token = Some(value.array()?),
            id::DISABLE_ACTIVE_MIGRATION => self.disable_active_migration = true,
            id::PREFERRED_ADDRESS => {
                self.preferred_address = Some(Box::new(PreferredAddress::from_reader(value)?));
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Integers with their ids and defaults.
    fn integers(&self) -> [(u64, u64, u64); 12] {
        let default = Self::default();
        macro_rules! integers {
            ($($id:ident: $field:ident,)*) => {
                [$((id::$id, self.$field, default.$field),)*]
            };
        }
        integers! {
            MAX_IDLE_TIMEOUT: max_idle_timeout,
            MAX_UDP_PAYLOAD_SIZE: max_udp_payload_size,
            INITIAL_MAX_DATA: initial_max_data,
            INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: initial_max_stream_data_bidi_local,
            INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: initial_max_stream_data_bidi_remote,
            INITIAL_MAX_STREAM_DATA_UNI: initial_max_stream_data_uni,
            INITIAL_MAX_STREAMS_BIDI: initial_max_streams_bidi,
            INITIAL_MAX_STREAMS_UNI: initial_max_streams_uni,
            ACK_DELAY_EXPONENT: ack_delay_exponent,
            MAX_ACK_DELAY: max_ack_delay,
            ACTIVE_CONNECTION_ID_LIMIT: active_connection_id_limit,
            MAX_DATAGRAM_FRAME_SIZE: max_datagram_frame_size,
        }
    }

    /// The first parameter with a value that it must not have, and why.
    fn fault(&self) -> Option<(u64, &'static str)> {
        let min_ack_delay_fits = self
            .min_ack_delay
            .is_none_or(|min| min <= self.max_ack_delay.saturating_mul(1000));
        let preferred_has_id = self
            .preferred_address
            .as_ref()
            .is_none_or(|preferred| !preferred.connection_id.is_empty());
        let rules = [
            (
                self.max_udp_payload_size >= 1200,
                id::MAX_UDP_PAYLOAD_SIZE,
                "max_udp_payload_size below 1200",
            ),
            // Section 4.6.
            (
                self.initial_max_streams_bidi <= MAX_STREAMS,
                id::INITIAL_MAX_STREAMS_BIDI,
                "more than 2^60 streams",
            ),
            (
                self.initial_max_streams_uni <= MAX_STREAMS,
                id::INITIAL_MAX_STREAMS_UNI,
                "more than 2^60 streams",
            ),
            (
                self.ack_delay_exponent <= 20,
                id::ACK_DELAY_EXPONENT,
                "ack_delay_exponent above 20",
            ),
            (
                self.max_ack_delay < 1 << 14,
                id::MAX_ACK_DELAY,
                "max_ack_delay of 2^14 ms or more",
            ),
            (
                preferred_has_id,
                id::PREFERRED_ADDRESS,
                "preferred_address with an empty connection id",
            ),
            (
                self.active_connection_id_limit >= 2,
                id::ACTIVE_CONNECTION_ID_LIMIT,
                "active_connection_id_limit below 2",
            ),
            // RFC 10069 section 2.1.
            (
                self.initial_max_path_id
                    .is_none_or(|path| path <= MAX_PATH_ID),
                id::INITIAL_MAX_PATH_ID,
                "initial_max_path_id above 2^32-1",
            ),
            // draft-ietf-quic-ack-frequency-14 section 3.
            (
                min_ack_delay_fits,
                id::MIN_ACK_DELAY,
                "min_ack_delay above max_ack_delay",
            ),
        ];
        rules
            .into_iter()
            .find(|(kept, ..)| !kept)
            .map(|(_, parameter, reason)| (parameter, reason))
    }
}

impl PreferredAddress {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.v4.ip().octets());
        out.extend(self.v4.port().to_be_bytes());
        out.extend(self.v6.ip().octets());
        out.extend(self.v6.port().to_be_bytes());
        write_connection_id(&self.connection_id, &mut out);
        out.extend(self.reset_token);
        out
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Self> {
        let v4 = Ipv4Addr::from(reader.array::<4>()?);
        let v4 = SocketAddrV4::new(v4, u16::from_be_bytes(reader.array()?));
        let v6 = Ipv6Addr::from(reader.array::<16>()?);
        let v6 = SocketAddrV6::new(v6, u16::from_be_bytes(reader.array()?), 0, 0);
        let len = reader.u8()?;
        if usize::from(len) > ConnectionId::MAX {
            return None;
        }
        Some(Self {
            v4,
            v6,
            connection_id: ConnectionId::new(reader.take(len.into())?),
            reset_token: reader.array()?,
        })
    }
}

/// Which known parameters were there. An unknown one may repeat.
#[derive(Default)]
struct Seen(u64, bool);

impl Seen {
    fn replace(&mut self, parameter: u64) -> bool {
        if parameter == id::MIN_ACK_DELAY {
            return std::mem::replace(&mut self.1, true);
        }
        // Every other known id is below 64.
        let bit = 1 << parameter;
        let before = self.0 & bit != 0;
        self.0 |= bit;
        before
    }
}

/// Section 18.2, last paragraph.
fn of_servers_alone(parameter: u64) -> bool {
    matches!(
        parameter,
        id::ORIGINAL_DESTINATION_CONNECTION_ID
            | id::STATELESS_RESET_TOKEN
            | id::PREFERRED_ADDRESS
            | id::RETRY_SOURCE_CONNECTION_ID
    )
}

fn whole_id(value: &mut Reader<'_>) -> Option<ConnectionId> {
    (value.remaining() <= ConnectionId::MAX).then(|| ConnectionId::new(value.rest()))
}

fn integer(id: u64, value: u64, out: &mut Vec<u8>) -> Result<(), EmitError> {
    write_varint(id, out)?;
    write_varint(u64::from(varint_len(value)), out)?;
    write_varint(value, out)
}

fn bytes(id: u64, value: &[u8], out: &mut Vec<u8>) -> Result<(), EmitError> {
    write_varint(id, out)?;
    write_varint(value.len() as u64, out)?;
    out.extend_from_slice(value);
    Ok(())
}
