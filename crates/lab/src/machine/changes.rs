//! What a study changes of this machine itself: limits of disks, control groups, the kernel's limits of dirty pages. Each
//! change is in a file, durable, before it is made; it is set back at the end, by the next run, or by `binlogd-lab restore`.

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How the name of such a file ends. It lies beside the journals of servers.
const SUFFIX: &str = ".machine";
/// The file of a control group (cgroup v2) that says which controllers the groups in it have.
pub(crate) const CONTROLLERS: &str = "cgroup.subtree_control";

/// A file of the kernel's that is written, and how that is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The kernel's file.
    pub file: PathBuf,
    /// What is written. A line of the file is this for as long as nobody else has changed it.
    pub new: String,
    /// The file by which that is undone, most often the same.
    pub back_file: PathBuf,
    /// What is written there to undo it.
    pub back: String,
}

impl Change {
    /// Writes it back where it is still in force; what somebody else has set meanwhile stays, and so does a machine that
    /// was started anew. Tells what was undone, if there was something.
    fn undo(&self) -> anyhow::Result<Option<String>> {
        if !self.is_in_force()? {
            return Ok(None);
        }
        write(&self.back_file, &self.back)?;
        Ok(Some(format!("{}: {} again", self.back_file.display(), self.back)))
    }

    fn is_in_force(&self) -> anyhow::Result<bool> {
        match std::fs::read_to_string(&self.file) {
            // Of another kernel than the one that was changed.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            read => {
                let now = read.with_context(|| format!("reading {}", self.file.display()))?;
                Ok(now.lines().any(|line| line.trim() == self.new))
            }
        }
    }
}

/// A control group (cgroup v2) that is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    folder: PathBuf,
    /// Controllers that are switched on for it. Those that were on already stay as they are.
    switched_on: Vec<String>,
}

impl Group {
    /// One in that folder, with these controllers. Nothing is changed yet.
    ///
    /// # Errors
    /// When it cannot be read which of them are on there.
    pub fn with(controllers: &[&str], folder: PathBuf) -> anyhow::Result<Group> {
        let mut group = Group { folder, switched_on: Vec::new() };
        let on = group.controllers()?;
        let off = controllers.iter().copied().filter(|one| !on.iter().any(|name| name.as_str() == *one));
        group.switched_on.extend(off.map(str::to_owned));
        Ok(group)
    }

    fn switch(&self) -> PathBuf {
        self.folder.with_file_name(CONTROLLERS)
    }

    /// Those that are on.
    fn controllers(&self) -> anyhow::Result<Vec<String>> {
        let switch = self.switch();
        let on = std::fs::read_to_string(&switch).with_context(|| format!("reading {}", switch.display()))?;
        Ok(on.split_whitespace().map(str::to_owned).collect())
    }

    /// The folder comes first and goes last: only while it is there may there be something to undo.
    fn make(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make {}", self.folder.display()))?;
        self.switched_on.iter().try_for_each(|one| write(&self.switch(), &format!("+{one}")))
    }

    fn undo(&self) -> anyhow::Result<Option<String>> {
        let failed = || format!("cannot remove {}; a server may still be in it", self.folder.display());
        if !self.folder.try_exists().with_context(failed)? {
            return Ok(None);
        }
        let on = self.controllers()?;
        for one in self.switched_on.iter().filter(|one| on.contains(one)) {
            let switch = self.switch();
            match std::fs::write(&switch, format!("-{one}")) {
                // Another group has passed it on meanwhile: somebody else wants it.
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
                written => written.with_context(|| format!("writing -{one} to {}", switch.display()))?,
            }
        }
        std::fs::remove_dir(&self.folder).with_context(failed)?;
        Ok(Some(format!("{}: removed", self.folder.display())))
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("writing {text} to {}", file.display()))
}

/// A line of a file of changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Step {
    Change(Change),
    Group(Group),
}

impl Step {
    fn make(&self) -> anyhow::Result<()> {
        match self {
            Step::Change(change) => write(&change.file, &change.new),
            Step::Group(group) => group.make(),
        }
    }

    fn undo(&self) -> anyhow::Result<Option<String>> {
        match self {
            Step::Change(change) => change.undo(),
            Step::Group(group) => group.undo(),
        }
    }
}

/// Changes of this machine. Dropping them undoes them.
#[derive(Debug)]
pub struct MachineChanges {
    path: PathBuf,
    /// Locked for as long as the changes are wanted.
    file: File,
    steps: Vec<Step>,
    say: fn(&str),
}

impl MachineChanges {
    /// Begins a file of changes in the folder of journals. Nothing is changed yet.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(journals: &Path, say: fn(&str)) -> anyhow::Result<MachineChanges> {
        std::fs::create_dir_all(journals)
            .with_context(|| format!("cannot make the folder {}", journals.display()))?;
        let failed = || format!("cannot write in {}", journals.display());
        // Locked before it has its name: whoever restores would take it for one of a run that was killed.
        let mut unnamed = tempfile::NamedTempFile::new_in(journals).with_context(failed)?;
        flock(unnamed.as_file(), FlockOperation::NonBlockingLockExclusive).with_context(failed)?;
        let process = std::process::id();
        let mut number = 0;
        // Several of one process, in a scene that limits its disk and changes something else too.
        let (path, file) = loop {
            let path = journals.join(format!("{process}-{number}{SUFFIX}"));
            match unnamed.persist_noclobber(&path) {
                Ok(file) => break (path, file),
                Err(taken) if taken.error.kind() == ErrorKind::AlreadyExists => {
                    unnamed = taken.file;
                    number += 1;
                }
                Err(error) => bail!("cannot write {}: {}", path.display(), error.error),
            }
        };
        File::open(journals)?.sync_all()?;
        Ok(MachineChanges { path, file, steps: Vec::new(), say })
    }

    /// Makes a change.
    ///
    /// # Errors
    /// When it cannot be written down, and when the kernel refuses it.
    pub fn make(&mut self, change: Change) -> anyhow::Result<()> {
        self.take(Step::Change(change))
    }

    /// Makes a control group.
    ///
    /// # Errors
    /// As [`MachineChanges::make`].
    pub fn make_group(&mut self, group: Group) -> anyhow::Result<()> {
        self.take(Step::Group(group))
    }

    /// Which of the changes are not in force, in words: somebody else has made another one meanwhile.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn not_in_force(&self) -> anyhow::Result<Option<String>> {
        for step in &self.steps {
            let Step::Change(change) = step else { continue };
            if !change.is_in_force()? {
                let file = change.file.display();
                return Ok(Some(format!("{file} has no {:?} any more: somebody has changed it", change.new)));
            }
        }
        Ok(None)
    }

    fn take(&mut self, step: Step) -> anyhow::Result<()> {
        let line = serde_json::to_string(&step)? + "\n";
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data())?;
        let made = step.make();
        self.steps.push(step);
        made
    }
}

impl Drop for MachineChanges {
    fn drop(&mut self) {
        let Undone { failed, .. } = undo(&self.path, &self.steps, Vec::new());
        if !failed.is_empty() {
            let failed = failed.join("; ");
            (self.say)(&format!("this machine is not as it was: {failed}; binlogd-lab restore tries again"));
        }
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// What was undone, and what could not be, each in words.
#[derive(Debug, Default)]
struct Undone {
    done: Vec<String>,
    failed: Vec<String>,
}

/// Undoes all, the last first and each whether the others work or not. Then their file is removed, unless something has
/// failed, now or before.
fn undo(path: &Path, steps: &[Step], failed: Vec<String>) -> Undone {
    let mut undone = Undone { done: Vec::new(), failed };
    for step in steps.iter().rev() {
        match step.undo() {
            Ok(done) => undone.done.extend(done),
            Err(error) => undone.failed.push(format!("{error:#}")),
        }
    }
    if undone.failed.is_empty() {
        let removed = std::fs::remove_file(path);
        undone.failed.extend(removed.err().map(|error| format!("cannot remove {}: {error}", path.display())));
    }
    undone
}

/// Undoes what runs that were killed have left changed on this machine. A line for each thing that was done.
///
/// # Errors
/// When something could not be undone. All else is undone nevertheless, and what it was stays written down.
pub fn restore(journals: &Path) -> anyhow::Result<Vec<String>> {
    let failed = || format!("cannot read {}", journals.display());
    let entries = match std::fs::read_dir(journals) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(failed)?,
    };
    let mut all = Undone::default();
    for entry in entries {
        match entry.with_context(failed).and_then(|entry| restore_one(&entry.path())) {
            Ok(Undone { done, failed }) => {
                all.done.extend(done);
                all.failed.extend(failed);
            }
            Err(error) => all.failed.push(format!("{error:#}")),
        }
    }
    let Undone { mut done, failed } = all;
    if failed.is_empty() {
        return Ok(done);
    }
    if done.is_empty() {
        done.push("nothing".to_owned());
    }
    bail!("this machine is not as it was: {}. What was undone: {}", failed.join("; "), done.join("; "))
}

/// Undoes what is in one file, if that is one of changes and no run still wants them.
fn restore_one(path: &Path) -> anyhow::Result<Undone> {
    if !path.to_string_lossy().ends_with(SUFFIX) {
        return Ok(Undone::default());
    }
    let failed = || format!("reading {}", path.display());
    let mut file = match File::open(path) {
        // Its run has removed it meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Undone::default()),
        opened => opened.with_context(failed)?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Undone::default()),
        Err(error) => return Err(error).with_context(failed),
    }
    // Its run has removed it before it was locked here, and may have another one by that name now.
    if file.metadata().with_context(failed)?.nlink() == 0 {
        return Ok(Undone::default());
    }
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(failed)?;
    // A last line without an end was being written when the run was killed: its change was not made.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let (mut steps, mut unread) = (Vec::new(), Vec::new());
    for line in whole.lines() {
        match serde_json::from_str::<Step>(line) {
            Ok(step) => steps.push(step),
            Err(error) => unread.push(format!("{}: {error}", failed())),
        }
    }
    Ok(undo(path, &steps, unread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(file: &Path, new: &str) -> Change {
        let back = "20".to_owned();
        Change { file: file.to_owned(), new: new.to_owned(), back_file: file.to_owned(), back }
    }

    #[test]
    fn what_is_changed_is_undone_unless_somebody_else_has_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let journals = dir.path().join("journals");
        let mut changes = MachineChanges::begin(&journals, |_| ()).unwrap();
        changes.make(change(&one, "5")).unwrap();
        changes.make(change(&two, "6")).unwrap();
        assert_eq!((read(&one), read(&two)), ("5".to_owned(), "6".to_owned()));
        // It is in use, by this process.
        assert!(restore(&journals).unwrap().is_empty() && read(&one) == "5");
        assert_eq!(changes.not_in_force().unwrap(), None);
        std::fs::write(&two, "7\n").unwrap();
        let changed = changes.not_in_force().unwrap().unwrap();
        assert!(changed.ends_with("two has no \"6\" any more: somebody has changed it"), "{changed}");
        drop(changes);
        assert_eq!((read(&one), read(&two)), ("20".to_owned(), "7\n".to_owned()));
        assert_eq!(std::fs::read_dir(&journals).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_has_left_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("limits");
        std::fs::write(&file, "7:1 5\n7:2 6\n").unwrap();
        let line = serde_json::to_string(&change(&file, "7:2 6")).unwrap();
        std::fs::write(dir.path().join("1-0.machine"), format!("{line}\n{{\"half")).unwrap();
        let done = restore(dir.path()).unwrap();
        assert!(done.len() == 1 && done[0].ends_with("limits: 20 again"), "{done:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "20");
        assert!(restore(dir.path()).unwrap().is_empty());
        assert!(restore(&dir.path().join("missing")).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_undone_stops_nothing_and_stays_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        // A folder cannot be read as a file.
        std::fs::create_dir(path("unreadable")).unwrap();
        std::fs::write(path("limit"), "6\n").unwrap();
        let line = |name: &str| serde_json::to_string(&change(&path(name), "6")).unwrap() + "\n";
        std::fs::write(path("1-0.machine"), line("limit") + &line("unreadable")).unwrap();
        std::fs::write(path("1-1.machine"), "no change\n").unwrap();
        let error = restore(dir.path()).unwrap_err().to_string();
        for told in ["unreadable", "1-1.machine", "limit: 20 again"] {
            assert!(error.contains(told), "{error}");
        }
        assert_eq!(std::fs::read_to_string(path("limit")).unwrap(), "20");
        assert!(path("1-0.machine").exists() && path("1-1.machine").exists());
        // As on another kernel, which has no such file.
        std::fs::remove_dir(path("unreadable")).unwrap();
        std::fs::remove_file(path("1-1.machine")).unwrap();
        assert!(restore(dir.path()).unwrap().is_empty() && !path("1-0.machine").exists());
    }

    #[test]
    fn a_group_goes_with_the_controllers_that_were_switched_on_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, switch) = (dir.path().join("group"), dir.path().join(CONTROLLERS));
        let (read, journals) = (|| std::fs::read_to_string(&switch).unwrap(), dir.path().join("journals"));
        let make = || {
            let group = Group::with(&["io", "memory"], folder.clone()).unwrap();
            let mut changes = MachineChanges::begin(&journals, |_| ()).unwrap();
            changes.make_group(group).unwrap();
            assert!(folder.is_dir());
            changes
        };
        std::fs::write(&switch, "cpu memory\n").unwrap();
        let changes = make();
        assert_eq!(read(), "+io");
        // As the kernel shows it.
        std::fs::write(&switch, "cpu io memory\n").unwrap();
        drop(changes);
        assert!(!folder.exists() && read() == "-io");
        // Those that were on stay, and one of a run that was killed goes.
        std::fs::write(&switch, "cpu io memory\n").unwrap();
        let changes = make();
        let written = std::fs::read(&changes.path).unwrap();
        drop(changes);
        assert_eq!(read(), "cpu io memory\n");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(journals.join("1-0.machine"), written).unwrap();
        assert_eq!(restore(&journals).unwrap().len(), 1);
        assert!(!folder.exists() && read() == "cpu io memory\n");
        assert_eq!(std::fs::read_dir(&journals).unwrap().count(), 0);
    }
}
