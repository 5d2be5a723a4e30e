//! `binlogd slots DATA_DIR`: the readers whose place is remembered.

use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::{style, units};
use binlog::folder::source_folders;
use binlog::purge::order::list;
use binlog::storage::posix::PosixStorage;
use clap::Args;
use jiff::Timestamp;
use serve::retention::{behind, slots};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `binlogd slots`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A slot keeps the files that its reader has not read, and slot_margin before these, up to slot_max_age and slot_max_bytes of \
[retention]. \
Readers get one by slot of their [[serve.user]], or by their UUID with slots = true in [serve]. Remove the slot of a reader that \
will not come back. That of a reader that is connected is made again.

Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong.")]
pub(super) struct SlotsArgs {
    /// Folder of the copies: the data_dir of the configuration. binlogd may run on it meanwhile
    data_dir: PathBuf,
    /// This source only
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Remove the slot of this name
    #[arg(long, value_name = "SLOT")]
    drop: Option<String>,
}

/// Runs `binlogd slots`.
pub(super) fn execute(args: &SlotsArgs) -> ExitCode {
    let mut sources = match source_folders(&PosixStorage, &args.data_dir) {
        Ok(sources) if sources.is_empty() => {
            return usage_error(&format!("{} holds no source", args.data_dir.display()));
        }
        Ok(sources) => sources,
        Err(error) => return usage_error(&format!("cannot read {}: {error}", args.data_dir.display())),
    };
    sources.retain(|(name, _)| args.source.as_ref().is_none_or(|source| source == name));
    let mut found = args.drop.is_none();
    for (name, folder) in &sources {
        let done = match &args.drop {
            Some(slot) if !slots::is_name(slot) => {
                return usage_error(&format!("{slot:?} is no name of a slot"));
            }
            Some(slot) => slots::remove(&PosixStorage, folder, slot).map(|removed| {
                found |= removed;
                if removed {
                    outln!("slot {slot} of {} is removed", style::clean(name));
                }
            }),
            None => show(name, folder),
        };
        if let Err(error) = done {
            errln!("error: source {}: {error}", style::clean(name));
            return ExitCode::from(EXIT_PROBLEM);
        }
    }
    if let (Some(slot), false) = (&args.drop, found) {
        errln!("error: there is no slot {slot}");
        return ExitCode::from(EXIT_PROBLEM);
    }
    ExitCode::from(EXIT_OK)
}

fn show(name: &str, folder: &Path) -> io::Result<()> {
    let (slots, wrong) = slots::read_all(&PosixStorage, folder)?;
    let files = list(&PosixStorage, folder)?;
    outln!("{}", style::clean(name));
    if slots.is_empty() && wrong.is_empty() {
        outln!("  no slots");
    }
    for slot in slots {
        let behind = match behind(&files, &slot) {
            Some(bytes) => format!("{} behind", units::bytes(bytes)),
            None => "its file is gone".to_owned(),
        };
        let away = units::duration(slots::away(&slot, Timestamp::now()).as_secs());
        let line = format!(
            "  {}  {} {}:{}  {behind}, its reader ({}) was here {away} ago",
            slot.name,
            slot.timeline,
            slot.file,
            slot.offset,
            if slot.reader.is_empty() { "whoever comes next" } else { &slot.reader }
        );
        outln!("{}", style::clean(&line));
    }
    for what in wrong {
        outln!("  {}", style::clean(&what));
    }
    Ok(())
}
