//! The folders of a scene: those that what is set apart has of its own, and one for everything else.

use crate::lab::Lab;
use std::path::Path;
use tempfile::TempDir;

/// Temporary folders with the name of the study, by which what a killed run has left is found. They are removed when
/// dropped: declare them after the servers in them.
#[derive(Debug)]
pub struct Folders {
    beside: TempDir,
    source: Option<TempDir>,
    receivers: Option<TempDir>,
}

impl Folders {
    /// For a scene of that study.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn of(lab: &Lab, study: &str) -> anyhow::Result<Folders> {
        let source = lab.apart.source_dir.as_ref().map(|dir| folder(study, dir)).transpose()?;
        Ok(Folders { beside: folder(study, &lab.dir)?, source, receivers: of_receivers(lab, study)? })
    }

    /// For what is neither the source's nor a receiver's.
    pub fn path(&self) -> &Path {
        self.beside.path()
    }

    /// For the source.
    pub fn source(&self) -> &Path {
        self.source.as_ref().unwrap_or(&self.beside).path()
    }

    /// For what receives.
    pub fn receivers(&self) -> &Path {
        self.receivers.as_ref().unwrap_or(&self.beside).path()
    }
}

/// One for what receives, where that has a folder of its own.
///
/// # Errors
/// When it cannot be made.
pub fn of_receivers(lab: &Lab, study: &str) -> anyhow::Result<Option<TempDir>> {
    lab.apart.receiver_dir.as_ref().map(|dir| folder(study, dir)).transpose()
}

fn folder(study: &str, dir: &Path) -> anyhow::Result<TempDir> {
    Ok(tempfile::Builder::new().prefix(&format!("{study}-")).tempdir_in(dir)?)
}
