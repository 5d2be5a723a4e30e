//! The metrics of a daemon, as two kinds of readers ask for them.

use crate::common::daemon::Daemon;
use crate::common::workspace;
use std::io::Write;
use std::process::{Command, Stdio};

pub fn metrics(daemon: &Daemon, accept: &str) -> (String, String) {
    let url = format!("http://{}/metrics", daemon.admin_address());
    let mut answer = ureq::get(url).header("Accept", accept).call().unwrap();
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    (kind, answer.body_mut().read_to_string().unwrap())
}

/// The metrics as `curl … | promtool check metrics` reads them, with its lint.
pub fn check_metrics(daemon: &Daemon) {
    let script = Command::new(workspace().join("scripts/servers")).arg("promtool").output().unwrap();
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    let promtool = String::from_utf8(script.stdout).unwrap();
    let (kind, text) = metrics(daemon, "text/plain");
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    let mut check = Command::new(promtool.trim())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = check.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && words.trim().is_empty(), "{}: {words}\n{text}", said.status);
    let (kind, text) = metrics(daemon, "application/openmetrics-text; version=1.0.0");
    assert!(kind.starts_with("application/openmetrics-text") && text.ends_with("# EOF\n"), "{kind}\n{text}");
}
