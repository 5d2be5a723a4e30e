//! What a definition may do to the columns of tables. In doubt it may do something.

use super::words::{Word, Words};
use super::{CLASSIFIED_BYTES_MAX, Classified, Reading, TARGETS_MAX, classify};
use crate::effects::Effects;
use crate::table::TableName;

/// A definition of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redefined {
    /// The tables that it is about; a schema stands for all its tables.
    pub tables: Vec<TableName>,
    /// It may be about any other table too: its names cannot be read with certainty.
    pub may_be_any: bool,
    /// Columns may be others behind it: their names, types or order, or the table that has the name.
    pub is_of_columns: bool,
    /// Columns may have other names behind it.
    pub renames_columns: bool,
    /// Tables that have other names behind it: before and behind, in that order.
    pub moved: Vec<(TableName, TableName)>,
    /// The tables are gone behind it, and another one may have the name.
    pub is_drop: bool,
}

impl Redefined {
    /// Of a statement that cannot be understood.
    fn of_any() -> Redefined {
        Redefined {
            tables: Vec::new(),
            may_be_any: true,
            is_of_columns: true,
            renames_columns: true,
            moved: Vec::new(),
            is_drop: false,
        }
    }
}

/// What a statement with that default schema does to definitions of tables; `None` where nothing.
pub fn redefined(text: &[u8], default_schema: &[u8]) -> Option<Redefined> {
    let Classified { effects, targets } = classify(text, default_schema);
    let mut words = Words::of_statement(text);
    let Some(verb) = upper(words.next()?) else { return Some(Redefined::of_any()) };
    let is_table = |word: &Word<'_>| is_one_of(word, "TABLE TABLES VIEW");
    let (mut has_rest, mut is_drop, mut moved) = (false, false, Vec::new());
    let (is_of_columns, mut found) = match verb.as_slice() {
        _ if !effects.contains(Effects::DDL) => return None,
        b"RENAME" => {
            let is_of_tables = words.next().is_some_and(|word| is_table(&word));
            has_rest = is_of_tables && has_more_than_names(words.clone(), default_schema);
            if is_of_tables {
                moved = renamed(words, default_schema);
            }
            (is_of_tables, Vec::new())
        }
        b"ALTER" => altered(words, default_schema, &mut moved),
        b"CREATE" | b"DROP" => {
            let is_of_drop = verb == b"DROP";
            let mut is_new = false;
            let object = words.by_ref().find(|word| {
                is_new |= is_one_of(word, "REPLACE");
                is_table(word) || is_one_of(word, OBJECTS)
            })?;
            if is_one_of(&object, "TEMPORARY") {
                return None;
            }
            // Where the table is there this does nothing, and where it is gone another statement said so.
            let does_nothing = !is_of_drop && !is_new && words.accept(&["IF"]);
            let is_schema = is_one_of(&object, "DATABASE SCHEMA");
            has_rest = is_of_drop && is_table(&object) && has_more_than_names(words, default_schema);
            is_drop = (is_of_drop || is_new) && (is_table(&object) || is_schema);
            ((is_table(&object) || is_schema && is_of_drop) && !does_nothing, Vec::new())
        }
        // What it is for was not found.
        b"SET" if words.accept(&["STATEMENT"]) => return Some(Redefined::of_any()),
        _ => (false, Vec::new()),
    };
    for target in targets {
        if !found.contains(&target) {
            found.push(target);
        }
    }
    let has_open_quotes = verb == b"ALTER"
        && effects.contains(Effects::OF_TABLE)
        && text.contains(&b'"')
        && text.contains(&b'\\');
    let is_of_columns = is_of_columns || has_open_quotes;
    let is_long = text.len() > CLASSIFIED_BYTES_MAX && matches!(verb.as_slice(), b"DROP" | b"RENAME");
    let is_doubtful = std::str::from_utf8(text).is_err()
        || is_long
        || has_rest
        // A character that was replaced; a quote behind a backslash, which may end a string or not.
        || has(text, "\u{fffd}".as_bytes())
        || has_open_quotes
        || found.is_empty()
        || found.len() >= TARGETS_MAX
        // What stands in quotes may hide a name that comes behind it.
        || verb == b"ALTER" && text.contains(&b'\'') && (has(text, b"rename") || has(text, b"convert"));
    let may_be_any = is_of_columns && is_doubtful;
    let renames_columns = is_of_columns
        && (verb == b"ALTER" && (has(text, b"change") || has(text, b"rename") && has(text, b"column"))
            || may_be_any && has(text, b"rename"));
    Some(Redefined {
        tables: found,
        may_be_any,
        is_of_columns,
        renames_columns,
        moved,
        is_drop: is_drop && !may_be_any,
    })
}

/// The word that says of what a CREATE or DROP is, beside tables.
const OBJECTS: &str =
    "TEMPORARY DATABASE SCHEMA INDEX TRIGGER PROCEDURE FUNCTION EVENT USER ROLE SERVER SEQUENCE TABLESPACE";

/// Whether something stands behind the names of tables that DROP and RENAME do not have there: a name may be hidden in it.
fn has_more_than_names(words: Words<'_>, default_schema: &[u8]) -> bool {
    let mut reading = Reading { words, default_schema, found: Classified::default() };
    reading.names();
    while reading.words.accept(&["RESTRICT", "CASCADE"]) || reading.words.accept_mark(b';') {}
    reading.words.next().is_some()
}

/// Behind RENAME TABLE: `a TO b, c TO d`.
fn renamed(words: Words<'_>, default_schema: &[u8]) -> Vec<(TableName, TableName)> {
    let mut reading = Reading { words, default_schema, found: Classified::default() };
    reading.skip_conditions();
    let mut moved = Vec::new();
    loop {
        let from = reading.one_name();
        reading.skip_wait();
        let is_whole = reading.words.accept(&["TO"]);
        let (Some(from), true, Some(to)) = (from, is_whole, reading.one_name()) else { return moved };
        moved.push((from, to));
        if !reading.words.accept_mark(b',') {
            return moved;
        }
    }
}

/// Behind ALTER: whether columns may be others, and names that a table gets or loses by it.
fn altered(
    words: Words<'_>,
    default_schema: &[u8],
    moved: &mut Vec<(TableName, TableName)>,
) -> (bool, Vec<TableName>) {
    let mut reading = Reading { words, default_schema, found: Classified::default() };
    while reading.words.accept(&["ONLINE", "IGNORE"]) {}
    if !reading.words.accept(&["TABLE"]) {
        return (reading.words.accept(&["VIEW"]), Vec::new());
    }
    reading.skip_conditions();
    let subject = reading.one_name();
    reading.skip_wait();
    let is_harmless = is_harmless(reading.words.clone());
    let mut found: Vec<TableName> = subject.iter().cloned().collect();
    while let Some(word) = reading.words.next() {
        if is_one_of(&word, "RENAME") && !reading.words.accept(&["COLUMN", "INDEX", "KEY"]) {
            // RENAME [TO | AS | =] t
            while reading.words.accept(&["TO", "AS"]) || reading.words.accept_mark(b'=') {}
            let to = reading.one_name();
            moved.extend(subject.clone().zip(to.clone()));
            found.extend(to);
        } else if is_one_of(&word, "CONVERT") && reading.words.accept(&["TABLE"]) {
            // CONVERT TABLE t TO PARTITION p
            let from = reading.one_name();
            moved.extend(from.clone().zip(subject.clone()));
            found.extend(from);
        } else if is_one_of(&word, "CONVERT") && reading.words.accept(&["PARTITION"]) {
            // CONVERT PARTITION p TO TABLE t
            reading.words.pass_over(&["TABLE"]);
            found.extend(reading.one_name());
        }
    }
    (!is_harmless, found)
}

/// Whether nothing that an ALTER TABLE does is about columns. All of these words are reserved, or stand where no column's name can.
///
/// What changes the names, the types or the order of columns, or what may hold them, begins otherwise in both servers' grammars
/// (`alter_list_item`, `sql_yacc.yy`): ADD \[COLUMN\], ADD PERIOD, ADD SYSTEM VERSIONING, CHANGE, CONVERT, DROP \[COLUMN\], IMPORT and DISCARD
/// TABLESPACE, MODIFY, RENAME \[TO\], RENAME COLUMN, WITH. ALTER sets a default, and what is seen of a column or of an index.
fn is_harmless(mut words: Words<'_>) -> bool {
    const ADDED: &str = "INDEX KEY UNIQUE FULLTEXT SPATIAL CONSTRAINT FOREIGN PRIMARY PARTITION CHECK";
    const DROPPED: &str = "INDEX KEY FOREIGN CONSTRAINT CHECK PARTITION PRIMARY";
    const BY_ITSELF: &str = "ALTER ENABLE DISABLE ORDER FORCE ALGORITHM LOCK \
        COALESCE REORGANIZE EXCHANGE TRUNCATE PARTITION REMOVE ANALYZE CHECK OPTIMIZE REBUILD REPAIR \
        ENGINE AUTO_INCREMENT AVG_ROW_LENGTH CHARACTER CHARSET CHECKSUM COLLATE COMMENT COMPRESSION DEFAULT DELAY_KEY_WRITE ENCRYPTION \
        KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS ROW_FORMAT STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES \
        TABLESPACE PAGE_CHECKSUM PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL TRANSACTIONAL ENCRYPTED ENCRYPTION_KEY_ID";
    let (mut depth, mut clause): (i32, Vec<Word<'_>>) = (0, Vec::new());
    let mut clauses = Vec::new();
    while let Some(word) = words.next() {
        match word {
            Word::Mark(b'\'') if !words.skip_string() => return false,
            Word::Mark(b'(') => {
                if depth == 0 && clause.len() < 2 {
                    clause.push(word);
                }
                depth += 1;
            }
            Word::Mark(b')') => depth -= 1,
            Word::Mark(b',') if depth == 0 => clauses.push(std::mem::take(&mut clause)),
            word if depth == 0 && clause.len() < 2 => clause.push(word),
            _ => {}
        }
    }
    clauses.push(clause);
    clauses.iter().all(|clause| {
        let second = |words: &str| clause.get(1).is_some_and(|word| is_one_of(word, words));
        clause.first().is_some_and(|first| {
            is_one_of(first, BY_ITSELF)
                || is_one_of(first, "ADD") && second(ADDED)
                || is_one_of(first, "DROP") && second(DROPPED)
                || is_one_of(first, "RENAME") && second("INDEX KEY")
        })
    })
}

/// Whether a word is one of these, which stand in a text with blanks between.
fn is_one_of(word: &Word<'_>, words: &str) -> bool {
    matches!(word, Word::Plain(word) if words.split(' ').any(|one| word.eq_ignore_ascii_case(one.as_bytes())))
}

fn upper(word: Word<'_>) -> Option<Vec<u8>> {
    match word {
        Word::Plain(word) => Some(word.to_ascii_uppercase()),
        _ => None,
    }
}

/// Whether that word, in lower case, stands somewhere in a text.
fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `columns` or `harmless`, what else is to be known, and the tables.
    fn read(text: &str) -> String {
        let Some(found) = redefined(text.as_bytes(), b"d") else { return "none".to_owned() };
        let mut words = vec![if found.is_of_columns { "columns" } else { "harmless" }.to_owned()];
        words.extend(found.may_be_any.then(|| "any".to_owned()));
        words.extend(found.renames_columns.then(|| "renames".to_owned()));
        words.extend(found.tables.iter().map(ToString::to_string));
        words.extend(found.moved.iter().map(|(from, to)| format!("{from}→{to}")));
        words.extend(found.is_drop.then(|| "gone".to_owned()));
        words.join(" ")
    }

    #[test]
    fn what_may_change_columns_is_told_from_what_does_not() {
        for (text, wanted) in [
            ("ALTER TABLE t ADD c INT", "columns d.t"),
            ("ALTER TABLE s.t MODIFY a INT AFTER b", "columns s.t"),
            ("ALTER TABLE t ADD `key` INT", "columns d.t"),
            ("ALTER TABLE t ADD (a INT, KEY (a))", "columns d.t"),
            ("ALTER TABLE t ADD (INDEX (a), b INT)", "columns d.t"),
            ("ALTER TABLE t ADD INDEX i (a, b), ADD c INT", "columns d.t"),
            ("ALTER TABLE t CHANGE a b INT", "columns renames d.t"),
            ("ALTER TABLE t RENAME COLUMN a TO b", "columns renames d.t"),
            ("ALTER TABLE t DROP a", "columns d.t"),
            ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", "columns d.t"),
            ("ALTER TABLE t ADD SYSTEM VERSIONING", "columns d.t"),
            ("ALTER TABLE t IMPORT TABLESPACE", "columns d.t"),
            (
                "ALTER TABLE t COMMENT='a, b', AUTO_INCREMENT = 5, ADD KEY k (a) COMMENT 'it''s, (', LOCK=NONE",
                "harmless d.t",
            ),
            ("ALTER TABLE t COMMENT='a, b', ADD c INT", "columns d.t"),
            ("ALTER TABLE t COMMENT='a\\', ADD c INT, COMMENT='b'", "columns d.t"),
            (
                "ALTER TABLE t ALTER a SET DEFAULT 'x', ALTER INDEX i INVISIBLE, DISABLE KEYS, ORDER BY a",
                "harmless d.t",
            ),
            (
                "ALTER TABLE t DEFAULT CHARACTER SET latin1, STATS_PERSISTENT=1, CHECK PARTITION p",
                "harmless d.t",
            ),
            ("ALTER TABLE t DISCARD TABLESPACE", "columns d.t"),
            ("ALTER TABLE t DROP PERIOD FOR SYSTEM_TIME", "columns d.t"),
            ("ALTER TABLE t WITH SYSTEM VERSIONING", "columns d.t"),
            ("ALTER TABLE t UNKNOWN_OPTION = 1", "columns d.t"),
            ("ALTER TABLE x RENAME TO s.t", "columns d.x s.t d.x→s.t"),
            ("ALTER ONLINE TABLE IF EXISTS x WAIT 5 RENAME t", "columns d.x d.t d.x→d.t"),
            ("ALTER TABLE x RENAME = t, ADD a INT", "columns d.x d.t d.x→d.t"),
            ("ALTER TABLE x COMMENT='`', RENAME TO t", "columns any renames d.x"),
            ("ALTER TABLE x CONVERT PARTITION p TO TABLE s.t", "columns d.x s.t"),
            ("ALTER TABLE x CONVERT TABLE t TO PARTITION p VALUES LESS THAN (5)", "columns d.x d.t d.t→d.x"),
            ("RENAME TABLE t TO u, x TO t", "columns d.t d.u d.x d.t→d.u d.x→d.t"),
            ("CREATE TABLE t LIKE x", "columns d.t"),
            ("CREATE TABLE t SELECT 1", "columns d.t"),
            ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT)", "columns d.t gone"),
            ("RENAME TABLES a NOWAIT TO b, s.c WAIT 5 TO d", "columns d.a d.b s.c d.d d.a→d.b s.c→d.d"),
            ("RENAME TABLE a SOON TO b", "columns any renames d.a"),
            ("DROP TABLE IF EXISTS t", "columns d.t gone"),
            ("DROP TABLES IF EXISTS t, s.u WAIT 5 CASCADE /* generated by server */", "columns d.t s.u gone"),
            ("DROP TABLE t SOON, u", "columns any d.t"),
            ("DROP DATABASE s", "columns s.* gone"),
            ("CREATE OR REPLACE VIEW t AS SELECT 1", "columns d.t gone"),
            ("DROP TABLE `never closed", "columns any"),
            ("DROP TABLE `a\u{fffd}`", "columns any d.a\u{fffd}"),
            ("ALTER TABLE t COMMENT \"\\\", RENAME TO u, COMMENT \"", "columns any renames d.t d.u d.t→d.u"),
            ("ALTER TABLE t AUTO_INCREMENT=1 COMMENT \"\\\", DROP a, COMMENT \"", "columns any d.t"),
            ("ALTER TABLE t ENGINE=InnoDB", "harmless d.t"),
            ("ALTER TABLE t ADD UNIQUE KEY u (a, b), DROP INDEX v, ALGORITHM=INPLACE", "harmless d.t"),
            ("ALTER TABLE t ADD PRIMARY KEY (a)", "harmless d.t"),
            ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (5))", "harmless d.t"),
            ("ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 3", "harmless d.t"),
            ("ALTER TABLE t RENAME INDEX a TO b", "harmless d.t"),
            ("ALTER TABLE x EXCHANGE PARTITION p WITH TABLE t", "harmless d.x"),
            ("CREATE INDEX i ON t (a)", "harmless d.t"),
            ("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "harmless d.t"),
            ("CREATE TABLE IF NOT EXISTS t (a INT)", "harmless d.t"),
            ("CREATE DATABASE s", "harmless s.*"),
            ("ALTER DATABASE s CHARACTER SET utf8mb4", "harmless s.*"),
            ("TRUNCATE TABLE t", "harmless d.t"),
            ("OPTIMIZE TABLE t", "harmless d.t"),
            ("GRANT ALL ON *.* TO x", "harmless"),
            ("--\n-- add iban\n--\nALTER TABLE t ADD iban INT", "columns d.t"),
            ("--1\nALTER TABLE t ADD iban INT", "columns any renames"),
            ("SET STATEMENT a = 1, b = 'x FOR y' FOR ALTER TABLE t ADD c INT", "columns d.t"),
            ("SET STATEMENT a = 1 FOR RENAME TABLE t TO u", "columns d.t d.u d.t→d.u"),
            ("SET STATEMENT a = 1 FOR INSERT INTO t VALUES (1)", "none"),
            ("SET STATEMENT a = 'FOR ALTER TABLE t ADD c INT", "columns any renames"),
            ("--", "none"),
            ("DROP TEMPORARY TABLE t", "none"),
            ("CREATE TEMPORARY TABLE t (a INT)", "none"),
            ("INSERT INTO t VALUES (1)", "none"),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        assert!(redefined(b"ALTER TABLE \xd6\xd0 ADD a INT", b"d").unwrap().may_be_any);
    }
}
