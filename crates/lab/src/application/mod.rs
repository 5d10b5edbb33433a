//! Applications: one file for each kind, with its settings.
//!
//! A new kind is a file here. In this file it also needs a variant of [`Work`], a line in [`Work::kind`] and one in
//! [`ENTRIES`].

mod bulk;
mod cbr;
mod chain;
mod datagrams;
mod fetch;
mod frames;
mod hq;
mod http;
mod kind;
mod load;
mod messages;
mod on_off;
mod page;
mod ping;
mod ping_pong;
mod relay;
mod request_response;
mod session;
mod stream;
mod tls;
mod tunnel;
mod video;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::{Page, Video};

pub use bulk::BulkConfig;
pub use cbr::CbrConfig;
pub(crate) use chain::Chains;
pub(crate) use datagrams::Datagrams;
pub use fetch::FetchConfig;
pub(crate) use frames::Frames;
pub use hq::Streams;
pub(crate) use kind::{Beginning, Begun, Entry, Kind};
pub(crate) use load::{Loaded, Pages};
pub use messages::{Delivery, MessagesConfig};
pub use on_off::OnOffConfig;
pub use ping::PingConfig;
pub use ping_pong::PingPongConfig;
pub use relay::Relay;
pub use request_response::RequestResponseConfig;
pub(crate) use session::{Io, Request, Session, Show, Side};
pub use stream::StreamConfig;
pub use tls::Tls;
pub use tunnel::{Carriage, Framing, TunnelConfig};
pub(crate) use tunnel::{REQUEST, REQUEST_STREAM};
pub(crate) use video::Chunk;

/// The kinds for front ends.
pub(crate) const ENTRIES: &[Entry] = &[
    bulk::ENTRY,
    stream::ENTRY,
    request_response::ENTRY,
    fetch::ENTRY,
    ping_pong::ENTRY,
    messages::ENTRY,
    video::ENTRY,
    page::ENTRY,
    relay::ENTRY,
    tunnel::ENTRY,
    ping::ENTRY,
    cbr::ENTRY,
    on_off::ENTRY,
];

/// What an application does, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Work {
    Bulk(BulkConfig),
    Stream(StreamConfig),
    RequestResponse(RequestResponseConfig),
    Fetch(FetchConfig),
    PingPong(PingPongConfig),
    Messages(MessagesConfig),
    Video(Video),
    Page(Page),
    Relay(Relay),
    Tunnel(TunnelConfig),
    Ping(PingConfig),
    Cbr(CbrConfig),
    OnOff(OnOffConfig),
}

impl Work {
    /// What makes its settings impossible.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.kind().1.fault().map_or(Ok(()), Err)
    }

    /// The application whose bytes it relays, if it does nothing else.
    pub(crate) fn relays(&self) -> Option<usize> {
        match self {
            Self::Relay(relay) => Some(relay.of),
            _ => None,
        }
    }

    /// The settings of a tunnel, if it is one.
    pub(crate) fn tunnel(&self) -> Option<&TunnelConfig> {
        match self {
            Self::Tunnel(config) => Some(config),
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> (Entry, &dyn Kind) {
        match self {
            Self::Bulk(config) => (bulk::ENTRY, config),
            Self::Stream(config) => (stream::ENTRY, config),
            Self::RequestResponse(config) => (request_response::ENTRY, config),
            Self::Fetch(config) => (fetch::ENTRY, config),
            Self::PingPong(config) => (ping_pong::ENTRY, config),
            Self::Messages(config) => (messages::ENTRY, config),
            Self::Video(video) => (video::ENTRY, video),
            Self::Page(page) => (page::ENTRY, page),
            Self::Relay(relay) => (relay::ENTRY, relay),
            Self::Tunnel(config) => (tunnel::ENTRY, config),
            Self::Ping(config) => (ping::ENTRY, config),
            Self::Cbr(config) => (cbr::ENTRY, config),
            Self::OnOff(config) => (on_off::ENTRY, config),
        }
    }
}

#[cfg(test)]
mod tests {
    use polypath_settings::Model;
    use serde_json::{Value, json};

    use super::*;

    /// Settings by their fields: defaults, and the least that there can be where there is none.
    fn usual(model: &Model) -> Value {
        let mut made = json!({ "kind": model.name });
        for parameter in model.parameters {
            made[parameter.field] = match parameter.default {
                Some(default) if !parameter.rest => json!(default),
                _ => json!(parameter.minimum as u64),
            };
        }
        made
    }

    fn read(work: Value) -> Result<Work, String> {
        let work: Work = serde_json::from_value(work).map_err(|error| error.to_string())?;
        work.kind().1.fault().map_or(Ok(work), Err)
    }

    fn declared() -> impl Iterator<Item = &'static Model> {
        let models = ENTRIES.iter().map(|entry| &entry.model);
        models.filter(|model| !model.parameters.is_empty())
    }

    #[test]
    fn a_kind_takes_what_its_entry_says_and_no_more() {
        for model in declared() {
            let work = read(usual(model)).unwrap_or_else(|fault| panic!("{}: {fault}", model.name));
            assert_eq!(work.kind().0.model, *model);
            let mut unknown = usual(model);
            unknown["beyond"] = json!(1);
            assert!(read(unknown).is_err(), "{}", model.name);
            for parameter in model.parameters {
                let (least, most) = (parameter.minimum, parameter.maximum);
                let below = (least > 0.0).then_some(least - 1.0);
                let above = most.is_finite().then_some(most + 1.0);
                for value in below.into_iter().chain(above) {
                    let mut work = usual(model);
                    work[parameter.field] = json!(value as u64);
                    let fault = read(work).expect_err(parameter.name);
                    assert!(fault.contains(&format!("'{}'", parameter.name)), "{fault}");
                }
            }
        }
    }

    #[test]
    fn what_a_plan_may_leave_out_is_the_default() {
        for model in declared() {
            let whole = read(usual(model)).expect(model.name);
            for parameter in model.parameters {
                let mut short = usual(model);
                let fields = short.as_object_mut().expect("an object");
                fields.remove(parameter.field);
                if let Ok(work) = read(short) {
                    assert_eq!(work, whole, "{} without {}", model.name, parameter.field);
                }
            }
        }
    }

    #[test]
    fn a_setting_of_words_takes_each_of_them_and_no_other() {
        let words = |model: &'static Model| model.parameters.iter().map(move |it| (model, it));
        for (model, parameter) in declared().flat_map(words) {
            let with = |word: &str| {
                let mut work = usual(model);
                work[parameter.field] = json!(word);
                read(work)
            };
            assert!(with("other").is_err(), "{}", parameter.name);
            for word in parameter.choices {
                assert!(with(word).is_ok(), "{word}");
            }
        }
    }
}
