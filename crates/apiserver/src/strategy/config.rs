//! Secrets, ConfigMaps and ServiceAccounts.

use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use super::look::{alike, at, fill, list_mut, member, object, remove, text};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::names,
};

/// The most that all values together may hold.
const SIZE: usize = 1024 * 1024;

/// Data that was written as text is kept like all other.
pub(super) fn secret_defaults(secret: &mut Value) {
    if let Some(Value::Object(texts)) = secret.get("stringData").cloned()
        && !texts.is_empty()
        && let Some(data) = object(secret, "data").and_then(Value::as_object_mut)
    {
        for (key, value) in texts {
            let bytes = value.as_str().unwrap_or_default().as_bytes().to_vec();
            data.insert(key, json!(ByteString(bytes)));
        }
    }
    remove(secret, "stringData");
    fill(secret, "type", "Opaque");
}

/// A Secret that says no type keeps the one that it has.
pub(super) fn keep_type(new: &mut Value, old: &Value) {
    fill(new, "type", text(old, "/type"));
}

/// Only names of Secrets are kept in ServiceAccounts.
pub(super) fn clean_secrets(account: &mut Value) {
    for secret in list_mut(account, "/secrets") {
        let name = text(secret, "/name").to_owned();
        *secret = if name.is_empty() { json!({}) } else { json!({ "name": name }) };
    }
}

/// What is wrong with a Secret.
pub(super) fn secret_rules(secret: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("data");
    let mut errors = key_rules(secret, "data");
    if size(secret, "data") > SIZE {
        errors.push(too_long(&path));
    }
    let data = |key: &str| member(secret, "data").and_then(|data| data.get(key));
    let mut require = |key: &str, is_there: bool| {
        if !is_there {
            errors.push(FieldError::bare(ErrorKind::Required, &path.key(key), ""));
        }
    };
    match text(secret, "/type") {
        "kubernetes.io/service-account-token" => errors.extend(account_rules(secret)),
        "kubernetes.io/dockercfg" => require(".dockercfg", data(".dockercfg").is_some()),
        "kubernetes.io/dockerconfigjson" => require(".dockerconfigjson", data(".dockerconfigjson").is_some()),
        "kubernetes.io/basic-auth" => {
            let either = data("username").is_some() || data("password").is_some();
            require("username", either);
            require("password", either);
        }
        "kubernetes.io/ssh-auth" => {
            let key = data("ssh-privatekey").and_then(Value::as_str).unwrap_or_default();
            require("ssh-privatekey", !key.is_empty());
        }
        "kubernetes.io/tls" => {
            require("tls.crt", data("tls.crt").is_some());
            require("tls.key", data("tls.key").is_some());
        }
        _ => {}
    }
    errors
}

fn account_rules(secret: &Value) -> Option<FieldError> {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let named = secret.pointer("/metadata/annotations").and_then(|annotations| annotations.get(ACCOUNT));
    let metadata = Path::Root.field("metadata");
    let missing = named.and_then(Value::as_str).unwrap_or_default().is_empty();
    missing.then(|| FieldError::bare(ErrorKind::Required, &metadata.field("annotations").key(ACCOUNT), ""))
}

/// What a change may not do to a Secret.
pub(super) fn secret_update_rules(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(new, "/type") != text(old, "/type") {
        let path = Path::Root.field("type");
        errors.push(FieldError::new(ErrorKind::Invalid, &path, text(new, "/type"), "field is immutable"));
    }
    errors.extend(seal_rules(new, old, &["data"]));
    errors
}

/// What is wrong with a ConfigMap.
pub(super) fn config_map_rules(config: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let binary = member(config, "binaryData").and_then(Value::as_object);
    let path = Path::Root.field("data");
    for key in member(config, "data").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        errors.extend(key_problems(&path, key));
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::new(ErrorKind::Invalid, &path.key(key), key.as_str(), detail));
        }
    }
    errors.extend(key_rules(config, "binaryData"));
    let texts = member(config, "data").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let length: usize = texts.filter_map(Value::as_str).map(str::len).sum();
    if length + size(config, "binaryData") > SIZE {
        // It is about no field in particular, which is written like this.
        errors.push(too_long(&Path::Root.key("")));
    }
    errors
}

/// What a change may not do to a ConfigMap.
pub(super) fn config_map_update_rules(new: &Value, old: &Value) -> Vec<FieldError> {
    seal_rules(new, old, &["data", "binaryData"])
}

/// What is sealed stays sealed and as it is.
fn seal_rules(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    let is_sealed = |object: &Value| at(object, "/immutable").and_then(Value::as_bool) == Some(true);
    if !is_sealed(old) {
        return Vec::new();
    }
    let forbidden = |field: &str| {
        let detail = "field is immutable when `immutable` is set";
        FieldError::bare(ErrorKind::Forbidden, &Path::Root.field(field), detail)
    };
    let opened = (!is_sealed(new)).then(|| forbidden("immutable"));
    let changed = fields.iter().filter(|field| !alike(member(new, field), member(old, field)));
    opened.into_iter().chain(changed.map(|field| forbidden(field))).collect()
}

fn key_rules(object: &Value, field: &str) -> Vec<FieldError> {
    let path = Path::Root.field(field);
    let keys = member(object, field).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    keys.flat_map(|key| key_problems(&path, key)).collect()
}

fn key_problems(path: &Path<'_>, key: &str) -> Vec<FieldError> {
    let problems = names::config_key(key).into_iter();
    problems.map(|problem| FieldError::new(ErrorKind::Invalid, &path.key(key), key, problem)).collect()
}

/// How much encoded data there is when it is decoded.
fn size(object: &Value, field: &str) -> usize {
    let values = member(object, field).and_then(Value::as_object).into_iter().flat_map(Map::values);
    values.filter_map(Value::as_str).map(|text| text.trim_end_matches('=').len() * 3 / 4).sum()
}

fn too_long(path: &Path<'_>) -> FieldError {
    FieldError::bare(ErrorKind::TooLong, path, format!("may not be more than {SIZE} bytes"))
}
