//! binlogd: a virtual MySQL and MariaDB replica.

pub mod wire;
