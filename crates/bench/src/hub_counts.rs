//! What a hub counts itself: how often it has decided, and how often it has made works from templates.

use std::collections::BTreeMap;

use crate::{hub_process::sample, server_counts::label};

/// What a hub has counted by now, or in some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// How often each controller has worked on something.
    pub(crate) decisions: BTreeMap<String, u64>,
    /// How often the works of a cluster were made.
    pub(crate) renderings: u64,
}

impl Counts {
    pub(crate) fn read(metrics: &str) -> Self {
        let mut counts = Self::default();
        for (name, labels, value) in metrics.lines().filter_map(sample) {
            match (name, label(labels, "controller")) {
                ("drover_reconciles_total", Some(controller)) => {
                    *counts.decisions.entry(controller.to_owned()).or_default() += value;
                }
                ("drover_steps_total", Some(_)) if label(labels, "step") == Some("render") => {
                    counts.renderings += value;
                }
                _ => {}
            }
        }
        counts
    }

    /// What was counted since.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let known = |controller: &String| before.decisions.get(controller).copied().unwrap_or_default();
        let decisions = self.decisions.iter().map(|(name, count)| (name.clone(), count.saturating_sub(known(name))));
        Self {
            decisions: decisions.filter(|(_, count)| *count > 0).collect(),
            renderings: self.renderings.saturating_sub(before.renderings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = r#"
# TYPE drover_reconciles counter
drover_reconciles_total{controller="drover-addon",result="ok"} 7
drover_reconciles_total{controller="drover-addon",result="conflict"} 2
drover_reconciles_total{controller="drover-placement",result="ok"} 4
drover_steps_total{controller="drover-addon",step="render"} 5
drover_steps_total{controller="drover-placement",step="judge"} 100
drover_writes_total{kind="ManifestWork",verb="create"} 3
"#;

    #[test]
    fn decisions_count_whatever_came_of_them() {
        let counts = Counts::read(METRICS);
        let decisions = [("drover-addon".to_owned(), 9), ("drover-placement".to_owned(), 4)];
        assert_eq!(counts, Counts { decisions: decisions.into(), renderings: 5 });
    }

    #[test]
    fn what_was_counted_before_can_be_taken_out() {
        let before = Counts { decisions: [("drover-placement".to_owned(), 4)].into(), renderings: 3 };
        let since = Counts::read(METRICS).since(&before);
        assert_eq!(since, Counts { decisions: [("drover-addon".to_owned(), 9)].into(), renderings: 2 });
    }
}
