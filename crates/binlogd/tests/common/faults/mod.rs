//! What goes wrong below binlogd: system calls, file systems, torn files.

pub mod injection;
pub mod strace;
pub mod torn;
pub mod volume;
