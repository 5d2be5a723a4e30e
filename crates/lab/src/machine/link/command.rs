//! Programs that make a link, and why there is none where they cannot.

use crate::results::skip::Skip;
use anyhow::{Context, bail};
use std::io::ErrorKind;
use std::process::Command;

/// That there is no network between source and receivers, and why.
pub(super) fn skip(why: &str) -> anyhow::Error {
    Skip::lacks(format!("no network between source and receivers (--network): {why}")).into()
}

/// Runs a program. What it complains of is the inner error.
///
/// # Errors
/// [`Skip`] where the program is missing or may not do that.
pub(super) fn tried<S: AsRef<str>>(program: &str, arguments: &[S]) -> anyhow::Result<Result<(), String>> {
    let output = match Command::new(program).args(arguments.iter().map(AsRef::as_ref)).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(skip(&format!(
                "{program} is missing: install iproute2 (apt-get install iproute2; dnf install iproute iproute-tc)"
            )));
        }
        other => other.with_context(|| format!("cannot run {program}"))?,
    };
    if output.status.success() {
        return Ok(Ok(()));
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if complaint.contains("not permitted") || complaint.contains("denied") {
        return Err(skip(&format!("{program} may not do it here: {complaint}")));
    }
    Ok(Err(complaint))
}

/// Runs a program that has to succeed.
///
/// # Errors
/// As [`tried`], and with what it complains of.
pub(super) fn run<S: AsRef<str>>(program: &str, arguments: &[S]) -> anyhow::Result<()> {
    let Err(complaint) = tried(program, arguments)? else { return Ok(()) };
    let words: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    bail!("{program} {} failed: {complaint}", words.join(" "))
}
