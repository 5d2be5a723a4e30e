//! Keeps a password out of the process list.
//!
//! Every user of a machine can read the arguments of every process (`ps`, `/proc/PID/cmdline`), and changing one's own
//! arguments in place needs unsafe code. So a binlogd that finds a password in a URL among its arguments executes
//! itself again, under the same process id, with the password moved to an environment variable, which only the same
//! user and root can read (proc(5), `/proc/pid/environ`). The password remains visible for the milliseconds until
//! then, which is why `--password-file` is the better way.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::source_url::without_password;
use config::password::URL_PASSWORD_VARIABLE;

/// Executes this program again when `arguments`, the program's name first, hold a password; returns otherwise.
///
/// # Errors
///
/// When the program cannot execute itself. Going on would leave the password visible.
pub(in crate::cli) fn hide_password(arguments: &[OsString]) -> Result<(), String> {
    let Some((program, rest)) = arguments.split_first() else { return Ok(()) };
    let Some((cleaned, password)) = move_password(rest) else { return Ok(()) };
    let executable = std::env::current_exe();
    let error = match executable {
        Ok(executable) => {
            Command::new(executable).arg0(program).args(cleaned).env(URL_PASSWORD_VARIABLE, password).exec()
        }
        Err(error) => error,
    };
    Err(format!(
        "cannot execute itself again to hide the password of the URL from the process list ({error}): \
         give the password with --password-file or BINLOGD_PASSWORD"
    ))
}

/// The arguments without any password, and the last password among them. `None` when there is none.
///
/// Every argument counts, not only that of `--source`: a URL in the wrong place is no reason to show it.
fn move_password(arguments: &[OsString]) -> Option<(Vec<OsString>, String)> {
    let mut found = None;
    let cleaned = arguments
        .iter()
        .map(|argument| match clean(argument) {
            Some((cleaned, password)) => {
                found = Some(password);
                cleaned
            }
            None => argument.clone(),
        })
        .collect();
    Some((cleaned, found?))
}

/// One argument without its password: a URL, or a flag with `=` and a URL.
fn clean(argument: &OsStr) -> Option<(OsString, String)> {
    let text = argument.to_str()?;
    let (flag, url) = match text.split_once('=') {
        Some((flag, url)) if flag.starts_with('-') => (format!("{flag}="), url),
        _ => (String::new(), text),
    };
    let (url, password) = without_password(url)?;
    Some((format!("{flag}{url}").into(), password))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(arguments: &[&str]) -> Option<(Vec<String>, String)> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let (cleaned, password) = move_password(&arguments)?;
        Some((cleaned.into_iter().map(|argument| argument.into_string().unwrap()).collect(), password))
    }

    #[test]
    fn moves_the_password_of_both_ways_to_give_a_flag() {
        for (before, after) in [
            (&["run", "--source", "mysql://u:pw@h:1"][..], &["run", "--source", "mysql://u@h:1"][..]),
            (&["run", "--source=mysql://u:pw@h:1", "-x"], &["run", "--source=mysql://u@h:1", "-x"]),
            (&["run", "mysql://u:pw@h"], &["run", "mysql://u@h"]),
        ] {
            let (cleaned, password) = moved(before).unwrap();
            assert_eq!(
                (&cleaned[..], password.as_str()),
                (&after.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>()[..], "pw")
            );
            assert_eq!(moved(after), None, "a second execution would go round for ever");
        }
    }

    #[test]
    fn leaves_everything_else_alone() {
        assert_eq!(moved(&["run", "--source", "mysql://u@h:1", "--start", "gtid:0-1-2", "a:b@c"]), None);
    }
}
