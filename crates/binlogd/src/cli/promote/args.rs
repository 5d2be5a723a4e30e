//! The command line of `binlogd promote`.

use clap::Args;
use std::path::PathBuf;
use wire::{Secret, TlsMode};

/// The arguments of `binlogd promote`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Run it at any node. A majority of the nodes promises a new epoch, and from then on the old source gets no acknowledgement, \
wherever it is. What they hold is agreed on; the server gets all of it, by its own replication, or from a node where that does not bring it; a majority \
records it as the source; then it forgets its own source, waits for acknowledgements, and can be written to. Whoever is interrupted runs \
the same again, at this node or another one. Before anything is changed it is said what stands against it.

Exit codes: 0 the server is the source (with --dry-run: nothing stands against it), 1 a problem, said by name, 2 the command line or \
the configuration is wrong, 3 the server is the source and the hook has failed.")]
pub(crate) struct PromoteArgs {
    /// The server that is to be the source, one of hosts: mysql://user@host:port
    ///
    /// The user needs, on MySQL, REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN, REPLICATION CLIENT, REPLICATION SLAVE
    /// and RELOAD; on MariaDB, REPLICATION SLAVE ADMIN, REPLICATION MASTER ADMIN, READ_ONLY ADMIN, BINLOG MONITOR, REPLICATION SLAVE and
    /// RELOAD.
    #[arg(long, value_name = "URL")]
    pub(super) to: Secret,
    /// The configuration of a node
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// The source; needed when several have a quorum
    #[arg(long, value_name = "NAME")]
    pub(super) source: Option<String>,
    /// The port for readers of the node itself, where listen in [serve] does not say it
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) node: Option<String>,
    /// So long the server is waited for while it comes no nearer to what the nodes hold, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub(super) wait: u64,
    /// Leave these settings of the server as they are, although they change what its replication makes of a log
    /// (docs/recovery/restore.md lists them)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) accept: Vec<String>,
    /// Point the other hosts that are replicas to the server, with the user of --to
    #[arg(long)]
    pub(super) repoint: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Refuse unless the source is of this epoch: nobody else has promoted since that was seen
    #[arg(long, value_name = "NUMBER")]
    pub(super) epoch: Option<u64>,
    /// Run this with sh once the server is open, to send the clients there; a failure is said and changes nothing
    ///
    /// It has BINLOGD_SOURCE_HOST, BINLOGD_SOURCE_PORT, BINLOGD_SOURCE_UUID, BINLOGD_EPOCH, and BINLOGD_OLD_SOURCE_UUID, which is empty
    /// when the promotion was ended before. It must end within a minute. The same promote again runs it again.
    #[arg(long, value_name = "COMMAND")]
    pub(super) hook: Option<String>,
    /// Do not ask before it is done
    #[arg(long)]
    pub(super) yes: bool,
    /// Print JSON; needs --dry-run or --yes
    #[arg(long)]
    pub(super) json: bool,
    /// File with the server's password, alone on its line; else the variable BINLOGD_PASSWORD counts
    #[arg(long, value_name = "FILE")]
    pub(super) password_file: Option<PathBuf>,
    /// Encryption of this command's connection to the server: disabled, preferred, required, verify-ca or verify-full
    #[arg(long, value_name = "MODE", default_value = "preferred")]
    pub(super) tls: TlsMode,
    /// PEM file with the authorities that --tls verify-ca and verify-full trust
    #[arg(long, value_name = "FILE")]
    pub(super) tls_ca: Option<PathBuf>,
}
