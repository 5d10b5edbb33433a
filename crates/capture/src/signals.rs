//! Handshakes, addresses, priorities, fallback and the end of connections.

use polypath_wire::mptcp::MptcpOption;
use polypath_wire::tcp::{Flags, Segment};

use crate::analysis::Analysis;
use crate::half::Half;
use crate::join::Joined;
use crate::keys::Version;
use crate::stream::Stream;

impl Analysis<'_> {
    pub fn handshake(
        &mut self,
        number: usize,
        at: usize,
        from: usize,
        segment: &Segment,
        now: i64,
    ) {
        let to = 1 - from;
        let connection = &mut self.connections[number];
        let subflow = &mut connection.subflows[at];
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        let answers = segment.flags.contains(Flags::SYN | Flags::ACK);
        if answers && subflow.halves.iter().all(Half::offers_scale) {
            subflow.halves.iter_mut().for_each(Half::scale_windows);
        }
        if opens || subflow.established[to].is_some() {
            return;
        }
        // The opener of an additional subflow waits for a fourth ACK (RFC 8684 section 3.2).
        let additional = subflow.info.joined != Joined::Initial;
        if answers && additional {
            return;
        }
        subflow.established[to] = Some(now);
        let first = connection.established[to].is_none() && at == 0;
        if first {
            connection.established[to] = Some(now);
            self.event(number, to, now, "connection-established", |_| {});
        }
        self.event(number, to, now, "subflow-established", |row| {
            row.subflow = Some(at as u32);
        });
        if to == 0 && answers && self.connections[number].info.refused {
            self.fall_back(number, to, now, "no MP_CAPABLE on the SYN/ACK");
        }
    }

    /// What options tell besides mappings and acknowledgements.
    pub fn signals(&mut self, number: usize, at: usize, from: usize, segment: &Segment, now: i64) {
        let to = 1 - from;
        let connection = &mut self.connections[number];
        if connection.info.version.is_none() {
            return;
        }
        let version = connection.info.version;
        for option in segment.mptcp() {
            match option {
                MptcpOption::AddAddr {
                    echo: false,
                    address_id,
                    address,
                    ..
                } => self.announce(number, from, *address_id, address.to_string(), now),
                MptcpOption::Unknown {
                    subtype: ADD_ADDR,
                    body,
                    ..
                } if version == Some(Version::Zero) => {
                    if let Some((id, address)) = old_address(body) {
                        self.announce(number, from, id, address, now);
                    }
                }
                MptcpOption::RemoveAddr { address_ids } => {
                    for &id in address_ids {
                        let known = &mut self.connections[number].announced[from];
                        known.retain(|each| *each != id);
                        self.event(number, to, now, "address-removed", |row| {
                            row.value = Some(f64::from(id));
                        });
                    }
                }
                MptcpOption::Prio { backup } => self.prioritise(number, at, to, *backup, now),
                // With the address that it is about (RFC 6824 section 3.3.8).
                MptcpOption::Unknown {
                    subtype: PRIO,
                    flags,
                    body,
                } if body.len() == 1 => self.prioritise(number, at, to, flags & 1 != 0, now),
                MptcpOption::Fail { .. } if self.connections[number].subflows.len() == 1 => {
                    self.fall_back(number, from, now, "DSS checksum failed");
                    self.fall_back(number, to, now, "MP_FAIL received");
                }
                MptcpOption::FastClose { .. } => self.connections[number].reset = true,
                _ => {}
            }
        }
        self.look_for_fallback(number, at, from, segment, now);
    }

    fn announce(&mut self, number: usize, from: usize, id: u8, address: String, now: i64) {
        let known = &mut self.connections[number].announced[from];
        if known.contains(&id) {
            return;
        }
        known.push(id);
        self.event(number, 1 - from, now, "address-added", |row| {
            row.detail = format!("{address} as {id}").into();
        });
    }

    fn prioritise(&mut self, number: usize, at: usize, to: usize, backup: bool, now: i64) {
        self.connections[number].subflows[at].backup = backup;
        self.event(number, to, now, "priority-changed", |row| {
            row.subflow = Some(at as u32);
            row.detail = if backup { "backup" } else { "normal" }.into();
        });
    }

    /// Signs of a peer that speaks plain TCP (RFC 8684 section 3.7).
    fn look_for_fallback(
        &mut self,
        number: usize,
        at: usize,
        from: usize,
        segment: &Segment,
        now: i64,
    ) {
        let to = 1 - from;
        let connection = &mut self.connections[number];
        let bare = segment.dss.is_none() && segment.mptcp().is_empty();
        let handshake = segment.flags.intersects(Flags::SYN | Flags::RST);
        if connection.info.refused
            || connection.fallen && connection.told[to]
            || connection.subflows.len() > 1
            || !connection.subflows[0].info.opened
            || handshake
        {
            return;
        }
        let third = from == 0 && !connection.begun;
        connection.begun |= from == 0;
        connection.confirmed[from] |= segment.dss.is_some();
        let subflow = &connection.subflows[at];
        let mapping = segment.dss.and_then(|dss| dss.mapping);
        let infinite = mapping.is_some_and(|mapping| mapping.len == 0);
        let acked = subflow.halves[to].acked_bytes();
        let why = if infinite && segment.payload.len > 0 {
            "infinite mapping"
        } else if !bare || connection.confirmed[from] {
            return;
        } else if third && subflow.info.near[to] && from == 0 {
            "no MP_CAPABLE on the third ACK"
        } else if segment.payload.len > 0 && !subflow.halves[from].is_mapped() {
            "data without a mapping"
        } else if segment.flags.contains(Flags::ACK)
            && subflow.halves[to]
                .position(segment.ack)
                .is_some_and(|ack| ack > acked + 1)
            && subflow.halves[to].is_mapped()
        {
            "acknowledgement without DSS"
        } else {
            return;
        };
        self.fall_back(number, to, now, why);
    }

    fn fall_back(&mut self, number: usize, side: usize, now: i64, why: &'static str) {
        let connection = &mut self.connections[number];
        connection.fallen = true;
        if std::mem::replace(&mut connection.told[side], true) {
            return;
        }
        self.event(number, side, now, "fallback", |row| row.detail = why.into());
    }

    /// Ends a connection of which both directions are closed once the client has heard of it.
    pub fn close(&mut self, number: usize, to: usize, now: i64) {
        let connection = &mut self.connections[number];
        if connection.closed.is_some() {
            return;
        }
        let by_data = !connection.is_plain() && connection.streams.iter().all(Stream::is_closed);
        let by_subflows = connection.subflows.iter().all(|each| each.closed.is_some());
        if !by_data && !by_subflows && !connection.reset {
            return;
        }
        connection.over.get_or_insert((now, to));
        connection.reset |= !by_data && connection.subflows.iter().any(|each| each.reset);
        if to == 0 || connection.reset {
            self.end(number, to, now);
        }
    }

    pub fn end(&mut self, number: usize, to: usize, now: i64) {
        let connection = &mut self.connections[number];
        connection.closed = Some(now);
        for stream in &mut connection.streams {
            stream.end(now);
        }
        let how = if connection.reset {
            "reset"
        } else {
            "finished"
        };
        self.event(number, to, now, "connection-closed", |row| {
            row.detail = how.into();
        });
    }
}

/// Subtypes whose form in version 0 the codec does not know.
const ADD_ADDR: u8 = 3;
const PRIO: u8 = 5;

/// ADD_ADDR of version 0, behind its first three bytes: id, address, port if any (RFC 6824 section 3.4.1).
fn old_address(body: &[u8]) -> Option<(u8, String)> {
    let (&id, address) = body.split_first()?;
    let address = match address.len() {
        4 | 6 => std::net::IpAddr::from(<[u8; 4]>::try_from(&address[..4]).ok()?),
        16 | 18 => std::net::IpAddr::from(<[u8; 16]>::try_from(&address[..16]).ok()?),
        _ => return None,
    };
    Some((id, address.to_string()))
}
