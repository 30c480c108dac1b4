//! What has to hold of the parts of a definition that are not about its objects' fields.

use serde_json::{Value, json};

use super::Errors;
use crate::{
    definition::{list, schema_of, structural, texts},
    field::{ErrorKind, FieldError, Path},
    schema::{
        Schema, Type,
        rules::field_path::{self, Brackets},
    },
};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MAX_SELECTABLE_FIELDS: usize = 8;

impl Errors {
    pub(super) fn subresources(&mut self, subresources: Option<&Value>, path: &Path<'_>) {
        let Some(scale) = subresources.and_then(|all| all.get("scale")).filter(|scale| !scale.is_null()) else {
            return;
        };
        let parts = [
            ("specReplicasPath", &[".spec."][..], "under .spec"),
            ("statusReplicasPath", &[".status."], "under .status"),
            ("labelSelectorPath", &[".spec.", ".status."], "under either .spec or .status"),
        ];
        for (name, prefixes, place) in parts {
            let at = structural::text(scale, name);
            let name = format!("scale.{name}");
            let path = path.field(&name);
            if at.is_empty() && prefixes.len() == 1 {
                self.required(&path, "");
            } else if !at.is_empty()
                && self.simple_path(at, &path)
                && !prefixes.iter().any(|prefix| at.starts_with(prefix))
            {
                self.invalid(&path, at, format!("should be a json path {place}"));
            }
        }
    }

    fn simple_path(&mut self, at: &str, path: &Path<'_>) -> bool {
        let is_simple = at.starts_with('.');
        if !is_simple {
            self.invalid(path, at, "must be a simple json path starting with .");
        }
        is_simple
    }

    pub(super) fn columns(&mut self, columns: &[Value], path: &Path<'_>) {
        for (index, column) in columns.iter().enumerate() {
            self.column(column, &path.index(index));
        }
    }

    fn column(&mut self, column: &Value, path: &Path<'_>) {
        let must_be = |allowed: &[&str]| format!("must be one of {}", allowed.join(","));
        let field = |name: &str| structural::text(column, name);
        if field("name").is_empty() {
            self.required(&path.field("name"), "");
        }
        if field("type").is_empty() {
            self.required(&path.field("type"), &must_be(&COLUMN_TYPES));
        } else if !COLUMN_TYPES.contains(&field("type")) {
            self.invalid(&path.field("type"), field("type"), must_be(&COLUMN_TYPES));
        }
        if !field("format").is_empty() && !COLUMN_FORMATS.contains(&field("format")) {
            self.invalid(&path.field("format"), field("format"), must_be(&COLUMN_FORMATS));
        }
        if field("jsonPath").is_empty() {
            self.required(&path.field("JSONPath"), "");
        } else {
            self.simple_path(field("jsonPath"), &path.field("JSONPath"));
        }
    }

    pub(super) fn selectable_fields(&mut self, version: &Value, path: &Path<'_>) {
        let schema = Schema::read(schema_of(version).unwrap_or(&Value::Null), &|_| None);
        let mut known: Vec<String> = Vec::new();
        for (index, field) in list(version, "/selectableFields").iter().enumerate() {
            let at = structural::text(field, "jsonPath");
            let item = path.index(index);
            let path = item.field("jsonPath");
            if at.is_empty() {
                self.required(&path, "");
                continue;
            }
            match field_path::resolve(at, &schema, Brackets::Forbidden) {
                Err(error) => self.invalid(&path, at, format!("is an invalid path: {error}")),
                Ok(found) => {
                    if found.path == "metadata" || found.path.starts_with("metadata.") {
                        self.invalid(&path, at, "must not point to fields in metadata");
                    }
                    if !matches!(found.schema.type_, Some(Type::String | Type::Boolean | Type::Integer)) {
                        let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
                        self.invalid(&path, at, detail);
                    }
                    if known.contains(&found.path) {
                        self.0.push(FieldError::new(ErrorKind::Duplicate, &path, at, ""));
                    } else {
                        known.push(found.path);
                    }
                }
            }
        }
        if known.len() > MAX_SELECTABLE_FIELDS {
            let detail = format!("must have at most {MAX_SELECTABLE_FIELDS} items");
            self.0.push(FieldError::new(ErrorKind::TooMany, path, known.len(), detail));
        }
    }

    pub(super) fn conversion(&mut self, crd: &Value, path: &Path<'_>) {
        let Some(conversion) = crd.pointer("/spec/conversion").filter(|conversion| !conversion.is_null()) else {
            return;
        };
        let strategy = structural::text(conversion, "strategy");
        self.one_of(&path.field("strategy"), strategy, &["None", "Webhook"]);
        let config = conversion.pointer("/webhook/clientConfig").filter(|config| !config.is_null());
        let versions = texts(conversion, "/webhook/conversionReviewVersions");
        let (of_config, of_versions) = (path.field("webhookClientConfig"), path.field("conversionReviewVersions"));
        if strategy != "Webhook" {
            let detail = "should not be set when strategy is not set to Webhook";
            if config.is_some() {
                self.forbidden(&of_config, detail);
            }
            if !versions.is_empty() {
                self.forbidden(&of_versions, detail);
            }
            return;
        }
        match config {
            None => self.required(&of_config, "required when strategy is set to Webhook"),
            Some(config) if structural::is_set(config, "url") == structural::is_set(config, "service") => {
                self.required(&of_config, "exactly one of url or service is required");
            }
            Some(_) => {}
        }
        self.review_versions(&versions, &of_versions);
    }

    fn review_versions(&mut self, versions: &[&str], path: &Path<'_>) {
        if versions.is_empty() {
            self.required(path, "");
            return;
        }
        for (index, version) in versions.iter().enumerate() {
            if versions[..index].contains(version) {
                self.invalid(&path.index(index), *version, "duplicate version");
            } else {
                self.label(&path.index(index), version);
            }
        }
        if !versions.iter().any(|version| ["v1", "v1beta1"].contains(version)) {
            self.invalid(path, json!(versions), "must include at least one of v1, v1beta1");
        }
    }
}
