//! When the binary log is rotated.

use crate::model::Settings;
use anyhow::ensure;

/// When the binary log is rotated: the setting `rotation_kib`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rotation {
    /// After a file of so many KiB.
    Kibibytes(u64),
    /// Several times in a cell, as fast as this machine fills the log.
    Auto,
}

impl Rotation {
    /// As the settings have it.
    ///
    /// # Errors
    /// When the server could not have such files.
    pub(super) fn of(settings: &Settings) -> anyhow::Result<Rotation> {
        if settings.get::<String>("rotation_kib")? == "auto" {
            return Ok(Rotation::Auto);
        }
        let size = settings.get("rotation_kib")?;
        // What else the server would round.
        let is_possible = (4..=1 << 20).contains(&size) && size % 4 == 0;
        ensure!(is_possible, "--set rotation_kib={size}: a multiple of 4 from 4 to {}, or auto", 1 << 20);
        Ok(Rotation::Kibibytes(size))
    }
}
