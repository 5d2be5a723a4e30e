//! How long the values of a row are: enough to step from row to row, and so to count them.

use super::old_temporal::lengths;
use super::table_map::TableColumns;
use crate::event::error::EventError;
use crate::event::fields::packed_integer;

/// How long a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::event) enum Width {
    /// Always so many bytes.
    Fixed(u32),
    /// So many bytes state the length of what follows them.
    Prefixed(u8),
}

/// The lengths of a table's columns. An *image* is one row as it was or as it became: a bit for each column that is there and
/// NULL, then the values of those that are there and not NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowImages {
    pub(in crate::event) widths: Vec<Width>,
    /// Those that MariaDB may have with fractions that the log does not tell.
    pub(in crate::event) old: Vec<(usize, u8, &'static [usize])>,
    /// All of them, those that always have the same length and stand together in one.
    joined: Vec<Width>,
    /// Columns of JSON, which partial updates have bits for.
    json_columns: usize,
}

impl RowImages {
    /// Reads the types of a table.
    ///
    /// Bytes of metadata a column, and what they say (`Field::save_field_metadata` and `calc_field_size` tell the same in the
    /// servers): FLOAT, DOUBLE, the BLOBs, JSON, GEOMETRY and VECTOR 1, the size of the length; TIMESTAMP, DATETIME and TIME with
    /// fractions 1, their digits; VARCHAR 2, the longest value; BIT 2, bits and bytes; DECIMAL 2, digits and those behind the
    /// point; CHAR, ENUM and SET 2, their own type and length in one.
    ///
    /// # Errors
    /// When a type is not known, as its length is not either, or the metadata is cut short.
    pub fn of(columns: &TableColumns<'_>) -> Result<RowImages, EventError> {
        const CUT: EventError = EventError::Malformed("the metadata of a TABLE_MAP event is cut short");
        let mut metadata = columns.metadata;
        let mut widths = Vec::with_capacity(columns.types.len());
        for code in columns.types {
            let len = metadata_len(*code)?;
            let (own, rest) = metadata.split_at_checked(len).ok_or(CUT)?;
            metadata = rest;
            widths.push(width(*code, own)?);
        }
        let old =
            columns.types.iter().enumerate().filter_map(|(at, code)| Some((at, *code, lengths(*code)?)));
        let old = old.collect();
        let json_columns = columns.types.iter().filter(|code| **code == JSON).count();
        Ok(RowImages { joined: joined(widths.iter().copied()), widths, old, json_columns })
    }

    /// How many columns the table has.
    pub fn columns(&self) -> usize {
        self.widths.len()
    }

    /// Takes the value of a column off the front, without the length before it. `None` when it is cut short.
    pub(crate) fn value<'a>(&self, column: usize, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let width = self.widths.get(column)?;
        let behind = width.step(rest)?;
        let own = &rest[..rest.len() - behind.len()];
        *rest = behind;
        match width {
            Width::Fixed(_) => Some(own),
            Width::Prefixed(size) => own.get(usize::from(*size)..),
        }
    }

    /// The metadata of each column, as [`of`](Self::of) reads them.
    pub(crate) fn metadata_of<'a>(columns: &TableColumns<'a>) -> Option<Vec<&'a [u8]>> {
        let mut rest = columns.metadata;
        let mut take = |code: &u8| {
            let (own, behind) = rest.split_at_checked(metadata_len(*code).ok()?)?;
            rest = behind;
            Some(own)
        };
        columns.types.iter().map(&mut take).collect()
    }

    /// Counts the rows that `bytes` are, each of an image of the columns in each of `present`, a bit for each column: one image,
    /// or that before and that after an update. `None` when the bytes are not exactly that.
    ///
    /// In a partial update (`is_partial`) there stands before the image after the update what is partial of it: a packed integer,
    /// and where its first bit is set a bit for each column of JSON of the table (`PARTIAL_UPDATE_ROWS_EVENT`).
    pub fn count(&self, present: &[&[u8]], is_partial: bool, bytes: &[u8]) -> Option<u64> {
        let shapes: Vec<Shape> = present.iter().map(|present| self.shape(present)).collect::<Option<_>>()?;
        if shapes.iter().all(|shape| shape.widths.is_empty()) {
            // Rows of no columns have no length: nobody can count them.
            return bytes.is_empty().then_some(0);
        }
        let (mut rest, mut rows) = (bytes, 0);
        while !rest.is_empty() {
            for (at, shape) in shapes.iter().enumerate() {
                if is_partial && at == 1 {
                    let options = packed_integer(&mut rest).ok()?;
                    if options & 1 != 0 {
                        rest = rest.get(self.json_columns.div_ceil(8)..)?;
                    }
                }
                rest = shape.image(rest)?;
            }
            rows += 1;
        }
        Some(rows)
    }

    /// `None` when there are fewer bits than columns.
    fn shape(&self, present: &[u8]) -> Option<Shape> {
        if present.len() != self.widths.len().div_ceil(8) {
            return None;
        }
        let is_there = |at: &usize| present[at / 8] & (1 << (at % 8)) != 0;
        let there: Vec<usize> = (0..self.widths.len()).filter(is_there).collect();
        if there.len() == self.widths.len() {
            return Some(Shape { widths: self.widths.clone(), joined: self.joined.clone() });
        }
        let widths: Vec<Width> = there.into_iter().map(|at| self.widths[at]).collect();
        Some(Shape { joined: joined(widths.iter().copied()), widths })
    }
}

/// The columns that are there in the images of one event.
struct Shape {
    widths: Vec<Width>,
    joined: Vec<Width>,
}

impl Shape {
    /// What follows one image.
    fn image<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (nulls, mut rest) = bytes.split_at_checked(self.widths.len().div_ceil(8))?;
        if !self.has_null(nulls) {
            for width in &self.joined {
                rest = width.step(rest)?;
            }
            return Some(rest);
        }
        for (at, width) in self.widths.iter().enumerate() {
            if nulls[at / 8] & (1 << (at % 8)) == 0 {
                rest = width.step(rest)?;
            }
        }
        Some(rest)
    }

    /// The bits behind the last column are set or not, as it comes.
    fn has_null(&self, nulls: &[u8]) -> bool {
        let Some((last, whole)) = nulls.split_last() else { return false };
        let used = match self.widths.len() % 8 {
            0 => 0xff,
            bits => (1u8 << bits) - 1,
        };
        last & used != 0 || whole.iter().any(|byte| *byte != 0)
    }
}

impl Width {
    /// What follows one value.
    #[inline]
    pub(in crate::event) fn step(self, bytes: &[u8]) -> Option<&[u8]> {
        match self {
            Width::Fixed(len) => bytes.get(len as usize..),
            Width::Prefixed(size) => {
                let size = usize::from(size);
                let mut len = [0; 4];
                len[..size].copy_from_slice(bytes.get(..size)?);
                bytes.get(size.checked_add(u32::from_le_bytes(len) as usize)?..)
            }
        }
    }
}

fn joined(widths: impl Iterator<Item = Width>) -> Vec<Width> {
    let mut joined: Vec<Width> = Vec::new();
    for width in widths {
        match (joined.last_mut(), width) {
            (Some(Width::Fixed(before)), Width::Fixed(len)) => *before += len,
            _ => joined.push(width),
        }
    }
    joined
}

const JSON: u8 = 245;

/// Bytes of metadata that a type has.
fn metadata_len(code: u8) -> Result<usize, EventError> {
    match code {
        // TINY to LONG, NULL to TIME and DATETIME of old, YEAR, NEWDATE
        1..=3 | 6..=14 => Ok(0),
        // FLOAT, DOUBLE; TIMESTAMP, DATETIME, TIME with fractions; BLOBs, JSON, GEOMETRY, VECTOR; MariaDB's compressed BLOB
        4 | 5 | 17..=19 | 249..=252 | JSON | 255 | 242 | 140 => Ok(1),
        // VARCHAR, BIT, DECIMAL, ENUM, SET, VAR_STRING, STRING; MariaDB's compressed VARCHAR
        15 | 16 | 246..=248 | 253 | 254 | 141 => Ok(2),
        _ => Err(UNKNOWN),
    }
}

const UNKNOWN: EventError = EventError::Malformed("a column is of a type whose length is not known");

fn width(code: u8, metadata: &[u8]) -> Result<Width, EventError> {
    let fixed = |len: usize| Ok(Width::Fixed(len as u32));
    let byte = |at: usize| usize::from(metadata[at]);
    match code {
        1 | 13 => fixed(1),
        2 => fixed(2),
        3 | 4 | 7 => fixed(4),
        5 | 8 | 12 => fixed(8),
        6 => fixed(0),
        9..=11 | 14 => fixed(3),
        15 | 253 | 141 => {
            let longest = u16::from_le_bytes([metadata[0], metadata[1]]);
            Ok(Width::Prefixed(if longest > 255 { 2 } else { 1 }))
        }
        16 => fixed(byte(1) + usize::from(byte(0) > 0)),
        17 => fixed(4 + byte(0).div_ceil(2)),
        18 => fixed(5 + byte(0).div_ceil(2)),
        19 => fixed(3 + byte(0).div_ceil(2)),
        246 => decimal(byte(0), byte(1)),
        247 | 248 => fixed(byte(1)),
        249..=252 | JSON | 255 | 242 | 140 => match metadata[0] {
            size @ 1..=4 => Ok(Width::Prefixed(size)),
            _ => Err(UNKNOWN),
        },
        254 => string(metadata[0], metadata[1]),
        _ => Err(UNKNOWN),
    }
}

/// CHAR and BINARY, and in their place ENUM and SET. The two high bits of a length stand in the first byte, turned round, where
/// the type has ones.
fn string(first: u8, second: u8) -> Result<Width, EventError> {
    let own = first | 0x30;
    if own == 247 || own == 248 {
        return Ok(Width::Fixed(u32::from(second)));
    }
    if own != 254 {
        return Err(UNKNOWN);
    }
    let longest = (u16::from((first & 0x30) ^ 0x30) << 4) | u16::from(second);
    Ok(Width::Prefixed(if longest > 255 { 2 } else { 1 }))
}

/// Nine digits take four bytes, and fewer as many as they need; those before and behind the point for themselves.
fn decimal(precision: usize, scale: usize) -> Result<Width, EventError> {
    const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let before = precision.checked_sub(scale).ok_or(UNKNOWN)?;
    let len = |digits: usize| digits / 9 * 4 + BYTES[digits % 9];
    Ok(Width::Fixed((len(before) + len(scale)) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn images(types: &[u8], metadata: &[u8]) -> Result<RowImages, EventError> {
        RowImages::of(&TableColumns { table_id: [0; 6], types, metadata, nullable: &[], optional: &[] })
    }

    /// Each type with its metadata and a value of it, as the servers write them.
    const VALUES: &[(u8, &[u8], &[u8])] = &[
        (1, &[], &[1]),
        (2, &[], &[1, 2]),
        (3, &[], &[1, 2, 3, 4]),
        (4, &[4], &[0; 4]),
        (5, &[8], &[0; 8]),
        (7, &[], &[0; 4]),
        (8, &[], &[0; 8]),
        (9, &[], &[0; 3]),
        (10, &[], &[0; 3]),
        (11, &[], &[0; 3]),
        (12, &[], &[0; 8]),
        (13, &[], &[70]),
        (15, &[255, 0], &[2, b'a', b'b']),
        (15, &[0, 1], &[2, 0, b'a', b'b']),
        (16, &[1, 1], &[1, 255]),
        (16, &[0, 8], &[0; 8]),
        (17, &[0], &[0; 4]),
        (17, &[6], &[0; 7]),
        (18, &[3], &[0; 7]),
        (19, &[1], &[0; 4]),
        (246, &[10, 2], &[0x80, 0, 0, 1, 50]),
        (246, &[65, 30], &[0; 30]),
        (246, &[9, 0], &[0x80, 0, 0, 1]),
        (249, &[1], &[1, b'x']),
        (252, &[2], &[1, 0, b'x']),
        (250, &[3], &[1, 0, 0, b'x']),
        (251, &[4], &[1, 0, 0, 0, b'x']),
        (245, &[4], &[0, 0, 0, 0]),
        (255, &[4], &[2, 0, 0, 0, 1, 2]),
        (242, &[4], &[4, 0, 0, 0, 0, 0, 0, 0]),
        (254, &[247, 1], &[3]),
        (254, &[248, 8], &[0; 8]),
        (254, &[254, 40], &[1, b'x']),
        // CHAR(200) of four bytes a character: 800 = 0x320.
        (254, &[0xfe ^ 0x30, 0x20], &[1, 0, b'x']),
        (140, &[2], &[1, 0, b'x']),
        (141, &[44, 1], &[1, 0, b'x']),
    ];

    #[test]
    fn each_type_is_stepped_over() {
        let (mut types, mut metadata, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (code, own, value) in VALUES {
            let one = images(&[*code], own).unwrap();
            let row = [&[0xfe][..], value].concat();
            assert_eq!(one.count(&[&[0xff]], false, &row), Some(1), "type {code} {own:?}");
            assert_eq!(one.count(&[&[0x01]], false, &[&row[..], &row].concat()), Some(2), "type {code}");
            assert_eq!(one.count(&[&[1]], false, &row[..row.len() - 1]), None, "type {code} cut");
            assert_eq!(one.count(&[&[1]], false, &[1, 1, 1]), Some(3), "NULLs of type {code}");
            types.push(*code);
            metadata.extend_from_slice(own);
            values.extend_from_slice(value);
        }
        let all = images(&types, &metadata).unwrap();
        let bits = vec![0xff; types.len().div_ceil(8)];
        let row = [&vec![0; bits.len()][..], &values].concat();
        assert_eq!(all.count(&[&bits], false, &row.repeat(7)), Some(7));
        assert_eq!(all.count(&[&bits, &bits], false, &row.repeat(8)), Some(4), "updates");
        assert_eq!(all.count(&[&bits, &bits], false, &row.repeat(7)), None, "half an update");
        assert_eq!(all.columns(), VALUES.len());
    }

    #[test]
    fn columns_that_are_not_there_take_no_bytes() {
        let table = images(&[3, 15, 3, 1], &[64, 0]).unwrap();
        // The second and the fourth.
        let row = [0b10, 1, b'x'];
        assert_eq!(table.count(&[&[0b1010]], false, &row), Some(1));
        assert_eq!(table.count(&[&[0b0001], &[0b1000]], false, &[0, 1, 2, 3, 4, 0, 9]), Some(1));
        assert_eq!(table.count(&[&[]], false, &row), None, "too few bits");
        assert_eq!(table.count(&[&[0]], false, &row), None, "no column");
    }

    #[test]
    fn a_partial_update_says_what_is_partial() {
        let table = images(&[3, 245], &[4]).unwrap();
        let before = [0, 1, 0, 0, 0, 0, 0, 0, 0];
        let partial = [&before[..], &[1, 1], &before].concat();
        let whole = [&before[..], &[0], &before].concat();
        assert_eq!(table.count(&[&[3], &[3]], true, &[partial, whole].concat()), Some(2));
    }

    #[test]
    fn what_is_not_known_is_not_counted() {
        for (types, metadata) in
            [(&[0][..], &[][..]), (&[20], &[8, 8]), (&[15], &[1]), (&[252], &[5]), (&[254], &[3, 3])]
        {
            assert!(images(types, metadata).is_err(), "{types:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            types in proptest::collection::vec(any::<u8>(), 0..10),
            metadata in proptest::collection::vec(any::<u8>(), 0..20),
            bits in proptest::collection::vec(any::<u8>(), 0..3),
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(table) = images(&types, &metadata) {
                let _ = table.count(&[&bits], false, &bytes);
                let _ = table.count(&[&bits, &bits], true, &bytes);
            }
        }
    }
}
