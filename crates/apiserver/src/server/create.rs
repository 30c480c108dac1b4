//! New objects.

use serde_json::Value;

use super::{
    answer::Body,
    call::Call,
    object::{Subject, shown},
    unkept,
};
use crate::{
    decode, definition,
    failure::Failure,
    kind::Origin,
    metadata,
    ownership::{self, Write},
    policy::Operation,
    schema::{fill::fill_in_defaults, prune::prune},
    store::WriteError,
    strategy,
    user::Part,
};

/// How often a name is made for an object that only has the beginning of one, until it is one that nobody has.
const GENERATIONS: usize = 8;

impl Call<'_> {
    pub(super) async fn create(&self, body: &[u8]) -> Result<Body, Failure> {
        let (mut object, twice) = self.read_body(body)?;
        self.identify(&mut object, body)?;
        self.tidy(&mut object, twice)?;
        let namespace = self.place.namespace.clone().unwrap_or_default();
        metadata::expected_namespace(&self.kind, &mut object, &namespace)?;
        metadata::no_version_yet(&object)?;
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            metadata::set(&mut object, field, None);
        }
        let object = self.keep_new(object, None).await?;
        self.show(201, &object)
    }

    /// Keeps a new object, which may have no more than the beginning of a name. `owned` is what somebody has applied, who owns it already.
    pub(super) async fn keep_new(&self, mut object: Value, owned: Option<()>) -> Result<Value, Failure> {
        self.check_namespace(&object)?;
        self.fill_in(&mut object);
        if owned.is_none() {
            let (manager, time) = (self.manager(), self.server.now());
            let blank = strategy::blank(&self.kind, self.api_version());
            ownership::update(
                blank.as_ref(),
                &mut object,
                &self.version().schema,
                &self.ownership(&manager, &time, &self.reset()),
            );
        }
        self.warn(metadata::dedup_owners(&mut object));
        let is_generated = metadata::text(&object, "name").is_empty();
        for _ in 0..GENERATIONS {
            let mut new = object.clone();
            let mut suffix = || self.server.ids.suffix();
            metadata::stamp_new(&mut new, &self.server.ids.uid(), &self.server.now(), &mut suffix);
            strategy::prepare_create(&self.kind, &mut new, &self.user);
            self.define(&mut new);
            self.check(&new, None)?;
            self.admit(Operation::Create, Some(&new), None)?;
            match self.keep_one(new).await? {
                Some(kept) => return Ok(kept),
                None if is_generated => {}
                None => {
                    return Err(self.taken(metadata::text(&object, "name")));
                }
            }
        }
        Err(metadata::generated_name_conflict(&self.kind, metadata::text(&object, "generateName")))
    }

    /// The failure of a new object whose name is taken, perhaps by one that is on its way out.
    fn taken(&self, name: &str) -> Failure {
        let failure = Failure::already_exists(self.kind.resource(), name);
        let there = self.server.store.get(&self.subject(name).key).map(|stored| stored.value());
        if there.is_none_or(|there| metadata::field(&there, "deletionTimestamp").is_none()) {
            return failure;
        }
        Failure { message: format!("object is being deleted: {}", failure.message), ..failure }
    }

    /// Keeps a new object, if its name is not taken.
    async fn keep_one(&self, object: Value) -> Result<Option<Value>, Failure> {
        let subject = Subject::new(&self.kind, self.place.namespace.as_deref(), metadata::text(&object, "name"));
        if self.is_dry_run() {
            return Ok(self.server.store.get(&subject.key).is_none().then_some(object));
        }
        match self.server.keep(&subject, object).await {
            Ok(stored) => Ok(Some(shown(&stored, &self.kind, self.version()))),
            Err(WriteError::Exists(_)) => Ok(None),
            Err(error) => Err(unkept(&error)),
        }
    }

    /// Checks what an object says it is.
    pub(super) fn identify(&self, object: &mut Value, body: &[u8]) -> Result<(), Failure> {
        let kinds = &self.served.kinds;
        let is_known = |api_version: &str, kind: &str| {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            kinds.by_kind(group, version, kind).is_some_and(|(kind, _)| kind.origin != Origin::Custom)
        };
        decode::identify(object, &self.kind, &self.place.version, body, &is_known)
    }

    /// Drops what the kind has no place for, and says so as it was asked to.
    pub(super) fn tidy(&self, object: &mut Value, twice: Vec<String>) -> Result<(), Failure> {
        decode::check(object, &self.kind, self.version())?;
        let mut found = twice;
        let whole = object.clone();
        match self.kind.origin {
            Origin::Custom => {
                let dropped = prune(object, &self.version().schema);
                found.extend(decode::tidy_metadata(object));
                found.extend(dropped.iter().map(|path| decode::unknown_field(path)));
            }
            Origin::BuiltIn | Origin::Review => found.extend(decode::trim(object, &self.version().schema)),
        }
        let warnings = self.strictness().judge(&whole, &self.kind, &self.place.version, found)?;
        self.warn(warnings);
        Ok(())
    }

    /// Fills in what is meant where nothing is said.
    pub(super) fn fill_in(&self, object: &mut Value) {
        match self.kind.origin {
            Origin::Custom => fill_in_defaults(object, &self.version().schema),
            Origin::BuiltIn | Origin::Review => strategy::defaults(&self.kind, object),
        }
        if self.defines_kinds() {
            definition::fill_in(object);
        }
    }

    pub(super) fn defines_kinds(&self) -> bool {
        self.kind.group == "apiextensions.k8s.io" && self.kind.plural == "customresourcedefinitions"
    }

    /// How a write is written down among who owns what.
    pub(super) fn ownership<'w>(&'w self, manager: &'w str, time: &'w str, reset: &'w [&'w str]) -> Write<'w> {
        Write {
            manager,
            api_version: self.api_version(),
            subresource: self.place.subresource.as_deref().unwrap_or_default(),
            time,
            origin: self.kind.origin,
            reset,
        }
    }

    /// The fields that a write to this part can not change.
    pub(super) fn reset(&self) -> Vec<&'static str> {
        let is_custom = self.kind.origin == Origin::Custom;
        match self.part {
            // What is asked for can not be changed, so that nobody owns it.
            Part::Whole if self.kind.plural == "certificatesigningrequests" => vec!["spec", "status"],
            Part::Whole | Part::Scale if self.version().subresources.status => vec!["status"],
            Part::Whole | Part::Scale => Vec::new(),
            Part::Status if is_custom => vec!["metadata", "spec"],
            Part::Status if self.kind.plural == "deployments" => vec!["spec", "metadata.labels"],
            Part::Status => vec!["spec"],
            Part::Approval => vec!["spec", "status.certificate"],
            Part::Finalize => vec!["status"],
        }
    }
}
