//! Patches of objects, of all four kinds.

use serde_json::{Value, json};

use super::{
    call::{Body, Call},
    update::Wanted,
    watch::forbidden,
};
use crate::{
    decode,
    failure::{About, Failure},
    field::{ErrorKind, FieldError, Path},
    kind::Origin,
    metadata, ownership, patch,
    user::Part,
};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

impl Call<'_> {
    pub(super) async fn patch(&self, name: &str, body: &[u8]) -> Result<Body, Failure> {
        let is_custom = self.kind.origin == Origin::Custom;
        if self.media_type() != APPLY_PATCH && self.head.query.flag("force") {
            let error = forbidden("force", "may not be specified for non-apply patch");
            return Err(Failure::invalid_options("PatchOptions", &[error]));
        }
        match self.media_type() {
            APPLY_PATCH => self.apply(name, body).await,
            JSON_PATCH => self.patch_by(name, |old| patch::json(old, body)).await,
            MERGE_PATCH => {
                let sent = read(body)?;
                self.patch_by(name, |old| patch::merge(old, &sent)).await
            }
            STRATEGIC_PATCH if !is_custom => {
                let sent = read(body)?;
                let schema = self.version().schema.clone();
                self.patch_by(name, |old| patch::strategic(old, &sent, &schema)).await
            }
            _ if is_custom => Err(Failure::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH])),
            _ => Err(unsupported()),
        }
    }

    async fn patch_by(&self, name: &str, patched: impl Fn(&Value) -> Result<Value, Failure>) -> Result<Body, Failure> {
        if self.part == Part::Scale {
            return self.rescale(name, patched).await;
        }
        let wanted = |old: &Value| {
            let mut new = patched(old)?;
            self.identify(&mut new, b"")?;
            let whole = new.clone();
            self.tidy(&mut new, Vec::new()).map_err(|failure| self.misfit(&whole, failure))?;
            self.confirm_place(&mut new, name)?;
            Ok(Wanted { object: new, is_applied: false })
        };
        let changed = self.change(name, wanted).await?;
        self.show(200, &changed)
    }

    /// The failure of a patch that makes of an object what its kind has no place for.
    fn misfit(&self, patched: &Value, failure: Failure) -> Failure {
        let start = format!("cannot be handled as a {}: ", self.kind.kind);
        let Some((_, problem)) = failure.message.split_once(&start) else { return failure };
        let error = FieldError::new(ErrorKind::Invalid, &Path::Root.field("patch"), patched.to_string(), problem);
        Failure::invalid(About { group: "", name: "" }, "", &[error])
    }

    /// Makes sure that a patched object is still that very one.
    fn confirm_place(&self, object: &mut Value, name: &str) -> Result<(), Failure> {
        metadata::expected_name(object, name)?;
        let namespace = self.place.namespace.clone().unwrap_or_default();
        metadata::expected_namespace(&self.kind, object, &namespace)
    }

    async fn apply(&self, name: &str, body: &[u8]) -> Result<Body, Failure> {
        let manager = self.head.query.text("fieldManager").ok_or_else(no_manager)?;
        let (mut sent, twice) = decode::read_yaml(body).map_err(|problem| {
            Failure::bad_request(format!("error decoding YAML: error converting YAML to JSON: yaml: {problem}"))
        })?;
        if sent["apiVersion"].is_string() {
            self.identify(&mut sent, body)?;
        }
        if !sent["metadata"].is_object() {
            sent["metadata"] = json!({});
        }
        if metadata::text(&sent, "name").is_empty() {
            sent["metadata"]["name"] = name.into();
        }
        // What is applied is taken by the word: even what is empty is owned.
        self.warn(self.strictness()?.judge(&sent, &self.kind, &self.place.version, twice)?);
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

fn read(body: &[u8]) -> Result<Value, Failure> {
    let (value, _) =
        decode::read_json(body).map_err(|problem| Failure::bad_request(format!("error decoding patch: {problem}")))?;
    Ok(value)
}

/// The failure of a patch of another kind, as it is told for built-in kinds.
fn unsupported() -> Failure {
    let message = "415: Unsupported Media Type".to_owned();
    Failure { message, details: Some(Box::default()), ..Failure::unsupported_media_type(&[]) }
}

fn no_manager() -> Failure {
    let path = Path::Root.field("fieldManager");
    Failure::invalid_options(
        "PatchOptions",
        &[FieldError::bare(ErrorKind::Required, &path, "is required for apply patch")],
    )
}
