//! The shape of a plan, for those who read and write one elsewhere.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::plan::Plan;

/// The JSON Schema (draft 2020-12) of a plan as an engine reads it: what has a default may be left out.
pub fn plan_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<Plan>()
        .to_value();
    if let Some(Value::Object(types)) = schema.get_mut("$defs") {
        for (name, described) in types {
            name_variants(name, described);
        }
    }
    schema
}

/// Tables of one type that differ by their `kind` have titles: `BulkWork`, `LinkAction`.
fn name_variants(of: &str, described: &mut Value) {
    let Some(Value::Array(variants)) = described.get_mut("oneOf") else {
        return;
    };
    for variant in variants {
        if let Some(kind) = variant["properties"]["kind"]["const"].as_str() {
            variant["title"] = format!("{}{of}", camel(kind)).into();
        }
    }
}

fn camel(kind: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    kind.split('-').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_differ_by_kind_have_names_of_their_own() {
        let schema = plan_schema();
        let titles = |of: &str| {
            let variants = schema["$defs"][of]["oneOf"].as_array().unwrap();
            let titles = variants.iter().map(|each| each["title"].as_str().unwrap());
            titles.collect::<Vec<_>>()
        };
        assert_eq!(titles("Loss")[..2], ["NoneLoss", "RandomLoss"]);
        assert!(titles("Work").contains(&"RequestResponseWork"));
        assert!(titles("Action").contains(&"LinkAction"));
        assert!(titles("Queue").contains(&"FqCodelQueue"));
    }

    #[test]
    fn what_has_a_default_may_be_left_out() {
        let schema = plan_schema();
        let required = schema["$defs"]["Channel"].get("required");
        assert_eq!(required, None);
        let required = schema["required"].as_array().unwrap();
        assert!(required.contains(&"nodes".into()) && !required.contains(&"routes".into()));
    }
}
