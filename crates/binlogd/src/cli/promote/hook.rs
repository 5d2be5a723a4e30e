//! The command that sends the clients to the new source.

use config::password::{PASSWORD_VARIABLE, URL_PASSWORD_VARIABLE};
use setup::promote::Promote;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wire::ConnectOptions;

/// Longest time for a hook.
const HOOK_MAX: Duration = Duration::from_secs(60);
/// Pause between two looks whether it has ended.
const HOOK_LOOK: Duration = Duration::from_millis(10);

/// What a hook is told of the new source.
pub(super) struct Hook {
    variables: Vec<(&'static str, String)>,
}

impl Hook {
    /// After a promotion, or of a server that was the source already.
    pub(super) fn of(promote: &Promote, to: &ConnectOptions, epoch: u64) -> Hook {
        let server = &promote.successor.identity.uuid;
        let before = if promote.before == *server { "" } else { &promote.before };
        Hook {
            variables: vec![
                ("BINLOGD_SOURCE_HOST", to.host.clone()),
                ("BINLOGD_SOURCE_PORT", to.port.to_string()),
                ("BINLOGD_SOURCE_UUID", server.clone()),
                ("BINLOGD_OLD_SOURCE_UUID", before.to_owned()),
                ("BINLOGD_EPOCH", epoch.to_string()),
            ],
        }
    }

    /// Runs it and waits for its end. What it prints goes to standard error, so that standard output stays JSON where that is asked for.
    ///
    /// # Errors
    /// In words, when it cannot be run, does not end in time, or says that it has failed.
    pub(super) fn run(&self, command: &str) -> Result<(), String> {
        self.run_within(command, HOOK_MAX)
    }

    fn run_within(&self, command: &str, limit: Duration) -> Result<(), String> {
        let mut process = Command::new("sh");
        process.args(["-c", command]).stdin(Stdio::null()).stdout(io::stderr());
        process.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // The password of the server is nothing for it. In a group of its own it ends with all that it has begun.
        process.env_remove(PASSWORD_VARIABLE).env_remove(URL_PASSWORD_VARIABLE).process_group(0);
        let mut child = process.spawn().map_err(|error| format!("sh: {error}"))?;
        let until = Instant::now() + limit;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return judged(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(HOOK_LOOK),
                Ok(None) => {
                    if let Some(group) =
                        i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
                    {
                        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                    }
                    let _ = child.wait();
                    return Err(format!("it has not ended within {limit:?}, and was killed"));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

fn judged(status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_told_and_its_failure_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let hook = Hook { variables: vec![("BINLOGD_SOURCE_HOST", "db2; exit 9".to_owned())] };
        let command = format!("echo \"$BINLOGD_SOURCE_HOST\" > {}", told.display());
        assert_eq!(hook.run(&command), Ok(()));
        assert_eq!(std::fs::read_to_string(told).unwrap(), "db2; exit 9\n");
        assert_eq!(hook.run("exit 7"), Err("exit status: 7".to_owned()));
        let slow = hook.run_within("sleep 600 & wait", Duration::from_millis(50));
        assert!(slow.unwrap_err().contains("was killed"));
    }
}
