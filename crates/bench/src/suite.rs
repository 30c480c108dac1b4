//! How long the scenarios take on each of the two servers that they run on.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::{
    report::{Report, Table},
    rounded,
};

/// What is between the name of a scenario's module and its own, for each server.
const KUBE: &str = "::on::kube::";
const EMBEDDED: &str = "::on::embedded::";

/// How long one scenario took on one server, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Took {
    /// With the time that it waited for its server.
    with_server: f64,
    alone: f64,
}

/// All scenarios on one server.
struct Run {
    wall: Duration,
    times: BTreeMap<String, Took>,
}

pub(crate) fn measure() -> anyhow::Result<Report> {
    let scenarios = on_both(&listed()?);
    ensure!(!scenarios.is_empty(), "there are no scenarios that run on both servers");
    let embedded = Run::of(&scenarios, EMBEDDED)?;
    let kube = Run::of(&scenarios, KUBE)?;
    Ok(report(&kube, &embedded))
}

/// The test program, with arguments.
fn tests(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--locked", "--quiet", "--workspace", "--test", "scenarios", "--"]).args(arguments);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

fn listed() -> anyhow::Result<String> {
    let output = tests(&["--list", "--format=terse"]).output().context("could not run cargo")?;
    ensure!(output.status.success(), "the tests can not be built: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The scenarios of a list of tests that run on both servers, as names with a gap for the server.
fn on_both(list: &str) -> Vec<(String, String)> {
    let names: Vec<_> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let split = names.iter().filter_map(|name| name.split_once(EMBEDDED));
    let has_both = split.filter(|(module, own)| names.contains(&format!("{module}{KUBE}{own}").as_str()));
    has_both.map(|(module, own)| (module.to_owned(), own.to_owned())).collect()
}

impl Run {
    fn of(scenarios: &[(String, String)], server: &str) -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        let file = folder.path().join("times");
        let names: Vec<_> = scenarios.iter().map(|(module, own)| format!("{module}{server}{own}")).collect();
        let mut arguments = vec!["--exact"];
        arguments.extend(names.iter().map(String::as_str));
        let begun = Instant::now();
        let status = tests(&arguments).env("DROVER_TIMES", &file).status().context("could not run cargo")?;
        let wall = begun.elapsed();
        ensure!(status.success(), "the scenarios {server} failed");
        let times = times(&fs::read_to_string(&file)?, server);
        ensure!(times.len() == scenarios.len(), "{} of {} scenarios told their time", times.len(), scenarios.len());
        Ok(Self { wall, times })
    }

    fn sum(&self, what: impl Fn(&Took) -> f64) -> f64 {
        self.times.values().map(what).sum()
    }
}

/// What the scenarios wrote down: on each line a name, and two times.
fn times(text: &str, server: &str) -> BTreeMap<String, Took> {
    let read = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.replace(server, "::");
        let mut seconds = || words.next()?.parse().ok();
        Some((name, Took { with_server: seconds()?, alone: seconds()? }))
    };
    text.lines().filter_map(read).collect()
}

fn report(kube: &Run, embedded: &Run) -> Report {
    let mut report = Report::new(
        "suite",
        "The scenarios on both servers",
        "Every scenario that runs on a real kube-apiserver with etcd and on Drover's own API server, first all on the one, then all on the other, \
         two at a time, in the build that is tested. The budget is five times faster on Drover's own.",
        "suite",
    );
    let count = kube.times.len();
    let columns = ["what", "kube-apiserver", "Drover's own", "times faster"];
    let mut table = Table::new(&format!("{count} scenarios, in seconds"), &columns);
    let mut row = |what: &str, kube: f64, embedded: f64| {
        table.rows.push(vec![what.to_owned(), rounded(kube), rounded(embedded), rounded(kube / embedded)]);
    };
    row("from the first to the last", kube.wall.as_secs_f64(), embedded.wall.as_secs_f64());
    row(
        "all, with the start of their servers",
        kube.sum(|took| took.with_server),
        embedded.sum(|took| took.with_server),
    );
    row("all, once their servers run", kube.sum(|took| took.alone), embedded.sum(|took| took.alone));
    report.tables.push(table);
    let mut table = Table::new("Each, with its server, in seconds", &columns);
    for (name, took) in &kube.times {
        let Some(own) = embedded.times.get(name) else { continue };
        let (kube, own) = (took.with_server, own.with_server);
        table.rows.push(vec![name.clone(), rounded(kube), rounded(own), rounded(kube / own)]);
    }
    report.tables.push(table);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_on_both_is_compared() {
        let list = "a::on::embedded::one: test\na::on::kube::one: test\na::on::kube::two: test\nb::three: test\n";
        assert_eq!(on_both(list), [("a".to_owned(), "one".to_owned())]);
    }

    #[test]
    fn times_are_found_by_the_name_of_the_scenario() {
        let times = times("a::on::kube::one 1.5 0.5\nnonsense\n", KUBE);
        assert_eq!(times, BTreeMap::from([("a::one".to_owned(), Took { with_server: 1.5, alone: 0.5 })]));
    }
}
