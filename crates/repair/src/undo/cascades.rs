//! The order of rows that foreign keys deleted or updated, so that each finds its parent when it comes back.
//!
//! MySQL from 9.6 on logs them within the statement that made the foreign keys do so: a row, then the rows that refer to it, and the row
//! of the statement behind all of them (seen on 9.7). From the last to the first a row of the third generation comes before its parent.
//! The server goes on checking foreign keys meanwhile: an order that does not work is an error of its own.

use std::collections::HashMap;

/// What foreign keys see of a row: hashes of a foreign key and of the values in its columns. Other values may have the same hash: then
/// more rows come first than must.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Rows with these refer to it.
    pub(super) parent_of: Vec<u64>,
    /// It refers to rows with these.
    pub(super) child_of: Vec<u64>,
    /// An update changed a column that a foreign key refers to.
    pub(super) moves_parent: bool,
}

impl Links {
    /// Their size in memory, beside the struct.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.parent_of) + size_of_val(&*self.child_of)
    }
}

/// Orders steps, which are run from the last to the first: one that another needs as its parent is run before that one.
pub(super) fn parents_first<T: Default>(steps: &mut [T], links: impl Fn(&T) -> &Links) {
    let mut deleted: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut parents: Vec<Vec<usize>> = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let links = links(step);
        parents.push(links.child_of.iter().filter_map(|link| deleted.get(link)).flatten().copied().collect());
        links.parent_of.iter().for_each(|link| deleted.entry(*link).or_default().push(at));
    }
    if parents.iter().all(Vec::is_empty) {
        return;
    }
    // A parent stands before its child in the log, so that there is no circle.
    let (mut order, mut is_taken) = (Vec::with_capacity(steps.len()), vec![false; steps.len()]);
    for last in (0..steps.len()).rev() {
        let mut waiting = vec![last];
        while let Some(at) = waiting.last().copied() {
            let open = parents[at].iter().copied().find(|parent| !is_taken[*parent]);
            match open {
                Some(parent) if !is_taken[at] => waiting.push(parent),
                _ => {
                    waiting.pop();
                    if !std::mem::replace(&mut is_taken[at], true) {
                        order.push(at);
                    }
                }
            }
        }
    }
    let mut old: Vec<T> = steps.iter_mut().map(std::mem::take).collect();
    for (to, from) in (0..steps.len()).rev().zip(order) {
        steps[to] = std::mem::take(&mut old[from]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_comes_back_before_what_refers_to_it() {
        let step = |note: &str, parent_of: &[u64], child_of: &[u64]| {
            let links =
                Links { parent_of: parent_of.to_vec(), child_of: child_of.to_vec(), moves_parent: false };
            (note.to_owned(), links)
        };
        let run = |mut steps: Vec<(String, Links)>| {
            parents_first(&mut steps, |step| &step.1);
            let notes: Vec<&str> = steps.iter().rev().map(|step| step.0.as_str()).collect();
            notes.join(" ")
        };
        // p ← c ← g, as MySQL logs them: the row of the statement last.
        let family = || {
            vec![
                step("c2", &[12], &[1]),
                step("g3", &[], &[12]),
                step("g4", &[], &[12]),
                step("c5", &[15], &[1]),
                step("g6", &[], &[15]),
                step("p", &[1], &[]),
            ]
        };
        assert_eq!(run(family()), "p c5 g6 c2 g4 g3");
        // One that refers to two rows, of which one is deleted behind it.
        let two =
            vec![step("a", &[1], &[3]), step("x", &[], &[1, 2]), step("b", &[2], &[3]), step("p", &[3], &[])];
        assert_eq!(run(two), "p b a x");
        // Nothing refers to another: from the last to the first. A row that refers to itself is none.
        assert_eq!(run(vec![step("1", &[1], &[1]), step("2", &[2], &[]), step("3", &[], &[])]), "3 2 1");
        // Two that may be the parent.
        assert_eq!(run(vec![step("x", &[1], &[]), step("y", &[1], &[]), step("c", &[], &[1])]), "x y c");
        // A list as long as it may be.
        let long = (0..100_000).map(|at| step("", &[at + 1], &[at])).collect();
        assert_eq!(run(long).len(), 99_999);
    }
}
