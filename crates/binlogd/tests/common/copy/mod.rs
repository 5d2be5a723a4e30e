//! What a copy holds, held against the source and against what clients were told.

pub mod archive;
pub mod compare;
pub mod ledger;
