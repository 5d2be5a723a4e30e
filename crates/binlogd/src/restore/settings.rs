//! Settings of the target that are changed for the time of a restore.

use super::ended::{Ended, during};
use super::target::Target;
use crate::rescue::{Applier, Remedy, Restore, Setting};

/// Changes one.
///
/// # Errors
/// When it cannot be noted, or the target does not let it.
pub(super) fn change(
    target: &mut Target,
    settings: &mut Restore,
    name: &str,
    was: &str,
    held: &str,
) -> Result<(), Ended> {
    if was == held {
        return Ok(());
    }
    // On disk before it is changed, so that it is put back even after a kill.
    settings
        .note(Setting { name: name.to_owned(), was: was.to_owned(), held: held.to_owned() })
        .map_err(Ended::Note)?;
    let sql = format!("SET GLOBAL {name} = {held}");
    target.connection.query(&sql).map(drop).map_err(during("changing a setting for the time being"))
}

/// Sets aside what would change what is made of the log.
///
/// # Errors
/// As [`change`].
pub(super) fn set_aside(target: &mut Target, settings: &mut Restore, applier: Applier) -> Result<(), Ended> {
    let found = target.deviations(applier).map_err(during("asking for its settings"))?;
    for one in found.iter().filter(|one| one.setting.remedy == Remedy::SetAside) {
        change(target, settings, one.name, &one.was(), &one.harmless())?;
    }
    Ok(())
}

/// Puts them back.
///
/// # Errors
/// When the target does not let it.
pub(super) fn put_back(target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
    for setting in settings.settings.iter().rev() {
        target.connection.query(&setting.sql()).map_err(during("putting its settings back"))?;
    }
    settings.done().map_err(Ended::Note)
}
