//! What verbs print. A reader that has gone away, as in `binlogd rescue … | head`, is no reason to end: what is being done is
//! done to its end, and the exit code tells how it went. `println!` panics there.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Prints a line to standard output, as `println!` does.
macro_rules! outln {
    ($($arg:tt)*) => { $crate::cli::output::line(format_args!($($arg)*)) };
}

/// Prints a line to standard error, as `eprintln!` does.
macro_rules! errln {
    ($($arg:tt)*) => { $crate::cli::output::error_line(format_args!($($arg)*)) };
}

/// For `outln!`.
pub(super) fn line(text: Arguments<'_>) {
    write_line(&mut io::stdout().lock(), text);
}

/// For `errln!`.
pub(super) fn error_line(text: Arguments<'_>) {
    write_line(&mut io::stderr().lock(), text);
}

/// Nobody is there to be told that nobody is there.
fn write_line(out: &mut dyn Write, text: Arguments<'_>) {
    let _ = out.write_fmt(format_args!("{text}\n")).and_then(|()| out.flush());
}
