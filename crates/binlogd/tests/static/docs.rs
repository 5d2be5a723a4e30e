//! The pages against the tree: every command in them is one that the programs take, every link leads somewhere, and every
//! source file that they name is there. A page that is wrong costs its reader most in the night.

mod commands;
pub(crate) mod page;
mod sentences;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use commands::Tree;
use page::Page;

/// The folder that holds the whole project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages by their names, relative to `root`. The changelog is left out: what it names may be gone by now.
fn pages(root: &Path) -> BTreeMap<String, Page> {
    let mut names: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "RELEASING.md"].map(str::to_owned).to_vec();
    let mut files = Vec::new();
    super::imports::files(&root.join("docs"), &mut files);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    names.extend(files.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()));
    let read = |name: &String| Page::parse(&std::fs::read_to_string(root.join(name)).unwrap());
    names.iter().map(|name| (name.clone(), read(name))).collect()
}

/// What is wrong with a link in the page `from`; `None` when nothing is.
fn wrong_link(root: &Path, pages: &BTreeMap<String, Page>, from: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut target = Path::new(from).parent().unwrap().to_owned();
    for part in Path::new(file) {
        if part == ".." {
            target.pop();
        } else {
            target.push(part);
        }
    }
    let target = if file.is_empty() { from.to_owned() } else { target.to_str().unwrap().to_owned() };
    if !root.join(&target).exists() {
        return Some(format!("{from}: the link {link} leads to {target}, which is not there"));
    }
    if anchor.is_empty() || pages.get(&target).is_some_and(|page| page.anchors.contains(anchor)) {
        return None;
    }
    Some(format!("{from}: {target} has no heading for the link {link}"))
}

/// What `{a,b}` in a path stands for, each by itself.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

/// Source files that a piece of code names, as they are written there.
fn named_files(code: &str) -> Vec<String> {
    code.split(|c: char| c.is_whitespace() || "()[]`;:".contains(c))
        .map(|word| word.trim_end_matches(','))
        .filter(|word| word.ends_with(".rs") && !word.contains('*') && !word.contains('<'))
        .flat_map(expanded)
        .collect()
}

/// Whether `path` ends with the components of `name`, where a crate's folder may stand without its `src`.
fn is_named(path: &Path, name: &Path) -> bool {
    let without_src: PathBuf = path.components().filter(|part| part.as_os_str() != "src").collect();
    path.ends_with(name) || without_src.ends_with(name)
}

/// Pages that a source names, and the part of it that a message sends its reader to: `docs/page.md, "Part"`.
fn named_parts(source: &str) -> Vec<(String, Option<String>)> {
    // A text that goes on behind a backslash is one text.
    let lines: Vec<&str> = source.split("\\\n").collect();
    let joined: String =
        lines.iter().enumerate().map(|(at, line)| if at == 0 { line } else { line.trim_start() }).collect();
    joined
        .split("docs/")
        .skip(1)
        .filter_map(|rest| {
            let (name, rest) = rest.split_once(".md")?;
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-/".contains(c));
            let part = rest.strip_prefix(", \\\"").and_then(|rest| rest.split_once("\\\""));
            is_name.then(|| (format!("docs/{name}.md"), part.map(|(part, _)| part.to_owned())))
        })
        .collect()
}

#[test]
fn every_page_that_a_message_names_has_the_part() {
    let root = root();
    let pages = pages(&root);
    let mut files = Vec::new();
    super::imports::rust_files(&root.join("crates"), &mut files);
    files.retain(|path| path.components().any(|part| part.as_os_str() == "src"));
    let (mut wrong, mut parts) = (Vec::new(), 0);
    for path in files {
        for (name, part) in named_parts(&std::fs::read_to_string(&path).unwrap()) {
            parts += usize::from(part.is_some());
            let part = part.unwrap_or_default();
            let has_part =
                |page: &Page| part.is_empty() || page.headings.iter().any(|it| it.starts_with(&part));
            if !pages.get(&name).is_some_and(has_part) {
                wrong.push(format!("{}: there is no {name}, {part:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(parts >= 3, "only {parts} parts are named");
}

#[test]
fn parts_of_pages_are_found_in_sources() {
    let source = "see docs/a.md; \"(docs/b-c.md, \\\"One\\\")\" \"(docs/d.md, \\\n    \\\"Two words\\\")\" docs/{x}.md";
    let found = named_parts(source);
    let expected = [("docs/a.md", None), ("docs/b-c.md", Some("One")), ("docs/d.md", Some("Two words"))];
    assert_eq!(found, expected.map(|(name, part)| (name.to_owned(), part.map(str::to_owned))));
}

#[test]
fn every_link_leads_somewhere() {
    let root = root();
    let pages = pages(&root);
    let wrong: Vec<String> = pages
        .iter()
        .flat_map(|(name, page)| page.links.iter().map(move |link| (name, link)))
        .filter_map(|(name, link)| wrong_link(&root, &pages, name, link))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is not in the contents of the book is not in the book, without a word.
#[test]
fn every_page_is_in_the_book() {
    let pages = pages(&root());
    let contents = "docs/SUMMARY.md";
    let listed: BTreeSet<String> = pages[contents]
        .links
        .iter()
        .map(|link| match link.strip_prefix("../") {
            Some(above) => above.to_owned(),
            None => format!("docs/{link}"),
        })
        .collect();
    let forgotten: Vec<&String> =
        pages.keys().filter(|name| *name != contents && !listed.contains(*name)).collect();
    assert!(forgotten.is_empty(), "{contents} does not list {forgotten:?}");
}

#[test]
fn every_table_is_whole() {
    let root = root();
    let mut wrong = Vec::new();
    for name in pages(&root).into_keys().chain(["CHANGELOG.md".to_owned()]) {
        let text = std::fs::read_to_string(root.join(&name)).unwrap();
        wrong.extend(tables::wrong(&text).into_iter().map(|why| format!("{name}, {why}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What somebody reads first, or in the night.
#[test]
fn sentences_are_short_where_people_are_in_a_hurry() {
    let root = root();
    let mut wrong = Vec::new();
    for name in [
        "README",
        "docs/install",
        "docs/first-source",
        "docs/failures",
        "docs/runbook",
        "docs/recovery/restore",
    ] {
        let text = std::fs::read_to_string(root.join(format!("{name}.md"))).unwrap();
        wrong.extend(sentences::too_long(&text).into_iter().map(|why| format!("{name}.md, {why}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_is_one_that_the_programs_take() {
    let root = root();
    let tree = Tree::new(&root);
    let mut wrong = BTreeSet::new();
    let mut checked = BTreeSet::new();
    for (name, page) in pages(&root) {
        for command in page.code.iter().flat_map(commands::split) {
            if checked.insert(command.clone()) {
                wrong.extend(tree.wrong(&command).map(|why| format!("{name}: {command:?}: {why}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
    for (program, at_least) in [("binlogd", 10), ("binlogd-lab", 10), ("make", 10), ("scripts/servers", 1)] {
        let found = checked.iter().filter(|words| words[0] == program).count();
        assert!(found >= at_least, "only {found} commands of {program} were found in the pages");
    }
}

#[test]
fn every_source_file_that_a_page_names_is_there() {
    let root = root();
    let mut files = Vec::new();
    super::imports::rust_files(&root.join("crates"), &mut files);
    for folder in ["src", "examples", "fuzz_targets"] {
        super::imports::rust_files(&root.join("fuzz").join(folder), &mut files);
    }
    let mut wrong = BTreeSet::new();
    for (name, page) in pages(&root) {
        for file in page.code.iter().flat_map(|code| named_files(&code.text)) {
            if !files.iter().any(|path| is_named(path, Path::new(&file))) {
                wrong.insert(format!("{name}: there is no {file}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

/// A test that a page names as `module::test`: its file and its function.
fn named_test(code: &str) -> Option<(&str, &str)> {
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (module, test) = code.rsplit_once("::")?;
    code.split("::").all(is_name).then(|| (module.rsplit("::").next().unwrap_or(module), test))
}

/// Who reads that a thing was tried may look at how.
#[test]
fn every_test_that_says_what_was_tried_is_there() {
    let root = root();
    let mut files = Vec::new();
    super::imports::rust_files(&root.join("crates/binlogd/tests"), &mut files);
    let texts: Vec<(PathBuf, String)> =
        files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
    let is_there = |(module, test): (&str, &str)| {
        let head = format!("#[test]\nfn {test}() {{");
        let holds = |path: &Path| {
            path.ends_with(format!("{module}.rs")) || path.ends_with(format!("{module}/mod.rs"))
        };
        texts.iter().any(|(path, text)| holds(path) && text.contains(&head))
    };
    let page = &pages(&root)["docs/sources.md"];
    let named: BTreeSet<_> = page.code.iter().filter_map(|code| named_test(&code.text)).collect();
    let wrong: Vec<_> = named.iter().filter(|named| !is_there(**named)).collect();
    assert!(wrong.is_empty(), "docs/sources.md names tests that are not there: {wrong:?}");
    assert!(named.len() >= 20, "only {} tests are named", named.len());
    assert!(!is_there(("identity", "mysql_4_1")) && !is_there(("chain", "mysql_9_7_without_gtids")));
    assert_eq!(named_test("show::types::mysql_types"), Some(("types", "mysql_types")));
    assert_eq!([named_test("module"), named_test("a::b c"), named_test("::x")], [None; 3]);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let root = root();
    let pages = BTreeMap::from([
        ("README.md".to_owned(), Page::parse("# One\n")),
        ("docs/measured/lab.md".to_owned(), Page::parse("## Two words\n")),
    ]);
    let wrong = |from, link| wrong_link(&root, &pages, from, link);
    for (from, link) in [
        ("README.md", "https://example.org/#nothing"),
        ("README.md", "docs/measured/lab.md#two-words"),
        ("README.md", "#one"),
        ("docs/measured/lab.md", "../../README.md#one"),
        ("docs/measured/lab.md", "../../packaging/systemd"),
    ] {
        assert_eq!(wrong(from, link), None);
    }
    for (from, link) in [
        ("README.md", "docs/absent.md"),
        ("README.md", "docs/measured/lab.md#one"),
        ("README.md", "lab.md"),
        ("docs/measured/lab.md", "#one"),
        ("docs/measured/lab.md", "../../LICENSE#one"),
    ] {
        assert!(wrong(from, link).is_some(), "{from}: {link}");
    }
}

#[test]
fn named_files_are_found_in_code() {
    assert_eq!(named_files("a/{b,c}.rs, d.rs; e.md"), ["a/b.rs", "a/c.rs", "d.rs"]);
    assert_eq!(named_files("tests/*.rs <name>.rs"), Vec::<String>::new());
    let path = Path::new("/x/crates/binlog/src/journal/mod.rs");
    assert!(is_named(path, Path::new("binlog/journal/mod.rs")));
    assert!(is_named(path, Path::new("crates/binlog/src/journal/mod.rs")));
    assert!(!is_named(path, Path::new("wire/journal/mod.rs")));
    assert!(!is_named(path, Path::new("od.rs")));
}
