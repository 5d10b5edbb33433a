//! The queue disciplines and loss models take exactly the settings that their registries list.

use polypath_net::{LossConfig, QueueConfig, loss_models, queue_models};
use polypath_settings::{Measure, Model, Parameter, RegistryError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Settings by their fields: defaults, and for what has none a number within its bounds, each higher than the one before.
fn settings(model: &Model) -> Value {
    let mut made = json!({ "kind": model.name });
    let mut given = 0.0;
    for parameter in model.parameters {
        given += if parameter.kind == Measure::Share {
            0.1
        } else {
            1.0
        };
        made[parameter.field] = match parameter.default {
            Some(default) => json!(default),
            None if parameter.real => json!(given),
            None => json!(given as u64),
        };
    }
    made
}

fn with(mut settings: Value, parameter: &Parameter, value: f64) -> Value {
    settings[parameter.field] = if parameter.real {
        json!(value)
    } else {
        json!(value as u64)
    };
    settings
}

fn holds<M: DeserializeOwned>(models: &[Model], check: fn(&M) -> Result<(), RegistryError>) {
    let read = |settings: Value| serde_json::from_value::<M>(settings);
    for model in models {
        let usual = settings(model);
        let made = read(usual.clone()).unwrap_or_else(|error| panic!("{}: {error}", model.name));
        assert_eq!(check(&made), Ok(()), "{}", model.name);
        let mut unknown = usual.clone();
        unknown["beyond"] = json!(1);
        let bare = model.parameters.is_empty();
        assert!(bare || read(unknown).is_err(), "{}", model.name);
        for parameter in model.parameters {
            let edges = [
                (parameter.minimum > 0.0).then_some(parameter.minimum - 1.0),
                parameter
                    .maximum
                    .is_finite()
                    .then_some(parameter.maximum + 1.0),
            ];
            for value in edges.into_iter().flatten() {
                let made = read(with(usual.clone(), parameter, value));
                let refused = check(&made.expect("a number")).expect_err(parameter.name);
                let text = refused.to_string();
                assert!(text.contains(&format!("'{}'", parameter.name)), "{text}");
            }
        }
    }
}

#[test]
fn a_queue_discipline_takes_what_its_entry_says_and_no_more() {
    holds(&queue_models(), QueueConfig::check);
}

#[test]
fn a_loss_model_takes_what_its_entry_says_and_no_more() {
    holds(&loss_models(), LossConfig::check);
}
