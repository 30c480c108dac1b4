//! Which requests a policy, or a binding of one, is about.

use serde_json::Value;

use super::{Operation, Request};
use crate::{kind::Scope, selector::Labels};

/// Which requests are meant.
#[derive(Clone, Debug, Default)]
pub(super) struct Matches {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    namespaces: Labels,
    objects: Labels,
    /// Whether a rule for one version of a kind is one for all.
    is_exact: bool,
}

#[derive(Clone, Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    scope: Option<Scope>,
}

impl Matches {
    /// Reads `matchConstraints` or `matchResources`. Where nothing is said, everything is meant.
    pub(super) fn read(matches: &Value) -> Self {
        let rules = |field: &str| matches[field].as_array().into_iter().flatten().map(Rule::read).collect();
        Self {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            namespaces: selector(&matches["namespaceSelector"]),
            objects: selector(&matches["objectSelector"]),
            is_exact: matches["matchPolicy"] == "Exact",
        }
    }

    /// The version in which the request is meant, if it is.
    pub(super) fn version<'a>(&self, request: &Request<'a>) -> Option<&'a str> {
        if !self.selects_namespace(request) || !self.selects_object(request) {
            return None;
        }
        if self.first_version(&self.excluded, request).is_some() {
            return None;
        }
        if self.rules.is_empty() { Some(request.version) } else { self.first_version(&self.rules, request) }
    }

    fn first_version<'a>(&self, rules: &[Rule], request: &Request<'a>) -> Option<&'a str> {
        let matches = |version: &str| rules.iter().any(|rule| rule.matches(request, version));
        if matches(request.version) {
            return Some(request.version);
        }
        if self.is_exact {
            return None;
        }
        let served = request.kind.versions.iter().filter(|version| version.is_served);
        served.map(|version| version.name.as_str()).find(|version| *version != request.version && matches(version))
    }

    fn selects_namespace(&self, request: &Request<'_>) -> bool {
        if self.namespaces.is_everything() || (request.namespace().is_empty() && !request.is_of_namespaces()) {
            return true;
        }
        let is_written = matches!(request.operation, Operation::Create | Operation::Update);
        let is_itself = request.is_of_namespaces() && request.subresource().is_empty() && is_written;
        let namespace = if is_itself { request.object } else { request.namespace_object.or(request.old) };
        namespace.is_some_and(|namespace| self.namespaces.matches(namespace))
    }

    fn selects_object(&self, request: &Request<'_>) -> bool {
        let is_selected = |object: &Value| self.objects.matches(object);
        self.objects.is_everything() || request.object.is_some_and(is_selected) || request.old.is_some_and(is_selected)
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let texts = |field: &str| {
            let items = rule[field].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            scope: match rule["scope"].as_str() {
                Some("Cluster") => Some(Scope::Cluster),
                Some("Namespaced") => Some(Scope::Namespaced),
                _ => None,
            },
        }
    }

    fn matches(&self, request: &Request<'_>, version: &str) -> bool {
        self.scope.is_none_or(|scope| scope == request.kind.scope)
            && has_or_all(&self.operations, request.operation.name())
            && has_or_all(&self.groups, &request.kind.group)
            && has_or_all(&self.versions, version)
            && self.resources.iter().any(|resource| matches_resource(resource, request))
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name()))
    }
}

/// Where nothing is said, everything is selected; by what can not be read, nothing is.
fn selector(said: &Value) -> Labels {
    if said.is_null() { Labels::default() } else { Labels::read(Some(said)).unwrap_or(Labels::Nothing) }
}

fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

fn matches_resource(rule: &str, request: &Request<'_>) -> bool {
    let (resource, subresource) = rule.split_once('/').unwrap_or((rule, ""));
    (resource == "*" || resource == request.kind.plural) && (subresource == "*" || subresource == request.subresource())
}
