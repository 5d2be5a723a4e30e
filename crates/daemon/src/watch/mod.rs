//! What is watched beside the sources: the disk, threads that hang, what each source takes.

pub mod descriptors;
pub(crate) mod disk;
pub(crate) mod hang;
pub(crate) mod progress;
pub(crate) mod usage;
