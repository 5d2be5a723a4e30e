//! The servers that are measured: the lab's own, through `scripts/servers`, and the user's, by URL.
//!
//! On the lab's own servers everything is allowed. On a user's server the lab works in a database that it creates, and
//! whatever else it changes (variables, the semi-sync plugin) is written to a journal first and undone at the end.
//!
//! | file | noun |
//! |---|---|
//! | `target.rs` | a server to measure: sessions, restarts, its variables and database |
//! | `semi_sync.rs`, `counters.rs` | its side of semi-sync: on and off, whether it is in force; its counters |
//! | `binary_log.rs` | its binary log: beginning a new one, size, who reads it |
//! | `source.rs` | all that as what a window of measurement asks for |
//! | `dialect.rs` | where MySQL, its versions and MariaDB differ |
//! | `address.rs` | URLs and accounts |
//! | `facts.rs` | version, and each variable that differs from its default |
//! | `journal.rs` | the file of what was changed on a user's server |
//! | `changes.rs` | changing a user's server |
//! | `sql.rs` | single questions to a server, and how names and values are written in them |
//! | `undo.rs` | changing it back, at the end or after a crash |
//! | `accounts.rs` | closing one of the lab's own servers to the other users of the machine |

mod accounts;
pub mod address;
pub mod binary_log;
pub mod changes;
pub mod counters;
pub mod dialect;
pub mod facts;
pub mod journal;
pub mod semi_sync;
mod source;
pub mod sql;
pub mod target;
pub mod undo;

pub use dialect::Dialect;
pub use sql::DATABASE;
pub use target::Target;
pub use undo::restore;
