//! The time, as something that is handed in.
//!
//! Whatever waits or compares times asks a [`Clock`], so that a test can move the time by hours without waiting.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A handle to the time. Clones show the same time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Time>);

trait Time: Send + Sync {
    fn now(&self) -> Timestamp;
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
    fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()>;
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(SystemTime))
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// Waits until that time; not at all if it has passed.
    pub async fn sleep_until(&self, time: Timestamp) {
        self.0.sleep_until(time).await;
    }

    /// Waits for so long, whatever becomes of the time meanwhile.
    pub async fn sleep(&self, duration: Duration) {
        self.0.sleep(duration).await;
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// The time so long after another; the end of time where there is none.
#[must_use]
pub fn after(time: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| time.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

struct SystemTime;

impl Time for SystemTime {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // The machine's time may be set while we wait, so it is looked at again; a minute at a time bounds how late that is noticed.
            while let Ok(left) = Duration::try_from(time.duration_since(Timestamp::now())) {
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(Duration::from_mins(1))).await;
            }
        })
    }
}

/// A clock that stands still until it is moved, for tests.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<watch::Sender<Timestamp>>);

impl ManualClock {
    /// A clock that shows that time.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self(Arc::new(watch::Sender::new(time)))
    }

    /// The handle to give to what is tested.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock(Arc::new(self.clone()))
    }

    /// Moves the time forward. Whoever waits for a time that has come wakes up.
    pub fn advance(&self, duration: Duration) {
        self.0.send_modify(|time| *time = after(*time, duration));
    }
}

impl Time for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(after(self.now(), duration))
    }

    fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()> {
        let mut moved = self.0.subscribe();
        Box::pin(async move {
            // An error means that the clock is gone: nobody will move it, and the time never comes.
            if moved.wait_for(|now| *now >= time).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_its_time_has_come_and_not_before() {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let clock = manual.clock();
        let sleeper = tokio::spawn(async move { clock.sleep(Duration::from_hours(2)).await });
        tokio::task::yield_now().await;
        manual.advance(Duration::from_hours(1));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        manual.advance(Duration::from_hours(1));
        sleeper.await.expect("the sleeper wakes");
    }

    #[tokio::test]
    async fn a_time_that_has_passed_is_not_waited_for() {
        Clock::system().sleep_until(Timestamp::UNIX_EPOCH).await;
    }
}
