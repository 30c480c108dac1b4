//! What is said of how something is to be written: by whom, whether it is kept, and what of fields that nobody knows.

use serde_json::{Value, json};

use super::{call::Call, watch::forbidden};
use crate::{
    decode::Strictness,
    failure::Failure,
    field::{ErrorKind, FieldError, Path},
};

/// How long the name of who writes may be.
const LONGEST_MANAGER: usize = 128;

impl Call<'_> {
    /// Whether the options of a write are as they have to be.
    pub(super) fn check_options(&self) -> Result<(), Failure> {
        let query = &self.head.query;
        let mut errors = Vec::new();
        let options = match self.head.method.as_str() {
            "PUT" => "UpdateOptions",
            "PATCH" => {
                errors.extend(self.patch_option_rules());
                "PatchOptions"
            }
            _ => "CreateOptions",
        };
        errors.extend(manager_rules(query.text("fieldManager").unwrap_or_default()));
        errors.extend(dry_run_rule(query.texts("dryRun")));
        let said = query.text("fieldValidation").unwrap_or_default();
        if Strictness::read(said).is_none() {
            errors.push(unsupported("fieldValidation", said, "\"\", \"Ignore\", \"Strict\", \"Warn\""));
        }
        if errors.is_empty() { Ok(()) } else { Err(Failure::invalid_options(options, &errors)) }
    }

    /// Who applies something says who he is, and may insist on it; nobody else may.
    fn patch_option_rules(&self) -> Option<FieldError> {
        let query = &self.head.query;
        if !self.is_apply() {
            return query.flag("force").then(|| forbidden("force", "may not be specified for non-apply patch"));
        }
        let path = Path::Root.field("fieldManager");
        let is_unsaid = query.text("fieldManager").is_none();
        is_unsaid.then(|| FieldError::bare(ErrorKind::Required, &path, "is required for apply patch"))
    }

    /// Whether nothing is to be kept.
    pub(crate) fn is_dry_run(&self) -> bool {
        !self.head.query.texts("dryRun").is_empty()
    }

    /// What to do with fields that the kind does not have.
    pub(crate) fn strictness(&self) -> Strictness {
        Strictness::read(self.head.query.text("fieldValidation").unwrap_or_default()).unwrap_or_default()
    }
}

fn manager_rules(manager: &str) -> Vec<FieldError> {
    let path = Path::Root.field("fieldManager");
    let mut errors = Vec::new();
    if manager.len() > LONGEST_MANAGER {
        let detail = format!("may not be more than {LONGEST_MANAGER} bytes");
        errors.push(FieldError::bare(ErrorKind::TooLong, &path, detail));
    }
    if let Some((place, letter)) = manager.char_indices().find(|(_, letter)| letter.is_control()) {
        let detail = format!("invalid character U+{:04X} (at position {place})", u32::from(letter));
        errors.push(FieldError::new(ErrorKind::Invalid, &path, manager, detail));
    }
    errors
}

/// What is wrong with what is said of a dry run.
pub(super) fn dry_run_rule(said: &[String]) -> Option<FieldError> {
    let is_known = said.iter().all(|it| it == "All");
    (!is_known).then(|| unsupported("dryRun", json!(said), "\"All\""))
}

/// An option that says none of what it can say.
fn unsupported(option: &str, said: impl Into<Value>, supported: &str) -> FieldError {
    let detail = format!("supported values: {supported}");
    FieldError::new(ErrorKind::NotSupported, &Path::Root.field(option), said, detail)
}
