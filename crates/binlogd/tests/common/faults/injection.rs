//! System calls of the running binary that fail, made to by strace.
//!
//! The kernel returns the error instead of doing the call. That needs no change to the binary, and no library in front of
//! its system calls, which would see only those that are made through the C library.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::daemon::{Daemon, wait_child};

/// Longest time for strace to attach to all threads, or to let them go.
const ATTACH_MAX: Duration = Duration::from_secs(30);

/// Calls that fail from its making until [`Injection::heal`], or until it is dropped.
pub struct Injection {
    strace: Option<Child>,
    folder: tempfile::TempDir,
}

impl Injection {
    /// Every call of that name on `path` (by a name or by a descriptor of it) fails with `error`, such as `EIO`.
    #[track_caller]
    pub fn begin(strace: &Path, daemon: &Daemon, call: &str, path: &Path, error: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(strace);
        command.args(["-f", "-p", &daemon.pid().to_string()]).arg("-P").arg(path);
        command.arg("-e").arg(format!("trace={call}")).arg("-e").arg(format!("inject={call}:error={error}"));
        Self::spawn(command, folder)
    }

    /// Every call of that name by one thread is held up before it is done, until [`Injection::heal`]; the other threads go on.
    #[track_caller]
    pub fn hold_up(strace: &Path, thread: u32, call: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(strace);
        command.args(["-p", &thread.to_string()]).arg("-e").arg(format!("trace={call}"));
        // Ten minutes, in microseconds: longer than any test.
        command.arg("-e").arg(format!("inject={call}:delay_enter=600000000"));
        Self::spawn(command, folder)
    }

    /// Every call of that name on `path` takes so much longer, and is done.
    #[track_caller]
    pub fn slow_down(strace: &Path, daemon: &Daemon, call: &str, path: &Path, by: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(strace);
        command.args(["-f", "-p", &daemon.pid().to_string()]).arg("-P").arg(path);
        let delay = format!("inject={call}:delay_exit={}", by.as_micros());
        command.arg("-e").arg(format!("trace={call}")).arg("-e").arg(delay);
        Self::spawn(command, folder)
    }

    #[track_caller]
    fn spawn(mut command: Command, folder: tempfile::TempDir) -> Self {
        let said = File::create(folder.path().join("stderr")).expect("a file");
        command.arg("-o").arg(folder.path().join("trace"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let child = command.spawn().expect("strace starts");
        let mut injection = Self { strace: Some(child), folder };
        injection.wait_attached();
        injection
    }

    #[track_caller]
    fn wait_attached(&mut self) {
        let deadline = Instant::now() + ATTACH_MAX;
        loop {
            let said = std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
            if said.contains(" attached") {
                return;
            }
            let ended = self.strace.as_mut().and_then(|child| child.try_wait().expect("a child of ours"));
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "strace cannot attach to binlogd; to do without it, set BINLOGD_WITHOUT_STRACE=1\n{said}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Calls that were made to fail until now.
    pub fn count(&self) -> usize {
        let trace = std::fs::read_to_string(self.trace()).unwrap_or_default();
        trace.lines().filter(|line| line.ends_with("(INJECTED)")).count()
    }

    /// Waits until so many calls more have failed.
    #[track_caller]
    pub fn wait_more(&self, calls: usize, timeout: Duration) {
        let wanted = self.count() + calls;
        let deadline = Instant::now() + timeout;
        while self.count() < wanted {
            assert!(Instant::now() < deadline, "{} of {wanted} calls have failed", self.count());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Lets the calls do their work again.
    #[track_caller]
    pub fn heal(mut self) {
        assert!(self.detach(), "strace does not let binlogd go");
    }

    fn detach(&mut self) -> bool {
        let Some(mut child) = self.strace.take() else { return true };
        // SIGTERM makes strace let its tracees go, as they are.
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a process id");
        let _ = kill_process(pid, Signal::TERM);
        wait_child(&mut child, ATTACH_MAX).is_some()
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        self.detach();
    }
}
