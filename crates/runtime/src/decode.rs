//! Decodes what the API server sends, one object at a time.
//!
//! Kubernetes stores values that a typed client cannot parse: times with ten fractional digits,
//! integers beyond 64 bits, objects nested deeper than a parser follows. An agent can write such a
//! value into its own status. It must neither hide the rest of the object nor stop the list or
//! watch that the object is in: [`Decoded`] keeps the metadata of every object, and what else of it
//! can be parsed.

mod date_time;
mod raw;
mod repair;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use kube::{Resource, api::ObjectMeta};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
    ser::Error as _,
};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

pub(crate) use self::raw::RawObject;
use self::repair::{Metadata, repair, repair_metadata};

/// The top-level fields of an object, as the server sent them.
type Fields = BTreeMap<String, Box<RawValue>>;

/// An object from the API server that may be damaged.
#[derive(Clone, Debug)]
pub struct Decoded<K>(pub Result<K, Box<Damaged<K>>>);

/// An object of which some value cannot be parsed.
#[derive(Clone)]
pub struct Damaged<K> {
    /// Its metadata, without managed fields and without the values that cannot be parsed.
    pub metadata: ObjectMeta,
    /// The first value that cannot be parsed. One in the metadata counts only where everything else
    /// can be parsed.
    pub defect: Defect,
    fields: Fields,
    kind: PhantomData<fn() -> K>,
}

/// A value that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Where it is in its object.
    pub path: String,
    /// Why it cannot be parsed.
    pub message: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot parse {}: {}", self.path, self.message)
    }
}

impl<K: DeserializeOwned> Decoded<K> {
    /// Decodes an object. This fails only where it has no name that can be parsed.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        if let Ok(object) = serde_json::from_str(text) {
            return Ok(Self(Ok(object)));
        }
        let mut fields = fields_of(text)?;
        let Metadata { parsed: metadata, value, defect } = repair_metadata(fields.get("metadata").map(|text| &**text))?;
        fields.insert("metadata".to_owned(), to_raw_value(&value)?);
        let (object, found) = repair(&fields);
        Ok(Self(match (object, found.or(defect)) {
            // Kubernetes spells a time in another way, or only managed fields were damaged.
            (Some(object), None) => Ok(object),
            (_, defect) => {
                let defect = defect.unwrap_or_else(Defect::of_whole_object);
                Err(Box::new(Damaged { metadata, defect, fields, kind: PhantomData }))
            }
        }))
    }
}

impl Defect {
    /// Whether it is in the status of its object.
    #[must_use]
    pub fn is_in_status(&self) -> bool {
        self.is_in("status")
    }

    /// Whether it is in the metadata of its object, and everything else can be parsed.
    #[must_use]
    pub fn is_in_metadata(&self) -> bool {
        self.is_in("metadata")
    }

    fn is_in(&self, field: &str) -> bool {
        self.path.split(['.', '[']).next() == Some(field)
    }

    fn of_whole_object() -> Self {
        Self { path: "the object".to_owned(), message: "it is not of its kind".to_owned() }
    }
}

impl<K: DeserializeOwned> Damaged<K> {
    /// The object without the values of its metadata and its status that cannot be parsed; of a
    /// list, without the item. Nothing if a value of its spec cannot be parsed.
    #[must_use]
    pub fn without_defects(&self) -> Option<K> {
        repair(&self.fields).0
    }

    /// The object with another status. Nothing if a value of its spec cannot be parsed.
    #[must_use]
    pub fn with_status(&self, status: &Value) -> Option<K> {
        let mut fields = self.fields.clone();
        fields.insert("status".to_owned(), to_raw_value(status).ok()?);
        repair(&fields).0
    }
}

impl<K> Damaged<K> {
    /// The same object, as one of another shape.
    #[must_use]
    pub fn in_shape<T>(self) -> Damaged<T> {
        let Self { metadata, defect, fields, .. } = self;
        Damaged { metadata, defect, fields, kind: PhantomData }
    }

    /// A field of its spec, if that one can be parsed.
    #[must_use]
    pub fn spec_field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let spec: Fields = serde_json::from_str(self.fields.get("spec")?.get()).ok()?;
        serde_json::from_str(spec.get(name)?.get()).ok()
    }
}

impl<K> fmt::Debug for Damaged<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectMeta { namespace, name, .. } = &self.metadata;
        let mut shown = f.debug_struct("Damaged");
        shown.field("namespace", namespace).field("name", name).field("defect", &self.defect).finish_non_exhaustive()
    }
}

/// The top-level fields of an object. Managed fields are left out: they are nested as deeply as the
/// object, and nothing reads them.
fn fields_of(text: &str) -> Result<Fields, serde_json::Error> {
    let mut fields: Fields = serde_json::from_str(text)?;
    if let Some(metadata) = fields.get_mut("metadata") {
        let mut parts: Fields = serde_json::from_str(metadata.get())?;
        parts.remove("managedFields");
        *metadata = to_raw_value(&parts)?;
    }
    Ok(fields)
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Decoded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text is skipped over without recursion, however deeply it is nested.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(text.get()).map_err(D::Error::custom)
    }
}

impl<K: Serialize> Serialize for Decoded<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(object) => object.serialize(serializer),
            Err(damaged) => Err(S::Error::custom(&damaged.defect)),
        }
    }
}

impl<K: Resource> Resource for Decoded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|damaged| &damaged.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|damaged| &mut damaged.metadata, K::meta_mut)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }
}
