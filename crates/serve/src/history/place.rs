//! Where a dump begins, or why it cannot.

use super::choice::{Choice, MysqlChoice, Rule};
use super::look::{Look, NoPlace};
use super::mariadb_choice::MariadbChoice;
use super::mariadb_place;
use crate::dump::bound::Bound;
use crate::dump::refusal::Refusal;
use crate::dump::request::{DumpRequest, From};
use crate::dump::stop::{Had, StopAt, StopWatch};
use crate::history::FileId;
use binlog::scan::scan_file;
use binlog::timeline::gaps::Gaps;
use binlog::timeline::held::HeldGtids;
use codec::gtid::{GtidSet, GtidState, TransactionId, Uuid};
use codec::{BinlogName, ServerKind};

/// Where a dump begins.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) file: FileId,
    pub(crate) offset: u64,
    pub(crate) choice: Choice,
    /// What the reader of MySQL has, by GTID.
    pub(crate) has: Option<GtidSet>,
    /// The reader has seen a part of the first file before.
    pub(crate) keep_temporary_tables: bool,
    /// By GTID with the name of a file: files that do not say what came before them are passed over.
    pub(crate) only_with_previous_gtids: bool,
    /// Transactions that the reader has and the history that is served has not; empty for none, and where nobody has looked.
    pub(crate) errant: String,
}

/// Finds the place at which the dump begins.
///
/// # Errors
/// When there is none.
pub(crate) fn find(look: &Look<'_>, request: &DumpRequest) -> Result<Start, NoPlace> {
    let bound = look.bound(request)?;
    match &request.from {
        From::Position { file, offset } => {
            let file = look.file(file)?;
            look.check_offset(file, *offset)?;
            let rule = match look.kind() {
                ServerKind::MySql => Rule::All,
                ServerKind::MariaDb => Rule::Mariadb(Box::new(MariadbChoice::by_position(request))),
            };
            let choice = Choice { rule, bound };
            Ok(Start {
                file,
                offset: *offset,
                choice,
                has: None,
                keep_temporary_tables: *offset > 4,
                only_with_previous_gtids: false,
                errant: String::new(),
            })
        }
        From::Gtids { .. } if look.kind() == ServerKind::MariaDb => {
            let said = "a MariaDB source knows no COM_BINLOG_DUMP_GTID; its readers say @slave_connect_state";
            Err(Refusal::Text(said.to_owned()).into())
        }
        From::Gtids { executed, file, offset } if !file.is_empty() => {
            let file = look.file(file)?;
            look.check_offset(file, *offset)?;
            Ok(look.start_by_set(file, *offset, executed, bound, false))
        }
        From::Gtids { executed, offset, .. } => {
            let (file, errant) = look.first_lacked(executed)?;
            look.check_offset(file, *offset)?;
            let limit = look.end_of(file)?;
            let first = look.head(file)?.first_gtid(limit).map_err(|error| look.failed(file, error))?;
            let has_first = matches!(first, Some(TransactionId::Mysql(gtid)) if executed.contains(&gtid));
            let mut start = look.start_by_set(file, *offset, executed, bound, has_first);
            start.only_with_previous_gtids = false;
            start.errant = errant.to_line();
            Ok(start)
        }
        From::Mariadb(_) if look.kind() == ServerKind::MySql => {
            let said =
                "a MySQL source knows no @slave_connect_state; its readers ask by COM_BINLOG_DUMP_GTID";
            Err(Refusal::Text(said.to_owned()).into())
        }
        From::Mariadb(wanted) => {
            let (file, choice, errant) = mariadb_place::find(look, request, wanted)?;
            Ok(Start {
                file,
                offset: 4,
                choice: Choice { rule: Rule::Mariadb(Box::new(choice)), bound },
                has: None,
                keep_temporary_tables: false,
                only_with_previous_gtids: false,
                errant,
            })
        }
    }
}

impl Look<'_> {
    /// What holds the dump back.
    fn bound(&self, request: &DumpRequest) -> Result<Option<Bound>, NoPlace> {
        if request.stop.is_empty() && request.delay.is_zero() {
            return Ok(None);
        }
        let had = match &request.from {
            From::Gtids { executed, .. } => Had::Mysql(executed.clone()),
            From::Mariadb(start) => Had::Mariadb(start.state.clone()),
            From::Position { file, offset } if request.stop.iter().any(StopAt::is_of_gtids) => {
                self.executed_at(file, *offset)?
            }
            From::Position { .. } => Had::Mysql(GtidSet::new()),
        };
        let stops = request.stop.iter().map(|stop| StopWatch::new(stop.clone(), &had)).collect();
        Ok(Some(Bound { stops, delay: request.delay, now: i64::MIN }))
    }

    /// What was executed before a place. Reads the file up to there.
    fn executed_at(&self, file: &str, offset: u64) -> Result<Had, NoPlace> {
        let file = self.file(file)?;
        self.check_offset(file, offset)?;
        let head = self.head(file)?;
        let executed = if offset <= head.format_end {
            head.gtids_before.unwrap_or_else(|| GtidState::empty(self.kind()))
        } else {
            scan_file(&*head.file, offset, |_| {}).map_err(|error| self.failed(file, error))?.gtids
        };
        Ok(match executed {
            GtidState::Mysql(set) => Had::Mysql(set),
            GtidState::Mariadb(state) => Had::Mariadb(state.positions().collect()),
        })
    }

    fn file(&self, name: &str) -> Result<FileId, NoPlace> {
        let found = if name.is_empty() { self.history.listed().next() } else { self.history.named(name) };
        let is_ahead = || match (BinlogName::parse(&self.live.file), BinlogName::parse(name)) {
            (Ok(live), Ok(wanted)) => live.base() == wanted.base() && wanted > live,
            _ => false,
        };
        match found {
            Some(file) => Ok(file),
            None if is_ahead() => Err(NoPlace::Ahead(Refusal::NoSuchFile)),
            None => Err(Refusal::NoSuchFile.into()),
        }
    }

    fn check_offset(&self, file: FileId, offset: u64) -> Result<(), NoPlace> {
        if offset < 4 {
            return Err(Refusal::PositionBefore4.into());
        }
        if offset > self.end_of(file)? {
            return Err(match self.is_live(file) {
                true => NoPlace::Ahead(Refusal::PositionPastEnd),
                false => Refusal::PositionPastEnd.into(),
            });
        }
        Ok(())
    }

    fn start_by_set(
        &self,
        file: FileId,
        offset: u64,
        executed: &GtidSet,
        bound: Option<Bound>,
        keep_temporary_tables: bool,
    ) -> Start {
        // It is made anew for each file, this first one too.
        let rule = Rule::Mysql(MysqlChoice::new(executed, None));
        Start {
            file,
            offset,
            choice: Choice { rule, bound },
            has: Some(executed.clone()),
            keep_temporary_tables,
            only_with_previous_gtids: true,
            errant: String::new(),
        }
    }

    /// MySQL: the newest file before which nothing was executed that the reader lacks (`find_first_log_not_in_gtid_set`), and what
    /// the reader has of other servers that this history has not.
    fn first_lacked(&self, executed: &GtidSet) -> Result<(FileId, GtidSet), NoPlace> {
        let mut errant = GtidSet::new();
        if let Some(HeldGtids { history: GtidState::Mysql(ours), newest_uuid, .. }) = self.held()? {
            errant = executed.subtract(&ours);
            let more = newest_uuid.parse::<Uuid>().map(|uuid| of_server(&errant, uuid)).unwrap_or_default();
            if !more.is_empty() {
                return Err(NoPlace::Ahead(Refusal::HasMoreGtids { more: more.to_line(), is_named: false }));
            }
        }
        let purged = self.purged()?;
        if !executed.contains_set(&purged) {
            return Err(refused_as_purged(executed, &purged));
        }
        let mut oldest_before = GtidSet::new();
        for file in self.history.files().rev() {
            let Some(GtidState::Mysql(before)) = self.gtids_before(file)? else { break };
            if executed.contains_set(&before) {
                return Ok((file, errant));
            }
            oldest_before = before;
        }
        Err(refused_as_purged(executed, &oldest_before))
    }

    /// What was executed and is in no file: before the oldest one, or in a gap.
    fn purged(&self) -> Result<GtidSet, NoPlace> {
        let oldest = self.history.files().next().map(|file| self.gtids_before(file)).transpose()?;
        let mut purged = match oldest.flatten() {
            Some(GtidState::Mysql(before)) => before,
            _ => GtidSet::new(),
        };
        let gaps = Gaps::read(self.storage, self.folder).map_err(|error| self.failed_folder(error))?;
        if let GtidState::Mysql(never) = gaps.never_held() {
            purged.union_with(never);
        }
        Ok(purged)
    }
}

fn refused_as_purged(executed: &GtidSet, needed: &GtidSet) -> NoPlace {
    let missing = needed.subtract(executed).to_line();
    Refusal::Purged { sent: executed.to_line(), missing }.into()
}

/// The part of a set that was first committed on one server, with whatever tag.
fn of_server(set: &GtidSet, server: Uuid) -> GtidSet {
    let mut part = GtidSet::new();
    for (uuid, tag, numbers) in set.iter().filter(|(uuid, ..)| *uuid == server) {
        part.insert_interval(uuid, tag, *numbers.start(), *numbers.end());
    }
    part
}
