//! What transactions are asked for, on the command line of every verb that looks for some.

use super::time_range;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use points::criteria::Criteria;
use points::effects::Effects;
use points::glob::TableGlob;
use points::wanted_gtids::WantedGtids;

/// All that is given must hold; of several of one option, one.
#[derive(Debug, Args)]
pub(in crate::cli) struct SearchArgs {
    /// This timeline only: its number, or the name of its folder
    #[arg(long, value_name = "N")]
    pub(in crate::cli) timeline: Option<String>,
    /// With one of these GTIDs: a set of MySQL, or GTIDs of MariaDB with commas between
    #[arg(long, value_name = "SET")]
    gtid: Option<String>,
    /// Committed from A on and before B; either may be left out. A time without a zone is local
    #[arg(long, value_name = "A..B")]
    time: Option<String>,
    /// That changes this table; * and ? stand for any characters
    #[arg(long, value_name = "SCHEMA.TABLE")]
    table: Vec<String>,
    /// That does this
    #[arg(long, value_enum)]
    kind: Vec<KindArg>,
    /// Of so many rows at least
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    min_rows: u64,
    /// Of so many bytes in the log at least
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    min_bytes: u64,
    /// Made by this connection (the thread's id)
    #[arg(long, value_name = "ID")]
    thread: Option<u32>,
    /// With this text in a statement, or in the statement that its rows were made by; in any case
    #[arg(long)]
    text: Option<String>,
}

/// What a transaction may be asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    /// Rows deleted
    Delete,
    /// Rows updated
    Update,
    /// Rows inserted
    Insert,
    /// A definition changed
    Ddl,
    /// A table emptied
    Truncate,
    /// A table, schema or anything else dropped
    Drop,
}

impl KindArg {
    fn effect(self) -> Effects {
        match self {
            KindArg::Delete => Effects::DELETE,
            KindArg::Update => Effects::UPDATE,
            KindArg::Insert => Effects::INSERT,
            KindArg::Ddl => Effects::DDL,
            KindArg::Truncate => Effects::TRUNCATE,
            KindArg::Drop => Effects::DROP,
        }
    }
}

impl SearchArgs {
    /// Whether something is asked for, beyond a timeline.
    pub(in crate::cli) fn is_any(&self) -> bool {
        let has_text = self.gtid.is_some() || self.time.is_some() || self.text.is_some();
        let has_list = !self.table.is_empty() || !self.kind.is_empty();
        has_text || has_list || self.thread.is_some() || self.min_rows > 0 || self.min_bytes > 0
    }

    /// What is searched for, or what is wrong with the command line.
    ///
    /// # Errors
    /// In words.
    pub(in crate::cli) fn criteria(&self, zone: &TimeZone) -> Result<Criteria, String> {
        let range = self.time.as_ref().map(|text| time_range::parse(text, zone)).transpose()?;
        let gtids = self.gtid.as_ref().map(|text| WantedGtids::parse(text)).transpose();
        let tables: Result<Vec<TableGlob>, _> =
            self.table.iter().map(|text| TableGlob::parse(text)).collect();
        let mut kinds = Effects::NONE;
        self.kind.iter().for_each(|kind| kinds |= kind.effect());
        if self.text.as_ref().is_some_and(String::is_empty) {
            return Err("--text is empty: give the text that the statement holds".to_owned());
        }
        Ok(Criteria {
            gtids: gtids.map_err(|error| format!("--gtid: {error}"))?,
            from: range.and_then(|range| range.from),
            until: range.and_then(|range| range.until),
            tables: tables.map_err(|error| format!("--table: {error}"))?,
            kinds,
            min_rows: self.min_rows,
            min_bytes: self.min_bytes,
            thread: self.thread,
            text: self.text.as_ref().map(|text| text.to_ascii_lowercase().into_bytes()),
            besides: Effects::NONE,
        })
    }
}
