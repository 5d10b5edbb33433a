//! The parts of a plan that figures need. The plan of a capture has them too, although the simulator could not run it.

use serde::Deserialize;

/// A plan as JSON has it; what nothing here asks for is left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Plan {
    pub duration_ns: Option<i64>,
    pub nodes: Vec<Node>,
    pub applications: Vec<Application>,
    pub links: Vec<Link>,
    pub events: Vec<Event>,
    pub record: Record,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    pub interfaces: Vec<Interface>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Interface {
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Application {
    pub name: String,
    pub transport: String,
    pub start_ns: i64,
    /// The number of the node that it starts at.
    pub client: Option<usize>,
    pub work: Work,
}

/// What an application is to do. Absent: it has no bound of that kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Work {
    pub kind: String,
    pub duration_ns: Option<i64>,
    pub size_bytes: Option<i64>,
    pub count: Option<i64>,
    /// Of a video.
    pub segments: Option<i64>,
    pub reverse: bool,
    pub reverse_bytes: Option<i64>,
}

/// Applications that only send: the client, or with `reverse` the server.
const ONE_WAY: [&str; 3] = ["bulk", "stream", "messages"];

impl Work {
    /// Whether the client is the one that sends.
    pub fn client_sends(&self) -> bool {
        ONE_WAY.contains(&self.kind.as_str()) && !self.reverse && self.reverse_bytes.is_none()
    }

    /// Whether it ends after a time and nothing else.
    pub fn ends_by_time(&self) -> bool {
        self.duration_ns.is_some() && self.size_bytes.is_none() && self.count.is_none()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Link {
    pub name: String,
    pub a: End,
    pub b: End,
    pub forward: Channel,
    pub backward: Channel,
}

/// Where a link is plugged in, by number.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct End {
    pub node: usize,
    pub interface: usize,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Channel {
    pub rate_bps: Option<i64>,
    pub overhead_bytes: i64,
    pub trace: Option<Trace>,
}

/// Delivery opportunities: the gaps before them and how many follow with the same gap.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Trace {
    pub gaps_ms: Vec<(i64, usize)>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    pub at_ns: i64,
    pub action: Action,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Action {
    pub kind: String,
    pub link: Option<usize>,
    pub direction: Option<String>,
    pub rate_bps: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Record {
    pub interval_ns: i64,
}
