//! Conditions, brought up to date.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Nobody can tell.
    Unknown,
}

impl Holds {
    fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "True",
            Self::No => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// Whether a condition of that type holds; nothing if nobody has said so yet.
#[must_use]
pub fn holds(conditions: &[Condition], type_: &str) -> Option<Holds> {
    let condition = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some(match condition.status.as_str() {
        "True" => Holds::Yes,
        "False" => Holds::No,
        _ => Holds::Unknown,
    })
}

/// What a condition is to say.
#[derive(Clone, Copy, Debug)]
pub struct Says<'a> {
    /// The type of the condition.
    pub type_: &'a str,
    /// Whether it holds.
    pub holds: Holds,
    /// One word for programs.
    pub reason: &'a str,
    /// A sentence for people.
    pub message: &'a str,
    /// The generation of the object that it was found for.
    pub generation: Option<i64>,
}

/// What a condition is to say, but for its type.
pub(crate) struct Word {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Word {
    /// The sentence in it.
    pub(crate) fn into_message(self) -> String {
        self.message
    }
}

pub(crate) fn word(holds: bool, reason: &'static str, message: impl Into<String>) -> Word {
    Word { holds, reason, message: message.into() }
}

/// The conditions that are there, with these brought up to date.
pub(crate) fn with_words<'a>(
    conditions: Vec<Condition>,
    words: impl IntoIterator<Item = (&'a str, Word)>,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    words.into_iter().fold(conditions, |conditions, (type_, Word { holds, reason, message })| {
        with(conditions, Says { type_, holds: holds.into(), reason, message: &message, generation }, now)
    })
}

/// The conditions that are there, with one brought up to date. Its time moves with its status.
#[must_use]
pub fn with(mut conditions: Vec<Condition>, says: Says<'_>, now: Timestamp) -> Vec<Condition> {
    let status = says.holds.as_str();
    let old = conditions.iter().position(|condition| condition.type_ == says.type_);
    let since = old.map(|index| &conditions[index]).filter(|old| old.status == status);
    let condition = Condition {
        type_: says.type_.to_owned(),
        status: status.to_owned(),
        reason: says.reason.to_owned(),
        message: says.message.to_owned(),
        last_transition_time: since.map_or(Time(now), |old| old.last_transition_time.clone()),
        observed_generation: says.generation,
    };
    match old {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(holds: bool, reason: &str) -> Says<'_> {
        Says { type_: "Bound", holds: holds.into(), reason, message: "", generation: Some(2) }
    }

    #[test]
    fn the_time_moves_with_the_status_and_with_nothing_else() {
        let first = Timestamp::UNIX_EPOCH;
        let later = Timestamp::from_second(60).expect("a valid time");
        let conditions = with(Vec::new(), says(true, "First"), first);
        let conditions = with(conditions, says(true, "Second"), later);
        assert_eq!((conditions[0].reason.as_str(), conditions[0].last_transition_time.0), ("Second", first));
        let conditions = with(conditions, says(false, "Third"), later);
        assert_eq!((conditions.len(), conditions[0].last_transition_time.0), (1, later));
    }
}
