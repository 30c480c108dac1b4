//! What is counted and measured, for `/metrics`.

use std::{fmt, sync::Arc, time::Duration};

use drover_engine::plan::Verb;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

/// All of the process's metrics. Clones count into the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    queue_depth: Family<ByController, Gauge>,
    durations: Family<ByController, Histogram, fn() -> Histogram>,
    results: Family<ByResult, Counter>,
    writes: Family<ByVerb, Counter>,
    watch_restarts: Family<ByKind, Counter>,
    damaged_objects: Family<ByKind, Gauge>,
    write_limit: Gauge,
    steps: Family<ByStep, Counter>,
    leader: Gauge,
}

/// How the work on a key ended, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// As planned.
    Ok,
    /// Somebody else changed the object first.
    Conflict,
    /// The server was busy or did not answer.
    Throttled,
    /// With an error.
    Error,
    /// With a panic that was caught.
    Panic,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Conflict => "conflict",
            Self::Throttled => "throttled",
            Self::Error => "error",
            Self::Panic => "panic",
        }
    }
}

impl Metrics {
    /// Metrics that start at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("drover");
        let queue_depth = Family::default();
        registry.register("queue_depth", "Keys that wait for their turn", queue_depth.clone());
        let durations = Family::new_with_constructor(histogram as fn() -> Histogram);
        let help = "How long the work on a key took";
        registry.register_with_unit("reconcile_duration", help, Unit::Seconds, durations.clone());
        let results = Family::default();
        registry.register("reconciles", "How the work on keys ended", results.clone());
        let writes = Family::default();
        registry.register("writes", "Writes that the API server accepted", writes.clone());
        let watch_restarts = Family::default();
        registry.register("watch_restarts", "Watches that ended and were begun again", watch_restarts.clone());
        let damaged_objects = Family::default();
        let help = "Objects with values that cannot be parsed, such as an invalid status; one that two watches read counts twice";
        registry.register("damaged_objects", help, damaged_objects.clone());
        let write_limit = Gauge::default();
        registry.register("write_limit", "Writes that may be in flight at one time", write_limit.clone());
        let steps = Family::default();
        registry.register("steps", "Steps that decisions took", steps.clone());
        let leader = Gauge::default();
        registry.register("leader", "1 if this process leads, else 0", leader.clone());
        let inner = Inner {
            registry,
            queue_depth,
            durations,
            results,
            writes,
            watch_restarts,
            damaged_objects,
            write_limit,
            steps,
            leader,
        };
        Self(Arc::new(inner))
    }

    /// So many keys wait for that controller.
    pub fn queued(&self, controller: &str, keys: usize) {
        let depth = i64::try_from(keys).unwrap_or(i64::MAX);
        self.0.queue_depth.get_or_create(&ByController::new(controller)).set(depth);
    }

    /// That controller has worked on a key.
    pub fn reconciled(&self, controller: &str, outcome: Outcome, duration: Duration) {
        self.0.durations.get_or_create(&ByController::new(controller)).observe(duration.as_secs_f64());
        self.0.results.get_or_create(&ByResult { controller: controller.to_owned(), result: outcome }).inc();
    }

    /// An object of that kind was written.
    pub fn wrote(&self, kind: &str, verb: Verb) {
        self.0.writes.get_or_create(&ByVerb { kind: kind.to_owned(), verb: verb.as_str() }).inc();
    }

    /// The watch of that kind ended, and is begun again.
    pub fn watch_restarted(&self, kind: &str) {
        self.0.watch_restarts.get_or_create(&ByKind { kind: kind.to_owned() }).inc();
    }

    /// A watch of that kind has so many damaged objects now, after it had others before.
    pub fn damaged(&self, kind: &str, before: usize, now: usize) {
        let count = |objects: usize| i64::try_from(objects).unwrap_or(i64::MAX);
        if before != now {
            let gauge = self.0.damaged_objects.get_or_create(&ByKind { kind: kind.to_owned() });
            gauge.inc_by(count(now) - count(before));
        }
    }

    /// So many writes may be in flight from now on.
    pub fn may_write(&self, limit: usize) {
        self.0.write_limit.set(i64::try_from(limit).unwrap_or(i64::MAX));
    }

    /// To decide, that controller has taken a step so many times: what a decision costs.
    pub fn stepped(&self, controller: &str, step: &'static str, times: usize) {
        let times = u64::try_from(times).unwrap_or(u64::MAX);
        self.0.steps.get_or_create(&ByStep { controller: controller.to_owned(), step }).inc_by(times);
    }

    /// Whether this process leads.
    pub fn leading(&self, leads: bool) {
        self.0.leader.set(leads.into());
    }

    /// All of it, in the text format of OpenMetrics.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Only a writer can fail, and a String does not.
        let _ = text::encode(&mut text, &self.0.registry);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// From half a millisecond, which a key without anything to do takes, to half a minute.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 3.0, 11))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByController {
    controller: String,
}

impl ByController {
    fn new(controller: &str) -> Self {
        Self { controller: controller.to_owned() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    controller: String,
    result: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStep {
    controller: String,
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByVerb {
    kind: String,
    verb: &'static str,
}

impl EncodeLabelValue for Outcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        self.as_str().encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_has(text: &str, line: &str) {
        assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
    }

    #[test]
    fn what_is_counted_is_told() {
        let metrics = Metrics::new();
        metrics.clone().queued("placement", 7);
        metrics.reconciled("placement", Outcome::Ok, Duration::from_millis(1));
        metrics.reconciled("placement", Outcome::Panic, Duration::from_millis(1));
        metrics.wrote("Placement", Verb::Patch);
        metrics.wrote("Placement", Verb::Patch);
        metrics.watch_restarted("ManagedCluster");
        metrics.may_write(32);
        metrics.stepped("placement", "judge", 3);
        metrics.leading(true);
        let text = metrics.encode();
        assert_has(&text, r#"drover_queue_depth{controller="placement"} 7"#);
        assert_has(&text, r#"drover_reconcile_duration_seconds_bucket{le="0.0005",controller="placement"} 0"#);
        assert_has(&text, r#"drover_reconcile_duration_seconds_count{controller="placement"} 2"#);
        assert_has(&text, r#"drover_reconciles_total{controller="placement",result="ok"} 1"#);
        assert_has(&text, r#"drover_reconciles_total{controller="placement",result="panic"} 1"#);
        assert_has(&text, r#"drover_writes_total{kind="Placement",verb="patch"} 2"#);
        assert_has(&text, r#"drover_watch_restarts_total{kind="ManagedCluster"} 1"#);
        assert_has(&text, "drover_write_limit 32");
        assert_has(&text, r#"drover_steps_total{controller="placement",step="judge"} 3"#);
        assert_has(&text, "drover_leader 1");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn every_value_of_a_label_has_its_own_name() {
        let metrics = Metrics::new();
        for verb in [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete] {
            metrics.wrote("Lease", verb);
            let name = format!("{verb:?}").to_lowercase();
            assert_has(&metrics.encode(), &format!(r#"drover_writes_total{{kind="Lease",verb="{name}"}} 1"#));
        }
        for outcome in [Outcome::Ok, Outcome::Conflict, Outcome::Throttled, Outcome::Error, Outcome::Panic] {
            metrics.reconciled("set", outcome, Duration::ZERO);
            let name = format!("{outcome:?}").to_lowercase();
            assert_has(&metrics.encode(), &format!(r#"drover_reconciles_total{{controller="set",result="{name}"}} 1"#));
        }
    }
}
