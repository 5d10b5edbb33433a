//! A controller that spreads the subflows of Multipath TCP, with no change at the hosts.
//!
//! It sees each flow begin, and knows from the handshakes which flows belong to one connection. It gives each flow a
//! path that shares as few links as possible with the others'. Its decision takes no time: it is there when the first
//! packet leaves.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use polypath_net::{ChannelId, NodeId, Topology};
use polypath_transport::Segment;
use polypath_transport::mptcp::keys::token;
use polypath_wire::mptcp::{MpCapable, MpJoin, MptcpOption};

/// One direction of a conversation.
type Way = (SocketAddr, SocketAddr);

/// What is known of the flows so far, and where they were put.
#[derive(Debug, Default)]
pub(crate) struct Spreading {
    /// The connection of each conversation, by its direction from the client.
    connections: BTreeMap<Way, u32>,
    /// Connections by the tokens of keys that were seen.
    tokens: BTreeMap<u32, u32>,
    paths: BTreeMap<Way, Vec<ChannelId>>,
    /// How many flows of a connection cross a channel.
    shared: BTreeMap<(u32, ChannelId), u64>,
    /// How many flows of all connections cross it.
    load: BTreeMap<ChannelId, u64>,
    count: u32,
}

impl Spreading {
    /// Reads a flow's first segment: the server's key in a SYN/ACK (RFC 8684 section 3.1), the token that follows from it in a join's SYN
    /// (section 3.2). Of a client's key, which the third ACK shows, it knows nothing: joins that a server opens are connections of their own.
    pub fn read(&mut self, source: SocketAddr, destination: SocketAddr, segment: &Segment) {
        let connection = self.connection(source, destination);
        for option in segment.mptcp() {
            match option {
                MptcpOption::Capable(MpCapable {
                    sender_key: Some(key),
                    ..
                }) => {
                    self.tokens.insert(token(*key), connection);
                }
                MptcpOption::Join(MpJoin::Syn { token, .. }) => {
                    if let Some(&joined) = self.tokens.get(token) {
                        self.connections.insert((source, destination), joined);
                    }
                }
                _ => {}
            }
        }
    }

    /// The channels that a flow takes from a node: back along the other direction's if that was placed, else over the fewest links that
    /// its connection uses already, of these the fewest in all, of these the links with the fewest flows.
    pub fn place(
        &mut self,
        topology: &Topology,
        up: impl Fn(ChannelId) -> bool,
        from: NodeId,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Option<Vec<ChannelId>> {
        let begins = |there: &&Vec<ChannelId>| {
            let last = there.last().and_then(|&channel| topology.ends(channel));
            let here = last.is_some_and(|(_, end)| topology.node_of(end) == Ok(from));
            here && there.iter().all(|channel| up(*channel))
        };
        if let Some(there) = self.paths.get(&(destination, source)).filter(begins) {
            return Some(
                there
                    .iter()
                    .rev()
                    .map(|channel| topology.opposite(*channel))
                    .collect(),
            );
        }
        let connection = self.connection(source, destination);
        let cost = |channel: ChannelId| {
            let count = |known: Option<&u64>| u128::from(known.copied().unwrap_or_default());
            let shared = count(self.shared.get(&(connection, channel)));
            let broken = u128::from(!up(channel));
            broken << 110 | shared << 80 | 1 << 48 | count(self.load.get(&channel))
        };
        let path = topology.cheapest(from, source.ip(), destination.ip(), cost)?;
        if !path.iter().all(|channel| up(*channel)) {
            return None;
        }
        for &channel in &path {
            *self.shared.entry((connection, channel)).or_default() += 1;
            *self.load.entry(channel).or_default() += 1;
        }
        self.paths.insert((source, destination), path.clone());
        Some(path)
    }

    /// Where a flow was put, if it was.
    pub fn placed(&self, source: SocketAddr, destination: SocketAddr) -> Option<&[ChannelId]> {
        self.paths.get(&(source, destination)).map(Vec::as_slice)
    }

    /// Takes a flow off its path, so that it can be placed again.
    pub fn displace(&mut self, source: SocketAddr, destination: SocketAddr) {
        let connection = self.connection(source, destination);
        for channel in self
            .paths
            .remove(&(source, destination))
            .unwrap_or_default()
        {
            let shared = self.shared.get_mut(&(connection, channel));
            for count in shared.into_iter().chain(self.load.get_mut(&channel)) {
                *count = count.saturating_sub(1);
            }
        }
    }

    fn connection(&mut self, source: SocketAddr, destination: SocketAddr) -> u32 {
        let known = [(source, destination), (destination, source)];
        if let Some(&connection) = known.iter().find_map(|way| self.connections.get(way)) {
            return connection;
        }
        self.count += 1;
        self.connections.insert((source, destination), self.count);
        self.count
    }
}
