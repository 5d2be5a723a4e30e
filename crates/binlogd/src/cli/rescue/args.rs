//! The command line of `binlogd rescue`.

use crate::cli::args::compare::Compare;
use clap::Args;
use std::path::PathBuf;
use wire::{Secret, TlsMode};

/// The arguments of `binlogd rescue`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A transaction goes over under its own GTID, in the order of the copy, as mysqlbinlog would send it; all of them are read and \
understood before the first is sent, and compared with the target's own binary log afterwards. It is safe to repeat: what is \
there already is not sent again, but compared too. Until all is handed over the target's event_scheduler is OFF and its read_only \
ON; whoever can write all the same is refused by name.

Exit codes: 0 the target lacks nothing that the copy knows of (with --dry-run: a real run would try to send it), 1 a problem, or \
something is still missing there or cannot be known (left out, not in the copy, without a GTID, at a peer, or a peer could not be \
asked), 2 the command line is wrong.")]
pub(crate) struct RescueArgs {
    /// Folder of the copies: the data_dir of the configuration. binlogd may run on it meanwhile
    pub(super) data_dir: PathBuf,
    /// The server to complete: mysql://user@host:port
    ///
    /// The user needs the rights to do what the transactions did and to say under which GTID: SUPER; or on MySQL
    /// REPLICATION_APPLIER, BINLOG_ADMIN and SYSTEM_VARIABLES_ADMIN beside those to the tables. To see who else writes and to read
    /// the target's log: PROCESS, REPLICATION SLAVE and REPLICATION CLIENT; on MySQL CONNECTION_ADMIN and XA_RECOVER_ADMIN.
    #[arg(long, value_name = "URL")]
    pub(super) to: Secret,
    /// The source whose copy it is; needed when the folder holds several
    #[arg(long, value_name = "NAME")]
    pub(super) source: Option<String>,
    /// List the transactions and send nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print the statements of what is lacking and of GTIDs that were given twice, for a person, and send nothing
    ///
    /// They name no GTID. What a rescue hands over is a comment; what is left out is not. binlogd forks --print-sql asks no server.
    #[arg(long, conflicts_with_all = ["yes", "json", "dry_run"])]
    pub(super) print_sql: bool,
    /// With --print-sql: let what changes or deletes rows be run too, and not only what inserts
    ///
    /// Where the log has rows and not statements, each row is set to what it was then, whatever was written to it since.
    #[arg(long, requires = "print_sql")]
    pub(super) overwrite: bool,
    /// Do not ask before sending
    #[arg(long)]
    pub(super) yes: bool,
    /// Compare what the target has already with the copy, by the target's binary log
    ///
    /// A GTID on both sides may name two transactions. What is handed over is always compared in the end, except with none.
    #[arg(long, value_name = "SCOPE", value_enum, default_value = "sample")]
    pub(super) compare: Compare,
    /// Go on although others can write to the target, who could take the GTIDs that are to come
    #[arg(long)]
    pub(super) allow_writers: bool,
    /// Do not hand over these transactions: GTIDs, as the list shows them
    ///
    /// For what cannot be handed over by statements and blocks the others. The target then lacks them, later ones may depend on
    /// them, and the exit code is 1.
    #[arg(long, value_name = "GTID", value_delimiter = ',')]
    pub(super) leave_out: Vec<String>,
    /// Go on although the target shares no transaction with the copy, or is empty
    #[arg(long)]
    pub(super) unrelated: bool,
    /// Ask the peers of this configuration what they hold beyond the copy
    ///
    /// Without it /etc/binlogd/binlogd.toml counts where that is of this folder and can be read, else what the running daemon
    /// says.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Ask no peer, and call all what this copy alone has
    ///
    /// For peers that are gone for good. What they alone held is lost.
    #[arg(long, conflicts_with = "config")]
    pub(super) without_peers: bool,
    /// Leave these settings of the target as they are, although they change what is made of what is handed over
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) accept: Vec<String>,
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
