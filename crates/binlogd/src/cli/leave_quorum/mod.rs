//! `binlogd leave-quorum DATA_DIR`: a node goes on without the other nodes of its quorum, for good.

use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::style;
use crate::cli::opened::held_copy::{choose, put_in_place};
use binlog::storage::posix::PosixStorage;
use clap::Args;
use quorum::{Memory, leave, majority, memory_in};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `binlogd leave-quorum`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
For the case that a majority of the nodes is lost for ever. The copy of this node stays as it is; its memory of the quorum is set aside, and \
the node is blank, as a new machine is: with quorum in its configuration it begins another quorum, together with new machines whose data folders are \
empty; without, it acknowledges alone.

A transaction that was acknowledged is on a majority of the nodes. What only the lost ones had, this one lacks: that is lost, where the source is \
lost too. The nodes that are left behind must never come back: they would acknowledge without this one.

Exit codes: 0 done, 1 nothing was changed, 2 the command line is wrong.")]
pub(super) struct LeaveQuorumArgs {
    /// Folder of the copies: the data_dir of the configuration. binlogd must not run
    data_dir: PathBuf,
    /// The source; needed when the folder holds several
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// What only the other nodes have may be lost, and they never come back
    #[arg(long)]
    accept_loss: bool,
}

/// Runs `binlogd leave-quorum`.
pub(super) fn execute(args: &LeaveQuorumArgs) -> ExitCode {
    let (name, folder) = match choose(&args.data_dir, args.source.as_deref()) {
        Ok(chosen) => chosen,
        Err(error) => return usage_error(&error),
    };
    match left(args, &name, &folder) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            errln!("error: source {}: {}", style::clean(&name), style::clean(&error));
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn left(args: &LeaveQuorumArgs, name: &str, folder: &Path) -> Result<u8, String> {
    let copy = put_in_place(&args.data_dir, name)?;
    let copy = copy.ok_or("binlogd runs on this folder: stop it first")?;
    let memory = memory_in(&PosixStorage, folder).map_err(|error| error.to_string())?;
    let memory = memory.ok_or("this folder is of no node of a quorum: there is nothing to leave")?;
    outln!("{}", style::clean(&stands(name, &memory)));
    match copy.timeline().and_then(|timeline| Some((timeline.name.clone(), timeline.end()?))) {
        Some((timeline, end)) => outln!("its copy ends at {end} of {}", style::clean(&timeline)),
        None => outln!("its copy is empty"),
    }
    if !args.accept_loss {
        outln!(
            "nothing was changed. What only the other nodes have would be lost with them, and they must never come back: \
             --accept-loss says that this is so"
        );
        return Ok(EXIT_PROBLEM);
    }
    let aside = leave(&PosixStorage, folder).map_err(|error| error.to_string())?;
    outln!(
        "it has left the quorum; what it had promised is in {}. Now set quorum in its configuration, to new machines with empty data folders, \
         or take quorum out, and start it. See that the other nodes never start again",
        aside.display()
    );
    Ok(EXIT_OK)
}

/// What the node must not forget, for a person.
fn stands(name: &str, memory: &Memory) -> String {
    match memory.accepted() {
        Some(accepted) => {
            let nodes = accepted.members.len();
            format!(
                "{name}: a node of {nodes}, of which {} must have a transaction; {} is the source since epoch {}",
                majority(nodes),
                accepted.source,
                accepted.ballot.epoch
            )
        }
        None => format!("{name}: a node of a quorum that has not begun"),
    }
}
