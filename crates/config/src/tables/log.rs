//! The `[log]` table: what binlogd writes to standard error about itself.

use super::super::key::ReloadEffect::Restart;
use super::super::key::{Section, default};
use super::super::table::{table, words};

table! {
    /// What binlogd says about itself.
    #[derive(Copy)]
    struct LogConfig, LogKeys for Section::Log, Restart;

    /// Least severe message to write. Messages go to standard error.
    level: LogLevel = default("\"info\"").flag("log-level");
    /// Shape of a message.
    format: LogFormat = default("\"text\"").flag("log-format");
}

words! {
    /// Severity from which messages are written.
    enum LogLevel {
        /// what needs an operator
        Error = "error",
        /// also what may need one soon
        Warn = "warn",
        /// also each change of state
        Info = "info",
        /// also each step of the protocol
        Debug = "debug",
        /// also each packet
        Trace = "trace",
    }
}

words! {
    /// Shape of a log message.
    enum LogFormat {
        /// one readable line a message
        Text = "text",
        /// one JSON object a line
        Json = "json",
    }
}
