//! The care that `binlogd rescue` takes: who else writes to the target, and whether each GTID is the same transaction there.

use super::{style, units};
use binlog::storage::Storage;
use binlog::timeline::held::HeldGtids;
use indicatif::ProgressBar;
use repair::rescue::{
    Compared, Comparison, HandOverError, HoldError, Lacked, Plan, Restore, Scope, Setting, Target,
};
use source::identify::SourceIdentity;
use std::io::IsTerminal;
use std::path::Path;
use wire::{ConnectOptions, Connection};

/// How much of what the target has already is compared with the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Compare {
    /// The newest 1,000 of each server, and what forks took with 1,000 around.
    Sample,
    /// Everything that both have.
    All,
    /// Nothing: go by GTIDs alone, also for what is handed over.
    None,
}

/// One target, and what of it has to be looked after.
pub(super) struct Guard<'a> {
    pub(super) options: &'a ConnectOptions,
    pub(super) host: String,
    pub(super) compare: Compare,
    pub(super) allow_writers: bool,
    pub(super) quiet: bool,
}

/// A remark beside the answer proper.
fn note(text: &str) {
    for line in text.lines() {
        errln!("note: {}", style::clean(line));
    }
}

impl Guard<'_> {
    /// What earlier rescues have left to be put back on this target; on others the statements are told.
    pub(super) fn leftovers(&self, source_folder: &Path, server: &SourceIdentity) -> Result<Restore, String> {
        let text = |error: std::io::Error| error.to_string();
        let restore = Restore::open(source_folder, &self.host, &server.uuid).map_err(text)?;
        let mut others = Restore::all(source_folder).map_err(text)?;
        others.retain(|other| other.path() != restore.path());
        for other in others {
            note(&format!(
                "an earlier rescue of {} was ended before it had put its settings back; a rescue of it does so, or by hand: {}; \
                 then remove {}",
                other.target,
                other.sql(),
                other.path().display()
            ));
        }
        if !restore.settings.is_empty() {
            note(&format!(
                "an earlier rescue of {} was ended before it had put its settings back: {}",
                self.host,
                restore.sql()
            ));
        }
        Ok(restore)
    }

    /// Compares what the target has already, into `compared`, which stays empty where nothing was. What differs is an error; what
    /// cannot be read is one if it `must` be. `what_now`: what the operator does where something differs.
    pub(super) fn compare_before(
        &self,
        source: (&dyn Storage, &Path),
        held: &HeldGtids,
        server: &SourceIdentity,
        (must, what_now): (bool, &str),
        compared: &mut Compared,
    ) -> Result<(), String> {
        let scope = match self.compare {
            Compare::Sample => Scope::Sample,
            Compare::All => Scope::All,
            Compare::None => return Ok(()),
        };
        let comparison = Comparison::new(self.options, server);
        let readable = comparison.try_reading();
        let bar = if self.quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        };
        let look_at = |path: &Path| {
            bar.set_message(format!("comparing {}", path.display()));
            bar.tick();
        };
        let outcome = readable.and_then(|()| comparison.what_is_there(source, held, scope, look_at));
        bar.finish_and_clear();
        let words = match outcome {
            Ok((words, outcome)) => {
                *compared = outcome;
                words
            }
            Err(error) if must => return Err(format!("{}: {error}", self.host)),
            Err(error) => {
                note(&format!("what is there already was not compared: {}: {error}", self.host));
                return Ok(());
            }
        };
        if compared.differing() > 0 {
            return Err(self.differences(compared, "has already", what_now));
        }
        if self.quiet {
            return Ok(());
        }
        if compared.same > 0 {
            outln!(
                "compared with the binary log of {}: {} that are there already ({words}), all as the copy has them{}",
                self.host,
                units::counted(compared.same, "transaction"),
                remarks(compared)
            );
        } else if compared.unclear + compared.not_in_its_log > 0 {
            note(&format!("what {} has already was not compared{}", self.host, remarks(compared)));
        }
        Ok(())
    }

    /// Says who could not be held off, as [`hand_over`](Self::hand_over) would, and changes nothing.
    pub(super) fn look_for_writers(&self, target: &mut Target, plan: &Plan) -> Result<(), String> {
        match target.look_for_writers(plan) {
            Ok(()) => Ok(()),
            Err(error @ HoldError::Writers(_)) if self.allow_writers => {
                note(&error.to_string());
                Ok(())
            }
            Err(error) => Err(format!("{}: {error}", self.host)),
        }
    }

    /// Holds others off, hands everything over, and compares each transaction with what the target has logged. Returns how it was
    /// verified.
    pub(super) fn hand_over(
        &self,
        target: &mut Target,
        restore: &mut Restore,
        plan: &Plan,
        send: impl FnOnce(&mut Target) -> Result<(), HandOverError>,
    ) -> Result<String, String> {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", self.host);
        target
            .hold_off(restore, plan, self.allow_writers, &mut |text| note(&text))
            .map_err(|error| told(&error))?;
        if let Err(error) = send(target) {
            let mut text = told(&error);
            if let HandOverError::Taken(id) = &error {
                text = self.taken(plan, id, &text);
            }
            return Err(self.after_failure(target, restore, plan, text));
        }
        let verified = self.verify(plan);
        let put_back = self.put_back(target, restore);
        match (verified, put_back) {
            (Ok(words), Ok(())) => Ok(words),
            (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
            (Err(error), Err(other)) => Err(format!("{error}\n{other}")),
        }
    }

    /// Puts back what this rescue or an earlier one has set.
    pub(super) fn put_back(&self, target: &mut Target, restore: &mut Restore) -> Result<(), String> {
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
            note(&format!("put back on the target: {}", names.join(", ")));
        }
        Ok(())
    }

    /// Whoever writes to a server that lacks GTIDs of its own takes just these.
    fn would_take_them(target: &Target, plan: &Plan) -> bool {
        !target.identity.own(&plan.gtids).is_empty()
    }

    /// Says who may take the GTIDs that the target lacks, while the operator thinks.
    pub(super) fn warn_if_open(&self, target: &mut Target, plan: &Plan) -> Result<(), String> {
        if !Self::would_take_them(target, plan) {
            return Ok(());
        }
        for writer in target.is_open_to().map_err(|error| format!("{}: {error}", self.host))? {
            note(&format!(
                "the next transaction on {} takes the first of the GTIDs that it lacks, which can then not be handed over; open to {}. \
                 Run there: {}",
                self.host, writer.what, writer.stop
            ));
        }
        Ok(())
    }

    /// Nothing is sent, because what is there differs; but nothing more shall be taken.
    pub(super) fn close(
        &self,
        target: &mut Target,
        restore: &mut Restore,
        plan: &Plan,
        text: String,
    ) -> String {
        if !Self::would_take_them(target, plan) {
            return text;
        }
        match target.close(restore, plan, &mut |said| note(&said)) {
            Ok(()) => self.after_failure(target, restore, plan, text),
            Err(error) => format!("{text}\n{}: {error}", self.host),
        }
    }

    /// After a failure the target stays closed where whoever wrote now would take GTIDs that are still lacked.
    fn after_failure(&self, target: &mut Target, restore: &mut Restore, plan: &Plan, text: String) -> String {
        if !Self::would_take_them(target, plan) {
            return match self.put_back(target, restore) {
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
        if self.compare == Compare::None {
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
                remarks(&compared)
            ));
        }
        Ok(format!("verified by GTID and by the content of its binary log{}", remarks(&compared)))
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

/// What a person should know of a comparison in which nothing differs.
fn remarks(compared: &Compared) -> String {
    let mut text = String::new();
    if compared.other_form > 0 {
        text.push_str(&format!(
            "; {} of them stand there in another form (rows for a statement, other columns), so that their time, session and tables \
             were compared",
            units::count(compared.other_form)
        ));
    }
    if compared.not_in_its_log > 0 {
        text.push_str(&format!(
            "; {} could not be compared, because its binary log does not hold them (purged, or never written): {}",
            units::count(compared.not_in_its_log),
            compared.not_in_its_log_gtids
        ));
    }
    if compared.unclear > 0 {
        text.push_str(&format!(
            "; {} could not be compared: {}",
            units::count(compared.unclear),
            compared.unclear_reason
        ));
    }
    text
}

/// What the target lacks although its GTIDs count it as there; empty when it is nothing.
pub(super) fn passed_over(compared: &Compared) -> String {
    if compared.missing() == 0 {
        return String::new();
    }
    let mut text = format!(
        "it lacks {} that its GTIDs count as there: its binary log holds others of the same server before or behind \
         them, and not these: {}. MariaDB takes a server's transactions in the order of their numbers only, so they cannot be handed \
         over any more; bring their rows over by hand (mysqlbinlog shows them in the file named):",
        units::counted(compared.missing(), "transaction"),
        compared.missing_gtids
    );
    for missing in &compared.missing {
        text.push_str(&format!("\n  {}", style::clean(&missing.to_string())));
    }
    if compared.more_missing > 0 {
        text.push_str(&format!("\n  … and {} more", units::count(compared.more_missing)));
    }
    text
}
