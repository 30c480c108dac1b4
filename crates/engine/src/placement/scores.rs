//! Scores of one cluster that somebody outside computed, as long as they count.

use drover_api::cluster::{AddOnPlacementScore, AddOnPlacementScoreStatus, Score};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

/// The AddOnPlacementScores in one cluster's namespace.
#[derive(Clone, Debug, Default)]
pub struct Scores<'a>(Vec<&'a AddOnPlacementScore>);

impl<'a> FromIterator<&'a AddOnPlacementScore> for Scores<'a> {
    fn from_iter<T: IntoIterator<Item = &'a AddOnPlacementScore>>(scores: T) -> Self {
        Self(scores.into_iter().collect())
    }
}

impl<'a> Scores<'a> {
    /// The scores of one object; none where there is no such object, or its time is over.
    pub(super) fn of(&self, resource: &str, now: Timestamp) -> &'a [Score] {
        let found = self.0.iter().find(|score| score.name_any() == resource);
        found.map_or(&[], |score| valid(score, now))
    }

    /// All scores that count, by the name of their object.
    pub(super) fn valid(&self, now: Timestamp) -> impl Iterator<Item = (&'a str, &'a [Score])> {
        self.0.iter().map(move |score| (score.metadata.name.as_deref().unwrap_or_default(), valid(score, now)))
    }

    /// When the first of those objects that are `read` stops to count.
    pub(super) fn first_expiry(&self, now: Timestamp, read: impl Fn(&str) -> bool) -> Option<Timestamp> {
        let read = self.0.iter().filter(|score| read(score.metadata.name.as_deref().unwrap_or_default()));
        read.filter_map(|score| until(score.status.as_ref()?)).filter(|until| *until > now).min()
    }
}

fn valid(score: &AddOnPlacementScore, now: Timestamp) -> &[Score] {
    match &score.status {
        Some(status) if until(status).is_none_or(|until| now < until) => &status.scores,
        _ => &[],
    }
}

fn until(status: &AddOnPlacementScoreStatus) -> Option<Timestamp> {
    status.valid_until.as_ref().map(|time| time.0)
}
