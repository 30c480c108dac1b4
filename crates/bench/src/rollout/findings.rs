//! What was found out about a hub with one fleet, and how it is put into tables.

use std::{collections::BTreeSet, time::Duration};

use super::{count, meter::Cost};
use crate::{
    hub_counts::Counts,
    report::{Report, Table},
    rounded,
};

const REQUESTS: &str = "Requests that the API server counted and the benchmark did not send. Reads of single objects may be those of Kubernetes' own garbage \
                        collector, which looks for owners";

/// What was found with a fleet of one size.
pub(super) struct Findings {
    pub(super) clusters: usize,
    /// How many writes a second the server takes.
    pub(super) rate: f64,
    pub(super) phases: Vec<Phase>,
    pub(super) touched: Vec<Touched>,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measured {
    /// Drover, with an add-on that has a manager.
    Drover,
    /// Drover, with an add-on that is made from a template.
    Templates,
    /// OCM's manager.
    Ocm,
}

/// What happened to the whole fleet.
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) time: Duration,
    pub(super) cost: Cost,
}

/// What can be changed of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The status of its work.
    Work,
    /// The settings that it has of its own.
    Settings,
}

impl Change {
    fn words(self) -> &'static str {
        match self {
            Self::Work => "one work's status",
            Self::Settings => "one cluster's settings",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Work => "One work's status changes, to not available and back, while nothing else is going on",
            Self::Settings => {
                "The settings that one cluster has of its own are edited and reach it, while nothing else is going on"
            }
        }
    }
}

/// What one change costs that concerns one cluster.
pub(super) struct Touched {
    /// What was changed.
    pub(super) what: Change,
    pub(super) changes: u32,
    pub(super) cpu: Option<Duration>,
    /// What all changes have cost.
    pub(super) cost: Cost,
}

impl Findings {
    /// A report on all this, compared with a fleet of another size.
    pub(super) fn report(&self, measured: Measured, about: &str, command: &str, other: Option<&Self>) -> Report {
        let (name, title) = match measured {
            Measured::Drover => ("rollout", "A rollout"),
            Measured::Templates => ("rollout-templated", "A rollout of a templated add-on"),
            Measured::Ocm => ("rollout-ocm", "A rollout by OCM's manager"),
        };
        let (name, title) = (format!("{name}-{}", self.clusters), format!("{title} to {} clusters", self.clusters));
        let mut report = Report::new(&name, &title, about, command);
        report.tables.push(self.phases_table());
        report.tables.push(self.requests_table());
        report.tables.extend(self.counts_table());
        report.tables.extend(self.touched.iter().flat_map(Touched::tables));
        report.tables.extend(other.map(|other| self.growth_since(other)));
        report
    }

    fn phases_table(&self) -> Table {
        let columns = [
            "phase",
            "time, s",
            "all writes at the server's own rate, s",
            "the hub's writes per cluster",
            "other writes per cluster",
            "the hub's conflicts",
            "CPU, s",
            "CPU per cluster, ms",
            "memory at most, MB",
        ];
        let title = format!("The hub. The server's own rate is {} writes a second, 32 at a time", rounded(self.rate));
        let mut table = Table::new(&title, &columns);
        for Phase { name, time, cost } in &self.phases {
            let (hub, own) = (count(cost.hub.writes()), count(cost.own.writes()));
            table.rows.push(vec![
                (*name).to_owned(),
                rounded(time.as_secs_f64()),
                rounded((hub + own) / self.rate),
                rounded(hub / self.size()),
                rounded(own / self.size()),
                cost.hub.conflicts.to_string(),
                known(cost.cpu.map(|cpu| cpu.as_secs_f64())),
                known(self.cpu_per_cluster(cost)),
                known(cost.peak_megabytes),
            ]);
        }
        table
    }

    /// Watches are left out, because a server counts them when they end.
    fn requests_table(&self) -> Table {
        let columns: Vec<_> = self
            .phases
            .iter()
            .flat_map(|phase| [phase.name.to_owned(), format!("{} per cluster", phase.name)])
            .collect();
        let columns: Vec<_> = ["resource", "verb"].into_iter().chain(columns.iter().map(String::as_str)).collect();
        let mut table = Table::new(REQUESTS, &columns);
        let sorts: BTreeSet<_> =
            self.phases.iter().flat_map(|phase| phase.cost.hub.iter()).map(|(sort, _)| sort).collect();
        for sort in sorts.into_iter().filter(|(_, verb)| verb != "WATCH") {
            let mut row = vec![sort.0.clone(), sort.1.clone()];
            for phase in &self.phases {
                let requests = phase.cost.hub.of(sort);
                row.extend([requests.to_string(), rounded(count(requests) / self.size())]);
            }
            table.rows.push(row);
        }
        table
    }

    /// What the hub counts itself, if it can be asked.
    fn counts_table(&self) -> Option<Table> {
        let counts: Vec<_> = self.phases.iter().map(|phase| phase.cost.counts.as_ref()).collect::<Option<_>>()?;
        let columns: Vec<_> = self.phases.iter().map(|phase| format!("{} per cluster", phase.name)).collect();
        let columns: Vec<_> = ["what"].into_iter().chain(columns.iter().map(String::as_str)).collect();
        let mut table = Table::new("What the hub has counted itself", &columns);
        for what in Counted::all(&counts) {
            let per_cluster = counts.iter().map(|counts| rounded(count(what.of(counts)) / self.size()));
            table.rows.push([what.words()].into_iter().chain(per_cluster).collect());
        }
        Some(table)
    }

    fn growth_since(&self, other: &Self) -> Table {
        let title = format!("Compared with {} clusters", other.clusters);
        let columns =
            ["what", &format!("{} clusters", other.clusters), &format!("{} clusters", self.clusters), "times"];
        let mut table = Table::new(&title, &columns);
        let mut compare = |what: String, other: Option<f64>, this: Option<f64>| {
            let times = this.zip(other).map(|(this, other)| this / other);
            table.rows.push(vec![what, known(other), known(this), known(times)]);
        };
        for (this, before) in self.phases.iter().zip(&other.phases) {
            let what = format!("{}: CPU per cluster, ms", this.name);
            compare(what, other.cpu_per_cluster(&before.cost), self.cpu_per_cluster(&this.cost));
        }
        for (this, before) in self.touched.iter().zip(&other.touched) {
            let what = format!("{}: CPU per change, ms", this.what.words());
            compare(what, before.cpu.map(milliseconds), this.cpu.map(milliseconds));
        }
        table
    }

    fn size(&self) -> f64 {
        count(self.clusters as u64)
    }

    fn cpu_per_cluster(&self, cost: &Cost) -> Option<f64> {
        cost.cpu.map(|cpu| milliseconds(cpu) / self.size())
    }
}

impl Touched {
    fn tables(&self) -> [Table; 2] {
        [self.costs_table(), self.writes_table()]
    }

    fn costs_table(&self) -> Table {
        let counts: Vec<_> = self.cost.counts.iter().collect();
        let counted = Counted::all(&counts);
        let columns: Vec<_> = counted.iter().map(|what| format!("{} per change", what.words())).collect();
        let columns: Vec<_> = ["changes", "CPU per change, ms", "the hub's writes per change"]
            .into_iter()
            .chain(columns.iter().map(String::as_str))
            .collect();
        let mut table = Table::new(self.what.title(), &columns);
        let (cpu, writes) = (known(self.cpu.map(milliseconds)), self.per_change(self.cost.hub.writes()));
        let mut row = vec![self.changes.to_string(), cpu, writes];
        row.extend(counted.iter().flat_map(|what| counts.iter().map(|counts| self.per_change(what.of(counts)))));
        table.rows.push(row);
        table
    }

    fn writes_table(&self) -> Table {
        let title = format!("What the hub writes then, for {}", self.what.words());
        let mut table = Table::new(&title, &["resource", "verb", "writes per change"]);
        let written = self.cost.hub.written();
        table.rows.extend(
            written.map(|((resource, verb), number)| vec![resource.clone(), verb.clone(), self.per_change(number)]),
        );
        table
    }

    fn per_change(&self, number: u64) -> String {
        rounded(count(number) / f64::from(self.changes))
    }
}

/// Something that a hub counts itself.
enum Counted<'a> {
    Renderings,
    /// Of this controller.
    Decisions(&'a str),
}

impl<'a> Counted<'a> {
    /// All that is counted somewhere.
    fn all(counts: &[&'a Counts]) -> Vec<Self> {
        let controllers: BTreeSet<_> = counts.iter().flat_map(|counts| counts.decisions.keys()).collect();
        let renderings = (!counts.is_empty()).then_some(Self::Renderings);
        renderings.into_iter().chain(controllers.into_iter().map(|name| Self::Decisions(name))).collect()
    }

    fn words(&self) -> String {
        match self {
            Self::Renderings => "renderings".to_owned(),
            Self::Decisions(controller) => format!("decisions of {controller}"),
        }
    }

    fn of(&self, counts: &Counts) -> u64 {
        match self {
            Self::Renderings => counts.renderings,
            Self::Decisions(controller) => counts.decisions.get(*controller).copied().unwrap_or_default(),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A number, if it could be found out.
fn known(number: Option<f64>) -> String {
    number.map_or("unknown".to_owned(), rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(clusters: usize, cpu: Option<u64>) -> Findings {
        let mut cost =
            Cost { cpu: cpu.map(Duration::from_millis), peak_megabytes: cpu.map(|_| 30.0), ..Cost::default() };
        for (resource, verb, per_cluster) in
            [("addons", "POST", 1), ("addons/status", "PATCH", 3), ("addons", "WATCH", 1)]
        {
            cost.hub.add((resource.to_owned(), verb.to_owned()), clusters as u64 * per_cluster);
        }
        cost.hub.conflicts = 7;
        cost.own.add(("works".to_owned(), "POST".to_owned()), clusters as u64);
        let phase = Phase { name: "install", time: Duration::from_secs(20), cost };
        let cpu = cpu.map(|_| Duration::from_micros(1500));
        let mut cost = Cost::default();
        cost.hub.add(("addons/status".to_owned(), "PATCH".to_owned()), 100);
        cost.hub.add(("addons".to_owned(), "GET".to_owned()), 7);
        let touched = Touched { what: Change::Work, changes: 50, cpu, cost };
        Findings { clusters, rate: 500.0, phases: vec![phase], touched: vec![touched] }
    }

    fn rows(report: &Report) -> Vec<String> {
        report.tables.iter().flat_map(|table| &table.rows).map(|row| row.join(" | ")).collect()
    }

    #[test]
    fn what_was_found_is_told_per_cluster() {
        let report = findings(500, Some(1000)).report(Measured::Drover, "", "rollout", None);
        assert_eq!(report.name, "rollout-500");
        assert_eq!(
            rows(&report),
            [
                "install | 20.0 | 5.00 | 4.00 | 1.00 | 7 | 1.00 | 2.00 | 30.0",
                "addons | POST | 500 | 1.00",
                "addons/status | PATCH | 1500 | 3.00",
                "50 | 1.50 | 2.00",
                "addons/status | PATCH | 2.00",
            ]
        );
    }

    #[test]
    fn a_larger_fleet_is_compared_with_the_first() {
        let report =
            findings(1000, Some(3000)).report(Measured::Drover, "", "rollout", Some(&findings(500, Some(1000))));
        let compared = report.tables.last().unwrap();
        assert_eq!(compared.title, "Compared with 500 clusters");
        let [install, change] = &rows(&report)[5..] else { panic!("two rows are expected") };
        assert_eq!(install, "install: CPU per cluster, ms | 2.00 | 3.00 | 1.50");
        assert_eq!(change, "one work's status: CPU per change, ms | 1.50 | 1.50 | 1.00");
    }

    #[test]
    fn what_no_process_tells_is_unknown() {
        let report = findings(500, None).report(Measured::Ocm, "", "rollout", None);
        assert_eq!(report.name, "rollout-ocm-500");
        assert_eq!(rows(&report)[0], "install | 20.0 | 5.00 | 4.00 | 1.00 | 7 | unknown | unknown | unknown");
    }

    #[test]
    fn what_a_hub_counts_itself_is_told_per_cluster_and_per_change() {
        let mut findings = findings(500, Some(1000));
        let counts = |times: u64| Counts { decisions: [("addon".to_owned(), 3 * times)].into(), renderings: times };
        findings.phases[0].cost.counts = Some(counts(500));
        findings.touched[0].cost.counts = Some(counts(50));
        let report = findings.report(Measured::Templates, "", "rollout", None);
        assert_eq!(report.name, "rollout-templated-500");
        let rows = rows(&report);
        assert_eq!(rows[3..5], ["renderings | 1.00", "decisions of addon | 3.00"], "per cluster");
        assert_eq!(rows[5], "50 | 1.50 | 2.00 | 1.00 | 3.00", "per change");
        let columns = report.tables[3].columns.join(" | ");
        assert!(columns.ends_with("| renderings per change | decisions of addon per change"), "{columns}");
    }
}
