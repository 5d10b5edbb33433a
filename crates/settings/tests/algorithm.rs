//! Values given for an algorithm become its settings, and a registry makes the algorithm from them.

use std::str::FromStr;

use polypath_settings::serde_json::{Map, Value as Json, json};
use polypath_settings::{
    Algorithm, Entry, Given, Group, Lines, Measure, ModelError, Parameter, Registry, RegistryError,
    Settings, Value, algorithm, choice,
};

choice! {
    /// How loud.
    Volume {
        Low = "low",
        High = "high",
    }
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Step(u32);

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("step ");
        let parsed = number.and_then(|number| number.parse().ok());
        parsed.map(Self).ok_or_else(|| "no step".to_owned())
    }
}

const PATIENCE: &[Parameter] =
    &[
        Parameter::new::<Option<bool>>("patient", Measure::Boolean, "whether it waits")
            .or(Value::Absent(())),
    ];

#[derive(Clone, Debug)]
pub struct Patience(Option<bool>);

impl Group for Patience {
    fn take(given: &Given) -> Result<Self, ModelError> {
        given.take("patient").map(Self)
    }
}

algorithm! {
    "drum",
    "Beats",
    "a score";
    /// Settings of a drum.
    DrumConfig {
        /// beats
        /// a bar
        beats: u32 as Integer.at_least(1).at_most(16) = Integer(4),
        /// part of a second
        length: f64 as Number.within(0.1, 0.9) = Number(0.5),
        /// how loud
        volume: Volume as Text = Text("low"),
        /// bars that are louder
        accents: Vec<u32> as Integers.at_least(1).at_most(8) = Integers(&[1]),
        /// what follows
        steps: Lines<Step> as Texts = Texts(&[]),
        /// between beats
        pause_ns: u64 as Period,
        ..patience: Patience = PATIENCE
    }
}

impl Algorithm<DrumConfig> for DrumConfig {
    fn make(self) -> Box<DrumConfig> {
        Box::new(self)
    }
}

#[derive(Default)]
struct Silence;

algorithm! {
    "silence",
    "Nothing",
    "a score";
    Silence
}

impl Algorithm<DrumConfig> for Silence {
    fn make(self) -> Box<DrumConfig> {
        unreachable!("it is only named here")
    }
}

static OWN: [Entry<DrumConfig>; 1] = [Entry::of::<DrumConfig>()];
static MORE: [Entry<DrumConfig>; 1] = [Entry::of::<Silence>()];

fn read(given: Json) -> Result<DrumConfig, String> {
    let mut all: Map<String, Json> = Map::from_iter([("pause_ns".to_owned(), json!(5))]);
    all.extend(given.as_object().expect("an object").clone());
    DrumConfig::read(&all).map_err(|error| error.to_string())
}

#[test]
fn what_is_left_out_is_the_default() {
    let drum = read(json!({})).unwrap();
    assert_eq!(
        (drum.beats, drum.length, drum.volume),
        (4, 0.5, Volume::Low)
    );
    assert_eq!(
        (drum.accents, drum.steps.0, drum.pause_ns),
        (vec![1], vec![], 5)
    );
    assert_eq!(drum.patience.0, None);
}

#[test]
fn what_is_given_is_read_into_its_type() {
    let drum = read(json!({
        "beats": 16, "length": 0.9, "volume": "high", "accents": [8, 1], "steps": ["step 3"], "patient": true
    }));
    let drum = drum.unwrap();
    assert_eq!(
        (drum.beats, drum.length, drum.volume),
        (16, 0.9, Volume::High)
    );
    assert_eq!((drum.accents, drum.steps.0), (vec![8, 1], vec![Step(3)]));
    assert_eq!(drum.patience.0, Some(true));
}

#[test]
fn what_does_not_fit_names_the_setting() {
    for (given, wrong) in [
        (
            json!({"beats": 17}),
            "'beats' of drum must be between 1 and 16, not 17",
        ),
        (
            json!({"beats": -1}),
            "'beats' of drum must be between 1 and 16, not -1",
        ),
        (json!({"beats": true}), "'beats' of drum: invalid type"),
        (
            json!({"length": 0.0}),
            "'length' of drum must be between 0.1 and 0.9, not 0",
        ),
        (
            json!({"volume": "mute"}),
            "'volume' of drum: unknown variant `mute`",
        ),
        (
            json!({"accents": [1, 9]}),
            "'accents' of drum must be between 1 and 8, not 9",
        ),
        (
            json!({"accents": []}),
            "'accents' of drum: at least one is needed",
        ),
        (
            json!({"steps": ["step 1", "walk"]}),
            "'steps' of drum: \"walk\": no step",
        ),
        (
            json!({"pause_ns": 0}),
            "'pause' of drum must be at least 1, not 0",
        ),
        (json!({"patient": 1}), "'patient' of drum: invalid type"),
        (json!({"beat": 1}), "drum has no parameter 'beat'"),
    ] {
        let error = read(given).unwrap_err();
        assert!(error.starts_with(wrong), "{error}");
    }
    let missing = DrumConfig::read(&Map::new()).unwrap_err();
    assert_eq!(missing.to_string(), "'pause' of drum must be given");
}

#[test]
fn a_description_has_own_settings_before_those_of_groups() {
    let described = json!(DrumConfig::MODEL);
    let names = described["parameters"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|each| each["name"].as_str().unwrap()).collect();
    let all = [
        "beats", "length", "volume", "accents", "steps", "pause", "patient",
    ];
    assert_eq!(names, all);
    assert_eq!(described["parameters"][0]["description"], "beats a bar");
    assert_eq!(
        described["parameters"][2]["choices"],
        json!(["low", "high"])
    );
}

#[test]
fn a_registry_takes_others_once_and_no_name_twice() {
    let registry = Registry::new("drum", &OWN);
    let unknown = registry.make("silence", &Map::new()).err();
    assert_eq!(
        unknown.map(|error| error.to_string()),
        Some("no drum is called \"silence\"; there are drum".to_owned())
    );
    let taken = RegistryError::Taken {
        kind: "drum",
        name: "drum",
    };
    assert_eq!(registry.add(&OWN), Err(taken));
    assert!(!registry.has_grown());
    assert_eq!(registry.add(&MORE), Ok(()));
    assert_eq!(registry.names().collect::<Vec<_>>(), ["drum", "silence"]);
    assert_eq!(
        registry.add(&MORE),
        Err(RegistryError::Added { kind: "drum" })
    );
}
