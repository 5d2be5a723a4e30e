//! A source with a backlog, and a binlogd that has all of it.

use super::args::ServeArgs;
use super::serving::{self, Serving};
use crate::backlog::{Backlog, Mix};
use std::fmt;
use std::path::Path;

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Source,
    Binlogd,
}

pub(super) const SENDERS: [Sender; 2] = [Sender::Source, Sender::Binlogd];

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Sender::Source { "the source" } else { "binlogd" })
    }
}

/// A real source with a backlog, and a binlogd that has all of it.
pub(super) struct Scene {
    pub(super) backlog: Backlog,
    binlogd: Serving,
}

impl Scene {
    /// Makes both. `gib` is the size of the backlog.
    ///
    /// # Errors
    /// When one of them does not do its work.
    pub(super) fn make(args: &ServeArgs, dir: &Path, mix: Mix, gib: f64) -> anyhow::Result<Scene> {
        let bytes = (gib * f64::from(1 << 30)) as u64;
        eprintln!("making {gib:.2} GiB of binary log on {}", args.server);
        let backlog = Backlog::make(&args.servers_script, &args.server, dir, bytes, mix)?;
        let binlogd = Serving::start(&args.common.binlogd, &args.common.dir, backlog.server.port())?;
        let (file, position) = backlog.end()?;
        binlogd.wait_durable(file, position)?;
        Ok(Scene { backlog, binlogd })
    }

    /// Port, password and process of whoever sends.
    pub(super) fn sender(&self, sender: Sender) -> (u16, &'static str, u32) {
        match sender {
            Sender::Source => (self.backlog.server.port(), "", self.backlog.server.pid()),
            Sender::Binlogd => (self.binlogd.port(), serving::PASSWORD, self.binlogd.pid()),
        }
    }
}
