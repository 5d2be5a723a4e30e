//! A program that was started, and what it said.

use archive::chain::backup::BackupPoint;
use archive::writer::stream::Uploaded;
use std::io::Read;
use std::process::Child;

/// So much of what a tool says is kept, the newest, in bytes.
const SAID_BYTES_MAX: usize = 256 << 10;

/// Lines of it that an error shows.
pub(super) const SAID_LINES_SHOWN: usize = 5;

/// A tool that ended well.
pub(super) struct Ran {
    pub(super) uploaded: Uploaded,
    /// The point in its stream, or in what it said.
    pub(super) point: BackupPoint,
    pub(super) remarks: Vec<String>,
}

/// Stops a tool that nobody waits for any more.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already is not there any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a tool says, the newest of it.
pub(super) fn said(mut stderr: impl Read) -> String {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    while let Ok(read @ 1..) = stderr.read(&mut buffer) {
        all.extend_from_slice(&buffer[..read]);
        if all.len() > 2 * SAID_BYTES_MAX {
            all.drain(..all.len() - SAID_BYTES_MAX);
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}
