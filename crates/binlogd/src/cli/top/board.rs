//! What is known and chosen, and what keys do.

use super::asking::Look;
use super::rates::{Rate, Rates};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use status::view::worst_first;
use status::{DaemonStatus, SourceStatus};
use std::cmp::Reverse;
use std::time::Instant;

/// Rows that a key for a page goes.
const PAGE: isize = 10;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// All sources.
    Overview,
    /// All sources, while a filter is typed.
    Filter,
    /// One source.
    Full,
    /// What the keys do.
    Help,
}

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Worst,
    Name,
    Behind,
    Transactions,
    Bytes,
}

impl Sort {
    /// As the foot of the page has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Sort::Worst => "worst",
            Sort::Name => "name",
            Sort::Behind => "behind",
            Sort::Transactions => "transactions",
            Sort::Bytes => "bytes",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Worst => Sort::Name,
            Sort::Name => Sort::Behind,
            Sort::Behind => Sort::Transactions,
            Sort::Transactions => Sort::Bytes,
            Sort::Bytes => Sort::Worst,
        }
    }
}

/// What follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Quit,
    Suspend,
}

/// No answer, since when and why.
#[derive(Clone, Debug)]
pub(super) struct Silence {
    pub(super) since: Instant,
    pub(super) why: String,
}

/// One source, as it is shown.
pub(super) struct Row<'a> {
    pub(super) source: &'a SourceStatus,
    pub(super) rate: Option<Rate>,
}

/// Everything that a picture is drawn from.
pub(super) struct Board {
    /// The last answer.
    pub(super) status: Option<DaemonStatus>,
    /// While there is none.
    pub(super) silence: Option<Silence>,
    pub(super) rates: Rates,
    pub(super) mode: Mode,
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// First line shown of a source in full. Drawing brings it into bounds.
    pub(super) scroll: usize,
    /// By name, so that the choice stays with its source. `None`: the first.
    chosen: Option<String>,
}

impl Board {
    /// Nothing known yet. `source` is shown in full from the start, if it is given.
    pub(super) fn new(source: Option<String>) -> Board {
        Board {
            status: None,
            silence: None,
            rates: Rates::default(),
            mode: if source.is_some() { Mode::Full } else { Mode::Overview },
            sort: Sort::Worst,
            filter: String::new(),
            scroll: 0,
            chosen: source,
        }
    }

    /// Takes an answer, or that there is none.
    pub(super) fn take(&mut self, look: Look) {
        match look.answer {
            Ok(status) => {
                self.rates.observe(look.at, &status);
                self.status = Some(status);
                self.silence = None;
            }
            Err(why) => {
                self.rates.interrupt();
                let since = self.silence.as_ref().map_or(look.at, |silence| silence.since);
                self.silence = Some(Silence { since, why });
            }
        }
    }

    /// The sources that the filter lets through, in the order wanted.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let Some(status) = &self.status else { return Vec::new() };
        let wanted = self.filter.to_lowercase();
        let mut rows: Vec<Row<'_>> = worst_first(&status.sources)
            .into_iter()
            .filter(|source| source.name.to_lowercase().contains(&wanted))
            .map(|source| Row { source, rate: self.rates.of(&source.name) })
            .collect();
        // Rounded, so that rows of the same speed do not change places all the time.
        let whole = |rate: f64| rate.round() as u64;
        match self.sort {
            Sort::Worst => {}
            Sort::Name => rows.sort_by(|a, b| a.source.name.cmp(&b.source.name)),
            Sort::Behind => rows.sort_by_key(|row| Reverse(row.source.seconds_behind)),
            Sort::Transactions => {
                rows.sort_by_key(|row| Reverse(row.rate.map(|rate| whole(rate.transactions))))
            }
            Sort::Bytes => rows.sort_by_key(|row| Reverse(row.rate.map(|rate| whole(rate.bytes / 1e4)))),
        }
        rows
    }

    /// Which of these rows is chosen.
    pub(super) fn chosen(&self, rows: &[Row<'_>]) -> usize {
        let name = self.chosen.as_deref();
        rows.iter().position(|row| Some(row.source.name.as_str()) == name).unwrap_or(0)
    }

    /// The source shown in full; `None` when it is not there, or not any more.
    pub(super) fn full(&self) -> Option<&SourceStatus> {
        let name = self.chosen.as_deref()?;
        self.status.as_ref()?.sources.iter().find(|source| source.name == name)
    }

    /// The name of the source shown in full.
    pub(super) fn full_name(&self) -> &str {
        self.chosen.as_deref().unwrap_or_default()
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Next::Quit,
                KeyCode::Char('z') => Next::Suspend,
                _ => Next::Stay,
            };
        }
        match self.mode {
            Mode::Help => self.mode = Mode::Overview,
            Mode::Filter => self.typed(key.code),
            Mode::Overview | Mode::Full => return self.command(key.code),
        }
        Next::Stay
    }

    fn typed(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(character) => self.filter.push(character),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Enter => self.mode = Mode::Overview,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Overview;
            }
            KeyCode::Up => self.go(-1),
            KeyCode::Down => self.go(1),
            _ => {}
        }
    }

    fn command(&mut self, key: KeyCode) -> Next {
        match key {
            KeyCode::Char('q') => return Next::Quit,
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Up | KeyCode::Char('k') => self.go(-1),
            KeyCode::Down | KeyCode::Char('j') => self.go(1),
            KeyCode::PageUp => self.go(-PAGE),
            KeyCode::PageDown | KeyCode::Char(' ') => self.go(PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.go(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.go(isize::MAX),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left if self.mode == Mode::Full => {
                self.mode = Mode::Overview;
            }
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Enter | KeyCode::Right if self.mode == Mode::Overview => self.show_in_full(),
            KeyCode::Char('s') if self.mode == Mode::Overview => self.sort = self.sort.next(),
            KeyCode::Char('/') if self.mode == Mode::Overview => self.mode = Mode::Filter,
            _ => {}
        }
        Next::Stay
    }

    /// Chooses a source further down, or scrolls what is shown in full.
    fn go(&mut self, rows_down: isize) {
        if self.mode == Mode::Full {
            self.scroll = self.scroll.saturating_add_signed(rows_down);
            return;
        }
        let rows = self.rows();
        let at = self.chosen(&rows).saturating_add_signed(rows_down).min(rows.len().saturating_sub(1));
        let chosen = rows.get(at).map(|row| row.source.name.clone());
        self.chosen = chosen.or(self.chosen.take());
    }

    fn show_in_full(&mut self) {
        let rows = self.rows();
        let Some(row) = rows.get(self.chosen(&rows)) else { return };
        self.chosen = Some(row.source.name.clone());
        self.mode = Mode::Full;
        self.scroll = 0;
    }
}
