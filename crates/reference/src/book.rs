//! The built book: every link in it leads to a page and an anchor that are there, and nothing is loaded from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, ensure};
use html5gum::{Token, Tokenizer};

/// Fewer than that, and the check has not seen the book.
const PAGES_MIN: usize = 10;
const LINKS_MIN: usize = 100;

/// What a page says.
#[derive(Debug, Default)]
struct Page {
    anchors: BTreeSet<String>,
    /// Where a reader can go.
    links: Vec<String>,
    /// What a browser fetches to show the page.
    loaded: Vec<String>,
}

/// Checks the book in `folder`; the answer is what was checked, in words.
///
/// # Errors
///
/// A link is dead, something is loaded from elsewhere, or there is no book.
pub(crate) fn check(folder: &Path) -> anyhow::Result<String> {
    let mut pages = BTreeMap::new();
    read(folder, folder, &mut pages)?;
    let links: usize = pages.values().map(|page| page.links.len()).sum();
    ensure!(pages.len() >= PAGES_MIN && links >= LINKS_MIN, "{} is no book", folder.display());
    let wrong: Vec<String> = pages
        .iter()
        .flat_map(|(path, page)| {
            let dead = page.links.iter().filter_map(|link| dead(folder, &pages, path, link));
            let loaded = page.loaded.iter().filter_map(|link| match is_elsewhere(link) {
                true => Some(format!("{link} is loaded from elsewhere")),
                false => dead_file(folder, path, link),
            });
            dead.chain(loaded).map(|why| format!("{}: {why}", path.display())).collect::<Vec<_>>()
        })
        .collect();
    ensure!(wrong.is_empty(), "{} links of the book are dead:\n{}", wrong.len(), wrong.join("\n"));
    Ok(format!("{} pages, {links} links, none is dead", pages.len()))
}

/// Reads the pages of a folder and those in it, by their paths in the book.
fn read(book: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, Page>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            read(book, &path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let html = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            pages.insert(path.strip_prefix(book)?.to_owned(), parse(&html));
        }
    }
    Ok(())
}

fn parse(html: &str) -> Page {
    let mut page = Page::default();
    for Ok(token) in Tokenizer::new(html) {
        let Token::StartTag(tag) = token else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let value = |name: &str| {
            let found = tag.attributes.iter().find(|(key, _)| ***key == *name.as_bytes());
            found.map(|(_, value)| text(&value.value))
        };
        page.anchors.extend(value("id"));
        match &**tag.name {
            b"a" => {
                page.anchors.extend(value("name"));
                page.links.extend(value("href"));
            }
            b"link" => page.loaded.extend(value("href")),
            b"script" | b"img" | b"iframe" => page.loaded.extend(value("src")),
            _ => {}
        }
    }
    page
}

fn is_elsewhere(link: &str) -> bool {
    link.contains("://") || link.starts_with("//")
}

/// The path in the book that a link of the page `from` leads to; `None` when it leads out of the book.
fn target(from: &Path, file: &str) -> Option<PathBuf> {
    let mut target = from.parent()?.to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::Normal(name) => target.push(name),
            Component::ParentDir => target.pop().then_some(())?,
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(target)
}

/// Why a link of the page `from` leads nowhere.
fn dead(book: &Path, pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> Option<String> {
    if is_elsewhere(link) || ["mailto:", "javascript:"].iter().any(|scheme| link.starts_with(scheme)) {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    if let Some(why) = dead_file(book, from, file) {
        return Some(why);
    }
    let page = if file.is_empty() { from.to_owned() } else { target(from, file)? };
    let has_anchor = || pages.get(&page).is_some_and(|page| page.anchors.contains(anchor));
    (!anchor.is_empty() && !has_anchor()).then(|| format!("{link} has no such anchor"))
}

/// Why a file that the page `from` names is not there.
fn dead_file(book: &Path, from: &Path, link: &str) -> Option<String> {
    let file = link.split(['#', '?']).next().unwrap_or_default();
    let is_there = file.is_empty() || target(from, file).is_some_and(|path| book.join(path).is_file());
    (!is_there).then(|| format!("{link} leads nowhere"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A book of two pages and as many links as a book must have.
    fn book(more: &str) -> anyhow::Result<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        std::fs::write(folder.path().join("style.css"), "").unwrap();
        let links = "<a href=\"#x\">x</a> <a href='docs/0.html#y'>y</a>".repeat(LINKS_MIN);
        for page in 0..PAGES_MIN {
            std::fs::write(folder.path().join(format!("docs/{page}.html")), "<h2 id=\"y\">y</h2>").unwrap();
        }
        let index = format!("<link href=\"style.css?1\"><h1 id=x>x</h1>{links}{more}");
        std::fs::write(folder.path().join("index.html"), index).unwrap();
        check(folder.path())
    }

    #[test]
    fn links_that_lead_somewhere_are_good() {
        for more in [
            "",
            "<a href=\"https://example.org/#nothing\">",
            "<a href=\"./docs/1.html\">",
            "<!-- <a href=\"absent.html\"> -->",
            "<a href=\"docs/../index.html#x\">",
        ] {
            assert!(book(more).is_ok(), "{more}: {:?}", book(more));
        }
    }

    #[test]
    fn dead_links_and_what_comes_from_elsewhere_are_found() {
        for more in [
            "<a href=\"absent.html\">",
            "<a href=\"#absent\">",
            "<a href=\"docs/0.html#absent\">",
            "<a href=\"docs\">",
            "<a href=\"../outside.html\">",
            "<a href=\"/docs/0.html\">",
            "<img src=\"absent.png\">",
            "<script src=\"https://cdn.example.org/x.js\"></script>",
            "<link href=\"//cdn.example.org/x.css\">",
        ] {
            assert!(book(more).is_err(), "{more}");
        }
    }

    #[test]
    fn an_empty_folder_is_no_book() {
        assert!(check(tempfile::tempdir().unwrap().path()).is_err());
    }
}
