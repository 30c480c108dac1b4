//! How long something that has failed waits before it is tried again.

use std::time::Duration;

/// Exponential backoff: a first delay, which doubles with each further failure, up to a longest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// A backoff between these delays.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The delay after a failure that follows so many others in a row.
    #[must_use]
    pub fn delay(self, failures_before: u32) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(failures_before)).min(self.longest)
    }

    /// The delays after one failure after the other.
    pub fn delays(self) -> impl Iterator<Item = Duration> {
        (0..=u32::MAX).map(move |failures| self.delay(failures))
    }

    /// The longest delay.
    #[must_use]
    pub const fn longest(self) -> Duration {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(10));
        let delays: Vec<_> = backoff.delays().take(6).map(|delay| delay.as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff.delay(u32::MAX), backoff.longest());
    }
}
