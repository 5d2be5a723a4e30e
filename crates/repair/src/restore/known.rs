//! How it is known what the target has.

use super::backup::{BackupAt, told};
use super::begin::Begin;
use super::no_restore::NoRestore;
use super::target::Target;
use crate::hear::{Event, Hear};
use crate::history::Copied;
use codec::Position;
use codec::gtid::GtidState;

/// How it is known what the target has.
#[derive(Debug)]
pub enum Known {
    /// It knows by its GTIDs.
    Itself,
    /// It is told these.
    Told(GtidState),
    /// It has no GTIDs, and has everything up to there.
    Position(Position),
}

impl Known {
    /// Finds out. `applied`: how far an earlier restore of a server without GTIDs has come; `backup_at`: where the backup was made.
    /// From here on a target that is to be told counts as told.
    ///
    /// # Errors
    /// [`NoRestore`], where `host` is the target's name.
    pub(super) fn of(
        target: &mut Target,
        copied: &Copied,
        host: &str,
        applied: Option<Position>,
        backup_at: Option<&str>,
        hear: &mut Hear<'_>,
    ) -> Result<Known, NoRestore> {
        let backup = |text: &str| BackupAt::parse(text, copied.kind).map_err(NoRestore::BackupAt);
        if target.identity.has_gtids {
            let Some(text) = backup_at else {
                let told = target.is_told();
                return told
                    .map(|()| Known::Itself)
                    .map_err(|error| NoRestore::Target { host: host.to_owned(), error: error.to_string() });
            };
            let gtids = backup(text)?.gtids(copied)?;
            return Ok(match told(&target.identity, &gtids)? {
                None => Known::Itself,
                Some(identity) => {
                    target.identity = identity;
                    Known::Told(gtids)
                }
            });
        }
        let at = match (applied, backup_at) {
            (Some(at), _) => {
                hear(Event::Note(&format!(
                    "an earlier restore has brought the target to {at}; this one goes on there"
                )));
                BackupAt::Position(at)
            }
            (None, Some(text)) => backup(text)?,
            (None, None) => return Err(NoRestore::Unknown { host: host.to_owned() }),
        };
        Ok(Known::Position(at.position(copied)?))
    }

    pub(super) fn begin<'a>(&'a self, target: &'a Target) -> Begin<'a> {
        match self {
            Known::Position(at) => Begin::Position(at),
            _ => Begin::Gtids(&target.identity),
        }
    }
}
