//! Rows of row events, value by value: the types of MySQL and MariaDB as they stand in a binary log.
//!
//! ```text
//! a TABLE_MAP event → Table: columns with what the log says of them     table.rs, optional.rs
//! a row event       → Rows: one row after another                      image.rs
//! bytes of a value  → Value                                            value.rs and a file for each family of types
//! ```
//!
//! What cannot be decoded is a value of its own, [`Value::Undecoded`], with its bytes: nothing is left out and nothing guessed. No
//! bytes make this panic, and what it allocates is bounded by what it is given.

mod address;
mod charset;
mod decimal;
mod geometry;
mod hex;
mod image;
mod json;
mod optional;
mod packed;
mod table;
mod temporal;
mod text;
mod value;

pub use crate::rows::charset::legacy::{ALL as LEGACY_CHARSETS, Legacy};
pub use crate::rows::json::json_diff::{JsonDiff, JsonOperation};
pub use charset::Charset;
pub use geometry::Geometry;
pub use hex::hex;
pub use image::{Image, Row, Rows};
pub use json::{JsonError, JsonValue};
pub use table::{Column, ColumnType, Table};
pub use text::quoted;
pub use value::Value;
