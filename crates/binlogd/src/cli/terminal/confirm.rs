//! A question before something is changed.

use std::io::{self, BufRead, IsTerminal, Write};

/// Asks, and takes only "yes" for a yes. `look` names the option by which one sees what would be done.
///
/// # Errors
/// When nobody is there to be asked.
pub(in crate::cli) fn confirmed(question: &str, look: &str) -> Result<bool, String> {
    if !io::stdin().is_terminal() {
        return Err(format!("nobody is there to be asked: look at {look}, then give --yes"));
    }
    let _ = write!(io::stdout(), "{question} Type yes to go on: ").and_then(|()| io::stdout().flush());
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| error.to_string())?;
    Ok(answer.trim() == "yes")
}
