//! What the two servers may answer differently, each with its reason. The documentation shows the same list.

use std::fmt::Write;
use std::fs;

use drover_testkit::golden;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::{answer::Difference, step::Step};
use crate::documents::{read, repository};

/// So many kinds of differences are accepted at most.
const MOST: usize = 25;

/// The page that lists them, and the heading over the list.
const PAGE: &str = "docs/embedded.md";
const HEADING: &str = "## Where it differs from Kubernetes\n";

/// One kind of difference: in the answers to which requests, where in them, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    /// What the documentation calls the requests.
    requests: String,
    /// What the request is like: a pattern for the method, the path and the body.
    #[serde(default)]
    like: String,
    /// Where it is in the answer: a pattern for the path of the field.
    at: String,
    /// What the real server says there: a pattern.
    #[serde(default)]
    says: String,
    reason: String,
    #[serde(skip)]
    needed: bool,
}

impl Accepted {
    /// Where it is, for people: without what only makes it a pattern.
    fn place(&self) -> String {
        let alternatives = self.at.split('|').map(|pattern| {
            let path = pattern.replace(r"\d+", "").replace('\\', "").replace(".*", "…");
            format!("`{path}`")
        });
        alternatives.collect::<Vec<_>>().join(", ")
    }
}

pub(super) struct Differences(Vec<(Accepted, [Regex; 3])>);

impl Differences {
    pub(super) fn read() -> Self {
        let file = repository().join("crates/scenarios/tests/scenarios/differential/differences.yaml");
        let accepted = read::<Vec<Accepted>>(&file).into_iter().flatten();
        let whole = |pattern: &str| Regex::new(&format!("^(?:{pattern})$")).expect("a valid pattern");
        let with_patterns = |accepted: Accepted| {
            let patterns = [&accepted.like, &accepted.at, &accepted.says];
            let patterns = patterns.map(|pattern| whole(if pattern.is_empty() { ".*" } else { pattern }));
            (accepted, patterns)
        };
        Self(accepted.map(with_patterns).collect())
    }

    /// Whether this difference is listed; the entry has then been needed.
    pub(super) fn allow(&mut self, step: &Step, difference: &Difference) -> bool {
        let body = step.body.as_ref().map(Value::to_string).unwrap_or_default();
        let request = format!("{} {body}", step.send);
        let said = difference.kube.to_string();
        let texts = [&request, &difference.path, &said];
        let fits = |patterns: &[Regex; 3]| patterns.iter().zip(texts).all(|(pattern, text)| pattern.is_match(text));
        let listed = self.0.iter_mut().find(|(_, patterns)| fits(patterns));
        listed.is_some_and(|(accepted, ..)| {
            accepted.needed = true;
            true
        })
    }

    /// A complaint for every entry that nothing has needed.
    pub(super) fn needless(&self) -> Vec<String> {
        let needless = self.0.iter().filter(|(accepted, ..)| !accepted.needed);
        needless.map(|(accepted, ..)| format!("no answer differs any more in {:?}", accepted.requests)).collect()
    }

    fn table(&self) -> String {
        let mut table = String::from("| requests | where | reason |\n| --- | --- | --- |\n");
        for (accepted, ..) in &self.0 {
            writeln!(table, "| {} | {} | {} |", accepted.requests, accepted.place(), accepted.reason)
                .expect("a text can be written to");
        }
        table
    }
}

#[test]
fn the_documentation_lists_every_difference() {
    let differences = Differences::read();
    assert!(differences.0.len() <= MOST, "{} differences are too many", differences.0.len());
    let page = fs::read_to_string(repository().join(PAGE)).expect("the page is there");
    let (before, section) = page.split_once(HEADING).expect("the page has the heading");
    let (explained, rest) = section.split_once("\n| ").expect("the section has a table");
    let after = rest.split_once("\n\n").map(|(_, after)| format!("\n{after}")).unwrap_or_default();
    golden::assert_matches(PAGE, &format!("{before}{HEADING}{explained}\n{}{after}", differences.table()));
}
