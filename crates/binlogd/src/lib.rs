//! binlogd: a virtual MySQL and MariaDB replica.

<<<<<<< HEAD
pub mod config;
pub mod log;
pub mod status;
=======
>>>>>>> wire
pub mod wire;
