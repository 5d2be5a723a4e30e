//! Tables of the pages: what a reader's program shows as a table, and what it shows as a heap of words and bars.

/// The cells of a row, by the rule of GitHub's Markdown: each bar parts two of them, in code too, but for one behind a
/// backslash.
pub(super) fn cells(row: &str) -> Vec<&str> {
    let row = row.trim();
    let inner = row.strip_prefix('|').unwrap_or(row);
    let mut cells = Vec::new();
    let mut begin = 0;
    for (at, _) in inner.match_indices('|').filter(|(at, _)| !inner[..*at].ends_with('\\')) {
        cells.push(inner[begin..at].trim());
        begin = at + 1;
    }
    if !inner[begin..].trim().is_empty() {
        cells.push(&inner[begin..]);
    }
    cells
}

/// Whether the row is the rule below the heads.
fn is_rule(row: &str) -> bool {
    let cells = cells(row);
    let is_dashes = |cell: &&str| !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':');
    !cells.is_empty() && cells.iter().all(is_dashes)
}

/// What is wrong with the tables of a page, each with the number of its line.
pub(super) fn wrong(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut fenced = false;
    // The line and the columns of the heads, inside of a table.
    let mut heads: Option<(usize, usize)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        fenced ^= line.trim_start().starts_with("```");
        let is_row = !fenced && line.trim_start().starts_with('|');
        if let Some((first, columns)) = heads {
            if number == first + 1 && !(is_row && is_rule(line)) {
                wrong.push(format!("line {first}: no rule stands below the heads"));
            }
            let found = cells(line).len();
            if is_row && found != columns {
                wrong.push(format!("line {number}: {found} cells, and {columns} heads"));
            }
        }
        if !fenced && !is_row && line.contains("|--") {
            wrong.push(format!("line {number}: the rule of a table stands in a paragraph"));
        }
        heads = is_row.then(|| heads.unwrap_or_else(|| (number, cells(line).len())));
    }
    wrong
}

#[test]
fn broken_tables_are_found() {
    for text in [
        "| a | b |\n|---|---|\n| 1 | 2 |\n\nmore | words\n",
        "| a | `b \\| c` |\n|:--|---:|\n| 1 | |\n",
        "```\n| a |\n| b | c |\n```\n",
    ] {
        assert_eq!(wrong(text), Vec::<String>::new(), "{text}");
    }
    for (text, expected) in [
        ("| a | b |\n|---|---|\n| 1 | `2 | 3` |\n", "line 3: 3 cells, and 2 heads"),
        ("| a | b |\n|---|---|\n| 1 |\n", "line 3: 1 cells, and 2 heads"),
        ("| a | b |\n| 1 | 2 |\n", "line 1: no rule stands below the heads"),
        ("| a | b | |---|---|\n| 1 | 2 | 3 | 4 |\n", "line 1: no rule stands below the heads"),
        ("| a | b | |---|---| | 1\n| 2 |\n", "line 1: no rule stands below the heads"),
        ("| a | b |\nwords\n", "line 1: no rule stands below the heads"),
        ("a | b |---|---|\n", "line 1: the rule of a table stands in a paragraph"),
    ] {
        assert!(wrong(text).iter().any(|found| found == expected), "{text}: {:?}", wrong(text));
    }
}
