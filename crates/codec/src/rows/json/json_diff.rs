//! What a partial update changes in a JSON document (`binlog_row_value_options = PARTIAL_JSON`).
//!
//! Layout (MySQL, `Json_diff::write_binary` in `sql-common/json_diff.cc`): one change behind the other, each a byte for what is done, the
//! path as a packed length and its text, and but for a removal the value as a packed length and its bytes.

use crate::event::counted;
use crate::rows::json::{JsonError, JsonValue};

/// What is done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonOperation {
    /// The value there becomes another.
    Replace,
    /// A value comes to be there.
    Insert,
    /// The value there is taken out.
    Remove,
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonDiff {
    /// What is done.
    pub operation: JsonOperation,
    /// Where, as `$.a[1]`.
    pub path: String,
    /// The new value; `None` of a removal.
    pub value: Option<JsonValue>,
}

impl JsonDiff {
    /// Reads all changes of one document; `None` when the bytes are none.
    pub(in crate::rows) fn parse_all(mut rest: &[u8]) -> Option<Vec<JsonDiff>> {
        let mut all = Vec::new();
        while let Some((code, behind)) = rest.split_first() {
            rest = behind;
            let operation = match code {
                0 => JsonOperation::Replace,
                1 => JsonOperation::Insert,
                2 => JsonOperation::Remove,
                _ => return None,
            };
            let path = std::str::from_utf8(counted(&mut rest)?).ok()?.to_owned();
            let value = match operation {
                JsonOperation::Remove => None,
                _ => Some(JsonValue::parse(counted(&mut rest)?).map_err(|_: JsonError| ()).ok()?),
            };
            all.push(JsonDiff { operation, path, value });
        }
        Some(all)
    }

    /// As the function of SQL that does the same: `JSON_SET($.a, 1)`.
    pub fn text(&self) -> String {
        let path = self.path.chars().map(|one| if one.is_control() { ' ' } else { one }).collect::<String>();
        match (&self.operation, &self.value) {
            (JsonOperation::Replace, Some(value)) => format!("JSON_REPLACE({path}, {value})"),
            (JsonOperation::Insert, Some(value)) => format!("JSON_INSERT({path}, {value})"),
            _ => format!("JSON_REMOVE({path})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn changes_are_told_as_functions() {
        let bytes = [&[0, 3][..], b"$.a", &[3, 5, 1, 0, 2, 4], b"$[1]"].concat();
        let all = JsonDiff::parse_all(&bytes).unwrap();
        let text: Vec<_> = all.iter().map(JsonDiff::text).collect();
        assert_eq!(text, ["JSON_REPLACE($.a, 1)", "JSON_REMOVE($[1])"]);
        for len in 1..bytes.len() {
            assert!(JsonDiff::parse_all(&bytes[..len]).is_none_or(|all| all.len() == 1), "{len}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = JsonDiff::parse_all(&bytes);
        }
    }
}
