//! What happens to objects, told as it happens.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use drover_runtime::clock::{Clock, Tick};
use serde_json::{Value, json};

use super::{
    answer::Answer,
    call::Call,
    list::{PATIENCE, Selection, malformed_revision, too_new},
    object::{resource_of, shown, type_prefix, write_shown},
};
use crate::{
    failure::Failure,
    field::{ErrorKind, FieldError, Path},
    kind::{Kind, Version},
    negotiation::{Form, Writing},
    ownership::unforeseen,
    store::{Change, Event, Stored, TooOld, Watch, WatchEnd},
    table::{self, Headings, Include, MetaVersion, Options, Printer},
};

/// What events can be told in, as failures list it.
const STREAMS: [&str; 2] = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
/// How many events are told in one go.
const BATCH: usize = 256;
/// How often a client hears how far it is.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// For how long a client may follow that does not say for how long it wants to.
const LIFETIME: Duration = Duration::from_mins(45);

/// Somebody who is told what happens.
pub(crate) struct Watching {
    kind: Arc<Kind>,
    version: Version,
    selection: Selection,
    form: Form,
    include: Include,
    printer: Option<Printer>,
    has_headings: bool,
    /// What is told before anything else.
    first: VecDeque<Bytes>,
    /// What happens then, or why it can not be told.
    watch: Result<Watch, Failure>,
    has_bookmarks: bool,
    clock: Clock,
    ends: Tick,
    next_bookmark: Tick,
    is_over: bool,
}

/// From where somebody follows.
enum Beginning {
    /// From now, and nothing before.
    Now,
    /// From what is there, once that is not older than a revision.
    State(u64),
    /// From what is there, told apart from what comes then.
    MarkedState(u64),
    /// From after a revision.
    Revision(u64),
}

impl Call<'_> {
    pub(super) async fn watch(&self) -> Result<Answer, Failure> {
        let wanted = self.wanted(false).or_else(|failure| self.wanted(true).map_err(|_| failure))?;
        if wanted.writing == Writing::Yaml {
            return Err(Failure::not_acceptable(&STREAMS));
        }
        let selection = self.selection()?;
        let query = &self.head.query;
        let lifetime = query.number::<u64>("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let lifetime = lifetime.map_or(LIFETIME, Duration::from_secs);
        let beginning = self.watch_beginning()?;
        let (resource, scope) = (resource_of(&self.kind), self.scope(&selection));
        let store = &self.server.store;
        let (state, watch) = match &beginning {
            Beginning::Now => (Vec::new(), Ok(store.start(&resource, &scope).1)),
            Beginning::State(revision) | Beginning::MarkedState(revision) => {
                match store.wait_for(*revision, PATIENCE).await {
                    Ok(()) => {
                        let (state, watch) = store.start(&resource, &scope);
                        (state, Ok(watch))
                    }
                    Err(error) => (Vec::new(), Err(too_new(&error))),
                }
            }
            // A revision that is yet to come may come later.
            Beginning::Revision(revision) => {
                let watch = store.watch(&resource, &scope, *revision);
                (Vec::new(), watch.map_err(|error| expired(&error)))
            }
        };
        let is_asked = |stored: &Stored| selection.takes(stored, &self.kind, self.version());
        let state: Vec<_> = state.into_iter().filter(is_asked).collect();
        let now = self.server.clock.tick();
        let mut watching = Watching {
            version: self.version().clone(),
            selection,
            form: wanted.form,
            include: self.include()?,
            printer: matches!(wanted.form, Form::Table(_)).then(|| Printer::of(&self.kind, self.version())),
            kind: Arc::clone(&self.kind),
            has_headings: false,
            first: VecDeque::new(),
            watch,
            has_bookmarks: query.flag("allowWatchBookmarks"),
            clock: self.server.clock.clone(),
            ends: now.after(lifetime),
            next_bookmark: now.after(BOOKMARK_INTERVAL),
            is_over: false,
        };
        watching.begin(&state, matches!(beginning, Beginning::MarkedState(_)));
        Ok(Answer::Watch(Box::new(watching)))
    }

    fn watch_beginning(&self) -> Result<Beginning, Failure> {
        let query = &self.head.query;
        let (revision, rule) = (query.text("resourceVersion"), query.text("resourceVersionMatch"));
        let initial = query.text("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        if initial.is_some() && rule != Some("NotOlderThan") {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            let path = Path::Root.field("resourceVersionMatch");
            let supported = "supported values: \"NotOlderThan\"";
            let unsupported = rule.map(|rule| FieldError::new(ErrorKind::NotSupported, &path, rule, supported));
            let errors: Vec<_> = [forbidden("resourceVersionMatch", why)].into_iter().chain(unsupported).collect();
            return Err(Failure::invalid_options("ListOptions", &errors));
        }
        if initial.is_none() && rule.is_some() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            return Err(Failure::invalid_options("ListOptions", &[forbidden("resourceVersionMatch", why)]));
        }
        match (initial, revision) {
            (Some(true), revision) => {
                let revision = revision.map_or(Ok(0), read_revision)?;
                let is_marked = query.flag("allowWatchBookmarks");
                Ok(if is_marked { Beginning::MarkedState(revision) } else { Beginning::State(revision) })
            }
            (Some(false), None | Some("0")) => Ok(Beginning::Now),
            (None, None | Some("0")) => Ok(Beginning::State(0)),
            (_, Some(text)) => read_revision(text).map(Beginning::Revision),
        }
    }
}

/// A revision that somebody follows from, or wants an object of.
pub(super) fn read_revision(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| unforeseen(malformed_revision(text)))
}

/// An option that can not be said with what else is said.
pub(super) fn forbidden(option: &str, why: &str) -> FieldError {
    FieldError::bare(ErrorKind::Forbidden, &Path::Root.field(option), why)
}

impl Watching {
    /// Tells what is there, and, if it is asked for, that this was all.
    fn begin(&mut self, state: &[Stored], is_marked: bool) {
        for stored in state {
            let frame = self.frame("ADDED", stored);
            self.first.push_back(frame);
        }
        if is_marked && let Ok(watch) = &mut self.watch {
            let revision = watch.caught_up().unwrap_or_default();
            let frame = self.bookmark(revision, true);
            self.first.push_back(frame);
        }
    }

    /// The next that is told; nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(first) = self.joined_first() {
                return Some(first);
            }
            if self.is_over {
                return None;
            }
            let wakes = if self.has_bookmarks { self.ends.min(self.next_bookmark) } else { self.ends };
            let watch = match &mut self.watch {
                Ok(watch) => watch,
                Err(failure) => {
                    let failure = failure.clone();
                    return Some(self.end(&failure));
                }
            };
            let clock = self.clock.clone();
            tokio::select! {
                biased;
                batch = watch.next_batch(BATCH) => match batch {
                    Ok(events) => {
                        if let Some(bytes) = self.told(&events) {
                            return Some(bytes);
                        }
                    }
                    Err(WatchEnd::TooOld(error)) => return Some(self.end(&expired(&error))),
                    Err(WatchEnd::ResourceGone) => return None,
                },
                () = clock.wait_for(wakes) => {
                    if let Some(bytes) = self.wake() {
                        return Some(bytes);
                    }
                }
            }
        }
    }

    fn joined_first(&mut self) -> Option<Bytes> {
        let mut bytes = BytesMut::from(self.first.pop_front()?);
        for frame in self.first.drain(..) {
            bytes.put_slice(&frame);
        }
        Some(bytes.freeze())
    }

    /// What is told when nothing has happened for a while.
    fn wake(&mut self) -> Option<Bytes> {
        let now = self.clock.tick();
        self.is_over = now >= self.ends;
        self.next_bookmark = now.after(BOOKMARK_INTERVAL);
        let revision = self.watch.as_mut().ok().filter(|_| self.has_bookmarks)?.caught_up()?;
        Some(self.bookmark(revision, false))
    }

    fn end(&mut self, failure: &Failure) -> Bytes {
        self.is_over = true;
        line("ERROR", &failure.status())
    }

    fn told(&mut self, events: &[Arc<Event>]) -> Option<Bytes> {
        let mut bytes = BytesMut::new();
        for event in events {
            let frame = match (self.type_of(event), &event.old) {
                (None, _) => continue,
                // What is no longer asked for is told as it was when it still was.
                (Some("DELETED"), Some(old)) if event.change != Change::Deleted => {
                    let mut object = shown(old, &self.kind, &self.version);
                    crate::metadata::set(
                        &mut object,
                        "resourceVersion",
                        Some(event.object.revision().to_string().into()),
                    );
                    self.frame_of("DELETED", &object)
                }
                (Some(type_), _) => self.frame(type_, &event.object),
            };
            bytes.put_slice(&frame);
        }
        (!bytes.is_empty()).then(|| bytes.freeze())
    }

    /// What an event is to who follows some objects: those come and go when they are no longer what is asked for.
    fn type_of(&self, event: &Event) -> Option<&'static str> {
        let was = event.old.as_ref().is_some_and(|old| self.takes(old));
        let is = event.change != Change::Deleted && self.takes(&event.object);
        match (was, is) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }

    fn takes(&self, stored: &Stored) -> bool {
        self.selection.takes(stored, &self.kind, &self.version)
    }

    fn frame(&mut self, type_: &str, stored: &Stored) -> Bytes {
        match self.form {
            Form::Plain => {
                let mut bytes = BytesMut::with_capacity(stored.bytes().len() + 160);
                bytes.put_slice(format!("{{\"type\":\"{type_}\",\"object\":").as_bytes());
                write_shown(&mut bytes, stored, &self.kind, &self.version, &type_prefix(&self.kind, &self.version));
                bytes.put_slice(b"}\n");
                bytes.freeze()
            }
            Form::Metadata(_) | Form::Table(_) => self.frame_of(type_, &shown(stored, &self.kind, &self.version)),
        }
    }

    fn frame_of(&mut self, type_: &str, object: &Value) -> Bytes {
        let object = match self.form {
            Form::Plain => object.clone(),
            Form::Metadata(meta) => table::metadata_only(object, meta),
            Form::Table(meta) => self.tabled(object, meta),
        };
        line(type_, &object)
    }

    /// An object as a table with one row. The first one says what its columns are.
    fn tabled(&mut self, object: &Value, meta: MetaVersion) -> Value {
        let headings = if self.has_headings { Headings::Hidden } else { Headings::Shown };
        self.has_headings = true;
        let metadata = json!({ "resourceVersion": crate::metadata::text(object, "resourceVersion") });
        let options = Options { meta, include: self.include, headings };
        let printer = self.printer.get_or_insert_with(|| Printer::of(&self.kind, &self.version));
        printer.table(std::slice::from_ref(object), &metadata, options, self.clock.now())
    }

    /// Says how far the client is, which may be after the last event.
    fn bookmark(&mut self, revision: u64, is_initial: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if is_initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object = json!({
            "apiVersion": self.kind.api_version(&self.version.name),
            "kind": self.kind.kind,
            "metadata": metadata,
        });
        self.frame_of("BOOKMARK", &object)
    }
}

fn expired(error: &TooOld) -> Failure {
    Failure::expired(error.to_string())
}

/// One event. Its type comes first, as Kubernetes writes it: clients decide by it how they parse
/// the object.
fn line(type_: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{type_}\",\"object\":{object}}}\n").into()
}
