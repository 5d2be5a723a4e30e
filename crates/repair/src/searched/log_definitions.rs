//! What the logs of sources say of the definitions of tables, for who asks a server how tables are now.

use super::each_found::{Outcome, each_found};
use super::sources::SearchedSource;
use crate::detail::{Definitions, Place};
use points::criteria::Criteria;
use points::effects::Effects;
use status::units;
use std::collections::HashMap;

/// By the name of the source, of all its timelines: what was changed since stands in later ones too. And how the search went.
pub fn definitions(sources: &[SearchedSource]) -> (HashMap<String, Definitions>, Outcome) {
    let criteria = Criteria { kinds: Effects::DDL, ..Criteria::default() };
    let mut all: HashMap<String, Definitions> =
        sources.iter().map(|source| (source.name.clone(), Definitions::default())).collect();
    let outcome = each_found(sources, &criteria, 0, &mut |at, transaction| {
        let place = Place::of(&at.timeline.name, &at.searched.name, transaction.at);
        all.entry(at.source.name.clone()).or_default().add(place, at.file, transaction);
    });
    if outcome.failed() {
        let what = "a file that cannot be searched";
        all.values_mut().for_each(|definitions| definitions.add_unread(Place::END, what));
    }
    if outcome.undecided > 0 {
        let what = format!(
            "what nobody can tell: of {} a part is too large to be opened",
            units::counted(outcome.undecided, "transaction")
        );
        all.values_mut().for_each(|definitions| definitions.add_unread(Place::END, &what));
    }
    (all, outcome)
}
