//! What a node must never forget.

use crate::ballot::{Accepted, Ballot, Kind};

/// What a node must never forget. Each function gives the memory as it is to be from now on: the caller makes that durable
/// *before* anybody is told, or anything is done, by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// The highest ballot that was promised. At least that of `accepted`.
    promised: Option<Ballot>,
    /// The source of the newest epoch that was accepted. `None`: the node is blank.
    accepted: Option<Accepted>,
    /// The newest epoch whose history was held, in a copy of that epoch's source; 0 for none. At most that of `accepted`.
    entered: u64,
    /// How far foundings have come, while the node is blank.
    founding: Founding,
}

/// What a blank node must not forget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Founding {
    /// The highest ballot of a founder that was promised.
    pub promised: Option<Ballot>,
    /// Those whose source was recorded. One of them may be in force, by the word of all nodes, while this one has promised
    /// another founder since, who then comes to nothing.
    pub recorded: Vec<Ballot>,
}

/// What a node may do by its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'a> {
    /// Nothing: it has accepted no epoch, and is not counted.
    Blank,
    /// Nothing any more: it has promised a ballot, of which nothing was accepted so far.
    Fenced(&'a Ballot),
    /// Receive from the source of its epoch. It lacks something of the epoch's history, and does not count yet.
    Entering(&'a Accepted),
    /// Confirm, and acknowledge what a majority has confirmed in this epoch.
    Counting(&'a Accepted),
}

/// Why a node does not promise or accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has promised another ballot, of this epoch or a later one.
    #[error("it has promised {0}")]
    Promised(Ballot),
    /// It has no memory, be it that its disk was lost: its vote does not count before it has joined.
    #[error("it has no memory of this quorum, and has not joined it yet")]
    Blank,
    /// It belongs to a quorum already, be it another one.
    #[error("it belongs to the quorum that began with {0}")]
    Founded(Ballot),
    /// A node that is not of them wants to join, and no place is free.
    #[error("all nodes of the quorum are there: another machine joins only in the place of one that is gone")]
    Complete,
    /// A promotion has ended that the promoter does not know of.
    #[error("{0} is the source of epoch {1} by now")]
    Overtaken(String, u64),
    /// Another source was accepted in this epoch, which no promotion does.
    #[error("another source, {0}, was accepted in this epoch")]
    OtherSource(String),
}

impl Memory {
    /// As it was written down.
    ///
    /// # Errors
    /// In words, when it contradicts itself.
    pub fn restored(
        promised: Option<Ballot>,
        accepted: Option<Accepted>,
        entered: u64,
        founding: Founding,
    ) -> Result<Memory, &'static str> {
        let epoch = accepted.as_ref().map_or(0, |accepted| accepted.ballot.epoch);
        match promised {
            _ if entered > epoch => Err("an epoch was entered that was not accepted"),
            None if epoch > 0 => Err("an epoch was accepted that was not promised"),
            Some(promised) if promised.epoch < epoch => Err("a later epoch was accepted than was promised"),
            _ => Ok(Memory { promised, accepted, entered, founding }),
        }
    }

    /// The highest ballot that was promised.
    pub fn promised(&self) -> Option<&Ballot> {
        self.promised.as_ref()
    }

    /// The source of the newest epoch that was accepted.
    pub fn accepted(&self) -> Option<&Accepted> {
        self.accepted.as_ref()
    }

    /// The newest epoch whose history was held; 0 for none.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// What the node may do.
    pub fn standing(&self) -> Standing<'_> {
        match (&self.accepted, &self.promised) {
            (None, _) => Standing::Blank,
            (Some(accepted), Some(promised)) if *promised != accepted.ballot => Standing::Fenced(promised),
            (Some(accepted), _) if self.entered < accepted.ballot.epoch => Standing::Entering(accepted),
            (Some(accepted), _) => Standing::Counting(accepted),
        }
    }

    /// How far foundings have come.
    pub fn founding(&self) -> &Founding {
        &self.founding
    }

    /// Promises `ballot`: from now on nothing of a lower epoch is confirmed, acknowledged or accepted. The same again is no change.
    ///
    /// # Errors
    /// When another ballot was promised that is not lower; when a blank node is asked by anybody but a founder, or a founder asks
    /// one that is not blank.
    pub fn promise(&self, ballot: Ballot, kind: Kind) -> Result<Memory, Refusal> {
        let known = match (&self.accepted, kind) {
            (None, Kind::Ordinary | Kind::Joining(_)) => return Err(Refusal::Blank),
            (Some(accepted), Kind::Founding) => return Err(Refusal::Founded(accepted.founded)),
            (None, Kind::Founding) => self.founding.promised,
            (Some(_), _) => self.promised,
        };
        if let Some(known) = known.filter(|known| known.epoch >= ballot.epoch && *known != ballot) {
            return Err(Refusal::Promised(known));
        }
        let mut memory = self.clone();
        match kind {
            Kind::Founding => memory.founding.promised = Some(ballot),
            Kind::Ordinary | Kind::Joining(_) => memory.promised = Some(ballot),
        }
        Ok(memory)
    }

    /// Promises `ballot` for a promotion that has seen the source of epoch `seen`. Of two promotions at once the second begins nothing when
    /// the first has ended: what was seen and decided before is no ground for it any more.
    ///
    /// # Errors
    /// When a later epoch was accepted, or as [`Memory::promise`].
    pub fn succeed(&self, ballot: Ballot, seen: u64) -> Result<Memory, Refusal> {
        match self.accepted.as_ref().filter(|accepted| accepted.ballot.epoch > seen) {
            Some(later) => Err(Refusal::Overtaken(later.source.clone(), later.ballot.epoch)),
            None => self.promise(ballot, Kind::Ordinary),
        }
    }

    /// Records the source of a founder, who puts it in force ([`Memory::accept`]) when all nodes have.
    ///
    /// # Errors
    /// When the node belongs to a quorum already, or has promised another founder since.
    pub fn record(&self, accepted: &Accepted) -> Result<Memory, Refusal> {
        match (&self.accepted, self.founding.promised) {
            (Some(known), _) if known.founded != accepted.founded => Err(Refusal::Founded(known.founded)),
            (Some(_), _) => Ok(self.clone()),
            (None, Some(promised)) if promised == accepted.ballot => {
                let mut memory = self.clone();
                if !memory.founding.recorded.contains(&promised) {
                    memory.founding.recorded.push(promised);
                }
                Ok(memory)
            }
            (None, Some(promised)) => Err(Refusal::Promised(promised)),
            (None, None) => Err(Refusal::Blank),
        }
    }

    /// Accepts the source of an epoch, by the word of its promoter or of a node that has accepted it. Only one source is
    /// ever proposed for an epoch, by one who has a majority's promise, so another promise of the same epoch does not stand
    /// against it. The same again is no change.
    ///
    /// # Errors
    /// When a later epoch was promised; when the node belongs to another quorum; or when it is blank and did not record
    /// the founding of this one, which it then may have forgotten.
    pub fn accept(&self, accepted: &Accepted) -> Result<Memory, Refusal> {
        let ballot = accepted.ballot;
        match (&self.promised, &self.accepted) {
            (_, None) if !self.founding.recorded.contains(&accepted.founded) => Err(Refusal::Blank),
            (_, Some(known)) if known.founded != accepted.founded => Err(Refusal::Founded(known.founded)),
            (Some(promised), _) if promised.epoch > ballot.epoch => Err(Refusal::Promised(*promised)),
            (_, Some(known)) if known.ballot.epoch == ballot.epoch => match known == accepted {
                true => Ok(self.clone()),
                false => Err(Refusal::OtherSource(known.source.clone())),
            },
            _ => Ok(Memory {
                promised: Some(ballot),
                accepted: Some(accepted.clone()),
                entered: self.entered,
                founding: Founding::default(),
            }),
        }
    }

    /// A blank node joins by the promotion of its own that it has just ended, when its copy of the source has the place of the
    /// epoch on stable storage, as the caller has seen. It was blank, too, when the first promise of that promotion was asked for:
    /// what it had confirmed and forgot between the two would be missing.
    ///
    /// # Errors
    /// When the node is not blank.
    pub fn join(&self, accepted: &Accepted) -> Result<Memory, Refusal> {
        if let Some(known) = &self.accepted {
            return Err(Refusal::Founded(known.founded));
        }
        Ok(Memory {
            promised: Some(accepted.ballot),
            accepted: Some(accepted.clone()),
            entered: accepted.ballot.epoch,
            founding: Founding::default(),
        })
    }

    /// Enters the epoch that was accepted, once the live timeline is a copy of its source and has the place of the epoch on stable
    /// storage, which `has_place` says. `None` while it does not, and when that is known already.
    pub fn enter(&self, has_place: impl FnOnce(&Accepted) -> bool) -> Option<Memory> {
        let accepted = self.accepted.as_ref().filter(|accepted| self.entered < accepted.ballot.epoch)?;
        has_place(accepted).then(|| Memory { entered: accepted.ballot.epoch, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ballot::Place;
    use codec::ServerKind;
    use codec::gtid::{GtidState, Uuid};
    use std::collections::BTreeSet;

    fn ballot(epoch: u64, promoter: u8) -> Ballot {
        Ballot { epoch, promoter: Uuid::from_bytes([promoter; 16]) }
    }

    fn source(ballot: Ballot, founded: Ballot) -> Accepted {
        Accepted {
            ballot,
            founded,
            source: "one".to_owned(),
            members: BTreeSet::new(),
            history: GtidState::empty(ServerKind::MySql),
            place: Place { file: "binlog.000001".to_owned(), identity: 1, offset: 4 },
        }
    }

    /// A node of the quorum that `ballot(1, 1)` has founded.
    fn member() -> Memory {
        let founding = ballot(1, 1);
        let memory = Memory::default().promise(founding, Kind::Founding).unwrap();
        let memory = memory.record(&source(founding, founding)).unwrap();
        memory.accept(&source(founding, founding)).unwrap()
    }

    #[test]
    fn a_ballot_is_promised_when_no_other_of_its_epoch_or_a_later_one_was() {
        let refused = |ballot| Err(Refusal::Promised(ballot));
        let five = member().promise(ballot(5, 2), Kind::Ordinary).unwrap();
        for (asked, answer) in [
            (ballot(4, 3), refused(ballot(5, 2))),
            (ballot(5, 3), refused(ballot(5, 2))),
            (ballot(5, 2), Ok(five.clone())),
            (ballot(6, 3), Ok(Memory { promised: Some(ballot(6, 3)), ..five.clone() })),
        ] {
            assert_eq!(five.promise(asked, Kind::Ordinary), answer, "{asked}");
            assert_eq!(five.promise(asked, Kind::Joining(Uuid::default())), answer, "{asked}");
        }
        assert_eq!(five.promise(ballot(9, 9), Kind::Founding), Err(Refusal::Founded(ballot(1, 1))));
        assert_eq!(Memory::default().promise(ballot(9, 9), Kind::Ordinary), Err(Refusal::Blank));
    }

    #[test]
    fn what_was_promised_fences_until_a_source_is_accepted_and_its_place_is_had() {
        let fenced = member().promise(ballot(5, 2), Kind::Ordinary).unwrap();
        assert_eq!(fenced.standing(), Standing::Fenced(&ballot(5, 2)));
        let (four, five) = (source(ballot(4, 3), ballot(1, 1)), source(ballot(5, 3), ballot(1, 1)));
        assert_eq!(fenced.accept(&four), Err(Refusal::Promised(ballot(5, 2))));
        // Of the same epoch another ballot can be in force, which had a majority's promise.
        let entering = fenced.accept(&five).unwrap();
        assert_eq!(entering.standing(), Standing::Entering(&five));
        assert_eq!((entering.entered(), entering.promised()), (0, Some(&ballot(5, 3))));
        assert_eq!(entering.enter(|_| false), None);
        let counting = entering.enter(|accepted| *accepted == five).unwrap();
        assert_eq!((counting.standing(), counting.entered()), (Standing::Counting(&five), 5));
        assert_eq!(counting.enter(|_| panic!("it is known already")), None);
        assert_eq!(counting.accept(&five), Ok(counting.clone()));
        let other = Accepted { source: "other".to_owned(), ..five.clone() };
        assert_eq!(counting.accept(&other), Err(Refusal::OtherSource(five.source)));
        // The epoch in which bytes were received is not the one that was accepted since.
        let later = counting.accept(&source(ballot(6, 4), ballot(1, 1))).unwrap();
        assert_eq!(later.entered(), 5);
    }

    #[test]
    fn a_blank_node_belongs_only_to_a_founding_that_it_has_recorded_or_joins() {
        let (one, two) = (ballot(1, 1), ballot(2, 2));
        let blank = Memory::default();
        assert_eq!(blank.standing(), Standing::Blank);
        assert_eq!(blank.record(&source(one, one)), Err(Refusal::Blank));
        assert_eq!(blank.accept(&source(one, one)), Err(Refusal::Blank));
        let recorded = blank.promise(one, Kind::Founding).unwrap().record(&source(one, one)).unwrap();
        assert_eq!(recorded.standing(), Standing::Blank);
        // The first may be in force though another founder was promised since; nothing is recorded for the first any more.
        let other = recorded.promise(two, Kind::Founding).unwrap();
        assert_eq!(other.record(&source(one, one)), Err(Refusal::Promised(two)));
        let member = other.accept(&source(ballot(3, 3), one)).unwrap();
        assert_eq!((member.accepted().unwrap().founded, member.founding()), (one, &Founding::default()));
        assert_eq!(member.accept(&source(two, two)), Err(Refusal::Founded(one)));
        assert_eq!(member.join(&source(two, two)), Err(Refusal::Founded(one)));
        let joined = blank.join(&source(ballot(4, 4), one)).unwrap();
        assert_eq!((joined.entered(), joined.promised()), (4, Some(&ballot(4, 4))));
    }

    #[test]
    fn a_memory_that_contradicts_itself_is_not_restored() {
        let two = Some(source(ballot(2, 1), ballot(1, 1)));
        for (promised, accepted, entered, is_sound) in [
            (None, None, 0, true),
            (Some(ballot(3, 3)), two.clone(), 2, true),
            (Some(ballot(2, 1)), two.clone(), 0, true),
            (Some(ballot(2, 1)), two.clone(), 3, false),
            (Some(ballot(1, 1)), two.clone(), 1, false),
            (None, two, 0, false),
        ] {
            let restored = Memory::restored(promised, accepted, entered, Founding::default());
            assert_eq!(restored.is_ok(), is_sound, "{promised:?} {entered}");
        }
    }
}
