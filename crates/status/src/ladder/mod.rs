//! The four positions of one stream, as a receiver publishes them.

pub(crate) mod place;

use codec::Position;
use config::FsyncMode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The ladder `received >= written >= durable >= acknowledged`. A rung is null until it is known.
///
/// The receiver owns one value, moves its rungs as it goes, and publishes the whole with
/// [`SourceMonitor::publish_positions`](super::SourceMonitor::publish_positions); a reader therefore never sees rungs
/// of two different moments. After a file switch a lower rung may still stand in the previous file.
///
/// With `fsync_mode = 0` the operator lets binlogd acknowledge what is only written, so there `acknowledged` may be
/// ahead of `durable`, though never of `written`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ladder {
    /// End of the bytes that arrived from the source and passed their checksum.
    #[serde(with = "place")]
    pub received: Option<Position>,
    /// End of the bytes handed to the kernel: they survive a crash of binlogd, not of the machine.
    #[serde(with = "place")]
    pub written: Option<Position>,
    /// End of the bytes that fdatasync has covered: they survive a crash of the machine.
    #[serde(with = "place")]
    pub durable: Option<Position>,
    /// The last position acknowledged to the source. Stays null without semi-sync.
    #[serde(with = "place")]
    pub acknowledged: Option<Position>,
}

impl Ladder {
    /// The names of the rungs, top first, as JSON and metrics spell them.
    pub const RUNGS: [&'static str; 4] = ["received", "written", "durable", "acknowledged"];

    /// The rungs with their names, top first.
    pub fn rungs(&self) -> [(&'static str, Option<&Position>); 4] {
        let [received, written, durable, acknowledged] = Self::RUNGS;
        [
            (received, self.received.as_ref()),
            (written, self.written.as_ref()),
            (durable, self.durable.as_ref()),
            (acknowledged, self.acknowledged.as_ref()),
        ]
    }

    /// Whether no rung stands above the one it must not pass. Rungs in different files are not compared: file names
    /// say nothing sure about order, since a source may be reset or replaced.
    pub fn is_ordered(&self, fsync_mode: FsyncMode) -> bool {
        let acknowledge_limit = match fsync_mode {
            FsyncMode::WriteThenAcknowledge => &self.written,
            FsyncMode::SyncThenAcknowledge => &self.durable,
        };
        not_above(&self.written, &self.received)
            && not_above(&self.durable, &self.written)
            && not_above(&self.acknowledged, acknowledge_limit)
    }

    /// Takes over `newer`. A rung that stays in its file copies one integer and leaves the name's reference count be.
    pub(crate) fn advance_to(&mut self, newer: &Ladder) {
        advance(&mut self.received, &newer.received);
        advance(&mut self.written, &newer.written);
        advance(&mut self.durable, &newer.durable);
        advance(&mut self.acknowledged, &newer.acknowledged);
    }
}

fn not_above(lower: &Option<Position>, upper: &Option<Position>) -> bool {
    match (lower, upper) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(lower), Some(upper)) => lower.file != upper.file || lower.offset <= upper.offset,
    }
}

fn advance(rung: &mut Option<Position>, newer: &Option<Position>) {
    match (rung, newer) {
        (Some(rung), Some(newer)) if Arc::ptr_eq(&rung.file, &newer.file) => rung.offset = newer.offset,
        (rung, newer) => rung.clone_from(newer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FsyncMode::{SyncThenAcknowledge, WriteThenAcknowledge};

    fn at(file: &Arc<str>, position: u64) -> Option<Position> {
        Some(Position::new(file.clone(), position))
    }

    #[test]
    fn order_is_checked_within_a_file_and_not_across_files() {
        let (old, new): (Arc<str>, Arc<str>) = ("bin.000001".into(), "bin.000002".into());
        let mut ladder = Ladder {
            received: at(&new, 30),
            written: at(&new, 20),
            durable: at(&new, 20),
            acknowledged: at(&old, 900),
        };
        assert!(ladder.is_ordered(SyncThenAcknowledge));
        ladder.acknowledged = at(&new, 21);
        assert!(!ladder.is_ordered(SyncThenAcknowledge));
        ladder.durable = at(&new, 25);
        assert!(!ladder.is_ordered(WriteThenAcknowledge), "durable above written");
    }

    #[test]
    fn written_may_be_acknowledged_only_in_fsync_mode_0() {
        let file: Arc<str> = "bin.000001".into();
        let ladder = Ladder {
            received: at(&file, 9),
            written: at(&file, 9),
            durable: at(&file, 4),
            acknowledged: at(&file, 9),
        };
        assert!(ladder.is_ordered(WriteThenAcknowledge));
        assert!(!ladder.is_ordered(SyncThenAcknowledge));
    }

    #[test]
    fn a_known_rung_below_an_unknown_one_is_out_of_order() {
        let file: Arc<str> = "bin.000001".into();
        assert!(!Ladder { written: at(&file, 4), ..Ladder::default() }.is_ordered(SyncThenAcknowledge));
        assert!(Ladder::default().is_ordered(SyncThenAcknowledge));
    }

    #[test]
    fn advancing_takes_over_every_rung() {
        let (old, new): (Arc<str>, Arc<str>) = ("bin.000001".into(), "bin.000002".into());
        let mut seen = Ladder { received: at(&old, 4), ..Ladder::default() };
        for newer in [
            Ladder { received: at(&old, 9), written: at(&old, 9), ..Ladder::default() },
            Ladder {
                received: at(&new, 4),
                written: at(&old, 9),
                durable: at(&old, 9),
                acknowledged: at(&old, 8),
            },
            Ladder::default(),
        ] {
            seen.advance_to(&newer);
            assert_eq!(seen, newer);
        }
    }

    #[test]
    fn json_names_file_and_position_and_uses_null_for_unknown() {
        let file: Arc<str> = "mysql-bin.000003".into();
        let ladder = Ladder { received: at(&file, 1234), ..Ladder::default() };
        let json = serde_json::to_value(&ladder).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "received": {"file": "mysql-bin.000003", "position": 1234},
                "written": null, "durable": null, "acknowledged": null,
            })
        );
        assert_eq!(serde_json::from_value::<Ladder>(json).unwrap(), ladder);
    }
}
