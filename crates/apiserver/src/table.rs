//! Objects as rows of a table, as whoever looks at them wants them, and objects reduced to their metadata.

mod built_in;
mod columns;
mod duration;
mod look;
mod pod;
#[cfg(test)]
mod tests;
mod workload;

use drover_engine::jsonpath::{self, JsonPath};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::columns::Heading;
use crate::{
    failure::Failure,
    field::{ErrorKind, FieldError, Path},
    kind::{Column, Kind, Origin, Version},
};

/// The version of `meta.k8s.io` that is answered in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetaVersion {
    /// The one that is asked for today.
    #[default]
    V1,
    /// The one before it.
    V1Beta1,
}

impl MetaVersion {
    /// What answers say in `apiVersion`.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What of an object is sent along with its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// Reads the query parameter `includeObject`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => {
                let path = Path::Root.field("includeObject");
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::new(ErrorKind::Invalid, &path, other, why);
                Err(Failure::bad_request(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

/// Whether a table says what its columns are. In a watch only the first one does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headings {
    /// It does.
    #[default]
    Shown,
    /// It does not.
    Hidden,
}

/// How a table is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The version of the table itself.
    pub meta: MetaVersion,
    /// What comes along with each row.
    pub include: Include,
    /// Whether it says what its columns are.
    pub headings: Headings,
}

/// What makes tables of one version of a kind. It reads the paths of columns once, for many objects.
#[derive(Clone, Debug)]
pub struct Printer {
    headings: Vec<Value>,
    cells: Cells,
}

#[derive(Clone, Debug)]
enum Cells {
    Custom(Vec<Custom>),
    BuiltIn(columns::MakeRow),
    /// The name and when it was created, for kinds that nobody thought of columns for.
    Plain,
}

#[derive(Clone, Debug)]
struct Custom {
    type_: String,
    path: Option<JsonPath>,
}

/// What is shown of one object.
struct Row {
    cells: Vec<Value>,
    conditions: Vec<Value>,
}

impl From<Vec<Value>> for Row {
    fn from(cells: Vec<Value>) -> Self {
        Self { cells, conditions: Vec::new() }
    }
}

/// A table of objects. The metadata is that of the list, or of the only object.
#[must_use]
pub fn table(
    kind: &Kind,
    version: &Version,
    objects: &[Value],
    metadata: &Value,
    options: Options,
    now: Timestamp,
) -> Value {
    Printer::of(kind, version).table(objects, metadata, options, now)
}

impl Printer {
    /// What makes tables of a version of a kind.
    #[must_use]
    pub fn of(kind: &Kind, version: &Version) -> Self {
        if kind.origin == Origin::Custom {
            return Self::custom(&version.columns);
        }
        match columns::of(&kind.group, &kind.plural) {
            Some((headings, row)) => {
                Self { headings: headings.iter().copied().map(Heading::to_value).collect(), cells: Cells::BuiltIn(row) }
            }
            None => {
                Self { headings: columns::PLAIN.iter().copied().map(Heading::to_value).collect(), cells: Cells::Plain }
            }
        }
    }

    fn custom(columns: &[Column]) -> Self {
        let mut headings = vec![columns::NAME.to_value()];
        headings.extend(columns.iter().map(heading));
        let custom = |column: &Column| Custom { type_: column.type_.clone(), path: JsonPath::parse(&column.path).ok() };
        Self { headings, cells: Cells::Custom(columns.iter().map(custom).collect()) }
    }

    /// A table of objects. The metadata is that of the list, or of the only object.
    #[must_use]
    pub fn table(&self, objects: &[Value], metadata: &Value, options: Options, now: Timestamp) -> Value {
        let rows: Vec<_> = objects.iter().map(|object| self.row(object, options, now)).collect();
        let is_bare = rows.is_empty() && matches!(self.cells, Cells::Plain);
        json!({
            "kind": "Table",
            "apiVersion": options.meta.api_version(),
            "metadata": list_metadata(metadata),
            "columnDefinitions": match options.headings {
                Headings::Shown => Value::Array(self.headings.clone()),
                Headings::Hidden => Value::Null,
            },
            "rows": if is_bare { Value::Null } else { Value::Array(rows) },
        })
    }

    fn row(&self, object: &Value, options: Options, now: Timestamp) -> Value {
        let row = match &self.cells {
            Cells::Custom(columns) => {
                let name = json!(look::text(object, "/metadata/name"));
                let cells = columns.iter().map(|column| column.cell(object, now));
                std::iter::once(name).chain(cells).collect::<Vec<_>>().into()
            }
            Cells::BuiltIn(row) => row(object, now),
            Cells::Plain => plain(object),
        };
        let shown = match options.include {
            Include::None => Value::Null,
            Include::Metadata => metadata_only(object, options.meta),
            Include::Object => object.clone(),
        };
        let mut value = json!({"cells": row.cells, "object": shown});
        if !row.conditions.is_empty() {
            value["conditions"] = Value::Array(row.conditions);
        }
        value
    }
}

fn heading(column: &Column) -> Value {
    let description = if column.description.is_empty() {
        format!("Custom resource definition column (in JSONPath format): {}", column.path)
    } else {
        column.description.clone()
    };
    json!({
        "name": column.name,
        "type": column.type_,
        "format": column.format,
        "description": description,
        "priority": column.priority,
    })
}

fn plain(object: &Value) -> Row {
    let created = look::time(object, "/metadata/creationTimestamp");
    let created =
        created.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    vec![json!(look::text(object, "/metadata/name")), json!(created)].into()
}

impl Custom {
    /// What an object says in this column; null where it says nothing, or something of another type.
    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let Some(value) = self.path.as_ref().and_then(|path| path.first(object)) else { return Value::Null };
        match (self.type_.as_str(), value) {
            ("string", value) => json!(jsonpath::text(value)),
            ("integer", Value::Number(number)) => whole(number),
            ("number", Value::Number(number)) => json!(number.as_f64()),
            ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(date)) => json!(duration::since_text(date, now)),
            _ => Value::Null,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off")]
fn whole(number: &serde_json::Number) -> Value {
    number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)).map_or(Value::Null, Value::from)
}

/// An object without anything but its metadata.
#[must_use]
pub fn metadata_only(object: &Value, meta: MetaVersion) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({"kind": "PartialObjectMetadata", "apiVersion": meta.api_version(), "metadata": metadata})
}

/// A list of objects without anything but their metadata.
#[must_use]
pub fn metadata_only_list(objects: &[Value], metadata: &Value, meta: MetaVersion) -> Value {
    let items: Vec<_> = objects.iter().map(|object| metadata_only(object, meta)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": meta.api_version(),
        "metadata": list_metadata(metadata),
        // An empty list is no list at all here.
        "items": if items.is_empty() { Value::Null } else { Value::Array(items) },
    })
}

fn list_metadata(metadata: &Value) -> Map<String, Value> {
    let names = ["resourceVersion", "continue", "remainingItemCount"];
    let said = names.iter().filter_map(|&name| Some((name.to_owned(), metadata.get(name)?.clone())));
    said.filter(|(_, value)| !value.is_null() && value != "").collect()
}
