//! How long a call may take: a clock that progress winds up again, and a limit for the whole.
//!
//! Both stand still while the call waits for a person; afterwards the idle clock is full again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) struct Clock {
    idle: Duration,
    hard: Duration,
    state: Mutex<State>,
    /// A question was answered: the deadlines have to be looked at again.
    released: Notify,
}

struct State {
    started: Instant,
    last_sign: Instant,
    /// Open questions of this call, and since when there has been one.
    held: usize,
    held_since: Instant,
    held_for: Duration,
}

impl Clock {
    pub(crate) fn new(idle: Duration, hard: Duration) -> Clock {
        let now = Instant::now();
        Clock {
            idle,
            hard,
            state: Mutex::new(State {
                started: now,
                last_sign: now,
                held: 0,
                held_since: now,
                held_for: Duration::ZERO,
            }),
            released: Notify::new(),
        }
    }

    /// The server gave a sign of life.
    pub(crate) fn touch(&self) {
        self.lock().last_sign = Instant::now();
    }

    pub(crate) fn hold(&self) {
        let mut state = self.lock();
        if state.held == 0 {
            state.held_since = Instant::now();
        }
        state.held += 1;
    }

    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.held = state.held.saturating_sub(1);
        if state.held == 0 {
            let now = Instant::now();
            let held = now - state.held_since;
            state.held_for += held;
            state.last_sign = now;
            drop(state);
            self.released.notify_one();
        }
    }

    /// Returns when the time is up: how long that was.
    pub(crate) async fn expired(&self) -> Duration {
        loop {
            let Some(deadline) = self.deadline() else {
                self.released.notified().await;
                continue;
            };
            if deadline > Instant::now() {
                tokio::time::sleep_until(deadline).await;
                continue;
            }
            let state = self.lock();
            return if state.last_sign + self.idle <= deadline {
                self.idle
            } else {
                self.hard
            };
        }
    }

    /// `None` while a question is open. Progress only moves it back, so a sleeper need not be woken for it.
    fn deadline(&self) -> Option<Instant> {
        let state = self.lock();
        if state.held > 0 {
            return None;
        }
        let far = Duration::from_secs(60 * 60 * 24 * 365);
        let idle = state.last_sign + self.idle.min(far);
        let hard = state.started + self.hard.min(far) + state.held_for;
        Some(idle.min(hard))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, timeout};

    const SECOND: Duration = Duration::from_secs(1);

    async fn is_expired(clock: &Clock) -> Option<Duration> {
        timeout(Duration::ZERO, clock.expired()).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn progress_winds_the_clock_up_until_the_hard_limit() {
        let clock = Clock::new(10 * SECOND, 25 * SECOND);
        advance(9 * SECOND).await;
        clock.touch();
        advance(9 * SECOND).await;
        assert_eq!(is_expired(&clock).await, None);
        clock.touch();
        advance(8 * SECOND).await;
        assert_eq!(is_expired(&clock).await, Some(25 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_expires() {
        let clock = Clock::new(10 * SECOND, 25 * SECOND);
        assert_eq!(clock.expired().await, 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_during_a_question_and_is_full_afterwards() {
        let clock = Clock::new(10 * SECOND, 25 * SECOND);
        advance(9 * SECOND).await;
        clock.hold();
        clock.hold();
        advance(3600 * SECOND).await;
        assert_eq!(is_expired(&clock).await, None);
        clock.release();
        assert_eq!(is_expired(&clock).await, None);
        clock.release();
        advance(9 * SECOND).await;
        assert_eq!(is_expired(&clock).await, None);
        advance(2 * SECOND).await;
        assert_eq!(is_expired(&clock).await, Some(10 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleeper_wakes_for_the_new_deadline() {
        let clock = std::sync::Arc::new(Clock::new(10 * SECOND, 3600 * SECOND));
        let started = Instant::now();
        let waiter = tokio::spawn({
            let clock = clock.clone();
            async move { clock.expired().await }
        });
        advance(5 * SECOND).await;
        clock.hold();
        advance(20 * SECOND).await;
        clock.release();
        waiter.await.expect("no panic");
        assert_eq!(started.elapsed(), 35 * SECOND);
    }
}
