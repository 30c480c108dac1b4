//! Sentences for people.

/// How many names a sentence lists.
const NAMES: usize = 3;

/// The first of some names.
pub(crate) fn enumerate(names: &[&str]) -> String {
    let listed = names[..names.len().min(NAMES)].join(", ");
    if names.len() > NAMES { format!("{listed}, …") } else { listed }
}
