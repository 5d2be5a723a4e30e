//! `binlogd fetch URL --to DIR`: files of an archive back on a disk, as a copy like any other.

use super::exit::{EXIT_OK, EXIT_PROBLEM};
use super::{style, units};
use crate::cli::args::store::{Opened, StoreArgs, not_opened};
use archive::fetch::{Bound, Part, Wanted, fetch, plan};
use binlog::folder::SourceFolder;
use binlog::journal::JOURNAL_FILE;
use binlog::storage::posix::PosixStorage;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// Segments that are read side by side, where nothing else is said.
const AT_ONCE: u16 = 8;
/// As `binlogd verify` has it.
const BAR: &str = "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}";

/// The arguments of `binlogd fetch`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The folder is a copy afterwards: binlogd verify, status and rescue read it, binlogd run goes on with it, and each file in it is the \
source's, byte for byte. Files are fetched whole, those with the bounds too. A run that was interrupted goes on when it is done again.

A bound is a file (mysql-bin.000123), a time (2026-11-22T15:10:00Z, or with an offset), or a GTID.

A file of which an object is gone or damaged is named at the end, and all others are fetched; run it again when the object is put back.

Exit codes: 0 done, 1 it could not be done, or not all of it, or the archive ends too early; 2 the command line is wrong.")]
pub(super) struct FetchArgs {
    /// The archive: url in [archive], as s3://bucket/prefix
    url: String,
    /// Folder for the copies, one folder a source inside; made if need be
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    /// Only this timeline
    #[arg(long, value_name = "NAME")]
    timeline: Option<String>,
    /// From the file on in which this lies
    #[arg(long, value_name = "BOUND")]
    from: Option<String>,
    /// Up to the file in which this lies
    #[arg(long, value_name = "BOUND")]
    until: Option<String>,
    /// Objects that are read side by side
    #[arg(long, value_name = "N", default_value_t = AT_ONCE, value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: u16,
    /// Say what would be fetched, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `binlogd fetch`.
pub(super) fn execute(args: &FetchArgs) -> ExitCode {
    let wanted = Wanted {
        timeline: args.timeline.clone(),
        from: args.from.as_deref().map(bound),
        until: args.until.as_deref().map(bound),
    };
    let opened = match args.store.open(&args.url) {
        Ok(opened) => opened,
        Err(error) => return not_opened(&error),
    };
    let mut is_all = true;
    for source in &opened.sources {
        match one(args, &opened, source, &wanted) {
            Ok(all) => is_all &= all,
            Err(error) => {
                errln!("error: source {}: {error:#}", style::clean(source));
                is_all = false;
            }
        }
    }
    ExitCode::from(if is_all { EXIT_OK } else { EXIT_PROBLEM })
}

/// What a bound is, by its form.
fn bound(text: &str) -> Bound {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Bound::Time(at.as_second());
    }
    // A name ends in a dot and digits, which no GTID does.
    match codec::BinlogName::parse(text) {
        Ok(_) => Bound::File(text.to_owned()),
        Err(_) => Bound::Gtids(text.to_owned()),
    }
}

/// Fetches what is wanted of a source. False when the archive has had more than can be read now, and when a file is lacking.
fn one(args: &FetchArgs, opened: &Opened, source: &str, wanted: &Wanted) -> anyhow::Result<bool> {
    let mut chain = opened.reader.chain(source)?;
    let beyond = chain.beyond_a_hole(&*opened.reader.store)?;
    if let Some(what) = &beyond {
        errln!(
            "error: source {}: the archive has {what}, and not all commits before it: what is fetched ends at commit {}, and is older \
             than what was archived. binlogd verify names what is missing",
            style::clean(source),
            chain.history().seq
        );
    }
    let parts = plan(chain.history(), wanted)?;
    let bytes: u64 = parts.iter().map(Part::bytes).sum();
    let files: usize = parts.iter().map(|part| part.files().len()).sum();
    let counted = units::counted(files as u64, "file");
    if args.dry_run {
        for part in &parts {
            for file in part.files() {
                let end = if file.sealed.is_some() { "" } else { ", not finished" };
                outln!("{source}/{}/{}: {}{end}", part.timeline, file.name, units::bytes(file.end()));
            }
        }
        outln!("{} in {counted} would be fetched", units::bytes(bytes));
        return Ok(beyond.is_none());
    }
    let folder = args.to.join(source);
    anyhow::ensure!(
        !folder.join(JOURNAL_FILE).exists(),
        "{} is the copy of a binlogd, which goes on with what it has: fetch into another folder",
        folder.display()
    );
    let folder = SourceFolder::open(&PosixStorage, &args.to, source)?;
    let bar = if io::stderr().is_terminal() { ProgressBar::new(bytes) } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::with_template(BAR)?);
    bar.set_message(source.to_owned());
    let mut lacking = Vec::new();
    for part in &parts {
        let at_once = usize::from(args.concurrency);
        let progress = |done| bar.inc(done);
        lacking
            .extend(fetch(&opened.reader, &PosixStorage, folder.path(), part, at_once, &progress)?.lacking);
    }
    bar.finish_and_clear();
    if !lacking.is_empty() {
        for (file, error) in &lacking {
            errln!("error: source {}: {file} was not fetched: {error}", style::clean(source));
        }
        let fetched = files - lacking.len();
        outln!(
            "{source}: {fetched} of {counted}, as the archive has them, and synced, in {}; {} are LACKING. Put the objects back and \
             run this again: it fetches what lacks",
            folder.path().display(),
            lacking.len()
        );
        return Ok(false);
    }
    let Some(last) = parts.last() else { return Ok(beyond.is_none()) };
    let end = last.files().last().map_or_else(String::new, |file| {
        format!("; the last ends at {}:{} with {}", file.name, file.end(), or_no_gtids(&file.gtids))
    });
    outln!(
        "{source}: {} in {counted}, as the archive has them, and synced, in {}{end}",
        units::bytes(bytes),
        folder.path().display()
    );
    Ok(beyond.is_none())
}

fn or_no_gtids(gtids: &str) -> &str {
    if gtids.is_empty() { "no GTIDs" } else { gtids }
}
