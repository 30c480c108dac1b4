//! The requests that an API server has counted.

use std::collections::BTreeMap;

use anyhow::Context;
use kube::{
    Client,
    api::{ListParams, Request},
};

use crate::hub_process::sample;

/// What requests are told apart by: the resource, with its part if one is meant, and the verb, as the API server calls it.
pub(crate) type Sort = (String, String);

/// How many requests there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    counts: BTreeMap<Sort, u64>,
    /// How many of them were refused because somebody else had been faster.
    pub(crate) conflicts: u64,
}

impl Requests {
    pub(crate) async fn count(client: &Client) -> anyhow::Result<Self> {
        // Not a list, but a GET of this very path.
        let request = Request::new("/metrics").list(&ListParams::default())?;
        let metrics = client.request_text(request).await.context("could not read the metrics of the API server")?;
        Ok(Self::read(&metrics))
    }

    fn read(metrics: &str) -> Self {
        let mut requests = Self::default();
        for (name, labels, value) in metrics.lines().filter_map(sample) {
            let (Some(resource), Some(verb)) = (label(labels, "resource"), label(labels, "verb")) else { continue };
            if name == "apiserver_request_total" && !resource.is_empty() {
                let subresource = label(labels, "subresource").filter(|part| !part.is_empty());
                let resource = subresource.map_or(resource.to_owned(), |part| format!("{resource}/{part}"));
                requests.add((resource, verb.to_owned()), value);
                if label(labels, "code") == Some("409") {
                    requests.conflicts += value;
                }
            }
        }
        requests
    }

    /// Counts more requests.
    pub(crate) fn add(&mut self, sort: Sort, count: u64) {
        *self.counts.entry(sort).or_default() += count;
    }

    /// What was counted since, or without what `other` counts.
    pub(crate) fn since(&self, other: &Self) -> Self {
        let left = self.counts.iter().map(|(sort, count)| (sort.clone(), count.saturating_sub(other.of(sort))));
        Self {
            counts: left.filter(|(_, count)| *count > 0).collect(),
            conflicts: self.conflicts.saturating_sub(other.conflicts),
        }
    }

    /// How many there were of these.
    pub(crate) fn of(&self, sort: &Sort) -> u64 {
        self.counts.get(sort).copied().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Sort, u64)> {
        self.counts.iter().map(|(sort, count)| (sort, *count))
    }

    /// Those that have changed something. Leases do not count: they are renewed whatever happens.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&Sort, u64)> {
        let is_write =
            |(resource, verb): &Sort| resource != "leases" && !["GET", "LIST", "WATCH"].contains(&verb.as_str());
        self.iter().filter(move |(sort, _)| is_write(sort))
    }

    /// How many have changed something.
    pub(crate) fn writes(&self) -> u64 {
        self.written().map(|(_, count)| count).sum()
    }
}

/// The value of a label, if it is there.
pub(crate) fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.split(',').find_map(|label| label.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = r#"
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="g",resource="works",scope="resource",subresource="status",verb="PATCH",version="v1"} 7
apiserver_request_total{code="409",component="apiserver",dry_run="",group="g",resource="works",scope="resource",subresource="status",verb="PATCH",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="g",resource="works",scope="cluster",subresource="",verb="LIST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="c",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 5
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/metrics",verb="GET",version=""} 3
apiserver_current_inflight_requests{request_kind="mutating"} 0
"#;

    fn sort(resource: &str, verb: &str) -> Sort {
        (resource.to_owned(), verb.to_owned())
    }

    #[test]
    fn requests_are_counted_by_resource_and_verb_whatever_came_of_them() {
        let requests = Requests::read(METRICS);
        let expected = [(sort("leases", "PUT"), 5), (sort("works", "LIST"), 1), (sort("works/status", "PATCH"), 9)];
        assert_eq!(requests.counts, expected.into());
        assert_eq!((requests.conflicts, requests.writes()), (2, 9));
    }

    #[test]
    fn what_somebody_else_has_sent_can_be_taken_out() {
        let mut others = Requests { conflicts: 1, ..Requests::default() };
        others.add(sort("works/status", "PATCH"), 3);
        others.add(sort("works", "LIST"), 2);
        let left = Requests::read(METRICS).since(&others);
        assert_eq!(left.counts, [(sort("leases", "PUT"), 5), (sort("works/status", "PATCH"), 6)].into());
        assert_eq!(left.conflicts, 1);
    }
}
