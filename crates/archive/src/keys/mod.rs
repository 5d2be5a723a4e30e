//! Keys: for whom an object is encrypted, and who can read it.
//!
//! All are keys of age, X25519 or SSH. binlogd itself needs the public ones only; the private ones belong where files are brought
//! back, which is why a machine that was broken into gives nobody the history that it has uploaded.
//!
//! A passphrase cannot be a recipient. age stretches one with scrypt, about a second for each object, and an archive makes an
//! object every few seconds and reads thousands. It protects the file of the private key instead (`age -p`, or that of an SSH
//! key), and is asked for once.
//!
//! Who signs commits has a key of another kind ([`signing`]).

mod error;
mod file;
mod identities;
mod kind;
mod recipients;
pub mod signing;

pub use error::{KeyError, Wrong};
pub use identities::{AskPassphrase, Identities};
pub use recipients::Recipients;

#[cfg(test)]
mod tests;
