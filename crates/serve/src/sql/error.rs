//! Why a statement is not understood, as the error that the client gets.

use codec::packet::{ErrPacket, printable};

/// Longest part of a statement that an error quotes, in bytes; a server quotes as much.
const NEAR_BYTES_MAX: usize = 80;

/// A statement that is not one, or that is larger than binlogd reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The packet holds no statement.
    #[error("Query was empty")]
    Empty,
    /// The grammar ends here.
    #[error(
        "You have an error in your SQL syntax, or binlogd does not know this statement: near '{near}' at line {line}. \
         binlogd keeps and serves binary logs. It answers SELECT of variables and functions, SHOW, SET, KILL, and \
         the requests of replicas and log readers"
    )]
    Syntax {
        /// The text from the first word that does not fit, cut.
        near: String,
        /// Its line, counted from 1.
        line: usize,
    },
    /// A name or a string is not UTF-8. Statements are read as UTF-8 whatever the client's character set.
    #[error("Invalid utf8mb4 character string: '{0}'")]
    NotUtf8(String),
    /// The statement is longer than is read.
    #[error("This statement has {bytes} bytes; binlogd reads at most {max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// More parentheses or operators than are read.
    #[error("This expression is nested too deeply, or has too many operators: binlogd reads at most {max}")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// More columns than any server sends.
    #[error("Too many columns")]
    TooManyColumns,
}

impl SqlError {
    /// The text from `at` on does not fit.
    pub(super) fn syntax(text: &[u8], at: usize) -> SqlError {
        let (before, near) = text.split_at(at.min(text.len()));
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        SqlError::Syntax { near: printable(near, NEAR_BYTES_MAX), line }
    }

    /// As the client gets it, with the server's own numbers (MySQL's error reference).
    pub fn packet(&self) -> ErrPacket {
        let (code, sqlstate) = match self {
            SqlError::Empty => (1065, "42000"),
            SqlError::Syntax { .. } => (1064, "42000"),
            SqlError::NotUtf8(_) => (1300, "HY000"),
            SqlError::TooLong { .. } => (1153, "08S01"),
            SqlError::TooDeep { .. } => (1235, "42000"),
            SqlError::TooManyColumns => (1117, "HY000"),
        };
        ErrPacket { code, sqlstate: sqlstate.to_owned(), message: self.to_string() }
    }
}
