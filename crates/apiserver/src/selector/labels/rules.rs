//! What keys and values of labels may look like.

use crate::field::{ErrorKind, FieldError, Path};

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const PREFIX: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
    is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// What is wrong with the key of a label.
pub(super) fn key(key: &str, path: &Path<'_>) -> Option<FieldError> {
    let wrong = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => wrong_name(name),
        [prefix, name] => [wrong_prefix(prefix), wrong_name(name)].concat(),
        _ => vec![format!(
            "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )],
    };
    invalid(key, path, &wrong)
}

/// What is wrong with the value of a label.
pub(super) fn value(value: &str, path: &Path<'_>) -> Option<FieldError> {
    let mut wrong = Vec::new();
    if value.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name(value) {
        wrong.push(VALUE.to_owned());
    }
    invalid(value, path, &wrong)
}

fn invalid(value: &str, path: &Path<'_>, wrong: &[String]) -> Option<FieldError> {
    (!wrong.is_empty()).then(|| FieldError::new(ErrorKind::Invalid, path, value, wrong.join("; ")))
}

fn wrong_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        wrong.push(format!("name part {NAME}"));
    }
    wrong
}

fn wrong_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut wrong = Vec::new();
    if prefix.len() > 253 {
        wrong.push("prefix part must be no more than 253 bytes".to_owned());
    }
    if !prefix.split('.').all(is_dns_label) {
        wrong.push(PREFIX.to_owned());
    }
    wrong
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.iter().all(inner) && ends(bytes.first()) && ends(bytes.last())
}

fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<&u8>| byte.is_some_and(alphanumeric);
    bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-') && ends(bytes.first()) && ends(bytes.last())
}
