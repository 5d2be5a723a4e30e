//! Connections that have not logged in. They have room of their own, so that they take none from those that have; and who
//! comes when it is full takes the place of the one that has hesitated longest. A login takes milliseconds: who is sent away
//! is somebody who does not log in.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::{Closer, network_of};

/// Those that there are, by the number of the connection: the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<BTreeMap<u32, Stranger>>);

#[derive(Debug)]
struct Stranger {
    address: SocketAddr,
    closer: Closer,
    is_displaced: bool,
}

/// One that counts as a stranger as long as this value lives.
#[derive(Debug)]
pub(crate) struct Hesitating<'a> {
    strangers: &'a Strangers,
    id: u32,
}

impl Strangers {
    /// Connection `id` has come, and at most `max` may be there with it. Returns who was sent away for it: of the network with
    /// the most of them, the oldest.
    pub(crate) fn come(
        &self,
        id: u32,
        address: SocketAddr,
        closer: Closer,
        max: usize,
    ) -> Option<SocketAddr> {
        let mut all = self.all();
        let staying: Vec<(u32, IpAddr)> = all
            .iter()
            .filter(|(_, stranger)| !stranger.is_displaced)
            .map(|(id, stranger)| (*id, network_of(stranger.address.ip())))
            .collect();
        let displaced = if staying.len() >= max.max(1) { oldest_of_the_most(&staying) } else { None };
        let displaced = displaced.and_then(|id| all.get_mut(&id)).map(|stranger| {
            stranger.is_displaced = true;
            stranger.closer.close();
            stranger.address
        });
        all.insert(id, Stranger { address, closer, is_displaced: false });
        displaced
    }

    /// Keeps the connection among the strangers for as long as the value lives.
    pub(crate) fn hesitates(&self, id: u32) -> Hesitating<'_> {
        Hesitating { strangers: self, id }
    }

    /// Forgets one for which there was no thread.
    pub(crate) fn forget(&self, id: u32) {
        self.all().remove(&id);
    }

    /// Ends all of them.
    pub(crate) fn end_all(&self) {
        self.all().values().for_each(|stranger| stranger.closer.close());
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Stranger>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hesitating<'_> {
    /// Whether somebody else has its place.
    pub(crate) fn is_displaced(&self) -> bool {
        self.strangers.all().get(&self.id).is_some_and(|stranger| stranger.is_displaced)
    }
}

impl Drop for Hesitating<'_> {
    fn drop(&mut self) {
        self.strangers.forget(self.id);
    }
}

fn oldest_of_the_most(staying: &[(u32, IpAddr)]) -> Option<u32> {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    for (_, network) in staying {
        *counts.entry(*network).or_default() += 1;
    }
    let most = counts.values().max()?;
    staying.iter().find(|(_, network)| counts.get(network) == Some(most)).map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (Closer, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0.into(), theirs)
    }

    #[test]
    fn who_fills_the_room_is_sent_away_and_nobody_else() {
        let strangers = Strangers::default();
        let come = |id, from: &str| {
            let (closer, theirs) = pair();
            (strangers.come(id, from.parse().unwrap(), closer, 3), theirs)
        };
        let (none, _honest) = come(1, "10.0.0.1:1");
        let (also_none, mut crowd) = come(2, "[2001:db8::1]:1");
        let (still_none, _crowd_too) = come(3, "[2001:db8::2]:1");
        assert!(none.is_none() && also_none.is_none() && still_none.is_none());
        let two = strangers.hesitates(2);
        let (gone, _newcomer) = come(4, "10.0.0.2:1");
        assert_eq!(gone.unwrap().to_string(), "[2001:db8::1]:1", "the oldest of the /64 with the most");
        assert_eq!(crowd.read(&mut [0]).unwrap(), 0, "its connection has ended");
        assert!(two.is_displaced() && !strangers.hesitates(99).is_displaced());
        drop(two);
        assert_eq!(strangers.all().keys().copied().collect::<Vec<_>>(), [1, 3, 4]);
        let (gone, _newcomer) = come(5, "10.0.0.3:1");
        assert_eq!(gone.unwrap().to_string(), "10.0.0.1:1", "where no network has more, the oldest of all");
    }
}
