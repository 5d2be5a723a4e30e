//! What an ALTER TABLE does to the columns of rows that are there.

use super::cell::Fill;
use points::statement::whole::{Kind, Word, words};

/// One thing that it does. What it does not do to the values of rows is left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Clause {
    Add {
        name: String,
        fill: Fill,
        place: Place,
        if_not_there: bool,
    },
    Drop(String),
    /// Of another type, perhaps, where it keeps no values.
    Rename {
        from: String,
        to: String,
        keeps_values: bool,
    },
}

/// Where a new column stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Last,
    First,
    After(String),
}

/// Reads it.
///
/// # Errors
/// In words, when it may do something to rows that cannot be told.
pub(super) fn clauses(text: &str) -> Result<Vec<Clause>, String> {
    // Whether these end a text depends on the sql_mode of the session.
    if text.contains(['"', '\\']) {
        return Err("what it does cannot be read with certainty".to_owned());
    }
    let all = words(text, 0)?;
    let mut words = Reading(&all);
    let is_alter = words.skip("ALTER");
    words.skip("ONLINE");
    if !is_alter || !words.skip("TABLE") {
        return Err("it is no plain ALTER TABLE".to_owned());
    }
    words.skip_all(&["IF", "EXISTS"]);
    words.name().ok_or("it names no table")?;
    if words.skip_mark('.') {
        words.name().ok_or("it names no table")?;
    }
    if words.skip("WAIT") {
        words.next();
    }
    words.skip("NOWAIT");
    let mut found = Vec::new();
    for part in parts(words.0) {
        // A text may be a secret.
        let told = part.iter().filter(|word| word.kind != Kind::Text);
        let shown: Vec<&str> = told.take(6).map(|word| word.text.as_str()).collect();
        let clause = clause(Reading(part));
        found.extend(
            clause.ok_or_else(|| format!("what {:?} does to rows is not followed", shown.join(" ")))?,
        );
    }
    Ok(found)
}

/// Parted by the commas that stand in no parentheses.
fn parts(words: &[Word]) -> Vec<&[Word]> {
    let mut depth = 0;
    let is_end = |word: &Word| {
        depth += i32::from(word.is_mark('(')) - i32::from(word.is_mark(')'));
        depth == 0 && word.is_mark(',')
    };
    words.split(is_end).filter(|part| !part.is_empty()).collect()
}

/// Words that are left to be read.
#[derive(Clone, Copy)]
struct Reading<'w>(&'w [Word]);

impl<'w> Reading<'w> {
    fn next(&mut self) -> Option<&'w Word> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn skip(&mut self, keyword: &str) -> bool {
        let is_it = self.0.first().is_some_and(|word| word.is(keyword));
        if is_it {
            self.0 = &self.0[1..];
        }
        is_it
    }

    fn skip_all(&mut self, keywords: &[&str]) -> bool {
        let is_it =
            keywords.iter().enumerate().all(|(at, word)| self.0.get(at).is_some_and(|one| one.is(word)));
        if is_it {
            self.0 = &self.0[keywords.len()..];
        }
        is_it
    }

    fn skip_mark(&mut self, mark: char) -> bool {
        let is_it = self.0.first().is_some_and(|word| word.is_mark(mark));
        if is_it {
            self.0 = &self.0[1..];
        }
        is_it
    }

    fn is_one_of(&self, keywords: &str) -> bool {
        self.0.first().is_some_and(|word| keywords.split(' ').any(|one| word.is(one)))
    }

    fn name(&mut self) -> Option<String> {
        self.next().filter(|word| word.is_name()).map(|word| word.text.clone())
    }
}

/// What begins a clause that leaves the values of rows as they are.
const HARMLESS: &str = "ALTER ENABLE DISABLE ORDER FORCE ALGORITHM LOCK COALESCE REORGANIZE PARTITION REMOVE ANALYZE CHECK \
    OPTIMIZE REBUILD REPAIR ENGINE AUTO_INCREMENT AVG_ROW_LENGTH CHARACTER CHARSET CHECKSUM COLLATE \
    COMMENT COMPRESSION DEFAULT DELAY_KEY_WRITE ENCRYPTION KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS \
    ROW_FORMAT STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES PAGE_CHECKSUM PAGE_COMPRESSED \
    PAGE_COMPRESSION_LEVEL TRANSACTIONAL ENCRYPTED ENCRYPTION_KEY_ID TABLESPACE";

/// `None` where it is not understood.
fn clause(mut words: Reading<'_>) -> Option<Option<Clause>> {
    const OF_INDEX: &str = "INDEX KEY UNIQUE FULLTEXT SPATIAL CONSTRAINT FOREIGN PRIMARY CHECK";
    if words.is_one_of(HARMLESS) {
        return Some(None);
    }
    let (is_add, is_drop) = (words.skip("ADD"), words.skip("DROP"));
    let is_rename = !is_add && !is_drop && words.skip("RENAME");
    if (is_add || is_drop) && words.is_one_of(OF_INDEX) || is_add && words.is_one_of("PARTITION") {
        return Some(None);
    }
    if is_rename && !words.is_one_of("COLUMN") {
        // Of an index, or of the table itself, whose name is followed.
        return Some(None);
    }
    let (is_modify, is_change) = (words.skip("MODIFY"), words.skip("CHANGE"));
    if !(is_add || is_drop || is_rename || is_modify || is_change) {
        return None;
    }
    let is_column = words.skip("COLUMN");
    // ADD SYSTEM VERSIONING, DROP PERIOD FOR …
    if !is_column && words.is_one_of("SYSTEM PERIOD VECTOR") {
        return None;
    }
    let if_not_there = words.skip_all(&["IF", "NOT", "EXISTS"]);
    words.skip_all(&["IF", "EXISTS"]);
    let name = words.name()?;
    Some(Some(if is_add {
        let (fill, place) = definition(words)?;
        Clause::Add { name, fill, place, if_not_there }
    } else if is_drop {
        Clause::Drop(name)
    } else if is_rename {
        words.skip("TO");
        Clause::Rename { from: name, to: words.name()?, keeps_values: true }
    } else {
        let to = if is_change { words.name()? } else { name.clone() };
        Clause::Rename { from: name, to, keeps_values: false }
    }))
}

/// What the definition of a new column puts in rows, and where the column stands.
fn definition(mut words: Reading<'_>) -> Option<(Fill, Place)> {
    const NUMBERS: &str = "TINYINT SMALLINT MEDIUMINT INT INTEGER BIGINT BOOL BOOLEAN";
    const TEXTS: &str = "VARCHAR TINYTEXT TEXT MEDIUMTEXT LONGTEXT";
    let not_known =
        || Fill::NotKnown("the log does not tell what ADD COLUMN put in the rows that were there".into());
    let (is_number, is_text) = (words.is_one_of(NUMBERS), words.is_one_of(TEXTS));
    // The server may count it, or set it to the present time.
    let is_special = words.is_one_of("TIMESTAMP SERIAL");
    words.next()?;
    if words.skip_mark('(') {
        while !words.skip_mark(')') {
            words.next()?;
        }
    }
    let (mut default, mut is_null, mut place, mut is_understood) = (None, true, Place::Last, !is_special);
    while let Some(word) = words.next() {
        match word.text.to_ascii_uppercase().as_str() {
            _ if word.kind != Kind::Plain => is_understood = false,
            "NULL" | "UNSIGNED" | "SIGNED" | "VISIBLE" | "INVISIBLE" => {}
            "NOT" if words.skip("NULL") => is_null = false,
            "COMMENT" => drop(words.next()?),
            "FIRST" => place = Place::First,
            "AFTER" => place = Place::After(words.name()?),
            "DEFAULT" => {
                let is_negative = words.skip_mark('-');
                let value = words.next()?;
                let number =
                    value.text.parse::<i64>().ok().filter(|_| value.kind == Kind::Plain && is_number);
                default = match value.kind {
                    _ if value.is("NULL") => Some(Fill::Null),
                    Kind::Text if is_text => Some(Fill::Text(value.text.clone())),
                    _ => number.map(|number| Fill::Number(if is_negative { -number } else { number })),
                };
                is_understood &= default.is_some();
            }
            _ => is_understood = false,
        }
    }
    let implied = match is_null {
        true => Some(Fill::Null),
        false if is_number => Some(Fill::Number(0)),
        false if is_text => Some(Fill::Text(String::new())),
        false => None,
    };
    let fill = default.or(implied).filter(|_| is_understood).unwrap_or_else(not_known);
    Some((fill, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        clauses(text).map_or_else(|why| format!("refused: {why}"), |all| format!("{all:?}"))
    }

    #[test]
    fn what_an_alter_does_to_rows_is_read() {
        let add = |fill: &str, place: &str| {
            format!("[Add {{ name: \"c\", fill: {fill}, place: {place}, if_not_there: false }}]")
        };
        let not_known = "NotKnown(\"the log does not tell what ADD COLUMN put in the rows that were there\")";
        for (text, wanted) in [
            ("ALTER TABLE t ADD c INT", add("Null", "Last")),
            ("ALTER TABLE shop.t ADD COLUMN c INT UNSIGNED NOT NULL FIRST", add("Number(0)", "First")),
            ("ALTER TABLE `t` ADD c BIGINT DEFAULT -7 AFTER `b`", add("Number(-7)", "After(\"b\")")),
            ("ALTER TABLE t ADD c VARCHAR(9) NOT NULL DEFAULT 'a,b' COMMENT 'x'", add("Text(\"a,b\")", "Last")),
            ("ALTER TABLE t ADD c DECIMAL(9,2) DEFAULT NULL", add("Null", "Last")),
            ("ALTER TABLE t ADD c DECIMAL(9,2) DEFAULT 7", add(not_known, "Last")),
            ("ALTER TABLE t ADD c DATETIME DEFAULT CURRENT_TIMESTAMP", add(not_known, "Last")),
            ("ALTER TABLE t ADD c INT AS (a + 1)", add(not_known, "Last")),
            ("ALTER TABLE t ADD c INT AUTO_INCREMENT UNIQUE", add(not_known, "Last")),
            ("ALTER TABLE t ADD c TIMESTAMP", add(not_known, "Last")),
            ("ALTER TABLE t ADD INDEX (c), ENGINE=InnoDB, DROP FOREIGN KEY f", "[]".to_owned()),
            ("ALTER TABLE t DROP c, DROP COLUMN d", "[Drop(\"c\"), Drop(\"d\")]".to_owned()),
            (
                "ALTER TABLE t RENAME COLUMN a TO b, CHANGE c d BIGINT",
                "[Rename { from: \"a\", to: \"b\", keeps_values: true }, Rename { from: \"c\", to: \"d\", keeps_values: false }]"
                    .to_owned(),
            ),
            ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", "refused: what \"CONVERT TO CHARACTER SET utf8mb4\" does to rows is not followed".to_owned()),
            ("ALTER TABLE t ADD SYSTEM VERSIONING", "refused: what \"ADD SYSTEM VERSIONING\" does to rows is not followed".to_owned()),
            ("ALTER TABLE t ADD c INT COMMENT 'a\\'", "refused: what it does cannot be read with certainty".to_owned()),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }
}
