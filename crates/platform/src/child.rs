//! Programs that must not outlive whoever started them.
//!
//! Source of the facts: prctl(2), `PR_SET_PDEATHSIG`: the signal comes when the thread that started the program ends, survives execve,
//! and is cleared by a change of user, which the standard library makes before this.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program is killed when the thread that starts it ends, however that happens. Call it last, behind `uid` and `gid`.
#[expect(unsafe_code, reason = "what is done between fork and exec")]
pub fn ends_with_us(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: system calls that may be made between fork and exec; they touch no memory.
        let is_tied = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } == 0;
        // Whoever started it may have ended before.
        // SAFETY: as above.
        let is_there = u32::try_from(unsafe { libc::getppid() }) == Ok(parent);
        if is_tied && is_there { Ok(()) } else { Err(std::io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(tie) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let begun = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("600").stdout(Stdio::piped());
            ends_with_us(&mut command);
            command.spawn().unwrap()
        });
        let mut child = begun.join().unwrap();
        // Its output ends with it, and only so.
        child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        assert!(!child.wait().unwrap().success());
    }
}
