//! A password that cannot be printed by accident.

use std::fmt;

<<<<<<< HEAD
/// A password. `Debug` shows three asterisks, and there is no `Display`: whoever needs the text calls [`expose`](Self::expose).
=======
/// A password. `Debug` and `Display` show three asterisks; only [`Secret::expose`] gives the text.
>>>>>>> wire
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
<<<<<<< HEAD
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the authentication exchange only.
=======
    /// Wraps a password.
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// The password itself. Never put it into a message.
>>>>>>> wire
    pub fn expose(&self) -> &str {
        &self.0
    }
}

<<<<<<< HEAD
=======
impl From<String> for Secret {
    fn from(password: String) -> Self {
        Self(password)
    }
}

impl From<&str> for Secret {
    fn from(password: &str) -> Self {
        Self(password.to_owned())
    }
}

>>>>>>> wire
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
<<<<<<< HEAD
=======

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
        assert_eq!(secret.expose(), "hunter2");
    }
}
>>>>>>> wire
