//! What a definition (DDL) in the log does to the tables that are followed, and how it is done to their scratch tables.
//!
//! A statement runs in the scratch schema, and a schema that it names is replaced by its scratch schema. So none can reach a table of the target
//! that others use: a name of any other schema is refused.

use super::followed::{Followed, quoted};

use points::statement::first_words;
use points::statement::foreign_keys::{Cascade, cascades};
use points::statement::redefined::{Redefined, redefined};
use points::statement::whole::{Word, name_at, words};
use points::table::TableName;

/// A statement of the log.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    /// Default schema of its session; empty where none is stated.
    pub(super) schema: String,
    pub(super) text: String,
    /// `sql_mode` of its session.
    pub(super) sql_mode: u64,
}

/// What is done for a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// It is run in the scratch schema of that name; of none where it is about a schema.
    Run { scratch: String, text: String },
    /// Another one in its place.
    Instead(String),
    /// A trigger of that name is left out.
    Trigger(String),
}

/// Tables that become others: `(from, to)`, and `(pattern, copy)` of CREATE TABLE … LIKE. Who follows the second must follow the first.
pub(super) fn links(statement: &Statement) -> Vec<(TableName, TableName)> {
    let moved = redefined(statement.text.as_bytes(), statement.schema.as_bytes()).map(|found| found.moved);
    let mut all = moved.unwrap_or_default();
    all.extend(statement.like());
    all
}

/// Whether a definition is about a followed table, or may be.
///
/// # Errors
/// In words, when it names one in other letters.
pub(super) fn concerns(statement: &Statement, followed: &Followed) -> Result<bool, String> {
    let text = &statement.text;
    let Some(found) = redefined(text.as_bytes(), statement.schema.as_bytes()) else { return Ok(false) };
    if is_of_default_schema(text) {
        return Ok(followed.scratch(&statement.schema).is_some());
    }
    if let Some(name) = found.tables.iter().find(|name| followed.is_doubtful(name)) {
        return Err(format!(
            "it names {name}, which is a followed table only where lower_case_table_names is not 0"
        ));
    }
    let is_hidden = found.may_be_any || text.to_lowercase().contains("exchange");
    Ok(found.tables.iter().any(|name| followed.concerns(name)) || is_hidden && followed.is_named_in(text))
}

/// ALTER DATABASE without a name.
fn is_of_default_schema(text: &str) -> bool {
    const BEHIND_NAME: [&str; 7] =
        ["CHARACTER", "CHARSET", "DEFAULT", "COLLATE", "ENCRYPTION", "READ", "COMMENT"];
    let words = first_words(text.as_bytes(), 3);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(words[..], ["ALTER", "DATABASE" | "SCHEMA", next] if BEHIND_NAME.contains(&next))
}

impl Statement {
    fn words(&self) -> Result<Vec<Word>, String> {
        words(&self.text, self.sql_mode)
    }

    /// A name as its session understands it.
    fn name(&self, schema: Option<&str>, table: &str) -> TableName {
        TableName { schema: schema.unwrap_or(&self.schema).to_owned(), table: table.to_owned() }
    }

    /// CREATE TABLE copy LIKE pattern: the pattern, and the copy.
    fn like(&self) -> Option<(TableName, TableName)> {
        if first_words(self.text.as_bytes(), 1).first()? != "CREATE" {
            return None;
        }
        let words = self.words().ok()?;
        let mut at = words.iter().position(|word| word.is("TABLE"))? + 1;
        while ["IF", "NOT", "EXISTS"].iter().any(|word| words.get(at).is_some_and(|one| one.is(word))) {
            at += 1;
        }
        let (schema, table, behind) = name_at(&words, at)?;
        let copy = self.name(schema, table);
        let like = behind + usize::from(words.get(behind)?.is_mark('('));
        words.get(like).filter(|word| word.is("LIKE"))?;
        let (schema, table, _) = name_at(&words, like + 1)?;
        Some((self.name(schema, table), copy))
    }

    /// Whether it is a definition of that table, or may be.
    pub(super) fn may_be_about(&self, table: &TableName) -> bool {
        let found = redefined(self.text.as_bytes(), self.schema.as_bytes());
        found.is_some_and(|found| found.may_be_any || found.tables.contains(table))
    }

    /// The foreign keys that it defines, as far as they change rows.
    pub(super) fn cascades(&self) -> Result<Vec<Cascade>, String> {
        Ok(cascades(&self.words()?, &self.schema))
    }

    /// What is done for it; nothing where it is about no followed table.
    ///
    /// # Errors
    /// In words, when it cannot be followed.
    pub(super) fn acts(&self, followed: &Followed) -> Result<Vec<Act>, String> {
        let Some(found) = redefined(self.text.as_bytes(), self.schema.as_bytes()) else {
            return Ok(Vec::new());
        };
        if !concerns(self, followed)? {
            return Ok(Vec::new());
        }
        let first = first_words(self.text.as_bytes(), 8);
        const OBJECTS: [&str; 7] = ["TABLE", "TABLES", "INDEX", "TRIGGER", "VIEW", "DATABASE", "SCHEMA"];
        let object = first.iter().skip(1).find(|word| OBJECTS.contains(&word.as_str()));
        let object = object.map_or("", String::as_str);
        match (first.first().map_or("", String::as_str), object) {
            ("CREATE", "TRIGGER") => Ok(vec![Act::Trigger(self.trigger()?)]),
            ("CREATE" | "ALTER" | "DROP", "VIEW") | ("DROP", "TRIGGER") => Ok(Vec::new()),
            ("ANALYZE" | "OPTIMIZE" | "REPAIR" | "CHECK" | "FLUSH" | "GRANT" | "REVOKE" | "LOCK", _) => {
                Ok(Vec::new())
            }
            ("CREATE" | "ALTER", "DATABASE" | "SCHEMA") => self.of_schema(followed),
            _ if found.may_be_any => Err("its names cannot be read with certainty".to_owned()),
            ("DROP", "DATABASE" | "SCHEMA") => {
                let scratch = found.tables.iter().filter_map(|name| followed.scratch(&name.schema));
                Ok(scratch
                    .map(|name| Act::Instead(format!("DROP DATABASE IF EXISTS {}", quoted(name))))
                    .collect())
            }
            ("DROP", "TABLE" | "TABLES") => Ok(dropped(followed, found.tables.iter())),
            ("RENAME", _) => self.renamed(followed, &found),
            ("TRUNCATE", _) | ("CREATE" | "DROP", "INDEX") => Ok(vec![self.run(followed, &found)?]),
            ("CREATE", "TABLE") => self.create(followed, &found),
            ("ALTER", "TABLE") => self.alter(followed, &found),
            _ => Err("it is of a kind that is not followed".to_owned()),
        }
    }

    fn trigger(&self) -> Result<String, String> {
        let words = self.words()?;
        let at = words.iter().position(|word| word.is("TRIGGER")).map_or(0, |at| at + 1);
        let at = at + if words.get(at).is_some_and(|word| word.is("IF")) { 3 } else { 0 };
        Ok(name_at(&words, at).map_or_else(String::new, |(_, name, _)| name.to_owned()))
    }

    fn create(&self, followed: &Followed, found: &Redefined) -> Result<Vec<Act>, String> {
        if let Some((pattern, _)) = self.like()
            && !followed.has(&pattern)
        {
            return Err(format!("it makes the table like {pattern}, which is not followed"));
        }
        if self.words()?.iter().any(|word| word.is("SELECT")) {
            return Err("it fills the table by a SELECT, and its rows are not in the log".to_owned());
        }
        Ok(vec![self.run(followed, found)?])
    }

    fn alter(&self, followed: &Followed, found: &Redefined) -> Result<Vec<Act>, String> {
        let words = self.words()?;
        let has = |word: &str| words.iter().any(|one| one.is(word));
        let pair = |first: &str, second: &[&str]| {
            words.windows(2).any(|two| two[0].is(first) && second.iter().any(|word| two[1].is(word)))
        };
        if pair("EXCHANGE", &["PARTITION"])
            || pair("CONVERT", &["PARTITION", "TABLE"])
            || has("TABLESPACE") && (has("IMPORT") || has("DISCARD"))
        {
            return Err(
                "it takes rows from another table or gives some away, without a word in the log".to_owned()
            );
        }
        if let Some((from, to)) =
            found.moved.iter().find(|(from, to)| followed.has(to) && !followed.has(from))
        {
            return Err(format!("it makes {to} of {from}, which is not followed"));
        }
        let run = self.run(followed, found)?;
        let Act::Run { scratch, .. } = &run else { return Ok(vec![run]) };
        // One that nobody follows any more.
        let gone = found.moved.iter().filter(|(_, to)| !followed.has(to));
        let gone = gone.map(|(_, to)| format!("DROP TABLE {}.{}", quoted(scratch), quoted(&to.table)));
        let gone: Vec<Act> = gone.map(Act::Instead).collect();
        Ok([vec![run], gone].concat())
    }

    fn renamed(&self, followed: &Followed, found: &Redefined) -> Result<Vec<Act>, String> {
        if found.moved.is_empty() {
            return Err("its names cannot be read with certainty".to_owned());
        }
        let mut acts = Vec::new();
        for (from, to) in &found.moved {
            match (followed.on_target(from), followed.has(from), followed.on_target(to), followed.has(to)) {
                (Some(from), true, Some(to), true) => {
                    acts.push(Act::Instead(format!("RENAME TABLE {from} TO {to}")))
                }
                (Some(from), true, ..) => acts.push(Act::Instead(format!("DROP TABLE {from}"))),
                (_, false, _, true) => return Err(format!("it makes {to} of {from}, which is not followed")),
                _ => {}
            }
        }
        Ok(acts)
    }

    /// CREATE and ALTER DATABASE, with the scratch schema in the place of the name.
    fn of_schema(&self, followed: &Followed) -> Result<Vec<Act>, String> {
        let words = self.words()?;
        if words.iter().any(|word| word.is("READ")) {
            // READ ONLY changes no rows, and the tables must leave their scratch schema.
            return Ok(Vec::new());
        }
        let name = words
            .iter()
            .find_map(|word| Some((word, followed.scratch(&word.text).filter(|_| word.is_name())?)));
        let text = match name {
            Some((word, scratch)) => {
                format!("{}{}{}", &self.text[..word.at.start], quoted(scratch), &self.text[word.at.end..])
            }
            // ALTER DATABASE without a name is about the default one.
            None => self.text.clone(),
        };
        let scratch =
            followed.scratch(&self.schema).filter(|_| name.is_none()).unwrap_or_default().to_owned();
        Ok(vec![Act::Run { scratch, text }])
    }

    fn run(&self, followed: &Followed, found: &Redefined) -> Result<Act, String> {
        let own = found.tables.iter().find(|name| followed.has(name)).map(|name| name.schema.as_str());
        let home = followed.scratch(&self.schema).or_else(|| followed.scratch(own?));
        let home = home.ok_or("its table is not followed")?;
        let text = self.rewritten(followed, home)?;
        Ok(Act::Run { scratch: home.to_owned(), text })
    }

    /// Its text, with scratch schemas in the place of those that it names.
    ///
    /// # Errors
    /// When it names another one.
    pub(super) fn rewritten(&self, followed: &Followed, home: &str) -> Result<String, String> {
        let words = self.words()?;
        let (mut text, mut copied) = (String::new(), 0);
        for at in 0..words.len() {
            let is_behind = |mark| at > 0 && words[at - 1].is_mark(mark);
            if is_behind('.') || is_behind('@') {
                continue;
            }
            let Some((Some(schema), table, _)) = name_at(&words, at) else { continue };
            let scratch = match followed.scratch(schema) {
                Some(scratch) => scratch,
                // The parent need not be there: foreign keys are not looked at while it is made again, and left out in the end.
                None if at > 0 && words[at - 1].is("REFERENCES") => home,
                // A column, by its table's name.
                None if followed.names().iter().any(|name| name.table == schema) => continue,
                None => return Err(format!("it names {schema}.{table}, of a schema that is not followed")),
            };
            text.push_str(&self.text[copied..words[at].at.start]);
            text.push_str(&quoted(scratch));
            copied = words[at].at.end;
        }
        // So MySQL logs CREATE TABLE … SELECT, whose rows follow in the same transaction.
        let end = match &words[..] {
            [.., start, transaction] if start.is("START") && transaction.is("TRANSACTION") => start.at.start,
            _ => self.text.len(),
        };
        text.push_str(self.text.get(copied..end).unwrap_or_default());
        Ok(text)
    }
}

fn dropped<'a>(followed: &Followed, names: impl Iterator<Item = &'a TableName>) -> Vec<Act> {
    let named = names.filter(|name| followed.has(name)).filter_map(|name| followed.on_target(name));
    named.map(|name| Act::Instead(format!("DROP TABLE IF EXISTS {name}"))).collect()
}

#[cfg(test)]
mod tests;
