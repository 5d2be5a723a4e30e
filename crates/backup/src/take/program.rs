//! How each tool is called, which arguments of the operator's would make something else of its backup, and what it says at its end.

use super::option_file;
use archive::chain::backup::{Stream, Tool};
use codec::ServerKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments that make less than the whole server of a dump, or a dump whose point or end nobody can read, and why.
const REFUSED_OF_DUMPS: &[(&str, &str)] = &[
    ("--databases", "leaves out the other schemas"),
    ("-B", "leaves out the other schemas"),
    ("--tables", "leaves out the other tables"),
    ("--ignore-table", "leaves out tables"),
    ("--ignore-database", "leaves out schemas"),
    ("--ignore-views", "leaves out views"),
    ("--no-data", "leaves out all rows"),
    ("-d", "leaves out all rows"),
    ("--where", "leaves out rows"),
    ("-w", "leaves out rows"),
    ("--no-create-info", "leaves out the tables' definitions"),
    ("-t", "leaves out the tables' definitions"),
    ("--no-create-db", "leaves out the schemas"),
    ("-n", "leaves out the schemas"),
    ("--skip-routines", "leaves out procedures and functions"),
    ("--skip-events", "leaves out events"),
    ("--skip-triggers", "leaves out triggers"),
    ("--skip-single-transaction", "reads each table at another moment"),
    ("--force", "goes on behind errors"),
    ("-f", "goes on behind errors"),
    ("--set-gtid-purged", "decides whether the point is told"),
    ("--source-data", "decides whether the point is told"),
    ("--master-data", "decides whether the point is told"),
    ("--dump-replica", "tells the point of another server"),
    ("--dump-slave", "tells the point of another server"),
    ("--skip-comments", "leaves out the point and the end mark"),
    ("--compact", "leaves out the point and the end mark"),
    ("--result-file", "writes elsewhere"),
    ("-r", "writes elsewhere"),
    ("--tab", "writes elsewhere"),
    ("-T", "writes elsewhere"),
    ("--xml", "is no stream of statements"),
    ("-X", "is no stream of statements"),
];

/// The same for mariadb-backup.
const REFUSED_OF_MARIADB_BACKUP: &[(&str, &str)] = &[
    ("--databases", "leaves out the other schemas"),
    ("--tables", "leaves out the other tables"),
    ("--incremental", "needs another backup below it"),
    ("--stream", "decides what is written"),
    ("--compress", "needs a program to unpack that servers do not have; binlogd compresses"),
    ("--no-lock", "does not tell one moment"),
    ("--target-dir", "writes elsewhere"),
    ("--prepare", "makes no backup"),
];

/// The same for the server that is started on a clone.
const REFUSED_OF_CLONE: &[(&str, &str)] = &[
    ("--datadir", "names another folder"),
    ("-h", "names another folder"),
    ("--init-file", "decides whether the point is told"),
    ("--initialize", "makes an empty server"),
    ("--upgrade", "makes another version of it"),
    ("--log-bin", "writes a log of its own"),
    (
        "--defaults",
        "must be the first of all arguments: write a program that gives it, and name that with --program",
    ),
];

/// What a tool is called with.
#[derive(Debug, Clone)]
pub struct Program {
    /// Which.
    pub tool: Tool,
    /// Another program of the same kind, or of another place.
    pub path: Option<PathBuf>,
    /// What the operator adds; of a command all of it, the program first.
    pub arguments: Vec<String>,
}

impl Program {
    /// The tool that fits a server best, where none was named.
    pub fn for_kind(kind: ServerKind) -> Tool {
        match kind {
            ServerKind::MySql => Tool::Mysqldump,
            ServerKind::MariaDb => Tool::MariadbDump,
        }
    }

    /// What it writes.
    pub fn stream(&self) -> Stream {
        match self.tool {
            Tool::Mysqldump | Tool::MariadbDump => Stream::Sql,
            Tool::MariadbBackup => Stream::Mbstream,
            Tool::Clone => Stream::Tar,
            Tool::Command => Stream::Other,
        }
    }

    /// Whether rows of all tables are read while nobody may write: then each storage engine does.
    pub(super) fn locks_all(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "--lock-all-tables" || argument == "-x")
    }

    /// Whether rows of an engine without snapshots would be of another moment, or not there at all.
    pub(super) fn needs_snapshots(&self) -> bool {
        self.tool == Tool::Clone || self.is_dump() && !self.locks_all()
    }

    /// Whether it reads statement by statement, with what other sessions do in between.
    pub(super) fn is_dump(&self) -> bool {
        matches!(self.tool, Tool::Mysqldump | Tool::MariadbDump)
    }

    /// Which argument makes no backup of it that could be brought forward, in words.
    pub(super) fn refused(&self) -> Option<String> {
        let refused = match self.tool {
            Tool::Mysqldump | Tool::MariadbDump => REFUSED_OF_DUMPS,
            Tool::MariadbBackup => REFUSED_OF_MARIADB_BACKUP,
            Tool::Clone => REFUSED_OF_CLONE,
            Tool::Command => return None,
        };
        for argument in &self.arguments {
            if !argument.starts_with('-') {
                return Some(format!(
                    "{argument:?} would leave out the rest of the server: only options can be added"
                ));
            }
            let name = argument.split_once('=').map_or(&**argument, |(name, _)| name).replace('_', "-");
            // One letter may have its value behind it.
            let is_it = |of: &str| {
                if of.len() == 2 {
                    name.starts_with(of) && !name.starts_with("--")
                } else {
                    name.starts_with(of)
                }
            };
            if let Some((_, why)) = refused.iter().find(|(of, _)| is_it(of)) {
                return Some(format!(
                    "{argument} {why}, so the backup could not be brought forward by the log"
                ));
            }
        }
        None
    }

    fn path(&self) -> Option<&Path> {
        match self.tool {
            Tool::Command => self.arguments.first().map(Path::new),
            // The plugin is the server's; the program is the one that starts on what it copied.
            Tool::Clone => Some(self.path.as_deref().unwrap_or(Path::new("mysqld"))),
            tool => Some(self.path.as_deref().unwrap_or(Path::new(tool.name()))),
        }
    }

    /// The call, but for its three streams.
    ///
    /// # Errors
    /// In words, when it names no program.
    pub(super) fn command(&self, server_version: &str) -> Result<Command, String> {
        let path = self
            .path()
            .ok_or("name the command behind --, which writes the backup to its standard output")?;
        let mut command = Command::new(path);
        if !matches!(self.tool, Tool::Command | Tool::Clone) {
            command.arg(format!("--defaults-extra-file={}", option_file::PATH));
        }
        match self.tool {
            Tool::Mysqldump | Tool::MariadbDump => {
                command.args([
                    "--all-databases",
                    "--routines",
                    "--events",
                    "--triggers",
                    "--hex-blob",
                    "--quick",
                ]);
                if !self.locks_all() {
                    command.arg("--single-transaction");
                }
                let of_mysql = self.tool == Tool::Mysqldump;
                command.arg(if of_mysql && knows_source(server_version) {
                    "--source-data=2"
                } else {
                    "--master-data=2"
                });
                command.arg(if of_mysql { "--set-gtid-purged=AUTO" } else { "--gtid" });
                command.args(&self.arguments);
            }
            Tool::MariadbBackup => {
                // It writes nothing there where it writes a stream, and wants a name all the same.
                let nowhere = std::env::temp_dir()
                    .join(format!("binlogd-backup-{:08x}", getrandom::u32().unwrap_or(0)));
                command
                    .args(["--backup", "--stream=mbstream", "--target-dir"])
                    .arg(nowhere)
                    .args(&self.arguments);
            }
            // Where its folder is, is known later.
            Tool::Clone => drop(command.arg("--no-defaults").args(&self.arguments)),
            Tool::Command => drop(command.args(self.arguments.iter().skip(1))),
        }
        Ok(command)
    }

    /// What it says of its version, the first line; empty where it says nothing.
    pub(super) fn version(&self) -> String {
        let path = self.path().filter(|_| self.tool != Tool::Command);
        let said = path.and_then(|path| Command::new(path).arg("--version").output().ok());
        let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        codec::packet::printable(text.lines().next().unwrap_or_default().as_bytes(), 256)
    }

    /// What is wrong with the end of what it wrote: `tail` of the stream, and of what it said. `None` when all is there.
    pub(super) fn unfinished(&self, tail: &[u8], said: &str) -> Option<String> {
        let (mark, found) = match self.tool {
            Tool::Mysqldump | Tool::MariadbDump => {
                let text = String::from_utf8_lossy(tail);
                let last =
                    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
                ("-- Dump completed", last.starts_with("-- Dump completed"))
            }
            Tool::MariadbBackup => {
                let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                ("completed OK!", last.trim_end().ends_with("completed OK!"))
            }
            Tool::Clone | Tool::Command => return None,
        };
        (!found).then(|| {
            format!(
                "{} ended with 0 and did not write its end mark, {mark:?}: it wrote a part only",
                self.tool
            )
        })
    }
}

/// Whether mysqldump of today asks that server in its new words: `--source-data` is of 8.0.26, and the program may be as old as the
/// server is.
fn knows_source(server_version: &str) -> bool {
    let mut numbers =
        server_version.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next(), next()) >= (8, 0, 26)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(tool: Tool, arguments: &[&str]) -> Program {
        Program { tool, path: None, arguments: arguments.iter().map(|one| (*one).to_owned()).collect() }
    }

    #[test]
    fn arguments_that_make_something_else_of_it_are_refused_by_name() {
        for (arguments, word) in [
            (&["--databases"][..], "--databases"),
            (&["shop"], "\"shop\""),
            (&["--ignore-table=shop.log"], "tables"),
            (&["--set_gtid_purged=OFF"], "point"),
            (&["-Bshop"], "schemas"),
            (&["--max-allowed-packet=1G", "--skip-comments"], "end mark"),
        ] {
            let why = program(Tool::Mysqldump, arguments).refused().unwrap();
            assert!(why.contains(word), "{why}");
        }
        for arguments in [&["--max-allowed-packet=1G"][..], &["--lock-all-tables"], &[]] {
            assert_eq!(program(Tool::MariadbDump, arguments).refused(), None);
        }
        assert!(program(Tool::MariadbBackup, &["--incremental-basedir=/x"]).refused().is_some());
    }

    #[test]
    fn each_tool_is_asked_for_all_of_the_server_and_its_point() {
        let words = |tool, arguments: &[&str], version| {
            let command = program(tool, arguments).command(version).unwrap();
            let words: Vec<String> =
                command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            words.join(" ")
        };
        let of_mysql = words(Tool::Mysqldump, &["--quick"], "8.0.26");
        assert!(of_mysql.starts_with("--defaults-extra-file=/dev/stdin --all-databases"), "{of_mysql}");
        assert!(
            of_mysql.contains(" --single-transaction --source-data=2 --set-gtid-purged=AUTO"),
            "{of_mysql}"
        );
        assert!(words(Tool::Mysqldump, &[], "5.7.22-log").contains("--master-data=2"));
        let locked = words(Tool::MariadbDump, &["-x"], "11.8.1-MariaDB");
        assert!(
            !locked.contains("--single-transaction") && locked.contains("--master-data=2 --gtid -x"),
            "{locked}"
        );
        assert!(words(Tool::MariadbBackup, &[], "").contains("--backup --stream=mbstream --target-dir"));
        assert_eq!(words(Tool::Command, &["pg", "a"], ""), "a");
        assert!(program(Tool::Command, &[]).command("").is_err());
    }

    #[test]
    fn an_end_that_is_not_marked_is_told() {
        let dump = program(Tool::Mysqldump, &[]);
        assert_eq!(dump.unfinished(b"x\n-- Dump completed on 2026-11-28 22:10:01\n", ""), None);
        assert!(dump.unfinished(b"-- Dump completed\nINSERT", "").unwrap().contains("a part only"));
        let physical = program(Tool::MariadbBackup, &[]);
        assert_eq!(physical.unfinished(b"", "[00] 2026 completed OK!\n"), None);
        assert!(physical.unfinished(b"", "[00] 2026 completed OK!\nFATAL").is_some());
    }
}
