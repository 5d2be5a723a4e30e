//! Who reads from binlogd, and for whom files are kept.

use crate::units;
use crate::{ReaderStatus, ServeStatus, SlotStatus};
use std::cmp::Reverse;

/// Readers and slots, in the order in which they concern a person.
#[derive(Clone, Debug)]
pub struct Readers<'a> {
    /// Who reads first, the one that is behind most before the others.
    pub readers: Vec<ReaderRow<'a>>,
    /// How many readers more there are.
    pub readers_left_out: usize,
    /// Those that keep nothing first; those that do what they are for come last.
    pub slots: Vec<SlotRow<'a>>,
    /// How many slots more there are.
    pub slots_left_out: usize,
}

/// A reader, and what is said of it in words.
#[derive(Clone, Debug)]
pub struct ReaderRow<'a> {
    /// The reader.
    pub is: &'a ReaderStatus,
    /// How much and how long it is behind; `None` when that is not known.
    pub behind: Option<String>,
    /// What is asked to hold it back: a point at which it stops, a delay.
    pub held_back: Vec<String>,
}

/// A slot, and what is said of it in words.
#[derive(Clone, Debug)]
pub struct SlotRow<'a> {
    /// The slot.
    pub is: &'a SlotStatus,
    /// Whether its reader is connected, or for how long it has been away.
    pub here: String,
    /// How much and how long it is behind; `None` when its file is gone.
    pub behind: Option<String>,
    /// Why it keeps nothing; `None` while it keeps what its reader lacks.
    pub keeps_nothing: Option<String>,
}

impl<'a> Readers<'a> {
    /// Those of one source, or (`None`) of all; of each so many at the most.
    pub fn of(serve: &'a ServeStatus, source: Option<&str>, most: usize) -> Readers<'a> {
        let is_shown = |of: &str| source.is_none_or(|source| source == of);
        let mut readers: Vec<&ReaderStatus> =
            serve.readers.iter().filter(|reader| is_shown(&reader.source)).collect();
        readers.sort_by_key(|reader| (!reader.dumps(), Reverse(reader.behind_bytes)));
        let mut slots: Vec<&SlotStatus> = serve.slots.iter().filter(|slot| is_shown(&slot.source)).collect();
        slots.sort_by_key(|slot| (slot.released.is_none(), slot.connected, Reverse(slot.behind_bytes)));
        Readers {
            readers_left_out: readers.len().saturating_sub(most),
            slots_left_out: slots.len().saturating_sub(most),
            readers: readers.into_iter().take(most).map(ReaderRow::of).collect(),
            slots: slots.into_iter().take(most).map(SlotRow::of).collect(),
        }
    }

    /// Whether there is neither a reader nor a slot.
    pub fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.slots.is_empty()
    }
}

impl<'a> ReaderRow<'a> {
    fn of(is: &'a ReaderStatus) -> ReaderRow<'a> {
        let behind = match (is.behind_bytes, is.behind_seconds) {
            (None, Some(seconds)) => Some(units::duration(seconds)),
            (bytes, seconds) => bytes.map(|bytes| behind(bytes, seconds)),
        };
        let not_here = is.stop_not_here.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        let stop = is.stop.as_ref().map(|stop| match is.stopped {
            true => format!("stopped as it is meant to: {stop}{not_here}"),
            false => format!("stops {stop}{not_here}"),
        });
        let delay =
            (is.delay_seconds > 0).then(|| format!("delayed by {}", units::duration(is.delay_seconds)));
        ReaderRow { is, behind, held_back: stop.into_iter().chain(delay).collect() }
    }
}

impl<'a> SlotRow<'a> {
    fn of(is: &'a SlotStatus) -> SlotRow<'a> {
        let here = match is.connected {
            true => "connected".to_owned(),
            false => format!("away for {}", units::duration(is.away_seconds)),
        };
        let behind = is.behind_bytes.map(|bytes| behind(bytes, is.behind_seconds));
        let keeps_nothing = is.released.as_ref().map(|why| format!("nothing: {why}"));
        SlotRow { is, here, behind, keeps_nothing }
    }
}

fn behind(bytes: u64, seconds: Option<u64>) -> String {
    match seconds {
        _ if bytes == 0 => "nothing".to_owned(),
        Some(seconds) => format!("{} and {}", units::bytes(bytes), units::duration(seconds)),
        None => units::bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_source_come_in_the_order_of_concern_and_not_all_of_many() {
        let reader = |id, behind_bytes| ReaderStatus {
            id,
            source: "orders".to_owned(),
            command: "Binlog Dump".to_owned(),
            behind_bytes,
            ..ReaderStatus::default()
        };
        let slot = |name: &str, connected, released: Option<&str>| SlotStatus {
            name: name.to_owned(),
            source: "orders".to_owned(),
            connected,
            released: released.map(str::to_owned),
            ..SlotStatus::default()
        };
        let idle = ReaderStatus { command: "Sleep".to_owned(), ..reader(1, None) };
        let other = ReaderStatus { source: "stock".to_owned(), ..reader(2, Some(9)) };
        let serve = ServeStatus {
            readers: vec![idle, other, reader(3, Some(0)), reader(4, Some(5))],
            slots: vec![slot("here", true, None), slot("away", false, None), slot("old", true, Some("late"))],
            ..ServeStatus::default()
        };
        let names = |view: &Readers<'_>| {
            let readers = view.readers.iter().map(|row| row.is.id.to_string());
            readers.chain(view.slots.iter().map(|row| row.is.name.clone())).collect::<Vec<_>>().join(" ")
        };
        let of_source = Readers::of(&serve, Some("orders"), 9);
        assert_eq!(names(&of_source), "4 3 1 old away here");
        let of_all = Readers::of(&serve, None, 2);
        assert_eq!(names(&of_all), "2 4 old away");
        assert_eq!((of_all.readers_left_out, of_all.slots_left_out), (2, 1));
        assert!(Readers::of(&serve, Some("gone"), 9).is_empty());
    }
}
