//! The `binlogd` command.
fn main() {}
