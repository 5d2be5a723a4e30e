//! The history of one source as it is walked, and the points in it.
//!
//! | file | noun |
//! |---|---|
//! | `copied.rs` | [`Copied`]: the files of one history, of a copy or of an archive |
//! | `until.rs` | [`Until`]: a point in it, and [`Watch`], which tells when a walk has come there |
//! | `shown.rs` | [`Shown`]: a transaction in one line |

mod copied;
mod shown;
mod until;

pub use copied::{Copied, CopiedFile, NoCopy};
pub use shown::{CHOICES_MAX, Shown, shortened};
pub use until::{Until, Watch};
