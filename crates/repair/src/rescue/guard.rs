//! The care that a rescue takes: who else writes to the target, and whether each GTID is the same transaction there.

use super::compare::{Comparison, Scope};
use super::no_rescue::NoRescue;
use super::plan::Plan;
use super::send::HandOverError;
use super::target::Target;
use crate::hear::{Event, Hear};
use crate::rescue::compare::compared::Compared;
use crate::rescue::hold::hold_error::HoldError;
use crate::rescue::hold::restore::{Restore, Setting};
use crate::rescue::plan::lacked::Lacked;
use binlog::storage::Storage;
use binlog::timeline::held::HeldGtids;
use source::identify::SourceIdentity;
use status::units;
use std::path::Path;
use wire::{ConnectOptions, Connection};

/// One target, and what of it has to be looked after.
pub(crate) struct Guard<'a> {
    pub(crate) options: &'a ConnectOptions,
    pub(crate) host: String,
    /// How much of what the target has is compared; `None` for nothing.
    pub(crate) scope: Option<Scope>,
    pub(crate) allow_writers: bool,
}

impl Guard<'_> {
    /// What earlier rescues have left to be put back on this target; on others the statements are told.
    pub(crate) fn leftovers(
        &self,
        source_folder: &Path,
        server: &SourceIdentity,
        hear: &mut Hear<'_>,
    ) -> std::io::Result<Restore> {
        let restore = Restore::open(source_folder, &self.host, &server.uuid)?;
        let mut others = Restore::all(source_folder)?;
        others.retain(|other| other.path() != restore.path());
        for other in others {
            hear(Event::Note(&format!(
                "an earlier rescue of {} was ended before it had put its settings back; a rescue of it does so, or by hand: {}; \
                 then remove {}",
                other.target,
                other.sql(),
                other.path().display()
            )));
        }
        if !restore.settings.is_empty() {
            hear(Event::Note(&format!(
                "an earlier rescue of {} was ended before it had put its settings back: {}",
                self.host,
                restore.sql()
            )));
        }
        Ok(restore)
    }

    /// Compares what the target has already, into `compared`, which stays empty where nothing was. What differs is an error; what
    /// cannot be read is one if it `must` be. `what_now`: what the operator does where something differs.
    pub(crate) fn compare_before(
        &self,
        source: (&dyn Storage, &Path),
        held: &HeldGtids,
        server: &SourceIdentity,
        (must, what_now): (bool, &str),
        compared: &mut Compared,
        hear: &mut Hear<'_>,
    ) -> Result<(), NoRescue> {
        let Some(scope) = self.scope else { return Ok(()) };
        let comparison = Comparison::new(self.options, server);
        let readable = comparison.try_reading();
        let look_at = |path: &Path| hear(Event::Comparing(path));
        let outcome = readable.and_then(|()| comparison.what_is_there(source, held, scope, look_at));
        let words = match outcome {
            Ok((words, outcome)) => {
                *compared = outcome;
                words
            }
            Err(error) if must => return Err(self.target(error)),
            Err(error) => {
                hear(Event::Note(&format!("what is there already was not compared: {}: {error}", self.host)));
                return Ok(());
            }
        };
        if compared.differing() > 0 {
            return Err(NoRescue::Different(self.differences(compared, "has already", what_now)));
        }
        hear(Event::Compared { words: &words, compared });
        Ok(())
    }

    fn target(&self, error: impl std::fmt::Display) -> NoRescue {
        NoRescue::Target { host: self.host.clone(), error: error.to_string() }
    }

    /// Says who could not be held off, as [`hand_over`](Self::hand_over) would, and changes nothing.
    pub(crate) fn look_for_writers(
        &self,
        target: &mut Target,
        plan: &Plan,
        hear: &mut Hear<'_>,
    ) -> Result<(), NoRescue> {
        match target.look_for_writers(plan) {
            Ok(()) => Ok(()),
            Err(error @ HoldError::Writers(_)) if self.allow_writers => {
                hear(Event::Note(&error.to_string()));
                Ok(())
            }
            Err(error) => Err(self.target(error)),
        }
    }

    /// Holds others off, hands everything over, and compares each transaction with what the target has logged. Returns how it was
    /// verified.
    pub(crate) fn hand_over(
        &self,
        target: &mut Target,
        restore: &mut Restore,
        plan: &Plan,
        hear: &mut Hear<'_>,
    ) -> Result<String, NoRescue> {
        target
            .hold_off(restore, plan, self.allow_writers, &mut |text| hear(Event::Note(&text)))
            .map_err(|error| self.target(error))?;
        let (mut done, of) = (0, plan.transactions.len() as u64);
        let sent = target.hand_over(plan, |_| {
            done += 1;
            hear(Event::Applied { done, of });
        });
        if let Err(error) = sent {
            let mut text = self.target(&error).to_string();
            if let HandOverError::Taken(id) = &error {
                text = self.taken(plan, id, &text);
            }
            return Err(NoRescue::Unfinished(self.after_failure(target, restore, plan, text, hear)));
        }
        let verified = self.verify(plan);
        let put_back = self.put_back(target, restore, hear);
        match (verified, put_back) {
            (Ok(words), Ok(())) => Ok(words),
            (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(NoRescue::Unfinished(error)),
            (Err(error), Err(other)) => Err(NoRescue::Unfinished(format!("{error}\n{other}"))),
        }
    }

    /// Puts back what this rescue or an earlier one has set.
    pub(crate) fn put_back(
        &self,
        target: &mut Target,
        restore: &mut Restore,
        hear: &mut Hear<'_>,
    ) -> Result<(), String> {
        if restore.settings.is_empty() {
            return Ok(());
        }
        let done = target.put_back(restore).map_err(|error| {
            format!(
                "{}: the settings could not be put back: {error}; run there: {}",
                self.host,
                restore.sql()
            )
        })?;
        if !done.is_empty() {
            let names: Vec<String> =
                done.iter().map(|Setting { name, was, .. }| format!("{name} = {was}")).collect();
            hear(Event::Note(&format!("put back on the target: {}", names.join(", "))));
        }
        Ok(())
    }

    /// Whoever writes to a server that lacks GTIDs of its own takes just these.
    fn would_take_them(target: &Target, plan: &Plan) -> bool {
        !target.identity.own(&plan.gtids).is_empty()
    }

    /// Says who may take the GTIDs that the target lacks, while the operator thinks.
    pub(crate) fn warn_if_open(
        &self,
        target: &mut Target,
        plan: &Plan,
        hear: &mut Hear<'_>,
    ) -> Result<(), NoRescue> {
        if !Self::would_take_them(target, plan) {
            return Ok(());
        }
        for writer in target.is_open_to().map_err(|error| self.target(error))? {
            hear(Event::Note(&format!(
                "the next transaction on {} takes the first of the GTIDs that it lacks, which can then not be handed over; open to {}. \
                 Run there: {}",
                self.host, writer.what, writer.stop
            )));
        }
        Ok(())
    }

    /// Nothing is sent, because what is there differs; but nothing more shall be taken.
    pub(crate) fn close(
        &self,
        target: &mut Target,
        restore: &mut Restore,
        plan: &Plan,
        text: String,
        hear: &mut Hear<'_>,
    ) -> String {
        if !Self::would_take_them(target, plan) {
            return text;
        }
        match target.close(restore, plan, &mut |said| hear(Event::Note(&said))) {
            Ok(()) => self.after_failure(target, restore, plan, text, hear),
            Err(error) => format!("{text}\n{}: {error}", self.host),
        }
    }

    /// After a failure the target stays closed where whoever wrote now would take GTIDs that are still lacked.
    fn after_failure(
        &self,
        target: &mut Target,
        restore: &mut Restore,
        plan: &Plan,
        text: String,
        hear: &mut Hear<'_>,
    ) -> String {
        if !Self::would_take_them(target, plan) {
            return match self.put_back(target, restore, hear) {
                Ok(()) => text,
                Err(other) => format!("{text}\n{other}"),
            };
        }
        if restore.settings.is_empty() {
            return text;
        }
        let is_same = |setting: &Setting| format!("{} = {}", setting.name, setting.held);
        let held: Vec<String> = restore.settings.iter().map(is_same).collect();
        format!(
            "{text}\nThe target keeps {} so that nothing takes the GTIDs that it still lacks. The next rescue goes on and puts it \
             back at its end; to give up instead, run there: {}; and remove {}",
            held.join(" and "),
            restore.sql(),
            restore.path().display()
        )
    }

    /// What stands under a GTID that somebody else has used.
    fn taken(&self, plan: &Plan, id: &codec::gtid::TransactionId, text: &str) -> String {
        let one: Vec<Lacked> = plan.transactions.iter().filter(|lacked| lacked.id == *id).cloned().collect();
        match self.compared(&one) {
            Ok(compared) if compared.differing() > 0 => {
                format!("{text}\n{}", self.differences(&compared, "has meanwhile", MEANWHILE))
            }
            Ok(compared) if compared.same == 1 => {
                format!(
                    "{text}\nIt is the same transaction as the copy's. Find out who wrote it, then do this again."
                )
            }
            Ok(_) => format!("{text}\nIts binary log does not show what it is."),
            Err(error) => format!("{text}\n{error}"),
        }
    }

    fn compared(&self, transactions: &[Lacked]) -> Result<Compared, String> {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", self.host);
        let mut connection = Connection::connect(self.options).map_err(|error| told(&error))?;
        let now = SourceIdentity::ask(&mut connection).map_err(|error| told(&error))?;
        Comparison::new(self.options, &now).handed_over(transactions).map_err(|error| told(&error))
    }

    fn verify(&self, plan: &Plan) -> Result<String, String> {
        if self.scope.is_none() {
            return Ok("verified by GTID alone, not compared".to_owned());
        }
        let compared = self
            .compared(&plan.transactions)
            .map_err(|error| format!("everything was sent, but it is not verified by content: {error}"))?;
        if compared.differing() > 0 {
            return Err(self.differences(&compared, "has", AFTER));
        }
        if let Some(id) = compared.twice.first() {
            return Err(format!(
                "{}: {id} and {} more stand in its binary log twice: somebody else has used them at the same time, or done them \
                 too; compare the tables",
                self.host,
                compared.twice.len() - 1
            ));
        }
        if compared.not_in_its_log > 0 || compared.unclear > 0 {
            return Err(format!(
                "{}: everything was sent, but it is not verified by content{}",
                self.host,
                compared.remarks()
            ));
        }
        Ok(format!("verified by GTID and by the content of its binary log{}", compared.remarks()))
    }

    fn differences(&self, compared: &Compared, has: &str, what_now: &str) -> String {
        let mut text = format!(
            "{} {has} other transactions than the copy under {}. Both versions of each:",
            self.host,
            units::counted(compared.differing(), "GTID")
        );
        for difference in &compared.different {
            text.push_str(&format!("\n{difference}"));
        }
        if compared.more_different > 0 {
            text.push_str(&format!("\n… and {} more", units::count(compared.more_different)));
        }
        for id in &compared.twice {
            text.push_str(&format!(
                "\n{id} stands in its binary log twice: its replicas may take only one of the two"
            ));
        }
        format!("{text}\n{what_now}")
    }
}

/// What is done where something differs before anything was sent.
pub(super) const BEFORE: &str = "Nothing was sent. The copy's version is not on the target, and no server takes a second transaction under \
                      the same GTID: bring the rows of the copy's version over by hand (mysqlbinlog shows them in the file named). \
                      Then --compare none hands over the others.";
const MEANWHILE: &str = "Those before it were handed over. Stop whoever wrote it, bring the rows of the copy's version over by hand \
                         (mysqlbinlog shows them in the file named), and do this again with --compare none.";
const AFTER: &str = "All others were handed over. The copy's version of these is not on the target: bring its rows over by hand \
                     (mysqlbinlog shows them in the file named).";
