//! The operator's programs: the server's, and the client's that puts statements into it.

use super::no_server::NoServer;
use archive::chain::backup::BackupRecord;
use codec::ServerKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where packages put the server's program, which is on the path of root alone.
const SERVERS_OF_MYSQL: &[&str] = &["mysqld", "/usr/sbin/mysqld", "/usr/libexec/mysqld"];
const SERVERS_OF_MARIADB: &[&str] =
    &["mariadbd", "/usr/sbin/mariadbd", "/usr/libexec/mariadbd", "mysqld", "/usr/sbin/mysqld"];

/// The programs of the operator.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// The server's; where packages put it when `None`.
    pub server: Option<PathBuf>,
    /// The client's, for statements.
    pub client: Option<PathBuf>,
    /// mariadb-backup, with mbstream beside it.
    pub mariadb_backup: Option<PathBuf>,
    /// Added to the server's options.
    pub options: Vec<String>,
    /// Of the buffer pool, in bytes; a quarter of what is free when `None`.
    pub buffer_pool: Option<u64>,
}

/// A server's program, and what it says of itself.
#[derive(Debug, Clone)]
pub struct ServerProgram {
    /// Where it is.
    pub path: PathBuf,
    /// Whose it is.
    pub kind: ServerKind,
    /// As `9.7.4-2` or `11.8.6-MariaDB-0+deb13u1`.
    pub version: String,
}

impl ServerProgram {
    /// The one that was named, or the first of this kind where packages put it.
    ///
    /// # Errors
    /// When none can be run, or it is of the other kind.
    pub fn find(named: Option<&Path>, kind: ServerKind) -> Result<ServerProgram, NoServer> {
        let usual = match kind {
            ServerKind::MySql => SERVERS_OF_MYSQL,
            ServerKind::MariaDb => SERVERS_OF_MARIADB,
        };
        let places: Vec<&Path> =
            named.map_or_else(|| usual.iter().map(Path::new).collect(), |path| vec![path]);
        let mut other = None;
        for path in &places {
            match asked(path) {
                Ok(program) if program.kind == kind => return Ok(program),
                Ok(program) => {
                    other = Some(format!("{} is {} {}", path.display(), program.kind, program.version))
                }
                Err(why) if named.is_some() => other = Some(why),
                Err(_) => {}
            }
        }
        let looked: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
        let found = other.unwrap_or_else(|| format!("there is none of {}", looked.join(", ")));
        Err(NoServer::Program(format!(
            "the backup needs a server of {kind}, and {found}. Install its package, or name its program with --server"
        )))
    }

    /// Whether it can take a backup as it is.
    ///
    /// # Errors
    /// In words, what to install.
    pub fn fits(&self, record: &BackupRecord) -> Result<(), NoServer> {
        let (mine, theirs) = (numbers(&self.version), numbers(&record.server_version));
        if (mine.0, mine.1) == (theirs.0, theirs.1) && mine.2 >= theirs.2 {
            return Ok(());
        }
        Err(NoServer::Program(format!(
            "wrong server version: the backup was made on {} {}, and {} is {}. Use a server of {}.{} that is not older, and upgrade it when it \
             is restored",
            record.server_kind,
            record.server_version,
            self.path.display(),
            self.version,
            theirs.0,
            theirs.1
        )))
    }

    /// The folder that has the statements with which an empty server of MariaDB begins.
    pub(super) fn share(&self, options: &[String]) -> Result<PathBuf, NoServer> {
        let said = Command::new(&self.path)
            .arg("--no-defaults")
            .args(options)
            .args(["--verbose", "--help"])
            .output();
        let said = said.map_err(|error| not_run(&self.path, &error))?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let named = |line: &str| line.strip_prefix("lc-messages-dir ").map(|path| PathBuf::from(path.trim()));
        text.lines().find_map(named).ok_or_else(|| {
            NoServer::Program(format!(
                "{} --verbose --help does not name its lc-messages-dir",
                self.path.display()
            ))
        })
    }
}

/// What a program says of its version.
fn asked(path: &Path) -> Result<ServerProgram, String> {
    let said = Command::new(path).args(["--no-defaults", "--version"]).output();
    let said = said.map_err(|error| not_run(path, &error).to_string())?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = text.split_once(" Ver ").and_then(|(_, rest)| rest.split_whitespace().next());
    let version = version.filter(|_| said.status.success()).ok_or_else(|| {
        let line =
            if text.is_empty() { String::from_utf8_lossy(&said.stderr).into_owned() } else { text.clone() };
        format!("{} --version says {:?}", path.display(), line.lines().next().unwrap_or_default())
    })?;
    let kind = if text.contains("MariaDB") { ServerKind::MariaDb } else { ServerKind::MySql };
    Ok(ServerProgram { path: path.to_owned(), kind, version: version.to_owned() })
}

pub(super) fn not_run(path: &Path, error: &std::io::Error) -> NoServer {
    NoServer::Program(format!("{} cannot be run: {error}", path.display()))
}

/// The first three numbers of a version.
fn numbers(version: &str) -> (u32, u32, u32) {
    let mut parts = version.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || parts.next().and_then(Result::ok).unwrap_or(0);
    (next(), next(), next())
}

/// The client of a kind.
pub(super) fn client(named: Option<&Path>, kind: ServerKind) -> PathBuf {
    let usual = match kind {
        ServerKind::MySql => "mysql",
        ServerKind::MariaDb => "mariadb",
    };
    named.unwrap_or(Path::new(usual)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_the_servers_write_it() {
        assert_eq!(numbers("9.7.4-2"), (9, 7, 4));
        assert_eq!(numbers("11.8.6-MariaDB-0+deb13u1 from Debian"), (11, 8, 6));
        assert_eq!(numbers("5.7.22-log"), (5, 7, 22));
    }

    #[test]
    fn a_program_that_is_not_there_says_what_to_do() {
        let error = ServerProgram::find(Some(Path::new("/nowhere/mysqld")), ServerKind::MySql).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("/nowhere/mysqld cannot be run") && said.contains("--server"), "{said}");
    }
}
