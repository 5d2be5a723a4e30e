//! A binlogd before a Prometheus, and an operator who does what a section of docs/runbook.md says, word for word.

use std::path::Path;
use std::process::{Command, Stdio};

use super::prometheus::Prometheus;
use crate::common::daemon::{Daemon, url};
use crate::common::readers::serve_port;
use crate::common::{Server, workspace};

/// Verbs that answer by their exit code how things stand: 1 is an answer.
const ANSWERS_BY_CODE: [&str; 5] = ["status", "doctor", "forks", "verify", "backups"];

/// Commands that say nothing when all is well, or where they may not look.
const SILENT: [&str; 6] = ["mv ", "cp ", "mkdir ", "dmesg", "lost.sql", "mysqlbinlog "];

/// One daemon, as `binlogd1`, and its onlooker.
pub(super) struct Stage {
    pub(super) prometheus: Prometheus,
    pub(super) daemon: Daemon,
    /// Flags of the next start.
    pub(super) flags: Vec<String>,
    /// Where the archive is, where no flag says it.
    pub(super) archive: Option<String>,
    /// Others that are scraped.
    pub(super) others: Vec<(&'static str, String)>,
    runs: bool,
    /// Programs that the host has in another form, and what is moved away.
    folder: tempfile::TempDir,
}

impl Stage {
    /// Before a daemon that runs with these flags.
    pub(super) fn new(daemon: Daemon, flags: &[&str]) -> Stage {
        let folder = tempfile::Builder::new().prefix("binlogd-stage-").tempdir().expect("a folder");
        let shim = |name: &str, text: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a program");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a program");
        };
        shim("binlogd", &format!("NO_COLOR=1 exec {} \"$@\"", env!("CARGO_BIN_EXE_binlogd")));
        shim("sudo", "shift 2; exec \"$@\"");
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let prometheus = Prometheus::start();
        let stage =
            Stage { prometheus, daemon, flags, archive: None, others: Vec::new(), runs: true, folder };
        stage.scrape();
        stage.prometheus.wait_quiet();
        stage
    }

    /// Tells Prometheus where everybody is.
    pub(super) fn scrape(&self) {
        let own = ("binlogd1:9306", self.daemon.admin_address());
        self.prometheus.scrape(&[&[own], &self.others[..]].concat());
    }

    /// The next start ends and begins what `systemctl restart` does.
    pub(super) fn restart(&mut self) {
        self.stop();
        self.start();
    }

    pub(super) fn stop(&mut self) {
        self.daemon.terminate();
        self.runs = false;
    }

    pub(super) fn start(&mut self) {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.daemon.restart(&flags);
        self.runs = true;
        self.scrape();
    }

    /// Somebody else has started it on the same data folder.
    pub(super) fn runs_by_itself(&mut self) {
        self.runs = true;
        self.scrape();
    }

    /// Does everything that a section says, in its order.
    #[track_caller]
    pub(super) fn play(&mut self, section: &str, server: &Server) {
        let blocks = blocks_of(section);
        assert!(!blocks.is_empty(), "the runbook has no commands for {section}");
        println!("--- {section}");
        for (language, block) in blocks {
            match language.as_str() {
                "sql" => print!("{}", server.sql(&block)),
                "sh" => block.lines().for_each(|line| self.type_in(line, server)),
                other => panic!("{section}: nobody can do {other}"),
            }
        }
    }

    #[track_caller]
    fn type_in(&mut self, line: &str, server: &Server) {
        println!("$ {line}");
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["systemctl", "start", "binlogd"] => self.start(),
            ["systemctl", "stop", "binlogd"] => self.stop(),
            ["systemctl", "restart", "binlogd"] => self.restart(),
            ["systemctl", "reload", "binlogd"] => self.daemon.reload(),
            ["systemctl", "list-timers", timer] => {
                assert!(workspace().join("packaging/systemd").join(timer).exists(), "there is no {timer}");
            }
            ["journalctl", "-u", "binlogd", ..] => assert!(!self.daemon.log().is_empty()),
            _ => self.run(line, server),
        }
    }

    #[track_caller]
    fn run(&self, line: &str, server: &Server) {
        let data_dir = self.daemon.data_dir().display().to_string();
        let asked = match self.runs {
            true => format!("binlogd status --admin {}", self.daemon.admin_address()),
            false => format!("binlogd status --data-dir {data_dir}"),
        };
        let admin = if self.runs { self.daemon.admin_address() } else { String::new() };
        let mut text = line.replace("binlogd status", &asked);
        let of_flags = self.flags.iter().find_map(|flag| flag.strip_prefix("--archive-url="));
        let archive = of_flags.or(self.archive.as_deref());
        for (word, here) in [
            ("s3://bucket/binlogs", archive.unwrap_or_default().to_owned()),
            ("/var/lib/binlogd/orders", format!("{data_dir}/default")),
            ("/var/lib/binlogd", data_dir.clone()),
            ("--source orders", "--source default".to_owned()),
            ("/var/backups/binlogd", self.folder.path().join("backups").display().to_string()),
            ("/var/tmp", self.folder.path().display().to_string()),
            ("--host=db1 --user=root -p", format!("--host=127.0.0.1 --port={} --user=root", server.port())),
            ("mysqlbinlog ", format!("{} ", server.env("MYSQLBINLOG"))),
            ("127.0.0.1:9306", admin),
            ("lost.sql", self.folder.path().join("lost.sql").display().to_string()),
            ("mysql --host", format!("{} --host", server.env("MYSQL"))),
            ("mysql://root@db1:3306", url(server)),
        ] {
            text = text.replace(word, &here);
        }
        if text.contains("binlogd promote") {
            // Its configuration leaves the port to the system.
            let node = format!("binlogd promote --node 127.0.0.1:{}", serve_port(&self.daemon));
            text = text.replace("binlogd promote", &node);
        }
        if text.contains("/etc/binlogd/binlogd.toml") {
            text =
                text.replace("/etc/binlogd/binlogd.toml", &self.daemon.config_path().display().to_string());
        }
        let path = format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap_or_default());
        let output = Command::new("bash")
            .args(["-o", "pipefail", "-c", &text])
            .env("PATH", path)
            .env_remove("BINLOGD_PASSWORD")
            .current_dir(Path::new("/"))
            .stdin(Stdio::null())
            .output()
            .expect("bash runs");
        let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        let mut words =
            line.split(' ').skip_while(|word| *word != "binlogd").filter(|word| *word != "binlogd");
        let answers = !line.contains('|') && words.next().is_some_and(|verb| ANSWERS_BY_CODE.contains(&verb));
        let is_dry = line.contains("--dry-run");
        // All else was handed over.
        let is_open = line.contains(" rescue ") && said.contains("given twice, and the copy holds");
        let code = output.status.code();
        assert!(
            code == Some(0) || (answers || is_dry || is_open) && code == Some(1),
            "{text}: {}\n{said}",
            output.status
        );
        let is_silent = SILENT.iter().any(|words| line.contains(words));
        assert!(!said.trim().is_empty() || is_silent, "{text} says nothing");
        println!("{said}");
    }
}

/// The commands of a section: language and lines.
fn blocks_of(section: &str) -> Vec<(String, String)> {
    let page = std::fs::read_to_string(workspace().join("docs/runbook.md")).expect("the runbook");
    let (_, text) =
        page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
    let text = text.split("\n## ").next().expect("a part of it");
    let fenced = text.split("```").skip(1).step_by(2);
    fenced
        .map(|block| block.split_once('\n').expect("a language"))
        .map(|(language, lines)| (language.to_owned(), lines.trim_end().replace("\\\n", " ")))
        .collect()
}
