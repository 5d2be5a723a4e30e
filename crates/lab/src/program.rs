//! A program that is run to its end, such as a load.

use crate::interrupt::Interrupt;
use anyhow::{Context, bail};
use rig::process::{Running, last_lines};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs `command` with its output in the file `log`, and returns what it printed. `started` is told its process number.
///
/// # Errors
/// When it cannot be started, fails, goes on for `longest` or is broken off; it is killed then. The error holds its last
/// words.
pub fn run_to_end(
    command: &mut Command,
    log: &Path,
    longest: Duration,
    interrupt: &Interrupt,
    started: impl FnOnce(u32) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let name =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
    let child =
        command.spawn().with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))?;
    let mut child = Running(child);
    started(child.0.id())?;
    let status = interrupt.wait(longest, || Ok(child.0.try_wait()?))?;
    drop(child);
    // Ctrl-C reaches the program too, and may have ended it before the flag was looked at.
    interrupt.check()?;
    let printed = std::fs::read_to_string(log)?;
    match status {
        Some(status) if status.success() => Ok(printed),
        Some(status) => bail!("{name} failed, {status}: {}", complaint(&printed)),
        None => bail!("{name} did not end within {longest:?}: {}", last_lines(&printed)),
    }
}

/// Programs in Go print stacks after their reason.
fn complaint(printed: &str) -> String {
    let panic = printed.lines().find(|line| line.starts_with("panic: "));
    panic.map_or_else(|| last_lines(printed), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, longest: Duration) -> anyhow::Result<String> {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut told = 0;
        let printed = run_to_end(&mut command, log.path(), longest, &Interrupt::default(), |pid| {
            told = pid;
            Ok(())
        });
        assert!(told > 0);
        printed
    }

    #[test]
    fn a_program_ends_well_or_with_its_last_words() {
        let minute = Duration::from_secs(60);
        assert_eq!(run("echo out; echo err >&2", minute).unwrap(), "out\nerr\n");
        let failed = run("echo a; echo b; echo c; echo d; exit 3", minute).unwrap_err().to_string();
        assert!(failed.starts_with("sh failed, exit status: 3: b / c / d"), "{failed}");
        let failed = run("echo 'panic: no table'; seq 9; exit 2", minute).unwrap_err().to_string();
        assert!(failed.ends_with("panic: no table"), "{failed}");
        let hangs = run("echo begun; exec sleep 60", Duration::from_millis(300)).unwrap_err().to_string();
        assert!(hangs.contains("did not end within 300ms: begun"), "{hangs}");
    }
}
