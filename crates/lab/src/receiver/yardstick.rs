//! Receivers that binlogd is measured beside, which tell nothing of themselves. They speak to servers of the lab's own
//! alone: neither has TLS, and both would show a password in the list of processes or need another way to get one.

use super::program::Program;
use crate::lab::Lab;
use crate::machine::cpus::Role;
use crate::receiver::go_mysqlbinlog;
use crate::server::Target;
use crate::window::Place;
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// Which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Yardstick {
    /// The bare receiver (`rig::bare`), which acknowledges after its fdatasync.
    BareSynced,
    /// The bare receiver, which acknowledges after its write.
    BareWritten,
    /// go-mysqlbinlog, which acknowledges when an event is handed to the part that writes, and syncs nothing.
    GoMysqlbinlog,
}

impl Yardstick {
    /// Builds what it needs, once for all cells.
    ///
    /// # Errors
    /// When Go is missing or too old, or the module cannot be had.
    pub fn make_ready(self, lab: &Lab) -> anyhow::Result<()> {
        match self {
            Yardstick::GoMysqlbinlog => go_mysqlbinlog::build(&lab.dir)
                .map(|_| ())
                .context("go-mysqlbinlog cannot be built; --set yardsticks=bare measures without it"),
            _ => Ok(()),
        }
    }

    /// Starts it at `place` of `source`, with a folder of its own in `dir`.
    ///
    /// # Errors
    /// When it does not start, and when the source is one of the user's.
    pub fn attach(self, lab: &Lab, source: &Target, place: &Place, dir: &Path) -> anyhow::Result<Program> {
        ensure!(!source.is_users(), "{} is one of yours, and this speaks in clear", source.name());
        let account = source.account_of_receivers();
        let (port, position) = (account.port.to_string(), place.position.to_string());
        let bare = |data: &Path, acknowledge: &str| {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["bare", "--host", &account.host, "--port", &port, "--user", &account.user]);
            command.args(["--file", &place.file, "--position", &position]);
            command.args(["--acknowledge", acknowledge]).arg("--out").arg(data);
            anyhow::Ok(command)
        };
        let _placed = lab.place(Role::Receiver)?;
        match self {
            Yardstick::BareSynced => Program::start("bare", dir, |data| bare(data, "synced")),
            Yardstick::BareWritten => Program::start("bare", dir, |data| bare(data, "written")),
            Yardstick::GoMysqlbinlog => Program::start("go-mysqlbinlog", dir, |data| {
                let mut command = Command::new(go_mysqlbinlog::build(&lab.dir)?);
                command.args(["-host", &account.host, "-port", &port, "-user", &account.user]);
                command.args(["-flavor", source.dialect().kind().name(), "-raw", "-semisync"]);
                command.args(["-file", &place.file, "-pos", &position, "-backup_path"]).arg(data);
                Ok(command)
            }),
        }
    }
}
