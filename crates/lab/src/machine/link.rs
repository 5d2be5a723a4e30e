//! The link between source and receivers: receivers live in a network namespace of their own, behind a pair of virtual
//! interfaces that delay what passes.
//!
//! The kernel's netem delays where there is one. Many kernels of virtual machines and containers have none: there the
//! interfaces are TUN devices, and the lab carries the packets from one to the other itself.

mod command;
mod delayer;
mod round_trip;
mod tun;

use self::command::{run, skip, tried};
use self::delayer::Delayer;
use crate::apart;
use crate::machine::network::Network;
use crate::results::fact::Fact;
use anyhow::{Context, bail};
use rig::statistics::Percentiles;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::marker::PhantomData;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the names of namespaces begin with; the number of the process follows.
const PREFIX: &str = "binlogd-lab-";
/// Where `ip netns` keeps them.
const NAMESPACES: &str = "/run/netns";
/// Packets that may be under way at once. More than any load has: one that was dropped would be sent again much later.
const PACKETS_MAX: &str = "100000";
/// The same where the lab delays: those that it has not taken yet.
const TUN_PACKETS_MAX: &str = "10000";

/// What taking and giving a packet may be found to take, each way. More means that something else was in the way.
const SURPLUS_MAX: Duration = Duration::from_micros(200);

/// Measurements, a second each at most, of which the shortest is what a delay is corrected by.
const CORRECTED_BY: usize = 3;

/// A link that is up. Dropping it takes it down: declare it after what lives behind it.
#[derive(Debug)]
pub struct Link {
    namespace: String,
    /// The interface on this side, and the one on the receivers' side.
    interfaces: [String; 2],
    /// The addresses of the same.
    addresses: [String; 2],
    /// What delays the packets.
    delayed_by: DelayedBy,
}

/// What delays the packets of a link.
#[derive(Debug)]
enum DelayedBy {
    /// Nothing: no delay was asked for.
    Nothing,
    /// The kernel.
    Netem,
    /// This process, as long as the delayer lives.
    Lab(Delayer),
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
    /// [`Skip`](crate::results::skip::Skip) where that cannot be done: not as root, without `ip` and `tc`, on a kernel with neither
    /// netem nor TUN.
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
        let mut link = Link {
            namespace: format!("{PREFIX}{process}"),
            interfaces: ["s", "r"].map(|side| format!("lab{}{side}", process % 10_000_000)),
            addresses: [address(1), address(2)],
            delayed_by: DelayedBy::Nothing,
        };
        run("ip", &["netns", "add", &link.namespace])?;
        link.make_pair()?;
        link.set_up()?;
        if !network.delay.is_zero() {
            link.delayed_by = match link.netem(network.delay)? {
                true => DelayedBy::Netem,
                false => DelayedBy::Lab(link.delay_here(network.delay)?),
            };
        }
        Ok(link)
    }

    /// Gives the interfaces their addresses, and lets them carry.
    fn set_up(&self) -> anyhow::Result<()> {
        let Link { namespace, interfaces: [near, far], addresses: [near_address, far_address], .. } = self;
        run("ip", &["addr", "add", &format!("{near_address}/30"), "dev", near])?;
        run("ip", &["link", "set", near, "up"])?;
        run("ip", &["-n", namespace, "addr", "add", &format!("{far_address}/30"), "dev", far])?;
        run("ip", &["-n", namespace, "link", "set", far, "up"])?;
        run("ip", &["-n", namespace, "link", "set", "lo", "up"])
    }

    /// The two interfaces as a pair of the kernel's.
    fn make_pair(&self) -> anyhow::Result<()> {
        let Link { namespace, interfaces: [near, far], .. } = self;
        run("ip", &["link", "add", near, "type", "veth", "peer", "name", far, "netns", namespace])
    }

    /// Lets the kernel delay what the pair carries. False where it cannot.
    fn netem(&self, delay: Duration) -> anyhow::Result<bool> {
        let Link { namespace, interfaces: [near, far], .. } = self;
        let delay = format!("{}us", delay.as_micros());
        let netem = |interface| {
            ["qdisc", "add", "dev", interface, "root", "netem", "delay", &delay, "limit", PACKETS_MAX]
                .map(str::to_owned)
        };
        match tried("tc", &netem(near))? {
            Ok(()) => {}
            Err(complaint) if is_without_netem(&complaint, near) => return Ok(false),
            Err(complaint) => bail!("tc {} failed: {complaint}", netem(near).join(" ")),
        }
        run("ip", &[&["netns", "exec", namespace, "tc"].map(str::to_owned)[..], &netem(far)].concat())?;
        Ok(true)
    }

    /// Puts devices of this process in the place of the pair, and delays what they carry.
    ///
    /// Taking a packet, waking when it is due and giving it takes time of its own. A round trip shows how much, and the packets
    /// are kept for as much less, so that one takes as much longer than over the pair as was asked for. Both are measured
    /// with the processors busy, as they are under load: from sleep they wake later.
    fn delay_here(&self, delay: Duration) -> anyhow::Result<Delayer> {
        if !Path::new(tun::DEVICE).exists() {
            return Err(skip(&format!(
                "this kernel has no netem, and no {} with which the lab would delay packets itself. Load one's module \
                 (modprobe sch_netem, modprobe tun); some distributions have netem in a package of its own \
                 (linux-modules-extra, kernel-modules-extra)",
                tun::DEVICE
            )));
        }
        let without = self.shortest_while_busy()?;
        let Link { namespace, interfaces: [near, far], .. } = self;
        run("ip", &["link", "del", near])?;
        let of_near = tun::make(near)?;
        let of_far = {
            let _entered = self.enter()?;
            tun::make(far)?
        };
        // As many may wait for the lab as for netem, and no more than a TUN device can have.
        run("ip", &["link", "set", near, "txqueuelen", TUN_PACKETS_MAX])?;
        run("ip", &["-n", namespace, "link", "set", far, "txqueuelen", TUN_PACKETS_MAX])?;
        let delayer = Delayer::start(of_near, of_far, delay).context("starting to delay packets")?;
        self.set_up()?;
        let took = self.shortest_while_busy()?;
        let surplus_us = (took - without) / 2.0 - delay.as_micros() as f64;
        delayer.shorten(Duration::from_nanos((surplus_us * 1e3) as u64).min(SURPLUS_MAX));
        Ok(delayer)
    }

    /// The median of a message's way and back, in microseconds, with the processors busy: the shortest of some. What others do on
    /// this machine only makes it longer, and a correction by that would last as long as the link.
    fn shortest_while_busy(&self) -> anyhow::Result<f64> {
        let mut shortest = f64::INFINITY;
        for _ in 0..CORRECTED_BY {
            shortest = shortest.min(round_trip::while_busy(|| self.round_trip())?.p50);
        }
        Ok(shortest)
    }

    /// How long a message takes from the receivers' side to this one and back.
    fn round_trip(&self) -> anyhow::Result<Percentiles> {
        round_trip::measure(self.source_address(), |port| {
            let _entered = self.enter()?;
            Ok(TcpStream::connect((self.source_address(), port))?)
        })
    }

    /// What the link is like: what delays, and how long a message takes over it and back, which is measured now.
    ///
    /// # Errors
    /// [`Skip`](crate::results::skip::Skip) when it carries nothing.
    pub fn facts(&self) -> anyhow::Result<Vec<Fact>> {
        let taken = self.round_trip().map_err(|why| skip(&format!("it carries nothing: {why:#}")))?;
        let delayed_by = match self.delayed_by {
            DelayedBy::Nothing => "nothing",
            DelayedBy::Netem => "netem",
            DelayedBy::Lab(_) => "binlogd-lab (TUN)",
        };
        let us = |value: f64| format!("{value:.0}");
        Ok(vec![
            Fact::new(apart::ABOUT, apart::DELAYED_BY, delayed_by),
            Fact::new(apart::ABOUT, apart::ROUND_TRIP_P50, us(taken.p50)),
            Fact::new(apart::ABOUT, apart::ROUND_TRIP_P99, us(taken.p99)),
        ])
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
        // The namespace lives as long as a process in it; the interfaces must not. Those of this process go with its files.
        match std::mem::replace(&mut self.delayed_by, DelayedBy::Nothing) {
            DelayedBy::Lab(delayer) => drop(delayer),
            DelayedBy::Nothing | DelayedBy::Netem => {
                let _ = run("ip", &["link", "del", &self.interfaces[0]]);
            }
        }
        let _ = run("ip", &["netns", "del", &self.namespace]);
    }
}

/// Whether `tc` complains that the kernel has no netem. An older one says only that something is not there, which could
/// be the interface.
fn is_without_netem(complaint: &str, interface: &str) -> bool {
    let is_there = || Path::new("/sys/class/net").join(interface).exists();
    complaint.contains("qdisc kind is unknown")
        || (complaint.contains("No such file or directory") && is_there())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::file_system::not_tested;
    use crate::results::skip::Skip;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::process::Command;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Instant;

    /// A process has one link at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static ONE: Mutex<()> = Mutex::new(());
        ONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where this may be done: as root, with iproute2, and for a delay on a kernel with netem or TUN.
    fn up(network: &str) -> Option<Link> {
        match Link::up(&network.parse().unwrap()) {
            Ok(link) => Some(link),
            Err(error) if error.is::<Skip>() => {
                let reason = error.to_string();
                assert!(
                    reason.starts_with("no network between source and receivers (--network): "),
                    "{reason}"
                );
                not_tested(&error);
                None
            }
            Err(error) => panic!("{error:#}"),
        }
    }

    /// Both ends of a connection over the link: the receiver's, and the source's.
    fn connected(link: &Link) -> (TcpStream, TcpStream) {
        let source = TcpListener::bind((link.source_address(), 0)).unwrap();
        let port = source.local_addr().unwrap().port();
        let receiver = {
            let _entered = link.enter().unwrap();
            TcpStream::connect((link.source_address(), port)).unwrap()
        };
        let (accepted, from) = source.accept().unwrap();
        assert_eq!(from.ip().to_string(), link.receiver_address());
        (receiver, accepted)
    }

    #[test]
    fn a_kernel_without_netem_is_told_from_an_interface_that_is_missing() {
        assert!(is_without_netem("Error: Specified qdisc kind is unknown.", "missing"));
        let older = "RTNETLINK answers: No such file or directory";
        assert!(is_without_netem(older, "lo") && !is_without_netem(older, "missing"));
        assert!(!is_without_netem("Cannot find device \"lo\"", "lo"));
    }

    #[test]
    fn receivers_reach_the_source_over_the_link_and_nothing_is_left() {
        let _alone = alone();
        for network in ["delay=0ms", "delay=0.1ms"] {
            let Some(link) = up(network) else { continue };
            let (mut receiver, mut accepted) = connected(&link);
            accepted.write_all(b"event").unwrap();
            let mut read = [0; 5];
            receiver.read_exact(&mut read).unwrap();
            assert_eq!(&read, b"event");
            let namespace = Path::new(NAMESPACES).join(&link.namespace);
            let interface = Path::new("/sys/class/net").join(&link.interfaces[0]);
            assert!(namespace.exists() && interface.exists());
            drop(link);
            assert!(!namespace.exists() && !interface.exists());
            // One of a lab that was killed.
            let mut ended = Command::new("true").spawn().unwrap();
            ended.wait().unwrap();
            let left = format!("{PREFIX}{}", ended.id());
            run("ip", &["netns", "add", &left]).unwrap();
            drop(up(network).unwrap());
            assert!(!Path::new(NAMESPACES).join(left).exists());
        }
    }

    #[test]
    fn a_delay_is_as_long_as_was_asked_for_and_bytes_keep_their_order() {
        let _alone = alone();
        let shortest_p50 = |link: &Link| {
            let mut shortest = f64::INFINITY;
            for _ in 0..20 {
                let facts = link.facts().unwrap();
                let us = |name: &str| apart::fact(&facts, name).unwrap().parse::<f64>().unwrap();
                assert!(us(apart::ROUND_TRIP_P99) >= us(apart::ROUND_TRIP_P50), "{facts:?}");
                shortest = shortest.min(us(apart::ROUND_TRIP_P50));
                if shortest < 6000.0 {
                    break;
                }
            }
            shortest
        };
        // The lab corrects a new link by what it measures of it. Other programs may use the processors: then both ends wait for one as
        // well, for milliseconds, and the correction is too large. Neither happens each time; a wrong delay is wrong each time.
        let mut told = Vec::new();
        let link = loop {
            let Some(link) = up("delay=2ms") else { return };
            told.push(shortest_p50(&link));
            if told.last().is_some_and(|us| (3900.0..6000.0).contains(us)) {
                break link;
            }
            assert!(told.len() < 10, "{told:?} µs");
        };
        // Megabytes, more than is under way at once.
        let (mut receiver, mut accepted) = connected(&link);
        let sent: Vec<u8> = (0..2_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut read = vec![0; sent.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| accepted.write_all(&sent).unwrap());
            receiver.read_exact(&mut read).unwrap();
        });
        assert!(sent == read);
    }

    /// Nanoseconds of processor that the threads which delay have used.
    fn processor_ns() -> u64 {
        let of_thread = |task: std::fs::DirEntry| -> Option<u64> {
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let used = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            (name.trim() == "lab-delay").then(|| used.split(' ').next()?.parse().ok())?
        };
        std::fs::read_dir("/proc/self/task").unwrap().flatten().filter_map(of_thread).sum()
    }

    /// What docs/measured/lab.md says of the link.
    #[test]
    #[ignore = "prints how exact delays are on this machine, and what they cost"]
    fn figures_of_the_link() {
        let _alone = alone();
        for network in ["delay=0ms", "delay=0.1ms", "delay=0.5ms", "delay=1ms"] {
            let Some(link) = up(network) else { return };
            let shown = |when: &str| {
                let values: Vec<String> = link.facts().unwrap().into_iter().map(|fact| fact.value).collect();
                println!("{network}, {when}: {}", values.join(", "));
            };
            shown("idle");
            round_trip::while_busy(|| shown("all processors busy"));
            let (mut receiver, mut accepted) = connected(&link);
            let (before, began) = (processor_ns(), Instant::now());
            let block = [0; 4096];
            let mut echoed = [0; 1];
            // As a source under load: an event of some hundred bytes and its acknowledgement, one at a time.
            let mut count = 0;
            while began.elapsed() < Duration::from_secs(2) {
                accepted.write_all(&block[..600]).unwrap();
                receiver.read_exact(&mut [0; 600]).unwrap();
                receiver.write_all(&block[..1]).unwrap();
                accepted.read_exact(&mut echoed).unwrap();
                count += 1;
            }
            let used = (processor_ns() - before) as f64;
            println!(
                "{network}: {:.0} events of 600 bytes with an acknowledgement each a second, {:.1} µs of the delayer each",
                f64::from(count) / began.elapsed().as_secs_f64(),
                used / f64::from(count) / 1e3
            );
            let (before, began) = (processor_ns(), Instant::now());
            let mut bytes = 0;
            std::thread::scope(|scope| {
                scope.spawn(move || while accepted.write_all(&block).is_ok() {});
                let mut read = [0; 1 << 16];
                while began.elapsed() < Duration::from_secs(2) {
                    bytes += receiver.read(&mut read).unwrap();
                }
                drop(receiver);
            });
            let used = (processor_ns() - before) as f64;
            println!(
                "{network}: {:.0} MB/s as fast as it goes, {:.2} of a core for the delayer",
                bytes as f64 / 1e6 / began.elapsed().as_secs_f64(),
                used / began.elapsed().as_nanos() as f64
            );
        }
    }
}
