//! The protocols by which bridges find their tree.

use polypath_settings::{
    Algorithm, Entry, Given, Model, ModelError, Registry, Settings, algorithm,
};
use polypath_switch::spanning_tree;

/// A protocol with its settings; nothing: every port forwards.
pub(crate) struct Protocol(pub Option<spanning_tree::Settings>);

/// All protocols.
pub(crate) static REGISTRY: Registry<Protocol> = Registry::new(
    "spanning-tree",
    &[
        Entry::of::<RapidConfig>(),
        Entry::of::<Classic>(),
        Entry::of::<Nothing>(),
    ],
);

// Ranges and defaults of table 17-1; hello times as 802.1D-1998 let them be set.
algorithm! {
    "rstp",
    "Rapid spanning tree: ports agree with their neighbours, within milliseconds",
    "IEEE 802.1D-2004 clause 17";
    /// Times of a spanning tree.
    RapidConfig {
        /// seconds between BPDUs of a designated port
        hello_time_s: u32 as Integer.at_least(1).at_most(10) = Integer(2),
        /// seconds, and so bridges, that information of the root lasts
        max_age_s: u32 as Integer.at_least(6).at_most(40) = Integer(20),
        /// seconds before a port learns, and before it forwards, without an agreement
        forward_delay_s: u32 as Integer.at_least(4).at_most(30) = Integer(15),
        /// most BPDUs that a port sends in a second
        hold_count: u32 as Integer.at_least(1).at_most(10) = Integer(6),
    }
}

impl RapidConfig {
    fn protocol(&self, rapid: bool) -> Box<Protocol> {
        let time = |seconds: u32| (seconds * 256) as u16;
        Box::new(Protocol(Some(spanning_tree::Settings {
            rapid,
            hello_time: time(self.hello_time_s),
            max_age: time(self.max_age_s),
            forward_delay: time(self.forward_delay_s),
            hold_count: self.hold_count,
        })))
    }
}

impl Algorithm<Protocol> for RapidConfig {
    fn make(self) -> Box<Protocol> {
        self.protocol(true)
    }
}

/// The older protocol, with the same settings.
struct Classic(RapidConfig);

impl Settings for Classic {
    const MODEL: Model = Model {
        name: "stp",
        summary: "Spanning tree: ports wait for timers before they learn and forward",
        source: "IEEE 802.1D-2004 clause 17.13.4 (Force Protocol Version 0)",
        ..RapidConfig::MODEL
    };

    fn take(given: &Given) -> Result<Self, ModelError> {
        RapidConfig::take(given).map(Self)
    }
}

impl Algorithm<Protocol> for Classic {
    fn make(self) -> Box<Protocol> {
        self.0.protocol(false)
    }
}

algorithm! {
    "none",
    "No protocol: every port forwards, and a loop multiplies what is flooded",
    "IEEE 802.1D-2004 clause 7";
    Nothing
}

#[derive(Default)]
struct Nothing;

impl Algorithm<Protocol> for Nothing {
    fn make(self) -> Box<Protocol> {
        Box::new(Protocol(None))
    }
}

/// What is wrong with times together (clause 17.14): information must not age while it is on its way, and a port must not forward
/// before the last of it has.
pub(crate) fn fault(settings: &spanning_tree::Settings) -> Option<String> {
    let [hello, age, delay] = [
        settings.hello_time,
        settings.max_age,
        settings.forward_delay,
    ]
    .map(|time| time / 256);
    if 2 * (delay - 1) < age {
        let least = age.div_ceil(2) + 1;
        return Some(format!(
            "forward_delay_s = {delay} is too short for max_age_s = {age}; take at least {least}"
        ));
    }
    let least = 2 * (hello + 1);
    (age < least).then(|| {
        format!("max_age_s = {age} is too short for hello_time_s = {hello}; take at least {least}")
    })
}
