//! The volumes of pods.

use serde_json::{Map, Value};

use super::super::look::{list, member, text};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::names,
};

/// The order in which it is looked for what a volume is.
const ORDER: [&str; 8] =
    ["emptyDir", "hostPath", "secret", "nfs", "persistentVolumeClaim", "downwardAPI", "configMap", "projected"];

/// What is wrong with the volumes of a pod, and the names of those that are right.
pub(super) fn rules<'a>(spec: &'a Value, path: &Path<'_>) -> (Vec<FieldError>, Vec<&'a str>) {
    let (mut errors, mut right) = (Vec::new(), Vec::new());
    for (index, volume) in list(spec, "/volumes").iter().enumerate() {
        let found = volume_rules(volume, &right, &path.index(index));
        if found.is_empty() {
            right.push(text(volume, "/name"));
        }
        errors.extend(found);
    }
    (errors, right)
}

fn volume_rules(volume: &Value, names_before: &[&str], path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = source_rules(volume, path);
    let (name, name_path) = (text(volume, "/name"), path.field("name"));
    if name.is_empty() {
        errors.push(FieldError::bare(ErrorKind::Required, &name_path, ""));
    } else {
        let invalid = |problem: String| FieldError::new(ErrorKind::Invalid, &name_path, name, problem);
        errors.extend(names::label(name).into_iter().map(invalid));
    }
    if names_before.contains(&name) {
        errors.push(FieldError::new(ErrorKind::Duplicate, &name_path, name, ""));
    }
    errors
}

fn source_rules(volume: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let names = volume.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    let mut sources: Vec<&str> = names.filter(|name| *name != "name" && member(volume, name).is_some()).collect();
    sources.sort_by_key(|name| ORDER.iter().position(|it| it == name).unwrap_or(ORDER.len()));
    let Some((first, others)) = sources.split_first() else {
        return vec![FieldError::bare(ErrorKind::Required, path, "must specify a volume type")];
    };
    let several = "may not specify more than 1 volume type";
    let mut errors: Vec<FieldError> = Vec::new();
    let needed = match *first {
        "secret" => Some("secretName"),
        "configMap" => Some("name"),
        "persistentVolumeClaim" => Some("claimName"),
        "hostPath" => Some("path"),
        _ => None,
    };
    let source = path.field(first);
    if let Some(field) = needed
        && text(&volume[*first], &format!("/{field}")).is_empty()
    {
        errors.push(FieldError::bare(ErrorKind::Required, &source.field(field), ""));
    }
    errors.extend(others.iter().map(|name| FieldError::bare(ErrorKind::Forbidden, &path.field(name), several)));
    errors
}
