//! What a dump of mysqldump or mariadb-dump has of some tables, as statements, and of all else nothing.
//!
//! A dump is read line by line: both tools write a line break inside a value as `\n`, so that one in the stream ends a line of the dump, and a
//! statement ends with the line that ends with a semicolon. What stands between two DELIMITER lines is a trigger, a routine or an event, and is
//! passed over. Of what is passed over nothing is kept but the beginnings of lines; of what is kept one statement.

use super::followed::{Followed, quoted};
use memchr::memchr;
use points::table::TableName;
use std::io::{self, BufRead, Read};

/// So much of each line is looked at: the longest name in backticks, doubled, of four bytes a character, and the words before.
const HEAD_BYTES: usize = 1024;

/// What a dump has of followed tables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// What the values are written in: character set, time zone, `sql_mode`.
    Setting(String),
    /// A schema of a followed table, with its default character set.
    Schema(String, String),
    /// A followed table.
    Definition(TableName, String),
    /// Rows of one, an INSERT.
    Rows(TableName, Vec<u8>),
    /// A trigger of one, which is left out.
    Trigger(TableName, String),
}

/// See [the module](self).
pub(super) struct Cutter<'a, R> {
    from: R,
    followed: &'a Followed,
    /// Longest statement that is kept, in bytes.
    statement_bytes_max: usize,
    /// The beginning of each statement that is kept, and the piece that it is.
    beginnings: Vec<(String, Begin)>,
    /// Of USE; empty before the first.
    schema: String,
    /// The followed table whose turn it is.
    table: Option<TableName>,
    is_between_delimiters: bool,
    /// Definitions of other tables with foreign keys, each with its schema.
    pub(super) others: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
enum Begin {
    Definition(TableName),
    Rows(TableName),
}

impl<'a, R: BufRead> Cutter<'a, R> {
    pub(super) fn new(from: R, followed: &'a Followed, statement_bytes_max: usize) -> Cutter<'a, R> {
        Cutter {
            from,
            followed,
            statement_bytes_max,
            beginnings: Vec::new(),
            schema: String::new(),
            table: None,
            is_between_delimiters: false,
            others: Vec::new(),
        }
    }

    /// The next piece; `None` at the end of the stream, all of which was read then.
    ///
    /// # Errors
    /// When the stream cannot be read, is another one than was archived, or a statement is too long.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece>> {
        loop {
            let mut line = Vec::new();
            let is_whole = self.head(&mut line)?;
            if line.is_empty() {
                return Ok(None);
            }
            if let Some(piece) = self.line(line, is_whole)? {
                return Ok(Some(piece));
            }
        }
    }

    /// The beginning of a line; whether that is all of it.
    fn head(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        (&mut self.from).take(HEAD_BYTES as u64).read_until(b'\n', line)?;
        Ok(line.ends_with(b"\n") || line.len() < HEAD_BYTES)
    }

    fn line(&mut self, line: Vec<u8>, is_whole: bool) -> io::Result<Option<Piece>> {
        if line.starts_with(b"DELIMITER ") {
            self.is_between_delimiters = !line.trim_ascii_end().ends_with(b" ;");
            self.pass_line(is_whole, 0)?;
            return Ok(None);
        }
        // The last is for the client: mariadb-dump begins with a command that no server understands.
        let is_no_statement =
            line.trim_ascii().is_empty() || line.starts_with(b"--") || line.starts_with(b"/*M!999999\\-");
        if self.is_between_delimiters || is_no_statement {
            let trigger = self.trigger(&line);
            self.pass_line(is_whole, 0)?;
            return Ok(trigger);
        }
        let begin = self.beginnings.iter().find(|(begin, _)| line.starts_with(begin.as_bytes()));
        if let Some((_, begin)) = begin.cloned() {
            let sql = self.statement(line, is_whole)?;
            return Ok(Some(match begin {
                Begin::Definition(name) => {
                    self.table = Some(name.clone());
                    Piece::Definition(name, text(sql)?)
                }
                Begin::Rows(name) => Piece::Rows(name, sql),
            }));
        }
        if line.starts_with(b"USE `")
            || line.starts_with(b"CREATE DATABASE ")
            || self.schema.is_empty() && is_whole
        {
            let sql = text(self.statement(line, is_whole)?)?;
            return Ok(self.of_schema(sql));
        }
        if line.starts_with(b"CREATE TABLE ") {
            self.table = None;
            let sql = String::from_utf8_lossy(&self.statement(line, is_whole)?).into_owned();
            if sql.contains("REFERENCES") {
                self.others.push((self.schema.clone(), sql));
            }
            return Ok(None);
        }
        let last = line.trim_ascii_end().last().copied().unwrap_or(0);
        self.pass_statement(is_whole, last)?;
        Ok(None)
    }

    /// What a statement outside of tables means.
    fn of_schema(&mut self, sql: String) -> Option<Piece> {
        if let Some(name) = sql.strip_prefix("USE `").and_then(|rest| rest.strip_suffix("`;")) {
            self.schema = name.replace("``", "`");
            self.table = None;
            let own = self.followed.names().iter().filter(|name| name.schema == self.schema);
            let begins = own.flat_map(|name| {
                let table = quoted(&name.table);
                let of_rows = |verb: &str| (format!("{verb} INTO {table} "), Begin::Rows(name.clone()));
                // mariadb-dump goes on in the next line.
                let of_lines = |verb: &str| (format!("{verb} INTO {table}\n"), Begin::Rows(name.clone()));
                let definition = (format!("CREATE TABLE {table} ("), Begin::Definition(name.clone()));
                [
                    of_rows("INSERT"),
                    of_lines("INSERT"),
                    of_rows("INSERT  IGNORE"),
                    of_rows("REPLACE"),
                    definition,
                ]
            });
            self.beginnings = begins.collect();
            return None;
        }
        if sql.starts_with("CREATE DATABASE ") {
            let of = |(schema, _): (&str, &str)| {
                sql.contains(&format!(" {} ", quoted(schema))).then(|| schema.to_owned())
            };
            let schema = self.followed.schemas().find_map(of)?;
            return Some(Piece::Schema(schema, sql));
        }
        let upper = sql.to_uppercase();
        let is_of_values =
            ["SET NAMES ", " TIME_ZONE='", " SQL_MODE='"].iter().any(|one| upper.contains(one));
        (is_of_values && !upper.contains("GLOBAL")).then_some(Piece::Setting(sql))
    }

    /// The name of a trigger that follows the rows of a followed table.
    fn trigger(&self, line: &[u8]) -> Option<Piece> {
        let table = self.table.clone().filter(|_| self.is_between_delimiters)?;
        let line = String::from_utf8_lossy(line);
        let (before, behind) = line.split_once("TRIGGER ")?;
        let lower = behind.to_ascii_lowercase();
        let end = lower.find(" before ").or_else(|| lower.find(" after "))?;
        // As it was created: with its schema, or without.
        let name = behind[..end].trim().rsplit('.').next().unwrap_or_default();
        before.contains("CREATE").then(|| Piece::Trigger(table, name.replace('`', "")))
    }

    /// The rest of a statement that is kept.
    fn statement(&mut self, mut sql: Vec<u8>, mut is_whole: bool) -> io::Result<Vec<u8>> {
        loop {
            if is_whole && sql.trim_ascii_end().ends_with(b";") {
                sql.truncate(sql.trim_ascii_end().len());
                return Ok(sql);
            }
            if sql.len() > self.statement_bytes_max {
                let all = format!(
                    "a statement of the dump has more than {} bytes, and the target takes no longer ones: SET GLOBAL max_allowed_packet on \
                     it, 1 GiB at most",
                    self.statement_bytes_max
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, all));
            }
            let before = sql.len();
            let left = (self.statement_bytes_max + 1 - before.min(self.statement_bytes_max)) as u64;
            (&mut self.from).take(left).read_until(b'\n', &mut sql)?;
            if sql.len() == before {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the dump ends inside a statement"));
            }
            is_whole = sql.ends_with(b"\n");
        }
    }

    /// Passes over a statement whose last byte so far is given.
    fn pass_statement(&mut self, mut is_whole: bool, mut last: u8) -> io::Result<()> {
        loop {
            last = self.pass_line(is_whole, last)?;
            // At the end of the stream it is 0.
            if last == b';' || last == 0 {
                return Ok(());
            }
            (is_whole, last) = (false, 0);
        }
    }

    /// Passes over the rest of a line, whose last byte is `last` where there is no rest; the last byte that is no blank.
    fn pass_line(&mut self, is_whole: bool, mut last: u8) -> io::Result<u8> {
        if is_whole {
            return Ok(last);
        }
        loop {
            let buffer = self.from.fill_buf()?;
            let end = memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            last = part.trim_ascii_end().last().copied().unwrap_or(last);
            let (used, is_end) =
                (part.len() + usize::from(end.is_some()), end.is_some() || buffer.is_empty());
            self.from.consume(used);
            if is_end {
                // A blank line inside a statement is no end of the stream.
                return Ok(if last == 0 && used > 0 { b' ' } else { last });
            }
        }
    }
}

fn text(sql: Vec<u8>) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "a definition in the dump is no UTF-8");
    String::from_utf8(sql).map_err(no_text)
}

#[cfg(test)]
mod tests;
