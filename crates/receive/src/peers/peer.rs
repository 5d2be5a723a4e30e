//! Another binlogd of the same source: what it says of itself, and what it may have that the copy lacks.
//!
//! A peer is asked by the port for its readers. It presents the source, so one variable of its own tells it from a server:
//! `binlogd_timelines`, with what it has of each timeline by place (`binlog::timeline::extent`). Two copies of one timeline are beginnings of
//! the same bytes, so the places tell which has more; the bytes are compared before anything is taken.

use crate::attempt::context::Upstream;
use binlog::timeline::extent::Extent;
use config::HostPort;
use source::complaint::ER_UNKNOWN_SYSTEM_VARIABLE;
use source::identify::SourceIdentity;
use status::{LastError, PeerStatus};
use std::cmp::Ordering;
use std::os::fd::AsFd;
use std::time::Duration;
use thiserror::Error;
use wire::{Connection, WireError};

/// Longest time for a peer to answer, and so the longest that one which is dead holds up the step to another server. It is also
/// the longest silence of a peer that sends.
pub(crate) const PEER_ANSWER_MAX: Duration = Duration::from_secs(3);

/// Enough for a TLS handshake in a build without optimisation.
pub(crate) const STACK_BYTES: usize = 1 << 20;

/// What came of asking a peer.
pub(crate) type Answer = Result<PeerSays, PeerError>;

/// What a peer says of itself.
#[derive(Debug, Clone)]
pub struct PeerSays {
    /// What it presents of its source.
    pub identity: SourceIdentity,
    /// What it has of each timeline, the oldest first.
    pub extents: Vec<Extent>,
}

/// Why a peer cannot be used.
#[derive(Debug, Error)]
pub enum PeerError {
    /// It cannot be asked.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It is another server.
    #[error(
        "it is no binlogd that knows peers: it has no variable binlogd_timelines. peers are the ports for readers ([serve] \
         listen) of other binlogds; servers belong into hosts"
    )]
    NoBinlogd,
    /// What it says makes no sense.
    #[error(
        "its binlogd_timelines has a line that is none ({0:?}): both binlogds should have the same version"
    )]
    Senseless(String),
}

/// Asks a peer who it is and what it has.
///
/// # Errors
/// When it cannot be asked, or is no binlogd.
pub fn ask(connection: &mut Connection) -> Result<PeerSays, PeerError> {
    let rows = match connection.query("SELECT @@global.binlogd_timelines") {
        Err(WireError::Server { code: ER_UNKNOWN_SYSTEM_VARIABLE, .. }) => return Err(PeerError::NoBinlogd),
        rows => rows?,
    };
    let text = rows.first().unwrap_or_default();
    let extents = text.lines().map(|line| line.parse().map_err(|_| line));
    let extents: Result<Vec<Extent>, &str> = extents.collect();
    let extents = extents.map_err(|line| PeerError::Senseless(line.chars().take(100).collect()))?;
    Ok(PeerSays { identity: SourceIdentity::ask(connection)?, extents })
}

/// What a peer may have that the copy lacks, by place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct More {
    /// Timelines of the peer that may go on where the newest one of the copy ends; the newest first. Several of one server are
    /// possible, as after a reset: the bytes decide.
    pub of_newest: Vec<Extent>,
    /// A timeline of the peer is the newest one of the copy, by when the server made a file of it, and ends no later.
    pub is_level: bool,
    /// Older timelines of the copy, each with one of the peer that may go on where it ends.
    pub of_older: Vec<(Extent, Extent)>,
    /// Timelines of the peer that are none of the copy, or begin behind the end of one, and were written since the copy began:
    /// what they hold cannot be appended to anything here.
    pub unjoined: Vec<Extent>,
    /// When the newest file of the copy was made, in seconds since 1970.
    made: u32,
}

impl More {
    /// Timelines of the peer that cannot be joined and are newer than what the copy holds, but for those of `server`, which is
    /// about to be followed and sends its own log.
    pub fn beyond(&self, server: &str) -> impl Iterator<Item = &Extent> {
        self.unjoined
            .iter()
            .filter(move |their| their.last_made >= self.made && their.server_uuid() != server)
    }
}

/// What a peer may have that the copy lacks, which holds `ours`. `newest` is the name of the copy's newest timeline.
///
/// # Errors
/// In words, when the peer is one of another source.
pub fn more_than(newest: &str, ours: &[Extent], theirs: &[Extent]) -> Result<More, String> {
    compare(newest, ours, theirs).ok_or_else(|| {
        let servers = |extents: &[Extent]| {
            let mut servers: Vec<_> = extents.iter().map(Extent::server_uuid).collect();
            servers.dedup();
            servers.join(", ")
        };
        format!(
            "it is a binlogd of another source: it holds logs of {}, and this copy logs of {}. Nothing was taken from it",
            servers(theirs),
            servers(ours)
        )
    })
}

/// Compares what the copy has with what a peer has. `newest` is the name of the copy's newest timeline. `None` when the peer holds
/// the logs of other servers only.
fn compare(newest: &str, ours: &[Extent], theirs: &[Extent]) -> Option<More> {
    let shares = |mine: &str| theirs.iter().any(|their| their.server_uuid() == mine);
    let newest_uuid = newest.split_once('-').map_or("", |(_, uuid)| uuid);
    let is_kin = shares(newest_uuid) || ours.iter().any(|mine| shares(mine.server_uuid()));
    if !is_kin && !theirs.is_empty() {
        return None;
    }
    let goes_on = |mine: &Extent, their: &Extent| {
        let is_behind = matches!(their.cmp_end(&mine.last, mine.end), Some(Ordering::Less | Ordering::Equal));
        mine.may_be(their) && their.may_have(&mine.last) && !is_behind
    };
    let is_level = |mine: &Extent, their: &Extent| {
        mine.shares_a_file(their)
            && matches!(their.cmp_end(&mine.last, mine.end), Some(Ordering::Less | Ordering::Equal))
    };
    let mut more =
        More { made: ours.iter().map(|mine| mine.last_made).max().unwrap_or_default(), ..More::default() };
    let began = ours.iter().map(|mine| mine.first_made).min().unwrap_or(u32::MAX);
    let is_unjoined = |their: &&Extent| {
        let is_ours = ours.iter().any(|mine| mine.may_be(their));
        !ours.is_empty() && !is_ours && their.last_made >= began.max(1)
    };
    more.unjoined = theirs.iter().filter(is_unjoined).cloned().collect();
    for mine in ours {
        let going_on = theirs.iter().rev().filter(|their| goes_on(mine, their)).cloned();
        if mine.timeline == newest {
            more.of_newest = going_on.collect();
            more.is_level = theirs.iter().any(|their| is_level(mine, their));
        } else {
            more.of_older.extend(going_on.map(|their| (mine.clone(), their)));
        }
    }
    Some(more)
}

/// A timeline of a peer, as an operator reads it.
pub fn in_words(extent: &Extent) -> String {
    format!("{} from {} to {}:{}", extent.timeline, extent.first, extent.last, extent.end)
}

impl Upstream {
    /// Asks a peer who it is and what it has.
    pub(crate) fn ask_peer(&self, host: &HostPort) -> Answer {
        let mut connection = self.connect_to(host, PEER_ANSWER_MAX)?;
        let shut_down = self.stop.shuts_down(connection.as_fd());
        let _shut_down =
            shut_down.map_err(|reason| WireError::Io { during: "preparing to question a peer", reason })?;
        ask(&mut connection)
    }

    /// Shows why a peer cannot be used, by its number.
    pub(crate) fn show_peer_error(&self, number: usize, message: String) {
        let at = self.clock.wall_time();
        self.update_peer(number, |peer| {
            (peer.asked_at, peer.had_more) = (Some(at), None);
            peer.error = Some(LastError { at, message });
        });
    }

    /// Changes what is shown of a peer, by its number.
    pub(crate) fn update_peer(&self, number: usize, change: impl FnOnce(&mut PeerStatus)) {
        self.monitor.update_facts(|facts| {
            if let Some(peer) = facts.peers.get_mut(number) {
                change(peer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(lines: &[&str]) -> Vec<Extent> {
        lines.iter().map(|line| line.replace(' ', "\t").parse().unwrap()).collect()
    }

    fn names<'a>(extents: impl IntoIterator<Item = &'a Extent>) -> Vec<&'a str> {
        extents.into_iter().map(|extent| extent.timeline.as_str()).collect()
    }

    #[test]
    fn the_copy_that_ends_later_has_more() {
        let ours = extents(&["0001-a b.000001 10 b.000003 30 500"]);
        let more = |line| !compare("0001-a", &ours, &extents(&[line])).unwrap().of_newest.is_empty();
        assert!(more("0007-a b.000001 10 b.000003 30 501"), "its own number");
        assert!(more("0001-a b.000003 30 b.000004 40 4"));
        assert!(!more("0001-a b.000001 10 b.000003 30 500") && !more("0001-a b.000001 10 b.000002 20 9000"));
        assert!(!more("0001-a b.000004 40 b.000009 90 500"), "it lacks the file in which ours ends");
    }

    #[test]
    fn of_several_timelines_of_the_server_each_may_be_the_one() {
        let ours = extents(&["0001-a b.000002 20 b.000003 30 500"]);
        let theirs = extents(&[
            "0001-a b.000001 10 b.000003 30 700",
            "0002-a b.000001 60 b.000005 70 9",
            "0003-b c.000001 80 c.000001 80 99",
        ]);
        let more = compare("0001-a", &ours, &theirs).unwrap();
        assert_eq!(names(&more.of_newest), ["0002-a", "0001-a"]);
        assert!(more.of_older.is_empty() && !more.is_level);
        // Where the server made a file of one name at another time it is another timeline.
        let ours = extents(&["0001-a b.000001 10 b.000003 30 500"]);
        assert_eq!(names(&compare("0001-a", &ours, &theirs).unwrap().of_newest), ["0001-a"]);
    }

    #[test]
    fn an_equal_peer_with_an_older_timeline_that_is_longer_has_nothing_more() {
        let both = extents(&["0001-a b.000001 10 b.000009 20 900", "0002-a b.000001 50 b.000002 60 500"]);
        let more = compare("0002-a", &both, &both).unwrap();
        assert!(more.of_newest.is_empty() && more.of_older.is_empty() && more.is_level, "{more:?}");
        // Only ours ends in a file that an old timeline may have; the bytes tell, and that nothing more is there is known.
        let forked = extents(&["0001-a b.000001 10 b.000009 20 900", "0002-a b.000004 50 b.000005 60 500"]);
        let more = compare("0002-a", &forked, &forked).unwrap();
        assert!(names(&more.of_newest) == ["0001-a"] && more.is_level, "{more:?}");
    }

    #[test]
    fn what_is_lacking_of_an_older_timeline_is_told_apart() {
        let ours = extents(&["0001-a b.000001 10 b.000002 20 500", "0002-b c.000001 30 c.000001 30 99"]);
        let theirs = extents(&["0001-a b.000001 10 b.000002 20 700", "0002-b c.000001 30 c.000001 30 99"]);
        let more = compare("0002-b", &ours, &theirs).unwrap();
        assert!(more.of_newest.is_empty() && more.unjoined.is_empty());
        assert_eq!(more.of_older, [(ours[0].clone(), theirs[0].clone())]);
        let behind = compare("0002-b", &ours, &theirs[..1]).unwrap();
        assert_eq!(behind.of_older.len(), 1, "it has not followed yet");
        let nothing = compare("0002-b", &theirs, &ours).unwrap();
        assert!(nothing.of_newest.is_empty() && nothing.of_older.is_empty() && nothing.unjoined.is_empty());
        // Nothing has arrived of the newest.
        assert_eq!(compare("0003-d", &ours, &theirs).unwrap().of_older.len(), 1);
    }

    #[test]
    fn what_cannot_be_joined_is_not_taken_for_nothing() {
        let ours = extents(&["0002-a b.000002 20 b.000003 30 500"]);
        let beyond = |lines: &[&str]| {
            let more = compare("0002-a", &ours, &extents(lines)).unwrap();
            assert!(more.of_newest.is_empty());
            names(more.beyond("c")).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(beyond(&["0001-a b.000004 40 b.000009 90 500"]), ["0001-a"], "it purged our last file");
        let level = "0002-a b.000002 20 b.000003 30 500";
        assert_eq!(beyond(&[level, "0003-b x.000001 40 x.000001 40 9"]), ["0003-b"], "we never followed");
        assert_eq!(
            beyond(&[level, "0003-a b.000001 40 b.000002 50 9"]),
            ["0003-a"],
            "a reset that we never saw"
        );
        assert!(beyond(&[level, "0003-c x.000001 40 x.000001 40 9"]).is_empty(), "it is followed now");
        assert!(beyond(&["0001-b x.000001 1 x.000001 2 9", level]).is_empty(), "before this copy began");
        assert!(beyond(&[level]).is_empty());
        // Nothing of the newest has arrived here.
        let more = compare("0003-b", &ours, &extents(&[level, "0003-b x.000001 40 x.000001 40 9"])).unwrap();
        assert_eq!(names(more.beyond("c")), ["0003-b"]);
    }

    #[test]
    fn a_peer_of_another_source_is_none() {
        let ours = extents(&["0001-a b.000001 10 b.000002 20 500"]);
        assert_eq!(compare("0001-a", &ours, &extents(&["0001-x b.000001 10 b.000002 20 700"])), None);
        let nothing = compare("0001-a", &ours, &[]).unwrap();
        assert!(nothing.of_newest.is_empty() && nothing.unjoined.is_empty(), "it has nothing yet");
        let theirs = extents(&["0001-b b.000001 10 b.000001 10 9"]);
        assert_eq!(compare("0002-b", &[], &theirs), Some(More::default()), "ours is empty");
    }
}
