//! `binlogd doctor`, and the lines that it prints.

use std::path::Path;
use std::process::Command;

/// Exit code and output.
pub fn doctor(url: &str, data_dir: &Path, flags: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["doctor", "--source", url, "--data-dir"])
        .arg(data_dir)
        .args(flags)
        .env_remove("BINLOGD_PASSWORD")
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("an exit code"), text)
}

/// The line that begins with these words, after its level.
#[track_caller]
pub fn line<'a>(out: &'a str, level: &str, begins: &str) -> &'a str {
    let found = out.lines().find(|line| {
        line.trim_start().strip_prefix(level).is_some_and(|rest| rest.trim_start().starts_with(begins))
    });
    found.unwrap_or_else(|| panic!("no line {level:?} {begins:?} in\n{out}"))
}
