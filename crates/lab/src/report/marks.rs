//! What a program finds charts and tables of the page by.

/// The attributes of a chart or table that do not depend on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks<'a> {
    pub(super) study: &'a str,
    pub(super) run: i64,
}
