//! Objects that were applied from the client before: what was, stands in an annotation.

use serde_json::{Map, Value};

use super::{
    check::{Duplicates, check},
    compare::Comparison,
    fields::fields_of,
    set::FieldSet,
    shape::Shape,
    values::escaped_json,
};

/// Who applies from the client.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations may not be larger than this together.
const MOST_ANNOTATIONS: usize = 256 * 1024;

/// The fields that were applied from the client, and still say what they said then.
pub(super) fn fields(live: &Value, shape: Shape<'_>, api_version: &str) -> Option<FieldSet> {
    let applied = annotation(live)?;
    check(live, shape, Duplicates::Refused).ok()?;
    let applied = crate::depth::parse(applied.as_bytes()).ok()?;
    if applied.get("apiVersion")?.as_str()? != api_version {
        return None;
    }
    check(&applied, shape, Duplicates::Refused).ok()?;
    let difference = Comparison::between(&applied, live, shape);
    Some(fields_of(&applied, shape).difference(&difference.written()).difference(&difference.removed))
}

/// Writes what is applied now into the annotation, if there is one.
pub(super) fn renew(object: &mut Value, patch: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut patch = patch.clone();
    if let Some(annotations) = annotations_mut(&mut patch) {
        annotations.remove(ANNOTATION);
    }
    let Some(annotations) = annotations_mut(object) else { return };
    annotations.insert(ANNOTATION.to_owned(), Value::String(format!("{}\n", escaped_json(&patch))));
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > MOST_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

fn annotations_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
