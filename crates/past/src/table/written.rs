//! The rows as text.

use super::Contents;
use super::cell::{To, escaped};
use repair::undo::{SESSION, name};
use std::io::{self, Write};

/// A statement of SQL has so many rows at most, and one more than so many bytes of them.
const ROWS_MAX: usize = 100;
const BYTES_MAX: usize = 256 << 10;

impl Contents {
    /// How many rows there are.
    pub fn count(&self) -> u64 {
        self.rows.count
    }

    /// Nobody has told the names of its columns: it has no row, and had none since it was made.
    pub fn is_unnamed(&self) -> bool {
        self.rows.names().is_empty()
    }

    /// Writes them, in the order of the primary key. SQL makes no table, and names the one that it fills without its schema.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.to {
            To::Csv => self.csv(out),
            To::Sql => self.sql(out),
        }
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let names: Vec<String> = self.rows.names().into_iter().map(escaped).collect();
        if !names.is_empty() {
            write!(out, "{}\r\n", names.join(","))?;
        }
        self.rows.each(|row| write!(out, "{}\r\n", row.join(",")))
    }

    fn sql(&self, out: &mut dyn Write) -> io::Result<()> {
        for statement in SESSION {
            writeln!(out, "{statement};")?;
        }
        let names: Vec<String> = self.rows.names().into_iter().map(name).collect();
        let head = format!("INSERT INTO {} ({}) VALUES", name(&self.table.table), names.join(", "));
        let (mut rows, mut bytes) = (0, 0);
        self.rows.each(|row| {
            let row = row.join(", ");
            let is_new = rows == 0 || rows == ROWS_MAX || bytes > BYTES_MAX;
            match (is_new, rows) {
                (true, 0) => write!(out, "{head}\n({row})")?,
                (true, _) => write!(out, ";\n{head}\n({row})")?,
                (false, _) => write!(out, ",\n({row})")?,
            }
            (rows, bytes) = if is_new { (1, row.len()) } else { (rows + 1, bytes + row.len()) };
            Ok(())
        })?;
        writeln!(out, "{}COMMIT;", if rows == 0 { "" } else { ";\n" })
    }
}
