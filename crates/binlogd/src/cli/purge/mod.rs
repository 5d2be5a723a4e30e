//! `binlogd purge DATA_DIR`: deletes old files of a stopped copy, or says what would go and why the rest stays.

pub(in crate::cli) mod archive;

use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::{style, units};
use crate::cli::args::store::ReachArgs;
use crate::cli::purge::archive::Asked;
use binlog::folder::{SourceFolder, check_free, source_folders};
use binlog::purge::order::{LogFile, sealed_at};
use binlog::purge::plan::{Plan, Wanted};
use binlog::storage::posix::{PosixStorage, owner_of};
use clap::Args;
use config::{Config, RetentionConfig};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustix::process::geteuid;
use serve::retention::{NO_RULES, Purger, rules};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `binlogd purge`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Whole files go, the oldest first, and the first one that somebody needs stops the purge: there is never a hole. A slot, what a \
fork took from the source, and the newest files stay whatever is asked for. What went is recorded in timeline.toml.

Where the copies are archived, say where: --config with [archive], or --archive. No file goes then of which the archive does not have \
everything: each is looked for there, with one object of it read back. --without-archive is your word that nobody needs to ask.

With --dry-run nothing is changed, and binlogd may run on the copy. Without it binlogd must be stopped, and the user must be \
that of binlogd. A running one purges by \
PURGE BINARY LOGS at its port for readers (privileges = [\"purge\"]), or by the rules of [retention].

Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong.")]
pub(super) struct PurgeArgs {
    /// Folder of the copies: the data_dir of the configuration
    data_dir: PathBuf,
    /// This source only; needed when the folder holds several, but with --by-rules
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Everything before this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["before", "by_rules"])]
    to: Option<String>,
    /// Everything that the source sealed before this time: 2026-01-31T12:00:00Z, or "2026-01-31 12:00:00" in UTC
    #[arg(long, value_name = "TIME", conflicts_with = "by_rules")]
    before: Option<String>,
    /// What the rules of [retention] say
    #[arg(long, requires = "config")]
    by_rules: bool,
    /// The configuration file with [retention]: its rules, and the limits of slots
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The archive of these copies: no file goes of which it does not have everything. Without it that of [archive] in --config
    #[arg(long, value_name = "URL", conflicts_with = "without_archive")]
    archive: Option<String>,
    #[command(flatten)]
    reach: ReachArgs,
    /// Do not ask the archive: files may go that it does not have
    #[arg(long)]
    without_archive: bool,
    /// Change nothing; say of each file whether it would go, and if not, why
    #[arg(long)]
    dry_run: bool,
}

/// Runs `binlogd purge`.
pub(super) fn execute(args: &PurgeArgs) -> ExitCode {
    let (wanted, limits, sources) = match args.understood() {
        Ok(understood) => understood,
        Err(error) => return usage_error(&error),
    };
    let asked = match args.asked() {
        Ok(asked) => asked,
        Err(error) => return usage_error(&format!("{error:#}")),
    };
    let mut all_well = true;
    for (name, folder) in sources {
        if let Err(error) = args.purge(&name, &folder, &wanted, limits, &asked) {
            errln!("error: source {}: {error:#}", style::clean(&name));
            all_well = false;
        }
    }
    ExitCode::from(if all_well { EXIT_OK } else { EXIT_PROBLEM })
}

type Understood = (Wanted, RetentionConfig, Vec<(String, PathBuf)>);

impl PurgeArgs {
    /// Which archive is asked.
    fn asked(&self) -> anyhow::Result<Asked> {
        let config = self.config.as_deref().map(Config::load).transpose()?.map(|loaded| loaded.config);
        Asked::new(self.archive.as_deref(), &self.reach, self.without_archive, config.as_ref())
    }

    fn understood(&self) -> Result<Understood, String> {
        let limits = match &self.config {
            Some(path) => Config::load(path).map_err(|error| error.to_string())?.config.retention,
            None => NO_RULES,
        };
        let wanted = match (&self.to, &self.before) {
            (Some(file), _) => Wanted::To(file.clone()),
            (_, Some(time)) => Wanted::Before(moment(time)?),
            _ if self.by_rules => {
                let rules = rules(&limits);
                if rules.are_none() {
                    return Err("[retention] has no rule: max_age, max_bytes or max_files".to_owned());
                }
                Wanted::Rules(rules, Timestamp::now())
            }
            _ => {
                return Err(
                    "say what is to go: --to FILE, --before TIME or --by-rules --config FILE".to_owned()
                );
            }
        };
        let shown = self.data_dir.display();
        let mut sources = source_folders(&PosixStorage, &self.data_dir)
            .map_err(|error| format!("cannot read {shown}: {error}"))?;
        let names: Vec<String> = sources.iter().map(|(name, _)| name.clone()).collect();
        if let Some(source) = &self.source {
            sources.retain(|(name, _)| name == source);
        }
        match sources.len() {
            0 => Err(format!("{shown} holds no such source; there are: {}", names.join(", "))),
            1 => Ok((wanted, limits, sources)),
            _ if self.by_rules => Ok((wanted, limits, sources)),
            _ => Err(format!("{shown} holds several sources: add --source with one of {}", names.join(", "))),
        }
    }

    fn purge(
        &self,
        name: &str,
        folder: &Path,
        wanted: &Wanted,
        limits: RetentionConfig,
        asked: &Asked,
    ) -> anyhow::Result<()> {
        let storage = Arc::new(PosixStorage);
        let purger = Purger::new(name, folder.to_owned(), storage, Arc::default(), limits, Arc::default());
        outln!("{}", style::clean(name));
        // To be held: the purger only knows of it.
        let _archived = asked.of(name, folder, &purger, wanted)?;
        if self.dry_run {
            let plan = purger.plan(wanted)?;
            show(&plan);
            let (files, bytes) = (plan.goes().len(), units::bytes(plan.bytes()));
            outln!("  {} would go, {bytes}", units::counted(files as u64, "file"));
            if check_free(&self.data_dir, name).is_err_and(|error| error.is_locked()) {
                outln!(
                    "  binlogd runs on this copy: what its connected readers need stays too, and only binlogd knows that"
                );
            }
            return Ok(());
        }
        let owner = owner_of(folder)?;
        check_user(geteuid().as_raw(), owner, folder).map_err(|why| anyhow::anyhow!(why))?;
        let lock = SourceFolder::open(&PosixStorage, &self.data_dir, name);
        let _lock = lock.map_err(|error| match error.is_locked() {
            true => anyhow::anyhow!(
                "binlogd runs on this copy; use PURGE BINARY LOGS at its port for readers, or the rules of [retention], or add \
                 --dry-run"
            ),
            false => error.into(),
        })?;
        let plan = purger.purge_stopped(
            wanted,
            &format!("binlogd purge by {}", super::forks::who()),
            Timestamp::now(),
        )?;
        outln!(
            "  {} deleted, {}",
            units::counted(plan.goes().len() as u64, "file"),
            units::bytes(plan.bytes())
        );
        if let Some((file, why)) = plan.kept() {
            outln!("  {} of {} stays: {}", file.name, file.timeline(), why.join("; "));
        }
        Ok(())
    }
}

/// What a purge writes belongs to its user, and only that one can read it.
fn check_user(user: u32, owner: u32, folder: &Path) -> Result<(), String> {
    if user == owner {
        return Ok(());
    }
    Err(format!(
        "{} belongs to user {owner}, and you are user {user}: what you write there binlogd could not read. Use \
         sudo -u '#{owner}' binlogd purge",
        folder.display()
    ))
}

/// Of each file whether it goes, and if not, why.
fn show(plan: &Plan) {
    let files: Vec<LogFile> = plan.files.iter().map(|judged| judged.file.clone()).collect();
    let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
    let (mut timeline, mut before) = (None, None);
    for (at, judged) in plan.files.iter().enumerate() {
        let file = &judged.file;
        if timeline != Some(&file.folder) {
            outln!("  {}", style::clean(&file.timeline()));
            timeline = Some(&file.folder);
        }
        let sealed = match sealed_at(&PosixStorage, &files, at) {
            Ok(Some(sealed)) => format!("sealed {}", sealed.strftime("%Y-%m-%d %H:%M:%S")),
            _ => "not sealed".to_owned(),
        };
        let is_same = before.replace(&judged.stays) == Some(&judged.stays);
        let fate = match &judged.stays {
            None => "goes".to_owned(),
            Some(_) if is_same => "stays, for the same reason".to_owned(),
            Some(why) => format!("stays: {}", why.join("; ")),
        };
        outln!(
            "    {:width$}  {:>10}  {sealed:26}  {}",
            file.name,
            units::bytes(file.bytes),
            style::clean(&fate)
        );
    }
}

fn moment(text: &str) -> Result<Timestamp, String> {
    let in_utc =
        || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    text.parse::<Timestamp>().ok().or_else(in_utc).ok_or_else(|| {
        format!("{text:?} is no time: write 2026-01-31T12:00:00Z, or \"2026-01-31 12:00:00\" in UTC")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let owner = owner_of(folder.path()).unwrap();
        assert_eq!(owner, geteuid().as_raw());
        assert_eq!(check_user(owner, owner, folder.path()), Ok(()));
        let refused = check_user(0, 991, folder.path()).unwrap_err();
        assert!(refused.contains("sudo -u '#991' binlogd purge"), "{refused}");
    }

    #[test]
    fn times_are_read_in_utc() {
        let noon: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        for text in ["2026-01-31T12:00:00Z", "2026-01-31 12:00:00", "2026-01-31T13:00:00+01:00"] {
            assert_eq!(moment(text), Ok(noon), "{text}");
        }
        assert!(moment("yesterday").unwrap_err().contains("is no time"));
    }
}
