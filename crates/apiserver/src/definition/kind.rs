//! The kind that a definition brings.

use std::{cmp::Reverse, sync::Arc};

use serde_json::Value;

use super::{list, structural::flag, text, texts};
use crate::{
    kind::{Column, Kind, Origin, Scale, Scope, Subresources, Version},
    schema::Schema,
};

/// What is said about the column that is there if no other is.
const AGE: &str = "When the object was made.";

/// The kind that a definition brings, with all its versions.
#[must_use]
pub fn kind(crd: &Value) -> Kind {
    let name = |name: &str| text(crd, &format!("/spec/names/{name}")).to_owned();
    let names = |name: &str| texts(crd, &format!("/spec/names/{name}")).into_iter().map(str::to_owned).collect();
    let mut versions: Vec<_> = list(crd, "/spec/versions").iter().map(|version| read_version(version, crd)).collect();
    versions.sort_by(|one, other| Priority::of(&other.name).cmp(&Priority::of(&one.name)));
    Kind {
        group: text(crd, "/spec/group").to_owned(),
        plural: name("plural"),
        singular: name("singular"),
        kind: name("kind"),
        list_kind: name("listKind"),
        short_names: names("shortNames"),
        categories: names("categories"),
        scope: if text(crd, "/spec/scope") == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
        versions,
        origin: Origin::Custom,
    }
}

fn read_version(version: &Value, crd: &Value) -> Version {
    let openapi = super::schema_of(version).cloned().unwrap_or_default();
    Version {
        name: text(version, "/name").to_owned(),
        is_served: flag(version, "served"),
        is_stored: flag(version, "storage"),
        deprecation: flag(version, "deprecated").then(|| deprecation(version, crd)),
        schema: Arc::new(Schema::read(&openapi, &|_| None)),
        openapi: Arc::new(openapi),
        columns: columns(version),
        subresources: Subresources {
            status: version.pointer("/subresources/status").is_some_and(|status| !status.is_null()),
            scale: version.pointer("/subresources/scale").filter(|scale| !scale.is_null()).map(read_scale),
            others: Vec::new(),
        },
        selectable_fields: list(version, "/selectableFields")
            .iter()
            .map(|field| text(field, "/jsonPath").to_owned())
            .collect(),
    }
}

fn read_scale(scale: &Value) -> Scale {
    let path = |name: &str| text(scale, name).to_owned();
    Scale {
        spec_replicas: path("/specReplicasPath"),
        status_replicas: path("/statusReplicasPath"),
        label_selector: Some(path("/labelSelectorPath")).filter(|path| !path.is_empty()),
    }
}

fn columns(version: &Value) -> Vec<Column> {
    let read = |column: &Value| {
        let path = text(column, "/jsonPath");
        let description = match text(column, "/description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        let priority = column.get("priority").and_then(Value::as_i64).unwrap_or_default();
        Column {
            name: text(column, "/name").to_owned(),
            type_: text(column, "/type").to_owned(),
            format: text(column, "/format").to_owned(),
            description,
            priority: i32::try_from(priority).unwrap_or_default(),
            path: path.to_owned(),
        }
    };
    let columns: Vec<_> = list(version, "/additionalPrinterColumns").iter().map(read).collect();
    if columns.is_empty() { vec![age()] } else { columns }
}

fn age() -> Column {
    Column {
        name: "Age".to_owned(),
        type_: "date".to_owned(),
        format: String::new(),
        description: AGE.to_owned(),
        priority: 0,
        path: ".metadata.creationTimestamp".to_owned(),
    }
}

/// What to tell whoever uses a version: what the definition says, or which newer version there is.
fn deprecation(version: &Value, crd: &Value) -> String {
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        return warning.to_owned();
    }
    let (group, kind, name) = (text(crd, "/spec/group"), text(crd, "/spec/names/kind"), text(version, "/name"));
    let said = format!("{group}/{name} {kind} is deprecated");
    let others = list(crd, "/spec/versions").iter().filter(|other| flag(other, "served") && !flag(other, "deprecated"));
    let newer = others.map(|other| text(other, "/name")).filter(|other| Priority::of(other) > Priority::of(name));
    match newer.max_by_key(|newer| Priority::of(newer)) {
        Some(newer) => format!("{said}; use {group}/{newer} {kind}"),
        None => said,
    }
}

/// How versions are ranked: stable before beta before alpha, newer before older, and after all others what is named in another way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority<'a> {
    Unknown(Reverse<&'a str>),
    Known(Stage, u64, u64),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

impl<'a> Priority<'a> {
    fn of(name: &'a str) -> Self {
        Self::read(name).unwrap_or(Self::Unknown(Reverse(name)))
    }

    fn read(name: &str) -> Option<Self> {
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        let version = name.strip_prefix('v')?;
        for (word, stage) in [("alpha", Stage::Alpha), ("beta", Stage::Beta)] {
            if let Some((major, minor)) = version.split_once(word) {
                return Some(Self::Known(stage, number(major)?, number(minor)?));
            }
        }
        Some(Self::Known(Stage::Stable, number(version)?, 0))
    }
}
