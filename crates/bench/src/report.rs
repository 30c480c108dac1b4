//! What was measured: a JSON file for each benchmark, and a page that is made from all of them.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    thread,
};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// What one benchmark found.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) about: String,
    /// What was run.
    pub(crate) command: String,
    /// What it was run on.
    pub(crate) machine: String,
    pub(crate) tables: Vec<Table>,
}

/// Rows of what was measured.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

const PREFACE: &str = "# Benchmarks

What Drover costs, as `drover-bench` measured it. This page is made from the files in [benchmarks](benchmarks): each holds the command that
made it. Times are of the machine that is named; counts are the same everywhere.
";

impl Table {
    pub(crate) fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { title: title.to_owned(), columns, rows: Vec::new() }
    }
}

impl Report {
    /// Writes the report into the documentation, and makes the page anew.
    pub(crate) fn document(&self) -> anyhow::Result<()> {
        self.write_to(&docs().join("benchmarks"))?;
        fs::write(docs().join("benchmarks.md"), page()?)?;
        Ok(())
    }

    /// Writes the report into a folder.
    pub(crate) fn write_to(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))?;
        let file = folder.join(&self.name).with_extension("json");
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&file, text).with_context(|| format!("could not write {}", file.display()))
    }

    /// The report's part of the page.
    pub(crate) fn section(&self) -> String {
        let Self { title, about, command, machine, .. } = self;
        let mut text = format!("\n## {title}\n\n{about}\n\n    {command}\n\nMeasured on {machine}.\n");
        for table in &self.tables {
            table.write(&mut text);
        }
        text
    }
}

impl Table {
    fn write(&self, text: &mut String) {
        let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let _ = write!(text, "\n{}:\n\n{}", self.title, row(&self.columns));
        let _ = writeln!(text, "|{}", " --- |".repeat(self.columns.len()));
        for cells in &self.rows {
            text.push_str(&row(cells));
        }
    }
}

/// The page with all reports that there are.
fn page() -> anyhow::Result<String> {
    let mut files: Vec<_> = fs::read_dir(docs().join("benchmarks"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut page = PREFACE.to_owned();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let report: Report = serde_json::from_str(&fs::read_to_string(file)?)
            .with_context(|| format!("{} is no report", file.display()))?;
        page.push_str(&report.section());
    }
    Ok(page)
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// What this is run on, as far as it matters.
pub(crate) fn machine() -> String {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let build = if cfg!(debug_assertions) { "without optimisation" } else { "with optimisation" };
    format!("{cpus} cores of {}, {build}", model.map_or("an unknown kind", |(_, model)| model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_made_from_the_reports() {
        drover_testkit::golden::assert_matches("docs/benchmarks.md", &page().expect("the reports can be read"));
    }

    #[test]
    fn a_report_reads_as_a_section() {
        let mut table = Table::new("Times", &["clusters", "ms"]);
        table.rows.push(vec!["10".to_owned(), "1.5".to_owned()]);
        let report = Report {
            name: "some".to_owned(),
            title: "Some".to_owned(),
            about: "What it is about.".to_owned(),
            command: "run it".to_owned(),
            machine: "a machine".to_owned(),
            tables: vec![table],
        };
        let expected = "\n## Some\n\nWhat it is about.\n\n    run it\n\nMeasured on a machine.\n\nTimes:\n\n\
                        | clusters | ms |\n| --- | --- |\n| 10 | 1.5 |\n";
        assert_eq!(report.section(), expected);
    }
}
