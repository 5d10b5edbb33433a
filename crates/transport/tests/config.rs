//! A host's settings as a Plan has them.

use polypath_transport::{Algorithms, Config, Profile};
use serde_json::{Value, json};

fn planned(config: &Config) -> Value {
    serde_json::to_value(config).unwrap()
}

#[test]
fn a_profile_comes_back_from_a_plan() {
    for profile in Profile::ALL {
        let config = profile.config();
        let read: Config = serde_json::from_value(planned(&config)).unwrap();
        assert_eq!(planned(&read), planned(&config));
        assert_eq!(read.limits, config.limits);
        Algorithms::default().check(&config).unwrap();
    }
}

#[test]
fn what_a_plan_says_seldom_or_leaves_to_null_is_the_same_in_every_profile() {
    for profile in Profile::ALL {
        let config = profile.config();
        for setting in config.described() {
            let mut without = planned(&config);
            without.as_object_mut().unwrap().remove(setting.field);
            let read = serde_json::from_value::<Config>(without);
            assert!(!setting.seldom || read.is_ok(), "{}", setting.name);
            if let Ok(read) = read {
                assert_eq!(planned(&read), planned(&config), "{}", setting.name);
            }
        }
        let mut null = planned(&config);
        for name in ["mtu_probing", "recovery", "ack_path", "control_path"] {
            null[name] = Value::Null;
        }
        let read: Config = serde_json::from_value(null).unwrap();
        assert_eq!(planned(&read), planned(&config));
    }
}

#[test]
fn settings_are_held_against_their_bounds() {
    for (field, value, expected) in [
        ("mtu", 575, "between 576 and 65535"),
        ("initial_window", 0, "between 1 and 1000"),
        ("rto_min_ns", 0, "at least 1"),
    ] {
        let mut planned = planned(&Config::default());
        planned[field] = json!(value);
        let config: Config = serde_json::from_value(planned).unwrap();
        let name = field.trim_end_matches("_ns");
        let message = format!("'{name}' of the stack must be {expected}, not {value}");
        let refused = Algorithms::default().check(&config).unwrap_err();
        assert_eq!(refused.to_string(), message);
    }
}
