//! All roles and bindings, kept so that a check looks at nothing but the bindings of who asks.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use super::{Attributes, Decision, MASTERS, RBAC, Rule, Target};
use crate::user::User;

/// All roles and bindings.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The rules of roles, by namespace and name. ClusterRoles are in the empty namespace.
    roles: HashMap<String, HashMap<String, Arc<[Rule]>>>,
    /// The bindings, by namespace. ClusterRoleBindings are in the empty one.
    bindings: HashMap<String, Bindings>,
}

/// What somebody may do, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The rules.
    pub rules: Vec<Rule>,
    /// What could not be looked at: bindings of roles that there are not.
    pub errors: Vec<String>,
}

/// The bindings of one namespace.
#[derive(Clone, Debug, Default)]
struct Bindings {
    all: BTreeMap<Arc<str>, Binding>,
    /// The names of the bindings that a user is named in, service accounts among them.
    of_users: HashMap<String, BTreeSet<Arc<str>>>,
    of_groups: HashMap<String, BTreeSet<Arc<str>>>,
}

#[derive(Clone, Debug)]
struct Binding {
    role_kind: String,
    role: String,
    subjects: Vec<Subject>,
}

/// Somebody who is named in a binding.
#[derive(Clone, Debug)]
struct Subject {
    who: Who,
    /// How reasons spell it.
    words: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    User(String),
    Group(String),
}

/// One of the names that a user goes by.
#[derive(Clone, Copy, Debug)]
enum Key<'a> {
    User(&'a str),
    Group(&'a str),
}

/// A binding that applies to a user, and the rules that it gives.
struct Applying<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    binding: &'a Binding,
    subject: &'a Subject,
}

impl Rules {
    /// Takes in a role or a binding as it now is. Other kinds are none of its business.
    pub fn apply(&mut self, kind: &str, object: &Value) {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        match kind {
            "ClusterRole" | "Role" => {
                let roles = self.roles.entry(namespace.to_owned()).or_default();
                roles.insert(name.to_owned(), Rule::all_of(object).into());
            }
            "ClusterRoleBinding" | "RoleBinding" => {
                let bindings = self.bindings.entry(namespace.to_owned()).or_default();
                bindings.remove(name);
                bindings.insert(name.into(), Binding::read(object, namespace));
            }
            _ => {}
        }
    }

    /// Forgets a role or a binding.
    pub fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        match kind {
            "ClusterRole" | "Role" => {
                let Some(roles) = self.roles.get_mut(namespace) else { return };
                roles.remove(name);
                if roles.is_empty() {
                    self.roles.remove(namespace);
                }
            }
            "ClusterRoleBinding" | "RoleBinding" => {
                let Some(bindings) = self.bindings.get_mut(namespace) else { return };
                bindings.remove(name);
                if bindings.all.is_empty() {
                    self.bindings.remove(namespace);
                }
            }
            _ => {}
        }
    }

    /// Whether somebody may do something.
    #[must_use]
    pub fn allows(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.groups.iter().any(|group| group == MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        let namespace = match &attributes.target {
            Target::Resource(target) => target.namespace,
            Target::Path(_) => "",
        };
        let mut errors = Vec::new();
        for applying in self.applying_to(attributes.user, namespace) {
            match self.rules_of(&applying.binding.role_kind, &applying.binding.role, applying.namespace) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Decision { allowed: true, reason: format!("RBAC: allowed by {applying}") };
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        let reason = if errors.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(&errors)) };
        Decision { allowed: false, reason }
    }

    /// Whether somebody may do something, or the refusal.
    pub fn check(&self, attributes: &Attributes<'_>) -> Result<(), crate::failure::Failure> {
        let decision = self.allows(attributes);
        if decision.allowed { Ok(()) } else { Err(attributes.forbidden(&decision.reason)) }
    }

    /// What somebody may do in a namespace, and everywhere.
    #[must_use]
    pub fn rules_for(&self, user: &User, namespace: &str) -> Held {
        let mut held = Held::default();
        for applying in self.applying_to(user, namespace) {
            match self.rules_of(&applying.binding.role_kind, &applying.binding.role, applying.namespace) {
                Ok(rules) => held.rules.extend(rules.iter().cloned()),
                Err(error) => held.errors.push(error),
            }
        }
        held
    }

    /// The rules of a role that a binding in this namespace names.
    pub(super) fn rules_of(&self, kind: &str, name: &str, namespace: &str) -> Result<&[Rule], String> {
        let (namespace, word) = match kind {
            "ClusterRole" => ("", "clusterrole"),
            "Role" => (namespace, "role"),
            _ => return Err(format!("unsupported role reference kind: {kind:?}")),
        };
        // A Role is never in the empty namespace, where the ClusterRoles are.
        let roles = if kind == "Role" && namespace.is_empty() { None } else { self.roles.get(namespace) };
        let rules = roles.and_then(|roles| roles.get(name));
        rules.map(AsRef::as_ref).ok_or_else(|| format!("{word}.{RBAC} {name:?} not found"))
    }

    fn applying_to<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = Applying<'a>> {
        let namespaces = std::iter::once("").chain((!namespace.is_empty()).then_some(namespace));
        namespaces.flat_map(move |namespace| {
            let bindings = self.bindings.get(namespace);
            bindings.into_iter().flat_map(move |bindings| bindings.applying_to(user, namespace))
        })
    }
}

impl Bindings {
    fn insert(&mut self, name: Arc<str>, binding: Binding) {
        for subject in &binding.subjects {
            let (index, who) = match &subject.who {
                Who::User(who) => (&mut self.of_users, who),
                Who::Group(who) => (&mut self.of_groups, who),
            };
            index.entry(who.clone()).or_default().insert(name.clone());
        }
        self.all.insert(name, binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.all.remove(name) else { return };
        for subject in &binding.subjects {
            let (index, who) = match &subject.who {
                Who::User(who) => (&mut self.of_users, who),
                Who::Group(who) => (&mut self.of_groups, who),
            };
            let Some(names) = index.get_mut(who) else { continue };
            names.remove(name);
            if names.is_empty() {
                index.remove(who);
            }
        }
    }

    fn applying_to<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = Applying<'a>> {
        let groups = user.groups.iter().enumerate();
        // A group that is named twice counts once.
        let groups = groups.filter(|(at, group)| !user.groups[..*at].contains(group));
        let keys = std::iter::once(Key::User(&user.name)).chain(groups.map(|(_, group)| Key::Group(group)));
        keys.flat_map(move |key| {
            let names = match key {
                Key::User(name) => self.of_users.get(name),
                Key::Group(name) => self.of_groups.get(name),
            };
            names.into_iter().flatten().filter_map(move |name| {
                let binding = self.all.get(name)?;
                let subject = binding.subjects.iter().find(|subject| subject.is_one_of(user))?;
                // A binding that several of the user's names are in is taken by the first that it names.
                if !subject.is(key) {
                    return None;
                }
                let kind = if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" };
                Some(Applying { kind, namespace, name, binding, subject })
            })
        })
    }
}

impl Binding {
    fn read(object: &Value, namespace: &str) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let subjects = object["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            role_kind: text(&object["roleRef"]["kind"]),
            role: text(&object["roleRef"]["name"]),
            subjects: subjects.iter().filter_map(|subject| Subject::read(subject, namespace)).collect(),
        }
    }
}

impl Subject {
    fn read(subject: &Value, binding_namespace: &str) -> Option<Self> {
        let name = subject["name"].as_str()?.to_owned();
        match subject["kind"].as_str()? {
            "User" => Some(Self { words: format!("User {name:?}"), who: Who::User(name) }),
            "Group" => Some(Self { words: format!("Group {name:?}"), who: Who::Group(name) }),
            "ServiceAccount" => {
                let own = subject["namespace"].as_str().filter(|namespace| !namespace.is_empty());
                let namespace = own.unwrap_or(binding_namespace);
                if namespace.is_empty() {
                    return None;
                }
                let words = format!("ServiceAccount {:?}", format!("{name}/{namespace}"));
                Some(Self { words, who: Who::User(format!("system:serviceaccount:{namespace}:{name}")) })
            }
            _ => None,
        }
    }

    fn is(&self, key: Key<'_>) -> bool {
        match (&self.who, key) {
            (Who::User(who), Key::User(key)) | (Who::Group(who), Key::Group(key)) => who == key,
            _ => false,
        }
    }

    fn is_one_of(&self, user: &User) -> bool {
        match &self.who {
            Who::User(who) => *who == user.name,
            Who::Group(who) => user.groups.contains(who),
        }
    }
}

impl fmt::Display for Applying<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, binding, subject } = self;
        let name = if namespace.is_empty() { (*name).to_owned() } else { format!("{name}/{namespace}") };
        write!(f, "{kind} {name:?} of {} {:?} to {}", binding.role_kind, binding.role, subject.words)
    }
}

/// Several errors in one text, each once.
pub(super) fn aggregate(errors: &[String]) -> String {
    let first = errors.iter().enumerate().filter(|(at, error)| !errors[..*at].contains(error));
    let unique: Vec<_> = first.map(|(_, error)| error.as_str()).collect();
    match unique.as_slice() {
        [only] => (*only).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}
