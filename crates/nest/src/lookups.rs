//! Lookups of bytes in tables that fill the registers.
//!
//! The epilogue of a tile looks up a byte for each sum. A vector of sums has a quarter as many
//! bytes as a register, and the instructions that look up bytes take as long for it as for a whole
//! one.

use crate::builder::{FunctionBuilder, RegionBuilder};
use crate::language::{Expression, Statement, ValueId};
use std::collections::BTreeSet;
use support::Result;

/// Builds code of which straight-line pieces follow each other, and joins lookups in the same table
/// to lookups of up to `lanes` bytes. No piece may write memory that another one reads or writes.
pub fn with_joined_lookups<B: RegionBuilder>(
    builder: &mut B,
    lanes: u32,
    build: impl FnOnce(&mut B) -> Result<()>,
) -> Result<()> {
    let begin = builder.builder().statements_so_far();
    build(builder)?;
    builder.builder().join_lookups(begin, lanes);
    Ok(())
}

impl FunctionBuilder {
    /// Joins lookups among the last statements of the open region, from number `begin` on.
    fn join_lookups(&mut self, begin: usize, lanes: u32) {
        if !self.is_straight_since(begin) {
            return;
        }
        let mut rest = self.open_statements().split_off(begin);
        while let Some(group) = self.lookups_to_join(&rest, lanes) {
            let last = group.last().map_or(0, |&last| last + 1);
            let following = rest.split_off(last);
            // Other lookups, which may be joined later, and what depends on any come after these.
            let (mut lookups, mut late) = (Vec::new(), Vec::new());
            let mut dependent = BTreeSet::new();
            for (number, statement) in rest.into_iter().enumerate() {
                let is_member = group.contains(&number);
                let waits = depends(&statement, &dependent) || !is_member && lookup(&statement).is_some();
                if waits || is_member {
                    dependent.extend(defined(&statement));
                    if waits { late.push(statement) } else { lookups.push(statement) }
                } else {
                    self.open_statements().push(statement);
                }
            }
            self.look_up_at_once(lookups);
            late.extend(following);
            rest = late;
        }
        self.open_statements().extend(rest);
    }

    /// The numbers of the first lookups in one table that do not depend on each other or on lookups
    /// between them and fit into a vector together; `None` if no two do.
    fn lookups_to_join(&self, statements: &[Statement], lanes: u32) -> Option<Vec<usize>> {
        (0..statements.len()).find_map(|first| {
            let (id, table, _) = lookup(&statements[first])?;
            let ty = self.ty(id);
            let mut group = vec![first];
            let mut dependent = BTreeSet::from([id]);
            for (number, statement) in statements.iter().enumerate().skip(first + 1) {
                if (group.len() as u32 + 1) * ty.lanes > lanes {
                    break;
                }
                let is_member = lookup(statement)
                    .is_some_and(|(other, of, _)| of == table && self.ty(other) == ty)
                    && !depends(statement, &dependent);
                if is_member {
                    group.push(number);
                }
                if lookup(statement).is_some() || depends(statement, &dependent) {
                    dependent.extend(defined(statement));
                }
            }
            (ty.lanes.is_power_of_two() && group.len() > 1).then_some(group)
        })
    }

    /// Emits lookups in one table as one, and then the parts of what it finds.
    fn look_up_at_once(&mut self, lookups: Vec<Statement>) {
        let Some((_, table, _)) = lookups.first().and_then(lookup) else { return };
        let table = table.to_vec();
        let indices = lookups.iter().filter_map(lookup).map(|(.., index)| index);
        let mut vectors: Vec<ValueId> = indices.collect();
        while vectors.len() > 1 {
            let pairs: Vec<_> = vectors.chunks(2).map(|pair| (pair[0], pair[pair.len() - 1])).collect();
            let lanes = 2 * self.ty(vectors[0]).lanes;
            vectors = pairs.into_iter().map(|(a, b)| self.shuffle(a, b, (0..lanes).collect())).collect();
        }
        let found = self.byte_lookup(table, vectors[0]);
        let mut first = 0;
        for id in lookups.iter().filter_map(defined) {
            let end = first + self.ty(id).lanes;
            let part = Expression::Shuffle(found, found, (first..end).collect());
            self.open_statements().push(Statement::Let(id, part));
            first = end;
        }
    }
}

/// A lookup of bytes: its value, its table, and the indices.
fn lookup(statement: &Statement) -> Option<(ValueId, &[u8], ValueId)> {
    match statement {
        Statement::Let(id, Expression::ByteLookup { table, index }) => Some((*id, table, *index)),
        _ => None,
    }
}

fn defined(statement: &Statement) -> Option<ValueId> {
    match statement {
        Statement::Let(id, _) => Some(*id),
        _ => None,
    }
}

fn depends(statement: &Statement, on: &BTreeSet<ValueId>) -> bool {
    statement.operands().iter().any(|operand| on.contains(operand))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{Linkage, PointerFacts, ScalarType, Type};

    const BYTES: Type = Type::vector(ScalarType::I8, 4);

    /// A function that looks up four bytes in each of some tables, given by their first byte, and
    /// stores what it finds. Lookups may depend on those before.
    fn lookups(tables: &[u8], is_chain: bool) -> crate::language::Function {
        let mut b = FunctionBuilder::new("f", Linkage::Internal);
        let from = b.parameter("from", Type::PTR, PointerFacts::default());
        let to = b.parameter("to", Type::PTR, PointerFacts::default());
        with_joined_lookups(&mut b, 16, |b| {
            let mut found = None;
            for (number, &first) in tables.iter().enumerate() {
                let at = number as i64 * 4;
                let index = match found {
                    Some(found) if is_chain => found,
                    _ => {
                        let pointer = b.offset_bytes(from, at);
                        b.load(BYTES, pointer, 1)
                    }
                };
                let bytes = b.byte_lookup(vec![first; 256], index);
                let one = b.integer(BYTES, 1);
                let raised = b.add(bytes, one);
                let pointer = b.offset_bytes(to, at);
                b.store(raised, pointer, 1);
                found = Some(bytes);
            }
            Ok(())
        })
        .expect("no error");
        b.finish()
    }

    /// The numbers of lanes of all lookups, and the number of stores. Checks that values are
    /// defined before they are used.
    fn widths(function: &crate::language::Function) -> (Vec<u32>, usize) {
        let mut seen = BTreeSet::from_iter(function.parameters.iter().map(|p| p.value));
        let (mut widths, mut stores) = (Vec::new(), 0);
        for statement in &function.body.statements {
            assert!(statement.operands().iter().all(|operand| seen.contains(operand)), "{statement:?}");
            seen.extend(defined(statement));
            match lookup(statement) {
                Some((id, ..)) => widths.push(function.values[id].lanes),
                None => stores += usize::from(matches!(statement, Statement::Store { .. })),
            }
        }
        (widths, stores)
    }

    #[test]
    fn lookups_in_one_table_fill_a_register() {
        assert_eq!(widths(&lookups(&[7; 4], false)), (vec![16], 4));
        assert_eq!(widths(&lookups(&[7; 7], false)), (vec![16, 16], 7));
        assert_eq!(widths(&lookups(&[7; 6], false)), (vec![16, 8], 6));
        assert_eq!(widths(&lookups(&[7; 1], false)), (vec![4], 1));
    }

    #[test]
    fn other_tables_and_dependent_lookups_stay_apart() {
        assert_eq!(widths(&lookups(&[1, 2, 1, 2], false)), (vec![8, 8], 4));
        assert_eq!(widths(&lookups(&[1, 2, 3], false)), (vec![4, 4, 4], 3));
        assert_eq!(widths(&lookups(&[7; 3], true)), (vec![4, 4, 4], 3));
    }
}
