//! Changes of objects that are there.

use serde_json::Value;

use super::{
    answer::Body,
    call::Call,
    object::{Subject, shown},
    unkept, was_outrun,
};
use crate::{
    failure::Failure,
    metadata,
    ownership::{self, is_noop},
    policy::Operation,
    store::Stored,
    strategy,
    user::Part,
};

/// How often a change is tried that does not say of what it was made, when others are faster.
const TRIES: usize = 16;

/// What an object is to be.
pub(super) struct Wanted {
    pub(super) object: Value,
    /// Whether who owns what was settled with it.
    pub(super) is_applied: bool,
}

impl Call<'_> {
    pub(super) async fn update(&self, name: &str, body: &[u8]) -> Result<Body, Failure> {
        if self.part == Part::Scale {
            let (scale, _) = self.read_body_as(body, "autoscaling/v1", "Scale")?;
            return self.rescale(name, |_| Ok(scale.clone())).await;
        }
        let (mut sent, twice) = self.read_body(body)?;
        self.identify(&mut sent, body)?;
        self.tidy(&mut sent, twice)?;
        metadata::expected_name(&sent, name)?;
        let namespace = self.place.namespace.clone().unwrap_or_default();
        metadata::expected_namespace(&self.kind, &mut sent, &namespace)?;
        if self.part == Part::Whole && self.kind.allows_create_on_update() && !self.is_there(name) {
            let object = self.keep_new(sent, None).await?;
            return self.show(201, &object);
        }
        let wanted = |_: &Value| Ok(Wanted { object: sent.clone(), is_applied: false });
        let changed = self.change(name, wanted).await?;
        self.show(200, &changed)
    }

    pub(super) fn is_there(&self, name: &str) -> bool {
        self.server.store.get(&self.subject(name).key).is_some()
    }

    /// Changes an object to what is made of it. Where that does not depend on which state it is made of, it is tried again when others were faster.
    pub(super) async fn change(
        &self,
        name: &str,
        make: impl Fn(&Value) -> Result<Wanted, Failure>,
    ) -> Result<Value, Failure> {
        let subject = self.subject(name);
        for _ in 0..TRIES {
            let stored = self.server.store.get(&subject.key);
            let stored = stored.ok_or_else(|| Failure::not_found(self.kind.resource(), name))?;
            let old = shown(&stored, &self.kind, self.version());
            let new = self.changed(&old, make(&old)?)?;
            if let Some(object) = self.keep_changed(&subject, &stored, &old, new).await? {
                return Ok(object);
            }
        }
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Err(Failure::conflict(self.kind.resource(), name, why))
    }

    /// What becomes of an object that is to be changed, once all have had their say.
    fn changed(&self, old: &Value, wanted: Wanted) -> Result<Value, Failure> {
        let Wanted { object: mut new, is_applied } = wanted;
        if self.head.method == http::Method::PUT {
            metadata::check_uid(&self.kind, &new, old)?;
        }
        metadata::check_version(&self.kind, &mut new, old)?;
        self.fill_in(&mut new);
        if !is_applied {
            // When somebody last scaled an object is not written down.
            let time = if self.part == Part::Scale { String::new() } else { self.server.now() };
            let manager = self.manager();
            let (reset, schema) = (self.reset(), &self.version().schema);
            ownership::update(Some(old), &mut new, schema, &self.ownership(&manager, &time, &reset));
        }
        strategy::prepare_update(&self.kind, self.part, &mut new, old, &self.server.now());
        self.warn(metadata::dedup_owners(&mut new));
        self.define(&mut new);
        self.check(&new, Some(old))?;
        self.admit(Operation::Update, Some(&new), Some(old))?;
        // That somebody has written the same once more is no change.
        Ok(if is_noop(old, &new) { old.clone() } else { new })
    }

    /// Keeps what an object has become; nothing if somebody else was faster.
    async fn keep_changed(
        &self,
        subject: &Subject,
        stored: &Stored,
        old: &Value,
        new: Value,
    ) -> Result<Option<Value>, Failure> {
        if self.is_dry_run() {
            return Ok(Some(new));
        }
        let kept = if is_done_with(&self.kind, old, &new) {
            self.server.drop_object(subject, stored, new).await
        } else {
            self.server.replace(subject, stored, new).await
        };
        match kept {
            Ok(stored) => Ok(Some(shown(&stored, &self.kind, self.version()))),
            Err(error) if was_outrun(&error) => Ok(None),
            Err(error) => Err(unkept(&error)),
        }
    }
}

/// Whether nothing holds an object any more that is on its way out.
pub(super) fn is_done_with(kind: &crate::kind::Kind, old: &Value, new: &Value) -> bool {
    let is_going = metadata::field(old, "deletionTimestamp").is_some();
    is_going && !super::delete::is_held(kind, new)
}
