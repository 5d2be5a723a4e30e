//! What a verb works on: a copy or an archive, opened as its command line names it.

pub(in crate::cli) mod held_copy;
pub(in crate::cli) mod history;
pub(in crate::cli) mod offline;
pub(in crate::cli) mod searched;
