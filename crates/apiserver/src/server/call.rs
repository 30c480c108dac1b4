//! A request, from what was sent to what is answered: who may ask that, what it is about, and who does it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    Served, Server,
    answer::{Answer, Body, Head},
    list::{PATIENCE, too_new},
    object::Subject,
    watch::read_revision,
};
use crate::{
    access::{self, Attributes, Resource, impersonation::impersonated},
    decode,
    failure::Failure,
    kind::{Kind, Origin, Scope, Version},
    metadata::names,
    negotiation::{Clause, Form, MEDIA_TYPES, Wanted, Writing, clauses, negotiate, writing},
    protobuf,
    request::{Place, Target},
    selector::Fields,
    user::{Part, User},
};

/// The largest body that is read. The real server takes three megabytes.
pub(crate) const MAX_BODY: usize = 3 << 20;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How objects are sent.
pub(super) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// A request about objects.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) served: Arc<Served>,
    pub(crate) user: User,
    pub(crate) head: &'a Head,
    pub(crate) place: Place,
    pub(crate) kind: Arc<Kind>,
    pub(crate) part: Part,
    warnings: Mutex<Vec<String>>,
}

impl Server {
    /// Answers a request of somebody whose identity was proven, or of nobody in particular. There is no body where it was too large.
    pub(crate) async fn answer(self: &Arc<Self>, user: User, head: &Head, body: Option<Bytes>) -> Answer {
        match self.try_answer(user, head, body).await {
            Ok(answer) => answer,
            Err(failure) => Body::failed(&failure, head).into(),
        }
    }

    async fn try_answer(self: &Arc<Self>, user: User, head: &Head, body: Option<Bytes>) -> Result<Answer, Failure> {
        match Target::read(&head.path) {
            Target::Path(parts) => {
                self.permitted(user, head, None)?;
                self.describe(head, &parts).map(Answer::from)
            }
            Target::Objects(place) => {
                let user = self.permitted(user, head, Some(&place))?;
                let call = self.call(user, head, place)?;
                call.answer(body).await
            }
        }
    }

    /// Who asks, or who that acts as, if he may ask that.
    fn permitted(&self, user: User, head: &Head, place: Option<&Place>) -> Result<User, Failure> {
        let verb = place.map_or_else(|| head.method.as_str().to_lowercase(), |place| verb(head, place).to_owned());
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (namespace, name, subresource) = place.map_or_else(Default::default, |place| {
            (text(&place.namespace), named(head, place), text(&place.subresource))
        });
        let names = |place: &Place| (place.group.clone(), place.version.clone(), place.plural.clone());
        let (group, version, plural) = place.map(names).unwrap_or_default();
        // A namespace is in itself.
        let is_namespace = group.is_empty() && plural == "namespaces" && namespace.is_empty();
        let namespace = if is_namespace { name.clone() } else { namespace };
        let resource = Resource {
            group: &group,
            version: &version,
            resource: &plural,
            subresource: &subresource,
            namespace: &namespace,
            name: &name,
        };
        let target = place.map_or(access::Target::Path(&head.path), |_| access::Target::Resource(resource));
        let verb = verb.as_str();
        let rules = self.rules();
        let headers = head.impersonation.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let acting = impersonated(headers, &Attributes { user: &user, verb, target }, &rules)?;
        let user = acting.unwrap_or(user);
        rules.check(&Attributes { user: &user, verb, target })?;
        Ok(user)
    }

    fn call<'a>(self: &'a Arc<Self>, user: User, head: &'a Head, place: Place) -> Result<Call<'a>, Failure> {
        let served = self.served();
        let found = served.kinds.get(&place.group, &place.version, &place.plural);
        let none = || served.nothing_in(&place.group);
        let kind = found.map(|(kind, _)| kind).ok_or_else(none)?;
        let part = part(&kind, &place)?;
        let is_misplaced = match kind.scope {
            Scope::Cluster => place.namespace.is_some(),
            Scope::Namespaced => place.namespace.is_none() && place.name.is_some(),
        };
        if is_misplaced {
            return Err(served.nothing_in(&place.group));
        }
        Ok(Call { server: self, served, user, head, place, kind, part, warnings: Mutex::default() })
    }
}

/// The name of what is asked, as rights have it.
fn verb(head: &Head, place: &Place) -> &'static str {
    match (head.method.as_str(), place.name.is_some()) {
        _ if place.is_watch => "watch",
        ("GET" | "HEAD", false) if head.query.flag("watch") => "watch",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "",
    }
}

/// The name of the one object that is asked for. Lists can be narrowed down to one.
fn named(head: &Head, place: &Place) -> String {
    place.name.clone().unwrap_or_else(|| {
        let fields = head.query.text("fieldSelector").unwrap_or_default();
        let name = fields.split(',').find_map(|term| term.strip_prefix("metadata.name="));
        name.map(|name| name.trim_start_matches('=').to_owned()).unwrap_or_default()
    })
}

fn part(kind: &Kind, place: &Place) -> Result<Part, Failure> {
    let version = kind.version(&place.version).ok_or_else(Failure::no_such_path)?;
    let parts = &version.subresources;
    let Some(subresource) = &place.subresource else { return Ok(Part::Whole) };
    match subresource.as_str() {
        "status" if parts.status => Ok(Part::Status),
        "scale" if parts.scale.is_some() => Ok(Part::Scale),
        "approval" if parts.others.contains(&"approval") => Ok(Part::Approval),
        "finalize" if parts.others.contains(&"finalize") => Ok(Part::Finalize),
        // What is created there is a token.
        "token" if parts.others.contains(&"token") => Ok(Part::Whole),
        _ if kind.origin == Origin::Custom => {
            Err(Failure::not_found(kind.resource(), place.name.as_deref().unwrap_or_default()))
        }
        _ => Err(Failure::no_such_path()),
    }
}

impl Call<'_> {
    async fn answer(&self, body: Option<Bytes>) -> Result<Answer, Failure> {
        let answer = match self.dispatch(body).await {
            Ok(answer) => answer,
            Err(failure) => Body::failed(&failure, self.head).into(),
        };
        Ok(match answer {
            Answer::Text(mut body) => {
                let deprecation = self.version().deprecation.clone();
                body.warnings = deprecation.into_iter().chain(self.taken_warnings()).collect();
                body.into()
            }
            answer @ Answer::Watch(_) => answer,
        })
    }

    async fn dispatch(&self, body: Option<Bytes>) -> Result<Answer, Failure> {
        let method = self.head.method.as_str();
        self.check_media_type()?;
        let body = body.ok_or_else(|| Failure::too_large(MAX_BODY))?;
        let is_token = self.place.subresource.as_deref() == Some("token");
        if self.kind.origin == Origin::Review && self.place.name.is_some() {
            return Err(Failure::no_such_path());
        }
        if self.kind.origin == Origin::Review || is_token {
            return if method == "POST" { self.review(&body).map(Answer::from) } else { Err(not_allowed()) };
        }
        if let Some(problem) = self.place.name.as_deref().map(names::path_segment).filter(|it| !it.is_empty()) {
            let name = self.place.name.as_deref().unwrap_or_default();
            return Err(Failure::bad_request(format!("Name parameter invalid: {name:?}: {}", problem.join(";"))));
        }
        if matches!(method, "POST" | "PUT" | "PATCH") {
            self.check_options()?;
        }
        let is_custom = self.kind.origin == Origin::Custom;
        // What is done with all objects of a kind is done in a namespace, if they are in one.
        let is_within = self.place.namespace.is_some() == (self.kind.scope == Scope::Namespaced);
        match (method, self.place.name.as_deref()) {
            ("GET" | "HEAD", _) if self.place.is_watch => self.watch().await,
            _ if self.place.is_watch => Err(not_allowed()),
            ("GET" | "HEAD", None) if self.head.query.flag("watch") => self.watch().await,
            ("GET" | "HEAD", None) => self.list().await.map(Answer::from),
            ("GET" | "HEAD", Some(name)) if self.part != Part::Finalize => self.get(name).await.map(Answer::from),
            ("POST", None) if is_within => self.create(&body).await.map(Answer::from),
            // Where custom kinds are served, nobody minds that a new object's name is in the address already.
            ("POST", Some(_)) if is_custom && self.part == Part::Whole => self.create(&body).await.map(Answer::from),
            ("PUT" | "PATCH", None) if is_custom => Err(Failure::bad_request("name must be provided")),
            ("PUT", Some(name)) => self.update(name, &body).await.map(Answer::from),
            ("PATCH", Some(name)) if self.part != Part::Finalize => self.patch(name, &body).await.map(Answer::from),
            ("DELETE", Some(name)) if self.part == Part::Whole => self.delete(name, &body).await.map(Answer::from),
            ("DELETE", None) if !is_within => Err(if is_custom { Failure::no_such_page() } else { not_allowed() }),
            ("DELETE", None) if !self.is_of_namespaces() => self.delete_all(&body).await.map(Answer::from),
            _ => Err(self.not_allowed()),
        }
    }

    /// Whether what is sent is in a format that is read here.
    fn check_media_type(&self) -> Result<(), Failure> {
        match self.head.method.as_str() {
            "POST" | "PUT" => self.encoding().map(|_| ()),
            "PATCH" => self.patch_type().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The failure of what can not be done with objects of the kind.
    fn not_allowed(&self) -> Failure {
        if self.kind.origin == Origin::Custom {
            return Failure::method_not_allowed(self.kind.resource(), verb(self.head, &self.place));
        }
        not_allowed()
    }

    /// The version that is spoken.
    pub(crate) fn version(&self) -> &Version {
        // It was there when the call was made.
        let spoken = self.kind.version(&self.place.version);
        spoken.unwrap_or_else(|| &self.kind.versions[0])
    }

    /// The object of that name that the call is about.
    pub(crate) fn subject(&self, name: &str) -> Subject {
        Subject::new(&self.kind, self.place.namespace.as_deref(), name)
    }

    pub(crate) fn is_of_namespaces(&self) -> bool {
        self.kind.group.is_empty() && self.kind.plural == "namespaces"
    }

    /// Who is known to have written: who says so, or the program that has asked.
    pub(crate) fn manager(&self) -> String {
        let said = self.head.query.text("fieldManager").map(str::to_owned);
        said.unwrap_or_else(|| self.head.user_agent.split('/').next().unwrap_or_default().to_owned())
    }

    pub(crate) fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        self.warnings.lock().extend(warnings);
    }

    fn taken_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }

    /// Reads a body that is an object of the kind, and what it says twice.
    pub(crate) fn read_body(&self, body: &[u8]) -> Result<(Value, Vec<String>), Failure> {
        match self.encoding()? {
            Encoding::Json => decode::json(body, &self.kind),
            Encoding::Yaml => decode::yaml(body, &self.kind),
            Encoding::Protobuf => Ok((protobuf::decode(body)?, Vec::new())),
        }
    }

    /// How the body is encoded.
    pub(super) fn encoding(&self) -> Result<Encoding, Failure> {
        match self.media_type() {
            "" | JSON | "*/*" => Ok(Encoding::Json),
            YAML => Ok(Encoding::Yaml),
            PROTOBUF if self.kind.origin != Origin::Custom => Ok(Encoding::Protobuf),
            _ => Err(Failure::unsupported_media_type(&[JSON, YAML, PROTOBUF])),
        }
    }

    /// The media type of the body, without what is said about it.
    pub(crate) fn media_type(&self) -> &str {
        self.head.content_type.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }

    /// In which form the answer is wanted.
    pub(crate) fn wanted(&self, of_many: bool) -> Result<Wanted, Failure> {
        let wanted = negotiate(self.head.accept.as_deref(), of_many);
        let is_written = || clauses(self.head.accept.as_deref().unwrap_or_default()).iter().any(Clause::is_written);
        wanted.map_err(|failure| {
            if self.kind.origin == Origin::Custom || is_written() { failure } else { unavailable(&MEDIA_TYPES) }
        })
    }

    /// What has one form only, written as is wanted.
    pub(crate) fn written(&self, code: u16, value: &Value) -> Body {
        Body::written(code, value, writing(self.head.accept.as_deref()))
    }

    /// The fields that objects are selected by.
    pub(crate) fn fields(&self) -> Result<Fields, Failure> {
        let said = self.head.query.text("fieldSelector").unwrap_or_default();
        let fields = Fields::parse(&self.kind, self.version(), said)?;
        match self.place.name.as_deref().filter(|_| self.place.is_watch) {
            Some(name) if fields.is_everything() => Fields::named(&self.kind, self.version(), name),
            Some(name) if fields.name() != Some(name) => {
                Err(Failure::bad_request("fieldSelector metadata.name doesn't match requested name"))
            }
            _ => Ok(fields),
        }
    }

    async fn get(&self, name: &str) -> Result<Body, Failure> {
        let wanted = self.wanted(false)?;
        if let Some(text) = self.head.query.text("resourceVersion") {
            let waited = self.server.store.wait_for(read_revision(text)?, PATIENCE).await;
            waited.map_err(|error| too_new(&error))?;
        }
        let subject = self.subject(name);
        let stored = self.server.store.get(&subject.key);
        let stored = stored.ok_or_else(|| Failure::not_found(self.kind.resource(), name))?;
        if self.part == Part::Scale {
            let object = super::object::shown(&stored, &self.kind, self.version());
            return Ok(self.written(200, &self.scale_of(&object)?));
        }
        if wanted == (Wanted { form: Form::Plain, writing: Writing::Json }) {
            return Ok(Body::json(200, super::object::rendered(&stored, &self.kind, self.version())));
        }
        self.show(200, &super::object::shown(&stored, &self.kind, self.version()))
    }
}

/// The failure of an answer in a form that there is not, as it is told for built-in kinds.
pub(super) fn unavailable(forms: &[&str]) -> Failure {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", forms.join(", "));
    Failure { message, details: Some(Box::default()), ..Failure::not_acceptable(forms) }
}

/// The failure of what can not be done with what the address names.
pub(crate) fn not_allowed() -> Failure {
    let message = "the server does not allow this method on the requested resource".to_owned();
    Failure { code: 405, reason: "MethodNotAllowed", message, details: Some(Box::default()) }
}
