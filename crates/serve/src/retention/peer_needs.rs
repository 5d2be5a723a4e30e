//! What other binlogds of a source keep from a purge: the ends of older timelines, until it is known that they hold no more of them.

use super::{InSlot, Readers};
use binlog::purge::needs::{Need, NeedFrom};
use status::{PeerStatus, SourceMonitor};

impl Readers for SourceMonitor {
    fn needs(&self, _source: &str) -> Vec<Need> {
        self.facts().peers.iter().filter_map(need).collect()
    }

    fn in_slots(&self, _source: &str) -> Vec<InSlot> {
        Vec::new()
    }
}

/// What only the peer has is found by the end of the copy's own timeline. Without that, nobody would be told of it.
fn need(peer: &PeerStatus) -> Option<Need> {
    let name = &peer.peer;
    if let Some(timeline) = &peer.only_there_timeline {
        let who = format!(
            "the peer {name} alone holds what comes behind the end of this timeline (run binlogd rescue on its machine)"
        );
        return Some(Need { who, from: NeedFrom::EndOf(timeline.clone()) });
    }
    if peer.asked_at.is_some() && peer.error.is_none() {
        return None;
    }
    let who = format!(
        "the peer {name} may hold more of an older timeline and could not be asked yet; take it out of peers when it is gone for good"
    );
    Some(Need { who, from: NeedFrom::EndOfOldest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use status::LastError;

    #[test]
    fn an_older_end_stays_until_the_peer_is_known_to_hold_no_more() {
        let asked = PeerStatus { asked_at: Some(jiff::Timestamp::UNIX_EPOCH), ..PeerStatus::default() };
        let from = |peer: &PeerStatus| need(peer).map(|need| need.from);
        assert_eq!(from(&asked), None);
        assert_eq!(from(&PeerStatus::default()), Some(NeedFrom::EndOfOldest), "not asked yet");
        let error = Some(LastError { at: jiff::Timestamp::UNIX_EPOCH, message: String::new() });
        assert_eq!(from(&PeerStatus { error, ..asked.clone() }), Some(NeedFrom::EndOfOldest), "it is down");
        let there = PeerStatus { only_there_timeline: Some("0001-a".to_owned()), ..asked };
        assert_eq!(from(&there), Some(NeedFrom::EndOf("0001-a".to_owned())));
    }
}
