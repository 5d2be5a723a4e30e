//! GTIDs and sets of them: algebra, text and wire form, for MySQL (tags included) and MariaDB.
//!
//! The two servers count differently. MySQL names a transaction by the UUID of the server where it was first
//! committed, an optional tag and a number, and keeps an exact *set* of such names: [`GtidSet`]. MariaDB names it by
//! a replication domain, a server id and a sequence number that the whole domain shares, and keeps only the newest
//! number of each server in each domain: [`MariadbGtidState`]. [`GtidState`] holds either, so that the code that follows a
//! stream need not know which server it talks to.
//!
//! Nothing here allocates more than a small multiple of the bytes it was given, whatever counts those bytes claim.

mod cursor;
mod error;
mod intervals;
mod mariadb;
mod mariadb_state;
mod mysql;
mod set;
mod set_text;
mod set_wire;
mod state;
mod tag;
mod tagged_event;
mod uuid;

pub use error::GtidError;
pub use mariadb::MariadbGtid;
pub use mariadb_state::MariadbGtidState;
pub use mysql::{GNO_MAX, Gtid};
pub use set::GtidSet;
pub use state::{GtidState, TransactionId};
pub use tag::{TAG_LENGTH_MAX, Tag};
pub use tagged_event::{TaggedGtidEvent, decode_gtid_tagged_event};
pub use uuid::Uuid;
