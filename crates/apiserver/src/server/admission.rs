//! What has to hold before something is kept: the rules of its kind, those about roles and signers, and those that administrators write.

use serde_json::Value;

use super::call::Call;
use crate::{
    access::{escalation, is_allowed_for_signer},
    definition,
    depth::{self, TooDeep},
    failure::{About, Cause, Failure},
    field::{ErrorKind, FieldError, Path},
    kind::{Origin, Scope, Version},
    metadata,
    policy::{Operation, Request, flaws},
    store::{Key, Resource},
    strategy,
    user::Part,
};

impl Call<'_> {
    /// Whether objects can be made in the namespace of the call.
    pub(super) fn check_namespace(&self, object: &Value) -> Result<(), Failure> {
        let Some(namespace) = self.place.namespace.as_deref().filter(|_| self.kind.scope == Scope::Namespaced) else {
            return Ok(());
        };
        let namespaces = Resource::new("", "namespaces");
        let stored = self.server.store.get(&Key::new(&namespaces, None, namespace));
        let about = About { group: "", name: "namespaces" };
        let stored = stored.ok_or_else(|| Failure::not_found(about, namespace))?.value();
        if stored.pointer("/metadata/deletionTimestamp").is_none() {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut failure = Failure::forbidden(self.kind.resource(), metadata::text(object, "name"), why);
        let message = format!("namespace {namespace} is being terminated");
        let cause = Cause { reason: "NamespaceTerminating", message, field: "metadata.namespace".to_owned() };
        failure.details.get_or_insert_default().causes.push(cause);
        Err(failure)
    }

    /// What objects of the spoken version say in `apiVersion`.
    pub(super) fn api_version(&self) -> &str {
        let Version { name, .. } = self.version();
        // The address has both, one after the other.
        let start = if self.kind.group.is_empty() { "/api/" } else { "/apis/" };
        let rest = self.head.path.strip_prefix(start).unwrap_or_default();
        let length = self.kind.group.len() + usize::from(!self.kind.group.is_empty()) + name.len();
        rest.get(..length).unwrap_or(name)
    }

    /// Whether an object is as it has to be.
    pub(super) fn check(&self, new: &Value, old: Option<&Value>) -> Result<(), Failure> {
        self.check_depth(new)?;
        let mut errors = strategy::validate(&self.kind, self.part, new, old);
        if let Some(checks) = self.served.checks(&self.kind, &self.place.version) {
            errors = match (self.part, old) {
                (Part::Status, Some(old)) => checks.check_status(errors, new, old),
                _ => checks.check(errors, new, old),
            };
        }
        if self.defines_kinds() && self.part == Part::Whole {
            errors.extend(definition::validate(new, old));
            errors.dedup();
        }
        if self.kind.kind == "ValidatingAdmissionPolicy" && self.kind.origin == Origin::BuiltIn {
            errors.extend(flaws(new));
        }
        if errors.is_empty() { Ok(()) } else { Err(self.invalid(new, &errors)) }
    }

    /// Whether an object nests no deeper than it may: a patch or defaults can make it deeper than
    /// what was sent.
    pub(super) fn check_depth(&self, object: &Value) -> Result<(), Failure> {
        let error = |too_deep: TooDeep| FieldError::bare(ErrorKind::Invalid, &Path::Root, too_deep.to_string());
        depth::check(object).map_err(|too_deep| self.invalid(object, &[error(too_deep)]))
    }

    fn invalid(&self, object: &Value, errors: &[FieldError]) -> Failure {
        let name = metadata::text(object, "name");
        let name = if name.is_empty() { metadata::text(object, "generateName") } else { name };
        Failure::invalid(self.accused(object), name, errors)
    }

    /// What an object that is not as it has to be is said to be.
    fn accused<'o>(&'o self, object: &'o Value) -> About<'o> {
        match (self.kind.origin, self.kind.group.as_str()) {
            // It is what it says it is.
            (Origin::Custom, group) => About { group, name: object["kind"].as_str().unwrap_or(&self.kind.kind) },
            // There is one kind of events, whichever group they are served in.
            (_, "events.k8s.io") => About { group: "", name: &self.kind.kind },
            _ => self.kind.about(),
        }
    }

    /// Whether those who look after the server have nothing against a change.
    pub(super) fn admit(&self, operation: Operation, new: Option<&Value>, old: Option<&Value>) -> Result<(), Failure> {
        let name = self.place.name.as_deref().unwrap_or_default();
        let namespace = self.place.namespace.as_deref().unwrap_or_default();
        if let Some(object) = new.filter(|_| self.kind.group == "rbac.authorization.k8s.io") {
            let write =
                escalation::Write { user: &self.user, resource: &self.kind.plural, namespace, name, object, old };
            escalation::check(&write, &self.server.rules())?;
        }
        if let Some((new, old)) = new.zip(old).filter(|_| self.kind.plural == "certificatesigningrequests") {
            self.check_signer(new, old)?;
        }
        let space = self.namespace_object(namespace, name, new);
        let convert = |object: &Value, version: &str| {
            let mut object = object.clone();
            object["apiVersion"] = self.kind.api_version(version).into();
            object
        };
        let request = Request {
            operation,
            kind: &self.kind,
            version: &self.place.version,
            part: self.part,
            namespace,
            name,
            user: &self.user,
            object: new,
            old,
            namespace_object: space.as_ref(),
            options: None,
            is_dry_run: self.is_dry_run(),
            convert: &convert,
        };
        let warnings = self.server.policies().admit(&request, &self.server.rules())?;
        self.warn(warnings.into_iter().map(|warning| warning.0));
        Ok(())
    }

    /// Whether who decides on a request for a certificate, or signs it, may do that for its signer.
    fn check_signer(&self, new: &Value, old: &Value) -> Result<(), Failure> {
        let part = |object: &Value, pointer: &str| object.pointer(pointer).cloned();
        let is_signed = part(new, "/status/certificate") != part(old, "/status/certificate");
        let verb = match self.part {
            Part::Approval => "approve",
            Part::Status if is_signed => "sign",
            _ => return Ok(()),
        };
        let signer = new.pointer("/spec/signerName").and_then(Value::as_str).unwrap_or_default();
        if is_allowed_for_signer(&self.server.rules(), &self.user, verb, signer) {
            return Ok(());
        }
        let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
        Err(Failure::forbidden(self.kind.resource(), metadata::text(new, "name"), why))
    }

    /// The namespace that something is in, as an object.
    fn namespace_object(&self, namespace: &str, name: &str, new: Option<&Value>) -> Option<Value> {
        if self.is_of_namespaces() {
            return new.cloned().or_else(|| Some(self.server.store.get(&self.subject(name).key)?.value()));
        }
        let key = Key::new(&Resource::new("", "namespaces"), None, namespace);
        (!namespace.is_empty()).then(|| self.server.store.get(&key).map(|stored| stored.value())).flatten()
    }

    /// Says in a definition what the server makes of it.
    pub(super) fn define(&self, object: &mut Value) {
        if self.defines_kinds() && self.part == Part::Whole {
            self.server.define(&self.served, object);
        }
    }
}
