//! A connection and its subflows as the second reading finds them.

use polypath_wire::mptcp::MptcpOption;
use polypath_wire::tcp::Segment;

use crate::blocking::{Queue, Waits};
use crate::half::Half;
use crate::join;
use crate::stream::Stream;
use crate::survey::Survey;

/// A subflow on its way.
pub struct Subflow {
    pub info: join::Subflow,
    /// What client and server send.
    pub halves: [Half; 2],
    /// Behind a hole of the subflow, of what client and server send.
    pub queues: [Queue; 2],
    pub waits: [Waits; 2],
    /// When client and server knew that it is established.
    pub established: [Option<i64>; 2],
    pub closed: Option<i64>,
    pub reset: bool,
    pub backup: bool,
}

/// A connection on its way.
pub struct Connection {
    pub info: join::Connection,
    pub subflows: Vec<Subflow>,
    /// What client and server send.
    pub streams: [Stream; 2],
    pub fallen: bool,
    pub told: [bool; 2],
    /// A DSS came from client and server.
    pub confirmed: [bool; 2],
    /// A segment other than a SYN came from the client.
    pub begun: bool,
    pub established: [Option<i64>; 2],
    pub closed: Option<i64>,
    /// When and by whom it was first seen that both directions are closed.
    pub over: Option<(i64, usize)>,
    pub reset: bool,
    pub first_byte: Option<i64>,
    pub last_byte: Option<i64>,
    /// Addresses that client and server announced.
    pub announced: [Vec<u8>; 2],
    /// The last instant with a sample; none before the first packet.
    pub sampled: Option<i64>,
}

impl Connection {
    /// The subflow is the stream: plain TCP, or what fell back to it.
    pub fn is_plain(&self) -> bool {
        self.info.version.is_none() || self.info.refused || self.fallen
    }

    /// What recordings call it.
    pub fn transport(&self) -> &'static str {
        match self.info.version {
            None => "tcp",
            Some(_) if self.is_plain() => "fallback",
            Some(_) => "mptcp",
        }
    }

    /// Bytes that came in order to client or server.
    pub fn received(&self, side: usize) -> u64 {
        self.streams[1 - side].delivered()
    }
}

impl Connection {
    pub fn new(info: join::Connection, survey: &Survey) -> Self {
        let subflows = info
            .subflows
            .iter()
            .map(|subflow| {
                let flow = survey.flow(subflow.flow);
                let half = |side: usize| {
                    let direction = if side == 0 {
                        subflow.client_direction
                    } else {
                        1 - subflow.client_direction
                    };
                    match (flow.initial[direction], flow.lowest[direction]) {
                        (Some(syn), _) => Half::new(syn, 0),
                        (None, Some(lowest)) => {
                            let zero =
                                flow.mapped_from[direction].unwrap_or(lowest.wrapping_sub(1));
                            Half::new(zero, u64::from(lowest.wrapping_sub(zero)))
                        }
                        (None, None) => {
                            let acked = flow.acked[direction].unwrap_or(1);
                            Half::new(acked.wrapping_sub(1), 1)
                        }
                    }
                };
                Subflow {
                    info: subflow.clone(),
                    halves: [half(0), half(1)],
                    queues: Default::default(),
                    waits: Default::default(),
                    established: [None; 2],
                    closed: None,
                    reset: false,
                    backup: subflow.backup,
                }
            })
            .collect();
        Self {
            subflows,
            streams: info.initial_data.map(Stream::new),
            fallen: false,
            told: [false; 2],
            confirmed: [false; 2],
            begun: false,
            established: [None; 2],
            closed: None,
            over: None,
            reset: false,
            first_byte: None,
            last_byte: None,
            announced: Default::default(),
            sampled: None,
            info,
        }
    }

    /// Takes the mapping of a segment (RFC 8684 section 3.3.1).
    pub fn map(&mut self, at: usize, from: usize, segment: &Segment) {
        if self.info.version.is_none() {
            return;
        }
        let half = &mut self.subflows[at].halves[from];
        let stream = &mut self.streams[from];
        // The first data of version 1 has its mapping in MP_CAPABLE (section 3.1).
        for option in segment.mptcp() {
            if let MptcpOption::Capable(capable) = option
                && let Some((len, _)) = capable.data
                && segment.payload.len > 0
            {
                half.map(1, u64::from(len), 0);
            }
        }
        let Some(dss) = segment.dss else {
            return;
        };
        let Some(mapping) = dss.mapping else {
            return;
        };
        let Some(offset) = stream.offset(mapping.dsn) else {
            return;
        };
        let len = u64::from(mapping.len);
        if dss.data_fin && len > 0 {
            stream.fin = Some(offset + len - 1);
        }
        let data = len - u64::from(dss.data_fin).min(len);
        if mapping.subflow_seq == 0 {
            return;
        }
        let Some(start) = crate::ranges::unwrap(0, mapping.subflow_seq, half.sent_to()) else {
            return;
        };
        if data > 0 {
            half.map(start, data, offset);
        } else if len == 0 {
            // Infinite: up to the end of the connection (section 3.7).
            half.map(start, 0, offset);
        }
    }
}
