//! Who measures into a file of results.

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// The right to measure into a file of results.
///
/// It is a lock of a file beside it, not of the file itself: SQLite loses its own locks when the process closes another
/// descriptor of the same file (<https://www.sqlite.org/howtocorrupt.html>, 2.2). The kernel frees it when the process
/// ends, however it ends.
#[derive(Debug)]
pub struct MeasuringLock {
    file: File,
}

impl Drop for MeasuringLock {
    fn drop(&mut self) {
        // Closing would not do while a child that is just being started has the descriptor too.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl MeasuringLock {
    /// Takes the lock of the file of results at `results`.
    ///
    /// # Errors
    /// When another process has it; the error names it.
    pub(super) fn take(results: &Path) -> anyhow::Result<MeasuringLock> {
        let mut name = results.as_os_str().to_owned();
        name.push("-lock");
        let path = Path::new(&name);
        let failed = || format!("cannot lock {}", path.display());
        let opened = File::options().create(true).truncate(false).read(true).write(true).open(path);
        let mut file = opened.with_context(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut owner = String::new();
                file.read_to_string(&mut owner).with_context(failed)?;
                bail!(
                    "process {} measures into {} now: wait for it, or stop it; two at a time would measure each other",
                    owner.trim(),
                    results.display()
                );
            }
            Err(error) => return Err(error).with_context(failed),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).with_context(failed)?;
        Ok(MeasuringLock { file })
    }
}
