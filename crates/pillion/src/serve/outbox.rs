//! The one way out: every answer, notification and request to the host, in order, within a budget of bytes.
//!
//! Only tasks of requests wait for room. The reader of stdin and the manager's news never do: they may go over the
//! budget by a bounded amount, and what may be lost (a log line, a progress report) is dropped before that.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::frame::Frame;
use super::limits;
use super::stdio::Output;
use crate::memory;

#[derive(Clone, Debug)]
pub struct Outbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    budget: usize,
    state: Mutex<State>,
    /// Something was queued, or the queue was closed.
    filled: Notify,
    /// Something was written.
    drained: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Frame>,
    /// News from before `initialized`; nothing else may hold frames back.
    held: Option<Vec<Frame>>,
    /// The cost of what is in the queue, held back, or being written.
    bytes: usize,
    /// The highest cost since the queue was empty.
    peak: usize,
    closed: bool,
    /// Something was dropped, and the log says so.
    losing: bool,
}

/// How much a frame matters when the host does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The host cannot do without it.
    Needed,
    /// The next one of its kind tells as much.
    Spare,
}

impl Outbox {
    /// Notifications are held back until [`Outbox::release`].
    pub fn new() -> Outbox {
        Outbox::with_budget(limits::OUTBOX_BYTES)
    }

    fn with_budget(budget: usize) -> Outbox {
        let state = State {
            held: Some(Vec::new()),
            ..State::default()
        };
        Outbox(Arc::new(Shared {
            budget,
            state: Mutex::new(state),
            filled: Notify::new(),
            drained: Notify::new(),
        }))
    }

    /// Queues an answer, waiting for room where there is none.
    pub async fn reply(&self, frame: Frame) {
        let mut frame = frame;
        loop {
            // Made before the look at the queue, so that room made in between is not missed.
            let drained = self.0.drained.notified();
            match self.try_push(frame) {
                Ok(()) => return,
                Err(back) => frame = back,
            }
            drained.await;
        }
    }

    /// Queues what the reader of stdin itself has to say. Never waits.
    pub fn push(&self, frame: Frame) {
        let mut state = self.state();
        if state.bytes + frame.cost() > self.0.budget + limits::OUTBOX_OVERDRAFT {
            return lose(&mut state);
        }
        self.queue(state, frame);
    }

    /// Queues news for the host. Never waits.
    pub fn news(&self, frame: Frame, weight: Weight) {
        let mut state = self.state();
        let limit = match weight {
            Weight::Needed => self.0.budget + limits::OUTBOX_OVERDRAFT,
            Weight::Spare => self.0.budget,
        };
        if state.bytes + frame.cost() > limit {
            return lose(&mut state);
        }
        if state.held.is_none() {
            return self.queue(state, frame);
        }
        if !state.closed {
            state.bytes += frame.cost();
            state.held.get_or_insert_default().push(frame);
        }
    }

    /// Queues news that must not be lost. Never waits; `false` where there is no room.
    pub fn deliver(&self, frame: Frame) -> bool {
        let is_room = {
            let state = self.state();
            // A frame bigger than the budget goes alone.
            !state.closed && (state.bytes == 0 || state.bytes + frame.cost() <= self.0.budget)
        };
        if is_room {
            self.news(frame, Weight::Needed);
        }
        is_room
    }

    /// The host is initialized: what was held back goes out, in order.
    pub fn release(&self) {
        let mut state = self.state();
        if let Some(held) = state.held.take() {
            state.queue.extend(held);
            self.0.filled.notify_one();
        }
    }

    /// Whether news are still held back.
    pub fn is_holding(&self) -> bool {
        self.state().held.is_some()
    }

    /// Waits until everything queued was written or can no longer be.
    pub async fn flushed(&self) {
        loop {
            let drained = self.0.drained.notified();
            {
                let state = self.state();
                let held: usize = state.held.iter().flatten().map(Frame::cost).sum();
                if state.closed || state.bytes == held {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Writes what is queued until writing fails: the task that owns stdout. Answers why it ended.
    pub async fn write_to(&self, mut output: Output) -> io::Error {
        let mut batch = VecDeque::new();
        let mut written = 0;
        loop {
            self.next_batch(&mut batch).await;
            while let Some(first) = batch.front() {
                let count = {
                    let rest = batch.iter().skip(1).map(Frame::bytes);
                    let slices: Vec<IoSlice<'_>> = std::iter::once(&first.bytes()[written..])
                        .chain(rest)
                        .map(IoSlice::new)
                        .collect();
                    output.write(&slices).await
                };
                let count = match count {
                    Ok(count) => count,
                    Err(fault) => {
                        self.close();
                        return fault;
                    }
                };
                written += count;
                let mut freed = 0;
                while let Some(frame) = batch.pop_front_if(|frame| frame.len() <= written) {
                    written -= frame.len();
                    freed += frame.cost();
                }
                if freed > 0 {
                    self.freed(freed);
                }
            }
        }
    }

    fn freed(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes -= bytes;
        let peak = if state.bytes == 0 {
            std::mem::take(&mut state.peak)
        } else {
            0
        };
        drop(state);
        if peak > limits::OUTBOX_OVERDRAFT {
            memory::give_back();
        }
        self.0.drained.notify_waiters();
    }

    /// All that is queued, up to what one write takes.
    async fn next_batch(&self, batch: &mut VecDeque<Frame>) {
        loop {
            {
                let mut state = self.state();
                let count = state.queue.len().min(limits::FRAMES_PER_WRITE);
                batch.extend(state.queue.drain(..count));
                if state.queue.is_empty() {
                    // After a burst.
                    state.queue.shrink_to(limits::FRAMES_PER_WRITE);
                }
            }
            if !batch.is_empty() {
                return;
            }
            self.0.filled.notified().await;
        }
    }

    fn try_push(&self, frame: Frame) -> Result<(), Frame> {
        let state = self.state();
        // A frame bigger than the budget goes alone.
        if state.bytes > 0 && state.bytes + frame.cost() > self.0.budget && !state.closed {
            return Err(frame);
        }
        self.queue(state, frame);
        Ok(())
    }

    fn queue(&self, mut state: MutexGuard<'_, State>, frame: Frame) {
        if state.closed {
            return;
        }
        state.bytes += frame.cost();
        state.peak = state.peak.max(state.bytes);
        state.queue.push_back(frame);
        if state.queue.len() == 1 {
            self.0.filled.notify_one();
        }
    }

    /// Nobody reads any more: everything queued and to come is dropped.
    fn close(&self) {
        let mut state = self.state();
        *state = State {
            closed: true,
            ..State::default()
        };
        self.0.drained.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lose(state: &mut State) {
    if !std::mem::replace(&mut state.losing, true) {
        tracing::warn!(
            queued = state.bytes,
            "the host does not read: messages to it are dropped"
        );
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn frame(number: u64) -> Frame {
        Frame::request(number, "m", &json!("x".repeat(100)))
    }

    fn numbers(bytes: &[u8]) -> Vec<u64> {
        let text = std::str::from_utf8(bytes).unwrap();
        let after = text.split(r#""id":"#).skip(1);
        after
            .map(|rest| rest.split(',').next().unwrap().parse().unwrap())
            .collect()
    }

    async fn written(outbox: Outbox) -> Vec<u64> {
        written_after(outbox, async {}).await
    }

    /// Everything that is written until the queue is empty, once `last` is done.
    async fn written_after(outbox: Outbox, last: impl Future<Output = ()>) -> Vec<u64> {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let output = super::super::stdio::writer(writer).unwrap();
        let task = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_to(output).await }
        });
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            File::from(reader).read_to_end(&mut bytes).map(|_| bytes)
        });
        last.await;
        outbox.flushed().await;
        task.abort();
        numbers(&read.await.unwrap().unwrap())
    }

    #[tokio::test]
    async fn frames_leave_in_order() {
        let outbox = Outbox::new();
        outbox.release();
        let expected: Vec<u64> = (0..5000).collect();
        for number in &expected {
            match number % 3 {
                0 => outbox.push(frame(*number)),
                1 => outbox.news(frame(*number), Weight::Needed),
                _ => outbox.reply(frame(*number)).await,
            }
        }
        assert_eq!(written(outbox).await, expected);
    }

    #[tokio::test]
    async fn news_wait_for_initialized_and_answers_do_not() {
        let outbox = Outbox::new();
        outbox.news(frame(1), Weight::Needed);
        outbox.news(frame(2), Weight::Spare);
        outbox.push(frame(3));
        assert_eq!(written(outbox.clone()).await, [3]);
        outbox.release();
        outbox.news(frame(4), Weight::Needed);
        assert_eq!(written(outbox).await, [1, 2, 4]);
    }

    #[tokio::test]
    async fn only_answers_wait_for_room() {
        let outbox = Outbox::with_budget(2 * frame(1).cost());
        outbox.release();
        outbox.reply(frame(1)).await;
        outbox.reply(frame(2)).await;
        let mut waiting = Box::pin(outbox.reply(frame(3)));
        assert!(
            tokio::time::timeout(Duration::from_millis(10), &mut waiting)
                .await
                .is_err()
        );
        outbox.news(frame(4), Weight::Spare);
        outbox.news(frame(5), Weight::Needed);
        outbox.push(frame(6));
        let numbers = written_after(outbox.clone(), waiting).await;
        assert_eq!(
            numbers,
            [1, 2, 5, 6, 3],
            "the spare one is lost, the others overtake the one that waits"
        );
    }

    #[tokio::test]
    async fn nobody_waits_for_a_reader_that_is_gone() {
        let outbox = Outbox::with_budget(1);
        outbox.release();
        outbox.reply(frame(1)).await;
        let waiting = outbox.reply(frame(2));
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let output = super::super::stdio::writer(writer).unwrap();
        let (fault, ()) = tokio::join!(outbox.write_to(output), waiting);
        assert_eq!(fault.kind(), io::ErrorKind::BrokenPipe);
        outbox.flushed().await;
    }
}
