//! A timeline that begins: the first file that it takes, and what is recorded of why.

use super::plan::From;
use crate::attempt::ask::Attempt;
use crate::attempt::attempt_error::{AttemptError, in_short, told};
use crate::attempt::copy::HeldCopy;
use crate::attempt::copy_error::CopyError;
use crate::attempt::open_timeline::OpenTimeline;
use crate::peers::{BEFORE_MAX, Completed};
use crate::sink::publish::publish_timelines;
use binlog::timeline::{Reason, Timeline};
use codec::event::FormatDescription;
use codec::gtid::{GtidState, MariadbGtid, MariadbGtidState};
use codec::{BinlogName, ServerKind};
use config::OnGap;
use quorum::Standing;
use source::complaint::{Complaint, ER_FATAL_READING_BINLOG};
use source::identify::SourceIdentity;
use source::negotiate::locate_request;
use status::{Ladder, PreviousTimeline};
use std::sync::Arc;
use wire::WireError;

/// The first file of a new timeline.
pub(crate) struct FirstFile {
    pub(crate) name: String,
    /// What it begins with, where it was looked at.
    pub(crate) format: Option<FormatDescription>,
    /// GTIDs of what the source wrote and can send from no file any more, as far as it says so.
    purged: GtidState,
}

/// Where the place of an epoch stands that a node is to enter.
enum PlaceOfEpoch {
    /// In the files that are received anyway, or there is none to be had.
    Held,
    /// In an earlier file, with which the timeline is to begin.
    At(String, FormatDescription),
    /// In a file that the source has purged.
    Purged,
}

impl Attempt<'_> {
    /// Finds the first file of a new timeline and makes its folder. The one place where a timeline is left for a new one: it is
    /// completed from the peers before, unless that was done for the decision, and what they were not asked for is said.
    ///
    /// # Errors
    /// [`AttemptError::Completed`] when the peers had more: what is to begin must be decided anew.
    pub(crate) fn begin_timeline(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        mut reason: Reason,
        from: &From,
        source_lacks: &GtidState,
    ) -> Result<(), AttemptError> {
        let completed = self.complete_before(copy, source, BEFORE_MAX)?;
        if completed.something {
            return Err(AttemptError::Completed);
        }
        let first = match self.first_file(copy, source, from) {
            Err(AttemptError::Gap { .. }) if self.upstream.config.on_gap == OnGap::Record => {
                reason = Reason::Gap;
                self.first_file(copy, source, &From::Earliest)?
            }
            other => other?,
        };
        let (first, for_gap) = match self.with_the_place_of_the_epoch(copy, source, &first.name)? {
            PlaceOfEpoch::At(name, format) => (FirstFile { name, format: Some(format), ..first }, false),
            PlaceOfEpoch::Held => (first, false),
            PlaceOfEpoch::Purged => (first, true),
        };
        let held = copy.holding().map(|holding| holding.gtids).unwrap_or_default();
        // A history without GTIDs says nothing of what it lacks, unless something is known to be missing.
        let is_new = matches!(reason, Reason::First | Reason::Stranger);
        let missing = if reason == Reason::Gap || (!is_new && !held.is_empty()) {
            first.purged.subtract(&held)
        } else {
            GtidState::empty(source.executed.kind())
        };
        let info = Timeline {
            began_at: self.upstream.clock.wall_time().to_string(),
            reason,
            server_uuid: source.uuid.clone(),
            server_version: source.version.clone(),
            server_kind: source.kind,
            first_file: first.name,
            gtid_before: held.to_record(),
            source_lacks: source_lacks.to_record(),
            source_shares: shared_with_lacked(source, source_lacks),
            missing: missing.to_record(),
            unreadable: match from {
                From::Behind { at, .. } => at.to_string(),
                _ => String::new(),
            },
            previous: String::new(), // Filled in by the copy, which knows its folders.
            purged: Vec::new(),
        };
        if for_gap {
            self.leave_timeline(copy, true)?;
        }
        self.begin(copy, info, 0, &completed)?;
        copy.expect_first(first.format);
        Ok(())
    }

    /// Makes the folder of a new timeline, with a number from `number_min` on, shows it and says so. The one before was
    /// `completed` from the peers.
    pub(crate) fn begin(
        &self,
        copy: &mut HeldCopy,
        info: Timeline,
        number_min: u32,
        completed: &Completed,
    ) -> Result<(), AttemptError> {
        let Timeline { reason, source_lacks: lacks, missing, first_file, .. } = info.clone();
        let lacked = info.lacked();
        let previous = copy
            .timeline()
            .map(|timeline| PreviousTimeline { name: timeline.name.clone(), end: timeline.end() });
        let ended = previous.as_ref().map(|previous| previous.name.clone());
        self.leave_timeline(copy, reason == Reason::Gap)?;
        copy.begin_numbered(info, number_min)?;
        self.publish_begun(copy, previous, &lacked);
        publish_timelines(self.upstream, copy);
        self.end_without(ended, completed);
        let name = copy.timeline().map_or("", |timeline| timeline.name.as_str());
        let source_name = &self.upstream.config.name;
        tracing::info!(
            source = source_name,
            timeline = name,
            "a timeline begins with {first_file}: {}",
            reason.words()
        );
        if !lacks.is_empty() {
            tracing::error!(
                source = source_name,
                "the copy holds transactions that the source lacks: {lacks}"
            );
        }
        if !missing.is_empty() {
            tracing::error!(
                source = source_name,
                "transactions that were never copied cannot be had from the source any more: {missing}"
            );
        }
        Ok(())
    }

    /// A new timeline of the source of an epoch that this node has not entered begins with the file of the epoch's place, or before it:
    /// by the bytes up to there it is known that the copy holds what was agreed on. By its GTIDs alone it is not, for another server,
    /// or the same one before it lost them, may have given them to other transactions.
    fn with_the_place_of_the_epoch(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        first: &str,
    ) -> Result<PlaceOfEpoch, AttemptError> {
        let Some(node) = &self.upstream.quorum else { return Ok(PlaceOfEpoch::Held) };
        let memory = node.memory();
        let Standing::Entering(accepted) = memory.standing() else { return Ok(PlaceOfEpoch::Held) };
        let place = &accepted.place.file;
        let (of_place, of_first) = (BinlogName::parse(place)?, BinlogName::parse(first)?);
        if accepted.source != source.uuid || of_place.base() != of_first.base() || of_place >= of_first {
            return Ok(PlaceOfEpoch::Held);
        }
        match self.look(copy, source, place) {
            Ok(look) => Ok(PlaceOfEpoch::At(place.clone(), look.format)),
            Err(AttemptError::Wire(WireError::Server { code: ER_FATAL_READING_BINLOG, .. })) => {
                tracing::warn!(
                    source = self.upstream.config.name,
                    "the source has {place} no more, up to which the log of epoch {} was agreed on: this node joins the quorum anew",
                    accepted.ballot.epoch
                );
                Ok(PlaceOfEpoch::Purged)
            }
            Err(error) => Err(error),
        }
    }

    /// The node of a quorum keeps what the live timeline holds until another one has it. With a gap it counts no more.
    pub(crate) fn leave_timeline(&self, copy: &HeldCopy, for_gap: bool) -> Result<(), AttemptError> {
        let Some((node, timeline)) = self.upstream.quorum.as_ref().zip(copy.timeline()) else {
            return Ok(());
        };
        match for_gap {
            true => node.forget(),
            false => node.timeline_ends(&timeline.stored()),
        }
        .map_err(|error| CopyError::from(error).into())
    }

    /// A timeline was begun: what was acknowledged belongs to the one before, and what is held of the history goes on.
    fn publish_begun(&self, copy: &HeldCopy, previous: Option<PreviousTimeline>, source_lacks: &GtidState) {
        let monitor = &self.upstream.monitor;
        let durable = copy.timeline().map(OpenTimeline::stored).unwrap_or_default();
        let missing = copy.timeline().map(OpenTimeline::missing).unwrap_or_default();
        monitor.publish_positions(&Ladder::default());
        let durable = Arc::new(durable);
        monitor.publish_gtids(|gtids| {
            gtids.durable.replace(durable);
            gtids.acknowledged.clear();
        });
        monitor.update_facts(|facts| {
            facts.timeline = copy.timeline().map(|timeline| timeline.name.clone());
            facts.previous_timeline = previous;
            facts.missing = missing;
            if !source_lacks.is_empty() {
                // The next connection finds out what it lacks in all; until then it is known to lack this.
                facts.regained = None;
                facts.source_lacked = Some(source_lacks.clone());
            }
        });
    }

    /// The file that `from` means on this source.
    pub(crate) fn first_file(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        from: &From,
    ) -> Result<FirstFile, AttemptError> {
        let named = |name, format| FirstFile { name, format, purged: source.purged.clone() };
        match from {
            From::File(name) => match self.look(copy, source, name) {
                Ok(look) => Ok(named(name.clone(), Some(look.format))),
                // It is asked for all the same, and whatever is wrong with it is heard then.
                Err(AttemptError::Wire(WireError::Server { .. })) => Ok(named(name.clone(), None)),
                Err(error) => Err(error),
            },
            From::Behind { next, before, .. } => {
                Ok(FirstFile { name: next.clone(), format: None, purged: before.clone() })
            }
            From::Earliest => {
                let look = self.look(copy, source, "")?;
                // A file of MySQL says nothing of what was purged, the server does.
                let purged = look.gtids_before.unwrap_or_else(|| source.purged.clone());
                Ok(FirstFile { name: look.file, format: Some(look.format), purged })
            }
            From::Latest => Ok(named(self.newest_file()?, None)),
            From::After(set) => {
                let (mut connection, _) = self.connect()?;
                let request = locate_request(&mut connection, self.server_id(copy), set)?;
                match self.look_with(connection, source, &request) {
                    Ok(look) => Ok(named(look.file, Some(look.format))),
                    Err(AttemptError::Wire(WireError::Server {
                        code: ER_FATAL_READING_BINLOG,
                        message,
                        ..
                    })) if Complaint::of(&message) == Complaint::Purged => {
                        let oldest = self.look(copy, source, "")?.file;
                        let needed = format!("what follows {}", in_short(set));
                        let missing = told(&source.purged.subtract(set));
                        Err(AttemptError::Gap { needed, oldest, missing })
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// The file that the source is writing, by whichever statement it knows.
    fn newest_file(&self) -> Result<String, AttemptError> {
        let (mut connection, _) = self.connect()?;
        let mut result = connection.query("SHOW BINARY LOG STATUS");
        if matches!(&result, Err(WireError::Server { .. })) {
            result = connection.query("SHOW MASTER STATUS"); // Before MySQL 8.2, and MariaDB.
        }
        match result {
            Ok(rows) => rows.get(0, "File").map(str::to_owned).ok_or(AttemptError::NoBinlog),
            Err(WireError::AccessDenied { message, .. }) => Err(AttemptError::LatestPrivilege {
                privilege: match connection.server_kind() {
                    ServerKind::MySql => "REPLICATION CLIENT",
                    ServerKind::MariaDb => "BINLOG MONITOR",
                },
                user: self.upstream.config.user.clone(),
                refusal: message,
            }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Of the MariaDB servers whose newest transactions a source lacks, up to where it has them as a replica all the same; its
/// files say nothing of these where it did not log them (`log_slave_updates = OFF`). Empty for MySQL.
fn shared_with_lacked(source: &SourceIdentity, lacked: &GtidState) -> String {
    let GtidState::Mariadb(lacked) = lacked else { return String::new() };
    let mut shared = MariadbGtidState::new();
    for id in lacked.list() {
        if let Some(at) = source.applied.positions().find(|at| at.domain == id.domain) {
            shared.insert(MariadbGtid { sequence: at.sequence, ..id });
        }
    }
    shared.binlog_state()
}
