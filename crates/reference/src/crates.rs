//! The drawing of the crates in ARCHITECTURE.md, from the manifests.

use crate::pages::root;
use anyhow::{Context, ensure};
use std::collections::{BTreeMap, BTreeSet};

/// The page, and what stands before and behind the drawing in it.
const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- drawn by `make reference` -->\n";
const END: &str = "<!-- end of the drawing -->\n";

/// A crate as its manifest tells.
struct Crate {
    about: String,
    /// Folders of the crates that it links itself.
    links: BTreeSet<String>,
}

/// The page with the drawing as it is to be.
pub(crate) fn page() -> anyhow::Result<String> {
    let page = std::fs::read_to_string(root().join(PAGE)).context(PAGE)?;
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE} has no {BEGIN:?}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PAGE} has no {END:?}"))?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", drawing(&read()?)))
}

/// Writes the page.
pub(crate) fn write() -> anyhow::Result<()> {
    std::fs::write(root().join(PAGE), page()?).context(PAGE)
}

/// Each crate by its folder.
fn read() -> anyhow::Result<BTreeMap<String, Crate>> {
    let mut crates = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let manifest: toml::Table = manifest.parse().with_context(|| folder.display().to_string())?;
        let about = manifest["package"]["description"].as_str().unwrap_or_default();
        let linked = manifest.get("dependencies").and_then(toml::Value::as_table).into_iter().flatten();
        let folder_of = |package: &str| match package.strip_prefix("binlogd-") {
            Some(folder) => Some(folder.to_owned()),
            None => (package == "binlogd").then(|| package.to_owned()),
        };
        let links = linked.filter_map(|(package, _)| folder_of(package)).collect();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        crates.insert(name, Crate { about: about.trim_end_matches('.').to_owned(), links });
    }
    ensure!(crates.values().all(|one| !one.about.is_empty()), "a crate has no description");
    Ok(crates)
}

/// Everything that a crate stands on.
fn below(crates: &BTreeMap<String, Crate>, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for link in crates.get(name).into_iter().flat_map(|one| &one.links) {
        found.extend(below(crates, link));
        found.insert(link.clone());
    }
    found
}

/// How many crates stand one on the other below it.
fn level(crates: &BTreeMap<String, Crate>, name: &str) -> usize {
    let links = crates.get(name).into_iter().flat_map(|one| &one.links);
    links.map(|link| level(crates, link) + 1).max().unwrap_or_default()
}

/// From the top down. What a crate links and another one of its links stands on too is not drawn again.
fn drawing(crates: &BTreeMap<String, Crate>) -> String {
    let mut names: Vec<&String> = crates.keys().collect();
    let is_tool = |name: &str| name != "binlogd" && !below(crates, "binlogd").contains(name);
    names.sort_by_key(|name| (is_tool(name), std::cmp::Reverse(level(crates, name)), *name));
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        if at > 0 && is_tool(name) != is_tool(names[at - 1]) {
            text.push_str("\n    tools, never linked into the product:\n\n");
        }
        let links = &crates[*name].links;
        let direct: Vec<&str> = links
            .iter()
            .filter(|link| !links.iter().any(|other| below(crates, other).contains(*link)))
            .map(String::as_str)
            .collect();
        text.push_str(&format!("    {:>2}  {name:<16}{}\n", level(crates, name), crates[*name].about));
        if !direct.is_empty() {
            text.push_str(&format!("{:24}on {}\n", "", direct.join(", ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_drawing_is_of_the_manifests() {
        let found = std::fs::read_to_string(super::root().join(super::PAGE)).unwrap();
        assert!(
            found == super::page().unwrap(),
            "the crates have changed: run `make reference` and commit it"
        );
    }
}
