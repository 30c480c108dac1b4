//! ClusterRoles that are made of others.

use serde_json::Value;

use super::Rule;
use crate::selector::Labels;

/// The rules of a ClusterRole that gathers others; nothing if it gathers none. The others are all ClusterRoles there are.
#[must_use]
pub fn aggregated<'a>(role: &Value, others: impl IntoIterator<Item = &'a Value>) -> Option<Vec<Rule>> {
    let selectors = role.get("aggregationRule").filter(|rule| !rule.is_null())?["clusterRoleSelectors"].as_array();
    let own_name = &role["metadata"]["name"];
    let others: Vec<_> = others.into_iter().filter(|other| other["metadata"]["name"] != *own_name).collect();
    let mut rules = Vec::new();
    for selector in selectors.into_iter().flatten() {
        // What can not be read selects nothing.
        let selector = Labels::read(Some(selector)).unwrap_or(Labels::Nothing);
        let mut selected: Vec<_> = others.iter().filter(|other| selector.matches(other)).collect();
        selected.sort_by_key(|other| other["metadata"]["name"].as_str().unwrap_or_default());
        for rule in selected.into_iter().flat_map(|role| Rule::all_of(role)) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    Some(rules)
}

/// Whether a ClusterRole gathers others, which takes all rights there are to say.
pub(super) fn gathers(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|selectors| !selectors.is_empty())
}
