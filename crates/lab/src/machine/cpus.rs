//! Who runs on which processors: source, receivers and load can be kept off each other's.

use anyhow::{Context, bail, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// Who.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The server that is loaded.
    Source,
    /// What receives its binary log: binlogd, real replicas, yardsticks.
    Receiver,
    /// The programs that load it.
    Load,
}

/// All of them, by name.
pub const ROLES: [(Role, &str); 3] =
    [(Role::Source, "source"), (Role::Receiver, "receiver"), (Role::Load, "load")];

/// Processors by the kernel's numbers, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(BTreeSet<usize>);

/// On which processors each runs; whoever is not named may run on all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cpus(BTreeMap<Role, CpuList>);

/// While it lives, what this thread starts runs on some processors alone, for good, and so does the thread itself until
/// it is dropped.
#[derive(Debug)]
pub struct Pinned {
    before: Option<CpuSet>,
    /// The affinity is the thread's.
    of_this_thread: PhantomData<*const ()>,
}

impl Cpus {
    /// The processors of a role; none when it may run on all.
    pub fn of(&self, role: Role) -> Option<&CpuList> {
        self.0.get(&role)
    }

    /// Whether everyone may run on all.
    pub fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them may be used by this process, and so by what it starts.
    ///
    /// # Errors
    /// When one may not; the error names it, and those that may.
    pub fn check(&self) -> anyhow::Result<()> {
        let allowed = allowed()?;
        for (role, name) in ROLES {
            let strange = self.of(role).and_then(|list| list.0.iter().find(|cpu| !allowed.0.contains(cpu)));
            if let Some(cpu) = strange {
                bail!(
                    "--cpus {self}: {name} cannot run on processor {cpu}, this process may use {allowed} alone"
                );
            }
        }
        Ok(())
    }

    /// Lets what this thread starts from now on run on the role's processors alone.
    ///
    /// # Errors
    /// When the kernel refuses, most often because there is no such processor any more.
    pub fn pin(&self, role: Role) -> anyhow::Result<Pinned> {
        let before = match self.of(role) {
            None => None,
            Some(list) => {
                let failed = || format!("cannot run on the processors {list} alone");
                let before = sched_getaffinity(None).with_context(failed)?;
                let mut wanted = CpuSet::new();
                list.0.iter().for_each(|cpu| wanted.set(*cpu));
                sched_setaffinity(None, &wanted).with_context(failed)?;
                Some(before)
            }
        };
        Ok(Pinned { before, of_this_thread: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// Those that this thread may use.
fn allowed() -> anyhow::Result<CpuList> {
    let set = sched_getaffinity(None).context("which processors may be used")?;
    Ok(CpuList((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()))
}

/// Those that a process may use, as the kernel prints them; none when it is gone.
pub fn of_process(pid: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned())
}

impl FromStr for Cpus {
    type Err = anyhow::Error;

    /// `source=0,receiver=1,load=0-1`; a list may have commas too: `load=0,2-3`.
    fn from_str(text: &str) -> anyhow::Result<Cpus> {
        let mut lists: Vec<(Role, Vec<&str>)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            match (part.split_once('='), lists.last_mut()) {
                (Some((name, list)), _) => lists.push((role(name.trim())?, vec![list])),
                // A part without a name goes on with the list before it.
                (None, Some((_, list))) => list.push(part),
                (None, None) => bail!("{part:?} says not whose: {WANTED}"),
            }
        }
        let mut cpus = BTreeMap::new();
        for (role, parts) in lists {
            let list = parts.join(",").parse()?;
            ensure!(cpus.insert(role, list).is_none(), "one role is named twice: {WANTED}");
        }
        Ok(Cpus(cpus))
    }
}

/// What a right value looks like.
const WANTED: &str = "source=0,receiver=1,load=0-1 is wanted, each of the three once at most";

fn role(name: &str) -> anyhow::Result<Role> {
    let found = ROLES.into_iter().find(|(_, known)| *known == name);
    found
        .map(|(role, _)| role)
        .with_context(|| format!("{name:?} is none of source, receiver and load: {WANTED}"))
}

impl FromStr for CpuList {
    type Err = anyhow::Error;

    /// `0`, `0-3` or `0,2-3`.
    fn from_str(text: &str) -> anyhow::Result<CpuList> {
        let mut list = BTreeSet::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => list.extend(first..=last),
                _ => bail!("{part:?} is no processor and no range of processors: {WANTED}"),
            }
        }
        Ok(CpuList(list))
    }
}

impl fmt::Display for CpuList {
    /// With ranges: `0-1,3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for cpu in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
                _ => ranges.push((*cpu, *cpu)),
            }
        }
        for (index, (first, last)) in ranges.into_iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

impl fmt::Display for Cpus {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = ROLES.into_iter().filter_map(|(role, name)| Some((name, self.of(role)?)));
        let parts: Vec<String> = named.map(|(name, list)| format!("{name}={list}")).collect();
        f.write_str(&parts.join(","))
    }
}

impl TryFrom<String> for Cpus {
    type Error = anyhow::Error;

    fn try_from(text: String) -> anyhow::Result<Cpus> {
        if text.is_empty() { Ok(Cpus::default()) } else { text.parse() }
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> String {
        cpus.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rig::process::Running;
    use std::process::Command;

    #[test]
    fn who_runs_where_is_read_and_printed() {
        for (text, printed) in [
            ("source=0,receiver=1,load=0-1", "source=0,receiver=1,load=0-1"),
            ("load=3,0,1, source=2", "source=2,load=0-1,3"),
            ("receiver=5-5", "receiver=5"),
        ] {
            assert_eq!(text.parse::<Cpus>().unwrap().to_string(), printed);
        }
        let cpus: Cpus = "source=0".parse().unwrap();
        assert_eq!(cpus.of(Role::Load), None);
        assert_eq!(serde_json::to_string(&cpus).unwrap(), "\"source=0\"");
        for cpus in [cpus, Cpus::default()] {
            let kept = serde_json::to_string(&cpus).unwrap();
            assert_eq!(serde_json::from_str::<Cpus>(&kept).unwrap(), cpus);
        }
    }

    #[test]
    fn what_is_no_such_list_is_told_with_the_part_that_is_wrong() {
        for (text, wrong) in [
            ("", "\"\" says not whose"),
            ("0-1", "\"0-1\" says not whose"),
            ("server=0", "\"server\" is none of"),
            ("source=", "\"\" is no processor"),
            ("source=a", "\"a\" is no processor"),
            ("source=1-0", "\"1-0\" is no processor"),
            ("source=-1", "\"-1\" is no processor"),
            ("load=0,,1", "\"\" is no processor"),
            ("load=99999", "\"99999\" is no processor"),
            ("load=0,source=1,load=1", "named twice"),
        ] {
            let error = text.parse::<Cpus>().unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("source=0,receiver=1"), "{text}: {error}");
        }
        let cpus: Cpus = format!("load={}", CpuSet::MAX_CPU - 1).parse().unwrap();
        let error = cpus.check().unwrap_err().to_string();
        assert!(error.contains("load cannot run on processor") && error.contains("may use"), "{error}");
    }

    #[test]
    fn what_is_started_runs_there_and_this_thread_everywhere_again() {
        let all = allowed().unwrap();
        let one = *all.0.last().unwrap();
        let cpus: Cpus = format!("receiver={one}").parse().unwrap();
        cpus.check().unwrap();
        let of_child = || {
            let child = Running(Command::new("sleep").arg("60").spawn().unwrap());
            of_process(child.0.id()).unwrap().parse::<CpuList>().unwrap()
        };
        {
            let _pinned = cpus.pin(Role::Receiver).unwrap();
            assert_eq!(of_child(), CpuList(BTreeSet::from([one])));
        }
        let _free = cpus.pin(Role::Source).unwrap();
        assert_eq!((of_child(), allowed().unwrap()), (all.clone(), all));
    }
}
