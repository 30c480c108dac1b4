//! How often the status of a rollout is written.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Resource;

use crate::plan::{PlanPart, Subresource, WriteResult};

/// How long a status that differs by a few counts only is not written again.
const INTERVAL: Duration = Duration::from_secs(1);

/// When the status of a rollout was last written. Only a write that the server has accepted changes
/// it, so that a plan that is dropped delays nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusThrottle(Option<Timestamp>);

impl StatusThrottle {
    /// Whether a status that is not urgent may be written now; otherwise, when.
    pub fn check(self, now: Timestamp) -> Result<(), Timestamp> {
        let Some(written) = self.0 else { return Ok(()) };
        let due = written.checked_add(INTERVAL).unwrap_or(Timestamp::MAX);
        // A clock that was set back does not make it wait for longer.
        if due > now && written <= now { Err(due) } else { Ok(()) }
    }

    /// Records what a part of a plan came to. `K` is the kind whose status is throttled.
    pub fn sent<K, A>(&mut self, part: PlanPart<'_, A>, result: &WriteResult, now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
    {
        if let PlanPart::Write(write) = part
            && write.kind().is::<K>()
            && write.subresource() == Some(Subresource::Status)
            && *result == WriteResult::Done
        {
            self.0 = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use drover_api::work::{ManifestWork, ManifestWorkSpec, ManifestWorkStatus};

    use super::*;
    use crate::plan::{NoAction, Write};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    #[test]
    fn status_is_written_once_a_second() {
        let mut throttle = StatusThrottle::default();
        assert_eq!(throttle.check(at(0)), Ok(()), "it was never written");
        let work = ManifestWork::new("a", ManifestWorkSpec::default());
        let wanted = ManifestWork { status: Some(ManifestWorkStatus::default()), ..work.clone() };
        let status = Write::status(&work, &wanted).expect("it differs");
        let mut sent = |write: &Write, result| {
            throttle.sent::<ManifestWork, NoAction>(PlanPart::Write(write), &result, at(0));
            throttle.check(at(0))
        };
        assert_eq!(sent(&Write::create(work), WriteResult::Done), Ok(()), "that is not its status");
        assert_eq!(sent(&status, WriteResult::Conflict), Ok(()), "it was not accepted");
        assert_eq!(sent(&status, WriteResult::Done), Err(at(1)));
        assert_eq!(throttle.check(at(1)), Ok(()));
        assert_eq!(throttle.check(at(-1)), Ok(()), "the clock was set back");
    }
}
