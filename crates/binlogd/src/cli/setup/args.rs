//! The command line of `binlogd setup`.

use clap::{ArgAction, Args};
use config::HostPort;
use config::value::{is_name, parse_host_port};
use setup::{CONFIG, DATA_DIR};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use wire::{Secret, TlsMode};

/// The arguments of `binlogd setup`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Run it on the machine of binlogd, with an administrator's account of the source. Without --apply nothing is changed: it shows each \
step with its statements and its reason. With --apply it does what can be done now. Then start binlogd, and run the same command \
again: semi-sync is switched on only when binlogd is attached and has caught up, because before that every commit would wait for \
nobody. It is safe to repeat and to interrupt: what is there is not done twice, no file is written over, and no password of an \
account that exists is changed without --reset-password.

Exit codes: 0 all that can be done now is done (without --apply: nothing stands in the way), 1 something stands in the way or has \
failed, 2 the command line or the configuration is wrong.")]
pub(crate) struct SetupArgs {
    /// The source, with an administrator's account: mysql://root@host:port
    ///
    /// The account needs CREATE USER, REPLICATION SLAVE with GRANT OPTION, and to install the plugin and set variables
    /// SYSTEM_VARIABLES_ADMIN and INSERT on mysql.plugin, or SUPER; on MariaDB SUPER or REPLICATION MASTER ADMIN.
    pub(super) server: Secret,
    /// Do it; without this nothing is changed
    #[arg(long)]
    pub(super) apply: bool,
    /// Do not ask before anything is changed
    #[arg(long, requires = "apply")]
    pub(super) yes: bool,
    /// Wait until binlogd is attached, so long at most, and switch semi-sync on then
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "10m",
          value_parser = duration, requires = "apply")]
    pub(super) wait: Option<Duration>,
    /// Print how to take everything back, and do nothing
    #[arg(long, conflicts_with_all = ["apply", "yes", "wait"])]
    pub(super) undo: bool,
    /// Name of the source in the configuration, in status, and of its folder
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = name)]
    pub(super) name: String,
    /// Account that binlogd gets on the source
    #[arg(long, value_name = "NAME", default_value = "binlogd")]
    pub(super) account: String,
    /// From where the account may log in, as MySQL writes it: 10.0.0.% [default: the address at which the source sees this machine]
    #[arg(long, value_name = "PATTERN")]
    pub(super) replica_host: Option<String>,
    /// Let the account in with TLS only
    #[arg(long)]
    pub(super) require_ssl: bool,
    /// Give an account that exists the password of the password file, or a new one
    #[arg(long)]
    pub(super) reset_password: bool,
    /// Whether commits are to wait for binlogd
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(super) semi_sync: bool,
    /// Make it a node of a quorum: addresses of all other nodes, as they are reached from here: binlogd2:3307,binlogd3:3307
    ///
    /// The source gets a timeout of an hour at least, and is to wait for one replica. Run it on each node with the others' addresses;
    /// the password file of the first is copied to the others before.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = parse_host_port)]
    pub(super) quorum: Vec<HostPort>,
    /// Address for replicas and other nodes, for the configuration that is written [default: none, with --quorum 0.0.0.0:3307]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(super) serve: Option<SocketAddr>,
    /// How long a commit waits at most when binlogd does not answer [default: as now, at least 10s, with --quorum 1h]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    pub(super) timeout: Option<Duration>,
    /// The configuration file, written when it does not exist
    #[arg(long, value_name = "FILE", default_value = CONFIG)]
    pub(super) config: PathBuf,
    /// Write the source into this file, which include of the configuration finds
    #[arg(long, value_name = "FILE")]
    pub(super) source_file: Option<PathBuf>,
    /// Folder of the copies
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(super) data_dir: PathBuf,
    /// Address of the status over HTTP, for the configuration that is written [default: 127.0.0.1:9306]
    ///
    /// A second binlogd on one machine needs its own.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(super) admin_listen: Option<SocketAddr>,
    /// File with the administrator's password; else the variable BINLOGD_PASSWORD counts, else it is asked for
    #[arg(long, value_name = "FILE")]
    pub(super) password_file: Option<PathBuf>,
    /// Encryption, of binlogd too: disabled, preferred, required, verify-ca or verify-full
    #[arg(long, value_name = "MODE", default_value = "preferred")]
    pub(super) tls: TlsMode,
    /// PEM file with the authorities that --tls verify-ca and verify-full trust
    #[arg(long, value_name = "FILE")]
    pub(super) tls_ca: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an address and a port: 127.0.0.1:9306".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    config::duration::parse(text).map_err(|error| error.to_string())
}

/// With less than a second, or none at all, hardly a commit waits for its acknowledgement.
fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration(text)?;
    match timeout >= Duration::from_secs(1) {
        true => Ok(timeout),
        false => Err("commits would return without an acknowledgement: give 1s at least, 10s is usual. Semi-sync that is not \
                      wanted is --semi-sync false"
            .to_owned()),
    }
}

fn name(text: &str) -> Result<String, String> {
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("a name has 1 to 64 letters, digits, dots, hyphens and underscores, and no dot in front"
                .to_owned())
        }
    }
}
