//! For how long the readers of slots were away while they could have come.
//!
//! Time in which binlogd did not run, or had no port, is no absence of a reader. So it is counted from look to look, by a clock
//! that nobody sets, and the count is written into the slot now and then.

use super::slots::Slot;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A look that comes later than this after the one before counts as no more: the disk hung, or the machine was asleep.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// So long after the first look no slot is given up: readers have to find back, and are behind by what came meanwhile.
const SETTLING: Duration = Duration::from_secs(600);

/// The count is written down each time that it has grown by so much.
const WRITE_INTERVAL: Duration = Duration::from_secs(600);

/// Of the slots of one source.
#[derive(Debug, Default)]
pub(super) struct Absence {
    first_look: Option<Instant>,
    last_look: Option<Instant>,
    slots: BTreeMap<String, Duration>,
}

impl Absence {
    /// A look, at `at`, at slots and whether each is in use; gives the names of those whose count is to be written down.
    pub(super) fn look<'a>(
        &mut self,
        slots: impl Iterator<Item = (&'a Slot, bool)>,
        at: Instant,
    ) -> Vec<&'a Slot> {
        let passed = self.last_look.map_or(Duration::ZERO, |last| at.saturating_duration_since(last));
        let passed = passed.min(LOOK_MAX);
        self.last_look = Some(at);
        self.first_look.get_or_insert(at);
        let mut known = std::mem::take(&mut self.slots);
        let mut due = Vec::new();
        for (slot, is_in_use) in slots {
            let written = Duration::from_secs(slot.absent_seconds);
            let absent = match known.remove(&slot.name) {
                _ if is_in_use => Duration::ZERO,
                Some(absent) => absent + passed,
                None => written,
            };
            if !is_in_use && absent >= written + WRITE_INTERVAL {
                due.push(slot);
            }
            self.slots.insert(slot.name.clone(), absent);
        }
        due
    }

    /// How long the reader of a slot was away while it could have come.
    pub(super) fn of(&self, slot: &Slot) -> Duration {
        self.slots.get(&slot.name).copied().unwrap_or(Duration::from_secs(slot.absent_seconds))
    }

    /// Whether readers have had the time to come back.
    pub(super) fn has_settled(&self) -> bool {
        let looks = self.first_look.zip(self.last_look);
        looks.is_some_and(|(first, last)| last.saturating_duration_since(first) >= SETTLING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(absent_seconds: u64) -> Slot {
        Slot {
            name: "warehouse".to_owned(),
            timeline: String::new(),
            file: String::new(),
            offset: 0,
            event_time: 0,
            reader: String::new(),
            seen_at: String::new(),
            absent_seconds,
            made_at: String::new(),
        }
    }

    #[test]
    fn only_time_from_look_to_look_counts() {
        let (began, seconds) = (Instant::now(), Duration::from_secs);
        let at = |second| began + seconds(second);
        let mut absence = Absence::default();
        let written = slot(7000);
        assert_eq!(absence.of(&written), seconds(7000), "before the first look, as it was written down");
        assert!(absence.look([(&written, false)].into_iter(), at(0)).is_empty());
        assert_eq!((absence.of(&written), absence.has_settled()), (seconds(7000), false));
        absence.look([(&written, false)].into_iter(), at(5));
        assert_eq!(absence.of(&written), seconds(7005));
        absence.look([(&written, false)].into_iter(), at(100_000));
        assert_eq!(absence.of(&written), seconds(7065), "nobody knows what was in between");
        assert!(absence.has_settled());
        let mut due = Vec::new();
        for look in 1..=9 {
            due = absence.look([(&written, false)].into_iter(), at(100_000 + 60 * look));
        }
        assert_eq!((due.len(), absence.of(&written)), (1, seconds(7605)));
        absence.look([(&written, true)].into_iter(), at(100_600));
        assert_eq!(absence.of(&written), Duration::ZERO, "it is here");
    }
}
