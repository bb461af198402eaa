//! Orders simultaneous copies.

use std::collections::{BTreeMap, BTreeSet};

/// A copy between places of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair<P> {
    pub(crate) from: P,
    pub(crate) to: P,
}

/// A copy, or half of a copy through a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move<P> {
    /// Copies from one place to another.
    Copy(Pair<P>),
    /// Copies a place to the stage with this index.
    Save(P, usize),
    /// Copies the stage with this index to a place.
    Restore(usize, P),
}

/// Orders the copies so that no source is overwritten before it is read. In a cycle, one copy goes
/// through a stage. No two copies may have the same destination.
pub(crate) fn in_order<P: Copy + Ord>(copies: &[Pair<P>]) -> Vec<Move<P>> {
    let mut waiting: BTreeMap<P, P> =
        copies.iter().filter(|c| c.from != c.to).map(|c| (c.to, c.from)).collect();
    let mut readers: BTreeMap<P, usize> = BTreeMap::new();
    waiting.values().for_each(|from| *readers.entry(*from).or_default() += 1);
    let mut ready: BTreeSet<P> = waiting.keys().filter(|to| !readers.contains_key(to)).copied().collect();
    let mut stages: BTreeMap<P, usize> = BTreeMap::new();
    let mut moves = Vec::new();
    loop {
        while let Some(to) = ready.pop_first() {
            let Some(from) = waiting.remove(&to) else { continue };
            moves.push(match stages.get(&from) {
                Some(&stage) => Move::Restore(stage, to),
                None => Move::Copy(Pair { from, to }),
            });
            let remaining = readers.entry(from).or_default();
            *remaining -= 1;
            if *remaining == 0 && waiting.contains_key(&from) {
                ready.insert(from);
            }
        }
        // Only cycles remain: every destination is the source of another copy.
        let Some((&to, _)) = waiting.iter().next() else { return moves };
        let stage = stages.len();
        moves.push(Move::Save(to, stage));
        stages.insert(to, stage);
        ready.insert(to);
    }
}

/// A permutation of places with copies that it does not cover. In each cycle, contents move to the
/// previous place, and that of the first place to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renaming<P> {
    /// The places of each cycle, in order.
    pub(crate) cycles: Vec<Vec<P>>,
    /// Copies that remain to be done later, when the places have their new contents.
    pub(crate) copies: Vec<Pair<P>>,
}

/// Replaces simultaneous copies by exchanges of places where possible. Among copies from the same
/// source, only the first one moves the place; the others copy from its new place. A copy of a
/// place to itself keeps the place where it is.
pub(crate) fn rename<P: Copy + Ord>(copies: &[Pair<P>], may_move: impl Fn(&Pair<P>) -> bool) -> Renaming<P> {
    let stays: BTreeSet<P> = copies.iter().filter(|c| c.from == c.to).map(|c| c.to).collect();
    let mut source_of: BTreeMap<P, P> = BTreeMap::new();
    let mut destination_of: BTreeMap<P, P> = BTreeMap::new();
    let mut rest = Vec::new();
    for copy in copies.iter().filter(|c| c.from != c.to) {
        if may_move(copy) && !stays.contains(&copy.from) && !destination_of.contains_key(&copy.from) {
            source_of.insert(copy.to, copy.from);
            destination_of.insert(copy.from, copy.to);
        } else {
            rest.push(*copy);
        }
    }
    let mut renaming = Renaming { cycles: Vec::new(), copies: Vec::new() };
    // Chains come first, starting at places that are not read; closing them into cycles costs
    // nothing.
    let starts: Vec<P> = source_of.keys().filter(|to| !destination_of.contains_key(to)).copied().collect();
    for start in starts {
        renaming.cycles.push(take_chain(&mut source_of, start));
    }
    while let Some((&start, _)) = source_of.iter().next() {
        renaming.cycles.push(take_chain(&mut source_of, start));
    }
    renaming.copies = rest
        .into_iter()
        .map(|copy| Pair { from: destination_of.get(&copy.from).copied().unwrap_or(copy.from), ..copy })
        .collect();
    renaming
}

fn take_chain<P: Copy + Ord>(source_of: &mut BTreeMap<P, P>, start: P) -> Vec<P> {
    let mut chain = vec![start];
    let mut current = start;
    while let Some(from) = source_of.remove(&current) {
        if from == start {
            break;
        }
        chain.push(from);
        current = from;
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(from: u64, to: u64) -> Pair<u64> {
        Pair { from, to }
    }

    /// Executes the moves on memory that holds numbers.
    fn run(moves: &[Move<u64>], memory: &mut BTreeMap<u64, u64>) {
        let mut stages: BTreeMap<usize, u64> = BTreeMap::new();
        for step in moves {
            match step {
                Move::Copy(copy) => memory.insert(copy.to, memory[&copy.from]),
                Move::Save(from, stage) => stages.insert(*stage, memory[from]),
                Move::Restore(stage, to) => memory.insert(*to, stages[stage]),
            };
        }
    }

    #[test]
    fn every_destination_gets_what_its_source_held() {
        // A cycle of three with a tail, a chain, and a fan.
        let copies =
            [(1, 2), (2, 3), (3, 1), (3, 4), (5, 6), (6, 7), (6, 8), (9, 9)].map(|(from, to)| pair(from, to));
        let before: BTreeMap<u64, u64> = (1..10).map(|n| (n, n * 10)).collect();
        let mut memory = before.clone();
        let moves = in_order(&copies);
        run(&moves, &mut memory);
        for copy in copies {
            assert_eq!(memory[&copy.to], before[&copy.from], "{copy:?}");
        }
        assert_eq!(moves.len(), 8, "one more than the copies, because of the cycle");
    }

    #[test]
    fn exchanges_have_the_same_effect_as_copies() {
        let copies = [(1, 2), (2, 1), (1, 3), (4, 5), (5, 6), (7, 8), (9, 9), (9, 10)]
            .map(|(from, to)| pair(from, to));
        let renaming = rename(&copies, |copy| copy.from != 7);
        assert_eq!(renaming.cycles.len(), 2);
        let before: BTreeMap<u64, u64> = (1..11).map(|n| (n, n * 10)).collect();
        let mut memory = before.clone();
        for cycle in &renaming.cycles {
            for (k, place) in cycle.iter().enumerate() {
                memory.insert(*place, before[&cycle[(k + 1) % cycle.len()]]);
            }
        }
        for copy in &renaming.copies {
            memory.insert(copy.to, memory[&copy.from]);
        }
        for copy in copies {
            assert_eq!(memory[&copy.to], before[&copy.from], "{copy:?}");
        }
    }
}
