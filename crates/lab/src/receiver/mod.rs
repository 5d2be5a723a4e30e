//! What receives the source's binary log while a load runs.
//!
//! | file | noun |
//! |---|---|
//! | `attachment.rs` | a receiver while it is attached, or nothing in its place |
//! | `binlogd.rs` | binlogd, with its own status |
//! | `replica.rs` | a real replica |
//! | `usage.rs` | processor and memory of a process |

pub mod attachment;
pub mod binlogd;
pub mod replica;
pub mod usage;

pub use attachment::Attachment;
pub use binlogd::Binlogd;
pub use replica::Replica;
pub use usage::Usage;
