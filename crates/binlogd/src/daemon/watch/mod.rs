//! What is watched beside the sources: the disk, threads that hang, what each source takes.

pub(crate) mod descriptors;
pub(in crate::daemon) mod disk;
pub(in crate::daemon) mod hang;
pub(in crate::daemon) mod progress;
pub(in crate::daemon) mod usage;
