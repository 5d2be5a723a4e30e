//! Colours of a terminal, or none. A colour never says what no word says.

use ratatui::style::{Color, Modifier, Style};
use status::Level;

/// The styles in use.
#[derive(Clone, Copy)]
pub(super) struct Palette {
    /// False with NO_COLOR: only weight and reversal are used then.
    pub(super) colored: bool,
}

impl Palette {
    /// As it should be.
    pub(super) fn good(self) -> Style {
        self.tinted(Color::Green)
    }

    /// To be looked at.
    pub(super) fn warn(self) -> Style {
        self.tinted(Color::Yellow)
    }

    /// To be acted on.
    pub(super) fn bad(self) -> Style {
        self.tinted(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Beside the point: titles, units, what is old.
    pub(super) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What the eye is to find first.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Of what has this level.
    pub(super) fn of(self, level: Level) -> Style {
        match level {
            Level::Ok => self.good(),
            Level::Notice | Level::Warning => self.warn(),
            Level::Critical => self.bad(),
        }
    }

    fn tinted(self, color: Color) -> Style {
        if self.colored { Style::new().fg(color) } else { Style::new() }
    }
}
