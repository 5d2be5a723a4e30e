//! What receives the source's binary log while a load runs.
//!
//! | file | noun |
//! |---|---|
//! | `attachment.rs` | a receiver while it is attached, or nothing in its place |
//! | `binlogd.rs` | binlogd, with its own status |
//! | `replica.rs` | a real replica |
//! | `yardstick.rs` | the bare receiver, and go-mysqlbinlog |
//! | `go_mysqlbinlog.rs` | building the latter |
//! | `program.rs` | a program that receives, in a folder of its own |

pub mod attachment;
pub mod binlogd;
pub mod go_mysqlbinlog;
pub mod program;
pub mod replica;
pub mod yardstick;

pub use attachment::Attachment;
pub use binlogd::Binlogd;
pub use replica::Replica;
pub use yardstick::Yardstick;
