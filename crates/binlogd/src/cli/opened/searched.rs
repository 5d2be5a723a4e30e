//! What a verb searches: copies, or an archive, as its command line names them.

use crate::cli::args::store::{StoreArgs, is_url};
use crate::cli::{style, units};
use repair::detail::Definitions;
use repair::searched::{Outcome, Searchable, SearchedSource};
use std::collections::HashMap;
use std::path::Path;

/// The files of a copy, whether a daemon writes it or not, or of an archive. `timeline` is a number, or the name of a folder.
///
/// # Errors
/// In words: it cannot be read, or has no such source or timeline.
pub(in crate::cli) fn choose(
    data_dir: &Path,
    store: &StoreArgs,
    timeline: Option<&str>,
) -> Result<Vec<SearchedSource>, String> {
    let found = match data_dir.to_str().filter(|text| is_url(text)) {
        Some(url) => {
            let opened = store.open(url).map_err(|error| format!("{error:#}"))?;
            Searchable::Archive { reader: &opened.reader, sources: &opened.sources }.sources(timeline)
        }
        None => {
            if let Some(flag) = store.given() {
                return Err(format!("{flag} is for an archive, as s3://bucket/prefix, and not for a folder"));
            }
            Searchable::Copies { data_dir, source: store.source.as_deref() }.sources(timeline)
        }
    };
    found.map_err(|error| error.to_string())
}

/// What the logs say of the definitions of tables, by the name of the source, for a verb that asks a server how tables are now.
///
/// # Errors
/// In words, when there is nothing to be searched.
pub(in crate::cli) fn definitions(
    data_dir: &Path,
    store: &StoreArgs,
) -> Result<HashMap<String, Definitions>, String> {
    let (definitions, outcome) = repair::searched::definitions(&choose(data_dir, store, None)?);
    outcome.errors.iter().for_each(|error| tell_error(error));
    Ok(definitions)
}

/// Says on standard error what is to be known of a search.
pub(in crate::cli) fn tell(outcome: &Outcome, limit: u64) {
    outcome.errors.iter().for_each(|error| tell_error(error));
    if let Some(note) = outcome.undecided_in_words() {
        errln!("note: {note}");
    }
    if outcome.is_enough {
        errln!("note: stopped after {}; there may be more: --limit 0 takes all", units::count(limit));
    }
}

/// Says that something could not be looked at.
pub(in crate::cli) fn tell_error(error: &str) {
    errln!("error: {}", style::clean(error));
}
