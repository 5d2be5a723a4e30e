//! What was being done when the disk refused: an error of the operating system alone names neither file nor operation.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the operating system with what it was about. Travels inside an [`io::Error`] of the same kind.
#[derive(Debug)]
struct Failed {
    action: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failed { action, path, error } = self;
        write!(f, "cannot {action} {}: {}", path.display(), Explained(error))
    }
}

// Without a source: its text is part of ours, and a chain of errors would say it twice.
impl Error for Failed {}

/// Adds to an error what was being done (a verb, and what it takes before the path) and to what. An error that says it
/// already stays as it is.
pub fn during(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| {
        if error.get_ref().is_some_and(|inner| inner.is::<Failed>()) {
            return error;
        }
        io::Error::new(error.kind(), Failed { action, path: path.to_owned(), error })
    }
}

/// An error of what was done with `path`, behind words that name it: what is new about it.
pub fn within<'a>(path: &Path, error: &'a io::Error) -> Explained<'a> {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Failed>()) {
        Some(failed) if failed.path == path => Explained(&failed.error),
        _ => Explained(error),
    }
}

/// Why `path`, which is the `what`, could not be taken into use: the operation that failed comes first.
pub fn opening(what: &str, path: &Path, error: &io::Error) -> String {
    match error.get_ref().is_some_and(|inner| inner.is::<Failed>()) {
        true => format!("{error}, while {what} {} was made ready", path.display()),
        false => format!("cannot use {what} {}: {}", path.display(), Explained(error)),
    }
}

/// An error of the operating system, and what helps where its words do not say it.
#[derive(Debug)]
pub struct Explained<'a>(pub &'a io::Error);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        if self.0.raw_os_error() == Some(libc::EFBIG) {
            f.write_str(
                "; the largest size of a file is reached: raise RLIMIT_FSIZE (ulimit -f, LimitFSIZE= of systemd), or use a \
                 file system that takes larger files",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_knows_says_what_was_being_done() {
        let error = io::Error::from_raw_os_error(libc::ENOSPC);
        let told = during("open", Path::new("/d"))(during("write to", Path::new("/d/journal"))(error));
        assert_eq!(told.to_string(), "cannot write to /d/journal: No space left on device (os error 28)");
        assert_eq!(told.kind(), io::ErrorKind::StorageFull);
        assert_eq!(
            within(Path::new("/d/journal"), &told).to_string(),
            "No space left on device (os error 28)"
        );
        assert_eq!(within(Path::new("/d"), &told).to_string(), told.to_string());
        assert_eq!(
            opening("the copy in", Path::new("/d"), &told),
            "cannot write to /d/journal: No space left on device (os error 28), while the copy in /d was made ready"
        );
    }

    #[test]
    fn a_limit_of_the_size_is_explained() {
        let told = during("write to", Path::new("/d"))(io::Error::from_raw_os_error(libc::EFBIG)).to_string();
        assert!(told.contains("File too large") && told.contains("LimitFSIZE"), "{told}");
    }
}
