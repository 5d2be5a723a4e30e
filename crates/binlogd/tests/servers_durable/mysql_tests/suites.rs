//! The servers' own test suites: which of their tests are run, and how one is.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::workload::Random;
use crate::common::{Server, workspace};

/// Words of tests that need more than one server, stop it, run programs of the host, or take what nobody else may.
const LEFT_OUT: [&str; 21] = [
    "restart",
    "shutdown",
    "kill_mysqld",
    "mysqld_safe",
    "$mysqld",
    "have_debug",
    "master-slave",
    "rpl_init",
    "init_source_replica",
    "group_replication",
    "big_test",
    "big-test",
    "server_2",
    "galera",
    "ndb",
    "incident",
    "exec ",
    "system ",
    "perl;",
    // Histories with holes are made on purpose: `verify` would rightly call them gaps.
    "gtid_purged",
    "gtid_binlog_state",
];

/// Folders of suites, below that of all. They write, and need no second server.
const SUITES: [&str; 18] = [
    "t",
    "main",
    "suite/binlog",
    "suite/binlog_gtid",
    "suite/binlog_nogtid",
    "suite/innodb",
    "suite/gcol",
    "suite/vcol",
    "suite/json",
    "suite/parts",
    "suite/funcs_1",
    "suite/gis",
    "suite/jp",
    "suite/sql_sequence",
    "suite/versioning",
    "suite/innodb_fts",
    "suite/engines/funcs",
    "suite/engines/iuds",
];

/// What `scripts/servers suites` prints.
pub(crate) struct Suites {
    pub(crate) folder: PathBuf,
    /// A program and its first arguments.
    mysqltest: Vec<String>,
    /// Tests that reset the source's logs.
    resetting: Vec<PathBuf>,
    others: Vec<PathBuf>,
}

impl Suites {
    pub(crate) fn of(server: &str) -> Suites {
        let output =
            Command::new(workspace().join("scripts/servers")).args(["suites", server]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_else(|| panic!("no {key} in {text}")).trim_end_matches('\t').to_owned()
        };
        let folder = PathBuf::from(value("SUITES"));
        let mysqltest = value("MYSQLTEST").split('\t').map(str::to_owned).collect();
        let (mut resetting, mut others) = (Vec::new(), Vec::new());
        for suite in SUITES {
            let below = folder.join(suite);
            let tests = if below.join("t").is_dir() { below.join("t") } else { below };
            let Ok(entries) = std::fs::read_dir(&tests) else { continue };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            for path in paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "test")) {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).to_lowercase();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if LEFT_OUT.iter().any(|words| text.contains(words) || name.contains(words)) {
                    continue;
                }
                let resets = ["reset master", "reset binary logs"].iter().any(|words| text.contains(words));
                if resets { resetting.push(path) } else { others.push(path) }
            }
        }
        assert!(resetting.len() > 10 && others.len() > 300, "{} and {}", resetting.len(), others.len());
        Suites { folder, mysqltest, resetting, others }
    }

    pub(crate) fn any(&self, random: &mut Random) -> &Path {
        let tests = if random.below(4) == 0 { &self.resetting } else { &self.others };
        &tests[random.below(tests.len() as u64) as usize]
    }

    pub(crate) fn start(&self, test: &Path, server: &Server, scratch: &Path) -> Child {
        let (program, arguments) = self.mysqltest.split_first().unwrap();
        for folder in ["tmp", "log"] {
            std::fs::create_dir_all(scratch.join(folder)).unwrap();
        }
        let output = || std::fs::File::create(scratch.join("output")).unwrap();
        Command::new(program)
            .args(arguments)
            .args(["--no-defaults", "--silent", "--host=127.0.0.1", "--user=root", "--database=test"])
            .arg(format!("--port={}", server.port()))
            .arg(format!("--socket={}", server.env("SOCKET")))
            .arg(format!("--basedir={}/", self.folder.display()))
            .arg(format!("--tmpdir={}", scratch.join("tmp").display()))
            .arg(format!("--logdir={}", scratch.join("log").display()))
            .arg(format!("--test-file={}", test.display()))
            .current_dir(&self.folder)
            .env("MYSQL_TEST_DIR", &self.folder)
            .env("MYSQLTEST_VARDIR", scratch)
            .env("MYSQL_TMP_DIR", scratch.join("tmp"))
            .env("MASTER_MYPORT", server.port().to_string())
            .env("MASTER_MYSOCK", server.env("SOCKET"))
            .stdin(Stdio::null())
            .stdout(output())
            .stderr(output())
            .spawn()
            .expect("mysqltest runs")
    }
}
