//! The command line of `binlogd restore`.

use super::super::args::compare::Compare;
use super::super::args::server::ServerFlags;
use super::super::args::store::StoreArgs;
use clap::Args;
use config::DiskWarn;
use std::net::SocketAddr;
use std::path::PathBuf;
use wire::Secret;

/// What a new server is made of.
#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// With --new: this backup, by its name in `binlogd backups`; without it the newest that leads to the point
    #[arg(long, value_name = "NAME", requires = "new")]
    pub(super) backup: Option<String>,
    /// With --new: read the log in this copy, the data_dir of binlogd, where that reaches further than the archive
    #[arg(long, value_name = "DATA_DIR", requires = "new")]
    pub(super) log: Option<PathBuf>,
    /// With --new: the server's program; without it mysqld or mariadbd where packages put it
    #[arg(long, value_name = "FILE", requires = "new")]
    pub(super) server: Option<PathBuf>,
    /// With --new: the client's program; without it mysql or mariadb on the path
    #[arg(long, value_name = "FILE", requires = "new")]
    pub(super) client: Option<PathBuf>,
    /// With --new: mariadb-backup, with mbstream beside it, for a backup of that tool; without it those on the path
    #[arg(long, value_name = "FILE", requires = "new")]
    pub(super) mariadb_backup: Option<PathBuf>,
    /// With --new: the server's buffer pool, as 4GiB; without it a quarter of the memory that is free
    #[arg(long, value_name = "SIZE", requires = "new", value_parser = bytes)]
    pub(super) buffer_pool: Option<u64>,
    /// With --new: added to the server's options, as --lower-case-table-names=1
    #[arg(last = true, value_name = "OPTIONS", requires = "new")]
    pub(super) options: Vec<String>,
}

/// Reads `4GiB`.
pub(in crate::cli) fn bytes(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(DiskWarn::Bytes(bytes)) => Ok(bytes),
        _ => Err("write an amount of at least 1MiB, as 4GiB".to_owned()),
    }
}

/// The arguments of `binlogd restore`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The server is one that was restored from a backup, with its GTIDs (gtid_purged; on MariaDB gtid_slave_pos), or with what the backup \
tool noted (--backup-at), or is empty where the copy begins with the source's first transaction. Everything between its GTIDs and the point is walked first: it is known that \
nothing is missing before anything is changed. Then a port of this command sends it to the server's own replication, with its own \
parallel applier; the GTIDs are compared exactly, and the server is detached: no replication, its settings as they were.

A point is a GTID, FILE:POSITION, a time (local where it names no zone), or a statement. It is where the restore stops: 'before', \
which is meant where nothing is said, leaves the transaction out, 'after' takes it in.

  binlogd restore --into mysql://root@db2 --from /var/lib/binlogd --until 'before DROP TABLE shop.orders'
  binlogd restore --into mysql://root@db2 --from /var/lib/binlogd --until '2026-03-01 15:09' --plan
  binlogd restore --into mysql://root@db2 --from s3://bucket/binlogs --identity archive.key --work /var/tmp/restore --until end
  binlogd restore --table shop.orders --as shop.orders_restored --into mysql://root@db1 --from s3://bucket/binlogs --work /var/tmp/restore \
    --until 'before DROP TABLE shop.orders'

With --new nothing is needed but the archive, its key, and the package of the server: the newest backup that leads to the point is put into a new \
server of its own, without a port, in a folder of its own; the log brings it to the point, and the server is ended.

  binlogd restore --new /srv/restored --from s3://bucket/binlogs --identity archive.key --until 'before DROP TABLE shop.orders'

Exit codes: 0 the server has what was asked for (with --plan: a real run would try), 1 a problem, 2 the command line is wrong.")]
pub(crate) struct RestoreArgs {
    /// An empty folder, or one that is not there yet, in which a new server is made from a backup of the archive
    #[arg(long, value_name = "DIR", conflicts_with_all = ["into", "backup_at", "timeline", "skip", "accept", "allow_clients", "listen", "advertise", "statements"])]
    pub(super) new: Option<PathBuf>,
    #[command(flatten)]
    pub(super) programs: NewArgs,
    /// The server to restore: mysql://user@host:port
    ///
    /// The user needs on MySQL REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN, REPLICATION CLIENT, RELOAD and PROCESS (with --skip
    /// REPLICATION_APPLIER too), on MariaDB REPLICATION SLAVE ADMIN, REPLICATION MASTER ADMIN, SLAVE MONITOR, RELOAD and PROCESS; and
    /// REPLICATION SLAVE, so that what is there already is compared. Where one is missing nothing is changed.
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "new",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) into: Secret,
    /// Folder of the copies: the data_dir of the configuration, on which binlogd may run meanwhile; or an archive, as
    /// s3://bucket/prefix
    #[arg(long, value_name = "DATA_DIR|URL")]
    pub(super) from: PathBuf,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Folder for what is fetched of an archive: the newest binary log, and up to 1 GiB of others. It may be removed afterwards
    #[arg(long, value_name = "DIR")]
    pub(super) work: Option<PathBuf>,
    /// Where to stop: 'before DROP TABLE shop.orders', a GTID, FILE:POSITION, a time, or end
    #[arg(long, value_name = "POINT")]
    pub(super) until: String,
    /// Where the backup was made, when the server does not know: FILE:POSITION, GTIDs, or the line that xtrabackup or
    /// mariadb-backup wrote; or nothing
    ///
    /// A position is looked up in the copy, which has the source's files. The server must have executed nothing: it is told what it
    /// has (gtid_purged; on MariaDB gtid_slave_pos) before anything is applied.
    #[arg(long, value_name = "PLACE")]
    pub(super) backup_at: Option<String>,
    /// A table as it was at the point, made beside others on a server in use; --from is an archive with backups. Several times for several
    ///
    /// The newest dump whose log reaches the point is read, and what it and the log have of the table goes into a schema of its own; at the end the
    /// table gets the name of --as. Foreign keys and triggers are left out, and named. What cannot be followed is refused. docs/recovery/table.md
    #[arg(
        long,
        value_name = "SCHEMA.TABLE",
        requires = "names",
        conflicts_with_all = ["new", "backup_at", "skip", "allow_clients", "workers", "listen", "advertise", "statements"]
    )]
    pub(super) table: Vec<String>,
    /// The name that a --table gets on the server, in the same order; no table may have it
    #[arg(long = "as", value_name = "SCHEMA.TABLE", requires = "table")]
    pub(super) names: Vec<String>,
    /// Along the history that ends with this timeline: its number, or the name of its folder
    #[arg(long, value_name = "N")]
    pub(super) timeline: Option<String>,
    /// Do not apply these transactions; they count as if they were. FILE:POSITION for a server without GTIDs
    #[arg(long, value_name = "GTID", value_delimiter = ',')]
    pub(super) skip: Vec<String>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(super) plan: bool,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    /// Go on although others use the server: whatever they write is in no backup and in no log
    #[arg(long)]
    pub(super) allow_clients: bool,
    /// Leave these settings of the server as they are, although they change what is made of the log (docs/recovery/restore.md lists them)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) accept: Vec<String>,
    /// Compare what the server has already with the copy, by the server's binary log
    ///
    /// Somebody may have written to it after its backup was restored. What its log does not have any more is not compared.
    #[arg(long, value_name = "SCOPE", value_enum, default_value = "sample")]
    pub(super) compare: Compare,
    /// Threads of the server that apply; without it its own number, or 4 where that is 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) workers: Option<u32>,
    /// Address at which the server reads from this command; without it the one by which it is reached, with a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<SocketAddr>,
    /// Name or address of this machine as the server sees it, where that is not the one of --listen
    #[arg(long, value_name = "HOST")]
    pub(super) advertise: Option<String>,
    /// Hand the transactions over as statements, by this command's own connection: where the server cannot reach this machine
    ///
    /// One after the other, as rescue does it: on two cores at 0.77 of the speed of the server's own applier, and at 0.57 where each commit is
    /// made durable; the more cores the server has, the less. The user needs the rights that binlogd rescue needs.
    #[arg(long, conflicts_with_all = ["workers", "listen", "advertise"])]
    pub(super) statements: bool,
    #[command(flatten)]
    pub(super) server: ServerFlags,
}
