//! CLIENT_* bits: what a server offers in its greeting and a client takes in its login.
//!
//! Source: MySQL Source Code Documentation, "Capabilities Flags"; MariaDB Knowledge Base, "Connection", for the first bit.

/// CLIENT_LONG_PASSWORD of MySQL. MariaDB calls the bit CLIENT_MYSQL and leaves it out, in both directions, to say that
/// four of the reserved bytes hold capabilities of MariaDB.
pub const MYSQL: u32 = 1;
/// OK counts the rows found, not the rows changed.
pub const FOUND_ROWS: u32 = 1 << 1;
/// Flags of columns take two bytes.
pub const LONG_FLAG: u32 = 1 << 2;
/// The login names a database.
pub const CONNECT_WITH_DB: u32 = 1 << 3;
/// Blanks may stand before the parenthesis of a function.
pub const IGNORE_SPACE: u32 = 1 << 8;
/// The protocol since MySQL 4.1.
pub const PROTOCOL_41: u32 = 1 << 9;
/// A person sits at the client.
pub const INTERACTIVE: u32 = 1 << 10;
/// TLS follows this packet.
pub const SSL: u32 = 1 << 11;
/// Status flags speak of transactions.
pub const TRANSACTIONS: u32 = 1 << 13;
/// The answer to the challenge has its length before it.
pub const SECURE_CONNECTION: u32 = 1 << 15;
/// One COM_QUERY may hold several statements.
pub const MULTI_STATEMENTS: u32 = 1 << 16;
/// One COM_QUERY may be answered by several result sets.
pub const MULTI_RESULTS: u32 = 1 << 17;
/// The authentication method has a name.
pub const PLUGIN_AUTH: u32 = 1 << 19;
/// The login says who the program is.
pub const CONNECT_ATTRS: u32 = 1 << 20;
/// The length of the answer to the challenge is a length-encoded integer.
pub const PLUGIN_AUTH_LENENC_DATA: u32 = 1 << 21;
