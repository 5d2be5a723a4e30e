//! Rows of MariaDB with dates and times of old, whose lengths no log tells: they are told only where no other lengths fit them.

use super::old_temporal::may_be;
use super::row_images::RowImages;
use crate::event::fields::is_set;

/// So many lengths of the columns of one table are tried.
const TRIED_MAX: usize = 1024;

/// A column, its type, and a length for it.
type Lengths = Vec<(usize, u8, usize)>;

impl RowImages {
    /// Of a table of MariaDB: whether the values of its old dates and times are without fractions, as the types say, because the rows cannot
    /// be read with any other lengths. True where there are none.
    pub(in crate::event) fn is_told(&self, present: &[&[u8]], bytes: &[u8]) -> bool {
        let is_there = |at: usize| present.iter().any(|bits| is_set(bits, at));
        let old: Vec<_> = self.old.iter().filter(|(at, ..)| is_there(*at)).collect();
        let ways = old.iter().try_fold(1, |ways: usize, (.., all)| ways.checked_mul(all.len()));
        let Some(ways) = ways.filter(|ways| *ways <= TRIED_MAX) else { return false };
        let lengths = |mut way: usize| -> Lengths {
            let mut next = |all: &[usize]| {
                let len = all[way % all.len()];
                way /= all.len();
                len
            };
            old.iter().map(|(at, code, all)| (*at, *code, next(all))).collect()
        };
        // The first way is the one without fractions.
        ways == 1
            || bytes.is_empty()
            || (0..ways).all(|way| self.fits(&lengths(way), present, bytes) == (way == 0))
    }

    fn fits(&self, lengths: &Lengths, present: &[&[u8]], bytes: &[u8]) -> bool {
        let there: Vec<Vec<usize>> =
            present.iter().map(|bits| (0..self.columns()).filter(|at| is_set(bits, *at)).collect()).collect();
        let mut rest = bytes;
        while !rest.is_empty() {
            let before = rest.len();
            for columns in &there {
                let Some(behind) = self.image_of(columns, lengths, rest) else { return false };
                rest = behind;
            }
            if rest.len() == before {
                return false;
            }
        }
        true
    }

    /// What follows one image of these columns.
    fn image_of<'a>(&self, columns: &[usize], lengths: &Lengths, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (nulls, mut rest) = bytes.split_at_checked(columns.len().div_ceil(8))?;
        // The bits behind the last column are set (`pack_row`, `sql/rpl_record.cc`).
        if (columns.len()..nulls.len() * 8).any(|bit| !is_set(nulls, bit)) {
            return None;
        }
        for (_, column) in columns.iter().enumerate().filter(|(nth, _)| !is_set(nulls, *nth)) {
            rest = match lengths.iter().find(|(at, ..)| at == column) {
                None => self.widths[*column].step(rest)?,
                Some((_, code, len)) => {
                    let (value, behind) = rest.split_at_checked(*len)?;
                    may_be(*code, value).then_some(behind)?
                }
            };
        }
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table_map::TableColumns;
    use super::*;

    /// INT, the types, INT.
    fn images(types: &[u8]) -> RowImages {
        let types = [&[3][..], types, &[3]].concat();
        RowImages::of(&TableColumns {
            table_id: [0; 6],
            types: &types,
            metadata: &[],
            nullable: &[0xff],
            optional: &[],
        })
        .unwrap()
    }

    fn row(values: &[&[u8]], columns: usize) -> Vec<u8> {
        let unused = !((1_u32 << columns) - 1) as u8;
        [&[unused][..], &[1, 0, 0, 0], &values.concat(), &[7, 0, 0, 0]].concat()
    }

    #[test]
    fn rows_are_told_where_no_other_lengths_fit() {
        let datetime = 20_161_221_175_716_u64.to_le_bytes();
        let packed = |digits: u32| {
            let seconds = (((2016 * 13 + 12) * 32 + 21) * 24 + 17) * 3600 + 57 * 60 + 16_u64;
            (seconds * 10_u64.pow(digits)).to_be_bytes()
        };
        let is_told = |types: &[u8], rows: &[u8]| images(types).is_told(&[&[0xff]], rows);
        assert!(is_told(&[12], &row(&[&datetime], 3)) && is_told(&[7], &row(&[&[1, 2, 3, 4]], 3)));
        assert!(is_told(&[12], &row(&[&packed(6)], 3)), "its length is, its digits are another question");
        assert!(!is_told(&[12], &row(&[&packed(5)[1..]], 3)) && !is_told(&[12], &row(&[&packed(2)[2..]], 3)));
        assert!(!is_told(&[7], &row(&[&[1, 2, 3, 4, 9]], 3)));
        // Two rows of one length are not taken for others of another length.
        assert!(is_told(&[7], &row(&[&[1, 2, 3, 4]], 3).repeat(13)));
        assert!(!is_told(&[7], &row(&[&[1, 2, 3, 4, 9]], 3).repeat(13)));
        let all = [&[0x59, 0x0a, 0x80][..], &datetime, &[1, 2, 3, 4]];
        assert!(is_told(&[11, 12, 7], &row(&all, 5)));
        assert!(!is_told(&[11; 9], &[0; 40]) && is_told(&[], b"anything"));
    }
}
