//! Sentences of the pages that somebody reads in a hurry, and how many words they have.
//!
//! Blocks of code and headings are no sentences. A paragraph, an item of a list and a cell of a table begin and end a
//! sentence each. A span of code is one word, a link is its text.

use super::tables;

/// More words than this nobody reads in the night.
const MAX_WORDS: usize = 25;

/// The texts of a page, each of which ends its last sentence.
fn texts(page: &str) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut fenced = false;
    for line in page.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if line.is_empty() || line.starts_with("```") || line.starts_with('#') || fenced {
            texts.push(String::new());
        } else if line.starts_with('|') {
            texts.extend(tables::cells(line).into_iter().map(str::to_owned));
            texts.push(String::new());
        } else {
            if let Some(item) = item(line) {
                texts.push(item.to_owned());
            } else {
                texts.last_mut().unwrap().push_str(line);
            }
            texts.last_mut().unwrap().push(' ');
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    texts
}

/// What stands behind the mark of an item of a list.
fn item(line: &str) -> Option<&str> {
    let numbered = line.split_once(". ").filter(|(mark, _)| mark.chars().all(|c| c.is_ascii_digit()));
    line.strip_prefix("- ").or(numbered.map(|(_, rest)| rest))
}

/// The text with one word for each span of code, and without the targets of links.
fn spoken(text: &str) -> String {
    let mut spoken = String::new();
    for (at, part) in text.split('`').enumerate() {
        spoken.push_str(if at % 2 == 0 { part } else { "code" });
    }
    while let Some(begin) = spoken.find("](") {
        let Some(len) = spoken[begin..].find(')') else { break };
        spoken.replace_range(begin..=begin + len, "");
    }
    spoken.retain(|c| !"*[".contains(c));
    spoken
}

/// The sentences of a page: each ends with a full stop, a question mark or an exclamation mark before a space.
fn sentences(page: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for text in texts(page) {
        let mut words: Vec<String> = Vec::new();
        for word in spoken(&text).split_whitespace() {
            let ends = word.trim_end_matches(['"', '”', ')', '_']).ends_with(['.', '?', '!']);
            words.push(word.to_owned());
            if ends {
                sentences.push(std::mem::take(&mut words).join(" "));
            }
        }
        if !words.is_empty() {
            sentences.push(words.join(" "));
        }
    }
    sentences
}

/// The sentences that are too long, each with its number of words.
pub(super) fn too_long(page: &str) -> Vec<String> {
    let counted = sentences(page).into_iter().map(|sentence| {
        let is_word = |word: &&str| word.contains(|c: char| c.is_alphanumeric());
        (sentence.split(' ').filter(is_word).count(), sentence)
    });
    counted
        .filter(|(words, _)| *words > MAX_WORDS)
        .map(|(words, it)| format!("{words} words: {it}"))
        .collect()
}

#[test]
fn sentences_are_found() {
    let page = "# A heading. Not counted\n\nOne [two](a.md#b) `three and four`. *Five* — “six?” Seven\neight:\n\
         \n- nine (ten.)\n  eleven\n2. twelve\n\n| a. b | c |\n|---|---|\n\n```sh\nmake x. y\n```\nlast";
    let expected =
        ["One two code.", "Five — “six?”", "Seven eight:", "nine (ten.)", "eleven", "twelve", "a."];
    let found = sentences(page);
    assert_eq!(found[..7], expected);
    assert_eq!(found.last().unwrap(), "last");
}

#[test]
fn long_sentences_are_found() {
    let words = |count: usize| vec!["word"; count].join(" ");
    assert!(too_long(&format!("{}. {}.", words(25), words(25))).is_empty());
    assert!(too_long(&format!("{} — `a b c` =.", words(24))).is_empty());
    assert_eq!(too_long(&format!("| {}; {} | x |\n|---|---|", words(13), words(13))).len(), 1);
}
