//! What came of holding a value against a schema.

use serde_json::{Value, json};

use crate::field::{ErrorKind, FieldError, Path};

/// Everything that is wrong, and how much was looked at: of several schemas that all refuse a value, the one that
/// looked at most is the one to tell about.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    faults: Vec<Fault>,
    pub(super) looked_at: usize,
}

/// Something that is wrong, with the sentence that tells it from others.
#[derive(Debug)]
struct Fault {
    sentence: String,
    error: FieldError,
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.faults.into_iter().map(|fault| fault.error).collect()
    }

    /// Forgets what is wrong.
    pub(super) fn forgive(&mut self) {
        self.faults.clear();
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.looked_at += other.looked_at;
        for fault in other.faults {
            self.push(fault);
        }
    }

    /// Nothing is told twice.
    fn push(&mut self, fault: Fault) {
        if !self.faults.iter().any(|known| known.sentence == fault.sentence) {
            self.faults.push(fault);
        }
    }

    /// Something is wrong with the value at a path; the sentence goes on after the path.
    pub(super) fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, sentence: &str) {
        self.add(ErrorKind::Invalid, path, value, sentence);
    }

    pub(super) fn type_invalid(&mut self, path: &Path<'_>, type_: &str, found: &str) {
        let found_quoted = json!(found);
        self.add(ErrorKind::TypeInvalid, path, found, &format!("must be of type {type_}: {found_quoted}"));
    }

    fn add(&mut self, kind: ErrorKind, path: &Path<'_>, value: impl Into<Value>, sentence: &str) {
        let sentence = format!("{path} in body {sentence}");
        self.push(Fault { error: FieldError::new(kind, path, value, sentence.clone()), sentence });
    }

    pub(super) fn required(&mut self, path: &Path<'_>) {
        let error = FieldError::bare(ErrorKind::Required, path, "");
        self.push(Fault { sentence: format!("{path} in body is required"), error });
    }

    pub(super) fn not_allowed(&mut self, path: &Path<'_>, value: &Value, allowed: &[Value]) {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let quoted: Vec<_> = allowed.iter().map(|allowed| json!(text(allowed)).to_string()).collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        let error = FieldError::new(ErrorKind::NotSupported, path, value.clone(), detail);
        self.push(Fault { sentence: format!("{path} in body should be one of {allowed:?}"), error });
    }

    pub(super) fn too_long(&mut self, path: &Path<'_>, most: u64) {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let error = FieldError::bare(ErrorKind::TooLong, path, format!("may not be more than {most} {unit}"));
        self.push(Fault { sentence: format!("{path} in body should be at most {most} chars long"), error });
    }

    pub(super) fn too_many(&mut self, path: &Path<'_>, count: usize, most: u64, what: &str) {
        let unit = if most == 1 { "item" } else { "items" };
        let error = FieldError::new(ErrorKind::TooMany, path, count, format!("must have at most {most} {unit}"));
        self.push(Fault { sentence: format!("{path} in body should have at most {most} {what}"), error });
    }

    /// Something is wrong with the value at a path, in words of its own.
    pub(super) fn complaint_about(&mut self, path: &Path<'_>, value: impl Into<Value>, sentence: String) {
        let error = FieldError::new(ErrorKind::Invalid, path, value, sentence.clone());
        self.push(Fault { sentence, error });
    }

    /// Something is wrong that Kubernetes says of no field in particular.
    pub(super) fn complaint(&mut self, sentence: String) {
        let error = FieldError::new(ErrorKind::Invalid, &Path::Root, "", sentence.clone());
        self.push(Fault { sentence, error });
    }
}
