//! Objects as the server has sent them. A watch of these is the same code for every kind.

use std::{borrow::Cow, fmt};

use kube::{
    Resource,
    api::{ApiResource, ObjectMeta},
    core::DynamicResourceScope,
};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// An object as the server has sent it, with the metadata that a watch needs to go on. Of kinds that
/// are `METADATA_ONLY`, the server is asked for nothing else.
#[derive(Clone, Debug)]
pub(crate) struct RawObject<const METADATA_ONLY: bool> {
    /// The object in JSON.
    pub(crate) text: Box<RawValue>,
    /// Its name, namespace, UID and resource version.
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl<'de, const METADATA_ONLY: bool> Deserialize<'de> for RawObject<METADATA_ONLY> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text is skipped over without recursion, however deeply it is nested.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let mut identity = None;
        let ended = serde_json::Deserializer::from_str(text.get()).deserialize_map(FindIdentity(&mut identity));
        let Some(Identity { name, namespace, uid, resource_version }) = identity else {
            let why = ended.err().map_or_else(|| "no metadata".to_owned(), |error| error.to_string());
            return Err(D::Error::custom(format!("cannot parse the metadata of an object: {why}")));
        };
        Ok(Self { text, metadata: ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() } })
    }
}

/// Finds the metadata of an object. What follows them, which is most of an object, is not read.
struct FindIdentity<'a>(&'a mut Option<Identity>);

impl<'de> Visitor<'de> for FindIdentity<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of the Kubernetes API")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key::<Cow<'_, str>>()? {
            if field == "metadata" {
                *self.0 = Some(fields.next_value()?);
                break;
            }
            fields.next_value::<serde::de::IgnoredAny>()?;
        }
        Ok(())
    }
}

impl<const METADATA_ONLY: bool> Resource for RawObject<METADATA_ONLY> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.kind).into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.group).into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.version).into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.plural).into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn metadata_api() -> bool {
        METADATA_ONLY
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;

    use super::*;

    fn parse(text: &str) -> Result<RawObject<false>, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn identity_is_read_wherever_metadata_are() {
        for text in [
            r#"{ "metadata": { "name": "a", "resourceVersion": "7", "labels": null }, "spec": {} }"#,
            r#"{ "spec": [1], "m\u0065tadata": { "resourceVersion": "7", "name": "a" } }"#,
        ] {
            let object = parse(text).expect("it has metadata");
            assert_eq!((&*object.name_any(), object.resource_version().as_deref()), ("a", Some("7")));
            assert_eq!(object.text.get(), text);
        }
    }

    #[test]
    fn depth_of_an_object_does_not_matter() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        for text in
            [format!(r#"{{ "spec": {deep}, "metadata": {{}} }}"#), format!(r#"{{ "metadata": {{}}, "spec": {deep} }}"#)]
        {
            assert!(parse(&text).is_ok());
        }
    }

    #[test]
    fn object_without_metadata_is_refused() {
        for text in ["{}", "[]", r#"{ "metadata": { "name": 1 } }"#] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
