//! Takes the terminal, and gives it back as it was: at the end, after a signal, while stopped, and after a panic.

use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, enable_raw_mode};
use ratatui::{DefaultTerminal, Frame};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Signals that end the program. The terminal sends none for keys while it is taken.
const ENDING: [i32; 3] = [SIGTERM, SIGINT, SIGHUP];

/// Signals that have come.
pub(super) struct Signals {
    end: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Signals {
    /// Takes them from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn take() -> io::Result<Signals> {
        let signals = Signals { end: Arc::default(), stop: Arc::default() };
        for signal in ENDING {
            signal_hook::flag::register_usize(signal, signals.end.clone(), signal as usize)?;
        }
        signal_hook::flag::register(SIGTSTP, signals.stop.clone())?;
        Ok(signals)
    }

    /// The signal by which to end, if one has come.
    pub(super) fn to_end(&self) -> Option<i32> {
        match self.end.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// Whether to stop until somebody says to go on. Told once.
    pub(super) fn to_stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }
}

/// The terminal, taken as long as this lives.
pub(super) struct Screen {
    /// There until the end.
    terminal: Option<DefaultTerminal>,
}

impl Screen {
    /// Takes the terminal. A panic gives it back before it is reported.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(super) fn enter() -> io::Result<Screen> {
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore())?;
        Ok(Screen { terminal: Some(terminal) })
    }

    /// Draws a picture.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.taken()?.draw(picture).map(|_| ())
    }

    /// Gives the terminal back, stops this process as Ctrl-Z does, and takes the terminal again when it goes on.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.taken()?.show_cursor()?;
        ratatui::try_restore()?;
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        self.taken()?.clear()
    }

    fn taken(&mut self) -> io::Result<&mut DefaultTerminal> {
        self.terminal.as_mut().ok_or_else(|| io::Error::other("it was given back"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The cursor comes back with the end of the terminal's own value.
        // A terminal that is gone takes nothing back. ratatui would say so at the end of its value, and panic, because that cannot be
        // printed either.
        if ratatui::try_restore().is_err() {
            std::mem::forget(self.terminal.take());
        }
    }
}
