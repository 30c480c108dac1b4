//! Why a revision failed on a cluster.

use std::fmt;

use drover_api::reference::ClusterName;

/// In which way a cluster has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// What was sent to it could not be applied there.
    NotApplied,
    /// It took too long.
    TooLate,
    /// It ran the set, and then turned unhealthy.
    Unhealthy,
}

impl Failure {
    /// The name of the failure.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotApplied => "NotApplied",
            Self::TooLate => "TooLate",
            Self::Unhealthy => "Unhealthy",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotApplied => "what was sent to the cluster could not be applied there",
            Self::TooLate => "it took longer than progressDeadline allows",
            Self::Unhealthy => "it turned unhealthy after it had been well",
        })
    }
}

/// Why a revision failed on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// In which way it failed.
    pub failure: Failure,
    /// What was reported.
    pub message: String,
    /// The message without what differs between clusters that failed of the same.
    pub normalised: String,
}

impl From<Failure> for Cause {
    /// The cause as far as the planner knows it.
    fn from(failure: Failure) -> Self {
        Self { failure, message: failure.to_string(), normalised: failure.to_string() }
    }
}

impl Cause {
    /// The cause that a cluster has reported.
    #[must_use]
    pub fn reported(failure: Failure, message: &str, cluster: &ClusterName) -> Self {
        Self { failure, message: message.to_owned(), normalised: normalised(message, cluster.as_str()) }
    }
}

/// A message with placeholders for the cluster's name, uids, hashes and numbers.
fn normalised(message: &str, cluster: &str) -> String {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '-';
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(first) = rest.chars().next() {
        let end = if is_of_word(first) {
            rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        text.push_str(&normalised_word(word, cluster));
        rest = after;
    }
    text
}

fn normalised_word(word: &str, cluster: &str) -> String {
    if word == cluster {
        return "<cluster>".to_owned();
    }
    if is_uid(word) {
        return "<uid>".to_owned();
    }
    let parts = word.split('-').map(|part| if is_hash(part) { "<hash>".to_owned() } else { without_numbers(part) });
    parts.collect::<Vec<_>>().join("-")
}

fn is_uid(word: &str) -> bool {
    let lengths = word.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && word.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
}

/// Whether a word looks like a hash, and is no word that happens to have these letters.
fn is_hash(word: &str) -> bool {
    let has_digit = word.contains(|letter: char| letter.is_ascii_digit());
    let has_letter = word.contains(|letter: char| letter.is_ascii_alphabetic());
    word.len() >= 7 && has_digit && has_letter && word.chars().all(|letter| letter.is_ascii_hexdigit())
}

/// A word with a placeholder for each run of digits.
fn without_numbers(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    for letter in word.chars() {
        match letter {
            '0'..='9' if text.ends_with("<n>") => {}
            '0'..='9' => text.push_str("<n>"),
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_the_same_when_only_names_and_numbers_differ() {
        let of = |cluster: &str, message: &str| {
            Cause::reported(Failure::NotApplied, message, &ClusterName::from(cluster)).normalised
        };
        let rows = [
            ("it has no work yet", "it has no work yet"),
            (
                "work addon-hello-deploy-0 of dev1 is not applied",
                "work addon-hello-deploy-<n> of <cluster> is not applied",
            ),
            ("pod hello-7d9f8b5c44-x has 2 of 13", "pod hello-<hash>-x has <n> of <n>"),
            ("uid 8f14e45f-ceea-467f-a1d2-0123456789ab: gone", "uid <uid>: gone"),
            ("the set 0123456789abcdef, füßig", "the set <hash>, füßig"),
            ("defaced facade", "defaced facade"),
        ];
        for (message, expected) in rows {
            assert_eq!(of("dev1", message), expected);
        }
        assert_eq!(of("one", "one has 1 pod"), of("two", "two has 27 pod"));
    }
}
