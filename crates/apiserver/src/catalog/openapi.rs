//! The schemas of built-in kinds, from the OpenAPI of a real server.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value};

use crate::schema::Schema;

/// The OpenAPI of all built-in kinds, and of everything that they are made of, by the names that references end with.
///
/// Descriptions are left out. The file is made by a scenario.
///
/// # Panics
///
/// Never: the file is part of the program, and tests read it.
pub fn definitions() -> &'static Map<String, Value> {
    static DEFINITIONS: OnceLock<Map<String, Value>> = OnceLock::new();
    DEFINITIONS.get_or_init(|| {
        serde_json::from_str(include_str!("../../kinds/openapi.json")).expect("the file is an object in JSON")
    })
}

/// Reads schemas, each definition once.
pub(super) struct Schemas<'a> {
    definitions: &'a Map<String, Value>,
    by_kind: HashMap<[&'a str; 3], &'a str>,
    /// What was read, by name and by how often the definition is contained in itself there.
    done: RefCell<BTreeMap<(String, usize), Arc<Schema>>>,
    /// What is being read, the innermost last.
    doing: RefCell<Vec<String>>,
}

/// How often a schema is repeated within itself. What is deeper may be anything.
const REPETITIONS: usize = 8;

impl<'a> Schemas<'a> {
    pub(super) fn new(definitions: &'a Map<String, Value>) -> Self {
        let by_kind = definitions.iter().flat_map(|(name, it)| kinds(it).map(move |kind| (kind, name.as_str())));
        Self { definitions, by_kind: by_kind.collect(), done: RefCell::default(), doing: RefCell::default() }
    }

    /// What objects of a kind are made of, as it is written and as it is read. A kind that nothing is said about may be anything.
    pub(super) fn of_kind(&self, group: &'a str, version: &'a str, kind: &'a str) -> (Arc<Value>, Arc<Schema>) {
        let name = self.by_kind.get(&[group, version, kind]).copied().unwrap_or_default();
        let written = self.definitions.get(name).cloned().unwrap_or_default();
        (Arc::new(written), self.read(name).unwrap_or_else(|| Arc::new(anything())))
    }

    pub(super) fn read(&self, name: &str) -> Option<Arc<Schema>> {
        let definition = self.definitions.get(name)?;
        let depth = self.doing.borrow().iter().filter(|outer| *outer == name).count();
        if depth > REPETITIONS {
            return Some(Arc::new(anything()));
        }
        let key = (name.to_owned(), depth);
        if let Some(schema) = self.done.borrow().get(&key) {
            return Some(Arc::clone(schema));
        }
        self.doing.borrow_mut().push(name.to_owned());
        let mut schema = Schema::read(definition, &|name| self.read(name));
        self.doing.borrow_mut().pop();
        schema.preserve_unknown_fields |= may_be_anything(name, definition);
        let schema = Arc::new(schema);
        self.done.borrow_mut().insert(key, Arc::clone(&schema));
        Some(schema)
    }
}

/// The group, version and name of each kind that a definition is of.
fn kinds(definition: &Value) -> impl Iterator<Item = [&str; 3]> {
    let listed = definition.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(|kind| {
        Some([kind.get("group")?.as_str()?, kind.get("version")?.as_str()?, kind.get("kind")?.as_str()?])
    })
}

/// The objects that have fields which OpenAPI does not name, as opposed to those that have none.
const OPEN: [&str; 2] =
    ["io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "io.k8s.apimachinery.pkg.runtime.RawExtension"];

/// Whether any JSON will do.
fn may_be_anything(name: &str, definition: &Value) -> bool {
    let says_nothing = ["type", "oneOf"].iter().all(|keyword| definition.get(keyword).is_none());
    says_nothing || OPEN.contains(&name)
}

fn anything() -> Schema {
    Schema { preserve_unknown_fields: true, ..Schema::default() }
}
