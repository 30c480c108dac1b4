//! How one manifest is applied and what is reported of it, from all the configurations of its work that are about it.

use drover_api::{
    names::WORK_FIELD_MANAGER,
    work::{
        ConditionRule, FeedbackRule, IgnoreField, ManifestConfig, ResourceIdentifier, UpdateStrategy,
        UpdateStrategyType,
    },
};

use super::manifest::Target;

/// How a manifest is applied and what is reported of its object.
#[derive(Clone, Debug, PartialEq)]
pub struct Options<'a> {
    /// How the object is brought to what the manifest says.
    pub strategy: Strategy<'a>,
    /// What of the object's state is reported.
    pub feedback: &'a [FeedbackRule],
    /// The conditions that are worked out from the object's state.
    pub conditions: &'a [ConditionRule],
}

/// How an object is brought to what its manifest says.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy<'a> {
    /// What differs is overwritten.
    Update,
    /// The object is created, and never changed afterwards.
    CreateOnly,
    /// Nothing is written.
    ReadOnly,
    /// The API server merges.
    Apply(Apply<'a>),
}

/// How the API server merges.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply<'a> {
    /// Whether fields are taken from their owners where there is a conflict.
    pub force: bool,
    /// The name under which fields are owned.
    pub field_manager: &'a str,
    /// Fields of the manifest that are left out.
    pub ignored: &'a [IgnoreField],
}

/// What the configurations of a work say for one manifest. The first that says something wins, field by field. How
/// often to look is of no matter: what was applied is watched.
#[must_use]
pub fn options<'a>(configs: &'a [ManifestConfig], target: &Target) -> Options<'a> {
    let matching = || configs.iter().filter(|config| is_about(&config.resource_identifier, target));
    let first = |rules: fn(&ManifestConfig) -> bool| matching().find(|config| rules(config));
    Options {
        strategy: matching().find_map(|config| config.update_strategy.as_ref()).map_or(Strategy::Update, strategy),
        feedback: first(|config| !config.feedback_rules.is_empty()).map_or(&[], |config| &config.feedback_rules),
        conditions: first(|config| !config.condition_rules.is_empty()).map_or(&[], |config| &config.condition_rules),
    }
}

fn strategy(strategy: &UpdateStrategy) -> Strategy<'_> {
    match strategy.kind {
        UpdateStrategyType::Update => Strategy::Update,
        UpdateStrategyType::CreateOnly => Strategy::CreateOnly,
        UpdateStrategyType::ReadOnly => Strategy::ReadOnly,
        UpdateStrategyType::ServerSideApply => {
            let config = strategy.server_side_apply.as_ref();
            Strategy::Apply(Apply {
                force: config.and_then(|config| config.force).unwrap_or(false),
                field_manager: config
                    .and_then(|config| config.field_manager.as_deref())
                    .filter(|manager| !manager.is_empty())
                    .unwrap_or(WORK_FIELD_MANAGER),
                ignored: config.map_or(&[], |config| &config.ignore_fields),
            })
        }
    }
}

fn is_about(identifier: &ResourceIdentifier, target: &Target) -> bool {
    let manifest = &target.manifest;
    identifier.group.as_deref().unwrap_or_default() == manifest.group
        && identifier.resource == target.resource
        && matches(&identifier.name, &manifest.name)
        && matches(identifier.namespace.as_deref().unwrap_or_default(), &manifest.namespace)
}

/// Whether a text is as a pattern has it, in which `*` stands for any text, even none.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests;
