//! The pages of docs/reference.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::{commands, json, keys, metrics};

/// The folder that holds the whole project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes every page into `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    for (name, text) in all()? {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Every page with its file name.
fn all() -> anyhow::Result<[(&'static str, String); 4]> {
    Ok([
        ("keys.md", keys::page()),
        ("commands.md", commands::page()),
        ("metrics.md", metrics::page()?),
        ("json.md", json::page(&root())?),
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_pages_say_what_the_program_says() {
        let folder = super::root().join("docs/reference");
        for (name, text) in super::all().unwrap() {
            let found = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            let line = found.lines().zip(text.lines()).position(|(found, text)| found != text);
            let line = line.unwrap_or_else(|| found.lines().count().min(text.lines().count()));
            assert!(
                found == text,
                "docs/reference/{name} differs from the program from line {} on: run `make reference` and commit it\n\
                 there:   {}\nprogram: {}",
                line + 1,
                found.lines().nth(line).unwrap_or("(end)"),
                text.lines().nth(line).unwrap_or("(end)"),
            );
        }
    }

    #[test]
    fn every_page_of_the_folder_is_written_from_the_program() {
        let written: Vec<&str> = super::all().unwrap().iter().map(|(name, _)| *name).collect();
        for entry in std::fs::read_dir(super::root().join("docs/reference")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(written.contains(&name.as_str()), "docs/reference/{name} is nobody's");
        }
    }
}
