//! Captures: packets at the ends of links, as pcapng files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polypath_net::{ChannelId, DropReason, Ecn, Observer, Packet, random};
use polypath_trace::pcapng::{Direction, Interface, Writer};
use polypath_trace::{Envelope, FrameBuilder, Mac};
use polypath_wire::EmitError;
use polypath_wire::icmp::Echo;
use polypath_wire::tcp::Payload;

use crate::application::Show;
use crate::error::Unwritten;
use crate::flow::{Body, Content, Flow, Quoted, ip_header_len};
use crate::middlebox::About;
use crate::plan::{NodeKind, Plan};

/// The key log (as in SSLKEYLOGFILE) beside captures of QUIC.
const KEY_LOG: &str = "keys.log";

/// What is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    #[default]
    None,
    /// One file for each host, an interface for each of its link ends.
    Hosts,
    /// One file for each link, an interface for each end.
    Links,
}

/// The end of a link as a capture knows it.
#[derive(Clone, Copy)]
struct Tap {
    file: usize,
    interface: Interface,
    mac: Mac,
    peer_mac: Mac,
}

/// Watches the network and writes captures. A frame is stamped when it is handed to the link, which may lose it, and when its last bit arrives.
pub(crate) struct Captures {
    files: Vec<Writer<BufWriter<File>>>,
    /// By channel: where it leaves and where it arrives, where that is captured.
    taps: Vec<(Option<Tap>, Option<Tap>)>,
    /// By channel: whether what it loses was handed to it just now. Over the air that is known only after some attempts.
    loses_at_once: Vec<bool>,
    /// The files under temporary names, renamed at the end.
    names: Vec<(PathBuf, PathBuf)>,
    pub flows: Vec<Flow>,
    /// Packets that routers' reports are about: here, so that packets of the usual kinds are dropped without a look at them.
    pub quoted: Vec<Quoted>,
    /// Where secrets go beside the files.
    key_log: Option<PathBuf>,
    /// Secrets that the files have already: both ends of a connection know them.
    told: BTreeSet<String>,
    builder: FrameBuilder,
    frame: Vec<u8>,
    failure: Option<Unwritten>,
    active: bool,
    /// The Ethernet address of each IP address, where frames are the hosts' own from end to end: no switch changes them.
    pub ethernet: Option<BTreeMap<IpAddr, Mac>>,
    /// A controller gets packets as bytes.
    pub heard: bool,
    /// The frames of a controller's own.
    pub own: Vec<Arc<[u8]>>,
}

impl Show for Captures {
    fn show(&mut self, endpoint: usize, offset: u64, text: &[u8]) {
        if self.active {
            let stream = random::mix(endpoint as u64);
            self.builder.texts.insert(stream, offset, Arc::from(text));
        }
    }
}

impl Captures {
    pub fn none() -> Self {
        Self {
            files: Vec::new(),
            taps: Vec::new(),
            loses_at_once: Vec::new(),
            names: Vec::new(),
            flows: Vec::new(),
            quoted: Vec::new(),
            key_log: None,
            told: BTreeSet::new(),
            builder: FrameBuilder::new(),
            frame: Vec::new(),
            failure: None,
            active: false,
            ethernet: None,
            heard: false,
            own: Vec::new(),
        }
    }

    /// Opens the files of `mode` in `directory`.
    pub fn open(
        plan: &Plan,
        mode: CaptureMode,
        directory: Option<&Path>,
    ) -> Result<Self, Unwritten> {
        let mut captures = Self::none();
        let Some(directory) = directory.filter(|_| mode != CaptureMode::None) else {
            return Ok(captures);
        };
        captures.active = true;
        std::fs::create_dir_all(directory).map_err(|error| Unwritten::new(directory, &error))?;
        captures.key_log = Some(directory.join(KEY_LOG));
        let mut host_files = vec![None; plan.nodes.len()];
        for (index, link) in plan.links.iter().enumerate() {
            let link_file = match mode {
                CaptureMode::Links => Some(captures.create(directory, &link.name)?),
                _ => None,
            };
            let mut ends = [None, None];
            for (end, (slot, attachment)) in ends.iter_mut().zip([link.a, link.b]).enumerate() {
                let node = &plan.nodes[attachment.node];
                let file = match link_file {
                    Some(file) => Some(file),
                    None if node.kind == NodeKind::Host => match host_files[attachment.node] {
                        Some(file) => Some(file),
                        None => {
                            let file = captures.create(directory, &node.name)?;
                            host_files[attachment.node] = Some(file);
                            Some(file)
                        }
                    },
                    None => None,
                };
                let Some(file) = file else { continue };
                let name = format!(
                    "{}:{}",
                    node.name, node.interfaces[attachment.interface].name
                );
                let interface = captures.files[file]
                    .interface(&name, plan.record.snaplen)
                    .map_err(|error| Unwritten::new(&captures.names[file].1, &error))?;
                let mac = |end: usize| Mac::local((2 * index + end) as u32 + 1);
                *slot = Some(Tap {
                    file,
                    interface,
                    mac: mac(end),
                    peer_mac: mac(1 - end),
                });
            }
            let [a, b] = ends;
            captures.taps.push((a, b));
            captures.taps.push((b, a));
            let sides = [&link.forward, &link.backward];
            let at_once = sides.map(|side| side.wifi.is_none());
            captures.loses_at_once.extend(at_once);
        }
        Ok(captures)
    }

    fn create(&mut self, directory: &Path, name: &str) -> Result<usize, Unwritten> {
        let name: String = name
            .chars()
            .map(|c| {
                if c.is_alphanumeric() || "-_.".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let path = directory.join(format!("{name}.pcapng"));
        let partial = directory.join(format!(".{name}.pcapng.partial"));
        let file = File::create(&partial)
            .and_then(|file| Writer::new(BufWriter::new(file)))
            .map_err(|error| Unwritten::new(&path, &error))?;
        self.files.push(file);
        self.names.push((partial, path));
        Ok(self.files.len() - 1)
    }

    /// Puts secrets of a handshake into every file, so that what follows can be decrypted, and appends them to the key log.
    pub fn secrets(&mut self, lines: &[String]) {
        let news = lines
            .iter()
            .filter(|line| self.told.insert((*line).clone()));
        let log = news.map(|line| format!("{line}\n")).collect::<String>();
        if log.is_empty() {
            return;
        }
        for (file, (_, path)) in self.files.iter_mut().zip(&self.names) {
            if let Err(error) = file.tls_secrets(&log) {
                self.failure.get_or_insert(Unwritten::new(path, &error));
            }
        }
        if let Some(path) = &self.key_log
            && let Err(error) = append(path, &log)
        {
            self.failure.get_or_insert(Unwritten::new(path, &error));
        }
    }

    pub fn active(&self) -> bool {
        self.active
    }

    /// Whether somebody sees packets as bytes: captures, or a controller.
    pub fn shows_bytes(&self) -> bool {
        self.active || self.heard
    }

    /// The frame of a packet that has come to a switch, as its controller gets it.
    pub fn frame(&mut self, packet: &Packet<Body>) -> Result<&[u8], EmitError> {
        let macs = (Mac::default(), Mac::default());
        let ttl = self.ttl(packet, packet.hop.saturating_sub(1));
        self.lay(packet, macs, ttl)?;
        Ok(&self.frame)
    }

    /// The packet that a report is about.
    pub fn about(&self, content: &Content) -> Option<Box<About>> {
        let Content::TooBig { about, .. } = content else {
            return None;
        };
        let quoted = &self.quoted[*about as usize];
        let flow = &self.flows[quoted.flow as usize];
        Some(Box::new(About {
            source: flow.source,
            destination: flow.destination,
            content: quoted.body.content.clone(),
        }))
    }

    /// Has a report show the packet that it is about with the addresses and ports that a middlebox gave it.
    #[cold]
    pub fn requote(&mut self, content: &mut Content, shown: &About) {
        let Content::TooBig { about, .. } = content else {
            return;
        };
        let quoted = &self.quoted[*about as usize];
        let flow = &self.flows[quoted.flow as usize];
        if (flow.source, flow.destination) == (shown.source, shown.destination) {
            return;
        }
        let translated = Flow {
            source: shown.source,
            destination: shown.destination,
            ..flow.clone()
        };
        let quoted = Quoted {
            flow: self.flows.len() as u32,
            ..quoted.clone()
        };
        *about = self.quoted.len() as u32;
        self.flows.push(translated);
        self.quoted.push(quoted);
    }

    /// What kept any file from being written so far.
    pub fn require_written(&mut self) -> Result<(), Unwritten> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Closes the files under their names.
    pub fn finish(&mut self) -> Result<(), Unwritten> {
        self.require_written()?;
        for (file, (_, path)) in self.files.iter_mut().zip(&self.names) {
            file.flush().map_err(|error| Unwritten::new(path, &error))?;
        }
        for (partial, path) in self.names.drain(..) {
            std::fs::rename(partial, &path).map_err(|error| Unwritten::new(&path, &error))?;
        }
        Ok(())
    }

    /// What is left of a packet's TTL after `hops` channels of its flow.
    fn ttl(&self, packet: &Packet<Body>, hops: u16) -> u8 {
        if self.ethernet.is_some() {
            return TTL;
        }
        let before = self.flows[packet.flow as usize].crossed;
        TTL.saturating_sub((before + hops) as u8)
    }

    fn write(&mut self, at: u64, tap: Tap, direction: Direction, packet: &Packet<Body>, ttl: u8) {
        let macs = match direction {
            Direction::Outbound => (tap.mac, tap.peer_mac),
            Direction::Inbound => (tap.peer_mac, tap.mac),
        };
        let written = match self.lay(packet, macs, ttl) {
            Ok(()) => self.files[tap.file].packet(tap.interface, at, direction, &self.frame),
            Err(error) => Err(io::Error::other(error.to_string())),
        };
        if let Err(error) = written {
            let (_, path) = &self.names[tap.file];
            self.failure.get_or_insert(Unwritten::new(path, &error));
        }
    }

    /// Makes a packet's frame, between these Ethernet addresses unless the hosts' own are known.
    fn lay(&mut self, packet: &Packet<Body>, macs: (Mac, Mac), ttl: u8) -> Result<(), EmitError> {
        let flow = &self.flows[packet.flow as usize];
        let (src_mac, dst_mac) = match &self.ethernet {
            Some(known) => {
                let of = |end: SocketAddr| known.get(&end.ip()).copied().unwrap_or_default();
                (of(flow.source), of(flow.destination))
            }
            None => macs,
        };
        let envelope = Envelope {
            src_mac,
            dst_mac,
            src: flow.source.ip(),
            dst: flow.destination.ip(),
            ttl,
            identification: packet.body.identification,
            ecn: ecn_bits(packet.ecn),
            corrupted: packet.corrupted,
        };
        self.frame.clear();
        let built = match &packet.body.content {
            Content::TooBig { mtu, about } => {
                let mut quoted = Vec::new();
                let about = &self.quoted[*about as usize];
                let flow = &self.flows[about.flow as usize];
                let original = Envelope {
                    src: flow.source.ip(),
                    dst: flow.destination.ip(),
                    ttl: TTL.saturating_sub((flow.crossed + about.hop.saturating_sub(1)) as u8),
                    identification: about.body.identification,
                    ecn: ecn_bits(about.ecn),
                    corrupted: false,
                    ..envelope
                };
                build(&mut self.builder, flow, &original, &about.body, &mut quoted).and_then(|()| {
                    let packet = &quoted[ETHERNET_HEADER..];
                    self.builder
                        .icmp_too_big(&envelope, *mtu, packet, &mut self.frame)
                })
            }
            Content::Frame(number) => {
                self.frame.extend_from_slice(&self.own[*number as usize]);
                Ok(())
            }
            _ => build(
                &mut self.builder,
                flow,
                &envelope,
                &packet.body,
                &mut self.frame,
            ),
        };
        if packet.body.altered && built.is_ok() {
            let payload = ETHERNET_HEADER + ip_header_len(flow.source) as usize;
            alter_payload(&mut self.frame[payload..]);
        }
        built
    }
}

/// As those who write key logs do: lines that are there already stay.
fn append(path: &Path, lines: &str) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    file.write_all(lines.as_bytes())
}

/// The frame of a packet of an endpoint.
fn build(
    builder: &mut FrameBuilder,
    flow: &Flow,
    envelope: &Envelope,
    body: &Body,
    frame: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let ports = (flow.source.port(), flow.destination.port());
    match &body.content {
        Content::Tcp(segment) => {
            let dsn = flow
                .first_dsn
                .map(|first| first.wrapping_add(segment.payload.offset));
            builder.tcp(envelope, ports, segment, flow.stream, dsn, frame)
        }
        Content::Udp { sequence, len, .. } => {
            let payload = Payload {
                offset: sequence * u64::from(*len),
                len: *len,
            };
            builder.udp(envelope, ports, flow.stream, payload, frame)
        }
        Content::Echo {
            reply,
            sequence,
            len,
            ..
        } => {
            let echo = Echo {
                reply: *reply,
                identifier: flow.identifier,
                sequence: *sequence,
            };
            let data = Payload {
                offset: u64::from(*sequence) * u64::from(*len),
                len: *len,
            };
            builder.icmp_echo(envelope, echo, flow.stream, data, frame)
        }
        Content::Quic(sealed) => builder.udp_bytes(envelope, ports, &sealed.bytes, frame),
        // Nothing reports a report, or a frame that is no packet.
        Content::TooBig { .. } | Content::Frame(_) => Ok(()),
    }
}

fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

const ETHERNET_HEADER: usize = 14;

/// Inverts the first payload byte of a TCP segment and sets the checksum right (RFC 1624, equation 3).
fn alter_payload(segment: &mut [u8]) {
    let at = usize::from(segment[12] >> 4) * 4;
    let word = |segment: &[u8], at: usize| {
        u16::from_be_bytes([segment[at], segment.get(at + 1).copied().unwrap_or(0)])
    };
    let before = word(segment, at);
    segment[at] = !segment[at];
    let sum = [!word(segment, CHECKSUM_AT), !before, word(segment, at)];
    let sum = sum.into_iter().map(u32::from).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !(sum as u16);
    segment[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Where TCP's checksum stands in its header (RFC 9293 section 3.1).
const CHECKSUM_AT: usize = 16;

/// Hosts send with this TTL (Linux ip_default_ttl).
const TTL: u8 = 64;

impl Observer<Body> for Captures {
    fn enqueued(&mut self, at: u64, channel: ChannelId, packet: &Packet<Body>) {
        if let Some((Some(tap), _)) = self.taps.get(channel.index()).copied() {
            self.write(
                at,
                tap,
                Direction::Outbound,
                packet,
                self.ttl(packet, packet.hop),
            );
        }
    }

    /// Who sends sees what the link loses.
    fn dropped(&mut self, at: u64, channel: ChannelId, packet: &Packet<Body>, reason: DropReason) {
        let at_once = self.loses_at_once.get(channel.index()) == Some(&true);
        if reason == DropReason::Loss && at_once {
            self.enqueued(at, channel, packet);
        }
    }

    fn arrived(&mut self, at: u64, channel: ChannelId, packet: &Packet<Body>) {
        if let Some((_, Some(tap))) = self.taps.get(channel.index()).copied() {
            self.write(
                at,
                tap,
                Direction::Inbound,
                packet,
                self.ttl(packet, packet.hop.saturating_sub(1)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use polypath_wire::tcp::{Payload, Segment, emit, verify_checksum};

    use super::alter_payload;

    #[test]
    fn altered_payload_keeps_a_right_checksum() {
        let addresses: (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        for len in [1, 2, 3, 100] {
            let payload: Vec<u8> = (0..len).map(|byte| (byte * 37) as u8).collect();
            let segment = Segment {
                payload: Payload {
                    offset: 0,
                    len: len as u32,
                },
                ..Segment::default()
            };
            let mut bytes = Vec::new();
            emit(&segment, 1, 2, &payload, addresses, &mut bytes).expect("it fits");
            let before = bytes.clone();
            alter_payload(&mut bytes);
            assert_ne!(bytes[20..], before[20..]);
            assert!(verify_checksum(&bytes, addresses), "{len} bytes");
        }
    }
}
