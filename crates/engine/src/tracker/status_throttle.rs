//! How often the status of a rollout is written.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

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

    /// Records that the status was written.
    pub fn written(&mut self, now: Timestamp) {
        self.0 = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    #[test]
    fn status_is_written_once_a_second() {
        let mut throttle = StatusThrottle::default();
        assert_eq!(throttle.check(at(0)), Ok(()), "it was never written");
        throttle.written(at(0));
        assert_eq!(throttle.check(at(0)), Err(at(1)));
        assert_eq!(throttle.check(at(1)), Ok(()));
        assert_eq!(throttle.check(at(-1)), Ok(()), "the clock was set back");
    }
}
