//! binlogd: a virtual MySQL and MariaDB replica.
