//! The CPU time that something takes in this program.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The CPU time of this thread that something takes, which others on the machine do not change.
pub(crate) fn cpu_time<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let begun = thread_time();
    let result = run();
    (thread_time().saturating_sub(begun), result)
}

/// The median of as many measurements.
pub(crate) fn median(rounds: usize, mut measure: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<_> = (0..rounds).map(|_| measure()).collect();
    times.sort_unstable();
    times[rounds / 2]
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a thread has not run for less than no time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_moved_by_a_measurement_that_was_disturbed() {
        let mut times = [1, 900, 3, 2, 4].into_iter().map(Duration::from_millis);
        assert_eq!(median(5, || times.next().unwrap()), Duration::from_millis(3));
    }
}
