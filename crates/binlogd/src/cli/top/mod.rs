//! `binlogd top`: the daemon and its sources in a terminal, looked at every second.
//!
//! | file | does |
//! |---|---|
//! | `asking.rs` | a thread that asks the daemon |
//! | `board.rs` | what is known and chosen, and what keys do |
//! | `rates.rs` | per second, of two answers |
//! | `verdict.rs` | whether all is safe, and where, in a sentence |
//! | `overview.rs`, `full.rs`, `help.rs` | what is drawn |
//! | `keys.rs` | waits for a key, and notices when the terminal is gone |
//! | `palette.rs` | colours, or none |
//! | `screen.rs` | takes the terminal, and gives it back whatever happens |

mod asking;
mod board;
mod full;
mod help;
mod keys;
mod overview;
mod palette;
mod rates;
mod screen;
#[cfg(test)]
mod tests;
mod verdict;

use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::status::target::{Target, TargetArgs};
use super::style;
use asking::Look;
use board::{Board, Mode, Next};
use jiff::Timestamp;
use keys::Said;
use palette::Palette;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use screen::{Screen, Signals};
use signal_hook::consts::SIGHUP;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// Longest time until an answer or a signal is seen; a key is seen at once.
const TICK: Duration = Duration::from_millis(200);

/// The arguments of `binlogd top`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Keys: arrows or j and k choose a source, Enter shows it in full, Esc leads back, s sorts otherwise, / filters by name, ? explains, q \
ends. NO_COLOR is respected. Where there is no terminal: binlogd status --watch.")]
pub(super) struct TopArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Show this source in full first
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

/// The word and the sentence at the top of the picture of an answer.
#[cfg(test)]
pub(super) fn verdict_of(status: &status::DaemonStatus) -> (&'static str, String) {
    let (word, text) = verdict::verdict(Some(status), None, Instant::now());
    (word.word(), text)
}

/// Runs `binlogd top`.
pub(super) fn execute(args: TopArgs) -> ExitCode {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return usage_error(
            &"top needs a terminal; binlogd status --watch prints again and again what stands",
        );
    }
    // A configuration that cannot be read is told before the terminal is taken.
    if let Err(error) = Target::of(&args.target) {
        return usage_error(&format!("{error:#}"));
    }
    match run(args) {
        Ok(None) => ExitCode::from(EXIT_OK),
        Ok(Some(signal)) => {
            // Who started this learns by what it ended.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            ExitCode::from(EXIT_PROBLEM)
        }
        Err(error) => {
            errln!("error: the terminal: {error}");
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

/// Shows it until a key or a signal ends it; the signal, if it was one.
fn run(args: TopArgs) -> io::Result<Option<i32>> {
    let palette = Palette { colored: style::stdout_is_colored() };
    let signals = Signals::take()?;
    let looks = asking::start(args.target)?;
    let mut board = Board::new(args.source);
    let mut screen = Screen::enter()?;
    show(&mut screen, &mut board, palette, &looks, &signals)
}

fn show(
    screen: &mut Screen,
    board: &mut Board,
    palette: Palette,
    looks: &Receiver<Look>,
    signals: &Signals,
) -> io::Result<Option<i32>> {
    loop {
        loop {
            match looks.try_recv() {
                Ok(look) => board.take(look),
                Err(TryRecvError::Empty) => break,
                // By an error of ours, which the panic has told.
                Err(TryRecvError::Disconnected) => {
                    return Err(io::Error::other("nobody asks the daemon any more"));
                }
            }
        }
        screen.draw(|frame| draw(frame, board, palette, Instant::now(), Timestamp::now()))?;
        if let Some(signal) = signals.to_end() {
            return Ok(Some(signal));
        }
        if signals.to_stop() {
            screen.suspend()?;
        }
        match keys::wait(TICK)? {
            Said::Nothing => continue,
            Said::HungUp => return Ok(Some(SIGHUP)),
            Said::Key => {}
        }
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match board.key(key) {
                    Next::Stay => {}
                    Next::Quit => return Ok(None),
                    Next::Suspend => screen.suspend()?,
                },
                // The next round draws in the new size.
                _ => {}
            }
        }
    }
}

/// One picture of what is known.
fn draw(frame: &mut Frame<'_>, board: &mut Board, palette: Palette, at: Instant, now: Timestamp) {
    match board.mode {
        Mode::Full => full::draw(frame, board, palette, at, now),
        Mode::Help => help::draw(frame, palette),
        Mode::Overview | Mode::Filter => overview::draw(frame, board, palette, at, now),
    }
}
