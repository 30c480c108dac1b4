//! One rule of a role: what it allows, what it covers of another, and how it is spelled to users.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Attributes, Resource, Target};

/// What may be done to what.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// The verbs, or `*`.
    #[serde(deserialize_with = "list")]
    pub verbs: Vec<String>,
    /// The API groups, or `*`.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// The resources, also as `pods/log`, `*/log` and `*`.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The objects; all if none is named.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Addresses of other things; the last character may be a star.
    #[serde(rename = "nonResourceURLs", deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

/// A list that may also be null.
fn list<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Option::<Vec<String>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Rule {
    /// The rules of a role. What can not be read allows nothing.
    pub(super) fn all_of(role: &Value) -> Vec<Self> {
        let rules = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        rules.iter().filter_map(|rule| Self::deserialize(rule).ok()).collect()
    }

    /// Whether it allows this.
    pub(super) fn allows(&self, attributes: &Attributes<'_>) -> bool {
        has_or_all(&self.verbs, attributes.verb)
            && match &attributes.target {
                Target::Resource(target) => self.allows_resource(target),
                Target::Path(path) => self.non_resource_urls.iter().any(|url| url == "*" || url_covers(url, path)),
            }
    }

    fn allows_resource(&self, target: &Resource<'_>) -> bool {
        has_or_all(&self.api_groups, target.group)
            && self.resources.iter().any(|resource| resource_matches(resource, target))
            && (self.resource_names.is_empty() || has(&self.resource_names, target.name))
    }

    /// Rules that each say one thing, and together the same.
    pub(super) fn single_rules(&self) -> Vec<Self> {
        let mut single = Vec::new();
        let one = |text: &String| vec![text.clone()];
        let names: Vec<_> = if self.resource_names.is_empty() {
            vec![Vec::new()]
        } else {
            self.resource_names.iter().map(one).collect()
        };
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    single.extend(names.iter().map(|names| Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        resource_names: names.clone(),
                        non_resource_urls: Vec::new(),
                    }));
                }
            }
        }
        for url in &self.non_resource_urls {
            let rule = |verb| Self { verbs: one(verb), non_resource_urls: one(url), ..Self::default() };
            single.extend(self.verbs.iter().map(rule));
        }
        single
    }

    /// Whether all that a single rule allows is allowed by this one.
    pub(super) fn covers(&self, single: &Self) -> bool {
        single.verbs.iter().all(|verb| has_or_all(&self.verbs, verb))
            && single.api_groups.iter().all(|group| has_or_all(&self.api_groups, group))
            && single.resources.iter().all(|resource| covers_resource(&self.resources, resource))
            && (self.resource_names.is_empty()
                || (!single.resource_names.is_empty()
                    && single.resource_names.iter().all(|name| has(&self.resource_names, name))))
            && single.non_resource_urls.iter().all(|url| self.non_resource_urls.iter().any(|own| url_covers(own, url)))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let said = parts.iter().filter(|(_, list)| !list.is_empty());
        let said: Vec<_> = said.map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
        write!(f, "{{{}}}", said.join(", "))
    }
}

/// A list of texts, as Go prints it.
pub(super) fn quoted(list: &[String]) -> String {
    let items: Vec<_> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(" "))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == wanted)
}

fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

fn resource_matches(rule: &str, target: &Resource<'_>) -> bool {
    if rule == "*" {
        return true;
    }
    match target.subresource {
        "" => rule == target.resource,
        subresource => {
            // What comes first may itself have a slash in it, and so may the rest.
            let Some(resource) = rule.strip_suffix(subresource).and_then(|rest| rest.strip_suffix('/')) else {
                return false;
            };
            resource == "*" || resource == target.resource
        }
    }
}

fn covers_resource(list: &[String], resource: &str) -> bool {
    has_or_all(list, resource)
        || resource.split_once('/').is_some_and(|(_, subresource)| has(list, &format!("*/{subresource}")))
}

fn url_covers(own: &str, url: &str) -> bool {
    own == url || (own.ends_with('*') && url.starts_with(own.trim_end_matches('*')))
}
