//! stdin as a stream of messages: reads, frames, and never ends before stdin does.

use std::io;

use super::framing::{Fault, Framer, Item};
use super::limits;
use super::stdio::Input;

#[derive(Debug)]
pub struct Pump {
    input: Input,
    framer: Framer,
    /// The last read took all there was room for: more may be there at once.
    full: bool,
}

/// What reading brought.
#[derive(Debug)]
pub enum Arrival {
    /// Bytes; take what they complete with [`Pump::next`].
    Bytes,
    /// Nothing came for a while, in the middle of a body that is wrong.
    Fault(Fault),
    End,
}

impl Pump {
    pub fn new(input: Input) -> Pump {
        Pump {
            input,
            framer: Framer::new(limits::MESSAGE_BYTES),
            full: false,
        }
    }

    /// Takes effect with the next header.
    pub fn set_limit(&mut self, bytes: usize) {
        self.framer.set_limit(bytes);
    }

    /// Waits for bytes. May be dropped while it waits; nothing is lost then.
    pub async fn read(&mut self) -> io::Result<Arrival> {
        if std::mem::take(&mut self.full) {
            // A host that never pauses must not keep its own requests from being carried out.
            tokio::task::yield_now().await;
        }
        let may_stall = self.framer.may_stall();
        let space = self.framer.space();
        let room = space.capacity() - space.len();
        let read = self.input.read(space);
        let count = if may_stall {
            match tokio::time::timeout(limits::STALL, read).await {
                Ok(count) => count?,
                Err(_) => return Ok(self.framer.settle().map_or(Arrival::Bytes, Arrival::Fault)),
            }
        } else {
            read.await?
        };
        self.full = count >= room;
        Ok(if count == 0 { Arrival::End } else { Arrival::Bytes })
    }

    /// The next complete message or fault among what was read.
    pub fn next(&mut self) -> Option<Item> {
        self.framer.next()
    }
}
