//! Whether commits stand when the log is rotated, and what keeps that short.

use super::verdict::{TIME, Verdict, again, lacking, rounds, told};
use crate::outline::{Entry, Part, Table};
use crate::parts::sweep::entry;
use crate::point::rotation_stall::{Beside, Configuration};
use crate::point::{Panel, Point};
use crate::results::run::Run;
use crate::results::statistics::{Figures, Missing, Spread};

/// What is answered here, for other answers that point to it.
pub(super) const QUESTION: &str = "Do commits stand when the binary log is rotated?";

/// The longest commit at a rotation, in ms.
const AT: &str = "stall_longest_ms";
/// The same half-way between two, where nothing happens.
const BETWEEN: &str = "between_longest_ms";

const NO_TROUBLE: &str = "sync_binlog 0 was not measured";
const NO_ROTATION: &str = "no file was full within a cell; measure longer: --set seconds";
const TOO_CLOSE: &str = "rotations come so close that nothing lies between two; measure with larger files, \
                         --set file_mib, or a slower log, --set log_mb_s";
const OWN_SCENE: &str = ", measured in a scene of its own";
const PIECES: &str = "See the time in stalls too: what only cuts a stall in pieces stands as long in all.";

/// From a run of `rotation-stall`.
pub(super) fn advice(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let mut parts = Vec::new();
    for panel in figures.panels() {
        let view = View { figures: &figures, points: figures.own_points(panel) };
        parts.push(Part::Text(format!("{panel}: {}", view.sentence())));
        parts.push(Part::Table(view.table(panel)));
    }
    parts
}

/// A disk of the run.
struct View<'a> {
    figures: &'a Figures<'a>,
    points: Vec<(&'a Point, Configuration)>,
}

impl View<'_> {
    /// What the others are to be better than: nothing is done against the stall.
    fn trouble(&self) -> Option<(&Point, Configuration)> {
        let is_trouble = |one: &Configuration| one.every == 0 && one.beside == Beside::Nothing;
        self.points.iter().filter(|(_, one)| is_trouble(one)).max_by_key(|(_, one)| one.file_mib).copied()
    }

    /// A figure of the point. Of a cell without a rotation, or with too many, the reason says what to do.
    fn value(&self, point: &Point, name: &str) -> Result<Spread, Missing> {
        let rotations = self.figures.median(point, "rotations");
        self.figures.median(point, name).map_err(|missing| match rotations {
            Ok(rotations) if rotations.range.1 == 0.0 => Missing(NO_ROTATION.to_owned()),
            Ok(_) if name == BETWEEN => Missing(TOO_CLOSE.to_owned()),
            _ => missing,
        })
    }

    /// The longest commit at a rotation against that of the trouble.
    fn against(&self, point: &Point, one: Configuration) -> Result<Spread, Missing> {
        let Some((trouble, _)) = self.trouble() else { return Err(Missing(NO_TROUBLE.to_owned())) };
        match has_own_scene(one) {
            true => self.figures.ratio_apart(point, trouble, AT),
            false => self.figures.ratio_between(point, trouble, AT),
        }
    }

    fn sentence(&self) -> String {
        let Some((point, one)) = self.trouble() else { return format!("{NO_TROUBLE}.") };
        let (at, between) = match (self.value(point, AT), self.value(point, BETWEEN)) {
            (Ok(at), Ok(between)) => (at, between),
            (Ok(at), Err(reason)) => {
                return format!(
                    "with {one} the longest commit was seen to take {} at a rotation, in {}, and there is nothing to \
                     compare it with ({reason}).",
                    ms(&at),
                    rounds(at.rounds)
                );
            }
            (Err(reason), _) => {
                return format!("with {one} a stall at a rotation was not measured ({reason}).");
            }
        };
        let both = format!("{} at a rotation and {} half-way between two", ms(&at), ms(&between));
        let ratio = match self.figures.ratio_within(point, AT, BETWEEN) {
            Ok(ratio) => ratio,
            Err(reason) => {
                return format!(
                    "with {one} the longest commit was seen to take {both}; that is no comparison ({reason})."
                );
            }
        };
        let in_rounds = rounds(ratio.rounds);
        match Verdict::of(&ratio) {
            Verdict::More => format!(
                "with {one} commits stand at a rotation: the longest takes {both}, {}, in {in_rounds}. {}",
                told(&Ok(ratio), TIME),
                self.remedies(point, true)
            ),
            Verdict::Less | Verdict::NotShown => format!(
                "that commits stand at a rotation with {one} is not shown by these ranges: the longest takes {both}, in \
                 {in_rounds}."
            ),
            Verdict::TooFew => format!(
                "with {one} the longest commit was seen to take {both}; {in_rounds}, too few to tell: {}. {}",
                again(),
                self.remedies(point, false)
            ),
        }
    }

    /// What makes the stall of the trouble shorter: what is shown to, or what was seen to where the rounds of the trouble
    /// are too few to show anything.
    fn remedies(&self, trouble: &Point, shown: bool) -> String {
        let others: Vec<(&Point, Configuration, Result<Spread, Missing>)> = self
            .points
            .iter()
            .filter(|(point, _)| *point != trouble)
            .map(|(point, one)| (*point, *one, self.against(point, *one)))
            .collect();
        let is_shorter = |ratio: &Spread| match shown {
            true => Verdict::of(ratio) == Verdict::Less,
            false => ratio.range.1 < 1.0,
        };
        let shorter: Vec<String> = others
            .iter()
            .filter(|(.., ratio)| ratio.as_ref().is_ok_and(is_shorter))
            .filter_map(|(point, one, ratio)| {
                let at = ms(&self.value(point, AT).ok()?);
                let by = if shown { format!(", {}", told(ratio, TIME)) } else { String::new() };
                Some(format!("{one}: {at}{by}{}", scene(*one)))
            })
            .collect();
        let tells = |ratio: &Spread| Verdict::of(ratio) != Verdict::TooFew;
        let mut text = if !shorter.is_empty() {
            let what = if shown { "Shorter with" } else { "Seen to be shorter with" };
            format!("{what} {}. {PIECES}", shorter.join("; "))
        } else if others.is_empty() {
            "Nothing else was measured.".to_owned()
        } else if !shown {
            "Nothing else was seen to be shorter.".to_owned()
        } else if others.iter().any(|(.., ratio)| ratio.as_ref().is_ok_and(tells)) {
            "That anything else makes it shorter is not shown by these ranges.".to_owned()
        } else {
            "What makes it shorter cannot be told.".to_owned()
        };
        // That the rounds are too few was said already where the trouble has too few.
        let ratios = others.iter().map(|(.., ratio)| ratio).filter(|ratio| shown || ratio.is_err());
        if let Some(lacking) = lacking(ratios) {
            text += &format!(" Not counted: {lacking}.");
        }
        text
    }

    fn table(&self, panel: &Panel) -> Table {
        let trouble = self.trouble().map(|(point, _)| point);
        let row = |(point, one): &(&Point, Configuration)| {
            let value = |name| self.value(point, name);
            let against = match trouble == Some(*point) {
                true => "what the others are held against".to_owned(),
                false => format!("{}{}", told(&self.against(point, *one), TIME), scene(*one)),
            };
            vec![
                Entry::Text(one.to_string()),
                entry(value(AT), 0),
                Entry::Text(against),
                entry(value(BETWEEN), 0),
                entry(value("rotation_period_s"), 1),
                entry(value("slow_share").map(|share| share.scaled(100.0)), 1),
            ]
        };
        Table::new(
            format!("What a rotation does ({panel})"),
            &[
                "setting",
                "longest commit at a rotation (ms)",
                "against sync_binlog 0 with nothing beside",
                "half-way between two (ms)",
                "a rotation each (s)",
                "time in stalls (%)",
            ],
            self.points.iter().map(row).collect(),
            &[],
        )
    }
}

/// The study sets the kernel's limits in a scene for itself, with another start of the server: its rounds are not those
/// of the others.
fn has_own_scene(one: Configuration) -> bool {
    one.dirty_bytes().is_some()
}

fn scene(one: Configuration) -> &'static str {
    if has_own_scene(one) { OWN_SCENE } else { "" }
}

/// `568 ms (541 to 581)`, or without a range where there is none.
fn ms(spread: &Spread) -> String {
    let (low, high) = spread.range;
    if spread.rounds == 1 {
        format!("{:.0} ms", spread.median)
    } else {
        format!("{:.0} ms ({low:.0} to {high:.0})", spread.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Measured, Order, Profile, Settings};
    use crate::point::{CellKey, Condition};
    use crate::report::example;
    use crate::results::run::Cell;

    const DIRTY: Configuration = Configuration { beside: Beside::DirtyBytes { mib: 128 }, ..with(0) };

    const fn with(every: u32) -> Configuration {
        Configuration { every, file_mib: 1024, beside: Beside::Nothing }
    }

    fn stall(at: f64, between: f64) -> Measured {
        let mut measured = Measured::default();
        measured.put("rotations", 2.0);
        measured.put(AT, at);
        measured.put(BETWEEN, between);
        measured
    }

    /// Of each configuration its rounds.
    fn answer(cells: &[(Configuration, &[Measured])]) -> (String, Table) {
        let panel = Panel { server: "mysql-9.7".to_owned(), condition: Condition::Plain };
        let cells_of = |(one, rounds): &(Configuration, &[Measured])| {
            let point = panel.point(*one, 6);
            let cell = |(round, measured): (u32, &Measured)| Cell {
                key: CellKey { point: point.clone(), round },
                started: 0,
                took: 1.0,
                measured: measured.clone(),
            };
            (0..).zip(*rounds).map(cell).collect::<Vec<Cell>>()
        };
        let order = Order::new(Profile::Quick, Settings::default());
        let run = example::run("rotation-stall", order, cells.iter().flat_map(cells_of).collect());
        let mut parts = advice(&run).into_iter();
        let (Some(Part::Text(text)), Some(Part::Table(table))) = (parts.next(), parts.next()) else {
            panic!("a sentence and a table")
        };
        (text, table)
    }

    fn text(cells: &[(Configuration, &[Measured])]) -> String {
        answer(cells).0
    }

    #[test]
    fn a_stall_of_one_round_is_told_as_seen() {
        let seen = text(&[
            (with(0), &[stall(568.0, 3.0)]),
            (with(1), &[stall(5.0, 4.0)]),
            (with(1000), &[stall(600.0, 20.0)]),
            (DIRTY, &[stall(11.0, 13.0)]),
        ]);
        assert_eq!(
            seen,
            "mysql-9.7: with sync_binlog 0, files of 1024 MiB the longest commit was seen to take 568 ms at a rotation and \
             3 ms half-way between two; one round, too few to tell: measure again with --set rounds=3. Seen to be shorter \
             with sync_binlog 1, files of 1024 MiB: 5 ms; sync_binlog 0, files of 1024 MiB, vm.dirty_bytes of 128 MiB: 11 \
             ms, measured in a scene of its own. See the time in stalls too: what only cuts a stall in pieces stands as \
             long in all."
        );
    }

    #[test]
    fn a_stall_is_shown_only_by_ratios_of_three_rounds() {
        let (shown, table) = answer(&[
            (with(0), &[stall(568.0, 3.0), stall(541.0, 4.0), stall(581.0, 2.0)]),
            (with(1), &[stall(5.0, 4.0), stall(6.0, 4.0), stall(7.0, 4.0)]),
            (with(1000), &[stall(600.0, 20.0), stall(500.0, 20.0), stall(590.0, 20.0)]),
            (DIRTY, &[stall(11.0, 13.0), stall(9.0, 13.0), stall(14.0, 13.0)]),
            (with(10), &[stall(5.0, 4.0)]),
            (with(100), &[Measured::invalid("errors")]),
        ]);
        for told in [
            "with sync_binlog 0, files of 1024 MiB commits stand at a rotation: the longest takes 568 ms (541 to 581) at a \
             rotation and 3 ms (2 to 4) half-way between two, 189.3 times as long (",
            ", in 3 rounds. Shorter with sync_binlog 1, files of 1024 MiB: 6 ms (5 to 7), 99 % shorter (99 to 99 %); ",
            "vm.dirty_bytes of 128 MiB: 11 ms (9 to 14), 98 % shorter (97 to 98 %), measured in a scene of its own. ",
            "Not counted: 1 in too few rounds (measure again with --set rounds=3); 1 not measured (invalid: errors).",
        ] {
            assert!(shown.contains(told), "{told} {shown}");
        }
        assert!(!shown.contains("sync_binlog 1000"), "{shown}");
        let against: Vec<&Entry> = table.rows.iter().map(|row| &row[2]).collect();
        let is = |index: usize, told: &str| *against[index] == Entry::Text(told.to_owned());
        assert!(is(0, "what the others are held against"), "{against:?}");
        assert!(is(2, "not shown by these ranges: 1.02 (0.92 to 1.06)"), "{against:?}");
        assert!(is(3, "98 % shorter (97 to 98 %), measured in a scene of its own"), "{against:?}");
    }

    #[test]
    fn rounds_that_drift_alike_are_compared_within_each() {
        // The disk became ten times slower: the ranges of both overlap, the ratios do not.
        let shown = text(&[
            (with(0), &[stall(50.0, 2.0), stall(500.0, 60.0), stall(60.0, 2.0)]),
            (with(1), &[stall(10.0, 4.0), stall(100.0, 4.0), stall(12.0, 4.0)]),
        ]);
        assert!(shown.contains("commits stand at a rotation"), "{shown}");
        assert!(shown.contains("12 ms (10 to 100), 80 % shorter (80 to 80 %)"), "{shown}");
    }

    #[test]
    fn what_is_not_longer_is_not_shown() {
        let rounds = [stall(3.0, 3.0), stall(4.0, 3.0), stall(2.0, 3.0)];
        let open = text(&[(with(0), &rounds), (with(1), &rounds)]);
        assert!(open.contains("is not shown by these ranges: the longest takes 3 ms (2 to 4)"), "{open}");
        let none = text(&[(with(0), &[stall(500.0, 3.0), stall(500.0, 3.0), stall(500.0, 3.0)])]);
        assert!(none.ends_with("Nothing else was measured."), "{none}");
    }

    #[test]
    fn why_there_is_no_stall_is_said() {
        let mut none = Measured::default();
        none.put("rotations", 0.0);
        none.put(BETWEEN, 3.0);
        let none = text(&[(with(0), &[none])]);
        assert!(none.contains("not measured (no file was full within a cell; measure longer"), "{none}");
        let mut close = Measured::default();
        close.put("rotations", 90.0);
        close.put(AT, 400.0);
        let close = text(&[(with(0), &[close])]);
        assert!(close.contains("take 400 ms at a rotation, in one round, and there is nothing"), "{close}");
        assert!(close.contains("(rotations come so close"), "{close}");
        let invalid = text(&[(with(0), &[Measured::invalid("errors")])]);
        assert!(invalid.contains("was not measured (invalid: errors)"), "{invalid}");
        assert!(text(&[(with(1), &[stall(3.0, 3.0)])]).contains("sync_binlog 0 was not measured"));
    }
}
