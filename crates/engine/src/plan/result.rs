//! What a write came to: one classification of all answers.

use kube::core::Status;

/// What a write, or an action, came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// The server has accepted it.
    Done,
    /// The object has changed since it was read.
    Conflict,
    /// An object of this name exists. Says which.
    Exists(String),
    /// The object does not exist, or the namespace that it is to be created in. Says which.
    Gone(String),
    /// The account has no right to it. Says to what.
    Forbidden(String),
    /// The server does not accept it. Says why.
    Rejected(String),
    /// The server would accept it at a quieter time.
    Busy,
    /// The server did not answer in time. Nothing is known of the object.
    TimedOut,
    /// The server was not reached, or its answer not understood. Says why.
    Unreachable(String),
}

impl WriteResult {
    /// What an error of the server says.
    #[must_use]
    pub fn of(status: &Status) -> Self {
        let message = || status.message.clone();
        match status {
            status if is_busy(status) => Self::Busy,
            status if status.is_conflict() => Self::Conflict,
            status if status.is_already_exists() => Self::Exists(message()),
            status if status.is_not_found() => Self::Gone(message()),
            status if status.is_forbidden() || status.code == 403 => Self::Forbidden(message()),
            _ => Self::Rejected(message()),
        }
    }

    /// What the server has against the object that was sent; `None` if it has nothing against it,
    /// or there is no answer. That the object has changed is not held against it.
    #[must_use]
    pub fn objection(&self) -> Option<&str> {
        match self {
            Self::Exists(why) | Self::Gone(why) | Self::Forbidden(why) | Self::Rejected(why) => Some(why),
            Self::Done | Self::Conflict | Self::Busy | Self::TimedOut | Self::Unreachable(_) => None,
        }
    }

    /// Whether the cache was out of date: the key is to be planned again, and nothing is wrong.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        matches!(self, Self::Conflict | Self::Exists(_) | Self::Gone(_))
    }

    /// Whether the server is slow: the same is to be sent again later.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        matches!(self, Self::Busy | Self::TimedOut)
    }
}

/// Whether the server would accept the request at a quieter time. Some internal errors say so by
/// asking for a pause.
fn is_busy(status: &Status) -> bool {
    let asks_for_pause = || status.details.as_ref().is_some_and(|details| details.retry_after_seconds > 0);
    [429, 503, 504].contains(&status.code) || (status.code >= 500 && asks_for_pause())
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;

    use super::*;

    fn failure(code: u16, reason: &str, pause: u32) -> WriteResult {
        let details = StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: pause,
        };
        WriteResult::of(&Status::failure("no", reason).with_code(code).with_details(details))
    }

    #[test]
    fn every_answer_has_one_class() {
        let no = || "no".to_owned();
        for (code, reason, pause, result) in [
            (409, "Conflict", 1, WriteResult::Conflict),
            (409, "AlreadyExists", 0, WriteResult::Exists(no())),
            (404, "NotFound", 0, WriteResult::Gone(no())),
            (403, "Forbidden", 0, WriteResult::Forbidden(no())),
            (403, "Other", 0, WriteResult::Forbidden(no())),
            (400, "BadRequest", 0, WriteResult::Rejected(no())),
            (422, "Invalid", 0, WriteResult::Rejected(no())),
            (500, "InternalError", 0, WriteResult::Rejected(no())),
            (500, "InternalError", 1, WriteResult::Busy),
            (429, "TooManyRequests", 0, WriteResult::Busy),
            (429, "TooManyRequests", 9, WriteResult::Busy),
            (503, "ServiceUnavailable", 0, WriteResult::Busy),
            (504, "Timeout", 0, WriteResult::Busy),
        ] {
            assert_eq!(failure(code, reason, pause), result, "{code} {reason} with {pause} s");
        }
    }

    #[test]
    fn conflict_is_no_objection_and_a_name_that_is_taken_is_one() {
        assert_eq!(WriteResult::Conflict.objection(), None);
        let exists = WriteResult::Exists("no".to_owned());
        assert_eq!((exists.objection(), exists.is_outdated()), (Some("no"), true));
        assert_eq!(WriteResult::Unreachable("refused".to_owned()).objection(), None);
    }
}
