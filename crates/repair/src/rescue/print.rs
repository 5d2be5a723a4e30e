//! Transactions as statements for a person, who runs them by hand where no tool can decide: under GTIDs that the server gives.
//! What must not be run is in the text too, as comments.

use super::statements::Translator;
use crate::detail::{Known, Place as LogPlace, each_part};
use crate::rescue::statements::events::unpacked;
use crate::undo::{Direction, Inverse, SESSION, guard};
use binlog::forks::transactions::{StoredTransaction, TransactionReader};
use binlog::forks::{Fate, Lost, Place};
use binlog::storage::Storage;
use binlog::storage::posix::PosixStorage;
use codec::ServerKind;
use codec::event::EventType;
use codec::gtid::TransactionId;
use codec::secrets::{masked, may_hold_secret};
use points::transaction::Transaction;
use std::io;
use std::path::Path;

/// What the client program takes for the end of a statement, as mysqlbinlog writes it: no statement of a log holds it.
const DELIMITER: &str = "/*!*/;";

/// The beginning of a statement of rows, of which base64 follows.
const ROWS: &[u8] = b"BINLOG '";

/// So much of a statement is shown in a comment, in bytes: the client program sends each line of one to the server.
const COMMENT_BYTES_MAX: usize = 64 << 10;

/// Why a transaction of which a statement holds a secret is not printed to be run.
const SECRET: &str = "It holds a secret, which only the file shows";

/// Of the rows of UPDATE and DELETE, which no server compares with what is there where the table has a key.
const OVERWRITES: &str =
    "It changes or deletes rows, and sets each to what it was then, whatever was written to it since";

/// What the text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The server lacks what it does.
    Run,
    /// The server has it, or gets it otherwise: comments only.
    Read,
}

/// The text of a file that the server's client program runs.
#[derive(Debug)]
pub struct Script {
    /// Not a String: a statement is of the character set that its client had.
    text: Vec<u8>,
    /// The session does as that of mysqlbinlog.
    is_applier: Option<ServerKind>,
    /// The session does as that of undo.
    is_undo: bool,
    /// What changes or deletes rows is to be run too, whatever was written to them since.
    overwrite: bool,
    /// The server numbers new rows.
    new_keys: bool,
    /// What the log does not say of columns.
    known: Known,
    /// The name of the source whose log it is.
    source: String,
}

impl Script {
    /// One that holds nothing yet. `rescue_first` tells of transactions that are to be handed over before. With
    /// `overwrite` what changes or deletes rows is run too, and not a comment.
    pub fn new(source: &str, rescue_first: bool, overwrite: bool, known: Known, new_keys: bool) -> Script {
        let (text, source) = (Vec::new(), source.to_owned());
        let mut script =
            Script { text, is_applier: None, is_undo: false, overwrite, new_keys, known, source };
        script.comment(
            "Statements of transactions that binlogd holds, for a person to look at, and to run ONCE:\n\
             mysql --binary-mode --max-allowed-packet=1G < FILE\n\
             They name no GTID, so that the server gives new ones. What the server has, and what binlogd rescue hands over, are comments.\n\
             Rows whose columns are not known are BINLOG statements: mysqlbinlog -v shows them in the file named, --schema asks a server.",
        );
        if rescue_first {
            script.comment(
                "Run binlogd rescue first, and print this anew: the server would give these statements the GTIDs of what it lacks.",
            );
        }
        script.line(format!("DELIMITER {DELIMITER}").as_bytes());
        script
    }

    /// The whole text.
    pub fn finish(mut self) -> Vec<u8> {
        if let Some(kind) = self.is_applier {
            self.statement(as_applier(kind, false));
        }
        self.line(b"DELIMITER ;");
        self.text
    }

    /// Each of the transactions that had a GTID, in the order in which they had it: what the source lost to be run, where it gave
    /// the GTID to another one.
    ///
    /// # Errors
    /// When a file of the copy cannot be read as it was.
    pub fn versions(&mut self, id: &TransactionId, lost: &Lost, fate: Fate) -> io::Result<()> {
        let count = lost.versions.len();
        let by_rescue = "lost by the source; binlogd rescue hands it over, under its own GTID";
        for (number, version) in lost.versions.iter().enumerate() {
            let (which, purpose) = match count {
                count if number + 1 == count && fate == Fate::Lacking => {
                    (by_rescue.to_owned(), Purpose::Read)
                }
                count if fate == Fate::Lacking => (
                    format!("{} of {count}: it was decided that the last one counts", number + 1),
                    Purpose::Read,
                ),
                count if number + 1 == count && !lost.is_lacking() => (
                    format!("{count} of {count}: the one that the source has now, and not to be run again"),
                    Purpose::Read,
                ),
                count => (format!("{} of {count}: lost by the source", number + 1), Purpose::Run),
            };
            let at = jiff::Timestamp::from_second(i64::from(version.timestamp))
                .map_or("?".into(), |at| at.to_string());
            self.transaction(id, &version.place, &format!("{which}; {at}"), purpose)?;
        }
        Ok(())
    }

    /// One transaction.
    ///
    /// # Errors
    /// When the file of the copy cannot be read as it was.
    pub fn transaction(
        &mut self,
        id: &TransactionId,
        place: &Place,
        about: &str,
        purpose: Purpose,
    ) -> io::Result<()> {
        let mut reader = TransactionReader::open(&PosixStorage, &place.path)?;
        let format = reader.format_event().to_vec();
        reader.seek(place.at)?;
        let moved = || {
            let text = format!("{} at {} does not hold {id} any more", place.path.display(), place.at);
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let transaction = reader.next(|_| true)?.filter(|found| found.id == Some(*id)).ok_or_else(moved)?;
        self.line(b"");
        self.comment(&format!("{id}, {about}"));
        self.comment(&format!("{} at {} to {}", place.path.display(), place.at, place.end));
        let committed = transaction.events.iter().map(|event| event.header.timestamp).max().unwrap_or(0);
        let log_place = LogPlace::of(&place.timeline(), &place.file(), place.at);
        self.known.is_at(&self.source, log_place, i64::from(committed));
        let rows = self.rows(id, place)?;
        let is_left = purpose == Purpose::Run && !self.overwrite && overwrites(&transaction);
        match rows.refusals().next() {
            None if rows.rows() > 0 => {
                if purpose == Purpose::Run && overwrites(&transaction) {
                    let how =
                        "so it is not run from here. Look at the rows first; --overwrite prints it to be run";
                    self.comment(&if is_left {
                        format!("{OVERWRITES}, {how}.")
                    } else {
                        format!("{OVERWRITES}.")
                    });
                }
                self.steps(&rows, purpose == Purpose::Run && !is_left);
                return Ok(());
            }
            Some(why) if is_of_rows(&transaction) => self.comment(&format!("Its rows are not told: {why}")),
            _ => {}
        }
        self.is_undo = false;
        match Translator::without_gtids().statements(&transaction, &format) {
            Ok(statements) if purpose == Purpose::Read => self.shown(&statements),
            // A half of it is worse than none of it.
            Ok(statements) if statements.iter().any(|statement| is_secret(statement)) => {
                self.comment(&format!(
                    "{SECRET}, so it is not run from here. mysqlbinlog can tell it: {}",
                    mysqlbinlog(id, place, purpose)
                ));
                self.shown(&statements);
            }
            Ok(statements) if is_left => {
                self.comment(&format!(
                    "{OVERWRITES}, so it is not run from here. Look at the rows first; --overwrite prints it to be run. To look: {}",
                    mysqlbinlog(id, place, purpose)
                ));
                self.shown(&statements);
            }
            Ok(statements) => {
                if overwrites(&transaction) {
                    self.comment(&format!("{OVERWRITES}."));
                }
                if self.is_applier.is_none() {
                    self.is_applier = Some(id.kind());
                    self.statement(as_applier(id.kind(), true));
                }
                statements.iter().for_each(|statement| self.statement(statement));
            }
            Err(why) => self.comment(&format!(
                "It cannot be told by statements here: {why}. mysqlbinlog can: {}",
                mysqlbinlog(id, place, purpose)
            )),
        }
        Ok(())
    }

    /// What it does to rows, as undo writes it.
    fn rows(&mut self, id: &TransactionId, place: &Place) -> io::Result<Inverse> {
        let mut rows = Inverse::of(Direction::Again { new_keys: self.new_keys });
        let file = PosixStorage.open_read(&place.path)?;
        let transaction =
            Transaction { id: Some(*id), at: place.at, end: place.end, ..Transaction::default() };
        if let Err(why) = each_part(&*file, &transaction, &mut self.known, &mut |part| rows.add(&part)) {
            rows.refuse(why);
        }
        rows.end();
        Ok(rows)
    }

    /// Statements of rows, to be run in one transaction, or as comments.
    fn steps(&mut self, rows: &Inverse, is_run: bool) {
        if !is_run {
            rows.steps.iter().for_each(|step| self.comment(&step.sql));
            return;
        }
        if !std::mem::replace(&mut self.is_undo, true) {
            SESSION[..SESSION.len() - 1].iter().for_each(|set| self.statement(set.as_bytes()));
        }
        self.statement(b"START TRANSACTION");
        for (number, step) in (1..).zip(&rows.steps) {
            self.comment(&format!("{number}: {}", step.note));
            self.statement(step.sql.as_bytes());
            self.statement(guard(number, step).as_bytes());
        }
        self.statement(b"COMMIT");
    }

    fn statement(&mut self, statement: &[u8]) {
        self.line(statement);
        self.line(DELIMITER.as_bytes());
    }

    /// Statements as comments.
    fn shown(&mut self, statements: &[Vec<u8>]) {
        for statement in statements {
            if statement.starts_with(ROWS) {
                self.comment(&format!("BINLOG of {} bytes", statement.len()));
            } else if is_secret(statement) {
                self.comment(&format!("{SECRET}: {}", masked(statement)));
            } else {
                let shown = &statement[..statement.len().min(COMMENT_BYTES_MAX)];
                self.comment(&String::from_utf8_lossy(shown));
                if shown.len() < statement.len() {
                    self.comment(&format!("… {} bytes more", statement.len() - shown.len()));
                }
            }
        }
    }

    /// Whatever the text holds, every line of it is a comment: for the client program and for others, which end a line at a
    /// carriage return too.
    fn comment(&mut self, text: &str) {
        for line in text.split(['\n', '\r']) {
            let clean: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.line(format!("-- {clean}").as_bytes());
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
    }
}

/// Base64 may hold the letters of any word.
fn is_secret(statement: &[u8]) -> bool {
    !statement.starts_with(ROWS) && may_hold_secret(statement)
}

/// A session in which numbers stand for character sets, as the log has them, and XA transactions are as a replica has them.
/// MySQL takes the numbers in any session.
fn as_applier(kind: ServerKind, on: bool) -> &'static [u8] {
    match (kind, on) {
        (ServerKind::MySql, true) => b"/*!80026 SET @@session.pseudo_replica_mode = 1 */",
        (ServerKind::MySql, false) => b"/*!80026 SET @@session.pseudo_replica_mode = 0 */",
        (ServerKind::MariaDb, true) => b"SET @@session.pseudo_slave_mode = 1",
        (ServerKind::MariaDb, false) => b"SET @@session.pseudo_slave_mode = 0",
    }
}

/// Whether it holds rows.
fn is_of_rows(transaction: &StoredTransaction) -> bool {
    unpacked(transaction).is_ok_and(|events| events.iter().any(|event| event.header.event_type.is_rows()))
}

/// Whether it changes or deletes rows, as rows.
fn overwrites(transaction: &StoredTransaction) -> bool {
    let overwrites =
        |kind: EventType| kind.is_rows() && !matches!(kind, EventType::WRITE_ROWS | EventType::WRITE_ROWS_V1);
    // What cannot be unpacked is told by no statements either.
    unpacked(transaction).is_ok_and(|events| events.iter().any(|event| overwrites(event.header.event_type)))
}

/// The command that tells the transaction too.
fn mysqlbinlog(id: &TransactionId, place: &Place, purpose: Purpose) -> String {
    // A server passes over a GTID that it has, without a word.
    let new = match (id.kind(), purpose) {
        (ServerKind::MySql, Purpose::Run) => " --skip-gtids",
        _ => "",
    };
    let name = place.path.file_name().map(Path::new).unwrap_or(Path::new("")).display();
    format!("mysqlbinlog -v{new} --start-position={} --stop-position={} {name}", place.at, place.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::testing::{FileBuilder, SERVER_UUID};

    #[test]
    fn statements_name_no_gtid_and_say_where_they_are_from() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let mut file = FileBuilder::new().previous_gtids("");
        let at = file.len() as u64;
        file.event(33, &[&[0][..], &[0xab; 16], &7u64.to_le_bytes()].concat());
        file.event(2, &[&[0; 14][..], b"CREATE TABLE d.t (id INT)"].concat());
        let end = file.len() as u64;
        std::fs::write(&path, file.finish()).unwrap();
        let id: TransactionId = format!("{SERVER_UUID}:7").parse::<codec::gtid::Gtid>().unwrap().into();
        let place = Place { path: path.into(), at, end };
        let text = |place: &Place, purpose| {
            let mut script = Script::new("", false, false, Known::default(), false);
            script.transaction(&id, place, "lost", purpose).unwrap();
            String::from_utf8(script.finish()).unwrap()
        };
        let run = text(&place, Purpose::Run);
        assert!(run.contains(&format!("-- {id}, lost")) && run.contains("b.000001 at "), "{run}");
        assert!(run.contains("CREATE TABLE d.t (id INT)\n/*!*/;"), "{run}");
        // MySQL takes the format description for the beginning of a transaction without a GTID.
        let format = run.find("BINLOG '").unwrap();
        assert!(run[format..].contains("SET @@session.gtid_next = 'AUTOMATIC'\n/*!*/;"), "{run}");
        assert_eq!(run.matches(SERVER_UUID).count(), 1, "in the comment only: {run}");
        let moved = text(&Place { at: 4, ..place.clone() }, Purpose::Run);
        assert!(moved.contains("CREATE TABLE"), "the next transaction from there");
        assert!(run.contains("\nDELIMITER /*!*/;\n") && run.ends_with("\nDELIMITER ;\n"), "{run}");
        let read = text(&place, Purpose::Read);
        assert!(read.contains("\n-- CREATE TABLE d.t (id INT)\n"), "{read}");
        assert_eq!(executed(&read), Vec::<&str>::new(), "{read}");
    }

    /// The lines that are not comments.
    fn executed(text: &str) -> Vec<&str> {
        let is_run =
            |line: &&str| !line.is_empty() && !line.starts_with("-- ") && !line.starts_with("DELIMITER ");
        text.split(['\n', '\r']).filter(is_run).collect()
    }

    #[test]
    fn nothing_breaks_out_of_a_comment_and_no_byte_of_what_runs_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b\nDROP TABLE t;\r.000001");
        let statement =
            b"INSERT INTO t VALUES ('\xe9 */\n/*!*/;\nDROP TABLE t;\r\nDROP TABLE t;\rDROP TABLE t; \x1b')";
        let mut file = FileBuilder::new().previous_gtids("");
        let at = file.len() as u64;
        file.event(33, &[&[0][..], &[0xab; 16], &7u64.to_le_bytes()].concat());
        file.event(2, &[&[0; 14][..], statement].concat());
        std::fs::write(&path, file.finish()).unwrap();
        let id: TransactionId = format!("{SERVER_UUID}:7").parse::<codec::gtid::Gtid>().unwrap().into();
        let place = Place { path: path.into(), at, end: at };
        let text = |purpose| {
            let mut script = Script::new("", true, false, Known::default(), false);
            script.transaction(&id, &place, "lost\nDROP TABLE t;", purpose).unwrap();
            script.finish()
        };
        let read = String::from_utf8(text(Purpose::Read)).unwrap();
        assert!(read.contains("-- DROP TABLE t;") && read.contains("rescue first"), "{read}");
        assert_eq!(executed(&read), Vec::<&str>::new(), "{read}");
        let run = text(Purpose::Run);
        assert!(
            run.windows(statement.len()).any(|part| part == statement),
            "{}",
            String::from_utf8_lossy(&run)
        );
    }

    #[test]
    fn secrets_are_masked_and_rows_that_spell_a_word_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let mut file = FileBuilder::new().previous_gtids("");
        let user = file.len() as u64;
        file.event(33, &[&[0][..], &[0xab; 16], &7u64.to_le_bytes()].concat());
        file.event(2, &[&[0; 14][..], b"CREATE USER u IDENTIFIED BY 'hunter2'"].concat());
        let rows = file.len() as u64;
        file.event(33, &[&[0][..], &[0xab; 16], &8u64.to_le_bytes()].concat());
        file.event(2, &[&[0; 14][..], b"BEGIN"].concat());
        file.event(19, b"\x01\0\0\0\0\0\x01\0\x01d\0\x01t\0");
        // In one of the three places it begins with a letter of base64: pwdp.
        let spells = [0xa7, 0x07, 0x69, 0].repeat(3);
        file.event(30, &[&[1, 0, 0, 0, 0, 0, 1, 0][..], &spells].concat());
        file.event(16, &8u64.to_le_bytes());
        std::fs::write(&path, file.finish()).unwrap();
        let shown = |number: u64, at| {
            let id: TransactionId =
                format!("{SERVER_UUID}:{number}").parse::<codec::gtid::Gtid>().unwrap().into();
            let place = Place { path: path.clone().into(), at, end: at };
            let mut script = Script::new("", false, false, Known::default(), false);
            script.transaction(&id, &place, "lost", Purpose::Run).unwrap();
            String::from_utf8(script.finish()).unwrap()
        };
        let user = shown(7, user);
        assert!(user.contains("It holds a secret") && !user.contains("hunter2"), "{user}");
        assert_eq!(executed(&user), Vec::<&str>::new(), "nothing is done by halves: {user}");
        let rows = shown(8, rows);
        assert!(rows.contains("pwd") && !rows.contains("secret"), "{rows}");
    }

    #[test]
    fn rows_that_would_be_overwritten_are_left_to_who_asks_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let mut file = FileBuilder::new().previous_gtids("");
        // Those of an insert, of an update, of a delete.
        let places = [30, 31, 32].map(|code| {
            let at = file.len() as u64;
            file.event(33, &[&[0][..], &[0xab; 16], &7u64.to_le_bytes()].concat());
            file.event(2, &[&[0; 14][..], b"BEGIN"].concat());
            file.event(19, b"\x01\0\0\0\0\0\x01\0\x01d\0\x01t\0");
            file.event(code, &[1, 0, 0, 0, 0, 0, 1, 0, 9]);
            file.event(16, &7u64.to_le_bytes());
            at
        });
        std::fs::write(&path, file.finish()).unwrap();
        let id: TransactionId = format!("{SERVER_UUID}:7").parse::<codec::gtid::Gtid>().unwrap().into();
        let path: std::sync::Arc<Path> = path.into();
        for (number, at) in places.into_iter().enumerate() {
            let place = Place { path: path.clone(), at, end: at };
            let text = |overwrite| {
                let mut script = Script::new("", false, overwrite, Known::default(), false);
                script.transaction(&id, &place, "lost", Purpose::Run).unwrap();
                String::from_utf8(script.finish()).unwrap()
            };
            assert_eq!(executed(&text(false)).is_empty(), number > 0, "{}", text(false));
            assert!(!executed(&text(true)).is_empty(), "{}", text(true));
            assert_eq!(text(true).contains(OVERWRITES), number > 0, "{}", text(true));
        }
    }
}
