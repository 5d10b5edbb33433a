//! Which flows are subflows of one connection, and which of its ends is the client.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::flows::FlowId;
use crate::keys::Version;
use crate::packet::Tap;
use crate::survey::{STRAGGLE, Seen, Survey, Surveyed};

/// How an MP_JOIN found its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The first subflow.
    Initial,
    /// By its token, and the HMACs that were seen are right.
    Verified,
    /// By its token; no HMAC was seen, or not both keys and nonces.
    ByToken,
    /// By its token, but an HMAC is wrong.
    WrongHmac,
    /// By its data sequence numbers; its token is that of no key that was seen, or was not seen either.
    ByData,
    /// The token is that of no key that was seen.
    Unknown,
}

/// A subflow of a connection.
#[derive(Clone, Debug)]
pub struct Subflow {
    pub flow: FlowId,
    pub client: SocketAddr,
    pub server: SocketAddr,
    /// Direction of the flow in which the client sends.
    pub client_direction: usize,
    pub joined: Joined,
    pub backup: bool,
    /// Whether the SYN was seen.
    pub opened: bool,
    /// The taps nearest to client and server, several where they saw the flow one after the other; the same twice where there is
    /// but one place.
    pub taps: [Vec<Tap>; 2],
    /// Whether that tap is nearer to this end than to the other.
    pub near: [bool; 2],
    /// Whether checksums of what client and server send say nothing at the other end's tap.
    pub offloads: [bool; 2],
}

/// A connection with its subflows in the order of their first segments.
#[derive(Clone, Debug)]
pub struct Connection {
    pub subflows: Vec<Subflow>,
    /// The protocol, where Multipath TCP was asked for or spoken.
    pub version: Option<Version>,
    /// Multipath TCP was asked for on the SYN but not granted on the SYN/ACK.
    pub refused: bool,
    /// Data sequence number before the first byte, of client and server.
    pub initial_data: [Option<u64>; 2],
    pub first_ns: i64,
    /// Its keys are those of a connection before it, which was seen from elsewhere.
    pub twice: bool,
    /// Flows that are a subflow of its own, seen from beyond something that changes addresses.
    pub beyond: u64,
}

/// A connection that a token may name.
#[derive(Clone, Copy)]
struct Named {
    connection: usize,
    /// Whether the token is that of the client's key.
    client: bool,
}

/// Joins what was surveyed.
pub fn join(survey: &Survey) -> Vec<Connection> {
    let mut connections: Vec<Connection> = Vec::new();
    let mut named: BTreeMap<u32, Vec<Named>> = BTreeMap::new();
    let mut keys: Vec<[Option<u64>; 2]> = Vec::new();
    let (mut joins, initials): (Vec<_>, Vec<_>) = (0..survey.found.len()).partition(|&flow| {
        survey
            .flow(flow)
            .join
            .is_some_and(|join| join.token.is_some())
    });
    // First flows of connections that began before the capture.
    let mut unopened: Vec<(FlowId, usize)> = Vec::new();
    let by_data = |surveyed: &Surveyed, unopened: &[(FlowId, usize)]| {
        let known = unopened
            .iter()
            .find(|(flow, _)| is_of_one_connection(survey.flow(*flow), surveyed));
        known.map(|(_, connection)| *connection)
    };
    for flow in initials {
        let surveyed = survey.flow(flow);
        let client = client_of(surveyed);
        if surveyed.opener.is_none() && surveyed.multipath {
            if let Some(connection) = by_data(surveyed, &unopened) {
                let subflow = subflow(surveyed, flow, client, Joined::ByData);
                connections[connection].subflows.push(subflow);
                continue;
            }
            unopened.push((flow, connections.len()));
        }
        let capable = surveyed.capable.unwrap_or_default();
        let version = surveyed
            .multipath
            .then(|| Version::of(capable.version.unwrap_or(1)));
        let own = [capable.keys[client], capable.keys[1 - client]];
        let mut twice = false;
        for (side, key) in own.into_iter().enumerate() {
            if let (Some(key), Some(version)) = (key, version) {
                let found = Named {
                    connection: connections.len(),
                    client: side == 0,
                };
                let known = named.entry(version.token(key)).or_default();
                twice |= !known.is_empty();
                known.push(found);
            }
        }
        keys.push(own);
        let opened = surveyed.opener.is_some() && surveyed.initial[1 - client].is_some();
        connections.push(Connection {
            subflows: vec![subflow(surveyed, flow, client, Joined::Initial)],
            version,
            refused: capable.asked && opened && !capable.answered,
            initial_data: own.map(|key| Some(version?.initial_data_sequence(key?))),
            first_ns: surveyed.first_ns,
            twice,
            beyond: 0,
        });
    }
    joins.sort_by_key(|&flow| (survey.flow(flow).first_ns, flow));
    for flow in joins {
        let surveyed = survey.flow(flow);
        let token = surveyed
            .join
            .and_then(|join| join.token)
            .expect("only those with a token");
        let opener = client_of(surveyed);
        let known = named.entry(token).or_default();
        // On both sides of something that changes addresses the token is the same: the files tell which.
        let together = known.iter().find(|each| {
            let first = &connections[each.connection].subflows[0];
            shares_a_file(survey.flow(first.flow), surveyed)
        });
        let Some(&found) = together.or(known.first()) else {
            if let Some(connection) = by_data(surveyed, &unopened) {
                known.push(Named {
                    connection,
                    client: false,
                });
                let subflow = subflow(surveyed, flow, opener, Joined::ByData);
                connections[connection].subflows.push(subflow);
                continue;
            }
            // Others with this token belong together, whatever else they belong to.
            let found = Named {
                connection: connections.len(),
                client: false,
            };
            known.push(found);
            keys.push([None; 2]);
            connections.push(Connection {
                subflows: vec![subflow(surveyed, flow, opener, Joined::Unknown)],
                version: Some(Version::One),
                refused: false,
                initial_data: [None; 2],
                first_ns: surveyed.first_ns,
                twice: false,
                beyond: 0,
            });
            continue;
        };
        let client = if found.client { 1 - opener } else { opener };
        let connection = &mut connections[found.connection];
        if connection
            .subflows
            .iter()
            .any(|other| is_beyond(survey.flow(other.flow), surveyed))
        {
            connection.beyond += 1;
            continue;
        }
        let how = if connection.subflows[0].joined == Joined::Unknown {
            Joined::Unknown
        } else {
            verified(surveyed, opener, client, connection, keys[found.connection])
        };
        connection
            .subflows
            .push(subflow(surveyed, flow, client, how));
    }
    for connection in &mut connections {
        let (first, others) = connection.subflows.split_at_mut(1);
        others.sort_by_key(|subflow| (survey.flow(subflow.flow).first_ns, subflow.flow));
        connection.first_ns = first
            .iter()
            .chain(others.iter())
            .map(|subflow| survey.flow(subflow.flow).first_ns)
            .min()
            .unwrap_or_default();
    }
    connections.sort_by_key(|connection| (connection.first_ns, connection.subflows[0].flow));
    connections
}

/// Whether two flows carry data of one connection: their data sequence numbers, which begin at random, are near each other. Those of 32
/// bits tell it together only, and of flows to one server. What has the sequence numbers of the other, too, is the same flow beyond
/// something that changes addresses.
fn is_of_one_connection(a: &Surveyed, b: &Surveyed) -> bool {
    let clients = [client_of(a), client_of(b)];
    let directions = [clients, clients.map(|client| 1 - client)];
    let whole = directions.map(|[of_a, of_b]| {
        let apart = a.data[of_a]?.wrapping_sub(b.data[of_b]?) as i64;
        Some(apart.unsigned_abs() < 1 << 31)
    });
    let near = |a: Option<u32>, b: Option<u32>| {
        a.zip(b)
            .is_some_and(|(a, b)| (a.wrapping_sub(b) as i32).unsigned_abs() < STRAGGLE)
    };
    let server = |of: &Surveyed, client: usize| if client == 0 { of.ends.1 } else { of.ends.0 };
    let one = if whole == [None; 2] {
        server(a, clients[0]) == server(b, clients[1])
            && directions
                .iter()
                .all(|&[of_a, of_b]| near(a.short_data[of_a], b.short_data[of_b]))
    } else {
        whole.iter().all(|near| near.unwrap_or(true))
    };
    let same = directions
        .iter()
        .all(|&[of_a, of_b]| near(a.lowest[of_a], b.lowest[of_b]));
    one && !same && shares_a_file(a, b)
}

/// Whether two flows with one token are one subflow, on both sides of something that changes addresses: the nonces are the same.
fn is_beyond(a: &Surveyed, b: &Surveyed) -> bool {
    let nonces = |of: &Surveyed| {
        let opener = client_of(of);
        let join = of.join?;
        Some((join.nonces[opener]?, join.nonces[1 - opener]?))
    };
    nonces(a).is_some() && nonces(a) == nonces(b) && !shares_a_file(a, b)
}

fn shares_a_file(a: &Surveyed, b: &Surveyed) -> bool {
    let taps = |of: &Surveyed| of.taps.iter().flat_map(Seen::taps).collect::<Vec<_>>();
    let others = taps(b);
    taps(a)
        .iter()
        .any(|tap| others.iter().any(|other| other.file == tap.file))
}

/// The direction in which the client sends: it sent the SYN. Without one, the end with the lower port is the server.
fn client_of(surveyed: &Surveyed) -> usize {
    let (first, second) = surveyed.ends;
    surveyed
        .opener
        .unwrap_or(usize::from(first.port() < second.port()))
}

fn verified(
    surveyed: &Surveyed,
    opener: usize,
    client: usize,
    connection: &Connection,
    keys: [Option<u64>; 2],
) -> Joined {
    let (Some(version), Some(join)) = (connection.version, surveyed.join) else {
        return Joined::ByToken;
    };
    let ([Some(of_client), Some(of_server)], [Some(_), Some(_)]) = (keys, join.nonces) else {
        return Joined::ByToken;
    };
    let nonce = |direction: usize| join.nonces[direction].unwrap_or_default();
    let key = |direction: usize| {
        if direction == client {
            of_client
        } else {
            of_server
        }
    };
    let hmac =
        |from: usize| version.hmac((key(from), key(1 - from)), (nonce(from), nonce(1 - from)));
    let answer = join.answered.map(|seen| {
        let right = hmac(1 - opener);
        seen.to_be_bytes() == right[..8]
    });
    let confirmation = join.confirmed.map(|seen| seen == hmac(opener));
    match (answer, confirmation) {
        (Some(false), _) | (_, Some(false)) => Joined::WrongHmac,
        (None, None) => Joined::ByToken,
        _ => Joined::Verified,
    }
}

fn subflow(surveyed: &Surveyed, flow: FlowId, client: usize, joined: Joined) -> Subflow {
    let (first, second) = surveyed.ends;
    let (client_end, server_end) = if client == 0 {
        (first, second)
    } else {
        (second, first)
    };
    // 1 at the client, 0 at the server.
    let nearness = |seen: &Seen| {
        let first = seen.nearness().unwrap_or(0.5);
        if client == 0 { first } else { 1.0 - first }
    };
    // Of taps at the same place the opener's sees a segment of the opener's first.
    let from_client = surveyed.opener.unwrap_or(client) == client;
    let mut taps: Vec<_> = surveyed
        .taps
        .iter()
        .enumerate()
        .map(|(order, seen)| {
            let order = order as i64;
            (
                nearness(seen),
                if from_client { order } else { -order },
                seen,
            )
        })
        .collect();
    taps.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let (at_client, at_server) = (taps[0], taps[taps.len() - 1]);
    let near_client = at_client.0 >= 0.5;
    // A tap that tells nothing of its place is taken for the client's.
    let near_server = at_server.0 < 0.5;
    let by_client = if near_client {
        at_client.2
    } else {
        at_server.2
    };
    let by_server = if near_server {
        at_server.2
    } else {
        at_client.2
    };
    Subflow {
        flow,
        client: client_end,
        server: server_end,
        client_direction: client,
        joined,
        backup: surveyed.join.is_some_and(|join| join.backup),
        opened: surveyed.opener.is_some(),
        taps: [by_client, by_server].map(|seen| seen.taps().collect()),
        near: [near_client, near_server],
        offloads: [by_server.offloads(client), by_client.offloads(1 - client)],
    }
}
