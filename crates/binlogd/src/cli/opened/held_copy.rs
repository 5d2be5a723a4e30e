//! The copy of one source in a data folder, for a verb that works on what it holds.

use crate::cli::style;
use binlog::folder::source_folders;
use binlog::storage::posix::PosixStorage;
use receive::attempt::copy::HeldCopy;
use source::clock::SystemClock;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source's name and folder, or what is wrong with the command line.
pub(in crate::cli) fn choose(data_dir: &Path, wanted: Option<&str>) -> Result<(String, PathBuf), String> {
    let shown = data_dir.display();
    let mut sources =
        source_folders(&PosixStorage, data_dir).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let names = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = wanted {
        let found = sources.iter().position(|(name, _)| name == wanted);
        let found = found.ok_or_else(|| format!("{shown} holds no source {wanted:?}; there are: {names}"))?;
        return Ok(sources.swap_remove(found));
    }
    match sources.len() {
        0 => Err(format!("{shown} holds no source: name the data_dir of the configuration")),
        1 => Ok(sources.swap_remove(0)),
        _ => Err(format!("{shown} holds several sources: choose one with --source; there are: {names}")),
    }
}

/// Opens the copy as the daemon would, so that what only the journal holds after a crash gets into the files first. `None` when
/// a running daemon holds it.
pub(in crate::cli) fn put_in_place(data_dir: &Path, name: &str) -> Result<Option<HeldCopy>, String> {
    match HeldCopy::open(Arc::new(PosixStorage), Arc::new(SystemClock), data_dir, name) {
        Ok((copy, remarks)) => {
            for remark in remarks {
                errln!("note: {}", style::clean(&remark));
            }
            Ok(Some(copy))
        }
        Err(error) if error.is_locked() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::testing::first_timeline;

    #[test]
    fn one_source_needs_no_name() {
        let dir = tempfile::tempdir().unwrap();
        assert!(choose(dir.path(), None).unwrap_err().contains("holds no source"));
        let timeline = first_timeline("a");
        for name in ["orders", "stock"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            timeline.create(&PosixStorage, &dir.path().join(name), 1).unwrap();
            if name == "orders" {
                assert_eq!(choose(dir.path(), None).unwrap().0, "orders");
            }
        }
        assert!(choose(dir.path(), None).unwrap_err().contains("orders, stock"));
        assert_eq!(choose(dir.path(), Some("stock")).unwrap().0, "stock");
        assert!(choose(dir.path(), Some("other")).unwrap_err().contains("orders, stock"));
    }
}
