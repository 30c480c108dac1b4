//! The time, as something that is handed in.
//!
//! Whatever waits or compares times asks a [`Clock`], so that a test can move the time by hours without waiting.
//!
//! A machine has two clocks. The wall clock shows a [`Timestamp`], which means the same everywhere, but can be set back and forth.
//! The other shows a [`Tick`], which means nothing elsewhere, but only ever goes forward; it stands still while the machine
//! is suspended. A [`Moment`] is what both show.

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

pub use drover_engine::time::after;
use futures_util::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;

/// A handle to the time. Clones show the same time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Time>);

/// What the clock shows that nobody can set: how long it has run, but for the time that the machine was suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(Duration);

impl Tick {
    /// The tick so long after this one.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// How long after an earlier tick this one is; nothing if that one is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// What both clocks of a machine show at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time on the wall clock.
    pub time: Timestamp,
    /// The tick of the clock that nobody can set.
    pub tick: Tick,
}

impl Moment {
    /// Whether surely less than that duration has passed since an earlier moment: both clocks have to say so.
    ///
    /// One does not count what the machine slept through, the other may have been set. A wall clock that shows less than
    /// before was set back, and says nothing.
    #[must_use]
    pub fn is_within(self, duration: Duration, earlier: Self) -> bool {
        let by_tick = self.tick.since(earlier.tick) < duration;
        let by_time = earlier.time <= self.time && self.time < after(earlier.time, duration);
        by_tick && by_time
    }
}

trait Time: Send + Sync {
    fn moment(&self) -> Moment;
    fn wait_for(&self, tick: Tick) -> BoxFuture<'static, ()>;
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
        self.moment().time
    }

    /// What both of the machine's clocks show.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.0.moment()
    }

    /// What the clock shows that nobody can set.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.moment().tick
    }

    /// Waits until that time; not at all if it has passed.
    pub async fn sleep_until(&self, time: Timestamp) {
        self.0.sleep_until(time).await;
    }

    /// Waits for that tick; not at all if it has passed.
    pub async fn wait_for(&self, tick: Tick) {
        self.0.wait_for(tick).await;
    }

    /// Waits for so long, however the wall clock is set meanwhile.
    pub async fn sleep(&self, duration: Duration) {
        self.wait_for(self.tick().after(duration)).await;
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

struct SystemTime;

/// What ticks are counted from: an `Instant` by itself can not be put into a number.
static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Time for SystemTime {
    fn moment(&self) -> Moment {
        Moment { time: Timestamp::now(), tick: Tick(FIRST.elapsed()) }
    }

    fn wait_for(&self, tick: Tick) -> BoxFuture<'static, ()> {
        let left = tick.since(self.moment().tick);
        Box::pin(tokio::time::sleep(left))
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
pub struct ManualClock(Arc<watch::Sender<Moment>>);

impl ManualClock {
    /// A clock that shows that time.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self(Arc::new(watch::Sender::new(Moment { time, tick: Tick::default() })))
    }

    /// The handle to give to what is tested.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock(Arc::new(self.clone()))
    }

    /// Lets time pass. Whoever waits for a time that has come wakes up.
    pub fn advance(&self, duration: Duration) {
        self.0.send_modify(|moment| {
            *moment = Moment { time: after(moment.time, duration), tick: moment.tick.after(duration) };
        });
    }

    /// Sets the wall clock, back or forth, while no time passes. Forth is also what a machine sees that was suspended.
    pub fn set(&self, time: Timestamp) {
        self.0.send_modify(|moment| moment.time = time);
    }

    /// Waits for what both clocks are to show.
    fn shows(&self, wanted: impl Fn(&Moment) -> bool + Send + 'static) -> BoxFuture<'static, ()> {
        let mut moved = self.0.subscribe();
        Box::pin(async move {
            // An error means that the clock is gone: nobody will move it, and the time never comes.
            if moved.wait_for(wanted).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

impl Time for ManualClock {
    fn moment(&self) -> Moment {
        *self.0.borrow()
    }

    fn wait_for(&self, tick: Tick) -> BoxFuture<'static, ()> {
        self.shows(move |moment| moment.tick >= tick)
    }

    fn sleep_until(&self, time: Timestamp) -> BoxFuture<'static, ()> {
        self.shows(move |moment| moment.time >= time)
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
    async fn a_sleep_does_not_end_sooner_or_later_because_the_clock_was_set() {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let clock = manual.clock();
        let sleeper = tokio::spawn(async move { clock.sleep(Duration::from_hours(2)).await });
        tokio::task::yield_now().await;
        manual.set(after(Timestamp::UNIX_EPOCH, Duration::from_hours(24)));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        manual.set(Timestamp::UNIX_EPOCH);
        manual.advance(Duration::from_hours(2));
        sleeper.await.expect("the sleeper wakes");
    }

    #[test]
    fn a_moment_is_near_only_if_both_clocks_say_so() {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let start = manual.clock().moment();
        let is_near = || manual.clock().moment().is_within(Duration::from_secs(5), start);
        assert!(is_near());
        manual.advance(Duration::from_secs(4));
        assert!(is_near());
        manual.set(after(Timestamp::UNIX_EPOCH, Duration::from_secs(5)));
        assert!(!is_near(), "the machine was suspended");
        manual.set(Timestamp::UNIX_EPOCH);
        assert!(is_near());
        manual.set(Timestamp::MIN);
        assert!(!is_near(), "the clock was set back");
        manual.set(Timestamp::UNIX_EPOCH);
        manual.advance(Duration::from_secs(1));
        assert!(!is_near(), "the clock was set back, and time has passed");
    }

    #[test]
    fn the_clock_of_the_machine_goes_on() {
        let clock = Clock::system();
        let first = clock.moment();
        assert!(clock.tick() >= first.tick);
        assert!(clock.moment().is_within(Duration::from_hours(1), first));
    }

    #[tokio::test]
    async fn a_time_that_has_passed_is_not_waited_for() {
        Clock::system().sleep_until(Timestamp::UNIX_EPOCH).await;
    }
}
