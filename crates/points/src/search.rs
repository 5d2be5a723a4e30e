//! Searching files: by their indexes where there are some, else by walking them.

use crate::criteria::{Criteria, Verdict};
use crate::index::{Block, Builder, Head, Identity, IndexError, IndexFile, SearchIndex, build};
use crate::transaction::Transaction;
use crate::walk::{Options, Walk, WalkError};
use binlog::search_index;
use binlog::storage::{ReadFile, Storage};
use std::io;
use std::path::Path;

/// What is done with each transaction that is found; false ends the search.
pub type Sink<'a> = dyn FnMut(&Transaction) -> bool + 'a;

/// How a file was searched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Searched {
    /// Bytes of it that were walked.
    pub walked: u64,
    /// Its index was there.
    pub had_index: bool,
    /// Its index was made.
    pub made_index: bool,
    /// Transactions of which nobody can tell whether they are what is searched for.
    pub unknown: u64,
    /// The sink has had enough.
    pub is_enough: bool,
}

/// Opens the index of the sealed file `name`, if there is one to believe.
///
/// # Errors
/// Why there is none.
pub fn open_index(
    storage: &dyn Storage,
    folder: &Path,
    name: &str,
    of: &Identity,
) -> Result<IndexFile, IndexError> {
    let file = storage.open_read(&search_index::path(folder, name))?;
    IndexFile::open(file, of)
}

/// The bytes of the index of the sealed file `name`, if there is one to believe: all of it was read and compared.
///
/// # Errors
/// Why there is none.
pub fn sound_index(storage: &dyn Storage, folder: &Path, name: &str) -> Result<Vec<u8>, IndexError> {
    let file = storage.open_read(&folder.join(name))?;
    let identity = Identity::of(&*file, file.size()?)?;
    let index = storage.open_read(&search_index::path(folder, name))?;
    let mut bytes = vec![0; usize::try_from(index.size()?).unwrap_or(usize::MAX)];
    let read = index.read_full_at(&mut bytes, 0)?;
    bytes.truncate(read);
    match SearchIndex::parse(&bytes)?.head.identity == identity {
        true => Ok(bytes),
        false => Err(IndexError::OtherFile),
    }
}

/// Makes the index of a sealed file, and keeps it where that can be done.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn make_index(
    storage: &dyn Storage,
    folder: &Path,
    name: &str,
    file: &dyn ReadFile,
    watch: &mut dyn FnMut(u64) -> io::Result<()>,
) -> Result<(SearchIndex, io::Result<()>), WalkError> {
    let index = build(file, file.size()?, watch)?;
    let kept = search_index::write(storage, folder, name, &index.to_bytes());
    Ok((index, kept))
}

/// An index that is made for a search; whether it could be kept does not matter.
fn made(
    storage: &dyn Storage,
    folder: &Path,
    name: &str,
    file: &dyn ReadFile,
    keeps: bool,
) -> Result<SearchIndex, WalkError> {
    match keeps {
        true => make_index(storage, folder, name, file, &mut |_| Ok(())).map(|(index, _)| index),
        false => build(file, file.size()?, &mut |_| Ok(())),
    }
}

/// The whole index of a file: of a sealed one as it stands, or made, and kept where it `keeps`; of a live one up to its last boundary, and not kept.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn index_of(
    storage: &dyn Storage,
    folder: &Path,
    name: &str,
    is_sealed: bool,
    keeps: bool,
) -> Result<SearchIndex, WalkError> {
    let file = storage.open_read(&folder.join(name))?;
    if is_sealed {
        let identity = Identity::of(&*file, file.size()?)?;
        return match open_index(storage, folder, name, &identity).and_then(|index| index.whole()) {
            Ok(index) => Ok(index),
            Err(_) => made(storage, folder, name, &*file, keeps),
        };
    }
    index_up_to_boundary(&*file)
}

/// The index of a file that may be written: up to its last boundary.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn index_up_to_boundary(file: &dyn ReadFile) -> Result<SearchIndex, WalkError> {
    let len = file.size()?;
    let mut builder = Builder::new(Identity::of(file, len)?);
    let mut walk = match Walk::open(file, len, Options::default()) {
        Err(WalkError::NotBegun) => return Ok(builder.finish()),
        walk => walk?,
    };
    while let Some(transaction) = walk.next_transaction()? {
        builder.add(transaction);
    }
    Ok(builder.finish())
}

/// Searches one file of a timeline. Of a sealed one the index is used, and made where there is none; it is kept where it `keeps`:
/// who is not the folder's owner would leave files there that its daemon cannot replace.
///
/// # Errors
/// When the file cannot be read or is damaged; what was found before was given.
pub fn search_file(
    storage: &dyn Storage,
    folder: &Path,
    name: &str,
    is_sealed: bool,
    keeps: bool,
    criteria: &Criteria,
    sink: &mut Sink<'_>,
) -> Result<Searched, WalkError> {
    let file = storage.open_read(&folder.join(name))?;
    if !is_sealed {
        return search_whole(&*file, criteria, sink);
    }
    let len = file.size()?;
    let mut searched = Searched::default();
    let identity = Identity::of(&*file, len)?;
    let parts = match open_index(storage, folder, name, &identity)
        .and_then(|index| chosen_of_file(&index, criteria))
    {
        Ok(parts) => {
            searched.had_index = true;
            parts
        }
        Err(_) => {
            let index = made(storage, folder, name, &*file, keeps)?;
            (searched.made_index, searched.walked) = (true, len);
            chosen(&index, criteria)
        }
    };
    if !parts.is_empty() {
        walk_parts(&*file, len, Some(&parts), criteria, &mut searched, sink)?;
    }
    Ok(searched)
}

/// Searches a sealed file by an index that somebody vouches to be the file's. The file is opened where parts of it are walked.
///
/// # Errors
/// As [`search_file`].
pub fn search_by_index(
    index: &SearchIndex,
    file: &dyn ReadFile,
    criteria: &Criteria,
    sink: &mut Sink<'_>,
) -> Result<Searched, WalkError> {
    let mut searched = Searched { had_index: true, ..Searched::default() };
    let parts = chosen(index, criteria);
    if !parts.is_empty() {
        walk_parts(file, file.size()?, Some(&parts), criteria, &mut searched, sink)?;
    }
    Ok(searched)
}

/// Searches a file without an index: one that is written, up to its last boundary, or one of which there is none.
///
/// # Errors
/// As [`search_file`].
pub fn search_whole(
    file: &dyn ReadFile,
    criteria: &Criteria,
    sink: &mut Sink<'_>,
) -> Result<Searched, WalkError> {
    let mut searched = Searched::default();
    match walk_parts(file, file.size()?, None, criteria, &mut searched, sink) {
        Err(WalkError::NotBegun) => Ok(searched),
        result => result.map(|()| searched),
    }
}

/// From where to where transactions may be what is searched for.
type Part = (u64, u64);

fn chosen_of_file(index: &IndexFile, criteria: &Criteria) -> Result<Vec<Part>, IndexError> {
    let head = index.head();
    if !criteria.may_be_in(head) {
        return Ok(Vec::new());
    }
    let wanted = if criteria.tables.is_empty() { None } else { criteria.wanted_tables(&index.tables()?) };
    if has_none(head, criteria, wanted.as_deref()) {
        return Ok(Vec::new());
    }
    let blocks = index.blocks()?;
    Ok(parts(&blocks, head.end, |block| criteria.may_be_in_block(head, block, wanted.as_deref())))
}

fn chosen(index: &SearchIndex, criteria: &Criteria) -> Vec<Part> {
    let head = &index.head;
    if !criteria.may_be_in(head) {
        return Vec::new();
    }
    let wanted = criteria.wanted_tables(&index.tables);
    if has_none(head, criteria, wanted.as_deref()) {
        return Vec::new();
    }
    parts(&index.blocks, head.end, |block| criteria.may_be_in_block(head, block, wanted.as_deref()))
}

/// Whether none of the wanted tables is in the file, and nothing that is wanted besides, whatever its blocks say.
fn has_none(head: &Head, criteria: &Criteria, wanted: Option<&[u32]>) -> bool {
    wanted.is_some_and(<[u32]>::is_empty)
        && !head.has_more_tables
        && !head.has_unread
        && !head.effects.intersects(criteria.besides)
}

/// The blocks that are wanted, those that stand together in one.
fn parts(blocks: &[Block], end: u64, is_wanted: impl Fn(&Block) -> bool) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        if !is_wanted(block) {
            continue;
        }
        let block_end = blocks.get(number + 1).map_or(end, |next| next.at);
        match parts.last_mut() {
            Some(last) if last.1 == block.at => last.1 = block_end,
            _ => parts.push((block.at, block_end)),
        }
    }
    parts
}

/// Walks those parts of a file, or all of it.
fn walk_parts(
    file: &dyn ReadFile,
    len: u64,
    parts: Option<&[Part]>,
    criteria: &Criteria,
    searched: &mut Searched,
    sink: &mut Sink<'_>,
) -> Result<(), WalkError> {
    let options = Options { text: criteria.text.clone(), ..Options::default() };
    let mut walk = Walk::open(file, len, options)?;
    let all = [(walk.begins_at(), u64::MAX)];
    for (from, to) in parts.unwrap_or(&all) {
        walk.seek(*from);
        while walk.boundary() < *to {
            let Some(transaction) = walk.next_transaction()? else { break };
            match criteria.judge(transaction) {
                Verdict::No => {}
                Verdict::Unknown => searched.unknown += 1,
                Verdict::Yes if sink(transaction) => {}
                Verdict::Yes => {
                    searched.is_enough = true;
                    return Ok(());
                }
            }
        }
        searched.walked += walk.at().saturating_sub(*from);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
