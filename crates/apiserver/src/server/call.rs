//! A request, from what was sent to what is answered: who may ask that, what it is about, and who does it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::{Served, Server, object::Subject, watch::Watching};
use crate::{
    access::{self, Attributes, Resource, impersonation::impersonated},
    decode::{self, Strictness},
    failure::Failure,
    field::{ErrorKind, FieldError, Path},
    kind::{Kind, Origin, Scope, Version},
    negotiation::{Clause, Form, MEDIA_TYPES, Wanted, Writing, clauses, negotiate},
    protobuf,
    request::{Place, Query, Target},
    selector::Fields,
    user::{Part, User},
};

/// The largest body that is read. The real server takes three megabytes.
pub(crate) const MAX_BODY: usize = 3 << 20;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// What comes before the body of a request.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) accept: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) user_agent: String,
    /// The headers by which somebody acts as somebody else.
    pub(crate) impersonation: Vec<(String, String)>,
}

/// What is answered.
pub(crate) enum Answer {
    /// A text, at once.
    Text(Body),
    /// What happens, as it happens.
    Watch(Box<Watching>),
}

/// A text that is answered.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) code: u16,
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
    /// What to warn of.
    pub(crate) warnings: Vec<String>,
    /// After how many seconds to come back, if that is asked for.
    pub(crate) retry_after: Option<u32>,
}

impl Body {
    pub(crate) fn json(code: u16, bytes: impl Into<Bytes>) -> Self {
        Self { code, media_type: JSON.to_owned(), bytes: bytes.into(), warnings: Vec::new(), retry_after: None }
    }

    pub(crate) fn value(code: u16, value: &Value) -> Self {
        Self::json(code, value.to_string())
    }
}

impl From<Body> for Answer {
    fn from(body: Body) -> Self {
        Self::Text(body)
    }
}

impl From<&Failure> for Body {
    fn from(failure: &Failure) -> Self {
        if failure.is_of_a_page() {
            let media_type = "text/plain; charset=utf-8".to_owned();
            return Self { media_type, ..Self::json(failure.code, failure.message.clone()) };
        }
        let retry_after = failure.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        Self { retry_after: (retry_after > 0).then_some(retry_after), ..Self::value(failure.code, &failure.status()) }
    }
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
    /// Answers a request of somebody whose identity was proven, or of nobody in particular.
    pub(crate) async fn answer(self: &Arc<Self>, user: User, head: &Head, body: Bytes) -> Answer {
        match self.try_answer(user, head, body).await {
            Ok(answer) => answer,
            Err(failure) => Body::from(&failure).into(),
        }
    }

    async fn try_answer(self: &Arc<Self>, user: User, head: &Head, body: Bytes) -> Result<Answer, Failure> {
        match Target::read(&head.path) {
            Target::Path(parts) => {
                let user = self.permitted(user, head, None)?;
                self.describe(&user, head, &parts).map(Answer::from)
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
        let is_built_in = || {
            let known = |kind: &Kind| kind.group == place.group && kind.origin != Origin::Custom;
            place.group.is_empty() || super::all_kinds(&served).iter().any(|kind| known(kind))
        };
        let none = || if is_built_in() { Failure::no_such_path() } else { Failure::no_such_page() };
        let kind = found.map(|(kind, _)| kind).ok_or_else(none)?;
        let part = part(&kind, &place)?;
        let is_misplaced = match kind.scope {
            Scope::Cluster => place.namespace.is_some(),
            Scope::Namespaced => place.namespace.is_none() && place.name.is_some(),
        };
        if is_misplaced {
            return Err(Failure::no_such_path());
        }
        Ok(Call { server: self, served, user, head, place, kind, part, warnings: Mutex::default() })
    }
}

/// The name of what is asked, as rights have it.
fn verb(head: &Head, place: &Place) -> &'static str {
    match (head.method.as_str(), place.name.is_some()) {
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
    async fn answer(&self, body: Bytes) -> Result<Answer, Failure> {
        let answer = match self.dispatch(body).await {
            Ok(answer) => answer,
            Err(failure) => Body::from(&failure).into(),
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

    async fn dispatch(&self, body: Bytes) -> Result<Answer, Failure> {
        let method = self.head.method.as_str();
        let is_token = self.place.subresource.as_deref() == Some("token");
        if self.kind.origin == Origin::Review || is_token {
            return if method == "POST" { self.review(&body).map(Answer::from) } else { Err(not_allowed()) };
        }
        if matches!(method, "POST" | "PUT" | "PATCH") {
            self.is_dry_run()?;
            self.strictness()?;
        }
        let is_custom = self.kind.origin == Origin::Custom;
        match (method, self.place.name.as_deref()) {
            ("GET" | "HEAD", None) if self.head.query.flag("watch") => self.watch().await,
            ("GET" | "HEAD", None) => self.list().await.map(Answer::from),
            ("GET" | "HEAD", Some(name)) => self.get(name).map(Answer::from),
            ("POST", None) if self.place.namespace.is_some() == (self.kind.scope == Scope::Namespaced) => {
                self.create(&body).await.map(Answer::from)
            }
            // Where custom kinds are served, nobody minds that a new object's name is in the address already.
            ("POST", Some(_)) if is_custom && self.part == Part::Whole => self.create(&body).await.map(Answer::from),
            ("PUT" | "PATCH", None) if is_custom => Err(Failure::bad_request("name must be provided")),
            ("PUT", Some(name)) => self.update(name, &body).await.map(Answer::from),
            ("PATCH", Some(name)) if self.part != Part::Finalize => self.patch(name, &body).await.map(Answer::from),
            ("DELETE", Some(name)) if self.part == Part::Whole => self.delete(name, &body).await.map(Answer::from),
            ("DELETE", None) if !self.is_of_namespaces() => self.delete_all(&body).await.map(Answer::from),
            _ => Err(not_allowed()),
        }
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

    /// Whether nothing is to be kept.
    pub(crate) fn is_dry_run(&self) -> Result<bool, Failure> {
        match self.head.query.text("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(self.unsupported("dryRun", json!([other]), "\"All\"")),
        }
    }

    pub(crate) fn strictness(&self) -> Result<Strictness, Failure> {
        let said = self.head.query.text("fieldValidation").unwrap_or_default();
        Strictness::read(said)
            .ok_or_else(|| self.unsupported("fieldValidation", said.into(), "\"\", \"Ignore\", \"Strict\", \"Warn\""))
    }

    /// The failure of an option that says none of what it can say.
    fn unsupported(&self, option: &str, said: Value, supported: &str) -> Failure {
        let options = match self.head.method.as_str() {
            "PUT" => "UpdateOptions",
            "PATCH" => "PatchOptions",
            "DELETE" => "DeleteOptions",
            _ => "CreateOptions",
        };
        let detail = format!("supported values: {supported}");
        let error = FieldError::new(ErrorKind::NotSupported, &Path::Root.field(option), said, detail);
        Failure::invalid_options(options, &[error])
    }

    /// Who is known to have written: who says so, or the program that has asked.
    pub(crate) fn manager(&self) -> String {
        let said = self.head.query.text("fieldManager").map(str::to_owned);
        said.unwrap_or_else(|| self.head.user_agent.split('/').next().unwrap_or_default().to_owned())
    }

    pub(crate) fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    fn taken_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads a body that is an object of the kind, and what it says twice.
    pub(crate) fn read_body(&self, body: &[u8]) -> Result<(Value, Vec<String>), Failure> {
        match self.media_type() {
            "" | JSON | "*/*" => decode::json(body, &self.kind),
            YAML => decode::yaml(body, &self.kind),
            PROTOBUF if self.kind.origin != Origin::Custom => Ok((protobuf::decode(body)?, Vec::new())),
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
        wanted.map_err(
            |failure| {
                if self.kind.origin == Origin::Custom || is_written() { failure } else { unavailable() }
            },
        )
    }

    /// The fields that objects are selected by.
    pub(crate) fn fields(&self) -> Result<Fields, Failure> {
        Fields::parse(&self.kind, self.version(), self.head.query.text("fieldSelector").unwrap_or_default())
    }

    fn get(&self, name: &str) -> Result<Body, Failure> {
        let wanted = self.wanted(false)?;
        let subject = self.subject(name);
        let stored = self.server.store.get(&subject.key);
        let stored = stored.ok_or_else(|| Failure::not_found(self.kind.resource(), name))?;
        if self.part == Part::Scale {
            let object = super::object::shown(&stored, &self.kind, self.version());
            return Ok(Body::value(200, &self.scale_of(&object)?));
        }
        if wanted == (Wanted { form: Form::Plain, writing: Writing::Json }) {
            return Ok(Body::json(200, super::object::rendered(&stored, &self.kind, self.version())));
        }
        self.show(200, &super::object::shown(&stored, &self.kind, self.version()))
    }
}

/// The failure of an answer in a form that there is not, as it is told for built-in kinds.
fn unavailable() -> Failure {
    let list = MEDIA_TYPES.join(", ");
    let message = format!("406: Not Acceptable\n\nAvailable representations: {list}");
    Failure { message, details: Some(Box::default()), ..Failure::not_acceptable(&MEDIA_TYPES) }
}

/// The failure of what can not be done with what the address names.
pub(crate) fn not_allowed() -> Failure {
    let message = "the server does not allow this method on the requested resource".to_owned();
    Failure { code: 405, reason: "MethodNotAllowed", message, details: Some(Box::default()) }
}

impl Failure {
    /// The Status.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = serde_json::to_value(details).unwrap_or_default();
        }
        status
    }
}
