//! The end of objects.

use serde_json::{Value, json};

use super::{
    Server,
    answer::Body,
    call::{Call, Encoding},
    object::{Subject, shown},
    options::dry_run_rule,
    unkept, was_outrun,
};
use crate::{
    decode::{self, SCHEME},
    failure::{About, Failure},
    field::{ErrorKind, FieldError, Path},
    kind::{Kind, Origin},
    metadata,
    policy::Operation,
    protobuf,
    store::{Stored, WriteError},
};

/// The finalizer of an object that stays until what depends on it is gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object that stays until what depends on it is on its own.
pub(crate) const ORPHAN: &str = "orphan";

/// The finalizer of a definition that stays until there are no objects of its kind.
const DEFINITION: &str = crate::keeping::DEFINITION_FINALIZER;

/// The namespaces that stay.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// How often an end is tried when others change the object.
const TRIES: usize = 16;

/// How an object is to go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    uid: Option<String>,
    resource_version: Option<String>,
    propagation: Option<Propagation>,
    is_dry_run: bool,
}

/// What becomes of objects that depend on one that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Terms {
    /// To go as is usual, with what depends on it.
    pub(crate) fn usual() -> Self {
        Self::default()
    }

    /// To go like this, if it is that very object.
    pub(crate) fn of(uid: &str, propagation: Propagation) -> Self {
        Self { uid: Some(uid.to_owned()), propagation: Some(propagation), ..Self::default() }
    }

    fn read(options: &Value) -> Result<Self, Failure> {
        let text = |pointer: &str| options.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let propagation = match (text("/propagationPolicy").as_deref(), options["orphanDependents"].as_bool()) {
            (None | Some(""), None) => None,
            (None | Some(""), Some(true)) | (Some("Orphan"), None) => Some(Propagation::Orphan),
            (None | Some(""), Some(false)) | (Some("Background"), None) => Some(Propagation::Background),
            (Some("Foreground"), None) => Some(Propagation::Foreground),
            (Some(other), None) => {
                let supported = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                return Err(wrong_policy(ErrorKind::NotSupported, other, supported));
            }
            (Some(policy), Some(_)) => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                return Err(wrong_policy(ErrorKind::Invalid, policy, why));
            }
        };
        let dry = options["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let dry: Vec<_> = dry.map(str::to_owned).collect();
        if let Some(error) = dry_run_rule(&dry) {
            return Err(Failure::invalid_options("DeleteOptions", &[error]));
        }
        Ok(Self {
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
            propagation,
            is_dry_run: !dry.is_empty(),
        })
    }

    /// Whether this is the object that is meant.
    fn confirm(&self, kind: &Kind, old: &Value) -> Result<(), Failure> {
        let (uid, version) = (metadata::text(old, "uid"), metadata::text(old, "resourceVersion"));
        match (&self.uid, &self.resource_version) {
            (Some(meant), _) if meant != uid => Err(mistaken(kind, old, "UID", meant, uid)),
            (_, Some(meant)) if meant != version => Err(mistaken(kind, old, "ResourceVersion", meant, version)),
            _ => Ok(()),
        }
    }
}

fn wrong_policy(kind: ErrorKind, said: &str, detail: &str) -> Failure {
    let error = FieldError::new(kind, &Path::Root.field("propagationPolicy"), said, detail);
    Failure::invalid_options("DeleteOptions", &[error])
}

/// The failure of who means another object. Kinds that others are in tell it in other words.
fn mistaken(kind: &Kind, old: &Value, what: &str, meant: &str, found: &str) -> Failure {
    let name = metadata::text(old, "name");
    let holds_others = matches!(kind.plural.as_str(), "namespaces" | "customresourcedefinitions");
    if holds_others && kind.origin == Origin::BuiltIn {
        let why = format!("Precondition failed: {what} in precondition: {meant}, {what} in object meta: {found}");
        return Failure::conflict(kind.resource(), name, why);
    }
    let fate = if what == "UID" { "deleted and then recreated" } else { "modified" };
    let why = format!(
        "the {what} in the precondition ({meant}) does not match the {what} in record ({found}). The object might have been {fate}"
    );
    let about = if kind.group == "events.k8s.io" { About { group: "", ..kind.about() } } else { kind.about() };
    Failure::conflict(about, name, why)
}

/// What came of the wish that an object goes.
pub(crate) enum Gone {
    /// It is gone; this is how it was last.
    Now(Value),
    /// It is on its way out, and something still holds it.
    Later(Value),
}

/// Whether something keeps an object from going.
pub(super) fn is_held(kind: &Kind, object: &Value) -> bool {
    let is_filled = |value: Option<&Value>| value.and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
    is_filled(metadata::field(object, "finalizers")) || (is_namespace && is_filled(object.pointer("/spec/finalizers")))
}

impl Call<'_> {
    pub(super) async fn delete(&self, name: &str, body: &[u8]) -> Result<Body, Failure> {
        let terms = self.terms(body)?;
        if self.is_of_namespaces() && IMMORTAL.contains(&name) {
            return Err(Failure::forbidden(self.kind.resource(), name, "this namespace may not be deleted"));
        }
        let subject = self.subject(name);
        let admit = |old: &Value| self.admit(Operation::Delete, None, Some(old));
        match self.server.let_go(&subject, &terms, &admit).await? {
            Gone::Later(object) => self.show(200, &self.retyped(object)),
            Gone::Now(object) if self.kind.plural == "pods" || self.kind.plural == "serviceaccounts" => {
                self.show(200, &self.retyped(object))
            }
            Gone::Now(object) => Ok(self.written(200, &self.farewell(&object))),
        }
    }

    pub(super) async fn delete_all(&self, body: &[u8]) -> Result<Body, Failure> {
        let terms = self.terms(body)?;
        let admit = |old: &Value| self.admit(Operation::Delete, None, Some(old));
        let is_custom = self.kind.origin == Origin::Custom;
        let mut gone = Vec::new();
        for stored in self.selected()? {
            let subject = Subject::new(&self.kind, stored.namespace(), stored.name());
            match self.server.let_go(&subject, &terms, &admit).await {
                Ok(Gone::Now(object) | Gone::Later(object)) if is_custom => gone.push(self.retyped(object)),
                // Those of built-in kinds are told as they were before.
                Ok(_) => gone.push(shown(&stored, &self.kind, self.version())),
                // Somebody else has seen to it.
                Err(failure) if failure.code == 404 => {}
                Err(failure) => return Err(failure),
            }
        }
        let mut metadata = json!({ "resourceVersion": self.server.store.revision().to_string() });
        if is_custom {
            metadata["continue"] = "".into();
        }
        self.show_all(&gone, &metadata)
    }

    fn retyped(&self, object: Value) -> Value {
        super::object::shown_value(object, &self.kind, self.version())
    }

    /// How objects are to go: as the body says, or else the address.
    fn terms(&self, body: &[u8]) -> Result<Terms, Failure> {
        if body.is_empty() { self.said_terms() } else { Terms::read(&self.sent_terms(body)?) }
    }

    fn said_terms(&self) -> Result<Terms, Failure> {
        let query = &self.head.query;
        query.number::<i64>("gracePeriodSeconds")?;
        let mut options = json!({ "dryRun": query.texts("dryRun") });
        if query.text("orphanDependents").is_some() {
            options["orphanDependents"] = query.flag("orphanDependents").into();
        }
        if let Some(policy) = query.text("propagationPolicy") {
            options["propagationPolicy"] = policy.into();
        }
        Terms::read(&options)
    }

    fn sent_terms(&self, body: &[u8]) -> Result<Value, Failure> {
        let unreadable =
            |problem| Failure::bad_request(format!("couldn't get version/kind; json parse error: {problem}"));
        let (options, _) = match self.encoding()? {
            Encoding::Protobuf => (protobuf::decode_as(body, "meta.k8s.io/v1", "DeleteOptions")?, Vec::new()),
            Encoding::Yaml => decode::read_yaml(body).map_err(unreadable)?,
            Encoding::Json => decode::read_json(body).map_err(unreadable)?,
        };
        let options = if options.is_null() { json!({}) } else { options };
        let said = |name: &str| options.get(name).and_then(Value::as_str).unwrap_or_default();
        if !matches!(said("kind"), "" | "DeleteOptions") {
            let (kind, version) = (said("kind"), said("apiVersion"));
            let message = format!("no kind {kind:?} is registered for version {version:?} in scheme {SCHEME:?}");
            return Err(Failure::bad_request(message));
        }
        decode::check_options(&options)?;
        Ok(options)
    }

    /// What is answered when an object is gone.
    fn farewell(&self, object: &Value) -> Value {
        let mut details = json!({
            "name": metadata::text(object, "name"),
            "kind": self.kind.plural,
            "uid": metadata::text(object, "uid"),
        });
        if !self.kind.group.is_empty() {
            details["group"] = self.kind.group.clone().into();
        }
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
    }
}

impl Server {
    /// Lets an object go, at once or when nothing holds it any more. `admit` has a say about the object as it is.
    pub(crate) async fn let_go(
        &self,
        subject: &Subject,
        terms: &Terms,
        admit: &(dyn Fn(&Value) -> Result<(), Failure> + Sync),
    ) -> Result<Gone, Failure> {
        let kind = &subject.kind;
        let version = kind.stored().or_else(|| kind.versions.first());
        for _ in 0..TRIES {
            let stored = self.store.get(&subject.key);
            let stored = stored.ok_or_else(|| Failure::not_found(kind.resource(), &subject.name))?;
            let old = version.map_or_else(|| stored.value(), |version| shown(&stored, kind, version));
            terms.confirm(kind, &old)?;
            admit(&old)?;
            let mut new = old.clone();
            hold(kind, &mut new, terms.propagation);
            match self.take_leave(subject, &stored, new, terms.is_dry_run).await {
                Ok(gone) => return Ok(gone),
                Err(error) if was_outrun(&error) => {}
                Err(error) => return Err(unkept(&error)),
            }
        }
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Err(Failure::conflict(kind.resource(), &subject.name, why))
    }

    async fn take_leave(
        &self,
        subject: &Subject,
        stored: &Stored,
        mut new: Value,
        is_dry_run: bool,
    ) -> Result<Gone, WriteError> {
        if !is_held(&subject.kind, &new) {
            if is_dry_run {
                return Ok(Gone::Now(new));
            }
            let last = self.drop_object(subject, stored, stored.value()).await?;
            return Ok(Gone::Now(last.value()));
        }
        metadata::begin_deletion(&mut new, &self.now());
        if subject.kind.plural == "namespaces" && subject.kind.group.is_empty() {
            new["status"]["phase"] = "Terminating".into();
            metadata::set(&mut new, "deletionGracePeriodSeconds", None);
        }
        if subject.kind.plural == "customresourcedefinitions" && subject.kind.origin == Origin::BuiltIn {
            self.define(&self.served(), &mut new);
        }
        if is_dry_run {
            return Ok(Gone::Later(new));
        }
        let kept = self.replace(subject, stored, new).await?;
        Ok(Gone::Later(kept.value()))
    }

    /// Changes an object for the server's own sake, whoever else does meanwhile; not at all if nothing is to be changed.
    pub(crate) async fn revise(
        &self,
        subject: &Subject,
        make: impl Fn(&Value) -> Option<Value>,
    ) -> Result<(), Failure> {
        loop {
            let Some(stored) = self.store.get(&subject.key) else { return Ok(()) };
            let old = stored.value();
            let Some(new) = make(&old) else { return Ok(()) };
            let written = if super::update::is_done_with(&subject.kind, &old, &new) {
                self.drop_object(subject, &stored, new).await
            } else {
                self.replace(subject, &stored, new).await
            };
            match written {
                Ok(_) => return Ok(()),
                Err(error) if was_outrun(&error) => {}
                Err(error) => return Err(unkept(&error)),
            }
        }
    }
}

/// Has an object wait for what depends on it, if it is to.
fn hold(kind: &Kind, object: &mut Value, propagation: Option<Propagation>) {
    let mut finalizers: Vec<Value> =
        metadata::field(object, "finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_ours = |finalizer: &Value| finalizer == FOREGROUND || finalizer == ORPHAN;
    let wanted = match propagation {
        None if finalizers.iter().any(is_ours) => return,
        None | Some(Propagation::Background) => None,
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Orphan) => Some(ORPHAN),
    };
    // Namespaces take all that is in them along.
    if kind.group.is_empty() && kind.plural == "namespaces" {
        return;
    }
    finalizers.retain(|finalizer| !is_ours(finalizer));
    if kind.origin == Origin::BuiltIn && kind.plural == "customresourcedefinitions" {
        let is_first = metadata::field(object, "deletionTimestamp").is_none();
        finalizers.extend(is_first.then(|| Value::from(DEFINITION)).filter(|it| !finalizers.contains(it)));
    }
    finalizers.extend(wanted.map(Value::from));
    let list = (!finalizers.is_empty()).then_some(Value::Array(finalizers));
    metadata::set(object, "finalizers", list);
}
