//! Acting as somebody else, which takes the right to.
//!
//! There are two ways, as in Kubernetes: a right for certain requests as certain users (`impersonate:user-info` and `impersonate-on:user-info:get`,
//! for example), and the older one for all requests (`impersonate`). The first refusal is what is told.

use std::collections::BTreeMap;

use super::{
    ANONYMOUS, AUTHENTICATED, Attributes, MASTERS, Resource, Rules, UNAUTHENTICATED, is_subdomain, service_account,
};
use crate::{failure::Failure, user::User};

const AUTHENTICATION: &str = "authentication.k8s.io";
/// From how many groups or extras on it is asked first whether all are allowed.
const MANY: usize = 4;

/// Who is to be acted as; nobody if no header says so. Headers are pairs of a name, in any case, and a value.
pub fn impersonated<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    request: &Attributes<'_>,
    rules: &Rules,
) -> Result<Option<User>, Failure> {
    let Some(wanted) = wanted(headers)? else { return Ok(None) };
    let mut refusal = None;
    for way in Way::ALL.into_iter().filter(|way| way.is_for(&wanted, request.user)) {
        match way.check(&wanted, request, rules) {
            Ok(user) => return Ok(Some(user)),
            Err(failure) => refusal = refusal.or(Some(failure)),
        }
    }
    refusal.map_or(Ok(None), Err)
}

fn wanted<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Option<User>, Failure> {
    let mut user = User::default();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        match name.strip_prefix("impersonate-").unwrap_or_default() {
            "user" if user.name.is_empty() => value.clone_into(&mut user.name),
            "uid" if user.uid.is_empty() => value.clone_into(&mut user.uid),
            "group" => user.groups.push(value.to_owned()),
            other => {
                if let Some(key) = other.strip_prefix("extra-") {
                    user.extra.entry(unescaped(key)).or_default().push(value.to_owned());
                }
            }
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == User::default() {
        return Ok(None);
    }
    Err(Failure::bad_request(format!("requested {} without impersonating a user name", in_go(&user))))
}

/// A key with its percent signs resolved; as it is if they make no sense.
fn unescaped(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) else { return key.to_owned() };
        bytes.push(byte);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

/// The user in Go's own spelling, which is what the message has.
fn in_go(user: &User) -> String {
    let list = |list: &[String]| {
        let items: Vec<_> = list.iter().map(|item| format!("{item:?}")).collect();
        format!("[]string{{{}}}", items.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let entries: Vec<_> = user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    format!("&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.name, user.uid)
}

/// A way in which the right can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As the node that a service account's pod is on.
    AssociatedNode,
    /// As a node, for certain requests.
    ArbitraryNode,
    /// As a service account, for certain requests.
    ServiceAccount,
    /// As anybody else, for certain requests.
    UserInfo,
    /// As anybody, for all requests.
    Unconstrained,
}

impl Way {
    const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Unconstrained];

    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Unconstrained => "",
        }
    }

    fn is_for(self, wanted: &User, requestor: &User) -> bool {
        let is_bare = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node(&wanted.name);
        let account = service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let on = requestor.extra.get("authentication.kubernetes.io/node-name").map(Vec::as_slice);
                let on = if let Some([only]) = on { only } else { "" };
                is_bare && node == Some(on) && service_account(&requestor.name).is_some()
            }
            Self::ArbitraryNode => is_bare && node.is_some(),
            Self::ServiceAccount => is_bare && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Unconstrained => true,
        }
    }

    fn check(self, wanted: &User, request: &Attributes<'_>, rules: &Rules) -> Result<User, Failure> {
        let mut verb = "impersonate".to_owned();
        if self != Self::Unconstrained {
            verb = format!("impersonate:{}", self.name());
            let on = format!("impersonate-on:{}:{}", self.name(), request.verb);
            rules.check(&Attributes { verb: &on, ..*request })?;
        }
        let check = Check { way: self, verb: &verb, requestor: request.user, rules };
        check.name(&wanted.name)?;
        check.uid(&wanted.uid)?;
        check.groups(&wanted.groups)?;
        check.extra(&wanted.extra)?;
        Ok(self.completed(wanted))
    }

    /// The user with the groups that nobody has to ask for.
    fn completed(self, wanted: &User) -> User {
        let mut user = wanted.clone();
        if self != Self::Unconstrained && node(&user.name).is_some() {
            user.groups = vec!["system:nodes".to_owned()];
        } else if let (Some((namespace, _)), true) = (service_account(&wanted.name), user.groups.is_empty()) {
            user.groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        }
        let has = |group: &str| user.groups.iter().any(|own| own == group);
        let missing = match user.name.as_str() {
            ANONYMOUS => Some(UNAUTHENTICATED).filter(|group| !has(group)),
            _ => Some(AUTHENTICATED).filter(|group| !has(group) && !has(UNAUTHENTICATED)),
        };
        user.groups.extend(missing.map(ToOwned::to_owned));
        user
    }
}

/// The checks of one way.
struct Check<'a> {
    way: Way,
    verb: &'a str,
    requestor: &'a User,
    rules: &'a Rules,
}

impl Check<'_> {
    fn is_constrained(&self) -> bool {
        self.way != Way::Unconstrained
    }

    fn attributes<'b>(&'b self, target: Resource<'b>) -> Attributes<'b> {
        Attributes::resource(self.requestor, self.verb, Resource { version: "v1", ..target })
    }

    fn check(&self, target: Resource<'_>) -> Result<(), Failure> {
        self.rules.check(&self.attributes(target))
    }

    /// The group of users and groups: the core group has neither, but that is how it began.
    fn group(&self) -> &'static str {
        if self.is_constrained() { AUTHENTICATION } else { "" }
    }

    fn name(&self, user: &str) -> Result<(), Failure> {
        let group = self.group();
        let mut target = Resource { group, resource: "users", name: user, ..Resource::default() };
        if let Some(name) = node(user).filter(|_| self.is_constrained()) {
            let name = if self.way == Way::AssociatedNode { "*" } else { name };
            target = Resource { group, resource: "nodes", name, ..Resource::default() };
        }
        if let Some((namespace, name)) = service_account(user) {
            target = Resource { group, resource: "serviceaccounts", namespace, name, ..Resource::default() };
        }
        self.check(target)
    }

    fn uid(&self, uid: &str) -> Result<(), Failure> {
        let target = Resource { group: AUTHENTICATION, resource: "uids", name: uid, ..Resource::default() };
        if uid.is_empty() { Ok(()) } else { self.check(target) }
    }

    fn groups(&self, groups: &[String]) -> Result<(), Failure> {
        let named = |name| Resource { group: self.group(), resource: "groups", name, ..Resource::default() };
        if self.is_constrained() {
            let forbidden = |name, why| Err(self.attributes(named(name)).forbidden(why));
            if groups.iter().any(String::is_empty) {
                return forbidden("", "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == MASTERS) {
                return forbidden(MASTERS, "impersonating the system:masters group is not allowed");
            }
            if groups.len() >= MANY && self.check(named("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.check(named(group)))
    }

    fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Failure> {
        let of = |subresource, name| Resource {
            group: AUTHENTICATION,
            resource: "userextras",
            subresource,
            name,
            ..Resource::default()
        };
        if self.is_constrained() {
            if let Some(why) = extra.iter().find_map(|(key, values)| flaw(key, values)) {
                return Err(self.attributes(of("", "")).forbidden(why));
            }
            let count: usize = extra.values().map(Vec::len).sum();
            if count >= MANY && self.check(of("*", "*")).is_ok() {
                return Ok(());
            }
        }
        let pairs = extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        pairs.into_iter().try_for_each(|(key, value)| self.check(of(key, value)))
    }
}

fn flaw(key: &str, values: &[String]) -> Option<&'static str> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed");
    }
    values.iter().any(String::is_empty).then_some("impersonating the empty string value in extra is not allowed")
}

/// The name, if it is the user name of a node.
fn node(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| is_subdomain(name))
}
