//! What a long call tells, in the terminal: remarks as notes, progress as a bar where somebody sees it.

use crate::cli::{style, units};
use indicatif::{ProgressBar, ProgressStyle};
use repair::Event;
use std::io::{self, IsTerminal};

const WALK_BAR: &str = "walking the log {wide_bar} {bytes} of {total_bytes}, {eta} left";
const LOAD_BAR: &str = "putting the backup back {wide_bar} {bytes} of {total_bytes}, {eta} left";
const BAR: &str = "{wide_bar} {human_pos} of {human_len} transactions, {per_sec}, {eta} left";

/// One bar at a time. It goes when this is dropped.
pub(in crate::cli) struct Heard {
    bar: Option<(&'static str, ProgressBar)>,
    /// The server, or the source, as it is called.
    host: String,
    /// Of interest is the answer alone, for a program.
    quiet: bool,
}

impl Heard {
    /// Of a call that concerns `host`.
    pub(in crate::cli) fn of(host: &str, quiet: bool) -> Heard {
        Heard { bar: None, host: host.to_owned(), quiet }
    }

    /// Shows one event.
    pub(in crate::cli) fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Note(text) => {
                self.clear();
                text.lines().for_each(|line| errln!("note: {}", style::clean(line)));
            }
            Event::Walked { bytes, of } => self.counts(WALK_BAR, bytes, of),
            Event::Loaded { bytes, of } => self.counts(LOAD_BAR, bytes, of),
            Event::Applied { done, of } => self.counts(BAR, done, of),
            Event::Reading(path) => self.spins("reading", format!("reading {}", path.display())),
            Event::Comparing(path) => self.spins("comparing", format!("comparing {}", path.display())),
            Event::Compared { words, compared } => {
                self.clear();
                let (host, remarks) = (&self.host, compared.remarks());
                if self.quiet {
                    // It stands in the answer.
                } else if compared.same > 0 {
                    let same = units::counted(compared.same, "transaction");
                    outln!(
                        "compared with the binary log of {host}: {same} that are there already ({words}), all as the copy has \
                         them{remarks}"
                    );
                } else if compared.unclear + compared.not_in_its_log > 0 {
                    errln!("note: what {host} has already was not compared{}", style::clean(&remarks));
                }
            }
        }
    }

    fn counts(&mut self, template: &'static str, done: u64, of: u64) {
        let style = || ProgressStyle::with_template(template).expect("a valid template");
        let bar = self.bar(template, || ProgressBar::new(of).with_style(style()));
        bar.set_length(of);
        bar.set_position(done);
    }

    fn spins(&mut self, kind: &'static str, message: String) {
        let bar = self.bar(kind, ProgressBar::new_spinner);
        bar.set_message(message);
        bar.tick();
    }

    /// The bar of that kind, in the place of another.
    fn bar(&mut self, kind: &'static str, make: impl FnOnce() -> ProgressBar) -> &ProgressBar {
        let is_seen = !self.quiet && io::stderr().is_terminal();
        if self.bar.as_ref().is_some_and(|(shown, _)| *shown != kind) {
            self.clear();
        }
        let make = || (kind, if is_seen { make() } else { ProgressBar::hidden() });
        &self.bar.get_or_insert_with(make).1
    }

    /// Takes the bar away, before something else is printed.
    pub(in crate::cli) fn clear(&mut self) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.clear();
    }
}
