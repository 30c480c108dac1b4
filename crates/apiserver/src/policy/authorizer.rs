//! Asking in an expression what somebody may do.

use std::{borrow::Cow, rc::Rc};

use crate::{
    access::{Attributes, Decision, Resource, Rules},
    cel::{Budget, Foreign, Result, Value, error, no_such_overload},
    user::User,
};

/// What one check costs.
const COST: u64 = 350_000;

/// A question that is being put together.
#[derive(Clone, Debug)]
pub(super) struct Check<'a> {
    rules: &'a Rules,
    user: Cow<'a, User>,
    /// What the request is about, which can be asked for at once.
    request: Resource<'a>,
    about: About<'a>,
}

#[derive(Clone, Debug)]
enum About<'a> {
    Nothing,
    Path(Cow<'a, str>),
    Group(Cow<'a, str>),
    Resource(Owned<'a>),
}

/// What is asked about, of texts that may be computed.
#[derive(Clone, Debug, Default)]
struct Owned<'a> {
    group: Cow<'a, str>,
    version: Cow<'a, str>,
    resource: Cow<'a, str>,
    subresource: Cow<'a, str>,
    namespace: Cow<'a, str>,
    name: Cow<'a, str>,
}

impl<'a> Check<'a> {
    /// Asks what this user may do.
    pub(super) fn new(rules: &'a Rules, user: &'a User, request: Resource<'a>) -> Self {
        Self { rules, user: Cow::Borrowed(user), request, about: About::Nothing }
    }

    fn about(&self, about: About<'a>) -> Value<'a> {
        Value::Foreign(Rc::new(Self { about, ..self.clone() }))
    }

    /// The question about what the request is about.
    fn of_request(&self) -> Result<Value<'a>> {
        let Resource { group, version, resource, subresource, namespace, name } = self.request;
        let owned = Owned {
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: namespace.into(),
            name: name.into(),
        };
        match self.about {
            About::Nothing => Ok(self.about(About::Resource(owned))),
            _ => error("no such key: requestResource"),
        }
    }

    fn of_service_account(&self, namespace: &str, name: &str) -> Value<'a> {
        let user = User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
            ..User::default()
        };
        Value::Foreign(Rc::new(Self { user: Cow::Owned(user), ..self.clone() }))
    }

    fn check(&self, verb: &str) -> Result<Value<'a>> {
        let attributes = match &self.about {
            About::Path(path) => Attributes::path(&self.user, verb, path),
            About::Resource(about) => Attributes::resource(
                &self.user,
                verb,
                Resource {
                    group: &about.group,
                    version: &about.version,
                    resource: &about.resource,
                    subresource: &about.subresource,
                    namespace: &about.namespace,
                    name: &about.name,
                },
            ),
            About::Nothing | About::Group(_) => return no_such_overload(),
        };
        Ok(Value::Foreign(Rc::new(self.rules.allows(&attributes))))
    }
}

impl<'a> Foreign<'a> for Check<'a> {
    fn type_name(&self) -> &'static str {
        "kubernetes.authorization.Authorizer"
    }

    fn field(&self, name: &str) -> Option<Result<Value<'a>>> {
        (name == "requestResource").then(|| self.of_request())
    }

    fn call(&self, name: &str, args: &[Value<'a>], budget: &Budget) -> Result<Value<'a>> {
        ask(name, self, args, budget)
    }
}

impl<'a> Foreign<'a> for Decision {
    fn type_name(&self) -> &'static str {
        "kubernetes.authorization.Decision"
    }

    fn field(&self, _: &str) -> Option<Result<Value<'a>>> {
        None
    }

    fn call(&self, name: &str, args: &[Value<'a>], _: &Budget) -> Result<Value<'a>> {
        match (name, args) {
            ("allowed", []) => Ok(Value::Bool(self.allowed)),
            // RBAC always has an answer.
            ("errored", []) => Ok(Value::Bool(false)),
            ("error", []) => Ok(Value::text("")),
            ("reason", []) => Ok(Value::text(self.reason.clone())),
            _ => no_such_overload(),
        }
    }
}

fn ask<'a>(name: &str, check: &Check<'a>, args: &[Value<'a>], budget: &Budget) -> Result<Value<'a>> {
    let texts: Vec<Cow<'a, str>> = args.iter().filter_map(as_text).collect();
    match (name, &check.about, texts.as_slice()) {
        ("check", _, [verb]) => {
            budget.spend(COST)?;
            check.check(verb)
        }
        ("group", About::Nothing, [group]) => Ok(check.about(About::Group(group.clone()))),
        ("path", About::Nothing, [path]) => Ok(check.about(About::Path(path.clone()))),
        ("serviceAccount", About::Nothing, [namespace, name]) => Ok(check.of_service_account(namespace, name)),
        ("resource", About::Group(group), [resource]) => {
            let (group, resource) = (group.clone(), resource.clone());
            Ok(check.about(About::Resource(Owned { group, version: "*".into(), resource, ..Owned::default() })))
        }
        (_, About::Resource(about), [text]) => {
            let mut about = about.clone();
            match name {
                "subresource" => about.subresource.clone_from(text),
                "namespace" => about.namespace.clone_from(text),
                "name" => about.name.clone_from(text),
                // RBAC looks at no selectors.
                "fieldSelector" | "labelSelector" => {}
                _ => return no_such_overload(),
            }
            Ok(check.about(About::Resource(about)))
        }
        _ => no_such_overload(),
    }
}

fn as_text<'a>(value: &Value<'a>) -> Option<Cow<'a, str>> {
    match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
