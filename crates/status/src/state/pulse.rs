//! The pulse of a thread that receives: that it comes round, and what it may wait for now. Felt by an onlooker, who has the
//! clock; see `daemon/watch/progress.rs`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits of the pulse that hold the [`Place`]; those above count.
const PLACE_BITS: u32 = 2;

/// Where the receiving thread is, which says how long it may stay there without coming round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It has not begun or has ended, recovers the copy, pauses before the next attempt, or waits for an operator or for another
    /// thread of ours that waits for the disk: no time is too long.
    Rests,
    /// Outside a session: it connects, asks the source, compares logs.
    Asks,
    /// In a session, at work: it stores, makes durable, acknowledges.
    Works,
    /// In a session, waiting for the source's next bytes.
    Reads,
}

impl Place {
    /// What the thread does there, in words.
    pub fn words(self) -> &'static str {
        match self {
            Place::Rests => "resting",
            Place::Asks => "connecting to the source or asking it",
            Place::Works => "storing or acknowledging what has arrived",
            Place::Reads => "reading from the source",
        }
    }
}

/// Written by the receiving thread alone. A beat costs a relaxed load and a relaxed store.
#[derive(Debug, Default)]
pub struct Pulse(AtomicU64);

impl Pulse {
    /// The thread has come to `place`, or has come round there.
    pub fn beat(&self, place: Place) {
        let count = self.0.load(Relaxed) >> PLACE_BITS;
        self.0.store(count.wrapping_add(1) << PLACE_BITS | place as u64, Relaxed);
    }

    /// A number that is another one after each beat, and the place of the last.
    pub fn feel(&self) -> (u64, Place) {
        let pulse = self.0.load(Relaxed);
        let place = match pulse & ((1 << PLACE_BITS) - 1) {
            0 => Place::Rests,
            1 => Place::Asks,
            2 => Place::Works,
            _ => Place::Reads,
        };
        (pulse, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_beat_is_felt_with_its_place() {
        let pulse = Pulse::default();
        let mut before = pulse.feel();
        assert_eq!(before, (0, Place::Rests));
        for place in [Place::Asks, Place::Works, Place::Reads, Place::Reads, Place::Rests] {
            pulse.beat(place);
            let now = pulse.feel();
            assert!(now.0 != before.0 && now.1 == place, "{now:?} after {before:?}");
            before = now;
        }
    }
}
