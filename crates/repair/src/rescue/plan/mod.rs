//! Which transactions of the copy a server lacks.

pub(in crate::rescue) mod kinship;
pub(in crate::rescue) mod lacked;
pub(in crate::rescue) mod left_out;
pub(in crate::rescue) mod not_held;
pub(in crate::rescue) mod order;

use super::statements::{Summary, Translator, summary};
use crate::rescue::plan::lacked::Lacked;
use crate::rescue::plan::left_out::LeftOut;
use crate::rescue::plan::not_held::{in_both, never_copied};
use crate::rescue::plan::order::{Step, merged, out_of_order};
use binlog::forks::transactions::{StoredTransaction, TransactionReader};
use binlog::forks::{Fate, Forks};
use binlog::storage::Storage as _;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::files::timeline_files;
use binlog::timeline::held::{HeldGtids, HeldTimeline, before_first, present_history, removed};
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use source::identify::SourceIdentity;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use thiserror::Error;

/// Everything that is to be known before anything is sent.
#[derive(Debug, Default)]
pub struct Plan {
    /// What to hand over, in the order of the copy.
    pub transactions: Vec<Lacked>,
    /// Their GTIDs.
    pub gtids: GtidState,
    /// Lacked transactions that no file of the copy holds: they were executed before the copy began.
    pub not_held: GtidState,
    /// Of these, what no timeline ever held: the source had purged it, or could not read it.
    pub never_copied: GtidState,
    /// And what stood in files that were moved away, as `kept_from` in `timeline.toml` says. Of the first timeline it may have been
    /// executed before the copy began too.
    pub moved_away: GtidState,
    /// Lacked transactions that cannot be handed over by statements, and why. While there are any, nothing is sent.
    pub refused: Vec<(Lacked, String)>,
    /// How many of these are refused for the order in which MariaDB takes transactions, not for what they are.
    pub refused_for_order: u64,
    /// Lacked transactions that the operator leaves out.
    pub left_out: Vec<Lacked>,
    /// Transactions of the target's own that a fork took from it and that its GTIDs name now: they were handed back since, or
    /// it gave their GTIDs to others after its crash. Their numbers cannot tell.
    pub lost_once: GtidState,
    /// How many GTIDs name two transactions of the copy, because the source lost one and gave its GTID to another, and nobody
    /// has decided yet which it is to be. None of them is handed over.
    pub given_twice: u64,
    /// Those GTIDs.
    pub given_twice_gtids: GtidState,
    /// Transactions whose loss somebody has accepted. They are not handed over.
    pub accepted: GtidState,
    /// False when the copy knows no GTID at all.
    pub gtids_known: bool,
    /// Transactions without a GTID, of which nobody can say whether the target has them.
    pub anonymous: u64,
    /// Length of the longest statement, in bytes: what `max_allowed_packet` must exceed.
    pub longest_statement: u64,
    /// The transaction that it belongs to.
    pub longest_of: Option<TransactionId>,
    /// Tables of XA transactions that were prepared by what is lacked, by their names.
    prepared: HashMap<String, String>,
    /// What was found of it so far. MariaDB's GTIDs tell by position only.
    found: HashSet<TransactionId>,
    /// What the timeline that is read holds of what is lacked, in its order.
    steps: Vec<Step>,
}

const UNDECIDED: &str = "it was given twice, and nobody has decided yet: MariaDB takes a server's transactions in the order of \
                         their numbers only, so nothing behind it can go first. Decide by binlogd forks --settle";

/// Why the copy cannot be read for it.
#[derive(Debug, Error)]
pub enum PlanError {
    /// A file or folder.
    #[error("cannot read the copy: {0}")]
    Read(#[from] io::Error),
    /// What was named is not there to be left out.
    #[error(
        "--leave-out names what is not among the transactions that the target lacks and the copy holds: {0}"
    )]
    NotLacked(String),
}

impl Plan {
    /// Goes through the timelines of the present history in `source_folder` for what the server lacks, and leaves out what was
    /// named. Files that hold nothing new by the word of the one after them are not read. `look_at` is told each file that is.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged, or when there is nothing of a name to leave out.
    pub fn make(
        source_folder: &Path,
        held: &HeldGtids,
        server: &SourceIdentity,
        left_out: &LeftOut,
        mut look_at: impl FnMut(&Path),
    ) -> Result<Plan, PlanError> {
        let mut plan = Plan { gtids: GtidState::empty(server.executed.kind()), ..Plan::default() };
        let forks = Forks::read(&PosixStorage, source_folder, || true)?;
        if let Some(forks) = &forks {
            plan.learn(forks, server);
        }
        for timeline in
            present_history(&PosixStorage, source_folder)?.into_iter().map(|timeline| timeline.folder)
        {
            let files = timeline_files(&PosixStorage, &timeline)?;
            for (position, name) in files.iter().enumerate() {
                let next = files.get(position + 1).map(|next| timeline.join(next));
                if plan.has_nothing_new(next.as_deref(), server)? {
                    continue;
                }
                let path = timeline.join(name);
                look_at(&path);
                plan.read_file(&timeline, &path, server, left_out, forks.as_ref())?;
            }
            let steps = std::mem::take(&mut plan.steps);
            plan.transactions = merged(std::mem::take(&mut plan.transactions), steps);
        }
        plan.refuse_what_is_out_of_order();
        let missing = left_out.without(plan.left_out.iter().map(|lacked| &lacked.id));
        if !missing.is_empty() {
            return Err(PlanError::NotLacked(missing));
        }
        plan.gtids_known = !held.all().is_empty();
        let open = |gtids: GtidState| gtids.subtract(&plan.given_twice_gtids).subtract(&plan.accepted);
        let own = server.own(&held.lost);
        (plan.not_held, plan.lost_once) = (
            open(server.lacks(&held.all()).subtract(&plan.all_lacked())),
            open(own.subtract(&server.lacks(&own))),
        );
        let history = present_history(&PosixStorage, source_folder)?;
        plan.never_copied = in_both(&plan.not_held, &never_copied(&history));
        let rest = plan.not_held.subtract(&plan.never_copied);
        let removed = removed(&PosixStorage, &history)?;
        plan.moved_away = in_both(&rest, &removed);
        if server.kind == ServerKind::MariaDb && !removed.is_empty() {
            plan.refuse_behind_what_was_removed(&history, server)?;
        }
        Ok(plan)
    }

    /// MariaDB's positions name the newest transactions only. Where the target has not come as far as the beginning of the first
    /// file that is left, what is between stood in files that were purged or moved away, and would never be told of again once a
    /// later one is there.
    fn refuse_behind_what_was_removed(
        &mut self,
        history: &[HeldTimeline],
        server: &SourceIdentity,
    ) -> io::Result<()> {
        let lacked = server.lacks(&before_first(&PosixStorage, history)?).subtract(&self.accepted);
        let GtidState::Mariadb(holes) = &lacked else { return Ok(()) };
        let hole_before = |id: &TransactionId| match id {
            TransactionId::Mariadb(id) => holes.list().find(|hole| hole.domain == id.domain),
            TransactionId::Mysql(_) => None,
        };
        for lacked in std::mem::take(&mut self.transactions) {
            let Some(hole) = hole_before(&lacked.id) else {
                self.transactions.push(lacked);
                continue;
            };
            let why = format!(
                "the target lacks transactions up to {hole}, whose files were purged or moved away; MariaDB would count them as there                  once this one is. Set the target up from a backup that has them, or restore the files"
            );
            self.refused.push((lacked, why));
            self.refused_for_order += 1;
        }
        self.gtids = GtidState::empty(server.kind);
        for lacked in &self.transactions {
            let _ = self.gtids.insert(lacked.id);
        }
        // Both are MariaDB's.
        let _ = self.not_held.union_with(&lacked);
        let _ = self.moved_away.union_with(&lacked);
        Ok(())
    }

    /// What is known of transactions that forks took from the source.
    fn learn(&mut self, forks: &Forks, server: &SourceIdentity) {
        self.given_twice = forks.count(Fate::GivenTwice);
        self.given_twice_gtids = forks.gtids(Fate::GivenTwice);
        for (id, ..) in forks.settled() {
            if forks.is_given_up(&id) && !server.has(&id) {
                // Of one kind of server, as its timelines are.
                let _ = self.accepted.insert(id);
            }
        }
        // Of one kind of server too.
        let _ = self.accepted.union_with(&server.lacks(&forks.gone_and_settled()));
    }

    /// Everything that is lacked and held: what is to be handed over, what cannot be, and what is left out.
    pub fn lacked(&self) -> impl Iterator<Item = &Lacked> {
        self.transactions.iter().chain(self.refused.iter().map(|(lacked, _)| lacked)).chain(&self.left_out)
    }

    /// The GTIDs of [`lacked`](Self::lacked).
    pub fn all_lacked(&self) -> GtidState {
        let mut all = self.gtids.clone();
        for lacked in self.lacked() {
            // MariaDB's state is what was recorded last, so that an earlier one would take back later ones.
            if !all.contains(&lacked.id) {
                // A state of one kind takes its own GTIDs; the kind of the target was compared before.
                let _ = all.insert(lacked.id);
            }
        }
        all
    }

    /// MariaDB cannot be given a number of a server behind a greater one of that server.
    fn refuse_what_is_out_of_order(&mut self) {
        for (place, behind) in out_of_order(&self.transactions).into_iter().rev() {
            let why = format!(
                "it stands behind {behind} in the copy, and MariaDB takes a server's transactions in the order of their numbers only"
            );
            self.refused.push((self.transactions.remove(place), why));
            self.refused_for_order += 1;
        }
        for lacked in &self.transactions {
            let _ = self.gtids.insert(lacked.id);
        }
    }

    /// Bytes of all that is lacked and held.
    pub fn size(&self) -> u64 {
        self.lacked().map(Lacked::size).sum()
    }

    /// True when everything up to the end of a file is there already, as the file after it says.
    fn has_nothing_new(&self, next: Option<&Path>, server: &SourceIdentity) -> io::Result<bool> {
        let Some(next) = next else { return Ok(false) };
        // One that has no whole head yet says nothing.
        let Ok(mut reader) = TransactionReader::open(&PosixStorage, next) else { return Ok(false) };
        let Some(before) = reader.gtids_before()? else { return Ok(false) };
        Ok(!before.is_empty() && server.lacks(&before).is_empty())
    }

    fn read_file(
        &mut self,
        timeline: &Path,
        path: &Path,
        server: &SourceIdentity,
        left_out: &LeftOut,
        forks: Option<&Forks>,
    ) -> io::Result<()> {
        if PosixStorage.look(path)?.len <= 4 {
            return Ok(()); // Begun, and nothing in it yet.
        }
        let mut reader = TransactionReader::open(&PosixStorage, path)?;
        let format = reader.format_event().to_vec();
        loop {
            let is_given_up = |id: &TransactionId| forks.is_some_and(|forks| forks.is_given_up(id));
            let mut again = Vec::new();
            let wanted = |id: Option<&TransactionId>| {
                let Some(id) = id else { return true };
                if server.has(id) || is_given_up(id) {
                    return false;
                }
                let is_found = self.found.contains(id);
                if is_found {
                    again.push(Step::Again(*id));
                }
                !is_found
            };
            let transaction = reader.next(wanted)?;
            self.steps.append(&mut again);
            let Some(transaction) = transaction else { return Ok(()) };
            let mut refused = None;
            if let (Some(id), Some(forks)) = (transaction.id, forks)
                && forks.is_not_the_one(&id, path, transaction.at)
            {
                // MySQL takes it later too.
                let is_in_the_way = matches!(id, TransactionId::Mariadb(_)) && forks.is_undecided(&id);
                if !is_in_the_way || !forks.is_last(&id, path, transaction.at) {
                    continue;
                }
                refused = Some(UNDECIDED);
            }
            self.take(timeline, path, &transaction, &format, left_out, refused);
        }
    }

    fn take(
        &mut self,
        timeline: &Path,
        path: &Path,
        transaction: &StoredTransaction,
        format: &[u8],
        left_out: &LeftOut,
        refused: Option<&str>,
    ) {
        let Some(id) = transaction.id else {
            self.anonymous += 1;
            return;
        };
        self.found.insert(id);
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
            (lacked.timestamp, lacked.changes) = (summary.timestamp, self.changes(summary));
            Translator::default().statements(transaction, format)
        });
        if left_out.contains(&id) {
            self.left_out.push(lacked);
            return;
        }
        self.refused_for_order += u64::from(refused.is_some());
        match refused.map_or(statements, |why| Err(why.to_owned())) {
            Ok(statements) => {
                let longest = statements.iter().map(Vec::len).max().unwrap_or(0) as u64;
                if longest > self.longest_statement {
                    (self.longest_statement, self.longest_of) = (longest, Some(id));
                }
                self.steps.push(Step::New(lacked));
            }
            Err(why) => self.refused.push((lacked, why)),
        }
    }

    /// The end of an XA transaction has no tables of its own: they stand in its prepared part.
    fn changes(&mut self, summary: Summary) -> Vec<String> {
        let Summary { mut changes, xa: Some(xa), .. } = summary else { return summary.changes };
        if xa.prepares() {
            let shown = xa.shown();
            let tables: Vec<&str> =
                changes.iter().map(String::as_str).filter(|change| *change != shown).collect();
            self.prepared.insert(xa.name, tables.join(", "));
        } else if xa.ends_prepared()
            && let Some(last) = changes.last_mut()
        {
            let tables = self.prepared.get(&xa.name);
            let of = tables.map_or("prepared before these", String::as_str);
            last.push_str(&format!(" ({of})"));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
    use binlog::timeline::{Reason, Timeline};
    use source::identify::SourceSemiSync;
    use std::path::PathBuf;

    const TARGET: &str = "cccccccc-0000-0000-0000-000000000003";

    fn set(text: &str) -> GtidState {
        GtidState::parse(ServerKind::MySql, text).unwrap()
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
        let (plan, looked) = plan_without(dir, executed, &LeftOut::default());
        (plan.unwrap(), looked)
    }

    fn plan_without(
        dir: &Path,
        executed: &str,
        left_out: &LeftOut,
    ) -> (Result<Plan, PlanError>, Vec<String>) {
        let held = HeldGtids {
            lost: set(&format!("{SERVER_UUID}:1-3,{SERVER_UUID}:9,{TARGET}:5-6")),
            history: set(&format!("{SERVER_UUID}:1-4")),
            newest_uuid: "b".into(),
        };
        let server = SourceIdentity {
            version: String::new(),
            kind: ServerKind::MySql,
            server_id: 1,
            uuid: TARGET.into(),
            has_gtids: true,
            executed: set(executed),
            applied: codec::gtid::MariadbGtidState::new(),
            purged: set(""),
            semi_sync: SourceSemiSync::Absent,
            is_read_only: false,
            galera: None,
            knows_checksums: true,
        };
        let mut looked = Vec::new();
        let plan = Plan::make(dir, &held, &server, left_out, |path| {
            looked.push(path.strip_prefix(dir).unwrap().display().to_string());
        });
        (plan, looked)
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

    /// 0-1-51 to 0-1-60 in ten files, as MariaDB writes them; the first five were purged.
    fn purged_mariadb_copy() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let info = Timeline { server_kind: ServerKind::MariaDb, ..first_timeline("mariadb-1") };
        let folder = info.create(&PosixStorage, dir.path(), 1).unwrap();
        let list =
            |sequence: u64| [&[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0][..], &sequence.to_le_bytes()].concat();
        for number in 51..=60u64 {
            let mut file = FileBuilder::new();
            file.event(163, &list(number - 1));
            // Stands alone: a statement that commits by itself.
            file.event(162, &[&number.to_le_bytes()[..], &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]].concat());
            file.event(2, &[&[0; 14][..], b"CREATE TABLE t (a int)"].concat());
            std::fs::write(folder.join(format!("b.0000{number}")), file.rotate("b.9").finish()).unwrap();
        }
        let all = binlog::purge::order::list(&PosixStorage, dir.path()).unwrap();
        let goes: Vec<_> = all.iter().take(5).collect();
        let (at, ours) = (jiff::Timestamp::UNIX_EPOCH, binlog::purge::Indexes::Ours);
        binlog::purge::carry_out(&PosixStorage, &goes, "a test", at, ours).unwrap();
        dir
    }

    #[test]
    fn a_mariadb_target_is_given_nothing_behind_what_was_purged() {
        let dir = purged_mariadb_copy();
        let held = HeldGtids::read(&PosixStorage, dir.path(), ServerKind::MariaDb).unwrap().unwrap();
        let plan = |executed: &str| {
            let server = SourceIdentity {
                version: String::new(),
                kind: ServerKind::MariaDb,
                server_id: 9,
                uuid: "mariadb-9".into(),
                has_gtids: true,
                executed: GtidState::parse(ServerKind::MariaDb, executed).unwrap(),
                applied: codec::gtid::MariadbGtidState::new(),
                purged: GtidState::empty(ServerKind::MariaDb),
                semi_sync: SourceSemiSync::Absent,
                is_read_only: false,
                galera: None,
                knows_checksums: true,
            };
            Plan::make(dir.path(), &held, &server, &LeftOut::default(), |_| {}).unwrap()
        };
        let sound = plan("0-1-55");
        assert_eq!((sound.transactions.len(), sound.refused.len()), (5, 0), "{:?}", sound.refused);
        assert!(sound.not_held.is_empty());
        let behind = plan("0-1-52");
        assert_eq!((behind.transactions.len(), behind.refused.len()), (0, 5), "{:?}", behind.transactions);
        assert!(
            behind.refused[0].1.contains("up to 0-1-55, whose files were purged"),
            "{:?}",
            behind.refused
        );
        assert_eq!((behind.moved_away.to_line().as_str(), behind.gtids.is_empty()), ("0-1-55", true));
        let complete = plan("0-1-60");
        assert!(
            complete.transactions.is_empty() && complete.refused.is_empty() && complete.not_held.is_empty()
        );
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
        assert_eq!(plan.lacked().count(), 2, "what is refused is lacked too");

        let named =
            |number: u32| LeftOut::parse(ServerKind::MySql, &[format!("{SERVER_UUID}:{number}")]).unwrap();
        let plan = plan_without(dir.path(), "", &named(2)).0.unwrap();
        assert!(plan.refused.is_empty() && plan.transactions.len() == 1);
        assert_eq!(plan.left_out[0].id.to_string(), format!("{SERVER_UUID}:2"));
        assert!(!plan.not_held.contains(&plan.left_out[0].id));
        let error = plan_without(dir.path(), "", &named(77)).0.unwrap_err().to_string();
        assert!(error.contains(&format!("{SERVER_UUID}:77")), "{error}");
    }
}
