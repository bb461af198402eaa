//! Expands `map` to elementwise instructions.

use hlo::{Computation, Instruction, Module, Op, Traits};
use shape::{ArrayShape, Shape};
use std::collections::BTreeMap;

/// Returns a module whose entry computes on whole arrays what a `map` computes at each index, or
/// `None` if the mapped computation does more than scalar arithmetic.
pub(super) fn on_arrays(module: &Module, instruction: &Instruction) -> Option<Module> {
    let Op::Map { to_apply, .. } = instruction.op() else { return None };
    let sizes = instruction.shape().as_array()?.sizes();
    let scalars = &module[*to_apply];
    let mut arrays = Computation::new("mapped");
    let mut mapped = BTreeMap::new();
    for id in scalars.post_order() {
        let scalar = &scalars[id];
        let array = ArrayShape::new(scalar.shape().as_array()?.element_type, &sizes);
        let operands = scalar.operands().iter().map(|operand| mapped.get(operand).copied());
        let operands = operands.collect::<Option<Vec<_>>>()?;
        let metadata = scalar.metadata().clone();
        let op = match scalar.op() {
            Op::Parameter { .. } | Op::Clamp {} => scalar.op().clone(),
            Op::Constant { .. } => {
                let shape = scalar.shape().clone();
                let constant = arrays.add("", scalar.op().clone(), shape, &[], metadata.clone());
                let broadcast = Op::Broadcast { dimensions: Vec::new() };
                mapped.insert(id, arrays.add("", broadcast, Shape::Array(array), &[constant], metadata));
                continue;
            }
            op if op.opcode().traits().contains(Traits::ELEMENTWISE) && !matches!(op, Op::Map { .. }) => {
                op.clone()
            }
            _ => return None,
        };
        mapped.insert(id, arrays.add(scalar.name(), op, Shape::Array(array), &operands, metadata));
    }
    arrays.set_root(*mapped.get(&scalars.root())?);
    let mut lifted = Module::new("map");
    let entry = lifted.add_computation(arrays);
    lifted.set_entry(entry);
    Some(lifted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_become_arrays() {
        let text = "HloModule m\n\nf {\n  a = f32[] parameter(0)\n  one = f32[] constant(1)\n  s = f32[] sine(a)\n  \
                    ROOT r = pred[] compare(s, one), direction=LT\n}\n\n\
                    ENTRY main {\n  x = f32[2,3] parameter(0)\n  ROOT m = pred[2,3] map(x), dimensions={0,1}, to_apply=f\n}\n";
        let module = hlo::parse(text).expect("a module");
        let entry = module.entry_computation();
        let lifted = on_arrays(&module, &entry[entry.root()]).expect("arithmetic");
        hlo::verify(&lifted).expect("a module");
        let (lifted, entry) = (lifted.entry_computation().program_shape(), entry.program_shape());
        assert_eq!((lifted.parameters, lifted.result), (entry.parameters, entry.result));
    }
}
