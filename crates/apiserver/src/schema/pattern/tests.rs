use super::*;

#[track_caller]
fn matches(pattern: &str, text: &str) -> bool {
    compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(text)
}

#[test]
fn classes_are_about_ascii() {
    assert!(matches(r"^\d+$", "12") && !matches(r"^\d+$", "١٢"));
    assert!(matches(r"^[\w-]+$", "a-b") && !matches(r"^\w+$", "é"));
    assert!(!matches(r"^[\s]$", "\u{a0}"));
    assert!(matches(r"^[a\D]+$", "ab") && !matches(r"^[a\D]+$", "a1"));
}

#[test]
fn brackets_in_classes_mean_themselves() {
    assert!(matches(r"^[[a]+$", "[a"));
    assert!(matches(r"^[]a]+$", "]a"));
    assert!(matches(r"^[[:alpha:]]+$", "ab") && !matches(r"^[[:alpha:]]+$", ":"));
    assert!(matches(r"^[a&&b]+$", "a&b"));
}

#[test]
fn braces_without_a_count_mean_themselves() {
    assert!(matches(r"^a{2}$", "aa") && matches(r"^a{1,}$", "aaa") && matches(r"^a{1,2}$", "aa"));
    assert!(matches(r"^{a}$", "{a}") && matches(r"^a{,2}$", "a{,2}"));
    assert!(matches(r"^\p{Greek}+$", "αβ") && matches(r"^\x{41}$", "A"));
}

#[test]
fn what_is_quoted_means_itself() {
    assert!(matches(r"^\Qa.b*\E$", "a.b*"));
}

#[test]
fn what_is_no_expression_says_why() {
    assert!(compile("(").unwrap_err().starts_with("error parsing regexp: "));
}
