//! What names of all sorts may look like, and what is said of those that do not.

use crate::kind::Kind;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_RULE: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const KEY_EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";
const CONFIG_KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";

/// The most characters of a DNS subdomain.
const SUBDOMAIN_LENGTH: usize = 253;
/// The most characters of a DNS label, and of the parts of label keys and values.
const LABEL_LENGTH: usize = 63;

/// What the names of a kind's objects have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS label.
    Label,
    /// Anything that can stand in a path.
    PathSegment,
    /// The kind has no rule of its own; all names have to be fit for a path.
    Open,
    /// The plural name and the group of the kind that is defined.
    Definition,
}

impl NameRule {
    /// The rule for objects of a kind.
    #[must_use]
    pub fn of(kind: &Kind) -> Self {
        match (kind.group.as_str(), kind.plural.as_str()) {
            ("", "namespaces" | "services") | ("apps", "statefulsets") => Self::Label,
            ("rbac.authorization.k8s.io", _) => Self::PathSegment,
            ("certificates.k8s.io", "certificatesigningrequests") => Self::Open,
            ("apiextensions.k8s.io", "customresourcedefinitions") => Self::Definition,
            _ => Self::Subdomain,
        }
    }

    /// What is wrong with a name, or with what a name begins with.
    #[must_use]
    pub fn problems(self, name: &str, is_prefix: bool) -> Vec<String> {
        match self {
            Self::Subdomain | Self::Definition => subdomain(&finished(name, is_prefix)),
            Self::Label => label(&finished(name, is_prefix)),
            Self::PathSegment => path_segment(name),
            Self::Open => Vec::new(),
        }
    }
}

/// A generated name goes on after its prefix, so that the prefix may end in a dash.
fn finished(name: &str, is_prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(rest) if is_prefix && name.len() > 1 => {
            let mut kept: String = rest.to_owned();
            kept.pop();
            kept.push('a');
            kept
        }
        _ => name.to_owned(),
    }
}

/// What is wrong with a DNS subdomain.
#[must_use]
pub fn subdomain(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_LENGTH {
        problems.push(too_many_characters(SUBDOMAIN_LENGTH));
    }
    if !is_subdomain(name) {
        problems.push(mismatch(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    problems
}

/// What is wrong with a DNS label.
#[must_use]
pub fn label(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LABEL_LENGTH {
        problems.push(too_many_characters(LABEL_LENGTH));
    }
    if !is_label(name) {
        let dotted = is_subdomain(name);
        let problem = mismatch(LABEL_RULE, LABEL, &["my-name", "123-abc"]);
        problems.push(if dotted { "must not contain dots".to_owned() } else { problem });
    }
    problems
}

/// What is wrong with a part of a path.
#[must_use]
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_prefix(name)
}

/// What is wrong with the beginning of a part of a path.
#[must_use]
pub fn path_segment_prefix(name: &str) -> Vec<String> {
    ["/", "%"].iter().filter(|part| name.contains(**part)).map(|part| format!("may not contain '{part}'")).collect()
}

/// What is wrong with the key of a label, and with all names that are qualified by a domain.
#[must_use]
pub fn qualified(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            let rule = mismatch(KEY_RULE, KEY, KEY_EXAMPLES);
            let hint = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {hint}")];
        }
    };
    let mut problems: Vec<String> = prefix.map(prefix_problems).unwrap_or_default();
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        problems.push(format!("name part {}", too_many_bytes(LABEL_LENGTH)));
    }
    if !is_key(name) {
        problems.push(format!("name part {}", mismatch(KEY_RULE, KEY, KEY_EXAMPLES)));
    }
    problems
}

fn prefix_problems(prefix: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if prefix.is_empty() {
        problems.push("prefix part must be non-empty".to_owned());
        return problems;
    }
    if prefix.len() > SUBDOMAIN_LENGTH {
        problems.push(format!("prefix part {}", too_many_bytes(SUBDOMAIN_LENGTH)));
    }
    if !is_subdomain(prefix) {
        problems.push(format!("prefix part {}", mismatch(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"])));
    }
    problems
}

/// What is wrong with the value of a label.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_LENGTH {
        problems.push(too_many_bytes(LABEL_LENGTH));
    }
    if !value.is_empty() && !is_key(value) {
        problems.push(mismatch(VALUE_RULE, VALUE, &["MyValue", "my_value", "12345"]));
    }
    problems
}

/// What is wrong with a key of a ConfigMap or Secret.
#[must_use]
pub fn config_key(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > SUBDOMAIN_LENGTH {
        problems.push(too_many_characters(SUBDOMAIN_LENGTH));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(fits) {
        problems.push(mismatch(CONFIG_KEY_RULE, CONFIG_KEY, &["key.name", "KEY_NAME", "key-name"]));
    }
    match key {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        other if other.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// What is wrong with the name of a port.
#[must_use]
pub fn port(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 15 {
        problems.push(too_many_characters(15));
    }
    if !name.bytes().all(is_label_byte) || name.is_empty() {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.contains(|letter: char| letter.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// What is said of something that does not match a rule.
#[must_use]
pub fn mismatch(rule: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

fn too_many_characters(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn too_many_bytes(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

fn is_label(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_label_byte) && !name.starts_with('-') && !name.ends_with('-')
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_key(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |edge: Option<u8>| edge.is_some_and(|byte| byte.is_ascii_alphanumeric());
    name.bytes().all(fits) && ends(name.bytes().next()) && ends(name.bytes().last())
}
