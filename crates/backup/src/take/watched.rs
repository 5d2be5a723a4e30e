//! The stream of a tool as it passes: its beginning and its end are kept, where dumps say their point and that they are whole.

use archive::chain::backup::{BackupPoint, Tool};
use std::io::{self, Read};

/// So much of the beginning is kept, in bytes: a set of GTIDs of ten thousand servers.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// So much of the end.
const TAIL_BYTES_MAX: usize = 1 << 20;

/// See [the module](self).
pub(super) struct Watched<R> {
    stream: R,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl<R: Read> Watched<R> {
    pub(super) fn new(stream: R) -> Watched<R> {
        Watched { stream, head: Vec::new(), tail: Vec::new() }
    }

    /// The end of what has passed.
    pub(super) fn tail(&self) -> &[u8] {
        &self.tail[self.tail.len().saturating_sub(TAIL_BYTES_MAX)..]
    }

    /// The point that a dump tells; empty where it tells none.
    pub(super) fn point(&self) -> BackupPoint {
        of_dump(&String::from_utf8_lossy(&self.head), &String::from_utf8_lossy(self.tail()))
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        let bytes = &buffer[..read];
        let room = HEAD_BYTES_MAX.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..room.min(read)]);
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 2 * TAIL_BYTES_MAX {
            self.tail.drain(..self.tail.len() - TAIL_BYTES_MAX);
        }
        Ok(read)
    }
}

/// The point in the head of a dump, before the first schema; of MariaDB 11 the GTIDs stand behind the last one. What a user of the
/// server could write into a definition stands between the two.
fn of_dump(head: &str, tail: &str) -> BackupPoint {
    let head = head.find("\n-- Current Database: ").map_or(head, |end| &head[..end]);
    let mut point = BackupPoint::default();
    if let Some((file, position)) = head.lines().find_map(position) {
        (point.file, point.position) = (file.to_owned(), position);
    }
    let deferred = tail.rfind("\n-- The deferred gtid setting").map_or("", |at| &tail[at..]);
    let set = gtids(head, "SET @@GLOBAL.GTID_PURGED=").or_else(|| gtids(head, "SET GLOBAL gtid_slave_pos="));
    point.gtids = set.or_else(|| gtids(deferred, "SET GLOBAL gtid_slave_pos=")).unwrap_or_default();
    point
}

/// The words of `CHANGE REPLICATION SOURCE TO`, and those of `CHANGE MASTER TO`.
fn position(line: &str) -> Option<(&str, u64)> {
    let line = line.trim_start_matches("-- ");
    line.strip_prefix("CHANGE ")?;
    let behind = |word: &str| line.split_once(word).map(|(_, rest)| rest);
    let file = behind("_LOG_FILE='")?.split('\'').next()?;
    let digits: String = behind("_LOG_POS=")?.chars().take_while(char::is_ascii_digit).collect();
    Some((file, digits.parse().ok()?))
}

/// The set behind a statement's beginning: the last text in quotes up to the semicolon, which a comment of a version and line breaks
/// may part from there.
fn gtids(text: &str, begins: &str) -> Option<String> {
    let at = text.find(begins)?;
    let statement = text[at + begins.len()..].split(';').next()?;
    let set = statement.rsplit('\'').nth(1)?;
    Some(set.split_whitespace().collect())
}

/// The point that mariadb-backup says behind its copy: `MySQL binlog position: filename 'f', position 'p', GTID of the last change 'g'`
/// (`backup_mysql.cc`).
pub(super) fn of_mariadb_backup(said: &str) -> BackupPoint {
    let mut point = BackupPoint::default();
    let Some(line) = said.lines().rev().find(|line| line.contains("MySQL binlog position: ")) else {
        return point;
    };
    let value = |word: &str| {
        let rest = line.split_once(&format!("{word} '")).map(|(_, rest)| rest)?;
        rest.split('\'').next()
    };
    point.file = value("filename").unwrap_or_default().to_owned();
    point.position = value("position").and_then(|digits| digits.parse().ok()).unwrap_or_default();
    point.gtids = value("last change").unwrap_or_default().to_owned();
    point
}

/// A point that an operator gives: GTIDs, or FILE:POS.
pub(super) fn given(text: &str) -> BackupPoint {
    let text: String = text.split_whitespace().collect();
    if let Some((file, position)) = text.rsplit_once(':')
        && codec::BinlogName::parse(file).is_ok()
        && let Ok(position) = position.parse()
    {
        return BackupPoint { file: file.to_owned(), position, ..BackupPoint::default() };
    }
    BackupPoint { gtids: text, ..BackupPoint::default() }
}

/// What can be read of a point in a stream.
pub(super) fn tells(tool: Tool) -> &'static str {
    match tool {
        Tool::Mysqldump => "GTID_PURGED, or CHANGE REPLICATION SOURCE: is its binary log switched on?",
        Tool::MariadbDump => "gtid_slave_pos, or CHANGE MASTER: is its binary log switched on?",
        Tool::MariadbBackup => "\"MySQL binlog position\": is its binary log switched on?",
        Tool::Clone => "gtid_executed, by the server that was started on it",
        Tool::Command => "what a dump of mysqldump or mariadb-dump says: give --point",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: &str = "-- MySQL dump\n\nSET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '6d3bef89-eb78-11f1-941f-02fc00000001:1-3,\n\
                         7d3bef89-eb78-11f1-941f-02fc00000001:1';\n\n-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='mysql-bin.000001', \
                         SOURCE_LOG_POS=858;\n\n-- Current Database: `mysql`\n\nCHANGE MASTER TO MASTER_LOG_FILE='x.000009', MASTER_LOG_POS=1;\n";
    const MARIADB: &str = "-- CHANGE MASTER TO MASTER_USE_GTID=slave_pos;\n\n-- CHANGE MASTER TO MASTER_LOG_FILE='m.000001', \
                           MASTER_LOG_POS=884;\n\n-- Current Database: `mysql`\n";
    const BEHIND: &str = "-- SET GLOBAL gtid_slave_pos='6-6-6';\nUSE `shop`;\n\n-- The deferred gtid setting for slave corresponding \
                          to\n\n-- SET GLOBAL gtid_slave_pos='0-20445-3,1-1-1';\n/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;\n";

    #[test]
    fn the_point_is_read_as_the_tools_write_it() {
        let point = of_dump(MYSQL, MYSQL);
        let both = "6d3bef89-eb78-11f1-941f-02fc00000001:1-3,7d3bef89-eb78-11f1-941f-02fc00000001:1";
        assert_eq!((&*point.gtids, &*point.file, point.position), (both, "mysql-bin.000001", 858));
        let point = of_dump(MARIADB, BEHIND);
        assert_eq!((&*point.gtids, &*point.file, point.position), ("0-20445-3,1-1-1", "m.000001", 884));
        assert_eq!(of_dump("-- nothing\n", BEHIND.split_once("\n\n").unwrap().0), BackupPoint::default());
        let said = "[00] 2026-11-28 22:10:02 MySQL binlog position: filename 'mysql-bin.000001', position '884', GTID of the last \
                    change '0-20445-3'\n[00] completed OK!";
        let point = of_mariadb_backup(said);
        assert_eq!((&*point.gtids, &*point.file, point.position), ("0-20445-3", "mysql-bin.000001", 884));
        assert_eq!(given("b.000001:4").file, "b.000001");
        assert_eq!(given(" 0-1-2, 1-1-1").gtids, "0-1-2,1-1-1");
    }

    #[test]
    fn the_ends_of_a_long_stream_are_kept() {
        let plain: Vec<u8> = (0..5 * TAIL_BYTES_MAX).map(|at| (at % 251) as u8).collect();
        let mut watched = Watched::new(&plain[..]);
        let mut all = Vec::new();
        watched.read_to_end(&mut all).unwrap();
        assert!(all == plain && watched.head == plain[..HEAD_BYTES_MAX]);
        assert!(watched.tail() == &plain[plain.len() - TAIL_BYTES_MAX..]);
    }
}
