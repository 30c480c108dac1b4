//! Files that hold what a program is expected to print or to generate.

use std::{env, fs, path::Path};

/// Asserts that the file at `path`, from the repository's root, holds exactly `actual`. With `DROVER_BLESS=1` in the
/// environment the file is written instead.
pub fn assert_matches(path: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if env::var_os("DROVER_BLESS").is_some() {
        fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("the folder can be made");
        fs::write(&file, actual).expect("the file can be written");
        return;
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    if let Some((line, expected, actual)) = first_difference(&expected, actual) {
        panic!(
            "{path} is out of date at line {line}:\n  there: {expected:?}\n  now:   {actual:?}\n\
             If that is right, run the test with DROVER_BLESS=1 and commit the file."
        );
    }
}

fn first_difference<'a>(expected: &'a str, actual: &'a str) -> Option<(usize, Option<&'a str>, Option<&'a str>)> {
    let (mut expected, mut actual) = (expected.split('\n'), actual.split('\n'));
    (1..).find_map(|line| match (expected.next(), actual.next()) {
        (None, None) => Some(None),
        (expected, actual) if expected == actual => None,
        (expected, actual) => Some(Some((line, expected, actual))),
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_found_wherever_it_is() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, Some("b"), Some("c"))));
        assert_eq!(first_difference("a\n", "a"), Some((2, Some(""), None)));
        assert_eq!(first_difference("", "a"), Some((1, Some(""), Some("a"))));
    }
}
