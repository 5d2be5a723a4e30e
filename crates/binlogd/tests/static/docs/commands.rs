//! Commands in a page: their words, and whether the program that they name takes them.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::page::Code;

/// The commands in a piece of code, word by word. Comments are left out, and in a block what stands behind two spaces,
/// unless it is an option: that is an explanation.
pub(super) fn split(code: &Code) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut brackets = 0_i32;
    let mut rest = code.text.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = next_word(rest);
        let spaces = after.len() - after.trim_start().len();
        rest = after.trim_start();
        let ends = word.ends_with(';');
        let word = word.trim_end_matches(';');
        brackets += word.matches('[').count() as i32;
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        match bare {
            // The bar between the choices of a usage line.
            "|" if brackets > 0 => {}
            // The file that output goes to is no word of the program either.
            "|" | "||" | "&&" | ">" => commands.push(Vec::new()),
            _ => commands.last_mut().unwrap().push(bare.to_owned()),
        }
        brackets -= word.matches(']').count() as i32;
        if ends {
            commands.push(Vec::new());
        }
        if code.in_block && spaces >= 2 && !rest.starts_with('-') {
            break;
        }
    }
    commands.retain(|words| !words.is_empty());
    commands
}

/// The first word, without its quotation marks, and what follows it.
fn next_word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c.is_whitespace() => return (word, &text[at..]),
            None => word.push(c),
        }
    }
    (word, "")
}

/// What the commands are held against.
pub(super) struct Tree {
    root: PathBuf,
    makefile: String,
    scripts: String,
    packages: BTreeSet<String>,
}

impl Tree {
    pub(super) fn new(root: &Path) -> Tree {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let mut files = Vec::new();
        crate::imports::files(&root.join("scripts"), &mut files);
        let scripts = files.iter().map(|path| read(path)).collect();
        let packages = std::fs::read_dir(root.join("crates"))
            .unwrap()
            .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).ok())
            .filter_map(|text| Some(text.split_once("name = \"")?.1.split_once('"')?.0.to_owned()))
            .collect();
        Tree { root: root.to_owned(), makefile: read(&root.join("Makefile")), scripts, packages }
    }

    /// Why the command is not taken as it stands. `None` for one that is taken, and for programs of others.
    pub(super) fn wrong(&self, words: &[String]) -> Option<String> {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        if words.starts_with(&["sudo", "-u"]) {
            words.drain(..3.min(words.len()));
        }
        let settings = words.iter().take_while(|word| variable(word).is_some()).count();
        let (settings, words) = words.split_at(settings);
        let (program, arguments) = words.split_first()?;
        match program.strip_prefix("target/release/").unwrap_or(program) {
            "binlogd" => binlogd(arguments),
            "binlogd-bench" => self.of_crate("bench", arguments),
            "binlogd-lab" => self.of_crate("lab", arguments),
            "make" => self.make(settings, arguments),
            "cargo" => self.cargo(arguments),
            _ if program.starts_with("scripts/") || program.starts_with(".ci/") => {
                self.script(program, arguments)
            }
            _ => None,
        }
    }

    fn make(&self, settings: &[&str], arguments: &[&str]) -> Option<String> {
        for word in settings.iter().chain(arguments) {
            match variable(word) {
                Some(name) if has_word(&self.makefile, name) || has_word(&self.scripts, name) => {}
                Some(name) => return Some(format!("neither the Makefile nor a script knows {name}")),
                None if self.makefile.contains(&format!("\n{word}:")) => {}
                None => return Some(format!("the Makefile has no target {word}")),
            }
        }
        None
    }

    fn script(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let path = self.root.join(program);
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Some("there is no such script".to_owned());
        };
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        if program.starts_with("scripts/") && !program.starts_with("scripts/lib/") && mode & 0o111 == 0 {
            return Some("the script cannot be executed".to_owned());
        }
        let verb = arguments.first()?;
        (!case_labels(&text).contains(verb)).then(|| format!("the script knows no {verb}"))
    }

    fn cargo(&self, arguments: &[&str]) -> Option<String> {
        let end = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
        let (own, behind) = arguments.split_at(end);
        let mut package = None;
        for pair in own.windows(2) {
            let (found, what) = match pair {
                ["-p", name] => {
                    package = Some(*name);
                    (self.packages.contains(*name), "package")
                }
                ["--example", name] => {
                    (self.root.join(format!("fuzz/examples/{name}.rs")).exists(), "example")
                }
                ["--test", name] => {
                    (self.root.join(format!("crates/binlogd/tests/{name}/main.rs")).exists(), "test")
                }
                ["run" | "tmin", name] if own.contains(&"fuzz") && !name.starts_with('<') => {
                    (self.root.join(format!("fuzz/fuzz_targets/{name}.rs")).exists(), "fuzz target")
                }
                _ => continue,
            };
            if !found {
                return Some(format!("there is no {what} {}", pair[1]));
            }
        }
        let command: Vec<String> =
            package.into_iter().chain(behind.iter().skip(1).copied()).map(str::to_owned).collect();
        if own.contains(&"run") && package.is_some() { self.wrong(&command) } else { None }
    }

    /// Programs of other crates are not built with this test, so their sources are searched for verbs and options.
    fn of_crate(&self, folder: &str, arguments: &[&str]) -> Option<String> {
        let mut files = Vec::new();
        crate::imports::rust_files(&self.root.join("crates").join(folder).join("src"), &mut files);
        let mut texts: Vec<String> =
            files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        texts.retain(|text| text.contains("clap"));
        let verb = arguments.first().filter(|word| !word.starts_with('-'));
        if let Some(verb) = verb
            && !texts.iter().any(|text| has_verb(text, verb))
        {
            return Some(format!("there is no verb {verb}"));
        }
        let unknown = arguments
            .iter()
            .filter_map(|word| word.strip_prefix("--"))
            .map(|option| option.split('=').next().unwrap())
            .find(|option| *option != "help" && !texts.iter().any(|text| has_option(text, option)))?;
        Some(format!("there is no option --{unknown}"))
    }
}

/// The name in `NAME=value`.
fn variable(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .then_some(name)
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|found| found == word)
}

/// What a script's `case` distinguishes.
fn case_labels(script: &str) -> BTreeSet<&str> {
    script
        .lines()
        .filter_map(|line| line.trim().split_once(')'))
        .flat_map(|(labels, _)| labels.split('|').map(str::trim))
        .filter(|label| label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        .collect()
}

/// Whether a source has an enum of verbs with this one in it.
fn has_verb(source: &str, verb: &str) -> bool {
    let name: String =
        verb.split('-').map(|part| part[..1].to_uppercase() + &part[1..]).collect::<Vec<_>>().concat();
    let Some((_, verbs)) = source.split_once("Subcommand)]") else { return false };
    let verbs = verbs.split("\n}").next().unwrap();
    verbs.lines().any(|line| {
        line.trim().strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['(', ',', ' ', '{']))
    })
}

/// Whether a source has a field or an attribute that makes this option.
fn has_option(source: &str, option: &str) -> bool {
    let field = format!("{}:", option.replace('-', "_"));
    source.contains(&format!("\"{option}\"")) || source.split_whitespace().any(|word| word == field)
}

/// Lets the built binary parse the arguments. With `--help` behind them nothing is executed, and what the binary does not
/// know before that is an error.
fn binlogd(arguments: &[&str]) -> Option<String> {
    // An option that is only named would take `--help` for its value.
    let named = arguments.last().filter(|word| word.starts_with("--") && !arguments.contains(&"--"));
    let (help, error) = match named {
        Some(_) => parsed(&arguments[..arguments.len() - 1]),
        None => parsed(arguments),
    };
    if error.is_some() {
        return error;
    }
    let option = named?.split('=').next().unwrap();
    let known = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == option);
    (!known).then(|| format!("there is no option {option}"))
}

/// The help that the binary prints, or its complaint.
fn parsed(arguments: &[&str]) -> (String, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    // What stands behind is another program's.
    let own = arguments.iter().take_while(|word| **word != "--");
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(own)
        .arg("--help")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let error = (!output.status.success()).then(|| {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines().next().unwrap_or("no word").to_owned()
    });
    (help, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_block(text: &str) -> Vec<Vec<String>> {
        split(&Code { text: text.to_owned(), in_block: true })
    }

    fn wrong(text: &str) -> Option<String> {
        let tree = Tree::new(&super::super::root());
        in_block(text).iter().find_map(|command| tree.wrong(command))
    }

    #[test]
    fn commands_are_cut_out_of_lines() {
        for (line, words) in [
            ("make x   # why", vec![vec!["make", "x"]]),
            ("make x          what for", vec![vec!["make", "x"]]),
            ("binlogd run    --source a", vec![vec!["binlogd", "run", "--source", "a"]]),
            (
                "cd /a && binlogd verify 'a b'; make",
                vec![vec!["cd", "/a"], vec!["binlogd", "verify", "a b"], vec!["make"]],
            ),
            (
                "binlogd status [--all | --json] x | cat",
                vec![vec!["binlogd", "status", "--all", "--json", "x"], vec!["cat"]],
            ),
        ] {
            assert_eq!(in_block(line), words, "{line}");
        }
        assert_eq!(
            split(&Code { text: "# only a comment".to_owned(), in_block: true }),
            Vec::<Vec<String>>::new()
        );
    }

    #[test]
    fn commands_of_today_are_taken() {
        for line in [
            "binlogd verify DIR",
            "binlogd config check",
            "sudo -u binlogd binlogd rescue /var/lib/binlogd --to mysql://root@db2:3306 --dry-run",
            "binlogd status [--config FILE | --data-dir DIR] [--json]",
            "make check",
            "DEMO_SERVER=mariadb make demo",
            "make sim STEPS=1",
            "scripts/servers fetch all",
            "scripts/demo --help",
            "cargo build --release -p binlogd",
            "cargo run -p binlogd-bench -- ack --help",
            "binlogd-lab run all --profile smoke",
            "cargo +nightly fuzz run cursor -- -max_total_time=600",
            "mysqlbinlog --anything",
        ] {
            assert_eq!(wrong(line), None, "{line}");
        }
    }

    #[test]
    fn commands_that_nobody_knows_are_found() {
        for line in [
            "binlogd varify DIR",
            "binlogd verify DIR --absent",
            "binlogd verify DIR --absent value",
            "binlogd config chuck",
            "binlogd status [--absent FILE | --data-dir DIR]",
            "true && sudo -u binlogd binlogd absent",
            "make absent",
            "make check ABSENT=1",
            "ABSENT=1 make check",
            "scripts/absent",
            "scripts/servers absent",
            "scripts/check absent",
            "cargo build -p absent",
            "cargo run -p binlogd-bench -- absent",
            "cargo run -p binlogd -- absent",
            "cargo test --test absent",
            "binlogd-lab absent",
            "binlogd-lab run all --nowhere",
            "cargo +nightly fuzz run absent",
            "cargo run --example absent",
        ] {
            assert!(wrong(line).is_some(), "{line}");
        }
    }
}
