//! The log backwards from a place: what it says of a row, which may have had another key before, of a table that may have had another
//! name. And the first that it says behind a place.

use crate::line::{Beside, FileAt, Place};
use crate::reader::{Batch, Reader, Within};
use crate::seen::{Note, Seen};

/// What comes next.
pub(crate) enum Step {
    Seen(Seen),
    /// Nothing more that is held, and why.
    Edge(String),
}

/// See [the module](self).
pub(crate) struct Backward {
    file: FileAt,
    until: Within,
    batch: Option<Batch>,
}

impl Backward {
    /// From a place on.
    pub(crate) fn from(place: Place) -> Backward {
        Backward { file: place.file, until: (place.at, 0), batch: None }
    }

    /// The next older one. The reader follows the row: its key and the table's name are those before it then.
    ///
    /// # Errors
    /// In words, when a file cannot be read.
    pub(crate) fn next(&mut self, reader: &mut Reader<'_>) -> Result<Step, String> {
        loop {
            let batch = match &mut self.batch {
                Some(batch) => batch,
                none => none.insert(reader.read(self.file, ((0, 0), self.until), false)?),
            };
            if let Some((within, seen)) = batch.seen.pop_back() {
                self.until = within;
                if follow(&seen, reader) {
                    self.batch = None;
                }
                return Ok(Step::Seen(seen));
            }
            if !batch.is_cut {
                match reader.line.before(self.file) {
                    Beside::Edge(why) => return Ok(Step::Edge(why)),
                    Beside::File(file) => (self.file, self.until) = (file, (u64::MAX, usize::MAX)),
                }
            }
            self.batch = None;
        }
    }
}

/// Whether the row had another key, or the table another name.
fn follow(seen: &Seen, reader: &mut Reader<'_>) -> bool {
    match seen {
        Seen::Row(change) if change.has_key && !change.had_key => {
            let Some(other) = &change.other_key else { return false };
            reader.key = other.clone();
        }
        Seen::Moved { from: Some(from), .. } => reader.table = from.clone(),
        _ => return false,
    }
    true
}

/// What comes first behind a place.
pub(crate) struct Ahead {
    pub(crate) step: Step,
    /// Definitions before it that may have changed the columns.
    pub(crate) altered: Vec<Note>,
}

/// The first that decides something behind a place.
///
/// # Errors
/// In words, when a file cannot be read.
pub(crate) fn ahead(reader: &mut Reader<'_>, place: Place) -> Result<Ahead, String> {
    let (mut file, mut from, mut altered) = (place.file, (place.at, 0), Vec::new());
    loop {
        let batch = reader.read(file, (from, (u64::MAX, usize::MAX)), true)?;
        let mut moved = None;
        for (within, seen) in batch.seen {
            match seen {
                Seen::Altered(note) => altered.push(note),
                Seen::Ended { .. } => {}
                Seen::Moved { to: Some(to), .. } => {
                    moved = Some((within, to));
                    break;
                }
                seen => return Ok(Ahead { step: Step::Seen(seen), altered }),
            }
        }
        if let Some(((at, row), to)) = moved {
            reader.table = to;
            from = (at, row + 1);
            continue;
        }
        match reader.line.behind(file) {
            Beside::Edge(why) => return Ok(Ahead { step: Step::Edge(why), altered }),
            Beside::File(next) => (file, from) = (next, (0, 0)),
        }
    }
}
