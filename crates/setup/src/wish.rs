//! What the operator wants.

use crate::doctor::Nodes;
use config::HostPort;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::TlsOptions;

/// The folder of the copies where none is named: that of the unit for systemd.
pub const DATA_DIR: &str = "/var/lib/binlogd";
/// The configuration where none is named.
pub const CONFIG: &str = "/etc/binlogd/binlogd.toml";

/// Where the other nodes of a quorum find this one, where nothing else is named.
pub(crate) const SERVE: &str = "0.0.0.0:3307";

/// What the operator wants: the command line, with its defaults filled in.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Name of the source in the configuration.
    pub name: String,
    /// The source.
    pub host: HostPort,
    /// Account that binlogd gets on it.
    pub account: String,
    /// From where the account may log in; `None`: from the address at which the source sees this machine.
    pub pattern: Option<String>,
    /// The account must use TLS.
    pub require_ssl: bool,
    /// An account that exists gets the password of the file, or a new one.
    pub reset_password: bool,
    /// Whether commits are to wait for binlogd.
    pub semi_sync: bool,
    /// How long at most; `None`: as long as the source says now, if that is long enough.
    pub timeout: Option<Duration>,
    /// Protection of our connection, and of binlogd's.
    pub tls: TlsOptions,
    /// The configuration file, absolute.
    pub config: PathBuf,
    /// A file of its own for the source, absolute, which `include` of the configuration finds.
    pub source_file: Option<PathBuf>,
    /// Folder of the copies, absolute.
    pub data_dir: PathBuf,
    /// Ports for readers of the other nodes of a quorum; empty without one.
    pub quorum: Vec<HostPort>,
    /// Address for readers, as the configuration says it; `None`: none, or with a quorum `0.0.0.0:3307`.
    pub serve: Option<String>,
    /// Address of the status over HTTP, as the configuration says it; `None`: the default.
    pub admin_listen: Option<String>,
}

impl Wish {
    /// The file that names the source: its own, or the configuration.
    pub fn file(&self) -> &Path {
        self.source_file.as_deref().unwrap_or(&self.config)
    }

    /// Where the account's password goes.
    pub fn password_file(&self) -> PathBuf {
        let folder = self.config.parent().unwrap_or(Path::new("/"));
        folder.join(format!("{}.password", self.name))
    }

    /// Address for readers in the configuration that is written.
    pub(crate) fn serve_listen(&self) -> Option<&str> {
        self.serve.as_deref().or((!self.quorum.is_empty()).then_some(SERVE))
    }

    /// The nodes of the quorum, of which none was asked; `None` without one.
    pub fn nodes(&self) -> Option<Nodes> {
        let count = self.quorum.len() as u64 + 1;
        (!self.quorum.is_empty()).then_some(Nodes { count, uuids: Vec::new() })
    }

    /// The protection that binlogd needs: an account that must use TLS is not let in without.
    pub fn tls_mode(&self) -> wire::TlsMode {
        match self.tls.mode {
            wire::TlsMode::Preferred if self.require_ssl => wire::TlsMode::Required,
            mode => mode,
        }
    }
}

#[cfg(test)]
pub(crate) fn wish() -> Wish {
    Wish {
        name: "default".to_owned(),
        host: HostPort { host: "db1".to_owned(), port: 3306 },
        account: "binlogd".to_owned(),
        pattern: None,
        require_ssl: false,
        reset_password: false,
        semi_sync: true,
        timeout: None,
        tls: TlsOptions::default(),
        config: "/etc/binlogd/binlogd.toml".into(),
        source_file: None,
        data_dir: "/var/lib/binlogd".into(),
        quorum: Vec::new(),
        serve: None,
        admin_listen: None,
    }
}
