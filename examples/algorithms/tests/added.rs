//! The algorithms are known once they are added, and take the settings that they declare.

use polypath_net::QueueConfig;
use polypath_transport::{path_manager, scheduler};
use serde_json::json;

#[test]
fn they_are_chosen_by_name_as_any_other() {
    polypath_example::add().expect("nothing was added before");
    let given = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
    assert!(
        scheduler::REGISTRY
            .make("first-ready", &given(json!({"skip": 9})))
            .is_ok()
    );
    let refused = scheduler::REGISTRY.make("first-ready", &given(json!({"skip": 10})));
    let text = refused.err().map(|error| error.to_string());
    assert_eq!(
        text.as_deref(),
        Some("'skip' of first-ready must be between 0 and 9, not 10")
    );
    assert!(path_manager::REGISTRY.names().any(|name| name == "later"));
    let queue = json!({"kind": "lifo", "limit": 5, "patience_ns": 1});
    let read: QueueConfig = serde_json::from_value(queue.clone()).expect("it was added");
    assert_eq!(read.check(), Ok(()));
    assert_eq!(serde_json::to_value(&read).expect("a table"), queue);
    let wrong = json!({"kind": "lifo", "limit": 0});
    let read: QueueConfig = serde_json::from_value(wrong).expect("a table");
    assert!(read.check().is_err());
    let other = json!({"kind": "drop-tail", "packets": 5, "bytes": null});
    assert!(serde_json::from_value::<QueueConfig>(other).is_ok());
    assert!(polypath_example::add().is_err());
}
