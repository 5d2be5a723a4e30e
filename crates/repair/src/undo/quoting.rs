//! Names, texts, bytes, their digests and numbers in SQL.

use codec::rows::hex;
use sha2::{Digest, Sha512};

/// A name in backticks.
pub fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A literal without control characters, for a session in which a backslash escapes.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Bytes in hexadecimal digits.
pub(super) fn bytes_literal(bytes: &[u8]) -> String {
    if bytes.is_empty() { "''".to_owned() } else { format!("X'{}'", hex(bytes)) }
}

/// A condition that an expression has bytes of this length and SHA-512.
pub(super) fn by_digest(expression: &str, bytes: &[u8]) -> String {
    let digest = hex(&Sha512::digest(bytes));
    format!("LENGTH({expression}) = {} AND SHA2({expression}, 512) = '{digest}'", bytes.len())
}

/// MariaDB reads `-0e0` as 0.
pub(super) fn float(number: f64) -> String {
    if number == 0.0 && number.is_sign_negative() { "(0e0 * -1)".to_owned() } else { format!("{number:e}") }
}
