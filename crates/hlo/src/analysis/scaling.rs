//! Comparison of a program's modules for two numbers of rows: the number itself must not matter.
//!
//! Rows that do not depend on each other may still depend on how many there are, as in a division
//! by the size of the batch. The front end folds such a size to a constant, or it is the sum of an
//! array of ones. Pieces of a batch then compute another function than the whole.
//! [`depends_on_size`] finds the difference.

use crate::{ComputationId, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// A module, and its number of rows.
type Sized<'a> = (&'a Module, i64);

/// Returns the reason why modules of one program for two numbers of rows may compute different
/// functions of each row: they consist of different instructions, an array does not grow with the
/// number of rows or depends on it, or a constant differs. `None` if the rows that both
/// have are computed in the same way, provided that they are independent
/// ([`independent_rows`](super::independent_rows)).
pub fn depends_on_size(a: Sized<'_>, b: Sized<'_>) -> Option<String> {
    let mut pairs = Pairs { a, b, visited: BTreeSet::new() };
    pairs.computations(a.0.entry(), b.0.entry()).err()
}

struct Pairs<'a> {
    a: Sized<'a>,
    b: Sized<'a>,
    visited: BTreeSet<(ComputationId, ComputationId)>,
}

impl Pairs<'_> {
    fn computations(&mut self, a: ComputationId, b: ComputationId) -> Result<(), String> {
        if !self.visited.insert((a, b)) {
            return Ok(());
        }
        let (in_a, in_b) = (&self.a.0[a], &self.b.0[b]);
        let (order, other) = (in_a.post_order(), in_b.post_order());
        if order.len() != other.len() {
            return Err(format!("{} consists of other instructions for another number of rows", in_a.name()));
        }
        let pairs: BTreeMap<InstructionId, InstructionId> =
            order.iter().copied().zip(other.iter().copied()).collect();
        for (&id, &like) in &pairs {
            let (instruction, twin) = (&in_a[id], &in_b[like]);
            let operands = instruction.operands().iter().map(|operand| pairs.get(operand));
            let reason =
                if instruction.opcode() != twin.opcode() || !operands.eq(twin.operands().iter().map(Some)) {
                    Some("it is another instruction for another number of rows")
                } else {
                    self.instructions((a, id), (b, like))
                };
            if let Some(reason) = reason {
                return Err(format!("the number of rows matters at {}: {reason}", instruction.described()));
            }
            let called = instruction.op().called_computations();
            for (callee, other) in called.into_iter().zip(twin.op().called_computations()) {
                self.computations(callee, other)?;
            }
        }
        Ok(())
    }

    /// Returns how an instruction depends on the number of rows.
    fn instructions(
        &self,
        (a, id): (ComputationId, InstructionId),
        (b, twin): (ComputationId, InstructionId),
    ) -> Option<&'static str> {
        let (in_a, in_b) = (&self.a.0[a], &self.b.0[b]);
        let growth = |id: InstructionId, twin: InstructionId| {
            growth((in_a[id].shape(), self.a.1), (in_b[twin].shape(), self.b.1))
        };
        let Some(own) = growth(id, twin) else {
            return Some("its size is not proportional to the number of rows");
        };
        match (in_a[id].op(), in_b[twin].op()) {
            (Op::Constant { literal }, Op::Constant { literal: other })
                if !have_same_start(literal, other) =>
            {
                return Some("it is another constant for another number of rows");
            }
            (
                Op::CustomCall { custom_call_target, backend_config, .. },
                Op::CustomCall { custom_call_target: target, backend_config: config, .. },
            ) if (custom_call_target, backend_config) != (target, config) => {
                return Some("it is another call for another number of rows");
            }
            _ => {}
        }
        // The rows of an array meet in a value without rows.
        let has_rows =
            in_a[id].operands().iter().zip(in_b[twin].operands()).any(|(&operand, &other)| {
                growth(operand, other).is_some_and(|leaves| leaves.contains(&true))
            });
        let keeps_places = match (in_a[id].op(), in_b[twin].op()) {
            (Op::Slice { slice }, Op::Slice { slice: other }) => slice
                .iter()
                .zip(other)
                .all(|(part, twin)| (part.start, part.stride) == (twin.start, twin.stride)),
            // Their computations are compared.
            (Op::Call { .. } | Op::While { .. } | Op::Conditional { .. }, _) => true,
            (Op::Tuple {} | Op::GetTupleElement { .. }, _) => true,
            _ => false,
        };
        (has_rows && own.contains(&false) && !keeps_places)
            .then_some("it combines as many elements as there are rows")
    }
}

/// For each array in a value, true if its number of elements is proportional to the number of rows,
/// false if the array has one shape. `None` if one is neither.
fn growth((shape, rows): (&Shape, i64), (other, other_rows): (&Shape, i64)) -> Option<Vec<bool>> {
    let (leaves, others) = (shape.leaves(), other.leaves());
    let of_leaf = |(leaf, twin): (&ArrayShape, &ArrayShape)| {
        if leaf.element_type != twin.element_type || leaf.rank() != twin.rank() {
            return None;
        }
        if leaf.sizes() == twin.sizes() {
            return Some(false);
        }
        let product = |shape: &ArrayShape, rows: i64| i128::from(shape.element_count()) * i128::from(rows);
        (product(leaf, other_rows) == product(twin, rows)).then_some(true)
    };
    if leaves.len() != others.len() {
        return None;
    }
    leaves.iter().zip(&others).map(|((_, leaf), (_, twin))| of_leaf((leaf, twin))).collect()
}

/// True if constants have the same elements in the places that both have.
fn have_same_start(a: &Literal, b: &Literal) -> bool {
    let (Literal::Array { shape, .. }, Literal::Array { shape: other, .. }) = (a, b) else { return false };
    let common: Vec<i64> = shape.sizes().iter().zip(other.sizes()).map(|(&a, b)| a.min(b)).collect();
    match (a.corner(&common), b.corner(&common)) {
        (Some(a), Some(b)) => a.bytes() == b.bytes(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::depends_on_size;

    /// Compares the module of a text for 8 and for 64 rows, whose number is `$N` in the text. `$B`
    /// is a number that depends on it.
    fn compare(text: &str, of_rows: impl Fn(i64) -> i64) -> Option<String> {
        let module = |rows: i64| {
            let body = text.replace("$N", &rows.to_string()).replace("$B", &of_rows(rows).to_string());
            crate::parse(&format!("HloModule m\n\n{body}")).unwrap_or_else(|error| panic!("{error}: {body}"))
        };
        let (a, b) = (module(8), module(64));
        assert_eq!(depends_on_size((&a, 8), (&a, 8)), None);
        depends_on_size((&a, 8), (&b, 64))
    }

    const ADD: &str =
        "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\n";

    #[test]
    fn constants_and_shapes_along_the_rows_do_not_matter() {
        let text = "ENTRY e {\n  x = f32[$N,2] parameter(0)\n  one = f32[] constant(3)\n  \
            ones = f32[$N,2] broadcast(one), dimensions={}\n  sum = f32[$N,2] add(x, ones)\n  \
            flat = f32[$B] reshape(sum)\n  ROOT r = (f32[$B]) tuple(flat)\n}\n";
        assert_eq!(compare(text, |rows| 2 * rows), None);
    }

    #[test]
    fn a_constant_that_is_the_number_of_rows_matters() {
        let text = "ENTRY e {\n  x = f32[$N,2] parameter(0)\n  count = f32[] constant($B)\n  \
            all = f32[$N,2] broadcast(count), dimensions={}\n  y = f32[$N,2] divide(x, all)\n  \
            ROOT r = (f32[$N,2]) tuple(y)\n}\n";
        assert_eq!(compare(text, |_| 8), None);
        let reason = compare(text, |rows| rows).expect("a difference");
        assert!(reason.contains("another constant"), "{reason}");
    }

    #[test]
    fn the_sum_of_as_many_ones_as_rows_matters() {
        let text = format!(
            "{ADD}ENTRY e {{\n  x = f32[$N,2] parameter(0)\n  one = f32[] constant(1)\n  zero = f32[] constant(0)\n  \
             ones = f32[$N] broadcast(one), dimensions={{}}\n  \
             count = f32[] reduce(ones, zero), dimensions={{0}}, to_apply=add\n  \
             all = f32[$N,2] broadcast(count), dimensions={{}}\n  y = f32[$N,2] divide(x, all)\n  \
             ROOT r = (f32[$N,2]) tuple(y)\n}}\n"
        );
        let reason = compare(&text, |rows| rows).expect("a difference");
        assert!(reason.contains("combines as many elements"), "{reason}");
    }

    #[test]
    fn rows_that_are_copied_for_each_row_matter() {
        let text = format!(
            "{ADD}ENTRY e {{\n  x = f32[$N] parameter(0)\n  zero = f32[] constant(0)\n  \
             all = f32[$N,$N] broadcast(x), dimensions={{0}}\n  \
             y = f32[$N] reduce(all, zero), dimensions={{1}}, to_apply=add\n  ROOT r = (f32[$N]) tuple(y)\n}}\n"
        );
        let reason = compare(&text, |rows| rows).expect("a difference");
        assert!(reason.contains("not proportional"), "{reason}");
    }

    #[test]
    fn a_slice_whose_start_is_the_number_of_rows_matters() {
        let text = "ENTRY e {\n  x = f32[$N] parameter(0)\n  i = f32[$N] iota(), iota_dimension=0\n  \
            last = f32[1] slice(i), slice={[$B:$N]}\n  one = f32[] reshape(last)\n  \
            all = f32[$N] broadcast(one), dimensions={}\n  y = f32[$N] add(x, all)\n  \
            ROOT r = (f32[$N]) tuple(y)\n}\n";
        assert!(compare(text, |rows| rows - 1).is_some_and(|reason| reason.contains("combines")));
    }
}
