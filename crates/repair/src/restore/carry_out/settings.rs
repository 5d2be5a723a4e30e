//! Settings of the target that are changed for the time of a restore.

use super::ended::{Ended, during};
use crate::rescue::{Applier, Remedy, Restore, Setting};
use crate::restore::target::Target;
use wire::WireError;

/// Changes one.
///
/// # Errors
/// When it cannot be noted, or the target does not let it.
pub(in crate::restore) fn change(
    target: &mut Target,
    settings: &mut Restore,
    name: &str,
    was: &str,
    held: &str,
) -> Result<(), Ended> {
    if was == held {
        return Ok(());
    }
    let is_new = !settings.settings.iter().any(|noted| noted.name == name);
    // On disk before it is changed, so that it is put back even after a kill.
    settings
        .note(Setting { name: name.to_owned(), was: was.to_owned(), held: held.to_owned() })
        .map_err(Ended::Note)?;
    let sql = format!("SET GLOBAL {name} = {held}");
    let changed = target.connection.query(&sql).map(drop);
    if is_new && matches!(changed, Err(WireError::Server { .. } | WireError::AccessDenied { .. })) {
        settings.forget(name).map_err(Ended::Note)?;
    }
    changed.map_err(during("changing a setting for the time being"))
}

/// Sets aside what would change what is made of the log.
///
/// # Errors
/// As [`change`].
pub(in crate::restore) fn set_aside(
    target: &mut Target,
    settings: &mut Restore,
    applier: Applier,
) -> Result<(), Ended> {
    let found = target.deviations(applier).map_err(during("asking for its settings"))?;
    for one in found.iter().filter(|one| one.setting.remedy == Remedy::SetAside) {
        change(target, settings, one.name, &one.was(), &one.harmless())?;
    }
    Ok(())
}

/// Puts them back, those that still are as they were set.
///
/// # Errors
/// The first that the target does not let us put back. It stays noted, and the others are put back all the same.
pub(in crate::restore) fn put_back(target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
    let mut first = Ok(());
    for setting in settings.settings.clone().into_iter().rev() {
        let back = target.variable(&setting.name).and_then(|is| match setting.is_held(is.as_deref()) {
            true => target.connection.query(&setting.sql()).map(drop),
            false => Ok(()),
        });
        match back {
            Ok(()) => settings.forget(&setting.name).map_err(Ended::Note)?,
            Err(error) => first = first.and(Err(error)),
        }
    }
    first.map_err(during("putting its settings back"))
}
