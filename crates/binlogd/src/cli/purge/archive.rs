//! What the archive has of files that `binlogd purge` is to delete: those that it lacks stay.

use crate::cli::args::store::ReachArgs;
use crate::cli::style;
use archive::keys::Identities;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::Store;
use archive::store::lazy::Lazy;
use archive::upkeep::presence::{Place, first_lacking};
use binlog::folder::timelines;
use binlog::purge::needs::{Need, NeedFrom};
use binlog::purge::plan::Wanted;
use binlog::storage::posix::PosixStorage;
use config::{ArchiveConfig, Config};
use serve::retention::{InSlot, Purger, Readers};
use std::path::Path;
use std::sync::Arc;

/// The archive that is asked, if there is one.
pub(in crate::cli) struct Asked {
    /// Where it is, in words, and what reads it.
    archive: Option<(String, Reader)>,
    /// Sources that are not archived, by the configuration.
    not_archived: Vec<String>,
    /// That nobody is asked was said by the operator.
    is_waived: bool,
}

/// From which file on the archive lacks something.
pub(in crate::cli) struct Lacking(Vec<Need>);

impl Readers for Lacking {
    fn needs(&self, _source: &str) -> Vec<Need> {
        self.0.clone()
    }

    fn in_slots(&self, _source: &str) -> Vec<InSlot> {
        Vec::new()
    }
}

impl Asked {
    /// The archive at `url`, or else that of the configuration.
    ///
    /// # Errors
    /// In words: what is wrong with the address, or with how it is to be reached.
    pub(in crate::cli) fn new(
        url: Option<&str>,
        reach: &ReachArgs,
        is_waived: bool,
        config: Option<&Config>,
    ) -> anyhow::Result<Asked> {
        let configured = config.and_then(|config| config.archive.as_ref());
        let (location, options) = match (url, configured) {
            _ if is_waived => return Ok(Asked { archive: None, not_archived: Vec::new(), is_waived }),
            (Some(url), _) => reach.checked(url)?,
            (None, Some(archive)) => (archive.location.clone(), archive.options.clone()),
            (None, None) => return Ok(Asked { archive: None, not_archived: Vec::new(), is_waived }),
        };
        // What cannot be reached is told where the files are looked for.
        let store: Arc<dyn Store> = Arc::new(Lazy::new(location.clone(), options, None));
        // Hashes of objects are compared, so no private key is needed.
        let by_config = configured.filter(|_| url.is_none()).map(ArchiveConfig::signing).transpose()?;
        let trust = by_config.map(|signing| signing.trust).unwrap_or_default();
        let reader = Reader { store, opener: Arc::new(Opener::new(Identities::new()).trusting(trust)) };
        let sources = config.filter(|_| url.is_none()).map(|config| &config.sources[..]).unwrap_or_default();
        let not_archived = sources.iter().filter(|source| !source.archive).map(|source| source.name.clone());
        Ok(Asked {
            archive: Some((location.to_string(), reader)),
            not_archived: not_archived.collect(),
            is_waived,
        })
    }

    /// Looks in the archive for the files that would go; from the first one on that it lacks `purger` keeps all, as long as the
    /// result is held.
    ///
    /// # Errors
    /// When the copy or the archive cannot be read.
    pub(in crate::cli) fn of(
        &self,
        source: &str,
        folder: &Path,
        purger: &Purger,
        wanted: &Wanted,
    ) -> anyhow::Result<Option<Arc<dyn Readers>>> {
        let Some((place, reader)) = &self.archive else {
            if !self.is_waived {
                outln!(
                    "  no archive was asked whether it has these files: --config or --archive names one, if there is one"
                );
            }
            return Ok(None);
        };
        if self.not_archived.iter().any(|name| name == source) {
            outln!("  this source is not archived, by its archive = false: the archive was not asked");
            return Ok(None);
        }
        let plan = purger.plan(wanted)?;
        let goes = plan.goes();
        let files: Vec<Place<'_>> = goes.iter().map(|file| (&*file.folder, &*file.name)).collect();
        let folders = timelines(&PosixStorage, folder)?;
        let lacking =
            first_lacking(reader, &PosixStorage, source, &folders, &files).map_err(|error| {
                anyhow::anyhow!(
                    "the archive {place} cannot be asked whether it has these files: {error}. Nothing was deleted; \
                     --without-archive deletes without asking"
                )
            })?;
        let Some((at, why)) = lacking else {
            outln!("  {place} has all of the files that would go, as far as it was looked at");
            return Ok(None);
        };
        let file = goes[at];
        let who = format!("{why} ({place})");
        outln!("  {} of {} is kept for the archive: {}", file.name, file.timeline(), style::clean(&why));
        let from = NeedFrom::Place { timeline: file.timeline(), file: file.name.clone(), before: 0 };
        let kept: Arc<dyn Readers> = Arc::new(Lacking(vec![Need { who, from }]));
        purger.heeds(Arc::downgrade(&kept));
        Ok(Some(kept))
    }
}
