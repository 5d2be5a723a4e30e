//! Why a source refuses a dump, read from the text of its error 1236.

/// The causes of error 1236 that are answered differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaint {
    /// The file that we asked for is not there.
    FileNotFound,
    /// Transactions that we need are in no file any more.
    Purged,
    /// The file is shorter than the place that we asked for.
    PastTheEnd,
    /// The source writes no binary log.
    NoBinlog,
    /// Another replica with our identity has connected.
    Evicted,
    /// Anything else; it is tried again.
    Other,
}

impl Complaint {
    /// By the server's English text; the words are those of MySQL 5.7 to 9.7 and MariaDB 10.11 to 11.8.
    pub fn of(message: &str) -> Complaint {
        let says = |words: &str| message.contains(words);
        if says("Could not find first log file name") {
            Complaint::FileNotFound
        } else if says("has purged") || says("missing transactions") || says("is not in the master's binlog")
        {
            Complaint::Purged
        } else if says("position > file size") || says("impossible position") {
            Complaint::PastTheEnd
        } else if says("Binary log is not open") {
            Complaint::NoBinlog
        } else if says("same server_uuid") || says("same server_id") {
            Complaint::Evicted
        } else {
            Complaint::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_causes_of_error_1236_are_told_apart() {
        let cases = [
            ("Could not find first log file name in binary log index file", Complaint::FileNotFound),
            (
                "Cannot replicate because the source purged required binary logs. The GTID set sent by the replica is missing transactions",
                Complaint::Purged,
            ),
            ("Client requested source to start replication from position > file size", Complaint::PastTheEnd),
            (
                "Client requested master to start replication from impossible position; the first event 'b.000001' at 900",
                Complaint::PastTheEnd,
            ),
            ("Binary log is not open", Complaint::NoBinlog),
            (
                "A replica with the same server_uuid/server_id as this replica has connected to the source",
                Complaint::Evicted,
            ),
            ("log event entry exceeded max_allowed_packet", Complaint::Other),
        ];
        for (message, expected) in cases {
            assert_eq!(Complaint::of(message), expected, "{message}");
        }
    }
}
