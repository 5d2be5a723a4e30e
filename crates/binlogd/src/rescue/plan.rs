//! Which transactions of the copy a server lacks.

use super::statements::{Translator, summary};
use crate::log::held::{HeldGtids, present_history};
use crate::log::index;
use crate::log::recover::files_in_order;
use crate::log::transactions::{StoredTransaction, TransactionReader};
use crate::upstream::identify::SourceIdentity;
use codec::gtid::{GtidState, TransactionId};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A transaction that the copy holds and the target lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacked {
    /// Its GTID.
    pub id: TransactionId,
    /// Folder name of the timeline that holds it.
    pub timeline: String,
    /// The file that holds it.
    pub path: PathBuf,
    /// Where it begins there.
    pub at: u64,
    /// Where it ends there.
    pub end: u64,
    /// Seconds since 1970 at which it was begun on its source.
    pub timestamp: u32,
    /// What it changes: `schema.table` of its rows, the beginning of its statements.
    pub changes: Vec<String>,
}

impl Lacked {
    /// Length in the binary log, in bytes.
    pub fn size(&self) -> u64 {
        self.end - self.at
    }
}

/// Everything that is to be known before anything is sent.
#[derive(Debug, Default)]
pub struct Plan {
    /// What to hand over, in the order of the copy.
    pub transactions: Vec<Lacked>,
    /// Their GTIDs.
    pub gtids: GtidState,
    /// Lacked transactions that no file of the copy holds: they were executed before the copy began.
    pub not_held: GtidState,
    /// Lacked transactions that cannot be handed over by statements, and why. While there are any, nothing is sent.
    pub refused: Vec<(Lacked, String)>,
    /// Transactions of the target's own that a fork took from it and that its GTIDs name now: they were handed back since, or
    /// it gave their GTIDs to others after its crash. Their numbers cannot tell.
    pub lost_once: GtidState,
    /// Transactions without a GTID, of which nobody can say whether the target has them.
    pub anonymous: u64,
    /// Length of the longest statement, in bytes: what `max_allowed_packet` must exceed.
    pub longest_statement: u64,
}

/// Why the copy cannot be read for it.
#[derive(Debug, Error)]
pub enum PlanError {
    /// A file or folder.
    #[error("cannot read the copy: {0}")]
    Read(#[from] io::Error),
}

impl Plan {
    /// Goes through the timelines of the present history in `source_folder` for what the server lacks. Files that hold nothing
    /// new by the word of the one after them are not read. `look_at` is told each file that is.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged.
    pub fn make(
        source_folder: &Path,
        held: &HeldGtids,
        server: &SourceIdentity,
        mut look_at: impl FnMut(&Path),
    ) -> Result<Plan, PlanError> {
        let mut plan = Plan { gtids: GtidState::empty(server.executed.flavour()), ..Plan::default() };
        for timeline in present_history(source_folder)?.into_iter().map(|timeline| timeline.folder) {
            let files = files_in_order(&timeline, &index::read(&timeline)?, &mut Vec::new())?;
            for (position, name) in files.iter().enumerate() {
                let next = files.get(position + 1).map(|next| timeline.join(next));
                if plan.has_nothing_new(next.as_deref(), server)? {
                    continue;
                }
                let path = timeline.join(name);
                look_at(&path);
                plan.read_file(&timeline, &path, server)?;
            }
        }
        let mut found = plan.gtids.clone();
        for (refused, _) in &plan.refused {
            // A state of one flavour takes its own GTIDs; the target's flavour was compared before.
            let _ = found.insert(refused.id);
        }
        plan.not_held = server.lacks(&held.all()).subtract(&found);
        let own = server.own(&held.lost);
        plan.lost_once = own.subtract(&server.lacks(&own));
        Ok(plan)
    }

    /// Bytes of all that is to be handed over.
    pub fn size(&self) -> u64 {
        self.transactions.iter().map(Lacked::size).sum()
    }

    /// True when everything up to the end of a file is there already, as the file after it says.
    fn has_nothing_new(&self, next: Option<&Path>, server: &SourceIdentity) -> io::Result<bool> {
        let Some(next) = next else { return Ok(false) };
        // One that has no whole head yet says nothing.
        let Ok(mut reader) = TransactionReader::open(next) else { return Ok(false) };
        let Some(before) = reader.gtids_before()? else { return Ok(false) };
        Ok(!before.is_empty() && server.lacks(&before).is_empty())
    }

    fn read_file(&mut self, timeline: &Path, path: &Path, server: &SourceIdentity) -> io::Result<()> {
        if std::fs::metadata(path)?.len() <= 4 {
            return Ok(()); // Begun, and nothing in it yet.
        }
        let mut reader = TransactionReader::open(path)?;
        let format = reader.format_event().to_vec();
        loop {
            let gtids = &self.gtids;
            let wanted =
                |id: Option<&TransactionId>| id.is_none_or(|id| !server.has(id) && !gtids.contains(id));
            let Some(transaction) = reader.next(wanted)? else { return Ok(()) };
            self.take(timeline, path, &transaction, &format);
        }
    }

    fn take(&mut self, timeline: &Path, path: &Path, transaction: &StoredTransaction, format: &[u8]) {
        let Some(id) = transaction.id else {
            self.anonymous += 1;
            return;
        };
        let summary = summary(transaction);
        let mut lacked = Lacked {
            id,
            timeline: timeline.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path: path.to_owned(),
            at: transaction.at,
            end: transaction.end,
            timestamp: 0,
            changes: Vec::new(),
        };
        // Translated once for nothing: what cannot be handed over must be known before the first is.
        let statements = summary.and_then(|summary| {
            (lacked.timestamp, lacked.changes) = (summary.timestamp, summary.changes);
            Translator::default().statements(transaction, format)
        });
        match statements {
            Ok(statements) => {
                let longest = statements.iter().map(Vec::len).max().unwrap_or(0) as u64;
                self.longest_statement = self.longest_statement.max(longest);
                let _ = self.gtids.insert(id);
                self.transactions.push(lacked);
            }
            Err(why) => self.refused.push((lacked, why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::recover::test_files::{FileBuilder, SERVER_UUID, first_timeline};
    use crate::log::storage::PosixStorage;
    use crate::log::timeline::{Reason, ServerKind, Timeline};
    use crate::upstream::identify::SourceSemiSync;
    use codec::gtid::Flavour;

    const TARGET: &str = "cccccccc-0000-0000-0000-000000000003";

    fn set(text: &str) -> GtidState {
        GtidState::parse(Flavour::Mysql, text).unwrap()
    }

    fn transaction(mut builder: FileBuilder, number: u64, events: &[(u8, &[u8])]) -> FileBuilder {
        let gtid = [&[0][..], &[0xab; 16], &number.to_le_bytes()].concat();
        builder.event(33, &gtid);
        builder.event(2, &[&[0; 14][..], b"BEGIN"].concat());
        for (code, body) in events {
            builder.event(*code, body);
        }
        builder.event(16, &number.to_le_bytes());
        builder
    }

    fn rows(builder: FileBuilder, number: u64) -> FileBuilder {
        let map = b"\x01\0\0\0\0\0\x01\0\x01d\0\x01t\0";
        transaction(builder, number, &[(19, map), (30, &[1, 0, 0, 0, 0, 0, 1, 0, 9, 9])])
    }

    fn timeline(dir: &Path, number: u32, uuid: &str) -> PathBuf {
        let reason = if number == 1 { Reason::First } else { Reason::Fork };
        let info = Timeline { reason, ..first_timeline(uuid) };
        info.create(&PosixStorage, dir, number).unwrap()
    }

    /// Two timelines: 1 to 4 in two files; then a fork whose source had 1 to 3 and reads 3 again.
    fn copy() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (timeline(dir.path(), 1, "a"), timeline(dir.path(), 2, "b"));
        let first = rows(rows(FileBuilder::new().previous_gtids(""), 1), 2).rotate("b.000002").finish();
        let before = format!("{SERVER_UUID}:1-2");
        let second = rows(rows(FileBuilder::new().previous_gtids(&before), 3), 4).finish();
        std::fs::write(old.join("b.000001"), first).unwrap();
        std::fs::write(old.join("b.000002"), &second[..second.len() - 3]).unwrap();
        let again = rows(rows(FileBuilder::new().previous_gtids(&before), 3), 4).finish();
        std::fs::write(new.join("b.000001"), again).unwrap();
        dir
    }

    fn plan(dir: &Path, executed: &str) -> (Plan, Vec<String>) {
        let held = HeldGtids {
            lost: set(&format!("{SERVER_UUID}:1-3,{SERVER_UUID}:9,{TARGET}:5-6")),
            history: set(&format!("{SERVER_UUID}:1-4")),
            newest_uuid: "b".into(),
        };
        let server = SourceIdentity {
            version: String::new(),
            kind: ServerKind::Mysql,
            server_id: 1,
            uuid: TARGET.into(),
            has_gtids: true,
            executed: set(executed),
            applied: codec::gtid::MariadbGtidState::new(),
            purged: set(""),
            semi_sync: SourceSemiSync::Absent,
            is_read_only: false,
            knows_checksums: true,
        };
        let mut looked = Vec::new();
        let plan = Plan::make(dir, &held, &server, |path| {
            looked.push(path.strip_prefix(dir).unwrap().display().to_string());
        });
        (plan.unwrap(), looked)
    }

    #[test]
    fn each_lacked_transaction_is_found_once_and_in_order() {
        let dir = copy();
        let (plan, looked) = plan(dir.path(), &format!("{SERVER_UUID}:1-2,{TARGET}:5"));
        assert_eq!(looked, ["0001-a/b.000002", "0002-b/b.000001"], "the first file holds nothing new");
        let found: Vec<_> = plan
            .transactions
            .iter()
            .map(|lacked| (lacked.id.to_string(), lacked.timeline.as_str()))
            .collect();
        assert_eq!(
            found,
            [(format!("{SERVER_UUID}:3"), "0001-a"), (format!("{SERVER_UUID}:4"), "0002-b")],
            "of 4 the older timeline has a part only"
        );
        assert_eq!(plan.gtids, set(&format!("{SERVER_UUID}:3-4")));
        assert_eq!(plan.not_held, set(&format!("{SERVER_UUID}:9,{TARGET}:6")));
        assert_eq!(plan.lost_once, set(&format!("{TARGET}:5")));
        assert_eq!(plan.transactions[0].changes, ["d.t"]);
        assert!(plan.transactions[0].size() > 50 && plan.longest_statement > 50 && plan.anonymous == 0);
    }

    #[test]
    fn nothing_is_lacked_by_a_server_that_has_all() {
        let dir = copy();
        let (plan, _) = plan(dir.path(), &format!("{SERVER_UUID}:1-9,{TARGET}:1-9"));
        assert!(plan.transactions.is_empty() && plan.not_held.is_empty() && plan.refused.is_empty());
    }

    #[test]
    fn what_cannot_be_handed_over_is_told_before_anything_is() {
        let dir = tempfile::tempdir().unwrap();
        let timeline = timeline(dir.path(), 1, "a");
        let mut file = rows(FileBuilder::new().previous_gtids(""), 1);
        file = transaction(file, 2, &[(18, &[0; 30])]); // LOAD DATA as a statement
        file.event(34, &[0; 25]);
        file.event(2, &[&[0; 14][..], b"DROP TABLE t"].concat());
        std::fs::write(timeline.join("b.000001"), file.finish()).unwrap();
        let (plan, _) = plan(dir.path(), "");
        assert_eq!(plan.transactions.len(), 1);
        assert_eq!(plan.refused[0].0.id.to_string(), format!("{SERVER_UUID}:2"));
        assert_eq!(plan.anonymous, 1);
        assert!(!plan.not_held.contains(&plan.refused[0].0.id));
    }
}
