//! Leases.

use serde_json::Value;

use super::look::{number, object, remove};
use crate::field::{ErrorKind, FieldError, Path};

/// A lease always has a specification. Elections that the server holds are not held here, as they are not in a server that nobody told to.
pub(super) fn defaults(lease: &mut Value) {
    if let Some(spec) = object(lease, "spec") {
        remove(spec, "strategy");
        remove(spec, "preferredHolder");
    }
}

/// What is wrong with a lease.
pub(super) fn rules(lease: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("spec");
    let mut errors = Vec::new();
    if let Some(seconds) = number(lease, "/spec/leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        let path = path.field("leaseDurationSeconds");
        errors.push(FieldError::new(ErrorKind::Invalid, &path, seconds, "must be greater than 0"));
    }
    if let Some(count) = number(lease, "/spec/leaseTransitions").filter(|count| *count < 0) {
        let path = path.field("leaseTransitions");
        errors.push(FieldError::new(ErrorKind::Invalid, &path, count, "must be greater than or equal to 0"));
    }
    errors
}
