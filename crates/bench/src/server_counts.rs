//! The requests that an API server has counted.

use std::collections::BTreeMap;

use anyhow::Context;
use kube::{
    Client,
    api::{ListParams, Request},
};

use crate::hub_process::sample;

/// How many requests there were, by resource and verb.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(BTreeMap<(String, String), u64>);

impl Requests {
    pub(crate) async fn count(client: &Client) -> anyhow::Result<Self> {
        // Not a list, but a GET of this very path.
        let request = Request::new("/metrics").list(&ListParams::default())?;
        let metrics = client.request_text(request).await.context("could not read the metrics of the API server")?;
        let mut counts = BTreeMap::new();
        for (name, labels, value) in metrics.lines().filter_map(sample) {
            let (Some(resource), Some(verb)) = (label(labels, "resource"), label(labels, "verb")) else { continue };
            if name == "apiserver_request_total" && !resource.is_empty() {
                let subresource = label(labels, "subresource").filter(|part| !part.is_empty());
                let resource = subresource.map_or(resource.to_owned(), |part| format!("{resource}/{part}"));
                *counts.entry((resource, verb.to_owned())).or_default() += value;
            }
        }
        Ok(Self(counts))
    }

    /// What was counted since.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let count = |key: &(String, String)| before.0.get(key).copied().unwrap_or_default();
        let since = self.0.iter().map(|(key, value)| (key.clone(), value - count(key).min(*value)));
        Self(since.filter(|(_, value)| *value > 0).collect())
    }

    /// How many there were of these.
    pub(crate) fn of(&self, key: &(String, String)) -> u64 {
        self.0.get(key).copied().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&(String, String), u64)> {
        self.0.iter().map(|(key, count)| (key, *count))
    }
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.split(',').find_map(|label| label.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
}
