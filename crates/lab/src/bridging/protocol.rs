//! The protocols by which bridges find their tree.

use polypath_switch::spanning_tree::Settings;
use polypath_transport::registry::{Entry, Parameter, Parameters, Registry, no_parameters};

/// A protocol with its parameters; nothing: every port forwards.
pub(crate) struct Protocol(pub Option<Settings>);

/// All protocols.
pub(crate) static REGISTRY: Registry<Protocol> = Registry {
    kind: "spanning-tree",
    entries: &[RAPID, CLASSIC, NONE],
};

const RAPID: Entry<Protocol> = Entry {
    name: "rstp",
    description: "Rapid spanning tree: ports agree with their neighbours, within milliseconds",
    source: "IEEE 802.1D-2004 clause 17",
    parameters,
    make: |parameters| Box::new(Protocol(Some(settings(true, parameters)))),
};

const CLASSIC: Entry<Protocol> = Entry {
    name: "stp",
    description: "Spanning tree: ports wait for timers before they learn and forward",
    source: "IEEE 802.1D-2004 clause 17.13.4 (Force Protocol Version 0)",
    parameters,
    make: |parameters| Box::new(Protocol(Some(settings(false, parameters)))),
};

const NONE: Entry<Protocol> = Entry {
    name: "none",
    description: "No protocol: every port forwards, and a loop multiplies what is flooded",
    source: "IEEE 802.1D-2004 clause 7",
    parameters: no_parameters,
    make: |_| Box::new(Protocol(None)),
};

/// Ranges and defaults of table 17-1; hello times as 802.1D-1998 let them be set.
fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::integer(
            "hello_time_s",
            2,
            1,
            10,
            "seconds between BPDUs of a designated port",
        ),
        Parameter::integer(
            "max_age_s",
            20,
            6,
            40,
            "seconds, and so bridges, that information of the root lasts",
        ),
        Parameter::integer(
            "forward_delay_s",
            15,
            4,
            30,
            "seconds before a port learns, and before it forwards, without an agreement",
        ),
        Parameter::integer(
            "hold_count",
            6,
            1,
            10,
            "most BPDUs that a port sends in a second",
        ),
    ]
}

fn settings(rapid: bool, parameters: &Parameters) -> Settings {
    let time = |name: &str| (parameters.integer(name) * 256) as u16;
    Settings {
        rapid,
        hello_time: time("hello_time_s"),
        max_age: time("max_age_s"),
        forward_delay: time("forward_delay_s"),
        hold_count: parameters.integer("hold_count") as u32,
    }
}

/// What is wrong with times together (clause 17.14): information must not age while it is on its way, and a port must not forward
/// before the last of it has.
pub(crate) fn fault(settings: &Settings) -> Option<String> {
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
