//! What has to hold of a definition, in the words of an API server.
//!
//! Kubernetes looks at definitions in a form of its own, in which what is the same in all versions stands beside them. The
//! paths that it names are of that form.

mod parts;

use serde_json::Value;

use super::{
    approval::{self, Approval},
    default, is_true, list,
    name::{label_faults, subdomain_faults},
    not_supported, openapi, schema_of,
    status::stored_versions,
    structural::{self, flag},
    text, texts,
};
use crate::{
    field::{ErrorKind, FieldError, Path},
    schema::rules::Rules,
};

/// What may stand at the root of a schema of which the status is written by itself, as Kubernetes calls it inside.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// What is wrong with a definition. Of its metadata, only what the name has to be is looked at.
#[must_use]
pub fn validate(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Errors(Vec::new());
    let spec = Path::Root.field("spec");
    if old.is_none() {
        errors.name(crd);
    }
    errors.spec(crd, &spec);
    if let Some(old) = old {
        errors.unchanged(crd, old, &spec);
    }
    errors.stored_versions(crd);
    errors.approval(crd, old);
    let preserved = |crd: &Value| crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true));
    if preserved(crd) && !old.is_some_and(preserved) {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.invalid(&spec.field("preserveUnknownFields"), true, detail);
    }
    errors.0
}

/// What is the same in all versions, if it is.
fn shared<'a>(versions: &'a [Value], part: impl Fn(&'a Value) -> Option<&'a Value>) -> Shared<'a> {
    let Some(first) = versions.first() else { return Shared::Everywhere(None) };
    if versions.iter().all(|version| part(version) == part(first)) {
        Shared::Everywhere(part(first))
    } else {
        Shared::PerVersion
    }
}

enum Shared<'a> {
    Everywhere(Option<&'a Value>),
    PerVersion,
}

struct Errors(Vec<FieldError>);

impl Errors {
    fn required(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::bare(ErrorKind::Required, path, detail));
    }

    fn forbidden(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::bare(ErrorKind::Forbidden, path, detail));
    }

    fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.0.push(FieldError::new(ErrorKind::Invalid, path, value, detail));
    }

    fn one_of(&mut self, path: &Path<'_>, value: &str, accepted: &[&str]) {
        if value.is_empty() {
            self.required(path, "");
        } else if !accepted.contains(&value) {
            self.0.push(not_supported(path, value, accepted));
        }
    }

    fn label(&mut self, path: &Path<'_>, value: &str) {
        let faults = label_faults(value);
        if !faults.is_empty() {
            self.invalid(path, value, faults.join(","));
        }
    }

    fn name(&mut self, crd: &Value) {
        let name = text(crd, "/metadata/name");
        let wanted = format!("{}.{}", text(crd, "/spec/names/plural"), text(crd, "/spec/group"));
        if !name.is_empty() && name != wanted {
            let path = Path::Root.field("metadata");
            self.invalid(&path.field("name"), name, r#"must be spec.names.plural+"."+spec.group"#);
        }
    }

    fn spec(&mut self, crd: &Value, path: &Path<'_>) {
        let versions = list(crd, "/spec/versions");
        self.group(text(crd, "/spec/group"), &path.field("group"));
        self.one_of(&path.field("scope"), text(crd, "/spec/scope"), &["Cluster", "Namespaced"]);
        let of_versions = path.field("versions");
        for (index, _) in versions.iter().enumerate().filter(|(_, version)| schema_of(version).is_none()) {
            self.required(&of_versions.index(index).field("schema").field("openAPIV3Schema"), "");
        }
        let has_defaults = || versions.iter().filter_map(schema_of).any(has_default);
        if flag(&crd["spec"], "preserveUnknownFields") && has_defaults() {
            let detail = "must be false in order to use defaults in the schema";
            self.invalid(&path.field("preserveUnknownFields"), true, detail);
        }
        for (index, version) in versions.iter().enumerate() {
            self.version(version, versions, &of_versions.index(index));
        }
        self.version_names(versions, path);
        self.names(crd, &path.field("names"));
        self.shared_parts(versions, path);
        self.conversion(crd, &path.field("conversion"));
    }

    fn group(&mut self, group: &str, path: &Path<'_>) {
        let faults = subdomain_faults(group);
        if group.is_empty() {
            self.required(path, "");
        } else if !faults.is_empty() {
            self.invalid(path, group, faults.join(","));
        } else if !group.contains('.') {
            self.invalid(path, group, "should be a domain with at least one dot");
        }
    }

    /// Checks what a version has by itself.
    fn version(&mut self, version: &Value, versions: &[Value], path: &Path<'_>) {
        self.label(&path.field("name"), text(version, "/name"));
        self.deprecation(version, &path.field("deprecationWarning"));
        let is_own = |shared: Shared<'_>| matches!(shared, Shared::PerVersion);
        if is_own(shared(versions, schema_of)) {
            self.schema(schema_of(version), has_status(version), &path.field("schema"));
        }
        if is_own(shared(versions, |version| version.get("subresources"))) {
            self.subresources(version.get("subresources"), &path.field("subresources"));
        }
        if is_own(shared(versions, |version| version.get("additionalPrinterColumns"))) {
            self.columns(list(version, "/additionalPrinterColumns"), &path.field("additionalPrinterColumns"));
        }
        if is_own(shared(versions, |version| version.get("selectableFields"))) {
            self.selectable_fields(version, &path.field("selectableFields"));
        }
    }

    fn deprecation(&mut self, version: &Value, path: &Path<'_>) {
        let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
        if !flag(version, "deprecated") {
            self.invalid(path, warning, "can only be set for deprecated versions");
            return;
        }
        if warning.len() > 256 {
            self.invalid(path, warning, "must be <= 256 characters long");
        }
        if warning.is_empty() {
            self.invalid(path, warning, "must not be an empty string");
        }
        if let Some(index) = warning.find(char::is_control) {
            let detail = "must only contain printable UTF-8 characters; non-printable character found at index";
            self.invalid(path, warning, format!("{detail} {index}"));
        }
    }

    fn version_names(&mut self, versions: &[Value], path: &Path<'_>) {
        let names: Vec<_> = versions.iter().map(|version| text(version, "/name")).collect();
        let of_versions = path.field("versions");
        if (1..names.len()).any(|index| names[..index].contains(&names[index])) {
            self.invalid(&of_versions, versions, "must contain unique version names");
        }
        if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
            let shown = if versions.is_empty() { Value::Null } else { versions.into() };
            self.invalid(&of_versions, shown, "must have exactly one version marked as storage version");
        }
        if let Some(first) = names.first().filter(|first| !first.is_empty()) {
            self.label(&path.field("version"), first);
        }
    }

    fn names(&mut self, crd: &Value, path: &Path<'_>) {
        let name = |name: &str| text(crd, &format!("/spec/names/{name}"));
        for required in ["plural", "singular", "kind", "listKind"] {
            if name(required).is_empty() {
                self.required(&path.field(required), "");
            }
        }
        for lower in ["plural", "singular"] {
            if !name(lower).is_empty() {
                self.label(&path.field(lower), name(lower));
            }
        }
        for mixed in ["kind", "listKind"] {
            let faults = label_faults(&name(mixed).to_lowercase());
            if !name(mixed).is_empty() && !faults.is_empty() {
                let detail = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
                self.invalid(&path.field(mixed), name(mixed), detail);
            }
        }
        self.labels(&texts(crd, "/spec/names/shortNames"), &path.field("shortNames"));
        if !name("kind").is_empty() && name("kind") == name("listKind") {
            self.invalid(&path.field("listKind"), name("listKind"), "kind and listKind may not be the same");
        }
        self.labels(&texts(crd, "/spec/names/categories"), &path.field("categories"));
    }

    fn labels(&mut self, values: &[&str], path: &Path<'_>) {
        for (index, value) in values.iter().enumerate() {
            self.label(&path.index(index), value);
        }
    }

    /// Checks what is the same in all versions.
    fn shared_parts(&mut self, versions: &[Value], path: &Path<'_>) {
        if let Shared::Everywhere(Some(schema)) = shared(versions, schema_of) {
            self.schema(Some(schema), versions.iter().any(has_status), &path.field("validation"));
        }
        if let Shared::Everywhere(subresources) = shared(versions, |version| version.get("subresources")) {
            self.subresources(subresources, &path.field("subresources"));
        }
        let Some(first) = versions.first() else { return };
        if let Shared::Everywhere(Some(_)) = shared(versions, |version| version.get("additionalPrinterColumns")) {
            self.columns(list(first, "/additionalPrinterColumns"), &path.field("additionalPrinterColumns"));
        }
        if let Shared::Everywhere(Some(_)) = shared(versions, |version| version.get("selectableFields")) {
            self.selectable_fields(first, &path.field("selectableFields"));
        }
    }

    fn schema(&mut self, schema: Option<&Value>, has_status: bool, path: &Path<'_>) {
        let Some(schema) = schema else { return };
        let outside = path;
        let path = path.field("openAPIV3Schema");
        if has_status {
            self.root_with_status(schema, &path);
        }
        if flag(schema, "nullable") {
            self.forbidden(&outside.field("openAPIV3Schema.nullable"), "nullable cannot be true at the root");
        }
        let unsupported = structural::unsupported(schema);
        let mut is_sound = unsupported.is_none();
        if is_sound {
            let mut found = structural::check(schema, &path);
            if found.is_empty() {
                found = default::check(schema, &path);
            }
            is_sound = found.is_empty();
            self.0.extend(found);
        }
        let found = openapi::check(schema, &path);
        is_sound &= found.is_empty();
        if let Some(name) = unsupported.filter(|_| found.is_empty()) {
            self.invalid(&path, "", format!("OpenAPIV3Schema '{name}' is not supported"));
        }
        self.0.extend(found);
        if is_sound && let Err(found) = Rules::compile_at(schema, &path) {
            self.0.extend(found);
        }
    }

    fn root_with_status(&mut self, schema: &Value, path: &Path<'_>) {
        let type_ = structural::text(schema, "type");
        if !type_.is_empty() && type_ != "object" {
            let detail = r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
            self.invalid(&path.field("type"), type_, detail);
            return;
        }
        let is_allowed = |name: &String| AT_ROOT.iter().any(|(allowed, _)| allowed == name);
        let mut names = schema.as_object().into_iter().flatten().map(|(name, _)| name);
        if names.any(|name| structural::is_set(schema, name) && !is_allowed(name)) {
            let allowed: Vec<_> = AT_ROOT.iter().map(|(_, name)| *name).collect();
            let allowed = allowed.join(" ");
            let detail = format!(
                "only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            );
            self.invalid(path, schema.clone(), detail);
        }
    }

    /// Checks what can not be changed any more.
    fn unchanged(&mut self, crd: &Value, old: &Value, path: &Path<'_>) {
        let names = path.field("names");
        let mut check = |pointer: &str, path: &Path<'_>| {
            if text(crd, pointer) != text(old, pointer) {
                self.invalid(path, text(crd, pointer), "field is immutable");
            }
        };
        if is_true(old, "Established") {
            check("/spec/scope", &path.field("scope"));
            check("/spec/names/kind", &names.field("kind"));
        }
        check("/spec/group", &path.field("group"));
        check("/spec/names/plural", &names.field("plural"));
    }

    fn stored_versions(&mut self, crd: &Value) {
        let status = Path::Root.field("status");
        let path = status.field("storedVersions");
        let stored = stored_versions(crd);
        if stored.is_empty() {
            self.invalid(&path, Value::Null, "must have at least one stored version");
        }
        let versions: Vec<_> =
            list(crd, "/spec/versions").iter().map(|version| structural::text(version, "name")).collect();
        for (index, gone) in stored.iter().enumerate().filter(|(_, stored)| !versions.contains(stored)) {
            let detail = format!(
                "missing from spec.versions; {gone} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {gone} and removes {gone} from status.storedVersions"
            );
            self.invalid(&path.index(index), *gone, detail);
        }
    }

    fn approval(&mut self, crd: &Value, old: Option<&Value>) {
        let approval = approval::of(crd);
        if old.is_some_and(|old| approval::of(old) == approval) {
            return;
        }
        let (metadata, reason) = (Path::Root.field("metadata"), approval.reason(crd));
        let annotations = metadata.field("annotations");
        let path = annotations.key(approval::ANNOTATION);
        match approval {
            Approval::Missing => self.required(&path, &reason),
            Approval::Invalid => self.invalid(&path, approval::annotation(crd), reason),
            Approval::NotNeeded | Approval::Approved | Approval::Bypassed => {}
        }
    }
}

fn has_status(version: &Value) -> bool {
    version.pointer("/subresources/status").is_some_and(|status| !status.is_null())
}

fn has_default(schema: &Value) -> bool {
    schema.get("default").is_some_and(|default| !default.is_null())
        || structural::inner(schema).into_iter().any(has_default)
}
