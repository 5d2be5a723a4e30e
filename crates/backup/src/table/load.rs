//! The rows of a dump, on several sessions of the target at once while the next ones are read.
//!
//! Each session hears all settings in their order, and a part of the rows: in which order rows get into a table makes nothing else of it. The few
//! tables that take no row with a lower number than those before get all of theirs from the first session.

use super::followed::quoted;
use super::target::Target;
use codec::packet::printable;
use points::table::TableName;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use wire::{ConnectOptions, Connection};

/// The target is in use: more of its processors are not taken.
const SESSIONS: usize = 2;

/// What a session is to do.
#[derive(Debug, Clone)]
enum Order {
    /// A setting, or USE.
    Say(String),
    /// An INSERT.
    Rows(TableName, Vec<u8>),
}

/// See [the module](self).
#[derive(Debug)]
pub(super) struct Loader {
    sessions: Vec<Session>,
    next: usize,
    /// Tables whose rows must come in their order.
    in_order: Vec<TableName>,
}

#[derive(Debug)]
struct Session {
    orders: SyncSender<Order>,
    thread: JoinHandle<Result<(), String>>,
}

impl Loader {
    /// Connects. A target that gives one session only is loaded by one.
    ///
    /// # Errors
    /// In words, where it gives none.
    pub(super) fn new(into: &ConnectOptions) -> Result<Loader, String> {
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            let connection = match Target::session(into) {
                Ok(connection) => connection,
                Err(_) if !sessions.is_empty() => break,
                Err(error) => return Err(error),
            };
            // One statement waits while another one is run.
            let (orders, heard) = sync_channel(1);
            let thread = thread::Builder::new().spawn(move || obey(connection, &heard));
            let thread = thread.map_err(|error| format!("no thread can be begun: {error}"))?;
            sessions.push(Session { orders, thread });
        }
        Ok(Loader { sessions, next: 0, in_order: Vec::new() })
    }

    /// A setting, for all rows that follow.
    ///
    /// # Errors
    /// Why a session has ended.
    pub(super) fn say(&mut self, sql: &str) -> Result<(), String> {
        (0..self.sessions.len()).try_for_each(|at| self.give(at, Order::Say(sql.to_owned())))
    }

    /// A table that is there now, in a schema of this name on the target.
    ///
    /// # Errors
    /// Why a session has ended.
    pub(super) fn table(&mut self, table: &TableName, schema: &str, definition: &str) -> Result<(), String> {
        if must_ascend(definition) {
            self.in_order.push(table.clone());
        }
        self.say(&format!("USE {}", quoted(schema)))
    }

    /// Rows of a table that is there.
    ///
    /// # Errors
    /// Why a session has ended.
    pub(super) fn rows(&mut self, table: TableName, sql: Vec<u8>) -> Result<(), String> {
        // Of rows that others would take the place of (REPLACE, IGNORE) the order counts.
        let is_free = sql.starts_with(b"INSERT INTO") && !self.in_order.contains(&table);
        let at = if is_free { self.next } else { 0 };
        self.next = (self.next + 1) % self.sessions.len();
        self.give(at, Order::Rows(table, sql))
    }

    fn give(&mut self, at: usize, order: Order) -> Result<(), String> {
        match self.sessions[at].orders.send(order) {
            Ok(()) => Ok(()),
            // Who has ended says why.
            Err(_) => self.end().and(Err("a session on the target has ended".to_owned())),
        }
    }

    /// Waits until all rows are there.
    ///
    /// # Errors
    /// Why they are not.
    pub(super) fn end(&mut self) -> Result<(), String> {
        let failed = |_| Err("a thread that loads has failed".to_owned());
        let threads: Vec<_> = self.sessions.drain(..).map(|session| session.thread).collect();
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect();
        ends.into_iter().collect()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // Whoever ended before has an error of his own to tell; what is under way must not go on while its schema is dropped.
        let _ = self.end();
    }
}

/// Whether the table refuses a row whose number is below the last: a column that numbers the documents of a full-text index does, and so does
/// AUTO_INCREMENT of ARCHIVE. A definition that has the words elsewhere costs time only.
fn must_ascend(definition: &str) -> bool {
    let definition = definition.to_ascii_uppercase();
    ["FTS_DOC_ID", "ENGINE=ARCHIVE"].iter().any(|words| definition.contains(words))
}

fn obey(mut connection: Connection, orders: &Receiver<Order>) -> Result<(), String> {
    for order in orders {
        let done = match &order {
            Order::Say(sql) => connection.query(sql).map(drop),
            Order::Rows(_, sql) => connection.query_bytes(sql).map(drop),
        };
        done.map_err(|error| {
            let what = match &order {
                Order::Say(sql) => printable(sql.as_bytes(), 200),
                Order::Rows(table, _) => format!("rows of {table}"),
            };
            format!("{what}: the target: {}", error.in_its_own_words())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_must_ascend_are_known() {
        assert!(must_ascend("CREATE TABLE `t` (\n  `FTS_DOC_ID` bigint unsigned NOT NULL\n) ENGINE=InnoDB;"));
        assert!(must_ascend("CREATE TABLE `t` (\n  `id` int NOT NULL AUTO_INCREMENT\n) ENGINE=ARCHIVE;"));
        assert!(!must_ascend(
            "CREATE TABLE `archive` (\n  `id` int NOT NULL AUTO_INCREMENT\n) ENGINE=InnoDB;"
        ));
    }
}
