//! The history of one source as it is walked, and the points in it.
//!
//! | file | noun |
//! |---|---|
//! | `copied.rs` | [`Copied`]: the files of one history, of a copy or of an archive |
//! | `from_archive.rs` | the same of an archive, whose newest file is fetched |
//! | `until.rs` | [`Until`]: a point in it, and [`Watch`], which tells when a walk has come there |
//! | `shown.rs` | [`Shown`]: a transaction in one line |

mod copied;
mod from_archive;
mod shown;
mod until;

pub use copied::{Copied, CopiedFile, NoCopy};
pub use from_archive::NoArchive;
pub use shown::{CHOICES_MAX, Shown, shortened};
pub use until::{Until, Watch};
