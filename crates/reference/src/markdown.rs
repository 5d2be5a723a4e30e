//! What the pages are put together from.

/// Plain text as Markdown: what would be taken for a tag or for emphasis stands as it is.
pub(crate) fn plain(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*")
}

/// Text for a cell of a table: one line, and no bar ends the cell.
pub(crate) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A span of code.
pub(crate) fn code(text: &str) -> String {
    format!("`{text}`")
}

/// The anchor of a heading, as GitHub and mdBook make it.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The head of a page that nobody writes by hand.
pub(crate) fn head(title: &str, about: &str) -> String {
    format!(
        "<!-- Written by `make reference` from the sources; what is changed here is overwritten. -->\n\n# {title}\n\n{about}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(plain("gtid:<set> *6B"), "gtid:\\<set> \\*6B");
        assert_eq!(cell("a |\n  b"), "a \\| b");
        assert_eq!(anchor("`[[source]] on_gap`"), "source-on_gap");
        assert_eq!(anchor("binlogd config check"), "binlogd-config-check");
    }
}
