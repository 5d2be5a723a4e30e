//! What a page of Markdown holds that can be held against the tree: code, links and the anchors of its headings. Only as
//! much of Markdown is read as these pages use.

use std::collections::BTreeSet;

/// A piece of code: a line of a block, or a span in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code {
    /// What is written.
    pub(crate) text: String,
    /// Whether it is a line of a block, which may end in a comment or an explanation.
    pub(crate) in_block: bool,
}

/// What can be checked of a page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// All code, in the order of the page.
    pub(crate) code: Vec<Code>,
    /// Targets of links, as they are written.
    pub(crate) links: Vec<String>,
    /// The headings, in the order of the page.
    pub(crate) headings: Vec<String>,
    /// What a link to a heading of this page says after `#`.
    pub(crate) anchors: BTreeSet<String>,
}

impl Page {
    /// Reads a page.
    pub(crate) fn parse(text: &str) -> Page {
        let mut page = Page::default();
        let mut paragraph = String::new();
        let mut fenced = false;
        let mut indented_may_begin = true;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                page.end_paragraph(&mut paragraph);
                fenced = !fenced;
            } else if fenced || (indented_may_begin && line.starts_with("    ")) {
                page.end_paragraph(&mut paragraph);
                page.add_block_line(line.trim());
                continue;
            } else if line.trim().is_empty() {
                page.end_paragraph(&mut paragraph);
            } else if line.starts_with('#') {
                page.end_paragraph(&mut paragraph);
                page.add_heading(line.trim_start_matches('#').trim());
            } else {
                paragraph.push_str(line);
                paragraph.push('\n');
            }
            indented_may_begin = line.trim().is_empty();
        }
        page.end_paragraph(&mut paragraph);
        page
    }

    /// A line that follows one with `\` at its end belongs to that.
    fn add_block_line(&mut self, line: &str) {
        if let Some(last) = self.code.last_mut().filter(|last| last.in_block && last.text.ends_with('\\')) {
            last.text.pop();
            last.text.push_str(line);
        } else {
            self.code.push(Code { text: line.to_owned(), in_block: true });
        }
    }

    /// The anchor is the one that GitHub makes; a heading that stands twice gets a number.
    fn add_heading(&mut self, heading: &str) {
        let anchor: String = heading
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut number = 0;
        let mut unique = anchor.clone();
        while !self.anchors.insert(unique) {
            number += 1;
            unique = format!("{anchor}-{number}");
        }
        self.headings.push(heading.to_owned());
        self.end_paragraph(&mut format!("{heading}\n"));
    }

    /// Takes the spans of code out of a paragraph, then the links out of the rest.
    fn end_paragraph(&mut self, paragraph: &mut String) {
        let text = std::mem::take(paragraph);
        let mut prose = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find('`') {
            prose.push_str(&rest[..at]);
            let ticks = rest[at..].chars().take_while(|c| *c == '`').count();
            let inner = &rest[at + ticks..];
            let Some(len) = inner.find(&"`".repeat(ticks)) else { break };
            let span = inner[..len].split_whitespace().collect::<Vec<_>>().join(" ");
            self.code.push(Code { text: span, in_block: false });
            rest = &inner[len + ticks..];
        }
        prose.push_str(rest);
        for (at, _) in prose.match_indices("](") {
            if let Some((target, _)) = prose[at + 2..].split_once(')') {
                self.links.push(target.to_owned());
            }
        }
    }
}

#[test]
fn code_links_and_anchors_are_found() {
    let page = Page::parse(
        "# A `make x`: two\n\nSee [one](a.md#b), `binlogd\nstatus` and [`c`](d).\
         \n\n```sh\nmake y \\\n  Z=1\n[no](link)\n```\n\n\
         \x20   make z\n\n| `e` | f |\n## A `make x`: two\nlast `open",
    );
    let code: Vec<&str> = page.code.iter().map(|code| code.text.as_str()).collect();
    assert_eq!(code, ["make x", "binlogd status", "c", "make y Z=1", "[no](link)", "make z", "e", "make x"]);
    assert_eq!(page.code.iter().filter(|code| code.in_block).count(), 3);
    assert_eq!(page.links, ["a.md#b", "d"]);
    assert_eq!(page.headings, ["A `make x`: two", "A `make x`: two"]);
    assert_eq!(page.anchors, BTreeSet::from(["a-make-x-two".to_owned(), "a-make-x-two-1".to_owned()]));
}

#[test]
fn a_continued_line_of_a_list_is_no_code() {
    let page = Page::parse("- one,\n    binlogd two\n\n    binlogd three\n");
    assert_eq!(page.code, [Code { text: "binlogd three".to_owned(), in_block: true }]);
}
