//! Another binlogd of the same source, as far as it answers.

use super::finding::Finding;

/// What was found out about a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// It cannot be used; why.
    Unusable(String),
    /// It is a binlogd of the same source.
    Known {
        /// The end of what it holds, in words; `None` when it holds nothing yet.
        end: Option<String>,
        /// It holds more of the newest timeline than the copy.
        has_more: bool,
        /// Older timelines of the copy of which it may hold more.
        older: Vec<String>,
        /// What it holds and this copy could not append to anything, in words.
        unjoined: Vec<String>,
    },
}

/// Judges it.
pub fn examine(peer: &Peer) -> Vec<Finding> {
    let (end, has_more, older, unjoined) = match peer {
        Peer::Unusable(why) => {
            return vec![
                Finding::warning(format!("it cannot be used: {why}"))
                    .because("what it alone was sent cannot be fetched from it when the source is gone"),
            ];
        }
        Peer::Known { end, has_more, older, unjoined } => (end, *has_more, older, unjoined),
    };
    let Some(end) = end else {
        return vec![
            Finding::warning("a binlogd that holds nothing yet").because("it cannot complete this copy"),
        ];
    };
    let mut findings =
        vec![Finding::ok(format!("a binlogd of the same source, which holds all up to {end}"))];
    if has_more {
        let what = "it holds more than this copy";
        findings.push(Finding::ok(format!(
            "{what}: what lacks comes from the source, or from it when the source is gone"
        )));
    }
    findings.extend(older.iter().map(|timeline| {
        Finding::warning(format!("it may hold more of {timeline}, a timeline that has ended, than this copy"))
            .because(
                "look at binlogd status; binlogd rescue on the peer's machine hands over what it alone holds",
            )
    }));
    findings.extend(unjoined.iter().map(|timeline| {
        Finding::warning(format!("it holds {timeline}, which does not follow anything in this copy"))
            .because("what it alone was sent of that binlogd rescue on its machine hands over")
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn levels(peer: &Peer) -> Vec<Level> {
        examine(peer).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn a_peer_is_told() {
        let known = |has_more, older: &[&str]| Peer::Known {
            end: Some("b.000003:99".to_owned()),
            has_more,
            older: older.iter().map(|name| (*name).to_owned()).collect(),
            unjoined: Vec::new(),
        };
        assert_eq!(levels(&known(false, &[])), [Level::Ok]);
        assert_eq!(levels(&known(true, &[])), [Level::Ok, Level::Ok]);
        assert_eq!(levels(&known(false, &["0001-a"])), [Level::Ok, Level::Warning]);
        let nothing = Peer::Known { end: None, has_more: false, older: Vec::new(), unjoined: Vec::new() };
        assert_eq!(levels(&nothing), [Level::Warning]);
        let mut unjoined = known(false, &[]);
        if let Peer::Known { unjoined, .. } = &mut unjoined {
            unjoined.push("0002-b from b.000001 to b.000002:99".to_owned());
        }
        assert_eq!(levels(&unjoined), [Level::Ok, Level::Warning]);
        let unusable = examine(&Peer::Unusable("it is a binlogd of another source".to_owned()));
        assert_eq!(unusable[0].level, Level::Warning);
        assert!(unusable[0].what.contains("another source"), "{unusable:?}");
    }
}
