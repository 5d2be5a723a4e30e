//! The inverse of transactions, as statements of SQL; and the same statements for who does them again.
//!
//! ```text
//! what is asked for, searched and looked at, for whoever asks for it                       taking_back.rs
//!   → rows, in the order of the log (crate::detail)
//!   → one statement each that takes the row back, with all that it was in its condition   inverse.rs, literal.rs, json.rs
//!   → of what a foreign key deleted, the parent first                                    cascades.rs
//!   → what a server says against it: triggers, cascades, engines                          objections.rs, rights.rs
//!   → which of them are not as they were left now                                        look.rs
//!   → a script, the last row first, that stops where a row is not as it was left          script.rs
//! ```

mod cascades;
mod inverse;
mod json;
mod literal;
mod look;
mod objections;
mod quoting;
mod rights;
mod script;
mod taking_back;

pub use inverse::{Direction, Inverse};
pub use literal::literal;
pub use quoting::name;
pub use script::{SESSION, Script, apply, guard};
pub use taking_back::{NotTakenBack, Request, Rows, TakingBack};
