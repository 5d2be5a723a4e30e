//! The search index of a sealed file: what of it is worth knowing without walking it.
//!
//! It is derived. It stands in the folder `search-index` beside its file, under the same name, and says of which file it is; one
//! of another file, of another version or a damaged one is none, and is made again. Its bytes: [`file`].

mod blocks;
mod builder;
mod bytes;
mod details;
mod error;
mod file;
mod head;
mod identity;
mod origins;
mod tables;

pub use blocks::{Block, BlockGtids, BlockTables};
pub use builder::{Builder, build};
pub use details::{Bucket, Definition, Details, Histogram, Peak};
pub use error::IndexError;
pub use file::{IndexFile, SearchIndex, VERSION};
pub use head::Head;
pub use identity::Identity;
pub use origins::{GtidRanges, Origin};
pub use tables::IndexedTable;

#[cfg(test)]
mod tests;
