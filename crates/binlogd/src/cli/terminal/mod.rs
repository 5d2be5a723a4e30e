//! What a person is shown and asked while a verb works.

pub(in crate::cli) mod confirm;
pub(in crate::cli) mod heard;
