//! Names as DNS has them, and what is said about those that are not.

/// A label of DNS that begins with a letter.
const LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
/// A domain's name.
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// What keeps a text from being a label that begins with a letter.
pub(crate) fn label_faults(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63);
    if !(text.starts_with(|first: char| first.is_ascii_lowercase()) && is_label(text)) {
        faults.push(format!(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
             and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{LABEL}')"
        ));
    }
    faults
}

/// What keeps a text from being the name of a domain.
pub(crate) fn subdomain_faults(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 253);
    if !text.split('.').all(is_label) {
        faults.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
             and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
        ));
    }
    faults
}

fn too_long(text: &str, most: usize) -> Vec<String> {
    let is_too_long = text.len() > most;
    is_too_long.then(|| format!("must be no more than {most} characters")).into_iter().collect()
}

fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_well = |byte: Option<&u8>| byte.is_some_and(|byte| is_inner(*byte));
    let bytes = text.as_bytes();
    ends_well(bytes.first()) && ends_well(bytes.last()) && bytes.iter().all(|byte| is_inner(*byte) || *byte == b'-')
}
