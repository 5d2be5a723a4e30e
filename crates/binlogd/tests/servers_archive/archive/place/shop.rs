//! A source that is archived and backed up: what the tests of backups, and of the ways back from one, begin with.

use super::{Place, wait_archived};
use crate::common::daemon::Daemon;
use crate::common::readers::{checksums, make_account};
use crate::common::{Server, script};
use archive::chain::Chain;
use archive::chain::history::ArchivedBackup;
use archive::keys::Identities;
use archive::plain_stream::PlainStream;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::remote::Folder;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Quotes, and what a shell and an option file would take for something else.
const PASSWORD: &str = "p\"a'ss # \\ word";

fn options(name: &str) -> &'static [&'static str] {
    match name.starts_with("mysql") {
        true => &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        false => &["--server-id=1"],
    }
}

/// A source that is archived, and the tool that backs it up.
pub(in crate::archive) struct Shop {
    pub(in crate::archive) source: Server,
    pub(in crate::archive) daemon: Daemon,
    pub(in crate::archive) place: Place,
    pub(in crate::archive) dir: tempfile::TempDir,
    pub(in crate::archive) tool: PathBuf,
}

impl Shop {
    pub(in crate::archive) fn new(name: &str, config: &str) -> Shop {
        let source = Server::start(name, options(name));
        make_account(&source);
        source.sql(
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT); CREATE PROCEDURE shop.early() SELECT 1",
        );
        source.sql(&"INSERT INTO shop.orders (v) VALUES ('early'); ".repeat(50));
        let secret = PASSWORD.replace('\\', "\\\\").replace('\'', "\\'");
        source
            .sql(&format!("CREATE USER keeper@'%' IDENTIFIED BY '{secret}'; GRANT ALL ON *.* TO keeper@'%'"));
        let place = Place::folder();
        let daemon = place.start(&source, config);
        wait_archived(&daemon, &source);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("password"), PASSWORD).unwrap();
        let tool = dir.path().join("dump");
        // The wrapper of scripts/servers, without its own account and options.
        let wrapper = std::fs::read_to_string(source.env("MYSQLDUMP")).unwrap();
        let exec =
            wrapper.lines().find_map(|line| line.split_once(" --no-defaults")).expect("a call").0.to_owned();
        program(&tool, &format!("{exec} \"$@\""));
        Shop { source, daemon, place, dir, tool }
    }

    /// A backup by another program than the tool.
    pub(in crate::archive) fn command_by(&self, tool: &Path, more: &[&str]) -> Command {
        let from = format!("mysql://keeper@127.0.0.1:{}", self.source.port());
        let password = self.dir.path().join("password");
        let arguments = ["--from", &from, "--password-file", path(&password), "--program", path(tool)];
        self.place.command("backup", &[&arguments[..], more].concat())
    }

    #[track_caller]
    pub(in crate::archive) fn back_up(&self, more: &[&str]) -> String {
        let output = self.command_by(&self.tool, more).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("its log is whole until "), "{said}");
        said
    }

    /// Nothing is recorded by it, and it says why.
    #[track_caller]
    pub(in crate::archive) fn fails(&self, shell: &str, more: &[&str]) -> String {
        let tool = self.dir.path().join("other");
        program(&tool, shell);
        // Their log goes on meanwhile.
        let names = || self.listed().iter().map(|backup| backup["id"].clone()).collect::<Vec<_>>();
        let before = names();
        let output = self.command_by(&tool, more).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(names(), before);
        said
    }

    /// What `binlogd backups` says.
    pub(in crate::archive) fn listed(&self) -> Vec<Value> {
        let output = self.place.command("backups", &["--json"]).output().expect("it runs");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        answer["sources"][0]["backups"].as_array().expect("a list").clone()
    }

    pub(in crate::archive) fn reader(&self) -> (Reader, Arc<ArchivedBackup>) {
        let store = Arc::new(Folder::open(&self.place.root()).unwrap());
        let chain = Chain::open(&*store, "default").unwrap();
        let newest = chain.history().backups.values().next_back().expect("a backup").clone();
        (Reader { store, opener: Arc::new(Opener::new(Identities::new())) }, newest)
    }

    /// The newest backup as a file.
    pub(in crate::archive) fn stream(&self) -> (PathBuf, Arc<ArchivedBackup>) {
        let (reader, newest) = self.reader();
        let path = self.dir.path().join("stream");
        let mut file = std::fs::File::create(&path).unwrap();
        std::io::copy(&mut PlainStream::open(&reader, &newest.file).unwrap(), &mut file).unwrap();
        (path, newest)
    }

    /// The newest backup in an empty server, which the log then brings to where the source is.
    #[track_caller]
    pub(in crate::archive) fn comes_back(&self) {
        let (stream, backup) = self.stream();
        let target = Server::start(self.source.name(), options(self.source.name()));
        target.sql_file(&stream, &[]);
        let point = &backup.record.point;
        self.daemon.wait_caught_up(&self.source);
        let mut restore = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        restore.args(["restore", "--into", &format!("mysql://root@127.0.0.1:{}", target.port())]);
        restore
            .arg("--from")
            .arg(self.daemon.data_dir())
            .args(["--until", "end", "--yes"])
            .stdin(Stdio::null());
        if self.source.name().starts_with("mariadb") {
            target.sql("RESET MASTER");
            restore.args(["--backup-at", &point.gtids]);
        } else {
            assert_eq!(
                target.sql("SELECT @@global.gtid_executed").split_whitespace().collect::<String>(),
                point.gtids
            );
        }
        let output = restore.output().expect("it runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
        );
        assert_eq!(checksums(&target, "shop"), checksums(&self.source, "shop"));
    }

    /// The servers' programs as packages install them.
    pub(in crate::archive) fn programs(&self) -> PathBuf {
        let dir = self.dir.path().join("programs");
        let status = script().args(["programs", self.source.name(), "--dir", path(&dir)]).status();
        assert!(status.expect("scripts/servers runs").success());
        dir
    }

    /// `restore --new` into a folder.
    pub(in crate::archive) fn new_server(&self, folder: &Path, until: &str, more: &[&str]) -> Command {
        let programs = self.programs();
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        command.args(["restore", "--new", path(folder), "--from", &self.place.url(), "--until", until]);
        for (flag, name) in [("--server", "mysqld"), ("--client", "mysql")] {
            if !more.contains(&flag) {
                command.arg(flag).arg(programs.join(name));
            }
        }
        command.args(["--buffer-pool", "128MiB"]).args(more);
        command
    }

    /// A server from nothing but the archive has the tables that were there.
    #[track_caller]
    pub(in crate::archive) fn comes_from_nothing(&self, until: &str, had: &str, more: &[&str]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("new");
        let output = self.new_server(&folder, until, more).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains("restored: "), "{said}");
        let names = |folder: &Path| {
            let mut names: Vec<_> =
                std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&folder), ["data", "error.log"]);
        assert_eq!(names(dir.path()), ["new"], "nothing stays of what was fetched");
        let server = Server::start_on(self.source.name(), &folder.join("data"), options(self.source.name()));
        assert_eq!(checksums(&server, "shop"), had);
        assert_eq!(server.sql("SELECT COUNT(*) FROM mysql.user WHERE user LIKE 'binlogd%'").trim(), "0");
        said
    }
}

pub(in crate::archive) fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

pub(in crate::archive) fn program(path: &Path, shell: &str) {
    std::fs::write(path, format!("#!/bin/bash\n{shell}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
