//! What a rescue has found.

use super::lack::Lack;
use super::plan::Plan;
use super::print::{Purpose, Script};
use crate::detail::Known;
use crate::rescue::compare::compared::Compared;
use crate::rescue::plan::lacked::Lacked;
use binlog::forks::{Fate, Forks, Place};
use binlog::storage::posix::PosixStorage;
use std::io;
use std::path::Path;

/// What the target lacks of the copy, and what is known beside.
#[derive(Debug)]
pub struct Found {
    /// Name of the source.
    pub name: String,
    /// `host:port` of the target.
    pub host: String,
    /// Version of the target.
    pub version: String,
    /// What is to be handed over, and what not.
    pub plan: Plan,
    /// What peers alone hold, and those that could not be asked: a sentence each.
    pub peers: Vec<String>,
    /// What the target has already, compared; empty where nothing was.
    pub compared: Compared,
}

impl Found {
    /// What the target lacks, or may lack, when everything was handed over; nothing where "all" is true.
    pub fn lacks(&self) -> Vec<Lack<'_>> {
        let plan = &self.plan;
        let mut lacks: Vec<Lack<'_>> =
            plan.left_out.iter().map(|lacked| Lack::LeftOut(lacked.id, &lacked.changes)).collect();
        lacks.extend(self.peers.iter().map(|sentence| Lack::AtPeer(sentence)));
        let before = plan.not_held.subtract(&plan.never_copied).subtract(&plan.moved_away);
        if !before.is_empty() {
            lacks.push(Lack::Before(before));
        }
        if !plan.never_copied.is_empty() {
            lacks.push(Lack::NeverCopied(&plan.never_copied));
        }
        if !plan.moved_away.is_empty() {
            lacks.push(Lack::MovedAway(&plan.moved_away));
        }
        if plan.given_twice > 0 {
            lacks.push(Lack::GivenTwice(plan.given_twice, &plan.given_twice_gtids));
        }
        if plan.anonymous > 0 {
            lacks.push(Lack::Anonymous(plan.anonymous));
        }
        if self.compared.missing() > 0 {
            lacks.push(Lack::PassedOver(&self.compared));
        }
        lacks
    }

    /// Of each GTID that was given twice, and of what the target lacks: its statements for a person, what a rescue hands over as
    /// comments. `overwrite`: what changes or deletes rows is to be run too.
    ///
    /// # Errors
    /// When the copy in `source_folder` cannot be read.
    pub fn statements(&self, source_folder: &Path, overwrite: bool) -> io::Result<Vec<u8>> {
        let Found { plan, host, .. } = self;
        let mut script = Script::new("", !plan.transactions.is_empty(), overwrite, Known::default(), false);
        let mut printed = Vec::new();
        if let Some(forks) = Forks::read(&PosixStorage, source_folder, || true)? {
            for (id, lost) in forks.open(Fate::GivenTwice) {
                script.versions(&id, lost, Fate::GivenTwice)?;
                printed.push(id);
            }
        }
        let read = |lacked, how: &str| (lacked, how.to_owned(), Purpose::Read);
        let by_rescue = plan.transactions.iter().map(|lacked| read(lacked, "binlogd rescue hands it over"));
        let refused = plan
            .refused
            .iter()
            .map(|(lacked, why)| read(lacked, &format!("binlogd rescue cannot hand it over: {why}")));
        let left_out = plan.left_out.iter().map(|lacked| (lacked, "left out".to_owned(), Purpose::Run));
        for (lacked, how, purpose) in by_rescue.chain(refused).chain(left_out) {
            if printed.contains(&lacked.id) {
                continue;
            }
            let place = Place { path: lacked.path.as_path().into(), at: lacked.at, end: lacked.end };
            let about = format!("which {host} lacks; {how}; {}", lacked.began());
            script.transaction(&lacked.id, &place, &about, purpose)?;
        }
        Ok(script.finish())
    }

    /// Why nothing is sent at all, where something cannot be handed over.
    pub(super) fn refusal(&self) -> String {
        let refused = &self.plan.refused;
        let ids: Vec<String> = refused.iter().map(|(lacked, _)| lacked.id.to_string()).collect();
        let line = |(lacked, why): &(Lacked, String)| {
            format!("  {} ({}/{} at {}): {why}", lacked.id, lacked.timeline, lacked.file_name(), lacked.at)
        };
        let lines: Vec<String> = refused.iter().map(line).collect();
        // Those that wait for a decision, or for their place, any program would have to leave out.
        let by_statements = refused.len() as u64 > self.plan.refused_for_order;
        let how = if by_statements {
            "A replica, or the server's own mysqlbinlog, can take them from the files named. "
        } else {
            ""
        };
        format!(
            "nothing was sent, because these transactions cannot be handed over{}:\n{}\n{}To hand over the others without them: \
             --leave-out {}",
            if by_statements { " by statements" } else { "" },
            lines.join("\n"),
            how,
            ids.join(",")
        )
    }
}
