//! What goes wrong among several servers of which one is the source at a time.

use crate::history::History;
use crate::turmoil::Turmoil;
use crate::world::Scene;
use binlog::testing::Random;
use scripted_source::LogOptions;

/// One in so many reads finds that something happens among the servers.
const CHANGE_ONE_IN: u64 = 50;

/// Most transactions that a replica applies between two reads.
const APPLIED_MAX: u64 = 4;

/// Options of a server's binary log: the servers of a list have the same names for their files.
pub fn options(host: usize) -> LogOptions {
    LogOptions { server_id: host as u32 + 1, uuid: [0xa0 + host as u8; 16], ..LogOptions::default() }
}

/// Other names, as a server may have them that was set up by other people.
pub fn apart(host: usize, random: &mut Random) -> LogOptions {
    let base_name = *random.pick(&["mysql-bin", "mysql-bin", "binlog"]);
    LogOptions { base_name: base_name.to_owned(), ..options(host) }
}

impl Turmoil {
    /// Time passes for the servers: replicas apply, whoever else takes writes is written to, and roles change.
    pub fn cluster(&mut self, scene: &mut Scene) {
        let source = scene.source;
        for host in (0..scene.hosts.len()).filter(|host| *host != source) {
            if !self.lagging.contains(&host) && self.random.one_in(4) {
                replicate(scene, source, host, 1 + self.random.below(APPLIED_MAX));
            }
            let server = &mut scene.hosts[host];
            if self.rotates_apart && self.random.one_in(25) {
                server.history.unit(|log| log.rotate());
            }
            if !server.is_read_only && self.random.one_in(12) {
                self.write(&mut server.history);
            }
        }
        if self.random.one_in(CHANGE_ONE_IN) {
            let what = self.change(scene);
            self.past.lock().expect("no panic in the past").count(what);
        }
    }

    fn change(&mut self, scene: &mut Scene) -> &'static str {
        let others: Vec<_> = (0..scene.hosts.len()).filter(|host| *host != scene.source).collect();
        let (old, other) = (scene.source, *self.random.pick(&others));
        match self.random.below(11) {
            0 => {
                scene.hosts[old].is_up = false;
                scene.disconnect_from(old);
                self.promote(scene, other);
                "failover from a dead source to a replica as it is"
            }
            1 => {
                scene.hosts[old].is_read_only = true;
                self.promote(scene, other);
                "failover while the old source still sends"
            }
            2 => {
                // Clients write to both, and the receiver may be with either.
                self.promote(scene, other);
                "two servers that claim to be the source"
            }
            3 | 4 => {
                replicate(scene, old, other, u64::MAX);
                scene.hosts[old].is_read_only = true;
                let is_seen = match self.random.below(3) {
                    0 => {
                        scene.disconnect_from(old);
                        false
                    }
                    seen => seen == 1,
                };
                self.promote(scene, other);
                if is_seen {
                    scene.switch_over(old, other);
                    return "switchover that the look at the hosts sees";
                }
                "switchover to a replica that has everything"
            }
            5 => {
                scene.hosts[other].is_up ^= true;
                scene.disconnect_from(other);
                "a replica goes or comes"
            }
            6 => {
                scene.hosts[other].is_read_only ^= true;
                "read_only of a replica switched"
            }
            7 => {
                self.rebuild(scene, other);
                "a replica built anew as a copy of the source"
            }
            8 => {
                // Whatever it goes by: a session that ends for nothing loses nothing.
                scene.switch_over(old, other);
                "a look at the hosts that is wrong"
            }
            _ => {
                if !self.lagging.remove(&other) {
                    self.lagging.insert(other);
                }
                "a replica that lags, or lags no more"
            }
        }
    }

    /// Clients write to that server from now on.
    fn promote(&mut self, scene: &mut Scene, host: usize) {
        let server = &mut scene.hosts[host];
        (server.is_up, server.is_read_only) = (true, false);
        scene.source = host;
        self.snapshot = None;
    }

    fn rebuild(&mut self, scene: &mut Scene, host: usize) {
        self.remember(scene, host);
        let executed = scene.source().log().executed_set();
        self.past.lock().expect("no panic in the past").nobody_has(&executed);
        let mut uuid = [0xc0; 16];
        uuid[..4].copy_from_slice(&self.timestamp.to_le_bytes());
        let options = LogOptions { uuid, timestamp: self.timestamp, ..options(host) };
        self.timestamp += 1000;
        let server = &mut scene.hosts[host];
        (server.history, server.is_read_only) = (History::copied(options, executed), true);
        scene.disconnect_from(host);
    }
}

/// The source dies, and that server is the source: with everything, or as it is. Nobody else takes writes.
pub fn promote_in_calm(scene: &mut Scene, host: usize, with_all: bool) {
    let old = scene.source;
    if with_all {
        replicate(scene, old, host, u64::MAX);
    }
    (scene.hosts[old].is_up, scene.hosts[old].is_read_only) = (false, true);
    scene.disconnect_from(old);
    scene.hosts[host].is_read_only = false;
    scene.source = host;
}

/// One server applies at most `count` transactions of another one.
fn replicate(scene: &mut Scene, from: usize, to: usize, count: u64) {
    let [from, to] = scene.hosts.get_disjoint_mut([from, to]).expect("two servers of the list");
    for _ in 0..count {
        if !to.history.replicate(&from.history) {
            break;
        }
    }
}
