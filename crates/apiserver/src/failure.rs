//! What a request is answered with that could not be done: a Status, as Kubernetes has it.

use serde::Serialize;

use crate::field::FieldError;

/// Why a request could not be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The HTTP code.
    pub code: u16,
    /// The reason, for programs; empty where there is none.
    pub reason: &'static str,
    /// What to tell people.
    pub message: String,
    /// What it is about; boxed, because failures travel in results.
    pub details: Option<Box<Details>>,
}

/// What a failure is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind, or the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// What is wrong in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// How long to wait before it is tried again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The reason, for programs.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
    /// What to tell people.
    pub message: String,
    /// The field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl From<&FieldError> for Cause {
    fn from(error: &FieldError) -> Self {
        let field = if error.field.is_empty() { "<nil>".to_owned() } else { error.field.clone() };
        Self { reason: error.kind.reason(), message: error.body(), field }
    }
}

/// The group and the resource, or the kind, that a failure is about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The resource, or the kind.
    pub name: &'a str,
}

impl std::fmt::Display for About<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.group.is_empty() { f.write_str(self.name) } else { write!(f, "{}.{}", self.name, self.group) }
    }
}

impl Failure {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, details: None }
    }

    fn about(mut self, about: About<'_>, name: &str) -> Self {
        let (group, kind) = (about.group.to_owned(), about.name.to_owned());
        self.details = Some(Box::new(Details { name: name.to_owned(), group, kind, ..Details::default() }));
        self
    }

    fn with_causes(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_default().causes = causes;
        self
    }

    /// What was sent makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    /// Nobody knows who asks.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized".to_owned())
    }

    /// Who asks may not do that. The message says who and what.
    pub fn forbidden(about: About<'_>, name: &str, why: impl std::fmt::Display) -> Self {
        let quoted = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        Self::new(403, "Forbidden", format!("{about}{quoted} is forbidden: {why}")).about(about, name)
    }

    /// There is no such object.
    #[must_use]
    pub fn not_found(about: About<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{about} {name:?} not found")).about(about, name)
    }

    /// There is no such path.
    #[must_use]
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource".to_owned())
            .about(About { group: "", name: "" }, "")
    }

    /// There is nothing at all at such a path; that is told as plain text.
    #[must_use]
    pub fn no_such_page() -> Self {
        Self::new(404, "", "404 page not found\n".to_owned())
    }

    /// Whether it is told as plain text.
    #[must_use]
    pub fn is_of_a_page(&self) -> bool {
        self.code == 404 && self.reason.is_empty()
    }

    /// That can not be done with this resource.
    #[must_use]
    pub fn method_not_allowed(about: About<'_>, verb: &str) -> Self {
        Self::new(405, "MethodNotAllowed", format!("{verb} is not supported on resources of kind \"{about}\""))
            .about(about, "")
    }

    /// Nothing that is acceptable can be answered.
    #[must_use]
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let list = accepted.join(", ");
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {list}"))
    }

    /// There is such an object already.
    #[must_use]
    pub fn already_exists(about: About<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{about} {name:?} already exists")).about(about, name)
    }

    /// Somebody else was faster, or what was presumed is not so.
    pub fn conflict(about: About<'_>, name: &str, why: impl std::fmt::Display) -> Self {
        Self::new(409, "Conflict", format!("Operation cannot be fulfilled on {about} {name:?}: {why}"))
            .about(about, name)
    }

    /// Other managers have the fields that were applied.
    #[must_use]
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::new(409, "Conflict", message).with_causes(causes)
    }

    /// The state that was asked for is not kept any more.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into())
    }

    /// What was sent is too large.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// What was sent is in a format that is not read here.
    #[must_use]
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let list = accepted.join(", ");
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {list}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The object is not as its kind has to be.
    #[must_use]
    pub fn invalid(kind: About<'_>, name: &str, errors: &[FieldError]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = error.to_string();
            // What several rules find is told once; the causes name it every time.
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let listed = match texts.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {listed}"))
            .about(kind, name)
            .with_causes(errors.iter().map(Cause::from).collect())
    }

    /// What was asked for is understood, and can not be done.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message.into())
    }

    /// The options of a request are not as they have to be. `kind` is what Kubernetes calls them.
    #[must_use]
    pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid(About { group: "meta.k8s.io", name: kind }, "", errors)
    }

    /// Something went wrong in here.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        let message = format!("Internal error occurred: {error}");
        let cause = Cause { reason: "", message: error.to_string(), field: String::new() };
        Self::new(500, "InternalError", message).with_causes(vec![cause])
    }
}
