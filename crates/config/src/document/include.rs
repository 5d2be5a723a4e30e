//! Files that a configuration includes: each source, or some of them, in a file of its own.

use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::super::error::Findings;
use super::super::key::Section;
use super::super::tables::RootKeys;
use super::{Document, Item, Value, file};

/// Hidden files are left out: editors keep what is not finished in them.
const MATCH: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// What makes a path a pattern.
const SPECIAL: [char; 3] = ['*', '?', '['];

/// Adds the sources and readers of the files that `document` includes, behind its own and in the order of the patterns, the
/// files of a pattern in the order of their names. `main` is the file of the document. `None` when a file could not be
/// read: what is left would be another configuration.
pub(crate) fn add_included(document: &mut Document, main: &Path, findings: &mut Findings) -> Option<()> {
    let root = document.one(Section::Root);
    let Some(item) = root.items.get(RootKeys::include.name).cloned() else { return Some(()) };
    let patterns = match &item.value {
        Value::List(items) => items.clone(),
        _ => vec![item],
    };
    let (mut files, mut is_whole) = (Vec::new(), true);
    for item in &patterns {
        match found(item, main) {
            Ok(found) => files.extend(found),
            Err(text) => {
                findings.error(&item.place, text);
                is_whole = false;
            }
        }
    }
    for (index, path) in files.iter().enumerate() {
        // One that two patterns name counts once.
        if files[..index].contains(path) {
            continue;
        }
        let included = match file::read(path) {
            Ok(text) => file::parse_included(&text, path, main, document, findings),
            Err(problem) => {
                findings.error(&problem.place, problem.text);
                None
            }
        };
        is_whole &= included.is_some();
    }
    is_whole.then_some(())
}

/// The files that a path or a pattern means now.
fn found(item: &Item, main: &Path) -> Result<Vec<PathBuf>, String> {
    let what = format!("include = {}", item.shown());
    let text = match &item.value {
        Value::Text(text) if !text.is_empty() && !text.contains('\0') => text,
        _ => return Err(format!("{what}: must be {}", RootKeys::include.allowed())),
    };
    let folder = item.place.folder();
    let text = text.strip_prefix("./").unwrap_or(text);
    if !text.contains(SPECIAL) {
        // Whether it is there is told by who reads it.
        return Ok(vec![folder.join(text)]);
    }
    let holds = folder.join(fixed_folder(text));
    // A folder that is not there is more likely a mistake, or a file system that is not mounted, than a wish for no sources.
    if !holds.as_os_str().is_empty() && !holds.is_dir() {
        return Err(format!("{what}: there is no folder {}", holds.display()));
    }
    let folder = folder.to_str().ok_or_else(|| format!("{what}: the folder's name is not UTF-8"))?;
    let pattern = if folder.is_empty() || text.starts_with('/') {
        text.to_owned()
    } else {
        format!("{}/{text}", Pattern::escape(folder))
    };
    let paths = glob::glob_with(&pattern, MATCH).map_err(|error| format!("{what}: {}", error.msg))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        let path = path.map_err(|error| {
            format!("{what}: {} cannot be read: {}", error.path().display(), error.error())
        })?;
        let is_main = path.canonicalize().ok().is_some_and(|path| Some(path) == main.canonicalize().ok());
        if is_main {
            return Err(format!(
                "{what} names this file too: put the files of sources into a folder of their own, such as conf.d/*.toml"
            ));
        }
        files.push(path);
    }
    files.sort();
    Ok(files)
}

/// The part of a pattern that names one folder.
fn fixed_folder(pattern: &str) -> &str {
    let special = pattern.find(SPECIAL).unwrap_or(pattern.len());
    pattern[..special].rfind('/').map_or("", |slash| &pattern[..=slash])
}

#[cfg(test)]
mod tests {
    use super::super::super::error::ConfigError;
    use super::super::super::load::Loaded;
    use super::super::super::tables::Config;
    use std::fs::{create_dir, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    /// A folder with `binlogd.toml` of this text, and `conf.d`.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(main: &str) -> Folder {
            let folder = tempfile::tempdir().unwrap();
            create_dir(folder.path().join("conf.d")).unwrap();
            write(folder.path().join("binlogd.toml"), main).unwrap();
            Folder(folder)
        }

        fn file(&self, name: &str, text: &str) -> &Folder {
            write(self.0.path().join(name), text).unwrap();
            self
        }

        fn load(&self) -> Result<Loaded, ConfigError> {
            Config::load_with(&self.0.path().join("binlogd.toml"), &|_| None)
        }

        fn names(&self) -> Vec<String> {
            self.load().unwrap().config.sources.into_iter().map(|source| source.name).collect()
        }

        /// What is wrong, with paths counted from the folder.
        fn errors(&self) -> String {
            let text = self.load().unwrap_err().to_string();
            text.replace(&format!("{}/", self.0.path().display()), "")
        }
    }

    fn source(name: &str) -> String {
        format!("[[source]]\nname = \"{name}\"\nhosts = [\"{name}\"]\nuser = \"u\"\n")
    }

    #[test]
    fn sources_of_included_files_follow_in_the_order_of_names() {
        let folder = Folder::new(&format!("include = \"conf.d/*.toml\"\n{}", source("main")));
        assert_eq!(folder.names(), ["main"], "a pattern may match nothing");
        folder.file("conf.d/b.toml", &source("b1")).file("conf.d/a.toml", &(source("a1") + &source("a2")));
        folder.file("conf.d/.c.toml.swp", "garbage").file("conf.d/.d.toml", "garbage");
        folder.file("conf.d/e.toml~", "garbage").file("conf.d/empty.toml", "");
        assert_eq!(folder.names(), ["main", "a1", "a2", "b1"]);
        folder.file("extra.toml", &source("extra"));
        let main = "include = [\"./extra.toml\", \"conf.d/b*.toml\", \"conf.d/?.toml\"]\n";
        folder.file("binlogd.toml", main);
        assert_eq!(folder.names(), ["extra", "b1", "a1", "a2"], "each file once");
    }

    #[test]
    fn paths_and_readers_in_an_included_file_are_its_own() {
        let folder = Folder::new(
            "data_dir = \"data\"\ninclude = \"conf.d/*.toml\"\n[serve]\nlisten = \"127.0.0.1:0\"\n",
        );
        let with = source("a")
            + "password_file = \"a.secret\"\n[[serve.user]]\nname = \"reads_a\"\npassword = \"x\"\n";
        folder.file("conf.d/a.toml", &with).file("conf.d/a.secret", "hunter2\n");
        for name in ["a.toml", "a.secret"] {
            let path = folder.0.path().join("conf.d").join(name);
            set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
        }
        let loaded = folder.load().unwrap();
        assert_eq!(loaded.warnings, []);
        assert_eq!(loaded.config.data_dir, folder.0.path().join("data"));
        assert_eq!(loaded.config.sources[0].password_file, Some(folder.0.path().join("conf.d/a.secret")));
        assert_eq!(loaded.config.serve.users[0].sources, ["a"]);
        // A password that others can read is told of whichever file holds it.
        let exposed = folder.0.path().join("conf.d/a.toml");
        set_permissions(&exposed, PermissionsExt::from_mode(0o644)).unwrap();
        let warnings = folder.load().unwrap().warnings;
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.to_string().starts_with(&format!("{}: ", exposed.display())), "{warning}");
    }

    #[test]
    fn what_is_wrong_is_told_with_file_and_line() {
        let folder = Folder::new(&format!("include = \"conf.d/*.toml\"\n{}", source("orders")));
        folder.file("conf.d/a.toml", &source("orders"));
        assert_eq!(
            folder.errors(),
            "conf.d/a.toml:2:8: name = \"orders\" is taken by the source at binlogd.toml:3:8: give each [[source]] its own \
             name"
        );
        folder.file("conf.d/a.toml", &(source("a") + "fsync_mod = 1\n"));
        folder.file("conf.d/b.toml", &(source("b") + "x =\n"));
        let said = folder.errors();
        assert!(said.contains("conf.d/a.toml:5:1: unknown key fsync_mod"), "{said}");
        assert!(said.contains("conf.d/b.toml:5:4: not valid TOML"), "{said}");
        std::fs::remove_file(folder.0.path().join("conf.d/b.toml")).unwrap();
        let misplaced = "data_dir = \"x\"\ninclude = \"*.toml\"\n[serve]\nlisten = \"off\"\n[log]\n";
        folder.file("conf.d/a.toml", misplaced);
        assert_eq!(
            folder.errors(),
            "conf.d/a.toml:1:1: an included file holds [[source]] and [[serve.user]] tables only: data_dir belongs in \
             binlogd.toml, if anywhere\n\
             conf.d/a.toml:2:1: an included file cannot include others: name them in binlogd.toml\n\
             conf.d/a.toml:4:1: an included file holds [[source]] and [[serve.user]] tables only: listen of [serve] belongs in \
             binlogd.toml, if anywhere\n\
             conf.d/a.toml:5:2: an included file holds [[source]] and [[serve.user]] tables only: log belongs in \
             binlogd.toml, if anywhere"
        );
    }

    #[test]
    fn an_include_that_cannot_be_meant_is_refused() {
        let errors = |include: &str| {
            let text = format!("include = {include}\n{}", source("main"));
            Folder::new(&text).errors()
        };
        assert!(errors("\"gone.toml\"").starts_with("gone.toml: the configuration file "));
        assert_eq!(
            errors("\"cond.d/*.toml\""),
            "binlogd.toml:1:11: include = \"cond.d/*.toml\": there is no folder cond.d/"
        );
        assert!(errors("\"*.toml\"").contains("names this file too"));
        assert!(errors("\"conf.d/[.toml\"").starts_with("binlogd.toml:1:11: include = "));
        let allowed = "must be a path or a pattern such as \"conf.d/*.toml\", or a list of them";
        assert_eq!(errors("3"), format!("binlogd.toml:1:11: include = 3: {allowed}"));
        assert_eq!(errors("[\"\"]"), format!("binlogd.toml:1:12: include = \"\": {allowed}"));
        let none = Folder::new("include = \"conf.d/*.toml\"\n").errors();
        assert!(none.contains("there is no [[source]]"), "{none}");
    }
}
