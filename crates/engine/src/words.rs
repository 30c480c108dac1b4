//! Sentences for people.

/// How many names a sentence lists.
const NAMES: usize = 3;
/// How many characters of another's text a sentence quotes.
const EXCERPT: usize = 300;

/// So many clusters.
pub(crate) fn clusters(count: i64) -> String {
    if count == 1 { "1 cluster".to_owned() } else { format!("{count} clusters") }
}

/// The first of some names.
pub(crate) fn enumerate(names: &[&str]) -> String {
    let listed = names[..names.len().min(NAMES)].join(", ");
    if names.len() > NAMES { format!("{listed}, …") } else { listed }
}

/// The beginning of what somebody else wrote, so that a sentence stays one.
pub(crate) fn excerpt(text: &str) -> String {
    beginning(text, EXCERPT)
}

/// The first so many characters of a text.
pub(crate) fn beginning(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_texts_are_cut_and_never_inside_a_letter() {
        assert_eq!(excerpt("füßig"), "füßig");
        assert_eq!(excerpt(&"ü".repeat(EXCERPT)), "ü".repeat(EXCERPT));
        assert_eq!(excerpt(&"ü".repeat(EXCERPT + 1)), format!("{}…", "ü".repeat(EXCERPT)));
    }
}
