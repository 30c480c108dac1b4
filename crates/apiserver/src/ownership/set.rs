//! Sets of fields, as trees of the steps that lead to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Value};

use super::values::{Literal, escaped_json};

/// One step from a value to something in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    /// A field of a map.
    Field(String),
    /// The item of a list that says this in its key fields, which are sorted by name.
    Key(Vec<(String, Literal)>),
    /// The item of a list that is this.
    Value(Literal),
    /// The item of a list that is at this place.
    Index(i64),
}

/// Steps from the object itself.
pub(crate) type Path = Vec<Element>;

impl Element {
    /// The step to a field.
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    fn read(text: &str) -> Result<Option<Self>, String> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err("key must be 2 characters long:".to_owned());
        }
        if bytes[1] != b':' {
            return Err(format!("missing colon: {text}"));
        }
        let (rest, json) = (&text[2..], |text: &str| serde_json::from_str::<Value>(text).map_err(|it| it.to_string()));
        Ok(match bytes[0] {
            b'f' => Some(Self::field(rest)),
            b'v' => Some(Self::Value(Literal(json(rest)?))),
            b'k' => match json(rest)? {
                Value::Object(fields) => {
                    Some(Self::Key(fields.into_iter().map(|(name, value)| (name, Literal(value))).collect()))
                }
                _ => return Err(format!("expected an object: {rest}")),
            },
            b'i' => Some(Self::Index(rest.parse().map_err(|it: std::num::ParseIntError| it.to_string())?)),
            _ => None,
        })
    }

    fn write(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), value.0.clone()));
                format!("k:{}", escaped_json(&Value::Object(fields.collect())))
            }
            Self::Value(value) => format!("v:{}", escaped_json(&value.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", value.0),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// How a path is told to users.
pub(crate) fn path_text(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}

/// A set of fields. What is in it of a field says nothing of whether the field itself is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    members: BTreeSet<Element>,
    children: BTreeMap<Element, FieldSet>,
}

impl FieldSet {
    /// Adds a field. Nobody owns the object itself, so the empty path adds nothing.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => {
                if !self.members.contains(last) {
                    self.members.insert(last.clone());
                }
            }
            [first, rest @ ..] => match self.children.get_mut(first) {
                Some(child) => child.insert(rest),
                None => self.children.entry(first.clone()).or_default().insert(rest),
            },
        }
    }

    /// A set of fields that are named by dotted paths.
    pub(crate) fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.split('.').map(Element::field).collect::<Path>());
        }
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Whether a field of what the set is about is in it.
    pub(crate) fn has(&self, element: &Element) -> bool {
        self.members.contains(element)
    }

    /// Whether the field at a path is in it.
    pub(crate) fn has_path(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.child(first).is_some_and(|child| child.has_path(rest)),
        }
    }

    /// What is in the set of what this step leads to.
    pub(crate) fn child(&self, element: &Element) -> Option<&Self> {
        self.children.get(element)
    }

    /// The steps that lead to something in the set, each with whether it is in the set itself.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&Element, bool)> {
        let inner = self.children.keys().filter(|element| !self.has(element)).map(|element| (element, false));
        inner.chain(self.members.iter().map(|element| (element, true)))
    }

    /// All fields of both sets.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.extend(other);
        all
    }

    /// Adds all fields of another set.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.members.extend(other.members.iter().cloned());
        for (element, set) in &other.children {
            self.children.entry(element.clone()).or_default().extend(set);
        }
    }

    /// The fields that are in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let common = self.children.iter().filter_map(|(element, set)| {
            let both = set.intersection(other.child(element)?);
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        Self { members: self.members.intersection(&other.members).cloned().collect(), children: common.collect() }
    }

    /// The fields that are not in the other set. What is in a field that is in the other set stays.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let left = self.children.iter().filter_map(|(element, set)| {
            let left = other.child(element).map_or_else(|| set.clone(), |other| set.difference(other));
            (!left.is_empty()).then(|| (element.clone(), left))
        });
        Self { members: self.members.difference(&other.members).cloned().collect(), children: left.collect() }
    }

    /// The fields that are not in the other set, nor in fields that are.
    pub(crate) fn recursive_difference(&self, other: &Self) -> Self {
        let left = self.children.iter().filter_map(|(element, set)| {
            if other.has(element) {
                return None;
            }
            let left = other.child(element).map_or_else(|| set.clone(), |other| set.recursive_difference(other));
            (!left.is_empty()).then(|| (element.clone(), left))
        });
        Self { members: self.members.difference(&other.members).cloned().collect(), children: left.collect() }
    }

    /// The paths of all fields: those of a set before those of what is in it.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let mut paths: Vec<Path> = self.members.iter().map(|element| vec![element.clone()]).collect();
        for (element, set) in &self.children {
            paths.extend(set.paths().into_iter().map(|rest| [vec![element.clone()], rest].concat()));
        }
        paths
    }

    /// The set with those steps in it, of all that something is below of, that are chosen.
    pub(crate) fn with_members(mut self, is_member: impl Fn(&Element) -> bool) -> Self {
        let added: Vec<Element> = self.children.keys().filter(|element| is_member(element)).cloned().collect();
        self.members.extend(added);
        self
    }

    /// The set with what is below each step exchanged.
    pub(crate) fn map_children(&self, change: impl Fn(&Element, &Self) -> Self) -> Self {
        let children = self.children.iter().map(|(element, set)| (element.clone(), change(element, set)));
        Self { members: self.members.clone(), children: children.collect() }
    }

    /// Reads what a `fieldsV1` says. Steps of kinds that are not known are left out.
    pub(crate) fn read(fields: &Value) -> Result<Self, String> {
        Self::read_node(fields).map(|(set, _)| set)
    }

    /// The set, and whether what it is about is in the set above.
    fn read_node(fields: &Value) -> Result<(Self, bool), String> {
        let fields = match fields {
            Value::Object(fields) => fields,
            Value::Null => return Ok((Self::default(), true)),
            other => return Err(format!("expected an object, but found {other}")),
        };
        let (mut set, mut has_children, mut is_member) = (Self::default(), false, false);
        for (key, below) in fields {
            if key == "." {
                is_member = true;
                continue;
            }
            let Some(element) = Element::read(key)? else { continue };
            let (child, child_is_member) = Self::read_node(below)?;
            has_children = true;
            if child_is_member {
                set.members.insert(element.clone());
            }
            if !child.is_empty() {
                set.children.insert(element, child);
            }
        }
        Ok((set, is_member || !has_children))
    }

    /// The set as a `fieldsV1` says it.
    pub(crate) fn write(&self) -> Value {
        Value::Object(self.write_node())
    }

    fn write_node(&self) -> Map<String, Value> {
        let mut node: Map<String, Value> =
            self.members.iter().map(|element| (element.write(), Value::Object(Map::new()))).collect();
        for (element, set) in &self.children {
            let mut below = set.write_node();
            if self.has(element) && !below.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            node.insert(element.write(), Value::Object(below));
        }
        node
    }
}
