//! What an archive is kept up by beside what is added.

pub mod backup;
pub mod catalogue;
pub mod keep;
pub mod presence;
pub mod prune;
pub mod scrub;
pub(crate) mod unneeded;
