//! The bytes of an index as a file: a table of sections, each with its checksum, so that a search reads only what it needs.
//!
//! `blsearch` (8 bytes), version (4), length and CRC32 of each section (4 × (4 + 4)), CRC32 of all before (4), then the sections:
//! head, tables, details, blocks, each in the order of its `write`. Four-byte numbers have the lowest byte first. In the sections
//! a number is written in groups of seven bits, the lowest first, with the eighth bit set where another group follows; a signed
//! one is doubled first and turned over where it was below zero (zigzag). A text has its length before it, a flag is one byte, a
//! list has its number before it. Times are microseconds since 1970.
//!
//! In an archive one line stands in front: `blsidx`, the SHA-256 of the whole file and that of the index, in hexadecimal digits.

use super::blocks::{self, Block};
use super::bytes::Writing;
use super::details::Details;
use super::error::IndexError;
use super::head::Head;
use super::identity::Identity;
use super::tables::{self, IndexedTable};
use binlog::storage::ReadFile;

/// The first bytes of an index.
const MAGIC: &[u8; 8] = b"blsearch";
/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 3;
/// Magic, version, four sections of a length and a checksum each, and the checksum of all that.
const HEADER_LEN: usize = 8 + 4 + SECTIONS * 8 + 4;
const SECTIONS: usize = 4;
/// Read at once; in most cases the head and the tables are within.
const FIRST_READ: usize = 4096;
/// Longest section that is taken into memory, in bytes.
const SECTION_BYTES_MAX: u32 = 256 << 20;

/// A whole index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchIndex {
    /// What of the whole file is known.
    pub head: Head,
    /// The tables that it changes.
    pub tables: Vec<IndexedTable>,
    /// What is worth listing.
    pub details: Details,
    /// Where transactions begin.
    pub blocks: Vec<Block>,
}

impl SearchIndex {
    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut sections: [Writing; SECTIONS] = Default::default();
        self.head.write(&mut sections[0]);
        tables::write(&self.tables, &mut sections[1]);
        self.details.write(&mut sections[2]);
        blocks::write(&self.blocks, &mut sections[3]);
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&VERSION.to_le_bytes());
        for Writing(section) in &sections {
            file.extend_from_slice(&(section.len() as u32).to_le_bytes());
            file.extend_from_slice(&crc32fast::hash(section).to_le_bytes());
        }
        file.extend_from_slice(&crc32fast::hash(&file).to_le_bytes());
        sections.iter().for_each(|Writing(section)| file.extend_from_slice(section));
        file
    }

    /// Bytes of what can be made shorter: the tables, the definitions, writes over time, the blocks.
    pub(super) fn section_lens(&self) -> [usize; 4] {
        let len = |write: &dyn Fn(&mut Writing)| {
            let mut out = Writing::default();
            write(&mut out);
            out.0.len()
        };
        let only = |details: Details| len(&|out| details.write(out));
        let details = &self.details;
        [
            len(&|out| tables::write(&self.tables, out)),
            only(Details { definitions: details.definitions.clone(), ..Details::default() }),
            only(Details { histogram: details.histogram.clone(), ..Details::default() }),
            len(&|out| blocks::write(&self.blocks, out)),
        ]
    }

    /// Reads a whole index.
    ///
    /// # Errors
    /// When the bytes are none of this version, or damaged.
    pub fn parse(bytes: &[u8]) -> Result<SearchIndex, IndexError> {
        let sections = Sections::parse(bytes.get(..HEADER_LEN).unwrap_or(bytes), bytes.len() as u64)?;
        let section = |number: usize| {
            let (at, len) = sections.place(number);
            sections.checked(number, bytes.get(at as usize..at as usize + len).unwrap_or_default())
        };
        Ok(SearchIndex {
            head: Head::read(section(0)?)?,
            tables: tables::read(section(1)?)?,
            details: Details::read(section(2)?)?,
            blocks: blocks::read(section(3)?)?,
        })
    }
}

/// The table of sections.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sections([(u32, u32); SECTIONS]);

impl Sections {
    fn parse(header: &[u8], file_len: u64) -> Result<Sections, IndexError> {
        let word = |at: usize| header.get(at..)?.first_chunk::<4>().map(|word| u32::from_le_bytes(*word));
        if !header.starts_with(MAGIC) || word(8) != Some(VERSION) {
            return Err(IndexError::OtherVersion);
        }
        let covered = header.get(..HEADER_LEN - 4).ok_or(IndexError::Damaged("it is cut short"))?;
        if word(HEADER_LEN - 4) != Some(crc32fast::hash(covered)) {
            return Err(IndexError::Damaged("the checksum of its first bytes is wrong"));
        }
        let mut sections = [(0, 0); SECTIONS];
        for (number, section) in sections.iter_mut().enumerate() {
            *section = (word(12 + number * 8).unwrap_or(0), word(16 + number * 8).unwrap_or(0));
        }
        let sum: u64 = sections.iter().map(|(len, _)| u64::from(*len)).sum();
        if sections.iter().any(|(len, _)| *len > SECTION_BYTES_MAX) || sum + HEADER_LEN as u64 != file_len {
            return Err(IndexError::Damaged("it is not as long as it says"));
        }
        Ok(Sections(sections))
    }

    /// Where a section begins, and its length.
    fn place(&self, number: usize) -> (u64, usize) {
        let before: u64 = self.0[..number].iter().map(|(len, _)| u64::from(*len)).sum();
        (HEADER_LEN as u64 + before, self.0[number].0 as usize)
    }

    fn checked<'a>(&self, number: usize, section: &'a [u8]) -> Result<&'a [u8], IndexError> {
        let (len, checksum) = self.0[number];
        if section.len() != len as usize || crc32fast::hash(section) != checksum {
            return Err(IndexError::Damaged("the checksum of a section is wrong"));
        }
        Ok(section)
    }
}

/// An index of which only what is asked for is read.
#[derive(Debug)]
pub struct IndexFile {
    file: Box<dyn ReadFile>,
    sections: Sections,
    first: Vec<u8>,
    head: Head,
}

impl IndexFile {
    /// Opens the index of the file with that identity, and reads its head.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or is of another version or another file.
    pub fn open(file: Box<dyn ReadFile>, of: &Identity) -> Result<IndexFile, IndexError> {
        let mut first = vec![0; FIRST_READ];
        let read = file.read_full_at(&mut first, 0)?;
        first.truncate(read);
        let len = if read < FIRST_READ { read as u64 } else { file.size()? };
        let sections = Sections::parse(&first, len)?;
        let head = Head::read(&section(&*file, &sections, &first, 0)?)?;
        if head.identity != *of {
            return Err(IndexError::OtherFile);
        }
        Ok(IndexFile { file, sections, first, head })
    }

    /// What of the whole file is known.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn whole(&self) -> Result<SearchIndex, IndexError> {
        Ok(SearchIndex {
            head: self.head.clone(),
            tables: self.tables()?,
            details: self.details()?,
            blocks: self.blocks()?,
        })
    }

    /// The tables that the file changes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn tables(&self) -> Result<Vec<IndexedTable>, IndexError> {
        tables::read(&section(&*self.file, &self.sections, &self.first, 1)?)
    }

    /// What of the file is worth listing.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn details(&self) -> Result<Details, IndexError> {
        Details::read(&section(&*self.file, &self.sections, &self.first, 2)?)
    }

    /// Where transactions begin.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn blocks(&self) -> Result<Vec<Block>, IndexError> {
        blocks::read(&section(&*self.file, &self.sections, &self.first, 3)?)
    }
}

fn section(
    file: &dyn ReadFile,
    sections: &Sections,
    first: &[u8],
    number: usize,
) -> Result<Vec<u8>, IndexError> {
    let (at, len) = sections.place(number);
    let known = usize::try_from(at).ok().and_then(|at| first.get(at..at.checked_add(len)?));
    if let Some(known) = known {
        return sections.checked(number, known).map(<[u8]>::to_vec);
    }
    let mut bytes = vec![0; len];
    let read = file.read_full_at(&mut bytes, at)?;
    bytes.truncate(read);
    sections.checked(number, &bytes)?;
    Ok(bytes)
}
