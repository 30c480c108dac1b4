//! How the objects of a work are applied and what is reported of them: what the template says, and what proves a set.
//!
//! Of several entries for one object, an agent takes each field from the first that has it (and how often to look, from the last). So what is
//! reported of a workload stands in an entry of its own in front of all others, with what those say about it.

use drover_api::work::{
    FeedbackRule, FeedbackType, ManifestConfig, ResourceIdentifier, UpdateStrategy, UpdateStrategyType,
};

use super::{
    home::Home,
    manifest::{Object, is_like},
    piece::Piece,
    vitals::{self, Workload},
};

/// The entries of a work with these manifests.
pub(super) fn configs(template: &[ManifestConfig], pieces: &[Piece], home: Option<Home<'_>>) -> Vec<ManifestConfig> {
    let own = pieces.iter().filter_map(|piece| Some(of_workload(template, piece, piece.workload.as_ref()?)));
    // What is said of workloads is in their own entries already.
    let others: Vec<_> = pieces.iter().filter(|piece| piece.workload.is_none()).collect();
    let is_needed = |config: &&ManifestConfig| others.iter().any(|piece| is_for(config, piece));
    let said = template.iter().filter(is_needed);
    own.chain(said.map(|config| home.map_or_else(|| config.clone(), |home| home.config(config)))).collect()
}

/// Whether the object is kept at what its manifest says, as the template wants it.
pub(super) fn is_kept_up(template: &[ManifestConfig], was: &Object, object: &Object) -> bool {
    let mut matching = template.iter().filter(|config| matches(config, was) || matches(config, object));
    let strategy = matching.find_map(|config| config.update_strategy.as_ref());
    !matches!(
        strategy,
        Some(UpdateStrategy { kind: UpdateStrategyType::CreateOnly | UpdateStrategyType::ReadOnly, .. })
    )
}

fn of_workload(template: &[ManifestConfig], piece: &Piece, workload: &Workload) -> ManifestConfig {
    let matching: Vec<_> = template.iter().filter(|config| is_for(config, piece)).collect();
    let rules = matching.iter().map(|config| &config.feedback_rules).find(|rules| !rules.is_empty());
    let conditions = matching.iter().map(|config| &config.condition_rules).find(|rules| !rules.is_empty());
    ManifestConfig {
        resource_identifier: piece.object.identifier(),
        feedback_rules: with_ours(rules.cloned().unwrap_or_default(), workload),
        feedback_scrape_type: matching.iter().rev().find_map(|config| config.feedback_scrape_type),
        update_strategy: matching.iter().find_map(|config| config.update_strategy.clone()),
        condition_rules: conditions.cloned().unwrap_or_default(),
    }
}

/// The template's rules, and what proves a set.
fn with_ours(mut rules: Vec<FeedbackRule>, workload: &Workload) -> Vec<FeedbackRule> {
    let paths = vitals::paths(workload.kind);
    let mut theirs = rules.iter_mut().filter(|rule| rule.kind == FeedbackType::JsonPaths);
    match theirs.next() {
        Some(rule) => {
            // No two values may have one name, and ours have to be ours.
            rule.json_paths.retain(|path| !paths.iter().any(|own| own.name == path.name));
            rule.json_paths.extend(paths);
        }
        None => rules.push(FeedbackRule { kind: FeedbackType::JsonPaths, json_paths: paths }),
    }
    rules
}

/// Whether the template may have meant this manifest, under the name that it has there or on the cluster.
fn is_for(config: &ManifestConfig, piece: &Piece) -> bool {
    matches(config, &piece.was) || matches(config, &piece.object)
}

fn matches(config: &ManifestConfig, object: &Object) -> bool {
    let ResourceIdentifier { group, resource, name, namespace } = &config.resource_identifier;
    group.as_deref().unwrap_or_default() == object.group
        && object.may_be(resource)
        && is_like(&object.name, name)
        && is_like(&object.namespace, namespace.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests;
