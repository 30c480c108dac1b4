//! Who owns what: the entries of `metadata.managedFields`.

use std::collections::{BTreeMap, btree_map};

use serde_json::{Map, Value, json};

use super::{Operation, set::FieldSet};

/// More entries of updates than this are not kept.
const MOST_UPDATERS: usize = 10;

/// What tells an entry from others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    /// The name.
    pub(crate) name: String,
    /// How it writes.
    pub(crate) operation: Operation,
    /// The version that it writes; empty for who applies, so that it is the same whichever it applies.
    pub(crate) api_version: String,
    /// The part of the object that it writes; empty for the object itself.
    pub(crate) subresource: String,
}

impl Manager {
    /// The manager who writes this.
    pub(crate) fn new(name: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            name: name.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// How it is told to who is in conflict with it.
    pub(crate) fn told(&self) -> String {
        let mut told = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            told = format!("{told} with subresource {:?}", self.subresource);
        }
        match self.operation {
            Operation::Apply => told,
            Operation::Update => format!("{told} using {}", self.api_version),
        }
    }
}

/// What a manager owns.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The fields.
    pub(crate) fields: FieldSet,
    /// The version that they are of.
    pub(crate) api_version: String,
    /// When it wrote last.
    pub(crate) time: Option<String>,
}

/// What everybody owns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managers(BTreeMap<Manager, Entry>);

impl Managers {
    /// Reads the entries of an object.
    pub(crate) fn of(object: &Value) -> Result<Self, String> {
        let mut managers = Self::default();
        for (index, entry) in entries(object).into_iter().flatten().enumerate() {
            let (manager, entry) = read_entry(entry, index)?;
            managers.0.insert(manager, entry);
        }
        Ok(managers)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, manager: &Manager) -> Option<&Entry> {
        self.0.get(manager)
    }

    pub(crate) fn set(&mut self, manager: Manager, entry: Entry) {
        self.0.insert(manager, entry);
    }

    pub(crate) fn entry(&mut self, manager: Manager) -> btree_map::Entry<'_, Manager, Entry> {
        self.0.entry(manager)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Manager, &Entry)> {
        self.0.iter()
    }

    /// Changes what managers own; who owns nothing then is forgotten.
    pub(crate) fn change(&mut self, change: impl Fn(&Manager, &FieldSet) -> FieldSet) {
        for (manager, entry) in &mut self.0 {
            entry.fields = change(manager, &entry.fields);
        }
        self.0.retain(|_, entry| !entry.fields.is_empty());
    }

    /// Folds the oldest entries of updates into one for each version, until there are few enough.
    pub(crate) fn cap(&mut self) {
        let updaters = self.0.iter().filter(|(manager, _)| manager.operation == Operation::Update);
        let mut oldest: Vec<(Option<String>, Manager)> =
            updaters.map(|(manager, entry)| (entry.time.clone(), manager.clone())).collect();
        oldest.sort();
        let mut left = oldest.len();
        let mut first_of: BTreeMap<String, Manager> = BTreeMap::new();
        for (_, manager) in oldest {
            if left <= MOST_UPDATERS {
                break;
            }
            let Some(version) = self.get(&manager).map(|entry| entry.api_version.clone()) else { continue };
            match first_of.get(&version) {
                Some(first) => {
                    self.fold(&manager, first, &version);
                    left -= 1;
                }
                None => {
                    first_of.insert(version, manager);
                }
            }
        }
    }

    fn fold(&mut self, manager: &Manager, first: &Manager, version: &str) {
        let ancient = Manager::new("ancient-changes", Operation::Update, version, "");
        let known = self.0.remove(&ancient).or_else(|| self.0.remove(first));
        let Some(mut newer) = self.0.remove(manager) else { return };
        if let Some(older) = known {
            newer.fields.extend(&older.fields);
        }
        self.0.insert(ancient, newer);
    }

    /// Writes the entries into an object.
    pub(crate) fn write(&self, object: &mut Value) {
        clear(object);
        if self.is_empty() {
            return;
        }
        let mut entries: Vec<(&Manager, &Entry)> = self.0.iter().collect();
        entries.sort_by_key(|(manager, entry)| {
            (manager.operation, &entry.time, &manager.name, &entry.api_version, &manager.subresource)
        });
        let entries = entries.into_iter().map(|(manager, entry)| write_entry(manager, entry)).collect();
        if let Some(fields) = object.as_object_mut() {
            let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("managedFields".to_owned(), Value::Array(entries));
            }
        }
    }
}

/// Takes the entries out of an object.
pub(crate) fn clear(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// The entries of an object as it says them.
pub(crate) fn entries(object: &Value) -> Option<&Vec<Value>> {
    object.get("metadata")?.get("managedFields")?.as_array()
}

/// Whether the entries say that nobody owns anything any more.
pub(crate) fn is_reset(object: &Value) -> bool {
    match entries(object).map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

fn read_entry(entry: &Value, index: usize) -> Result<(Manager, Entry), String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
    }
    let fields = FieldSet::read(entry.get("fieldsV1").unwrap_or(&Value::Null))
        .map_err(|error| format!("error decoding set: {error}"))?;
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    let manager = Manager::new(text("manager"), operation, api_version, text("subresource"));
    Ok((manager, Entry { fields, api_version: api_version.to_owned(), time }))
}

fn write_entry(manager: &Manager, entry: &Entry) -> Value {
    let mut written = json!({
        "operation": manager.operation.as_str(),
        "apiVersion": entry.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields.write(),
    });
    for (name, text) in [("manager", Some(&manager.name)), ("time", entry.time.as_ref())] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            written[name] = json!(text);
        }
    }
    if !manager.subresource.is_empty() {
        written["subresource"] = json!(manager.subresource);
    }
    written
}
