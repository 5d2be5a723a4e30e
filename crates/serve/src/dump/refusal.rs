//! Why a dump is refused or ends: the servers' own numbers and words, which readers and people know.

use codec::Position;
use codec::packet::ErrPacket;
use std::io;
use thiserror::Error;

/// `ER_MASTER_FATAL_ERROR_READING_BINLOG`: a replica stops at it, and does not try again.
const FATAL_READING_BINLOG: u16 = 1236;

/// `ER_UNKNOWN_ERROR`. A replica stops at errors 1236 and 1041 and at a packet that is too large; after any other one of a dump it
/// connects again, as after a lost connection (`handle_slave_io` in MySQL's `sql/rpl_replica.cc` and MariaDB's `sql/slave.cc`).
const COME_AGAIN: u16 = 1105;

/// The longest message of a server, in bytes: `MYSQL_ERRMSG_SIZE` with its terminator is 512.
const MESSAGE_BYTES_MAX: usize = 511;

/// The longest GTID set that a reader is told which has more than it should, in bytes.
const MORE_BYTES_MAX: usize = 300;

/// Why a dump ended before its time.
#[derive(Debug, Error)]
pub enum DumpError {
    /// The reader was told so, with error 1236.
    #[error("{}", .0.message)]
    Refused(ErrPacket),
    /// What the reader wants may be here later: the copy is behind its source, or the archive has not answered yet. The reader was
    /// told so with error 1105, after which replicas come again.
    #[error("{}", .0.message)]
    Behind(ErrPacket),
    /// As [`DumpError::Refused`], but inside an event, where the reader cannot be told: its connection is to be closed.
    #[error("{}", .0.message)]
    Cut(ErrPacket),
    /// A file of the copy cannot be read. The reader was told nothing: it comes back.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: std::path::PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// The reader cannot be written to any more.
    #[error("{0}")]
    Reader(#[source] io::Error),
}

/// Whose words a reader is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// MySQL's of today: source and replica.
    Source,
    /// MySQL's before 8.2: master and slave.
    Master,
    /// MariaDB's.
    Mariadb,
}

/// What cannot be served, in the words of the server whose logs are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No file of that name.
    NoSuchFile,
    /// A position before the first event.
    PositionBefore4,
    /// A position behind the end.
    PositionPastEnd,
    /// A reader without checksums wants a file with checksums.
    ChecksumUnaware,
    /// The bytes at the place are no event.
    Bogus,
    /// The file ends inside an event.
    Truncated,
    /// There is no file behind the one that was read.
    NoNextFile(&'static str),
    /// MySQL: the reader has these transactions of the source, which the source does not have. A server does not name them; where
    /// they are to be named, its words are cut for that.
    HasMoreGtids { more: String, is_named: bool },
    /// MySQL: what the reader needs is in no file any more.
    Purged { sent: String, missing: String },
    /// MariaDB: as [`Refusal::Purged`].
    StateTooOld,
    /// MySQL: a transaction without a GTID for a reader by GTID.
    Anonymous { file: String, position: u64 },
    /// The copy has less than its source, and the reader more than the copy.
    Behind { end: Position },
    /// What the reader needs was purged here, and may be in the archive, which has not answered yet.
    PastNotKnown,
    /// In full.
    Text(String),
}

impl Words {
    /// Of the server with this version, as its files and timelines state it.
    pub(crate) fn of(version: &str) -> Words {
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
        let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
        match (major, minor) {
            _ if version.contains("MariaDB") => Words::Mariadb,
            (Some(major), Some(minor)) if (major, minor) < (8, 2) => Words::Master,
            _ => Words::Source,
        }
    }

    fn roles(self) -> (&'static str, &'static str) {
        if self == Words::Source { ("source", "replica") } else { ("master", "slave") }
    }
}

/// Where a dump was when it failed, as the servers append it once a file is open.
#[derive(Debug, Clone)]
pub(crate) struct ReadSoFar {
    /// What was asked for.
    pub(crate) first: Position,
    /// End of the last event that was read.
    pub(crate) event: Position,
    /// End of the bytes that were read.
    pub(crate) byte: Position,
}

impl Refusal {
    /// The packet for the reader. `so_far` is there once a file is open.
    pub(crate) fn packet(&self, words: Words, so_far: Option<&ReadSoFar>) -> ErrPacket {
        let mut message = self.message(words);
        // The folder is the server's own, and `.` in nearly every installation.
        let folder = if words == Words::Mariadb { "" } else { "./" };
        let comes_again = matches!(self, Refusal::Behind { .. } | Refusal::PastNotKnown);
        let code = if comes_again { COME_AGAIN } else { FATAL_READING_BINLOG };
        if let Some(ReadSoFar { first, event, byte }) = so_far.filter(|_| code != COME_AGAIN) {
            message += &format!(
                "; the first event '{}' at {}, the last event read from '{folder}{}' at {}, the last byte read from \
                 '{folder}{}' at {}.",
                first.file, first.offset, event.file, event.offset, byte.file, byte.offset
            );
        }
        let mut end = message.len().min(MESSAGE_BYTES_MAX);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        ErrPacket { code, sqlstate: "HY000".to_owned(), message }
    }

    fn message(&self, words: Words) -> String {
        let (source, replica) = words.roles();
        let client = format!("Client requested {source} to start replication from");
        match self {
            Refusal::NoSuchFile => "Could not find first log file name in binary log index file".to_owned(),
            Refusal::PositionBefore4 | Refusal::PositionPastEnd if words == Words::Mariadb => {
                format!("{client} impossible position")
            }
            Refusal::PositionBefore4 => format!("{client} position < 4"),
            Refusal::PositionPastEnd => format!("{client} position > file size"),
            Refusal::ChecksumUnaware => format!(
                "{}{} can not handle replication events with the checksum that {source} is configured to log",
                replica[..1].to_uppercase(),
                &replica[1..]
            ),
            Refusal::Bogus => "bogus data in log event".to_owned(),
            Refusal::Truncated => {
                format!("binlog truncated in the middle of event; consider out of disk space on {source}")
            }
            Refusal::NoNextFile(why) => format!("could not find next log: {why}"),
            Refusal::HasMoreGtids { more, is_named } => has_more(words, is_named.then_some(more)),
            Refusal::Purged { sent, missing } => purged(words, sent, missing),
            Refusal::StateTooOld => {
                "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and required \
                 binlog files have been purged."
                    .to_owned()
            }
            Refusal::Anonymous { file, position } => format!(
                "Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file ./{file}, position {position}."
            ),
            Refusal::Behind { end } => format!(
                "binlogd is behind its {source}: what it can serve ends at {end}, and the reader has more. It is to come again, as \
                 a {replica} does by itself; SHOW {} STATUS on binlogd says what the copy waits for",
                replica.to_uppercase()
            ),
            Refusal::PastNotKnown => format!(
                "binlogd has purged what the reader needs, and its archive, which may have it, has not answered yet. The reader is to come \
                 again, as a {replica} does by itself; `binlogd status` says what is wrong with the archive"
            ),
            Refusal::Text(text) => text.clone(),
        }
    }
}

/// `ER_REPLICA_HAS_MORE_GTIDS_THAN_SOURCE`.
fn has_more(words: Words, named: Option<&String>) -> String {
    let more = match named {
        None => String::new(),
        Some(more) if more.len() <= MORE_BYTES_MAX => format!(": {more}"),
        Some(_) => ": too many to print in this message; they are in the log of binlogd".to_owned(),
    };
    if words == Words::Source {
        return format!(
            "Replica has more GTIDs than the source has, using the source's SERVER_UUID{more}. This may indicate that the \
                the last binary log file was truncated or lost, e.g., after a power failure when sync_binlog != 1. The \
                source may have rolled back transactions that were already replicated to the replica. Replicate any \
                transactions that source has rolled back from replica to source, and/or commit empty transactions on \
                source to account for transactions that have been committed on source but are not included in \
                GTID_EXECUTED."
        );
    }
    format!(
        "Slave has more GTIDs than the master has, using the master's SERVER_UUID{more}. This may indicate that the end of the \
     binary log was truncated or that the last binary log file was lost, e.g., after a power or disk failure when \
     sync_binlog != 1. The master may or may not have rolled back transactions that were already replicated to the \
     slave. Suggest to replicate any transactions that master has rolled back from slave to master, and/or commit \
     empty transactions on master to account for transactions that have been committed on master but are not included \
     in GTID_EXECUTED."
    )
}

/// As MySQL says it since 8.0.20; servers before that do not name the sets, which helps nobody.
fn purged(words: Words, sent: &str, missing: &str) -> String {
    let (source, replica) = words.roles();
    let said = format!(
        "Cannot replicate because the {source} purged required binary logs. Replicate the missing transactions from \
         elsewhere, or provision a new {replica} from backup. Consider increasing the {source}'s binary log expiration \
         period. "
    );
    let sets = format!(
        "The GTID set sent by the {replica} is '{sent}', and the missing transactions are '{missing}'"
    );
    if said.len() + sets.len() > MESSAGE_BYTES_MAX {
        return format!(
            "{said}The GTID sets and the missing purged transactions are too long to print in this message. For more \
             information, please see the {source}'s error log or the manual for GTID_SUBTRACT"
        );
    }
    said + &sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_servers_time() {
        for (version, words) in [
            ("9.7.0", Words::Source),
            ("8.4.2-log", Words::Source),
            ("28.4.0", Words::Source),
            ("8.0.31", Words::Master),
            ("5.7.22-log", Words::Master),
            ("11.8.3-MariaDB-log", Words::Mariadb),
            ("?", Words::Source),
        ] {
            assert_eq!(Words::of(version), words, "{version}");
        }
    }

    #[test]
    fn a_message_is_as_long_as_a_servers() {
        let has_more = |more: &str| Refusal::HasMoreGtids { more: more.to_owned(), is_named: true };
        let as_a_server = Refusal::HasMoreGtids { more: "u:7-9".to_owned(), is_named: false };
        let said = as_a_server.packet(Words::Source, None);
        assert_eq!((said.code, said.message.len()), (1236, MESSAGE_BYTES_MAX));
        assert!(said.message.ends_with("not included in GTID_EXECU"), "{}", said.message);
        let said = has_more("u:7-9").packet(Words::Source, None);
        assert_eq!((said.code, said.message.len()), (1236, MESSAGE_BYTES_MAX));
        assert!(said.message.contains("using the source's SERVER_UUID: u:7-9. This may"), "{}", said.message);
        let said = has_more(&"u:7-9,".repeat(100)).packet(Words::Master, None).message;
        assert!(said.contains("SERVER_UUID: too many to print in this message"), "{said}");
        let long = Refusal::Purged { sent: "x".repeat(200), missing: "y".repeat(200) };
        assert!(long.packet(Words::Master, None).message.ends_with("the manual for GTID_SUBTRACT"));
        let short = Refusal::Purged { sent: String::new(), missing: "u:1-8".to_owned() };
        let said = short.packet(Words::Source, None).message;
        assert!(
            said.ends_with("sent by the replica is '', and the missing transactions are 'u:1-8'"),
            "{said}"
        );
    }

    #[test]
    fn the_place_is_told_once_a_file_is_open() {
        let at = |offset| Position::new("b.000002", offset);
        let so_far = ReadSoFar { first: at(4), event: at(127), byte: at(127) };
        let said = Refusal::ChecksumUnaware.packet(Words::Source, Some(&so_far)).message;
        assert_eq!(
            said,
            "Replica can not handle replication events with the checksum that source is configured to log; the first \
             event 'b.000002' at 4, the last event read from './b.000002' at 127, the last byte read from './b.000002' \
             at 127."
        );
    }
}
