//! Statements in a log: what they do, and to which tables.
//!
//! Only the beginning of a statement is read, and only as far as that: names in subqueries and joins are not looked for. Where a
//! statement cannot be understood it has an effect and no table.

pub mod foreign_keys;
pub mod redefined;
pub mod whole;
mod words;

use crate::effects::Effects;
use crate::table::TableName;
use codec::secrets::masked;
use words::{Word, Words};

/// So much of a statement is kept, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 2048;

/// So much of a statement is looked at for what it does, in bytes.
const CLASSIFIED_BYTES_MAX: usize = 8192;

/// So many tables of one statement are named.
const TARGETS_MAX: usize = 256;

/// A statement that stands in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Where its event begins in the file; of one in a packed transaction, where that begins.
    pub at: u64,
    /// Its rows follow (ROWS_QUERY, ANNOTATE_ROWS): it stands in the log for people.
    pub is_for_people: bool,
    /// Default schema of its session; empty where none is stated.
    pub schema: String,
    /// Its beginning, as it stands in the log. It may hold secrets.
    text: Vec<u8>,
    /// There is more of it.
    pub is_cut: bool,
}

impl Statement {
    /// With the beginning of its text.
    pub fn new(at: u64, is_for_people: bool, schema: &[u8], text: &[u8]) -> Statement {
        Statement {
            at,
            is_for_people,
            schema: String::from_utf8_lossy(schema).into_owned(),
            text: text[..text.len().min(TEXT_BYTES_MAX)].to_vec(),
            is_cut: text.len() > TEXT_BYTES_MAX,
        }
    }

    /// Its beginning, without secrets. Bytes that are no UTF-8 are replaced.
    pub fn shown(&self) -> String {
        let mut text = masked(&self.text);
        if self.is_cut {
            text.push('…');
        }
        text
    }
}

/// What a statement does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Classified {
    /// What it does.
    pub effects: Effects,
    /// To which tables.
    pub targets: Vec<TableName>,
}

/// What a statement does to the transaction that it stands in, and to nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// It begins or ends the transaction, or drops a savepoint: what stands before it counts.
    Mark,
    /// It names a point: SAVEPOINT.
    Savepoint(Vec<u8>),
    /// What stands behind that point does not count: ROLLBACK TO.
    BackTo(Vec<u8>),
    /// Nothing of the transaction counts, but for what was written to tables without transactions: ROLLBACK.
    Back,
}

/// The first words of a statement, in upper case; an empty one stands for a name in quotes and for a mark.
pub fn first_words(text: &[u8], count: usize) -> Vec<String> {
    let shown = |word| match word {
        Word::Plain(word) => String::from_utf8_lossy(word).to_uppercase(),
        _ => String::new(),
    };
    Words::of_statement(text).take(count).map(shown).collect()
}

/// Tells what a statement does to its transaction, if it does no more than that. Servers take names of savepoints in any case; here they
/// are in lower case.
pub fn control(text: &[u8]) -> Option<Control> {
    let mut words = Words::of_statement(&text[..text.len().min(CLASSIFIED_BYTES_MAX)]);
    let Some(Word::Plain(verb)) = words.next() else { return None };
    let point =
        |words: &mut Words<'_>| words.next().and_then(Word::name).map(|name| name.to_ascii_lowercase());
    match verb.to_ascii_uppercase().as_slice() {
        b"BEGIN" | b"COMMIT" | b"RELEASE" => Some(Control::Mark),
        b"SAVEPOINT" => point(&mut words).map(Control::Savepoint),
        b"ROLLBACK" => {
            words.accept(&["WORK"]);
            if !words.accept(&["TO"]) {
                return Some(Control::Back);
            }
            words.accept(&["SAVEPOINT"]);
            point(&mut words).map(Control::BackTo)
        }
        _ => None,
    }
}

/// Tells what a statement does that was run with that default schema.
pub(crate) fn classify(text: &[u8], default_schema: &[u8]) -> Classified {
    let mut words = Words::of_statement(&text[..text.len().min(CLASSIFIED_BYTES_MAX)]);
    let verb = match words.next() {
        Some(Word::Plain(verb)) => verb,
        // No statement that is known begins so: it may be a definition of any table.
        Some(_) => return Classified { effects: Effects::DDL, targets: Vec::new() },
        None => return Classified::default(),
    };
    let mut reading = Reading { words, default_schema, found: Classified::default() };
    match verb.to_ascii_uppercase().as_slice() {
        b"INSERT" | b"REPLACE" => reading.rows(Effects::INSERT, &["INTO"]),
        b"UPDATE" => reading.rows(Effects::UPDATE, &[]),
        b"DELETE" => reading.rows(Effects::DELETE, &["FROM"]),
        b"LOAD" => reading.load(),
        b"TRUNCATE" => reading.truncate(),
        b"DROP" => reading.definition(Effects::DDL | Effects::DROP),
        b"CREATE" => reading.definition(Effects::DDL | Effects::CREATES),
        b"ALTER" => reading.definition(Effects::DDL | Effects::ALTERS),
        b"RENAME" => reading.definition(Effects::DDL | Effects::RENAMES),
        b"ANALYZE" | b"OPTIMIZE" | b"REPAIR" => reading.definition(Effects::DDL),
        b"GRANT" | b"REVOKE" | b"FLUSH" | b"INSTALL" | b"UNINSTALL" | b"SET" => {
            reading.found.effects = Effects::DDL;
        }
        b"XA" => reading.xa(),
        b"SAVEPOINT" | b"ROLLBACK" | b"RELEASE" | b"BEGIN" | b"COMMIT" => {}
        _ => reading.found.effects = Effects::STATEMENT,
    }
    reading.found
}

struct Reading<'a> {
    words: Words<'a>,
    default_schema: &'a [u8],
    found: Classified,
}

/// Words that stand before the name in what changes rows.
const MODIFIERS: [&str; 6] = ["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "ONLY"];

impl Reading<'_> {
    fn rows(&mut self, effect: Effects, introductions: &[&str]) {
        self.found.effects = effect | Effects::STATEMENT;
        while self.words.accept(&MODIFIERS) {}
        self.words.accept(introductions);
        self.name();
    }

    fn load(&mut self) {
        self.found.effects = Effects::INSERT | Effects::STATEMENT;
        if self.words.pass_over(&["TABLE"]) {
            self.name();
        }
    }

    fn truncate(&mut self) {
        self.found.effects = Effects::DDL | Effects::TRUNCATE;
        self.words.accept(&["TABLE"]);
        self.name();
    }

    fn xa(&mut self) {
        self.found.effects = match self.words.next() {
            Some(Word::Plain(word)) if word.eq_ignore_ascii_case(b"COMMIT") => Effects::XA_COMMIT,
            Some(Word::Plain(word)) if word.eq_ignore_ascii_case(b"ROLLBACK") => Effects::XA_ROLLBACK,
            _ => Effects::NONE,
        };
    }

    /// The first word that says of what it is a definition; then the names.
    fn definition(&mut self, effects: Effects) {
        self.found.effects = effects;
        while let Some(word) = self.words.next() {
            let Word::Plain(word) = word else { continue };
            match word.to_ascii_uppercase().as_slice() {
                // A table of one session, which no other one has seen: no definition of a table.
                b"TEMPORARY" => {
                    self.found.effects = Effects::DDL;
                    return;
                }
                b"TABLE" | b"TABLES" => {
                    self.found.effects |= Effects::OF_TABLE;
                    return self.names();
                }
                b"VIEW" => {
                    self.found.effects |= Effects::OF_VIEW;
                    return self.names();
                }
                b"DATABASE" | b"SCHEMA" => {
                    self.found.effects |= Effects::OF_SCHEMA;
                    return self.schema();
                }
                // DROP INDEX i ON t, CREATE INDEX i ON t; a trigger is a definition of its table.
                b"INDEX" | b"TRIGGER" => {
                    if self.words.pass_over(&["ON"]) {
                        self.name();
                    }
                    return;
                }
                b"PROCEDURE" | b"FUNCTION" | b"EVENT" | b"USER" | b"ROLE" | b"SERVER" | b"SEQUENCE" => return,
                _ => {}
            }
        }
    }

    fn skip_conditions(&mut self) {
        while self.words.accept(&["IF", "NOT", "EXISTS"]) {}
    }

    /// How long MariaDB waits for the lock stands behind a name: NOWAIT, WAIT n.
    fn skip_wait(&mut self) {
        self.words.accept(&["NOWAIT"]);
        if self.words.accept(&["WAIT"]) {
            self.words.next();
        }
    }

    /// `a`, `a, b` and `a TO b, c TO d`.
    fn names(&mut self) {
        self.skip_conditions();
        while self.name() && self.found.targets.len() < TARGETS_MAX {
            self.skip_wait();
            if !self.words.accept_mark(b',') && !self.words.accept(&["TO"]) {
                return;
            }
        }
    }

    fn schema(&mut self) {
        self.skip_conditions();
        if let Some(name) = self.words.next().and_then(Word::name) {
            self.found.targets.push(TableName::new(&name, b""));
        }
    }

    /// `table` or `schema.table`.
    fn one_name(&mut self) -> Option<TableName> {
        let first = self.words.next().and_then(Word::name)?;
        match self.words.accept_mark(b'.') {
            true => Some(TableName::new(&first, &self.words.next().and_then(Word::name)?)),
            false => Some(TableName::new(self.default_schema, &first)),
        }
    }

    /// Takes a name into what is found; false where there is none.
    fn name(&mut self) -> bool {
        let Some(name) = self.one_name() else { return false };
        if !self.found.targets.contains(&name) {
            self.found.targets.push(name);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn classified(text: &str) -> (String, String) {
        let found = classify(text.as_bytes(), b"d");
        let targets: Vec<String> = found.targets.iter().map(ToString::to_string).collect();
        (found.effects.to_string(), targets.join(" "))
    }

    #[test]
    fn statements_are_told_apart_with_their_tables() {
        for (text, effects, targets) in [
            ("DROP TABLE `t` /* generated by server */", "ddl, drop", "d.t"),
            ("DROP TABLE IF EXISTS `a`.`b`,`c` /* generated by server */", "ddl, drop", "a.b d.c"),
            ("DROP TABLE IF EXISTS `x``y`", "ddl, drop", "d.x`y"),
            ("DROP TEMPORARY TABLE IF EXISTS `x``y`", "ddl", ""),
            ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `x`", "ddl", ""),
            ("CREATE TEMPORARY TABLE x (a INT)", "ddl", ""),
            ("drop database if exists shop", "ddl, drop", "shop.*"),
            ("DROP INDEX i ON shop.orders", "ddl, drop", "shop.orders"),
            ("DROP USER foo", "ddl, drop", ""),
            ("DROP VIEW v", "ddl, drop", "d.v"),
            ("TRUNCATE TABLE a.b", "ddl, truncate", "a.b"),
            ("truncate t", "ddl, truncate", "d.t"),
            ("-- why\n# not\n/* so */ TRUNCATE t", "ddl, truncate", "d.t"),
            ("CREATE TABLE IF NOT EXISTS t (a INT)", "ddl", "d.t"),
            ("CREATE OR REPLACE TABLE t SELECT 1", "ddl", "d.t"),
            ("CREATE UNIQUE INDEX i USING BTREE ON t (a)", "ddl", "d.t"),
            (
                "CREATE DEFINER=`root`@`localhost` TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
                "ddl",
                "d.t",
            ),
            ("/*!50003 CREATE TABLE t (a INT) */", "ddl", "d.t"),
            ("ALTER TABLE t ADD COLUMN b INT", "ddl", "d.t"),
            ("ALTER DATABASE shop CHARACTER SET utf8mb4", "ddl", "shop.*"),
            ("RENAME TABLE a TO b, s.c TO d", "ddl", "d.a d.b s.c d.d"),
            ("RENAME TABLE a NOWAIT TO b, s.c WAIT 5 TO d", "ddl", "d.a d.b s.c d.d"),
            ("GRANT ALL ON *.* TO x", "ddl", ""),
            ("INSERT IGNORE INTO `s`.`t` VALUES (1)", "insert, statement", "s.t"),
            ("INSERT t VALUES (1)", "insert, statement", "d.t"),
            ("REPLACE INTO t VALUES (1)", "insert, statement", "d.t"),
            ("UPDATE LOW_PRIORITY t SET a = 1", "update, statement", "d.t"),
            ("DELETE QUICK FROM t WHERE a = 1", "delete, statement", "d.t"),
            ("LOAD DATA INFILE 'x' INTO TABLE t", "insert, statement", "d.t"),
            ("XA COMMIT X'31',X'',1", "xa commit", ""),
            ("XA ROLLBACK X'31',X'',1", "xa rollback", ""),
            ("XA END X'31',X'',1", "", ""),
            ("SAVEPOINT a", "", ""),
            ("CALL p()", "statement", ""),
            (
                "SET STATEMENT sql_mode = 'a FOR DROP '',', max_statement_time = (SELECT 1 FOR UPDATE) FOR /* x */ TRUNCATE t",
                "ddl, truncate",
                "d.t",
            ),
            ("SET STATEMENT sort_buffer_size = 9 FOR INSERT INTO t VALUES (1)", "insert, statement", "d.t"),
            ("SET STATEMENT a = 'never closed FOR DROP TABLE t", "ddl", ""),
            ("--\n-- why\n--\tnot\n--\nTRUNCATE t", "ddl, truncate", "d.t"),
            ("--\x01\nTRUNCATE t\n--", "ddl, truncate", "d.t"),
            ("--1\nTRUNCATE t", "ddl", ""),
            ("--", "", ""),
            ("", "", ""),
            ("DROP TABLE", "ddl, drop", ""),
            ("DROP TABLE `never closed", "ddl, drop", ""),
        ] {
            assert_eq!(classified(text), (effects.to_owned(), targets.to_owned()), "{text}");
        }
    }

    #[test]
    fn the_first_words_are_told_without_comments() {
        let words = first_words(b"/* a */ alter--\n# b\nEVENT `e` DO SELECT 1", 4);
        assert_eq!(words, ["ALTER", "EVENT", "", "DO"]);
    }

    #[test]
    fn definitions_are_told_apart_by_verb_and_object() {
        for (text, effects) in [
            ("ALTER TABLE t ADD b INT", Effects::ALTERS | Effects::OF_TABLE),
            ("ALTER ONLINE IGNORE TABLE t ADD b INT", Effects::ALTERS | Effects::OF_TABLE),
            ("CREATE TABLE t (a INT)", Effects::CREATES | Effects::OF_TABLE),
            ("CREATE DATABASE t", Effects::CREATES | Effects::OF_SCHEMA),
            ("DROP TABLE t", Effects::DROP | Effects::OF_TABLE),
            ("DROP INDEX i ON t", Effects::DROP),
            ("DROP VIEW t", Effects::DROP | Effects::OF_VIEW),
            ("RENAME TABLE t TO u", Effects::RENAMES | Effects::OF_TABLE),
            ("ANALYZE TABLE t", Effects::OF_TABLE),
        ] {
            assert_eq!(classify(text.as_bytes(), b"d").effects, effects | Effects::DDL, "{text}");
        }
    }

    #[test]
    fn a_statement_is_shown_without_secrets_and_cut() {
        let statement = Statement::new(4, false, b"d", b"CREATE USER a IDENTIFIED BY 'pw'");
        assert!(!statement.shown().contains("pw"), "{}", statement.shown());
        let long = Statement::new(4, true, b"", &vec![b'x'; TEXT_BYTES_MAX + 1]);
        assert!(long.is_cut && long.shown().ends_with("x…"));
    }

    #[test]
    fn what_a_statement_does_to_its_transaction_is_told() {
        let named = |name: &str| name.as_bytes().to_vec();
        for (text, expected) in [
            ("BEGIN", Some(Control::Mark)),
            ("/* django */ release savepoint x", Some(Control::Mark)),
            ("SAVEPOINT `a``B`", Some(Control::Savepoint(named("a`b")))),
            ("-- x\nsavepoint S1", Some(Control::Savepoint(named("s1")))),
            ("ROLLBACK TO `x`", Some(Control::BackTo(named("x")))),
            ("rollback work to savepoint X", Some(Control::BackTo(named("x")))),
            ("ROLLBACK", Some(Control::Back)),
            ("SAVEPOINT", None),
            ("INSERT INTO t VALUES ('SAVEPOINT')", None),
        ] {
            assert_eq!(control(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(DROP TABLE|RENAME TABLE|INSERT INTO|/\\*!5|LOAD DATA)? ?.{0,80}") {
            let _ = classify(text.as_bytes(), b"d");
        }
    }
}
