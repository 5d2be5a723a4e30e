//! What an archive holds of the sources that are to be archived in it, and whether the keys here open it: so that a prefix that was
//! mistyped, or a key that was lost, is seen before it is needed.

use crate::doctor::Finding;
use archive::chain::history::{Archived, ArchivedFile, History};
use archive::chain::sources::sources;
use archive::chain::{Chain, ChainError};
use archive::reader::{ReadError, Reader};
use archive::segment::{OpenError, Opener};
use archive::store::Store;
use config::ArchiveConfig;
use status::units;
use std::sync::Arc;

/// Looks for each of the sources. Nothing is written.
pub(super) fn look(store: &Arc<dyn Store>, config: &ArchiveConfig, names: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let identities = match config.identities() {
        Ok(identities) => identities,
        Err(error) => return vec![Finding::error(format!("identity in [archive]: {error}"))],
    };
    findings.extend(identities.remarks().iter().map(Finding::warning));
    let signing = match config.signing() {
        Ok(signing) => signing,
        Err(error) => return vec![Finding::error(format!("sign_key in [archive]: {error}"))],
    };
    let opener = Arc::new(Opener::new(identities).trusting(signing.trust));
    let keys =
        Keys { are_here: !config.identity.is_empty(), reader: Reader { store: store.clone(), opener } };
    let mut absent = Vec::new();
    for name in names {
        let mut chain = match keys.reader.chain(name) {
            Ok(chain) => chain,
            Err(error) => {
                findings.push(Finding::error(format!("{name}: its commits cannot be read: {error}")));
                continue;
            }
        };
        let hole = chain.check_whole(&**store).err();
        if chain.history().timelines.is_empty() && hole.is_none() {
            absent.push(*name);
            continue;
        }
        findings.push(held(name, chain.history()));
        findings.push(match hole {
            Some(error) => Finding::error(format!("{name}: what was committed later cannot be read: {error}")),
            None => Finding::ok(format!(
                "{name}: no commit is missing. Whether every object is there: binlogd verify {} --sample 0; whether each has the bytes \
                 that were uploaded: without --sample",
                config.location
            )),
        });
        findings.extend(signed(name, &chain, signing.key.is_some()));
        findings.extend(keys.look(name, chain.history()));
    }
    findings.extend(not_there(&**store, &absent));
    findings
}

/// Whose the commits are; an archive that is signed is not gone on with without a key.
fn signed(name: &str, chain: &Chain, is_key_here: bool) -> Option<Finding> {
    match (chain.signed_since(), chain.history().signed) {
        (Some(since), _) => Some(Finding::ok(format!(
            "{name}: all commits from {since} to {} are signed by sign_key or by one of signed_by",
            chain.history().seq
        ))),
        (None, true) if !is_key_here => Some(Finding::error(format!("{name}: {}", ChainError::NoKey))),
        _ => None,
    }
}

fn files(history: &History) -> impl DoubleEndedIterator<Item = &Arc<ArchivedFile>> {
    history.timelines.values().flat_map(|timeline| &timeline.files)
}

fn held(name: &str, history: &History) -> Finding {
    let plain = files(history).map(|file| file.end()).sum();
    let timelines: Vec<(&String, &Arc<Archived>)> = history.timelines.iter().collect();
    let end = timelines.last().and_then(|(timeline, archived)| Some((timeline, archived.files.last()?)));
    let end = end.map_or_else(String::new, |(timeline, file)| {
        let gtids = if file.gtids.is_empty() { String::new() } else { format!(", GTIDs {}", file.gtids) };
        format!(", up to {}:{} of {timeline}{gtids}", file.name, file.end())
    });
    let at = history.at.map_or_else(String::new, |at| format!("; last commit {at:.0}"));
    Finding::ok(format!(
        "{name}: the archive has {} of binary logs in {}{end}{at}",
        units::bytes(plain),
        units::counted(files(history).count() as u64, "file")
    ))
}

/// Nothing of a source is as it should be before its first upload, and only then.
fn not_there(store: &dyn Store, absent: &[&str]) -> Option<Finding> {
    let names = absent.join(", ");
    if absent.is_empty() {
        return None;
    }
    // An account that may see its own source alone is not to be blamed here.
    let others: Vec<String> = sources(store).ok()?.into_iter().collect();
    if others.is_empty() {
        return Some(Finding::ok(format!(
            "there is no archive at this place yet: the first upload of {names} begins one"
        )));
    }
    let mut finding = Finding::warning(format!(
        "the archive has nothing of {names}; it has history of: {}",
        others.join(", ")
    ));
    finding.why = "that is right for a source that is new. One that was archived before under another name, or at another prefix, would \
                   begin a second archive here: correct name or url first"
        .to_owned();
    Some(finding)
}

/// The private keys of `identity`.
struct Keys {
    reader: Reader,
    are_here: bool,
}

impl Keys {
    /// Tries them on the oldest and on the newest bytes: keys change in between.
    fn look(&self, name: &str, history: &History) -> Option<Finding> {
        let mut encrypted = files(history).filter(|file| !file.keys().is_empty());
        let newest = encrypted.next_back()?;
        let oldest = encrypted.next();
        if !self.are_here {
            let keys = Vec::from_iter(newest.keys()).join(", ");
            return Some(Finding::ok(format!(
                "{name}: encrypted for {keys}. No identity is configured, so this machine cannot read what the archive has: readers of \
                 the port get local files alone"
            )));
        }
        let tried: Vec<&Arc<ArchivedFile>> = oldest.into_iter().chain([newest]).collect();
        for file in &tried {
            if let Err(error) = self.open_one(file) {
                let mut finding = Finding::error(format!("{name}: {} cannot be read: {error}", file.name));
                if matches!(error, ReadError::Open(OpenError::NoIdentity { .. })) {
                    finding.why = "readers of old files, and a new binlogd that begins from the archive, would fail on it: add the private \
                                   key to identity in [archive]"
                        .to_owned();
                }
                return Some(finding);
            }
        }
        let which = tried.iter().map(|file| &*file.name).collect::<Vec<_>>().join(" and ");
        Some(Finding::ok(format!("{name}: the keys of identity open what was tried, of {which}")))
    }

    fn open_one(&self, file: &ArchivedFile) -> Result<(), ReadError> {
        let segments = self.reader.segments(file)?;
        let encrypted = segments.iter().rfind(|segment| !segment.keys.is_empty());
        encrypted.map_or(Ok(()), |segment| self.reader.segment(segment).map(drop))
    }
}
