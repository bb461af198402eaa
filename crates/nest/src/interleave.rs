//! Interleaving of straight-line pieces of code, statement by statement.
//!
//! An elementary function is a chain of dependent instructions, longer than a processor's reorder
//! window. If several such chains follow each other, the processor can barely overlap them. If they
//! are interleaved, it executes all of them at once.

use crate::builder::{FunctionBuilder, RegionBuilder};
use crate::language::{Statement, ValueId};
use std::collections::BTreeSet;
use std::ops::Range;
use support::Result;

/// Minimum number of statements in a piece. Shorter pieces fit into the reorder window anyway.
const MIN_STATEMENTS: usize = 24;

/// Builds a piece for each item and interleaves up to `at_once` of them. No piece may write memory
/// that another one reads.
pub fn in_turn<B: RegionBuilder, T>(
    builder: &mut B,
    items: impl IntoIterator<Item = T>,
    at_once: usize,
    mut build: impl FnMut(&mut B, T) -> Result<()>,
) -> Result<()> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for item in items {
        let begin = builder.builder().open_statements().len();
        build(builder, item)?;
        pieces.push(begin..builder.builder().open_statements().len());
        if pieces.len() == at_once {
            builder.builder().interleave(&std::mem::take(&mut pieces));
        }
    }
    builder.builder().interleave(&pieces);
    Ok(())
}

impl FunctionBuilder {
    /// Reorders the last statements of the open region, which are those of the pieces.
    fn interleave(&mut self, pieces: &[Range<usize>]) {
        let Some(begin) = pieces.first().map(|piece| piece.start) else { return };
        let is_long = pieces.iter().all(|piece| piece.len() >= MIN_STATEMENTS);
        let is_straight = |s: &Statement| matches!(s, Statement::Let(..) | Statement::Store { .. });
        if pieces.len() < 2 || !is_long || !self.open_statements()[begin..].iter().all(is_straight) {
            return;
        }
        let mut statements = self.open_statements().split_off(begin).into_iter();
        let mut queues: Vec<std::collections::VecDeque<Statement>> =
            pieces.iter().map(|piece| statements.by_ref().take(piece.len()).collect()).collect();
        // Values that are not defined yet. A piece may use a value that an earlier one computed for
        // both.
        let defined = |s: &Statement| match s {
            Statement::Let(id, _) => Some(*id),
            _ => None,
        };
        let mut missing: BTreeSet<ValueId> = queues.iter().flatten().filter_map(defined).collect();
        let mut merged = Vec::new();
        while queues.iter().any(|queue| !queue.is_empty()) {
            for queue in &mut queues {
                let Some(next) = queue.front() else { continue };
                if next.operands().iter().any(|operand| missing.contains(operand)) {
                    continue;
                }
                if let Some(id) = defined(next) {
                    missing.remove(&id);
                }
                merged.extend(queue.pop_front());
            }
        }
        self.open_statements().extend(merged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{Linkage, PointerFacts, ScalarType, Type};

    fn f32_type() -> Type {
        Type::vector(ScalarType::F32, 1)
    }

    #[test]
    fn pieces_take_turns_and_wait_for_what_they_share() {
        let mut b = FunctionBuilder::new("f", Linkage::Internal);
        let x = b.parameter("x", f32_type(), PointerFacts::default());
        let mut shared = None;
        let mut lasts = Vec::new();
        let build = |b: &mut FunctionBuilder, scale: f64| {
            // The first piece computes a value that both use.
            let common = *shared.get_or_insert_with(|| (0..8).fold(x, |x, _| b.mul(x, x)));
            let mut value = b.float(f32_type(), scale);
            for _ in 0..MIN_STATEMENTS {
                value = b.mul(value, common);
            }
            lasts.push(value);
            Ok(())
        };
        in_turn(&mut b, [0.5, 0.25, 2.0], 2, build).expect("no error");
        let function = b.finish();
        let order: Vec<ValueId> = function
            .body
            .statements
            .iter()
            .map(|s| match s {
                Statement::Let(id, _) => *id,
                _ => panic!("values only"),
            })
            .collect();
        assert_eq!(order.len(), 8 + 3 * (MIN_STATEMENTS + 1));
        let place = |id: ValueId| {
            order.iter().position(|&other| other == id).expect("expected the value in the function")
        };
        let alone = 8 + MIN_STATEMENTS;
        assert!(
            place(lasts[0]) > alone + MIN_STATEMENTS / 2,
            "expected the first piece to alternate with the second"
        );
        assert!(place(lasts[0]).abs_diff(place(lasts[1])) < 8, "expected both pieces to end together");
        assert_eq!(place(lasts[2]), order.len() - 1, "expected the third piece to come last");
        let mut seen = BTreeSet::from([x]);
        for statement in &function.body.statements {
            assert!(statement.operands().iter().all(|operand| seen.contains(operand)));
            if let Statement::Let(id, _) = statement {
                seen.insert(*id);
            }
        }
    }
}
