//! What lies around the IP packet that carries a segment: link layers, tags and labels, sessions and tunnels.

use std::fmt;

use polypath_wire::ip;

use crate::link::{Begin, LinkType};

/// Layers of a frame; what has more of them goes in circles.
const MOST_LAYERS: usize = 16;

mod ethertype {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    /// IEEE 802.1Q and 802.1ad, and what was there before.
    pub const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
    /// RFC 5332.
    pub const MPLS: [u16; 2] = [0x8847, 0x8848];
    /// RFC 2516 section 4.
    pub const PPPOE_SESSION: u16 = 0x8864;
    /// Ethernet within GRE and Geneve (RFC 1701).
    pub const BRIDGED: u16 = 0x6558;
    /// PPP within GRE (RFC 2637 section 4.1).
    pub const PPP: u16 = 0x880b;
}

/// PPP's protocol numbers (RFC 1661 section 2, RFC 1332, RFC 5072).
mod ppp {
    pub const IPV4: u16 = 0x0021;
    pub const IPV6: u16 = 0x0057;
}

/// IP's, of tunnels (RFC 2003, RFC 4213, RFC 2784).
mod protocol {
    pub const IPV4: u8 = 4;
    pub const IPV6: u8 = 41;
    pub const GRE: u8 = 47;
}

/// UDP's ports of tunnels: RFC 7348 section 5, RFC 8926 section 3.3, 3GPP TS 29.281 section 4.4.2.
mod port {
    pub const VXLAN: u16 = 4789;
    pub const GENEVE: u16 = 6081;
    pub const GTP_U: u16 = 2152;
}

/// What a frame holds in place of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Other {
    Ethertype(u16),
    Ppp(u16),
    /// IP's protocol.
    Protocol(u8),
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, name) = match *self {
            Self::Ethertype(kind) => {
                let name = match kind {
                    0x0806 => "ARP",
                    0x8863 => "PPPoE discovery",
                    0x88cc => "LLDP",
                    _ => "",
                };
                (format!("EtherType 0x{kind:04x}"), name)
            }
            Self::Ppp(kind) => (format!("PPP protocol 0x{kind:04x}"), ""),
            Self::Protocol(kind) => {
                let name = match kind {
                    ip::protocol::ICMP => "ICMP",
                    2 => "IGMP",
                    ip::protocol::UDP => "UDP",
                    protocol::GRE => "GRE",
                    50 => "ESP",
                    ip::protocol::ICMPV6 => "ICMPv6",
                    132 => "SCTP",
                    _ => "",
                };
                (format!("IP protocol {kind}"), name)
            }
        };
        if name.is_empty() {
            write!(f, "{what}")
        } else {
            write!(f, "{what} ({name})")
        }
    }
}

/// Why a frame holds no IP packet that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Not captured far enough, or in pieces.
    Unreadable,
    Other(Other),
}

/// The innermost IP packet: its header, the payload as far as it was captured, the payload's whole length.
pub type Found<'a> = (ip::Header, &'a [u8], usize);

/// What stands at a place in a frame.
#[derive(Clone, Copy)]
enum Layer {
    Ethernet,
    /// What an EtherType announces.
    Typed(u16),
    Ppp,
    Ip,
}

/// A place in a frame: bytes from there on, and how many there were on the wire.
#[derive(Clone, Copy)]
struct Rest<'a> {
    bytes: &'a [u8],
    wire_len: usize,
}

impl<'a> Rest<'a> {
    fn skip(self, len: usize) -> Result<Self, Left> {
        let bytes = self.bytes.get(len..).ok_or(Left::Unreadable)?;
        let wire_len = self.wire_len.saturating_sub(len);
        Ok(Self { bytes, wire_len })
    }

    fn byte(self, at: usize) -> Result<u8, Left> {
        self.bytes.get(at).copied().ok_or(Left::Unreadable)
    }

    fn number(self, at: usize) -> Result<u16, Left> {
        Ok(u16::from_be_bytes([self.byte(at)?, self.byte(at + 1)?]))
    }
}

/// The innermost IP packet of a frame that carries a protocol, TCP or UDP, through every tunnel around it.
///
/// # Errors
/// Where there is none.
pub fn innermost(
    link: LinkType,
    bytes: &[u8],
    wire_len: usize,
    wanted: u8,
) -> Result<Found<'_>, Left> {
    let begin = link.begin(bytes).ok_or(Left::Unreadable)?;
    let mut rest = Rest { bytes, wire_len }.skip(begin.len())?;
    let mut layer = match begin {
        Begin::Ip(_) => Layer::Ip,
        Begin::Ethernet => Layer::Ethernet,
        Begin::Ppp(_) => Layer::Ppp,
        Begin::Typed(_, kind) => Layer::Typed(kind),
    };
    for _ in 0..MOST_LAYERS {
        (layer, rest) = match layer {
            Layer::Ethernet => (Layer::Typed(rest.number(12)?), rest.skip(14)?),
            Layer::Typed(kind) => typed(kind, rest)?,
            Layer::Ppp => within_ppp(rest)?,
            Layer::Ip => match within_ip(rest, wanted)? {
                Within::Wanted(found) => return Ok(found),
                Within::Tunnel(layer, rest) => (layer, rest),
            },
        };
    }
    Err(Left::Unreadable)
}

fn typed(kind: u16, rest: Rest<'_>) -> Result<(Layer, Rest<'_>), Left> {
    match kind {
        ethertype::IPV4 | ethertype::IPV6 => Ok((Layer::Ip, rest)),
        ethertype::BRIDGED => Ok((Layer::Ethernet, rest)),
        ethertype::PPP => Ok((Layer::Ppp, rest)),
        ethertype::PPPOE_SESSION => Ok((Layer::Ppp, rest.skip(6)?)),
        kind if ethertype::VLAN.contains(&kind) => {
            Ok((Layer::Typed(rest.number(2)?), rest.skip(4)?))
        }
        kind if ethertype::MPLS.contains(&kind) => labelled(rest),
        kind => Err(Left::Other(Other::Ethertype(kind))),
    }
}

/// Behind the label at the bottom of the stack (RFC 3032 section 2.1) stands IP, or a pseudowire of Ethernet, which may
/// begin with a control word (RFC 4385 section 3, RFC 4448).
fn labelled(mut rest: Rest<'_>) -> Result<(Layer, Rest<'_>), Left> {
    loop {
        let bottom = rest.byte(2)? & 1 == 1;
        rest = rest.skip(4)?;
        if bottom {
            return match rest.byte(0)? >> 4 {
                4 | 6 => Ok((Layer::Ip, rest)),
                0 => Ok((Layer::Ethernet, rest.skip(4)?)),
                _ => Ok((Layer::Ethernet, rest)),
            };
        }
    }
}

/// Address and control may be left out, and a protocol below 0x100 may have one byte (RFC 1661 section 6.5 and 6.6).
fn within_ppp(rest: Rest<'_>) -> Result<(Layer, Rest<'_>), Left> {
    let rest = match rest.number(0) {
        Ok(0xff03) => rest.skip(2)?,
        _ => rest,
    };
    let first = rest.byte(0)?;
    let (kind, rest) = if first & 1 == 1 {
        (u16::from(first), rest.skip(1)?)
    } else {
        (rest.number(0)?, rest.skip(2)?)
    };
    match kind {
        ppp::IPV4 | ppp::IPV6 => Ok((Layer::Ip, rest)),
        kind => Err(Left::Other(Other::Ppp(kind))),
    }
}

enum Within<'a> {
    Wanted(Found<'a>),
    Tunnel(Layer, Rest<'a>),
}

fn within_ip(rest: Rest<'_>, wanted: u8) -> Result<Within<'_>, Left> {
    let (header, kept, len) =
        ip::parse_cut(rest.bytes, rest.wire_len).map_err(|_| Left::Unreadable)?;
    if let ip::Header::V4(header) = &header
        && (header.fragment_offset != 0 || header.more_fragments)
    {
        return Err(Left::Unreadable);
    }
    let inner = Rest {
        bytes: kept,
        wire_len: len,
    };
    let (layer, inner) = match header.protocol() {
        ip::protocol::TCP if wanted == ip::protocol::TCP => {
            return Ok(Within::Wanted((header, kept, len)));
        }
        protocol::IPV4 | protocol::IPV6 => (Layer::Ip, inner),
        protocol::GRE => within_gre(inner)?,
        ip::protocol::UDP => match within_udp(inner)? {
            Some(inside) => inside,
            None if wanted == ip::protocol::UDP => {
                return Ok(Within::Wanted((header, kept, len)));
            }
            None => return Err(Left::Other(Other::Protocol(ip::protocol::UDP))),
        },
        other => return Err(Left::Other(Other::Protocol(other))),
    };
    Ok(Within::Tunnel(layer, inner))
}

/// RFC 2784 with the key and sequence number of RFC 2890; version 1 is PPTP's (RFC 2637 section 4.1).
fn within_gre(rest: Rest<'_>) -> Result<(Layer, Rest<'_>), Left> {
    let flags = rest.number(0)?;
    let kind = rest.number(2)?;
    let has = |bit: u16, len: usize| if flags & bit == 0 { 0 } else { len };
    let len = 4 + has(0x2000, 4) + has(0x1000, 4);
    let len = match flags & 0x7 {
        // A checksum, or routing, which no longer is.
        0 => len + has(0xc000, 4),
        1 => len + has(0x0080, 4),
        _ => return Err(Left::Other(Other::Protocol(protocol::GRE))),
    };
    let inner = rest.skip(len)?;
    if inner.bytes.is_empty() {
        return Err(Left::Other(Other::Protocol(protocol::GRE)));
    }
    Ok((Layer::Typed(kind), inner))
}

fn within_udp(rest: Rest<'_>) -> Inside<'_> {
    let to = rest.number(2)?;
    let datagram = rest.skip(8)?;
    match to {
        port::VXLAN => within_vxlan(datagram),
        port::GENEVE => within_geneve(datagram),
        port::GTP_U => within_gtp(datagram),
        _ => Ok(None),
    }
}

/// A tunnel's inside, or none where the port is used for something else.
type Inside<'a> = Result<Option<(Layer, Rest<'a>)>, Left>;

/// RFC 7348 section 5: flags, of which one says that there is an identifier.
fn within_vxlan(rest: Rest<'_>) -> Inside<'_> {
    match rest.byte(0)? {
        0x08 => Ok(Some((Layer::Ethernet, rest.skip(8)?))),
        _ => Ok(None),
    }
}

/// RFC 8926 section 3.4.
fn within_geneve(rest: Rest<'_>) -> Inside<'_> {
    let first = rest.byte(0)?;
    let is_control = rest.byte(1)? & 0x80 != 0;
    if first >> 6 != 0 || is_control {
        return Ok(None);
    }
    let options = usize::from(first & 0x3f) * 4;
    Ok(Some((
        Layer::Typed(rest.number(2)?),
        rest.skip(8 + options)?,
    )))
}

/// 3GPP TS 29.281 sections 5.1 and 5.2: a G-PDU, with its extension headers.
fn within_gtp(rest: Rest<'_>) -> Inside<'_> {
    const G_PDU: u8 = 255;
    let first = rest.byte(0)?;
    if first >> 4 != 0b0011 || rest.byte(1)? != G_PDU {
        return Ok(None);
    }
    if first & 0b111 == 0 {
        return Ok(Some((Layer::Ip, rest.skip(8)?)));
    }
    let mut next = if first & 0b100 == 0 {
        0
    } else {
        rest.byte(11)?
    };
    let mut inner = rest.skip(12)?;
    while next != 0 {
        let len = usize::from(inner.byte(0)?) * 4;
        if len == 0 {
            return Err(Left::Unreadable);
        }
        next = inner.byte(len - 1)?;
        inner = inner.skip(len)?;
    }
    Ok(Some((Layer::Ip, inner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IPv4 with a TCP header of 20 bytes, which announces port 80 at either end.
    fn segment() -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[3], packet[8], packet[9]) = (0x45, 40, 64, 6);
        (packet[15], packet[19]) = (1, 2);
        (packet[21], packet[23], packet[32]) = (80, 80, 0x50);
        packet
    }

    fn ip(protocol: u8, inner: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        (packet[0], packet[8], packet[9]) = (0x45, 64, protocol);
        packet[2..4].copy_from_slice(&(20 + inner.len() as u16).to_be_bytes());
        packet.extend(inner);
        packet
    }

    fn udp(port: u16, inner: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0; 8];
        datagram[2..4].copy_from_slice(&port.to_be_bytes());
        datagram[4..6].copy_from_slice(&(8 + inner.len() as u16).to_be_bytes());
        datagram.extend(inner);
        ip(17, &datagram)
    }

    fn ethernet(kind: u16, inner: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(kind.to_be_bytes());
        frame.extend(inner);
        frame
    }

    fn behind(header: &[u8], inner: &[u8]) -> Vec<u8> {
        [header, inner].concat()
    }

    fn found(link: LinkType, frame: &[u8]) -> Result<Vec<u8>, Left> {
        innermost(link, frame, frame.len(), ip::protocol::TCP).map(|(_, kept, _)| kept.to_vec())
    }

    #[test]
    fn a_segment_is_found_within_every_tunnel() {
        let inner = segment();
        let bridged = ethernet(0x0800, &inner);
        let session = behind(&[0x11, 0, 0, 1, 0, 42, 0, 0x21], &inner);
        for (what, frame) in [
            ("plain", ethernet(0x0800, &inner)),
            (
                "two tags",
                ethernet(0x88a8, &behind(&[0, 7, 0x81, 0, 0, 8, 8, 0], &inner)),
            ),
            ("PPPoE", ethernet(0x8864, &session)),
            (
                "MPLS",
                ethernet(0x8847, &behind(&[0, 1, 0, 64, 0, 2, 1, 64], &inner)),
            ),
            (
                "a pseudowire",
                ethernet(0x8847, &behind(&[0, 2, 1, 64, 0, 0, 0, 0], &bridged)),
            ),
            ("IP in IP", ethernet(0x0800, &ip(4, &inner))),
            (
                "GRE",
                ethernet(0x0800, &ip(47, &behind(&[0, 0, 8, 0], &inner))),
            ),
            (
                "GRE with all",
                ethernet(
                    0x0800,
                    &ip(
                        47,
                        &behind(&[&[0xb0, 0, 8, 0][..], &[0; 12]].concat(), &inner),
                    ),
                ),
            ),
            (
                "GRE, bridged",
                ethernet(0x0800, &ip(47, &behind(&[0, 0, 0x65, 0x58], &bridged))),
            ),
            (
                "PPTP",
                ethernet(
                    0x0800,
                    &ip(
                        47,
                        &behind(
                            &[
                                0x30, 0x81, 0x88, 0x0b, 0, 50, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0x21,
                            ],
                            &inner,
                        ),
                    ),
                ),
            ),
            (
                "VXLAN",
                ethernet(
                    0x0800,
                    &udp(4789, &behind(&[8, 0, 0, 0, 0, 0, 9, 0], &bridged)),
                ),
            ),
            (
                "Geneve",
                ethernet(
                    0x0800,
                    &udp(
                        6081,
                        &behind(&[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 0], &bridged),
                    ),
                ),
            ),
            (
                "GTP-U",
                ethernet(
                    0x0800,
                    &udp(2152, &behind(&[0x30, 255, 0, 40, 0, 0, 0, 1], &inner)),
                ),
            ),
            (
                "GTP-U with extensions",
                ethernet(
                    0x0800,
                    &udp(
                        2152,
                        &behind(
                            &[0x34, 255, 0, 48, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0],
                            &inner,
                        ),
                    ),
                ),
            ),
        ] {
            assert_eq!(
                found(LinkType::Ethernet, &frame),
                Ok(inner[20..].to_vec()),
                "{what}"
            );
        }
    }

    #[test]
    fn ppp_has_long_and_short_forms() {
        let inner = segment();
        for header in [
            &[0xff, 3, 0, 0x21][..],
            &[0, 0x21],
            &[0x21],
            &[0xff, 3, 0x21],
        ] {
            assert_eq!(
                found(LinkType::Ppp, &behind(header, &inner)),
                Ok(inner[20..].to_vec())
            );
        }
        assert_eq!(
            found(LinkType::Ppp, &[0xff, 3, 0xc0, 0x21, 1]),
            Err(Left::Other(Other::Ppp(0xc021)))
        );
    }

    #[test]
    fn what_is_no_tcp_is_named() {
        let named = |frame: &[u8]| found(LinkType::Ethernet, frame).unwrap_err();
        assert_eq!(
            named(&ethernet(0x0806, &[0; 28])),
            Left::Other(Other::Ethertype(0x0806))
        );
        assert_eq!(
            named(&ethernet(0x0800, &udp(443, &[0; 20]))),
            Left::Other(Other::Protocol(17))
        );
        assert_eq!(
            named(&ethernet(0x0800, &udp(4789, &[0; 20]))),
            Left::Other(Other::Protocol(17))
        );
        assert_eq!(
            named(&ethernet(0x0800, &udp(2152, &[0x30, 1, 0, 0, 0, 0, 0, 0]))),
            Left::Other(Other::Protocol(17))
        );
        assert_eq!(
            named(&ethernet(0x0800, &ip(1, &[0; 8]))),
            Left::Other(Other::Protocol(1))
        );
        let mut piece = ethernet(0x0800, &ip(4, &segment()));
        piece[20] = 0x20;
        assert_eq!(named(&piece), Left::Unreadable);
    }

    #[test]
    fn what_ends_early_or_never_is_unreadable() {
        let whole = ethernet(
            0x0800,
            &udp(
                6081,
                &behind(
                    &[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 0],
                    &ethernet(0x0800, &segment()),
                ),
            ),
        );
        for len in 0..whole.len() - 20 {
            assert!(
                innermost(
                    LinkType::Ethernet,
                    &whole[..len],
                    whole.len(),
                    ip::protocol::TCP
                )
                .is_err(),
                "{len}"
            );
        }
        let mut circle = segment();
        for _ in 0..20 {
            circle = ip(4, &circle);
        }
        assert_eq!(found(LinkType::Raw, &circle), Err(Left::Unreadable));
        let endless = udp(
            2152,
            &[0x34, 255, 0, 48, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 0, 0, 0],
        );
        assert_eq!(found(LinkType::Raw, &endless), Err(Left::Unreadable));
    }
}
