//! What an agent reports of the objects that it has applied: the values that a work's feedback rules ask for.
//!
//! There are no objects here, so they are imagined: each is as its manifest says, with a status as a cluster would fill it in.

use drover_api::work::{
    FeedbackType, FeedbackValue, FieldValue, FieldValueType, ManifestConfig, ManifestWork, ResourceIdentifier,
    StatusFeedback,
};
use serde_json::{Value, json};

/// How workloads come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rise {
    /// All that is wanted runs, and is new.
    Ready,
    /// The new ones never get ready, while an old one still runs, so that the workload itself is available.
    Stuck,
    /// None runs.
    Down,
}

/// What is reported of one manifest of a work; nothing if no rule asks for anything that is there.
pub(super) fn feedback(work: &ManifestWork, manifest: &Value, rise: Rise) -> Option<StatusFeedback> {
    let object = imagined(manifest, work.metadata.generation, rise);
    let configs = work.spec.manifest_configs.iter().filter(|config| is_about(config, manifest));
    let rules = configs.flat_map(|config| &config.feedback_rules).filter(|rule| rule.kind == FeedbackType::JsonPaths);
    let values: Vec<_> = rules
        .flat_map(|rule| &rule.json_paths)
        .filter_map(|path| {
            let field_value = value(look_up(&object, &path.path)?)?;
            Some(FeedbackValue { name: path.name.clone(), field_value })
        })
        .collect();
    (!values.is_empty()).then_some(StatusFeedback { values })
}

fn is_about(config: &ManifestConfig, manifest: &Value) -> bool {
    let ResourceIdentifier { resource, name, namespace, .. } = &config.resource_identifier;
    let kind = manifest["kind"].as_str().unwrap_or_default().to_lowercase();
    let is_text = |value: &Value, text: &str| value.as_str().unwrap_or_default() == text;
    *resource == format!("{kind}s")
        && is_text(&manifest["metadata"]["name"], name)
        && is_text(&manifest["metadata"]["namespace"], namespace.as_deref().unwrap_or_default())
}

/// The object of a manifest, some time after it was applied.
fn imagined(manifest: &Value, generation: Option<i64>, rise: Rise) -> Value {
    let wanted = manifest["spec"]["replicas"].as_i64().unwrap_or(1);
    // A Deployment makes a new pod beside the old ones; the others replace them one by one.
    let (total, updated) = match (rise, manifest["kind"] == "Deployment") {
        (Rise::Stuck, true) => (wanted + 1, wanted),
        (Rise::Stuck, false) => (wanted, wanted - 1),
        (Rise::Ready | Rise::Down, _) => (wanted, wanted),
    };
    let available = if rise == Rise::Down { 0 } else { wanted };
    let is_available = if rise == Rise::Down { "False" } else { "True" };
    let mut object = manifest.clone();
    object["metadata"]["generation"] = json!(generation);
    if object["spec"].is_object() && manifest["kind"] != "DaemonSet" {
        object["spec"]["replicas"] = json!(wanted);
    }
    object["status"] = json!({
        "observedGeneration": generation,
        "replicas": total, "updatedReplicas": updated, "readyReplicas": available, "availableReplicas": available,
        "currentNumberScheduled": total, "desiredNumberScheduled": wanted, "numberReady": available,
        "numberAvailable": available, "updatedNumberScheduled": updated,
        "conditions": [{ "type": "Available", "status": is_available }, { "type": "Progressing", "status": "True" }],
    });
    object
}

/// The value at a path such as `.status.conditions[?(@.type=="Available")].status`.
fn look_up<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    segments(path).iter().try_fold(object, |value, segment| match segment.split_once("[?(@.type==\"") {
        None => value.get(segment),
        Some((list, type_)) => {
            let type_ = type_.strip_suffix("\")]")?;
            value.get(list)?.as_array()?.iter().find(|entry| entry["type"] == type_)
        }
    })
}

/// The parts of a path between its dots, but for dots that are escaped or within brackets.
fn segments(path: &str) -> Vec<String> {
    let (mut segments, mut depth, mut is_escaped) = (vec![String::new()], 0, false);
    for character in path.trim_start_matches('.').chars() {
        match character {
            '\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            '[' => depth += 1,
            ']' => depth -= 1,
            '.' if depth == 0 && !is_escaped => {
                segments.push(String::new());
                continue;
            }
            _ => {}
        }
        is_escaped = false;
        segments.last_mut().expect("there is always one").push(character);
    }
    segments
}

fn value(value: &Value) -> Option<FieldValue> {
    let nothing =
        FieldValue { kind: FieldValueType::String, integer: None, string: None, boolean: None, json_raw: None };
    match value {
        Value::String(text) => Some(FieldValue { string: Some(text.clone()), ..nothing }),
        Value::Number(number) => {
            Some(FieldValue { kind: FieldValueType::Integer, integer: number.as_i64(), ..nothing })
        }
        Value::Bool(is_so) => Some(FieldValue { kind: FieldValueType::Boolean, boolean: Some(*is_so), ..nothing }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_followed_through_escapes_and_filters() {
        let object = json!({
            "metadata": { "annotations": { "drover.dev/set": "abc" } },
            "status": { "conditions": [{ "type": "Other", "status": "False" }, { "type": "Available", "status": "True" }] },
        });
        for (path, expected) in [
            (r".metadata.annotations.drover\.dev/set", Some(&json!("abc"))),
            (r#".status.conditions[?(@.type=="Available")].status"#, Some(&json!("True"))),
            (".status.replicas", None),
        ] {
            assert_eq!(look_up(&object, path), expected, "{path}");
        }
    }
}
