//! Circles: files that need each other, so that none can be read, tested or moved without the others.

use std::collections::{BTreeMap, BTreeSet};

/// The largest sets of nodes in which each reaches each other one, sorted.
pub(crate) fn circles<N: Ord + Clone>(edges: &BTreeMap<N, BTreeSet<N>>) -> BTreeSet<Vec<N>> {
    let reached: BTreeMap<&N, BTreeSet<&N>> =
        edges.keys().map(|node| (node, reached_from(edges, node))).collect();
    let circle_of = |node: &&N| -> Vec<N> {
        reached[node]
            .iter()
            .filter(|other| reached[*other].contains(node))
            .map(|other| (*other).clone())
            .collect()
    };
    edges.keys().map(|node| circle_of(&node)).filter(|circle| circle.len() > 1).collect()
}

fn reached_from<'a, N: Ord>(edges: &'a BTreeMap<N, BTreeSet<N>>, node: &'a N) -> BTreeSet<&'a N> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![node]);
    while let Some(node) = open.pop() {
        open.extend(edges[node].iter().filter(|other| reached.insert(*other)));
    }
    reached
}

#[test]
fn circles_are_found_and_ways_are_not() {
    let edges =
        [("a", &["b", "e"][..]), ("b", &["c"]), ("c", &["a"]), ("d", &["e"]), ("e", &["f"]), ("f", &["e"])];
    let edges = edges.map(|(node, others)| (node, others.iter().copied().collect())).into();
    assert_eq!(circles(&edges), [vec!["a", "b", "c"], vec!["e", "f"]].into());
}
