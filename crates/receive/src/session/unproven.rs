//! A file that the source has gone on to, until it is shown that it continues what is held.
//!
//! Nothing of it is stored, and so nothing acknowledged, before that. It is believed at once when the file before it ends with
//! a ROTATE event that names it and was written with it, and when its PREVIOUS_GTIDS (MariaDB: GTID_LIST) is the set that the
//! copy holds. In all other cases the source is asked, and its bytes decide. They must, because sets may change lawfully:
//!
//! | what | the set of the next file |
//! |---|---|
//! | MySQL: a transaction with a GTID and `sql_log_bin = 0`, or applied without being logged | has more than the files |
//! | MySQL: `SET GLOBAL gtid_purged` | has none of it: what only the table knows is left out |
//! | MariaDB: `FLUSH BINARY LOGS DELETE_DOMAIN_ID` | has less than the files |
//! | a reset, with as many transactions since as before it | is the same one |
//!
//! (Tried with MySQL 9.7 and MariaDB 11.8. ROTATE and the format description after it have the time of one statement.)

use super::left_file::{LastWord, LeftFile};
use codec::BinlogName;
use codec::event::boundary::Step;
use codec::event::{EventType, FormatDescription};
use codec::gtid::GtidState;

/// Longest time between a ROTATE event and the file that it announces, in seconds. Both have the time at which one statement
/// began.
const ROTATE_SECONDS_MAX: u32 = 2;

/// A file whose beginning arrives.
#[derive(Debug)]
pub(crate) struct Unproven {
    /// Its name.
    pub(crate) name: String,
    /// What the stream was in before.
    pub(crate) left: LeftFile,
    /// Its first events, as they will be stored.
    pub(crate) events: Vec<(Vec<u8>, Step)>,
}

impl Unproven {
    /// Whether the event stands before, or is, the one that states GTIDs.
    pub(crate) fn is_header(event_type: EventType) -> bool {
        matches!(event_type, EventType::FORMAT_DESCRIPTION | EventType::MARIADB_START_ENCRYPTION)
    }

    /// Whether the file needs no proof but what arrived. `unspoken` is what is held and stood in no file's statement before.
    pub(crate) fn is_announced(
        &self,
        format: &FormatDescription,
        before: Option<&GtidState>,
        held: &GtidState,
        unspoken: &GtidState,
    ) -> bool {
        let continues = before.is_none_or(|before| continues(before, held, unspoken));
        match &self.left.last_word {
            Some(LastWord::Rotate { next, timestamp }) => {
                *next == self.name && format.timestamp.abs_diff(*timestamp) <= ROTATE_SECONDS_MAX && continues
            }
            // The server may have been away for any time, so that only the set says anything. A file between them without a
            // transaction would not change the set: the name must be the next one.
            Some(LastWord::Stop) => {
                before.is_some_and(|before| !before.is_empty()) && continues && self.has_next_name()
            }
            None => false,
        }
    }

    fn has_next_name(&self) -> bool {
        BinlogName::parse(&self.left.end.file)
            .is_ok_and(|left| left.successor().is_some_and(|next| next == self.name))
    }
}

/// Whether a file that begins after `before` begins where the copy ends, which holds `held`.
fn continues(before: &GtidState, held: &GtidState, unspoken: &GtidState) -> bool {
    let same_kind = before.is_empty() || held.is_empty() || before.kind() == held.kind();
    same_kind && before.subtract(held).is_empty() && lacks_nothing_of(before, held, unspoken)
}

/// Whether all that is held stands in what came before a file, by that file's word.
pub(crate) fn lacks_nothing_of(before: &GtidState, held: &GtidState, unspoken: &GtidState) -> bool {
    held.subtract(before).subtract(unspoken).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::Position;
    use codec::ServerKind;
    use codec::event::ChecksumAlgorithm;

    fn set(text: &str) -> GtidState {
        GtidState::parse(ServerKind::MySql, &text.replace('A', "aaaaaaaa-0000-0000-0000-000000000001"))
            .unwrap()
    }

    fn format(timestamp: u32) -> FormatDescription {
        FormatDescription {
            timestamp,
            server_id: 1,
            server_version: String::new(),
            created: 0,
            post_header_lens: Vec::new(),
            checksum: ChecksumAlgorithm::Crc32,
        }
    }

    fn announced(last_word: Option<LastWord>, at: u32, before: &str, held: &str, unspoken: &str) -> bool {
        announced_behind("b.000001", last_word, at, before, held, unspoken)
    }

    fn announced_behind(
        left: &str,
        last_word: Option<LastWord>,
        at: u32,
        before: &str,
        held: &str,
        unspoken: &str,
    ) -> bool {
        let left = LeftFile { end: Position::new(left, 99), boundary: 99, tail_start: 4, last_word };
        let file = Unproven { name: "b.000002".to_owned(), left, events: Vec::new() };
        file.is_announced(&format(at), Some(&set(before)), &set(held), &set(unspoken))
    }

    fn rotate(next: &str) -> Option<LastWord> {
        Some(LastWord::Rotate { next: next.to_owned(), timestamp: 100 })
    }

    #[test]
    fn a_file_is_believed_when_the_one_before_names_it_and_the_set_is_the_same() {
        assert!(announced(rotate("b.000002"), 100, "A:1-5", "A:1-5", ""));
        assert!(announced(rotate("b.000002"), 100, "", "", ""), "without GTIDs");
        assert!(announced(rotate("b.000002"), 100, "A:1-4", "A:1-5", "A:5"), "what no file has stated");
        assert!(announced(Some(LastWord::Stop), 5_000, "A:1-5", "A:1-5", ""));
    }

    #[test]
    fn in_all_other_cases_the_source_is_asked() {
        assert!(!announced(None, 100, "A:1-5", "A:1-5", ""), "nobody announced it");
        assert!(!announced(rotate("b.000003"), 100, "A:1-5", "A:1-5", ""));
        assert!(!announced(rotate("b.000002"), 110, "A:1-5", "A:1-5", ""), "of another time");
        assert!(!announced(rotate("b.000002"), 100, "A:1-4", "A:1-5", ""));
        assert!(!announced(rotate("b.000002"), 100, "A:1-6", "A:1-5", ""));
        assert!(!announced(rotate("b.000002"), 100, "", "A:1-5", ""));
        assert!(!announced(Some(LastWord::Stop), 100, "", "", ""), "no GTIDs, no time");
        let behind = |left| announced_behind(left, Some(LastWord::Stop), 100, "A:1-5", "A:1-5", "");
        assert!(behind("b.000001") && !behind("b.000000"), "a file without transactions may stand between");
    }
}
