//! Programs that are not ours, which read what we write. For tests.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

/// What `zstd` gives out when `input` is its standard input; `None` when there is no such program here, which is said.
///
/// # Panics
/// When zstd fails, and where nothing may be skipped (`BINLOGD_NO_SKIPS`).
pub(crate) fn zstd(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    run("zstd", arguments, input)
}

/// As [`zstd`], of `ssh-keygen`.
pub(crate) fn ssh_keygen(arguments: &[&str]) -> Option<Vec<u8>> {
    run("ssh-keygen", arguments, &[])
}

fn run(program: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            assert!(std::env::var_os("BINLOGD_NO_SKIPS").is_none(), "{program} is not installed");
            // Past the harness, which keeps the output of tests that pass to itself.
            let _ = writeln!(std::io::stderr(), "\n*** SKIPPED: {program} is not installed ***\n");
            return None;
        }
        Err(error) => panic!("{program}: {error}"),
    };
    let mut stdin = child.stdin.take().expect("it was piped");
    let mut stdout = child.stdout.take().expect("it was piped");
    let output = std::thread::scope(|scope| {
        // One that ends early says so by its exit code.
        scope.spawn(move || stdin.write_all(input));
        let mut output = Vec::new();
        stdout.read_to_end(&mut output).expect("its output can be read");
        output
    });
    let status = child.wait().expect("it was started");
    assert!(status.success(), "{program} {arguments:?}: {status}");
    Some(output)
}
