//! OpenFlow Extensible Match (section 7.2.3).

use super::Fault;
use super::reader::Reader;
use super::writer::Writer;

/// `OFPXMC_OPENFLOW_BASIC`.
const BASIC: u16 = 0x8000;
/// `OFPMT_OXM`.
const TYPE_OXM: u16 = 1;
const MATCH_HEADER: usize = 4;

const IPV4: u128 = 0x0800;
const IPV6: u128 = 0x86dd;
const TCP: u128 = 6;
const UDP: u128 = 17;

/// A field that a match can ask about, with its number in the class `OFPXMC_OPENFLOW_BASIC` (section 7.2.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Field {
    InPort = 0,
    EthDst = 3,
    EthSrc = 4,
    EthType = 5,
    IpProto = 10,
    Ipv4Src = 11,
    Ipv4Dst = 12,
    TcpSrc = 13,
    TcpDst = 14,
    UdpSrc = 15,
    UdpDst = 16,
    Ipv6Src = 26,
    Ipv6Dst = 27,
}

impl Field {
    pub const ALL: [Self; 13] = [
        Self::InPort,
        Self::EthDst,
        Self::EthSrc,
        Self::EthType,
        Self::IpProto,
        Self::Ipv4Src,
        Self::Ipv4Dst,
        Self::TcpSrc,
        Self::TcpDst,
        Self::UdpSrc,
        Self::UdpDst,
        Self::Ipv6Src,
        Self::Ipv6Dst,
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|field| *field as u8 == number)
    }

    /// Bytes of its value.
    pub fn width(self) -> usize {
        match self {
            Self::InPort | Self::Ipv4Src | Self::Ipv4Dst => 4,
            Self::EthDst | Self::EthSrc => 6,
            Self::IpProto => 1,
            Self::EthType | Self::TcpSrc | Self::TcpDst | Self::UdpSrc | Self::UdpDst => 2,
            Self::Ipv6Src | Self::Ipv6Dst => 16,
        }
    }

    /// All bits of its value.
    pub fn full(self) -> u128 {
        u128::MAX >> (128 - 8 * self.width())
    }

    /// Whether table 12 lets it have a mask.
    pub fn is_maskable(self) -> bool {
        matches!(
            self,
            Self::EthDst
                | Self::EthSrc
                | Self::Ipv4Src
                | Self::Ipv4Dst
                | Self::Ipv6Src
                | Self::Ipv6Dst
        )
    }

    /// The fields of which one has to precede it with the value beside it (section 7.2.3.6).
    fn prerequisites(self) -> &'static [(Self, u128)] {
        match self {
            Self::InPort | Self::EthDst | Self::EthSrc | Self::EthType => &[],
            Self::IpProto => &[(Self::EthType, IPV4), (Self::EthType, IPV6)],
            Self::Ipv4Src | Self::Ipv4Dst => &[(Self::EthType, IPV4)],
            Self::Ipv6Src | Self::Ipv6Dst => &[(Self::EthType, IPV6)],
            Self::TcpSrc | Self::TcpDst => &[(Self::IpProto, TCP)],
            Self::UdpSrc | Self::UdpDst => &[(Self::IpProto, UDP)],
        }
    }
}

/// One field of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oxm {
    pub field: Field,
    pub value: u128,
    /// Absent: all bits.
    pub mask: Option<u128>,
}

impl Oxm {
    /// The field is to have this value.
    pub fn exact(field: Field, value: u128) -> Self {
        Self {
            field,
            value,
            mask: None,
        }
    }
}

fn oxm(reader: &mut Reader<'_>) -> Result<Oxm, Fault> {
    let class = reader.u16()?;
    let (field, len) = (reader.u8()?, usize::from(reader.u8()?));
    let mut body = reader.part(len, Fault::MATCH_BAD_LEN)?;
    let known = (class == BASIC).then(|| Field::of(field >> 1)).flatten();
    let known = known.ok_or(Fault::BAD_FIELD)?;
    let masked = field & 1 == 1;
    if masked && !known.is_maskable() {
        return Err(Fault::BAD_MASK);
    }
    let value = body.number(known.width())?;
    let mask = masked.then(|| body.number(known.width())).transpose()?;
    body.end()?;
    // Section 7.2.3.5: a bit that the mask leaves out is zero in the value.
    if mask.is_some_and(|mask| value & !mask != 0) {
        return Err(Fault::BAD_WILDCARDS);
    }
    Ok(Oxm {
        field: known,
        value,
        mask,
    })
}

/// Reads a `struct ofp_match` with its padding.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Vec<Oxm>, Fault> {
    let kind = reader.u16()?;
    let len = usize::from(reader.u16()?);
    if kind != TYPE_OXM {
        return Err(Fault::MATCH_BAD_TYPE);
    }
    let body_len = len.checked_sub(MATCH_HEADER).ok_or(Fault::MATCH_BAD_LEN)?;
    let padding = len.next_multiple_of(8) - len;
    let mut whole = *reader;
    whole
        .take(body_len + padding)
        .map_err(|_| Fault::MATCH_BAD_LEN)?;
    let mut body = reader.part(body_len, Fault::MATCH_BAD_LEN)?;
    reader.take(padding)?;
    let mut fields = Vec::<Oxm>::new();
    while !body.is_empty() {
        let found = oxm(&mut body)?;
        if fields.iter().any(|known| known.field == found.field) {
            return Err(Fault::DUPLICATE_FIELD);
        }
        let wanted = found.field.prerequisites();
        let met = fields
            .iter()
            .any(|known| known.mask.is_none() && wanted.contains(&(known.field, known.value)));
        if !wanted.is_empty() && !met {
            return Err(Fault::BAD_PREREQUISITE);
        }
        fields.push(found);
    }
    Ok(fields)
}

/// The length of a `struct ofp_match` with these fields and its padding.
pub fn oxm_len(fields: &[Oxm]) -> usize {
    let values = fields.iter().map(|oxm| {
        let width = oxm.field.width();
        4 + width + if oxm.mask.is_some() { width } else { 0 }
    });
    (MATCH_HEADER + values.sum::<usize>()).next_multiple_of(8)
}

pub(super) fn emit(fields: &[Oxm], out: &mut Writer<'_>) {
    let start = out.at();
    out.u16(TYPE_OXM).u16(0);
    for oxm in fields {
        let width = oxm.field.width();
        let masked = u8::from(oxm.mask.is_some());
        out.u16(BASIC)
            .u8((oxm.field as u8) << 1 | masked)
            .u8(width as u8 * (1 + masked))
            .number(oxm.value, width);
        if let Some(mask) = oxm.mask {
            out.number(mask, width);
        }
    }
    out.length(start, start + 2);
    let len = out.at() - start;
    out.pad(len.next_multiple_of(8) - len);
}
