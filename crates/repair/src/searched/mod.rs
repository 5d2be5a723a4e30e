//! Transactions that are searched for, over the files of copies or of an archive.
//!
//! | file | noun |
//! |---|---|
//! | `sources.rs` | [`Searchable`]: copies or an archive; the files of each [source](SearchedSource) |
//! | `each_found.rs` | every transaction that is asked for, with the place where it was found |
//! | `log_definitions.rs` | what the logs say of the definitions of tables |
//! | `archived_indexes.rs` | search indexes of an archive, fetched ahead of the search |

mod archived_indexes;
mod each_found;
mod log_definitions;
mod sources;

pub use each_found::{FoundAt, Outcome, each_found};
pub use log_definitions::definitions;
pub use sources::{NotSearched, Searchable, SearchedFile, SearchedSource, SearchedTimeline};
