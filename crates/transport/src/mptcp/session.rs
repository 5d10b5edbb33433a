//! The keys of a Multipath TCP connection, and the options that its segments carry (RFC 8684 section 3).

use std::cell::Cell;

use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MpCapable, MpJoin, MptcpOption};
use polypath_wire::tcp::Segment;

use super::keys;
use crate::host::BlackHoles;
use crate::settings::Config;
use crate::tcp::context::{Options, Shared};
use crate::{Mib, Nanos};

/// Option space of a TCP header (RFC 9293 section 3.1).
pub(super) const OPTION_SPACE: u32 = 40;
const TIMESTAMPS: u32 = 12;

/// The keys of an MPTCP connection and what follows from them.
#[derive(Debug)]
pub(super) struct Multipath {
    pub local_key: u64,
    pub remote_key: u64,
    pub local_token: u32,
    pub remote_token: u32,
    pub local_idsn: u64,
    pub remote_idsn: u64,
    /// DSS checksums were asked for by one side (RFC 8684 section 3.3).
    pub checksum: bool,
    /// This side asks for them.
    pub asks_checksum: bool,
    /// Both sides are known to have both keys (section 3.1, "fully established").
    pub confirmed: bool,
    /// Data sequence numbers of eight bytes, and data ACKs of eight bytes once the peer sent such numbers (Linux `use_64bit_ack`).
    pub long: bool,
    pub long_ack: bool,
    /// The peer refuses further subflows to its first address (flag C), and so does this side.
    pub deny_join_initial: bool,
    pub denies_first: bool,
}

impl Multipath {
    pub fn new(config: &Config, local_key: u64) -> Self {
        Self {
            local_key,
            remote_key: 0,
            local_token: keys::token(local_key),
            remote_token: 0,
            local_idsn: keys::initial_dsn(local_key),
            remote_idsn: 0,
            checksum: config.checksum,
            asks_checksum: config.checksum,
            confirmed: false,
            long: config.profile.long_dsn(),
            long_ack: false,
            deny_join_initial: false,
            denies_first: !config.allow_join_initial_addr_port,
        }
    }

    pub fn set_remote_key(&mut self, key: u64) {
        self.remote_key = key;
        self.remote_token = keys::token(key);
        self.remote_idsn = keys::initial_dsn(key);
    }

    fn dsn(&self, offset: u64) -> Dsn {
        let dsn = self.local_idsn.wrapping_add(1).wrapping_add(offset);
        if self.long {
            Dsn::Long(dsn.into())
        } else {
            Dsn::Short(dsn as u32)
        }
    }

    fn data_ack(&self, offset: u64) -> DataAck {
        let ack = self.remote_idsn.wrapping_add(1).wrapping_add(offset);
        if self.long_ack {
            DataAck::Long(ack.into())
        } else {
            DataAck::Short(ack as u32)
        }
    }

    /// What this side proves its knowledge of the keys with (RFC 8684 section 3.2).
    fn join_hmac(&self, join: &Join) -> [u8; 32] {
        keys::join_hmac(
            self.local_key,
            self.remote_key,
            join.local_nonce,
            join.remote_nonce,
        )
    }

    fn ack_len(&self) -> u32 {
        if self.long_ack { 12 } else { 8 }
    }

    pub(super) fn data_len(&self) -> u32 {
        let mapping = if self.long { 14 } else { 10 };
        (self.ack_len() + mapping + 2 * u32::from(self.checksum)).next_multiple_of(4)
    }
}

/// The handshake of an additional subflow (RFC 8684 section 3.2).
#[derive(Clone, Debug)]
pub(super) struct Join {
    pub local_nonce: u32,
    pub remote_nonce: u32,
    pub local_id: u8,
    pub backup: bool,
    /// The client waits for the fourth ACK.
    pub unconfirmed: bool,
    pub attempts: u32,
    /// When the link was first asked for the peer's address, which nobody there has.
    pub unresolved_since: Option<Nanos>,
}

/// How a peer that may still see options is told of a fallback (RFC 8684 section 3.7).
pub(super) struct Infinite {
    pub multipath: Multipath,
    /// Over once something that was sent later than at this offset is acknowledged.
    pub from: u64,
    /// Some segment has carried it.
    pub told: Cell<bool>,
}

/// The multipath part of a connection's state.
pub(super) struct Session {
    /// Absent: plain TCP, from the start or after a fallback.
    pub multipath: Option<Multipath>,
    /// After a fallback, until the peer must have seen it: data carries an infinite mapping.
    pub infinite: Option<Infinite>,
    /// After a fallback: the peer's initial data sequence number, by which it may still map what it sends.
    pub peer_idsn: Option<u64>,
    pub client: bool,
    /// Those that the host knows of; of a client.
    pub black_holes: BlackHoles,
    /// The last SYN was the first without MP_CAPABLE, after those with it were lost (Linux `mpc_drop`).
    pub withheld: bool,
}

impl Session {
    /// Whether a client leaves MP_CAPABLE out, as its host found that it does not pass (Linux `mptcp_active_should_disable`).
    pub fn shuns_capable(&self, shared: &Shared) -> bool {
        let Shared { config, now, .. } = shared;
        self.multipath.is_some()
            && config.profile.remembers_black_holes()
            && (self.black_holes).matter(*now, config.blackhole_timeout_ns)
    }

    /// The peer answered a SYN without MP_CAPABLE. True: it was the first such SYN, so that a box drops those that have it (Linux
    /// `subflow_finish_connect`).
    pub fn finds_black_hole(&self, shared: &Shared) -> bool {
        let Shared { config, now, .. } = shared;
        let found = self.withheld
            && config.profile.remembers_black_holes()
            && config.blackhole_timeout_ns > 0;
        if found {
            self.black_holes.found(*now);
        }
        found
    }

    /// The peer has not confirmed MPTCP.
    pub fn is_unconfirmed(&self) -> bool {
        let multipath = self.multipath.as_ref();
        multipath.is_some_and(|multipath| !multipath.confirmed)
    }

    /// The first segment's option is MP_CAPABLE with both keys, longer than a short DSS (RFC 8684 section 3.1): by how much.
    pub fn first_segment_excess(&self) -> u32 {
        match &self.multipath {
            Some(multipath) if self.client && !multipath.confirmed => {
                24u32.saturating_sub(multipath.data_len())
            }
            _ => 0,
        }
    }
}

/// The options of a subflow's segments.
#[derive(Clone, Copy)]
pub(super) struct SubflowOptions<'a> {
    pub session: &'a Session,
    /// Absent on the first subflow.
    pub join: Option<&'a Join>,
}

/// The acknowledgement at data level; the DATA_FIN counts one (RFC 8684 section 3.3.3).
fn data_acknowledgement(shared: &Shared) -> u64 {
    shared.receive.next + u64::from(shared.receive.at_end())
}

fn timestamps_len(segment: &Segment) -> u32 {
    if segment.timestamps.is_some() {
        TIMESTAMPS
    } else {
        0
    }
}

impl SubflowOptions<'_> {
    fn capable(&self, multipath: &Multipath, sender: bool, receiver: bool) -> MpCapable {
        MpCapable {
            version: 1,
            checksum_required: multipath.asks_checksum,
            deny_join_initial: multipath.denies_first,
            hmac_sha256: true,
            sender_key: sender.then_some(multipath.local_key),
            receiver_key: receiver.then_some(multipath.remote_key),
            data: None,
        }
    }

    /// Whether the handshake's last option must still be repeated on this subflow.
    fn handshake_open(&self, multipath: &Multipath) -> bool {
        match self.join {
            None => self.session.client && !multipath.confirmed,
            Some(join) => self.session.client && join.unconfirmed,
        }
    }

    /// Tells a peer that may still see options of the fallback (RFC 8684 section 3.7). Returns the option's length.
    #[inline(never)]
    fn add_infinite_mapping(&self, shared: &mut Shared, seq: u64, segment: &mut Segment) -> u32 {
        let Some(infinite) = &self.session.infinite else {
            return 0;
        };
        if !infinite.told.replace(true) {
            shared.counters.increment(Mib::MPTcpExtInfiniteMapTx);
        }
        let multipath = &infinite.multipath;
        segment.dss = Some(Dss {
            data_ack: None,
            mapping: Some(Mapping {
                dsn: multipath.dsn(segment.payload.offset),
                subflow_seq: seq as u32,
                len: 0,
                checksum: multipath.checksum.then_some(0),
            }),
            data_fin: false,
        });
        multipath.data_len() - multipath.ack_len()
    }

    /// A DATA_FIN without data: a mapping of length one at subflow sequence number zero (RFC 8684 section 3.3.3).
    pub fn add_data_fin(&self, shared: &Shared, offset: u64, segment: &mut Segment) {
        let Some(multipath) = &self.session.multipath else {
            return;
        };
        segment.dss = Some(Dss {
            data_ack: Some(multipath.data_ack(data_acknowledgement(shared))),
            mapping: Some(Mapping {
                dsn: multipath.dsn(offset),
                subflow_seq: 0,
                len: 1,
                checksum: multipath.checksum.then_some(0),
            }),
            data_fin: true,
        });
    }
}

impl Options for SubflowOptions<'_> {
    fn maps_data(&self) -> bool {
        self.session.multipath.is_some()
    }

    fn data_len(&self) -> u32 {
        let multipath = self.session.multipath.as_ref();
        multipath.map_or(0, Multipath::data_len)
    }

    fn first_segment_excess(&self) -> u32 {
        self.session.first_segment_excess()
    }

    fn add_to_syn(&self, answer: bool, segment: &mut Segment) {
        let Some(multipath) = &self.session.multipath else {
            return;
        };
        let option = match self.join {
            None => MptcpOption::Capable(self.capable(multipath, answer, false)),
            Some(join) if answer => {
                let hmac = multipath.join_hmac(join);
                MptcpOption::Join(MpJoin::SynAck {
                    backup: join.backup,
                    address_id: join.local_id,
                    hmac: keys::leading_64(&hmac),
                    nonce: join.local_nonce,
                })
            }
            Some(join) => MptcpOption::Join(MpJoin::Syn {
                backup: join.backup,
                address_id: join.local_id,
                token: multipath.remote_token,
                nonce: join.local_nonce,
            }),
        };
        segment.rare_mut().add_mptcp(option);
    }

    fn add_to_third_ack(&self, segment: &mut Segment) {
        let Some(multipath) = &self.session.multipath else {
            return;
        };
        let option = match self.join {
            None => MptcpOption::Capable(self.capable(multipath, true, true)),
            Some(join) => {
                let hmac = multipath.join_hmac(join);
                MptcpOption::Join(MpJoin::Ack {
                    hmac: keys::leading_160(&hmac),
                })
            }
        };
        segment.rare_mut().add_mptcp(option);
    }

    #[inline(always)]
    fn add_to_ack(&self, shared: &Shared, segment: &mut Segment) -> u32 {
        let timestamps = timestamps_len(segment);
        let Some(multipath) = &self.session.multipath else {
            return OPTION_SPACE - timestamps;
        };
        if self.handshake_open(multipath) {
            self.add_to_third_ack(segment);
            return 0;
        }
        segment.dss = Some(Dss {
            data_ack: Some(multipath.data_ack(data_acknowledgement(shared))),
            mapping: None,
            data_fin: false,
        });
        OPTION_SPACE - timestamps - multipath.ack_len()
    }

    #[inline(always)]
    fn add_to_data(&self, shared: &mut Shared, seq: u64, segment: &mut Segment) -> u32 {
        let timestamps = timestamps_len(segment);
        let Some(multipath) = &self.session.multipath else {
            let mapping = match self.session.infinite {
                Some(_) => self.add_infinite_mapping(shared, seq, segment),
                None => 0,
            };
            return OPTION_SPACE - timestamps - mapping;
        };
        let checksum = multipath.checksum.then_some(0);
        if self.session.client && !multipath.confirmed && self.join.is_none() && seq == 1 {
            let mut capable = self.capable(multipath, true, true);
            capable.data = Some((segment.payload.len as u16, checksum));
            segment.rare_mut().add_mptcp(MptcpOption::Capable(capable));
            return 0;
        }
        segment.dss = Some(Dss {
            data_ack: Some(multipath.data_ack(data_acknowledgement(shared))),
            mapping: Some(Mapping {
                dsn: multipath.dsn(segment.payload.offset),
                subflow_seq: seq as u32,
                len: segment.payload.len as u16,
                checksum,
            }),
            data_fin: false,
        });
        OPTION_SPACE - timestamps - multipath.data_len()
    }
}
