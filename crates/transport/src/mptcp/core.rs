//! What the subflows of a connection share: settings, the connection-level receiver, negotiated keys, and the options that follow from them.

use std::sync::Arc;

use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MpCapable, MpJoin, MptcpOption};
use polypath_wire::tcp::Segment;

use super::keys;
use crate::config::Config;
use crate::stream::{Blocking, Receiver};
use crate::{Counters, Event, EventKind, Mib, Nanos, Purpose, Transmit};

/// Option space of a TCP header (RFC 9293 section 3.1).
const OPTION_SPACE: u32 = 40;
const TIMESTAMPS: u32 = 12;

/// The keys of an MPTCP connection and what follows from them.
#[derive(Debug)]
pub(crate) struct Multipath {
    pub local_key: u64,
    pub remote_key: u64,
    pub local_token: u32,
    pub remote_token: u32,
    pub local_idsn: u64,
    pub remote_idsn: u64,
    /// DSS checksums were asked for by one side (RFC 8684 section 3.3).
    pub checksum: bool,
    /// Both sides are known to have both keys (section 3.1, "fully established").
    pub confirmed: bool,
    /// Data sequence numbers of eight bytes, and data ACKs of eight bytes once the peer sent such numbers (Linux `use_64bit_ack`).
    pub long: bool,
    pub long_ack: bool,
    /// The peer refuses further subflows to its first address (flag C).
    pub deny_join_initial: bool,
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
            confirmed: false,
            long: config.profile.long_dsn(),
            long_ack: false,
            deny_join_initial: false,
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
            Dsn::Long(dsn)
        } else {
            Dsn::Short(dsn as u32)
        }
    }

    fn data_ack(&self, offset: u64) -> DataAck {
        let ack = self.remote_idsn.wrapping_add(1).wrapping_add(offset);
        if self.long_ack {
            DataAck::Long(ack)
        } else {
            DataAck::Short(ack as u32)
        }
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
pub(crate) struct Join {
    pub local_nonce: u32,
    pub remote_nonce: u32,
    pub local_id: u8,
    pub backup: bool,
    /// The client waits for the fourth ACK.
    pub unconfirmed: bool,
    pub attempts: u32,
}

/// The part of a connection that its sockets may touch.
pub(crate) struct Core {
    pub config: Arc<Config>,
    pub now: Nanos,
    pub out: Vec<Transmit>,
    pub events: Vec<Event>,
    pub counters: Counters,
    pub receive: Receiver,
    pub blocking: Blocking,
    /// Why the segment was sent that is being taken.
    pub arriving: Purpose,
    /// Absent: plain TCP, from the start or after a fallback.
    pub multipath: Option<Multipath>,
    /// After a fallback, until what was sent later than at this offset is acknowledged: data carries an infinite mapping.
    pub infinite: Option<(Multipath, u64)>,
    /// After a fallback: the peer's initial data sequence number, by which it may still map what it sends.
    pub peer_idsn: Option<u64>,
    pub client: bool,
    /// Some subflow received a FIN.
    pub fin_seen: bool,
    /// Handshake state of each subflow but the first.
    pub joins: Vec<Option<Box<Join>>>,
    /// The peer's window admits the stream up to here.
    pub send_limit: u64,
    /// What a cork held back leaves now.
    pub uncorked: bool,
    /// The largest window that the peer offered.
    pub largest_window: u64,
    /// The application waits for room to write, under upstream's rules (SOCK_NOSPACE).
    pub writer_waits: bool,
    /// Reused between acknowledgements.
    pub scratch: Vec<(u64, u64)>,
}

impl Core {
    pub fn event(&mut self, kind: EventKind) {
        self.events.push(Event { at: self.now, kind });
    }

    pub fn emit(&mut self, subflow: usize, segment: Segment) {
        self.emit_data(subflow, segment, Purpose::Control);
    }

    pub fn emit_data(&mut self, subflow: usize, segment: Segment, purpose: Purpose) {
        self.out.push(Transmit {
            subflow,
            segment,
            purpose,
        });
    }

    pub fn admits(&self, end: u64) -> bool {
        end <= self.send_limit
    }

    /// Payload bytes that the option of every data segment takes.
    pub fn data_option_len(&self) -> u32 {
        self.multipath.as_ref().map_or(0, Multipath::data_len)
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

    /// Takes what came in sequence on subflow `me`.
    #[inline]
    pub fn deliver(&mut self, me: usize, offset: u64, len: u64) {
        if !self.receive.deliver_next(offset, len) {
            self.deliver_around_holes(me, offset, len);
        }
    }

    #[inline(never)]
    fn deliver_around_holes(&mut self, me: usize, offset: u64, len: u64) {
        let (next, waiting) = (self.receive.next, self.receive.reassembly_bytes());
        if offset > next {
            self.counters.increment(Mib::MPTcpExtOFOQueue);
        }
        if self.receive.deliver(offset, len) < len {
            self.counters.increment(Mib::MPTcpExtDuplicateData);
        }
        let left = self.receive.reassembly_bytes();
        if waiting | left > 0 {
            self.note_waiting(me, next, waiting, left);
        }
    }

    /// `waiting` bytes were out of order before a delivery, `left` are after it.
    fn note_waiting(&mut self, me: usize, next: u64, waiting: u64, left: u64) {
        if self.receive.next > next {
            let cause = self.arriving.into();
            (self.blocking).connection_advances(me, left, cause, self.now);
        } else if left != waiting {
            self.blocking.connection_holds(left, self.now);
        }
    }

    /// The acknowledgement at data level; the DATA_FIN counts one (RFC 8684 section 3.3.3).
    fn data_acknowledgement(&self) -> u64 {
        self.receive.next + u64::from(self.receive.at_end())
    }

    fn capable(&self, multipath: &Multipath, sender: bool, receiver: bool) -> MpCapable {
        MpCapable {
            version: 1,
            checksum_required: self.config.checksum,
            deny_join_initial: false,
            hmac_sha256: true,
            sender_key: sender.then_some(multipath.local_key),
            receiver_key: receiver.then_some(multipath.remote_key),
            data: None,
        }
    }

    /// MP_CAPABLE or MP_JOIN on a SYN or SYN/ACK.
    pub fn add_syn_options(&mut self, me: usize, answer: bool, segment: &mut Segment) {
        let Some(multipath) = &self.multipath else {
            return;
        };
        let option = match &self.joins[me] {
            None => {
                self.counters
                    .add(Mib::MPTcpExtMPCapableSYNTX, u32::from(!answer));
                MptcpOption::Capable(self.capable(multipath, answer, false))
            }
            Some(join) if answer => {
                let hmac = keys::join_hmac(
                    multipath.local_key,
                    multipath.remote_key,
                    join.local_nonce,
                    join.remote_nonce,
                );
                MptcpOption::Join(MpJoin::SynAck {
                    backup: join.backup,
                    address_id: join.local_id,
                    hmac: keys::leading_64(&hmac),
                    nonce: join.local_nonce,
                })
            }
            Some(join) => {
                self.counters.increment(Mib::MPTcpExtMPJoinSynTx);
                MptcpOption::Join(MpJoin::Syn {
                    backup: join.backup,
                    address_id: join.local_id,
                    token: multipath.remote_token,
                    nonce: join.local_nonce,
                })
            }
        };
        segment.rare_mut().mptcp.push(option);
    }

    /// The option that completes a handshake on the client's side.
    pub fn add_third_ack_options(&mut self, me: usize, segment: &mut Segment) {
        let Some(multipath) = &self.multipath else {
            return;
        };
        let option = match &self.joins[me] {
            None => MptcpOption::Capable(self.capable(multipath, true, true)),
            Some(join) => {
                let hmac = keys::join_hmac(
                    multipath.local_key,
                    multipath.remote_key,
                    join.local_nonce,
                    join.remote_nonce,
                );
                MptcpOption::Join(MpJoin::Ack {
                    hmac: keys::leading_160(&hmac),
                })
            }
        };
        segment.rare_mut().mptcp.push(option);
    }

    /// Whether the handshake's last option must still be repeated on this subflow.
    fn handshake_open(&self, me: usize, multipath: &Multipath) -> bool {
        match &self.joins[me] {
            None => self.client && !multipath.confirmed,
            Some(join) => self.client && join.unconfirmed,
        }
    }

    /// Data ACK, or the handshake's last option until the peer has confirmed it. Returns the option space left for SACK.
    pub fn add_ack_options(&mut self, me: usize, segment: &mut Segment) -> u32 {
        let timestamps = if segment.timestamps.is_some() {
            TIMESTAMPS
        } else {
            0
        };
        let Some(multipath) = &self.multipath else {
            return OPTION_SPACE - timestamps;
        };
        if self.handshake_open(me, multipath) {
            self.add_third_ack_options(me, segment);
            return 0;
        }
        segment.dss = Some(Dss {
            data_ack: Some(multipath.data_ack(self.data_acknowledgement())),
            mapping: None,
            data_fin: false,
        });
        OPTION_SPACE - timestamps - multipath.ack_len()
    }

    /// The mapping of a data segment (RFC 8684 section 3.3.1). Returns the option space left for SACK.
    pub fn add_data_options(&mut self, me: usize, seq: u64, segment: &mut Segment) -> u32 {
        let timestamps = if segment.timestamps.is_some() {
            TIMESTAMPS
        } else {
            0
        };
        let Some(multipath) = &self.multipath else {
            let mapping = self.add_infinite_mapping(seq, segment);
            return OPTION_SPACE - timestamps - mapping;
        };
        let checksum = multipath.checksum.then_some(0);
        if self.client && !multipath.confirmed && self.joins[me].is_none() && seq == 1 {
            let mut capable = self.capable(multipath, true, true);
            capable.data = Some((segment.payload.len as u16, checksum));
            segment.rare_mut().mptcp.push(MptcpOption::Capable(capable));
            return 0;
        }
        segment.dss = Some(Dss {
            data_ack: Some(multipath.data_ack(self.data_acknowledgement())),
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

    /// Tells a peer that may still see options of the fallback (RFC 8684 section 3.7). Returns the option's length.
    fn add_infinite_mapping(&mut self, seq: u64, segment: &mut Segment) -> u32 {
        let Some((multipath, _)) = &self.infinite else {
            return 0;
        };
        self.counters.increment(Mib::MPTcpExtInfiniteMapTx);
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
    pub fn add_data_fin(&mut self, offset: u64, segment: &mut Segment) {
        let Some(multipath) = &self.multipath else {
            return;
        };
        segment.dss = Some(Dss {
            data_ack: Some(multipath.data_ack(self.data_acknowledgement())),
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
