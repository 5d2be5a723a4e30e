//! The file format of virtual_slave: `key = value` lines with `#` comments (its `src/Config/Config.cc`).

/// One `key = value` of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Entry {
    /// Key.
    pub key: String,
    /// Value, without blanks around it.
    pub value: String,
    /// From 1.
    pub line: usize,
    /// Whether a `#` directly after a character cut the value.
    pub cut: bool,
}

/// Reads as the tool does: a `#` anywhere begins a comment, and of a repeated key the last one counts. A line without
/// `=` continues the value above it until a blank line; that is kept for GTID sets only, where it makes sense.
///
/// Returns the entries in the order of the file, and what was ignored.
pub(in crate::cli) fn read(text: &str) -> (Vec<Entry>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    let mut open = false;
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let (content, comment) =
            raw.split_once('#').map_or((raw, None), |(before, after)| (before, Some(after)));
        let content_trimmed = content.trim();
        if raw.trim().is_empty() {
            open = false;
        } else if content_trimmed.starts_with('[') && content_trimmed.ends_with(']') {
            open = false;
            warnings.push(format!(
                "line {line}: the section {} has no meaning here and is ignored",
                shown(content_trimmed)
            ));
        } else if let Some((key, value)) = content.split_once('=') {
            let cut = comment.is_some() && value.ends_with(|c: char| !c.is_whitespace());
            let entry = Entry { key: key.trim().to_owned(), value: value.trim().to_owned(), line, cut };
            if let Some(at) = entries.iter().position(|earlier| earlier.key == entry.key) {
                let earlier = entries.remove(at).line;
                warnings.push(format!(
                    "line {earlier}: {} is given again in line {line}, which counts",
                    shown(&entry.key)
                ));
            }
            entries.push(entry);
            open = true;
        } else if let Some(entry) = entries.last_mut().filter(|entry| open && entry.key == "exclude_gtids") {
            entry.value.push_str(content_trimmed);
        } else if !content_trimmed.is_empty() {
            // Not quoted: a stray line may be half a password.
            warnings.push(format!("line {line}: has no = and is ignored"));
        }
    }
    (entries, warnings)
}

/// A text inside a one-line comment or warning.
pub(in crate::cli) fn shown(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let cut: String = line.chars().take(100).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
