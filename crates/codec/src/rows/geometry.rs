//! Geometry as it stands in a row: the number of its reference system in four bytes, then well-known binary, little-endian.
//!
//! Well-known text is written here as the bytes have it: the first coordinate first. A server prints those of a geographic system the
//! other way round where that says so (`axis-order` in MySQL's manual).

use std::fmt::Write;

/// Geometries nest: collections in collections.
const DEPTH_MAX: usize = 32;

/// A geometry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// The number of its reference system.
    pub srid: u32,
    /// Well-known text.
    pub text: String,
}

impl Geometry {
    /// Reads a whole value; `None` when the bytes are no geometry of a known type.
    pub fn parse(bytes: &[u8]) -> Option<Geometry> {
        let (srid, mut rest) = bytes.split_first_chunk::<4>()?;
        let mut text = String::new();
        geometry(&mut rest, &mut text, 0, Shown::WithName)?;
        rest.is_empty().then_some(Geometry { srid: u32::from_le_bytes(*srid), text })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    WithName,
    Inner,
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (own, behind) = rest.split_first_chunk::<4>()?;
    *rest = behind;
    Some(u32::from_le_bytes(*own))
}

fn geometry(rest: &mut &[u8], text: &mut String, depth: usize, shown: Shown) -> Option<()> {
    let (order, behind) = rest.split_first()?;
    if *order != 1 || depth > DEPTH_MAX {
        return None;
    }
    *rest = behind;
    let code = number(rest)?;
    if shown == Shown::WithName {
        text.push_str(match code {
            1 => "POINT",
            2 => "LINESTRING",
            3 => "POLYGON",
            4 => "MULTIPOINT",
            5 => "MULTILINESTRING",
            6 => "MULTIPOLYGON",
            7 => "GEOMETRYCOLLECTION",
            _ => return None,
        });
    }
    match code {
        1 => {
            text.push('(');
            point(rest, text)?;
            text.push(')');
            Some(())
        }
        2 => points(rest, text),
        3 => list(rest, text, points),
        4 => list(rest, text, |rest, text| geometry(rest, text, depth + 1, Shown::Inner)),
        5 | 6 => list(rest, text, |rest, text| geometry(rest, text, depth + 1, Shown::Inner)),
        7 => list(rest, text, |rest, text| geometry(rest, text, depth + 1, Shown::WithName)),
        _ => None,
    }
}

/// A list in brackets with commas between. The number is not to be trusted: each element takes bytes.
fn list(
    rest: &mut &[u8],
    text: &mut String,
    mut element: impl FnMut(&mut &[u8], &mut String) -> Option<()>,
) -> Option<()> {
    let count = number(rest)?;
    if count == 0 {
        text.push_str(" EMPTY");
        return Some(());
    }
    text.push('(');
    for at in 0..count {
        text.push_str(if at > 0 { "," } else { "" });
        element(rest, text)?;
    }
    text.push(')');
    Some(())
}

fn points(rest: &mut &[u8], text: &mut String) -> Option<()> {
    list(rest, text, point)
}

fn point(rest: &mut &[u8], text: &mut String) -> Option<()> {
    for separator in [" ", ""] {
        let (own, behind) = rest.split_first_chunk::<8>()?;
        *rest = behind;
        write!(text, "{}{separator}", f64::from_le_bytes(*own)).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn geometries_are_told_as_text() {
        let double = |value: f64| value.to_le_bytes();
        let point = [&[1, 1, 0, 0, 0][..], &double(1.5), &double(-2.0)].concat();
        let with_srid = [&[0xe6, 0x10, 0, 0][..], &point].concat();
        let read = Geometry::parse(&with_srid).unwrap();
        assert_eq!((read.srid, read.text.as_str()), (4326, "POINT(1.5 -2)"));
        let collection = [&[0; 4][..], &[1, 7, 0, 0, 0, 1, 0, 0, 0], &point].concat();
        assert_eq!(Geometry::parse(&collection).unwrap().text, "GEOMETRYCOLLECTION(POINT(1.5 -2))");
        let many = [&[0; 4][..], &[1, 4, 0, 0, 0, 1, 0, 0, 0], &point].concat();
        assert_eq!(Geometry::parse(&many).unwrap().text, "MULTIPOINT((1.5 -2))");
        assert_eq!(
            Geometry::parse(&[0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0]).unwrap().text,
            "GEOMETRYCOLLECTION EMPTY"
        );
        assert!(Geometry::parse(&with_srid[..20]).is_none());
        assert!(Geometry::parse(&[&with_srid[..], &[0]].concat()).is_none(), "more behind it");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(0_u8..9, 0..120)) {
            let _ = Geometry::parse(&bytes);
        }
    }
}
