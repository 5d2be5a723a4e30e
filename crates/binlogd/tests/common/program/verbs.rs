//! The binary, run as an operator runs a verb of it.

use crate::common::skip::skip;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    // Times are printed in the zone of the machine.
    command.env("TZ", "UTC").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs `binlogd` with its output into pipes.
pub fn binlogd<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    command(env!("CARGO_BIN_EXE_binlogd")).args(arguments).output().expect("binlogd runs")
}

/// `binlogd verify` of a folder finds nothing wrong.
#[track_caller]
pub fn verifies(data_dir: &Path) {
    let output = binlogd(&[OsStr::new("verify"), data_dir.as_os_str()]);
    let told = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{}: {told}", output.status);
}

/// Runs `binlogd` on a terminal: both its outputs are one, with the line ends of a terminal. `None` where there is no program that makes
/// one, which is said.
pub fn binlogd_on_a_terminal(arguments: &[&str], environment: &[(&str, &str)]) -> Option<Output> {
    let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
    let line: Vec<String> = [env!("CARGO_BIN_EXE_binlogd")].iter().chain(arguments).map(quoted).collect();
    let mut script = command("script");
    script.args(["--quiet", "--return", "--command", &line.join(" "), "/dev/null"]).env("TERM", "xterm");
    match script.envs(environment.iter().copied()).output() {
        Ok(output) => Some(output),
        Err(error) => {
            skip(&format!("no terminal: script (of util-linux): {error}"));
            None
        }
    }
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
