//! The link between source and receivers: receivers live in a network namespace of their own, behind a pair of virtual
//! interfaces that delay what passes.

use crate::network::Network;
use crate::skip::Skip;
use anyhow::{Context, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the names of namespaces begin with; the number of the process follows.
const PREFIX: &str = "binlogd-lab-";
/// Where `ip netns` keeps them.
const NAMESPACES: &str = "/run/netns";
/// Packets that may be under way at once. More than any load has: one that was dropped would be sent again much later.
const PACKETS_MAX: &str = "100000";

/// A link that is up. Dropping it takes it down: declare it after what lives behind it.
#[derive(Debug)]
pub struct Link {
    namespace: String,
    /// The interface on this side, and the one on the receivers' side.
    interfaces: [String; 2],
    /// The addresses of the same.
    addresses: [String; 2],
}

/// While it lives, this thread is where the receivers are, and what it starts and what it connects to stays there.
#[derive(Debug)]
pub struct Entered {
    before: Option<File>,
    /// The namespace is the thread's.
    of_this_thread: PhantomData<*const ()>,
}

impl Link {
    /// Puts one up, and removes those of runs that were killed.
    ///
    /// # Errors
    /// [`Skip`] where that cannot be done: not as root, without `ip` and `tc`, on a kernel without netem.
    pub fn up(network: &Network) -> anyhow::Result<Link> {
        if !rustix::process::geteuid().is_root() {
            return Err(skip("only root may make network namespaces"));
        }
        remove_leftovers();
        let process = std::process::id();
        // Of a range that no network should use outside of one machine: RFC 2544 has it for benchmarks.
        let subnet = (process % 32_768) * 4;
        let address = |host: u32| {
            let number = subnet + host;
            format!("198.{}.{}.{}", 18 + (number >> 16), number >> 8 & 255, number & 255)
        };
        let link = Link {
            namespace: format!("{PREFIX}{process}"),
            interfaces: ["s", "r"].map(|side| format!("lab{}{side}", process % 10_000_000)),
            addresses: [address(1), address(2)],
        };
        let Link { namespace, interfaces: [near, far], addresses: [near_address, far_address] } = &link;
        run("ip", &["netns", "add", namespace])?;
        run("ip", &["link", "add", near, "type", "veth", "peer", "name", far, "netns", namespace])?;
        run("ip", &["addr", "add", &format!("{near_address}/30"), "dev", near])?;
        run("ip", &["link", "set", near, "up"])?;
        run("ip", &["-n", namespace, "addr", "add", &format!("{far_address}/30"), "dev", far])?;
        run("ip", &["-n", namespace, "link", "set", far, "up"])?;
        run("ip", &["-n", namespace, "link", "set", "lo", "up"])?;
        if !network.delay.is_zero() {
            let delay = format!("{}us", network.delay.as_micros());
            let netem = |interface| {
                ["qdisc", "add", "dev", interface, "root", "netem", "delay", &delay, "limit", PACKETS_MAX]
                    .map(str::to_owned)
            };
            run("tc", &netem(near))?;
            run("ip", &[&["netns", "exec", namespace, "tc"].map(str::to_owned)[..], &netem(far)].concat())?;
        }
        Ok(link)
    }

    /// The address of this side, where receivers find the source.
    pub fn source_address(&self) -> &str {
        &self.addresses[0]
    }

    /// The address from which receivers come.
    pub fn receiver_address(&self) -> &str {
        &self.addresses[1]
    }

    /// Puts this thread where the receivers are.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enter(&self) -> anyhow::Result<Entered> {
        let failed = || format!("entering the network namespace {}", self.namespace);
        let before = File::open("/proc/thread-self/ns/net").with_context(failed)?;
        let there = File::open(Path::new(NAMESPACES).join(&self.namespace)).with_context(failed)?;
        move_into_link_name_space(there.as_fd(), Some(LinkNameSpaceType::Network)).with_context(failed)?;
        Ok(Entered { before: Some(before), of_this_thread: PhantomData })
    }
}

impl Entered {
    /// Where one is anyway, for a run without a link.
    pub fn nowhere() -> Entered {
        Entered { before: None, of_this_thread: PhantomData }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let back = move_into_link_name_space(before.as_fd(), Some(LinkNameSpaceType::Network));
            // Everything that this thread does from here on would be in the wrong place.
            back.expect("a thread may return to the namespace that it comes from");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The namespace lives as long as a process in it; the interfaces must not.
        let _ = run("ip", &["link", "del", &self.interfaces[0]]);
        let _ = run("ip", &["netns", "del", &self.namespace]);
    }
}

/// Removes the namespaces of labs that are gone.
fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir(NAMESPACES) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.strip_prefix(PREFIX) else { continue };
        if !PathBuf::from(format!("/proc/{process}")).exists() {
            let _ = run("ip", &["netns", "del", &name]);
        }
    }
}

fn skip(why: &str) -> anyhow::Error {
    Skip::lacks(format!("no network between source and receivers (--network): {why}")).into()
}

fn run<S: AsRef<str>>(program: &str, arguments: &[S]) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let output = match Command::new(program).args(&words).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(skip(&format!(
                "{program} is missing: install iproute2 (apt-get install iproute2; dnf install iproute iproute-tc)"
            )));
        }
        other => other.with_context(|| format!("cannot run {program}"))?,
    };
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if complaint.contains("qdisc kind is unknown") {
        return Err(skip(
            "this kernel has no netem: load its module (modprobe sch_netem), which some distributions have in a package \
             of its own (linux-modules-extra, kernel-modules-extra)",
        ));
    }
    if complaint.contains("not permitted") || complaint.contains("denied") {
        return Err(skip(&format!("{program} may not do it here: {complaint}")));
    }
    bail!("{program} {} failed: {complaint}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Where this may be done: as root, with iproute2. A delay needs netem beside.
    #[test]
    fn receivers_reach_the_source_over_the_link_and_nothing_is_left() {
        let link = match Link::up(&"delay=0ms".parse().unwrap()) {
            Ok(link) => link,
            Err(error) if error.is::<Skip>() => return,
            Err(error) => panic!("{error:#}"),
        };
        let source = TcpListener::bind((link.source_address(), 0)).unwrap();
        let port = source.local_addr().unwrap().port();
        let mut receiver = {
            let _entered = link.enter().unwrap();
            TcpStream::connect((link.source_address(), port)).unwrap()
        };
        let (mut accepted, from) = source.accept().unwrap();
        assert_eq!(from.ip().to_string(), link.receiver_address());
        accepted.write_all(b"event").unwrap();
        let mut read = [0; 5];
        receiver.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"event");
        let namespace = Path::new(NAMESPACES).join(&link.namespace);
        assert!(namespace.exists());
        drop(link);
        assert!(!namespace.exists());
        // One of a lab that was killed.
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let left = format!("{PREFIX}{}", ended.id());
        run("ip", &["netns", "add", &left]).unwrap();
        drop(Link::up(&"delay=0ms".parse().unwrap()).unwrap());
        assert!(!Path::new(NAMESPACES).join(left).exists());
        // With a delay, or told why not.
        match Link::up(&"delay=0.1ms".parse().unwrap()) {
            Ok(_) => {}
            Err(error) => assert!(error.is::<Skip>() && error.to_string().contains("netem"), "{error:#}"),
        }
        assert!(!namespace.exists());
    }
}
