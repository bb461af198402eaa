//! Numbers that depend on a size that the caller chooses.
//!
//! A program may use the size of a batch for more than shapes: it may divide by it, or stop a loop
//! after as many steps. Code for another size, run on a piece of the batch, would use another
//! number.

use crate::{ComputationId, InstructionId, Module, Op};
use shape::Shape;
use std::collections::{BTreeMap, BTreeSet};

/// A value that depends on the size: an instruction, or an element of a tuple.
type Place = (ComputationId, InstructionId, Option<usize>);

/// Returns an instruction that uses a size, a scalar parameter of the entry, as a number. `None` if
/// it only determines sizes of arrays.
pub fn number_from_size(module: &Module, parameter: usize) -> Option<(ComputationId, InstructionId)> {
    let entry = module.entry();
    let &size = module[entry].parameters().get(parameter)?;
    let mut walk = Walk { module, callers: callers(module), seen: BTreeSet::new(), pending: Vec::new() };
    walk.reach((entry, size, None));
    while let Some(place) = walk.pending.pop() {
        if let Some(found) = walk.follow(place) {
            return Some(found);
        }
    }
    None
}

/// Returns the instructions that call each computation.
fn callers(module: &Module) -> BTreeMap<ComputationId, Vec<(ComputationId, InstructionId)>> {
    let mut callers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (caller, computation) in module.computations() {
        for (id, instruction) in computation.instructions() {
            for callee in instruction.op().called_computations() {
                callers.entry(callee).or_default().push((caller, id));
            }
        }
    }
    callers
}

struct Walk<'m> {
    module: &'m Module,
    callers: BTreeMap<ComputationId, Vec<(ComputationId, InstructionId)>>,
    seen: BTreeSet<Place>,
    pending: Vec<Place>,
}

impl Walk<'_> {
    fn reach(&mut self, place: Place) {
        if self.seen.insert(place) {
            self.pending.push(place);
        }
    }

    /// Follows a value to its users. Returns one that uses it as a number.
    fn follow(&mut self, (computation, id, element): Place) -> Option<(ComputationId, InstructionId)> {
        let body = &self.module[computation];
        if body.root() == id && self.leaves(computation, element) {
            return Some((computation, id));
        }
        for (user, instruction) in body.instructions() {
            for position in (0..instruction.operands().len()).filter(|&k| instruction.operands()[k] == id) {
                if self.uses((computation, user), position, element) {
                    return Some((computation, user));
                }
            }
        }
        None
    }

    /// Passes the root of a computation on to its callers. True if it is a number there.
    fn leaves(&mut self, computation: ComputationId, element: Option<usize>) -> bool {
        if computation == self.module.entry() {
            return true;
        }
        for (caller, id) in self.callers.get(&computation).cloned().unwrap_or_default() {
            match self.module[caller][id].op() {
                Op::While { condition, .. } if *condition == computation => return true,
                Op::While { condition, body } => {
                    for callee in [*condition, *body] {
                        self.reach((callee, self.module[callee].parameters()[0], element));
                    }
                    self.reach((caller, id, element));
                }
                Op::Call { .. } | Op::Conditional { .. } => self.reach((caller, id, element)),
                _ => return true,
            }
        }
        false
    }

    /// Passes an operand on to the result or to called computations. True if it is used as a
    /// number.
    fn uses(
        &mut self,
        (computation, user): (ComputationId, InstructionId),
        position: usize,
        element: Option<usize>,
    ) -> bool {
        let instruction = &self.module[computation][user];
        match (instruction.op(), element) {
            (Op::Tuple {}, None) => self.reach((computation, user, Some(position))),
            (Op::GetTupleElement { index }, Some(element)) => {
                if *index == element {
                    self.reach((computation, user, None));
                }
            }
            (Op::While { condition, body }, Some(_)) => {
                for callee in [*condition, *body] {
                    self.reach((callee, self.module[callee].parameters()[0], element));
                }
                self.reach((computation, user, element));
            }
            (Op::Call { to_apply }, _) => {
                self.reach((*to_apply, self.module[*to_apply].parameters()[position], element));
            }
            (Op::Conditional { branch_computations }, Some(_)) if position > 0 => {
                let branch = branch_computations[position - 1];
                self.reach((branch, self.module[branch].parameters()[0], element));
            }
            // A size of an array.
            (Op::SetDimensionSize { .. } | Op::DynamicReshape {}, None) => return position == 0,
            // Another size, or a comparison of sizes.
            (op, None) if is_scalar_integer(instruction.shape()) && !matches!(op, Op::CustomCall { .. }) => {
                self.reach((computation, user, None));
            }
            _ => return true,
        }
        false
    }
}

fn is_scalar_integer(shape: &Shape) -> bool {
    let array = shape.as_array().filter(|array| array.rank() == 0);
    array.is_some_and(|array| {
        array.element_type.is_integer() || array.element_type == shape::PrimitiveType::Pred
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(body: &str) -> Option<String> {
        let text = format!(
            "HloModule m\n\n\
             c {{\n  p = (s32[], f32[4]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  \
             n = s32[] constant(9)\n  ROOT l = pred[] compare(i, n), direction=LT\n}}\n\n\
             b {{\n  q = (s32[], f32[4]) parameter(0)\n  j = s32[] get-tuple-element(q), index=0\n  \
             y = f32[4] get-tuple-element(q), index=1\n  z = f32[4] negate(y)\n  \
             ROOT t = (s32[], f32[4]) tuple(j, z)\n}}\n\n\
             ENTRY e {{\n  x = f32[4] parameter(0)\n  n = s32[] parameter(1)\n  {body}\n}}\n"
        );
        let module = crate::parse(&text).expect("a module");
        let (computation, id) = number_from_size(&module, 1)?;
        Some(module[computation][id].name().to_owned())
    }

    #[test]
    fn sizes_of_arrays_are_not_numbers() {
        let sizes = "two = s32[] constant(2)\n  m = s32[] multiply(n, two)\n  \
            y = f32[<=4] set-dimension-size(x, m), dimensions={0}\n  ROOT r = (f32[<=4]) tuple(y)";
        assert_eq!(user(sizes), None);
        assert_eq!(user("ROOT r = (f32[4]) tuple(x)"), None);
    }

    #[test]
    fn other_uses_are_numbers() {
        let scaled = "f = f32[] convert(n)\n  s = f32[4] broadcast(f), dimensions={}\n  \
            y = f32[4] multiply(x, s)\n  ROOT r = (f32[4]) tuple(y)";
        assert_eq!(user(scaled).as_deref(), Some("f"));
        assert_eq!(user("ROOT r = (s32[]) tuple(n)").as_deref(), Some("r"));
        let masked = "i = s32[4] iota(), iota_dimension=0\n  s = s32[4] broadcast(n), dimensions={}\n  \
            ROOT r = (s32[4]) tuple(s)";
        assert_eq!(user(masked).as_deref(), Some("s"));
    }

    #[test]
    fn sizes_are_followed_through_loops() {
        let counted = "t = (s32[], f32[4]) tuple(n, x)\n  w = (s32[], f32[4]) while(t), condition=c, body=b\n  \
            y = f32[4] get-tuple-element(w), index=1\n  ROOT r = (f32[4]) tuple(y)";
        assert_eq!(user(counted).as_deref(), Some("l"));
        let other = "zero = s32[] constant(0)\n  t = (s32[], f32[4]) tuple(zero, x)\n  \
            w = (s32[], f32[4]) while(t), condition=c, body=b\n  y = f32[4] get-tuple-element(w), index=1\n  \
            z = f32[<=4] set-dimension-size(y, n), dimensions={0}\n  ROOT r = (f32[<=4]) tuple(z)";
        assert_eq!(user(other), None);
    }
}
