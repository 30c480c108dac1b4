//! Patches of objects, of all four kinds.

use serde_json::{Value, json};

use super::{answer::Body, call::Call, update::Wanted};
use crate::{
    decode::{self, json_type},
    failure::{About, Failure},
    field::{ErrorKind, FieldError, Path},
    kind::Origin,
    metadata,
    ownership::{self, values::plain},
    patch,
    user::Part,
};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// What is known of a patch besides what it does.
#[derive(Default)]
struct Sent {
    /// What it says twice.
    twice: Vec<String>,
    /// The patch, as failures show it; the others show what it makes of the object.
    shown: Option<String>,
}

impl Call<'_> {
    pub(super) async fn patch(&self, name: &str, body: &[u8]) -> Result<Body, Failure> {
        let patch_type = self.patch_type()?;
        match patch_type {
            APPLY_PATCH => self.apply(name, body).await,
            JSON_PATCH => self.patch_by(name, &Sent::default(), |old| patch::json(old, body)).await,
            MERGE_PATCH => {
                let undecodable = |problem| Failure::bad_request(format!("error decoding patch: {problem}"));
                let (sent, twice) = decode::read_json(body).map_err(undecodable)?;
                self.patch_by(name, &Sent { twice, shown: None }, |old| patch::merge(old, &sent)).await
            }
            _ => {
                let (sent, twice) = decode::read_json(body).map_err(Failure::bad_request)?;
                self.patch_by(name, &Sent { twice, shown: Some(plain(&sent)) }, |old| self.strategic(old, &sent)).await
            }
        }
    }

    /// Whether something is applied.
    pub(super) fn is_apply(&self) -> bool {
        self.media_type() == APPLY_PATCH
    }

    /// The kind of the patch, if objects of this kind can be patched like that.
    pub(super) fn patch_type(&self) -> Result<&str, Failure> {
        let is_custom = self.kind.origin == Origin::Custom;
        match self.media_type() {
            known @ (APPLY_PATCH | JSON_PATCH | MERGE_PATCH) => Ok(known),
            known @ STRATEGIC_PATCH if !is_custom => Ok(known),
            _ if is_custom => Err(Failure::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH])),
            _ => Err(unsupported()),
        }
    }

    /// What a strategic patch makes of an object. It stays of its kind, whatever the patch says.
    fn strategic(&self, old: &Value, sent: &Value) -> Result<Value, Failure> {
        let mut new = patch::strategic(old, sent, &self.version().schema)?;
        for field in ["apiVersion", "kind"] {
            if let Some((fields, kept)) = new.as_object_mut().zip(old.get(field)) {
                fields.insert(field.to_owned(), kept.clone());
            }
        }
        Ok(new)
    }

    /// Patches an object.
    async fn patch_by(
        &self,
        name: &str,
        sent: &Sent,
        patched: impl Fn(&Value) -> Result<Value, Failure>,
    ) -> Result<Body, Failure> {
        if self.part == Part::Scale {
            return self.rescale(name, patched).await;
        }
        let wanted = |old: &Value| {
            let mut new = patched(old)?;
            self.identify(&mut new, b"")?;
            let whole = new.clone();
            self.tidy(&mut new, sent.twice.clone()).map_err(|failure| self.misfit(&whole, sent, failure))?;
            self.confirm_place(&mut new, name)?;
            Ok(Wanted { object: new, is_applied: false })
        };
        let changed = self.change(name, wanted).await?;
        self.show(200, &changed)
    }

    /// The failure of a patch that makes of an object what its kind has no place for.
    fn misfit(&self, patched: &Value, sent: &Sent, failure: Failure) -> Failure {
        let start = format!("cannot be handled as a {}: ", self.kind.kind);
        let Some((_, problem)) = failure.message.split_once(&start) else { return failure };
        let shown = sent.shown.clone().unwrap_or_else(|| patched.to_string());
        let error = FieldError::new(ErrorKind::Invalid, &Path::Root.field("patch"), shown, problem);
        Failure::invalid(About { group: "", name: "" }, "", &[error])
    }

    /// Makes sure that a patched object is still that very one.
    fn confirm_place(&self, object: &mut Value, name: &str) -> Result<(), Failure> {
        metadata::expected_name(object, name)?;
        let namespace = self.place.namespace.clone().unwrap_or_default();
        metadata::expected_namespace(&self.kind, object, &namespace)
    }

    async fn apply(&self, name: &str, body: &[u8]) -> Result<Body, Failure> {
        let manager = self.head.query.text("fieldManager").unwrap_or_default();
        let undecodable = |problem| {
            Failure::bad_request(format!("error decoding YAML: error converting YAML to JSON: yaml: {problem}"))
        };
        // Nobody minds what is said twice.
        let (mut sent, _) = decode::read_yaml(body).map_err(undecodable)?;
        if sent.is_null() {
            sent = json!({});
        }
        if !sent.is_object() {
            let record = "json: cannot unmarshal {} into Go value of type map[string]interface {}";
            let problem = record.replacen("{}", json_type(&sent), 1);
            let message = format!("error decoding YAML: error unmarshaling JSON: while decoding JSON: {problem}");
            return Err(Failure::bad_request(message));
        }
        if sent["apiVersion"].is_string() && self.kind.origin == Origin::Custom {
            self.identify(&mut sent, body)?;
        }
        if !sent["metadata"].is_object() {
            sent["metadata"] = json!({});
        }
        if metadata::text(&sent, "name").is_empty() {
            sent["metadata"]["name"] = name.into();
        }
        // What is applied is taken by the word: even what is empty is owned.
        self.confirm_place(&mut sent.clone(), name)?;
        let (time, force, reset) = (self.server.now(), self.head.query.flag("force"), self.reset());
        let applied = |live: Option<&Value>| {
            let write = self.ownership(manager, &time, &reset);
            let mut new = ownership::apply(live, &sent, &self.version().schema, &write, force)?;
            drop_nulls(&mut new);
            self.confirm_place(&mut new, name)?;
            Ok::<_, Failure>(new)
        };
        if self.part == Part::Whole && !self.is_there(name) {
            let object = self.keep_new(applied(None)?, Some(())).await?;
            return self.show(201, &object);
        }
        let wanted = |old: &Value| Ok(Wanted { object: applied(Some(old))?, is_applied: true });
        let changed = self.change(name, wanted).await?;
        self.show(200, &changed)
    }
}

/// Drops the fields of an object that are null, where nothing was left of what somebody has applied before.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The failure of a patch of another kind, as it is told for built-in kinds.
fn unsupported() -> Failure {
    let message = "415: Unsupported Media Type".to_owned();
    Failure { message, details: Some(Box::default()), ..Failure::unsupported_media_type(&[]) }
}
