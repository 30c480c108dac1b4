//! Lists of objects, and how objects are shown.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::{
    answer::Body,
    call::Call,
    object::{resource_of, shown, type_prefix, write_shown},
    watch::forbidden,
};
use crate::{
    depth::MAX_DEPTH,
    failure::Failure,
    field::{ErrorKind, FieldError, Path},
    kind::{Kind, Origin, Version},
    negotiation::{Form, Wanted, Writing},
    selector::{Fields, Labels},
    store::{Continue, ListError, Page, Scope, Stored},
    table::{self, Headings, Include, MetaVersion, Options, Printer},
};

/// How long it is waited for a revision that has not come yet.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// How many objects that nest too deeply are named in warnings about a list.
const MAX_NAMED: usize = 5;

/// Which objects are asked for.
pub(super) struct Selection {
    pub(super) labels: Labels,
    pub(super) fields: Fields,
}

impl Selection {
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether an object is asked for, by who sees it in a version.
    pub(super) fn takes(&self, stored: &Stored, kind: &Kind, version: &Version) -> bool {
        let has_labels = || {
            let labels = stored.labels();
            self.labels.holds_of(|name| labels.get(name).map(String::as_str))
        };
        let has_fields = || self.fields.matches(&shown(stored, kind, version));
        (self.labels.is_everything() || has_labels()) && (self.fields.is_everything() || has_fields())
    }
}

impl Call<'_> {
    /// Which objects are asked for.
    pub(super) fn selection(&self) -> Result<Selection, Failure> {
        let labels = self.head.query.text("labelSelector").unwrap_or_default();
        Ok(Selection { labels: Labels::parse(labels)?, fields: self.fields()? })
    }

    /// Where they are.
    pub(super) fn scope(&self, selection: &Selection) -> Scope {
        match (self.place.namespace.as_deref(), selection.fields.name()) {
            (namespace, Some(name)) if namespace.is_some() || self.kind.scope == crate::kind::Scope::Cluster => {
                Scope::object(namespace, name)
            }
            (Some(namespace), _) => Scope::namespace(namespace),
            (None, _) => Scope::all(),
        }
    }

    /// All objects that are asked for, whatever else is.
    pub(super) fn selected(&self) -> Result<Vec<Stored>, Failure> {
        let selection = self.selection()?;
        let page = self.server.store.list(&resource_of(&self.kind), &self.scope(&selection), None, None);
        let items = page.map_err(Failure::internal)?.items;
        Ok(items.into_iter().filter(|stored| selection.takes(stored, &self.kind, self.version())).collect())
    }

    pub(super) async fn list(&self) -> Result<Body, Failure> {
        let wanted = self.wanted(true)?;
        let selection = self.selection()?;
        let page = self.page(&selection).await?;
        self.warn(self.too_deep(&page.items));
        let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
        if let Some(next) = &page.next {
            metadata["continue"] = token(next).into();
            if selection.is_everything() && page.remaining > 0 {
                metadata["remainingItemCount"] = page.remaining.into();
            }
        }
        // Lists of custom kinds say that they do not go on.
        if wanted.form == Form::Plain && self.kind.origin == Origin::Custom && page.next.is_none() {
            metadata["continue"] = "".into();
        }
        if wanted == (Wanted { form: Form::Plain, writing: Writing::Json }) {
            return Ok(Body::json(200, self.joined(&page.items, &metadata)));
        }
        let objects: Vec<_> = page.items.iter().map(|stored| shown(stored, &self.kind, self.version())).collect();
        self.show_all(&objects, &metadata)
    }

    /// The warnings of objects that nest too deeply. Only the first are named.
    fn too_deep(&self, items: &[Stored]) -> Vec<String> {
        let plural = &self.kind.plural;
        let deep = || items.iter().filter(|stored| stored.is_too_deep());
        let named = deep().take(MAX_NAMED).map(|stored| {
            let name = stored.position();
            format!("{plural} {name:?} nests deeper than {MAX_DEPTH} levels: deeper fields are left out")
        });
        let others = deep().count().saturating_sub(MAX_NAMED);
        let rest = (others > 0).then(|| {
            format!("and {others} more {plural} nest deeper than {MAX_DEPTH} levels: deeper fields are left out")
        });
        named.chain(rest).collect()
    }

    /// The part of the list that is asked for.
    async fn page(&self, selection: &Selection) -> Result<Page, Failure> {
        let query = &self.head.query;
        let limit =
            query.number::<i64>("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        // Whoever takes any state takes all of it.
        let is_any = query.text("resourceVersion") == Some("0") && query.text("continue").is_none();
        let limit = limit.filter(|_| !is_any);
        let from = match query.text("continue") {
            Some(text) => Some(self.resumed(text)?),
            None => self.beginning().await?,
        };
        let (resource, scope) = (resource_of(&self.kind), self.scope(selection));
        let list = |from: Option<&Continue>, limit| {
            self.server
                .store
                .list(&resource, &scope, from, limit)
                .map_err(|error| unlisted(&error, query.text("continue")))
        };
        if selection.is_everything() {
            return list(from.as_ref(), limit);
        }
        let mut page = list(from.as_ref(), None)?;
        page.items.retain(|stored| selection.takes(stored, &self.kind, self.version()));
        let limit = limit.unwrap_or(usize::MAX);
        if page.items.len() > limit {
            page.items.truncate(limit);
            let last = page.items.last();
            page.next = last.map(|last| Continue { revision: page.revision, after: last.position().to_owned() });
        }
        Ok(page)
    }

    /// From which revision on the list is, where one is asked for.
    async fn beginning(&self) -> Result<Option<Continue>, Failure> {
        let query = &self.head.query;
        let revision = query.text("resourceVersion");
        let rule = query.text("resourceVersionMatch");
        let initial = query.text("sendInitialEvents");
        let initial = initial.map(|_| forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        match (revision, rule) {
            (None, Some(_)) => {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                let errors: Vec<_> = [forbidden("resourceVersionMatch", why)].into_iter().chain(initial).collect();
                Err(Failure::invalid_options("ListOptions", &errors))
            }
            _ if initial.is_some() => Err(Failure::invalid_options("ListOptions", initial.as_slice())),
            (_, Some(other)) if !matches!(other, "Exact" | "NotOlderThan") => Err(unsupported_match(other)),
            (Some("0"), Some("Exact")) => {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                Err(Failure::invalid_options("ListOptions", &[forbidden("resourceVersionMatch", why)]))
            }
            (None | Some("0"), _) => Ok(None),
            (Some(text), rule) => {
                let revision = revision_in(text)?;
                self.server.store.wait_for(revision, PATIENCE).await.map_err(|error| too_new(&error))?;
                let is_exact = rule == Some("Exact");
                Ok(is_exact.then(|| Continue { revision, after: String::new() }))
            }
        }
    }

    fn resumed(&self, text: &str) -> Result<Continue, Failure> {
        if self.head.query.text("resourceVersionMatch").is_some() {
            let problems = ["unless resourceVersion is provided", "when continue is provided"];
            let errors = problems.map(|problem| {
                forbidden("resourceVersionMatch", &format!("resourceVersionMatch is forbidden {problem}"))
            });
            let is_said = self.head.query.text("resourceVersion").is_some();
            return Err(Failure::invalid_options("ListOptions", &errors[usize::from(is_said)..]));
        }
        if self.head.query.text("resourceVersion").is_some_and(|version| version != "0") {
            return Err(Failure::bad_request("specifying resource version is not allowed when using continue"));
        }
        read_token(text)
            .ok_or_else(|| Failure::bad_request("invalid continue token: continue key is not valid: invalid character"))
    }

    /// A list of kept objects, without reading them.
    fn joined(&self, items: &[Stored], metadata: &Value) -> Bytes {
        let (kind, version) = (&self.kind, self.version());
        let prefix = type_prefix(kind, version);
        let size: usize = items.iter().map(|stored| stored.bytes().len() + prefix.len() + 2).sum();
        let mut bytes = BytesMut::with_capacity(size + 256);
        let head = format!("{{\"apiVersion\":\"{}\",\"items\":[", kind.api_version(&version.name));
        bytes.put_slice(head.as_bytes());
        let is_custom = kind.origin == Origin::Custom;
        let is_plain = !is_custom && kind.group != "events.k8s.io";
        for (place, stored) in items.iter().enumerate() {
            if place > 0 {
                bytes.put_u8(b',');
            }
            // Only objects of custom kinds say in lists what they are.
            if is_plain {
                bytes.put_slice(&stored.bounded());
            } else if !is_custom {
                let event = untyped(shown(stored, kind, version));
                bytes.put_slice(event.to_string().as_bytes());
            } else {
                write_shown(&mut bytes, stored, kind, version, &prefix);
            }
        }
        bytes.put_slice(format!("],\"kind\":\"{}\",\"metadata\":{metadata}}}", kind.list_kind).as_bytes());
        bytes.freeze()
    }

    /// Shows an object as it is wanted.
    pub(super) fn show(&self, code: u16, object: &Value) -> Result<Body, Failure> {
        let wanted = self.wanted(false)?;
        let shown = match wanted.form {
            Form::Plain => return Ok(Body::written(code, object, wanted.writing)),
            Form::Table(meta) => {
                let metadata = json!({ "resourceVersion": crate::metadata::text(object, "resourceVersion") });
                self.tabled(std::slice::from_ref(object), &metadata, meta)?
            }
            Form::Metadata(meta) => table::metadata_only(object, meta),
        };
        Ok(Body::written(code, &shown, wanted.writing))
    }

    /// Shows objects as they are wanted.
    pub(super) fn show_all(&self, objects: &[Value], metadata: &Value) -> Result<Body, Failure> {
        let wanted = self.wanted(true)?;
        let shown = match wanted.form {
            Form::Plain => {
                let is_custom = self.kind.origin == Origin::Custom;
                let item = |object: &Value| if is_custom { object.clone() } else { untyped(object.clone()) };
                json!({
                    "apiVersion": self.kind.api_version(&self.version().name),
                    "kind": self.kind.list_kind,
                    "metadata": metadata,
                    "items": objects.iter().map(item).collect::<Vec<_>>(),
                })
            }
            Form::Table(meta) => self.tabled(objects, metadata, meta)?,
            Form::Metadata(meta) => table::metadata_only_list(objects, metadata, meta),
        };
        Ok(Body::written(200, &shown, wanted.writing))
    }

    fn tabled(&self, objects: &[Value], metadata: &Value, meta: MetaVersion) -> Result<Value, Failure> {
        let options = Options { meta, include: self.include()?, headings: Headings::Shown };
        let printer = Printer::of(&self.kind, self.version());
        Ok(printer.table(objects, metadata, options, self.server.clock.now()))
    }

    pub(super) fn include(&self) -> Result<Include, Failure> {
        Include::parse(self.head.query.text("includeObject").unwrap_or_default())
    }
}

/// An object as it is in a list of a built-in kind, which says for all of them what they are.
fn untyped(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    object
}

/// A revision, as clients write it.
pub(super) fn revision_in(text: &str) -> Result<u64, Failure> {
    let malformed = |_| Failure::bad_request(format!("invalid resource version: {}", malformed_revision(text)));
    text.parse().map_err(malformed)
}

pub(super) fn malformed_revision(text: &str) -> String {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let problem = if is_number { "value out of range" } else { "invalid syntax" };
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {problem}")
}

fn unsupported_match(said: &str) -> Failure {
    let path = Path::Root.field("resourceVersionMatch");
    let supported = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
    Failure::invalid_options("ListOptions", &[FieldError::new(ErrorKind::NotSupported, &path, said, supported)])
}

pub(super) fn too_new(error: &crate::store::TooNew) -> Failure {
    let cause = crate::failure::Cause {
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    let details = crate::failure::Details { causes: vec![cause], retry_after_seconds: 1, ..Default::default() };
    let message = format!("Timeout: {error}");
    Failure { code: 504, reason: "Timeout", message, details: Some(Box::new(details)) }
}

fn unlisted(error: &ListError, resumed: Option<&str>) -> Failure {
    match error {
        ListError::TooNew(error) => too_new(error),
        ListError::TooOld(_) if resumed.is_some() => Failure::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
        ),
        ListError::TooOld(error) => {
            Failure::expired(format!("The resourceVersion for the provided list is too old: {error}"))
        }
    }
}

/// Where a list goes on, as clients hand it back.
fn token(next: &Continue) -> String {
    let token = json!({ "v": "meta.k8s.io/v1", "rv": next.revision, "start": next.after });
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(text: &str) -> Option<Continue> {
    let token: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    Some(Continue { revision: token["rv"].as_u64()?, after: token["start"].as_str()?.to_owned() })
}
