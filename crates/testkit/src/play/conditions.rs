//! Conditions as other programs report them.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// A condition that holds, found for an object's present generation.
pub(super) fn holds(type_: &str, reason: &str, message: &str, generation: Option<i64>) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: Time(Timestamp::now()),
    }
}

/// A condition that does not hold, found for an object's present generation.
pub(super) fn fails(type_: &str, reason: &str, message: &str, generation: Option<i64>) -> Condition {
    Condition { status: "False".to_owned(), ..holds(type_, reason, message, generation) }
}
