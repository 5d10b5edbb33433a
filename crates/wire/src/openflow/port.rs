//! Ports (section 7.2.1).

use super::Fault;
use super::reader::Reader;
use super::writer::Writer;

/// Port numbers with a meaning of their own (`enum ofp_port_no`).
pub mod number {
    /// The highest of a port that is there.
    pub const MAX: u32 = 0xffff_ff00;
    pub const IN_PORT: u32 = 0xffff_fff8;
    pub const TABLE: u32 = 0xffff_fff9;
    pub const NORMAL: u32 = 0xffff_fffa;
    pub const FLOOD: u32 = 0xffff_fffb;
    pub const ALL: u32 = 0xffff_fffc;
    pub const CONTROLLER: u32 = 0xffff_fffd;
    pub const LOCAL: u32 = 0xffff_fffe;
    pub const ANY: u32 = 0xffff_ffff;
}

/// `struct ofp_port`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    pub number: u32,
    pub address: [u8; 6],
    /// Fifteen bytes are kept.
    pub name: Vec<u8>,
    pub config: u32,
    /// `enum ofp_port_state`: bit 0 is set where there is no link.
    pub state: u32,
    /// `enum ofp_port_features`: now, advertised, supported, the peer's.
    pub features: [u32; 4],
    /// kbit/s
    pub current_speed: u32,
    pub max_speed: u32,
}

const NAME: usize = 16;

pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Port, Fault> {
    let number = reader.u32()?;
    reader.take(4)?;
    let address = reader.mac()?;
    reader.take(2)?;
    let mut name = reader.text(NAME)?;
    name.truncate(NAME - 1);
    Ok(Port {
        number,
        address,
        name,
        config: reader.u32()?,
        state: reader.u32()?,
        features: [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?],
        current_speed: reader.u32()?,
        max_speed: reader.u32()?,
    })
}

pub(super) fn emit(port: &Port, out: &mut Writer<'_>) {
    out.u32(port.number).pad(4).bytes(&port.address).pad(2);
    out.text(&port.name, NAME).u32(port.config).u32(port.state);
    for features in port.features {
        out.u32(features);
    }
    out.u32(port.current_speed).u32(port.max_speed);
}
