//! The text of an expression before it is parsed.

/// Takes out negations of negations: the parser makes one of two.
pub(super) fn without_double_negations(source: &str) -> String {
    let mut output = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => text_length(rest, output.ends_with(['r', 'R'])),
            '!' => match second_negation(rest) {
                Some(length) => {
                    rest = &rest[length..];
                    continue;
                }
                None => 1,
            },
            other => other.len_utf8(),
        };
        output.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    output
}

/// How long two negations are, with what is between them. An exclamation mark before `=` is none.
fn second_negation(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('!')?.trim_start().strip_prefix('!')?;
    (!after.starts_with('=')).then(|| rest.len() - after.len())
}

/// How long the text is that begins here, with its quotes.
fn text_length(rest: &str, is_raw: bool) -> usize {
    let quote = if rest.starts_with("'''") || rest.starts_with("\"\"\"") { &rest[..3] } else { &rest[..1] };
    let mut at = quote.len();
    while at < rest.len() && !rest[at..].starts_with(quote) {
        let mut characters = rest[at..].chars();
        let first = characters.next().map_or(1, char::len_utf8);
        let escaped = characters.next().map_or(0, char::len_utf8);
        at += if rest[at..].starts_with('\\') && !is_raw { first + escaped } else { first };
    }
    (at + quote.len()).min(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negations_of_negations_go() {
        for (source, expected) in [
            ("!!a", "a"),
            ("!!!a", "!a"),
            ("! !(a != b)", "(a != b)"),
            ("!a && !b", "!a && !b"),
            ("a == '!!' && !!b", "a == '!!' && b"),
            (r"a == 'it\'s !!' || r'\' == '!!'", r"a == 'it\'s !!' || r'\' == '!!'"),
            (r#"a == """!!" ä""" "#, r#"a == """!!" ä""" "#),
            ("'open !!", "'open !!"),
        ] {
            assert_eq!(without_double_negations(source), expected);
        }
    }
}
