//! What several verbs take on their command lines.

pub(in crate::cli) mod compare;
pub(in crate::cli) mod hide_password;
pub(in crate::cli) mod login;
pub(in crate::cli) mod output_file;
pub(in crate::cli) mod past;
pub(in crate::cli) mod search;
pub(in crate::cli) mod server;
pub mod source_url;
pub(in crate::cli) mod store;
pub(in crate::cli) mod time_range;
