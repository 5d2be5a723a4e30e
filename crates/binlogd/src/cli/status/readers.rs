//! Who reads from binlogd, for a person.

use super::page::{Page, WIDTH, wrapped};
use crate::cli::style::clean;
use crate::cli::units;
use jiff::Timestamp;
use status::ServeStatus;
use status::view::{ReaderRow, Readers, SlotRow};
use std::fmt::{Result, Write};

/// Of more readers those are shown that are behind most; JSON has all of them.
const SHOWN_MAX: usize = 20;

/// The port and its readers, as they stand below the sources.
pub(super) fn render(status: &ServeStatus, colored: bool, now: Timestamp) -> String {
    let mut page = Page::new(WIDTH, colored, now);
    // Writing to a String does not fail.
    let _ = page.readers(status);
    page.text
}

/// Who reads one source, and the slots of it. Empty when there are none.
pub(in crate::cli) fn of_source(status: &ServeStatus, source: &str, width: usize, now: Timestamp) -> String {
    let mut page = Page::new(width, false, now);
    // Writing to a String does not fail.
    let _ = page.of_source(status, source);
    page.text
}

impl Page {
    fn of_source(&mut self, status: &ServeStatus, source: &str) -> Result {
        let shown = Readers::of(status, Some(source), usize::MAX);
        shown.readers.iter().try_for_each(|row| self.reader(row))?;
        shown.slots.iter().try_for_each(|row| self.slot(row))
    }

    fn readers(&mut self, status: &ServeStatus) -> Result {
        let dumps = status.readers.iter().filter(|reader| reader.dumps()).count();
        writeln!(self.text, "\nreaders at {}: {dumps} read", clean(&status.address))?;
        let strangers = status.connections.saturating_sub(status.readers.len() as u64);
        let mut connections = format!("{} logged in of {}", status.readers.len(), status.max_connections);
        if strangers > 0 {
            write!(connections, ", {strangers} not yet")?;
        }
        self.line("connections", Some(&connections))?;
        let tls = match (status.tls.as_deref(), status.require_tls) {
            (None, _) => "no".to_owned(),
            (Some(origin), true) => format!("required, {origin} certificate"),
            (Some(origin), false) => format!("offered, {origin} certificate"),
        };
        self.line("TLS", Some(&tls))?;
        let counters = &status.counters;
        let refused: u64 = counters.refused.values().sum();
        let came = format!(
            "{} connections, {} not let in, {} of them by a failed login",
            units::count(counters.accepted),
            units::count(refused),
            units::count(counters.failed_logins)
        );
        self.line("came", Some(&came))?;
        self.line("sent", Some(&units::bytes(counters.sent_bytes)))?;
        let shown = Readers::of(status, None, SHOWN_MAX);
        shown.readers.iter().try_for_each(|row| self.reader(row))?;
        if shown.readers_left_out > 0 {
            writeln!(self.text, "  … and {} more, see --json", shown.readers_left_out)?;
        }
        shown.slots.iter().try_for_each(|row| self.slot(row))?;
        if shown.slots_left_out > 0 {
            writeln!(self.text, "  … and {} slots more, see --json", shown.slots_left_out)?;
        }
        Ok(())
    }

    fn slot(&mut self, row: &SlotRow<'_>) -> Result {
        let behind = row
            .behind
            .as_ref()
            .map_or_else(|| "its file is gone".to_owned(), |behind| format!("behind by {behind}"));
        let keeps = row.keeps_nothing.as_ref().map_or_else(String::new, |why| format!(", keeps {why}"));
        let text = format!("slot {}, source {}: {}, {behind}{keeps}", row.is.name, row.is.source, row.here);
        self.item(&text)
    }

    fn reader(&mut self, row: &ReaderRow<'_>) -> Result {
        let reader = row.is;
        let mut who = format!("{}@{}", reader.user, reader.address);
        if let Some(id) = reader.server_id {
            write!(who, ", server_id {id}")?;
        }
        if !reader.program.is_empty() {
            write!(who, ", {}", reader.program)?;
        }
        let what = if reader.dumps() { progress(row) } else { reader.command.clone() };
        let connected = units::duration(reader.connected_seconds);
        self.item(&format!("{} {who}, source {}, for {connected}: {what}", reader.id, reader.source))
    }

    fn item(&mut self, text: &str) -> Result {
        for (number, line) in wrapped(&clean(text), self.width - 4).into_iter().enumerate() {
            writeln!(self.text, "{}{line}", if number == 0 { "  " } else { "    " })?;
        }
        Ok(())
    }
}

/// How far a reader is, how much it has, and what holds it back.
fn progress(row: &ReaderRow<'_>) -> String {
    let reader = row.is;
    let at = reader.position.as_ref().map(|at| format!("at {} {}", at.file, at.offset));
    let at = at.unwrap_or_else(|| "looking for its place".to_owned());
    let behind = row
        .behind
        .as_ref()
        .map_or_else(|| "how far behind is not known".to_owned(), |behind| format!("behind by {behind}"));
    let confirmed = match &reader.confirmed {
        Some(at) => format!(", confirmed {} {}", at.file, at.offset),
        None if reader.semi_sync => ", nothing confirmed".to_owned(),
        None => String::new(),
    };
    let held_back: String = row.held_back.iter().map(|why| format!("; {why}")).collect();
    format!("{at}, {behind}, {} sent{confirmed}{held_back}", units::bytes(reader.sent_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::Position;
    use status::ServeCounters;
    use status::{ReaderStatus, SlotStatus};

    fn reader(id: u32, behind: Option<u64>) -> ReaderStatus {
        ReaderStatus {
            id,
            source: "orders".to_owned(),
            user: "repl".to_owned(),
            address: "10.0.0.7:5".to_owned(),
            command: if behind.is_some() { "Binlog Dump GTID" } else { "Sleep" }.to_owned(),
            server_id: behind.map(|_| 7),
            position: Some(Position::new("mysql-bin.000003", 100)),
            behind_bytes: behind,
            behind_seconds: behind.map(|behind| behind / 1000),
            connected_seconds: 61,
            ..ReaderStatus::default()
        }
    }

    fn text(readers: Vec<ReaderStatus>) -> String {
        let refused = [("login".to_owned(), 2), ("blocked".to_owned(), 1)].into();
        let status = ServeStatus {
            address: "127.0.0.1:3307".to_owned(),
            connections: readers.len() as u64 + 1,
            max_connections: 500,
            tls: Some("self-made".to_owned()),
            counters: ServeCounters { accepted: 9, refused, failed_logins: 2, sent_bytes: 3 << 20 },
            readers,
            ..ServeStatus::default()
        };
        render(&status, false, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn who_is_behind_most_comes_first() {
        let shown = text(vec![reader(1, None), reader(2, Some(0)), reader(3, Some(5000))]);
        let at = |words: &str| shown.find(words).unwrap_or_else(|| panic!("no {words:?} in\n{shown}"));
        assert!(at("  3 repl@") < at("  2 repl@") && at("  2 repl@") < at("  1 repl@"), "{shown}");
        let one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "readers at 127.0.0.1:3307: 2 read",
            "3 logged in of 500, 1 not yet",
            "offered, self-made certificate",
            "9 connections, 3 not let in, 2 of them by a failed login",
            "server_id 7, source orders",
            "at mysql-bin.000003 100, behind by nothing",
        ] {
            assert!(one_line.contains(words), "no {words:?} in\n{shown}");
        }
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
    }

    #[test]
    fn slots_that_keep_nothing_come_first() {
        let slot = |name: &str, released: Option<&str>| SlotStatus {
            name: name.to_owned(),
            source: "orders".to_owned(),
            away_seconds: 61,
            behind_bytes: Some(2048),
            behind_seconds: Some(120),
            released: released.map(str::to_owned),
            ..SlotStatus::default()
        };
        let slots = vec![
            slot("warehouse", None),
            slot("old", Some("it is behind by 2048 bytes, more than slot_max_bytes")),
        ];
        let shown = render(&ServeStatus { slots, ..ServeStatus::default() }, false, Timestamp::UNIX_EPOCH);
        let one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = "slot old, source orders: away for 1 min 1 s, behind by 2.0 KiB and 2 min 0 s, keeps nothing: it is behind by 2048 \
                     bytes, more than slot_max_bytes slot warehouse, source orders: away for 1 min 1 s, behind by 2.0 KiB and 2 min 0 s";
        assert!(one_line.ends_with(words), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
    }

    #[test]
    fn not_all_of_many_are_shown() {
        let shown = text((0..100).map(|id| reader(id, Some(u64::from(id)))).collect());
        assert!(shown.contains("… and 80 more") && shown.contains("  99 repl@"), "{shown}");
    }

    #[test]
    fn what_holds_a_reader_back_is_shown() {
        let stopped =
            ReaderStatus { stop: Some("before 0-1-7".to_owned()), stopped: true, ..reader(1, Some(5)) };
        let stops = ReaderStatus {
            stop_not_here: Some("0-1-7 is not in the history".to_owned()),
            stopped: false,
            ..stopped.clone()
        };
        let delayed = ReaderStatus { delay_seconds: 3600, ..reader(3, Some(5)) };
        let flat = |reader| text(vec![reader]).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat(stopped).contains("; stopped as it is meant to: before 0-1-7"));
        assert!(flat(stops).contains("; stops before 0-1-7 (0-1-7 is not in the history)"));
        assert!(flat(delayed).contains("; delayed by 1 h"));
    }
}
