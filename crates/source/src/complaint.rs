//! Why a source refuses: the numbers of its errors that are answered, and what the text of its error 1236 says.
//!
//! The numbers stand in the servers' error references: MySQL `share/messages_to_clients.txt`, MariaDB
//! `sql/share/errmsg-utf8.txt`. What a refused login means is known in the `wire` crate (`denied.rs`).

/// `ER_MASTER_FATAL_ERROR_READING_BINLOG` / `ER_SOURCE_FATAL_ERROR_READING_BINLOG`: the source cannot or will not dump.
/// One number for a dozen causes that only its text tells apart (`sql/rpl_binlog_sender.cc`, MariaDB `sql/sql_repl.cc`);
/// see [`Complaint`].
pub const ER_FATAL_READING_BINLOG: u16 = 1236;

/// `ER_SLAVE_SAME_ID`: MariaDB's number for a dump that another client with our server id took over. MySQL says the same by
/// error 1236 and its text.
pub const ER_SAME_SERVER_ID: u16 = 4052;

/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`: a privilege is missing.
pub const ER_SPECIFIC_ACCESS_DENIED: u16 = 1227;

/// `ER_PARSE_ERROR`: the server does not know the statement.
pub const ER_PARSE_ERROR: u16 = 1064;

/// `ER_UNKNOWN_SYSTEM_VARIABLE`: the server is of a version or a kind that does not have it.
pub const ER_UNKNOWN_SYSTEM_VARIABLE: u16 = 1193;

/// The causes of error 1236 that are answered differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaint {
    /// The file that we asked for is not there.
    FileNotFound,
    /// Transactions that we need are in no file any more.
    Purged,
    /// The file is shorter than the place that we asked for.
    PastTheEnd,
    /// There is no sound event at the place that was read: the source's file is damaged, or is not the one that we hold.
    Unreadable,
    /// Reading failed, of which the file may know nothing: it may pass.
    ReadFailed,
    /// We named transactions with the source's own UUID that it does not have: it lost the end of its log.
    AheadOfSource,
    /// The source writes no binary log.
    NoBinlog,
    /// Another replica with our identity has connected.
    Evicted,
    /// A transaction at the place that was read has no GTID, and the source, whose `gtid_mode` is ON by now, sends such
    /// transactions to nobody.
    Anonymous,
    /// Anything else; it is tried again.
    Other,
}

/// Words of the servers' English texts, and what they mean; the first that occur count.
///
/// MySQL 5.7 to 9.7: `Binlog_sender` (`sql/rpl_binlog_sender.cc`, `libs/mysql/binlog/event`'s and
/// `sql/binlog_reader.cc`'s reading errors), `MYSQL_BIN_LOG::find_first_log_not_in_gtid_set` (`sql/binlog.cc`) and the
/// messages `ER_SOURCE_HAS_PURGED_REQUIRED_GTIDS` and `ER_REPLICA_HAS_MORE_GTIDS_THAN_SOURCE`. MariaDB 10.11 to 11.8:
/// `mysql_binlog_send` and `check_slave_start_position` (`sql/sql_repl.cc`).
const WORDS: &[(&str, Complaint)] = &[
    ("Could not find first log file name", Complaint::FileNotFound),
    ("could not find next log", Complaint::FileNotFound), // Its index lost the file that it was reading: a reset.
    ("could not find next log", Complaint::FileNotFound), // Its index has another history by now.
    ("has more GTIDs than the", Complaint::AheadOfSource), // "Replica", before 8.0.26 "Slave".
    ("purged required binary logs", Complaint::Purged),   // "the source", "the master has".
    ("has purged binary logs", Complaint::Purged),        // Before 8.0.
    ("binary log files have been purged", Complaint::Purged),
    ("binlog files have been purged", Complaint::Purged), // MariaDB.
    ("is not in the master's binlog", Complaint::Purged), // MariaDB.
    ("position > file size", Complaint::PastTheEnd),
    ("impossible position", Complaint::PastTheEnd), // MariaDB.
    ("bogus data in log event", Complaint::Unreadable),
    ("log event entry exceeded max_allowed_packet", Complaint::Unreadable),
    ("binlog truncated in the middle of event", Complaint::Unreadable),
    ("did not pass crc check", Complaint::Unreadable),
    ("error reading log event", Complaint::ReadFailed), // "I/O error …", "unknown error …".
    ("Binary log is not open", Complaint::NoBinlog),
    ("same server_uuid", Complaint::Evicted),
    ("same server_id", Complaint::Evicted),
    ("replicate anonymous transaction", Complaint::Anonymous), // Before 8.0: "… when AUTO_POSITION = 1".
];

impl Complaint {
    /// By the server's English text, which does not depend on its language settings.
    pub fn of(message: &str) -> Complaint {
        let found = WORDS.iter().find(|(words, _)| message.contains(words));
        found.map_or(Complaint::Other, |(_, complaint)| *complaint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts as servers sent them, or as they stand in their sources.
    #[test]
    fn the_causes_of_error_1236_are_told_apart() {
        let cases = [
            ("Could not find first log file name in binary log index file", Complaint::FileNotFound),
            (
                "could not find next log; the first event 'b.000003' at 198, the last event read from './b.000005' at 463",
                Complaint::FileNotFound,
            ),
            (
                "could not find next log; the first event 'b.000001' at 4, the last event read from './b.000003' at 500",
                Complaint::FileNotFound,
            ),
            (
                "Cannot replicate because the source purged required binary logs. Replicate the missing transactions from elsewhere, \
                 or provision a new replica from backup. Consider increasing the source's binary log expiration period. The GTID set \
                 sent by the replica is 'a', and the missing transactions are 'b'",
                Complaint::Purged,
            ),
            (
                "Cannot replicate because the master purged required binary logs. Replicate the missing transactions from elsewhere",
                Complaint::Purged,
            ),
            (
                "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs \
                 containing GTIDs that the slave requires.",
                Complaint::Purged,
            ),
            (
                "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and \
                 required binlog files have been purged.",
                Complaint::Purged,
            ),
            (
                "Error: connecting slave requested to start from GTID 0-1-3, which is not in the master's binlog",
                Complaint::Purged,
            ),
            (
                "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may indicate that the the last \
                 binary log file was truncated or lost",
                Complaint::AheadOfSource,
            ),
            (
                "Slave has more GTIDs than the master has, using the master's SERVER_UUID.",
                Complaint::AheadOfSource,
            ),
            ("Client requested source to start replication from position > file size", Complaint::PastTheEnd),
            (
                "Client requested master to start replication from impossible position; the first event 'b.000001' at 900",
                Complaint::PastTheEnd,
            ),
            ("bogus data in log event; the first event 'b.000001' at 157", Complaint::Unreadable),
            (
                "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on source; the first event",
                Complaint::Unreadable,
            ),
            ("event read from binlog did not pass crc check; the first event", Complaint::Unreadable),
            ("I/O error reading log event; the first event 'b.000001' at 157", Complaint::ReadFailed),
            ("Binary log is not open", Complaint::NoBinlog),
            (
                "A replica with the same server_uuid/server_id as this replica has connected to the source",
                Complaint::Evicted,
            ),
            (
                "A slave with the same server_uuid as this slave has connected to the master",
                Complaint::Evicted,
            ),
            (
                "Cannot replicate anonymous transaction when @@GLOBAL.GTID_MODE = ON, at file ./b.000001, position 158.; the first \
                 event 'b.000001' at 158",
                Complaint::Anonymous,
            ),
            ("Misconfigured source - source server_id is 0", Complaint::Other),
            ("Failed on my_net_write()", Complaint::Other),
        ];
        for (message, expected) in cases {
            assert_eq!(Complaint::of(message), expected, "{message}");
        }
    }
}
