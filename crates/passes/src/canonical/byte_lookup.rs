//! Functions of one byte, as tables of their 256 values.

use crate::pass::{Changed, Pass};
use crate::query::is_static_array;
use hlo::{Computation, ComputationId, GatherDimensionNumbers, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// `f(x) => map(x, table)` for elementwise arithmetic whose only operand that varies is an array of
/// bytes, and whose result has bytes: a change of scale, an activation, or the product of a number
/// and its activation. Processors look up many bytes with few instructions.
///
/// Exact for every input, except for the last bits of transcendental functions: the evaluator
/// computes the table.
pub struct ByteLookup;

/// Minimum number of operations that a table replaces.
const FEW_OPERATIONS: usize = 4;

/// Minimum number of elements of an array that is looked up.
const FEW_ELEMENTS: i64 = 64;

/// Number of values of a byte.
const VALUES: i64 = 256;

impl Pass for ByteLookup {
    fn name(&self) -> &'static str {
        "byte-lookup"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        let mut known = BTreeMap::new();
        for id in crate::query::executed_computations(module) {
            let sources = sources(&module[id]);
            let order = module[id].post_order();
            let positions: BTreeMap<_, _> = order.iter().enumerate().map(|(k, &id)| (id, k)).collect();
            let mut dead = BTreeSet::new();
            // Readers first, so that one table replaces all of a sequence.
            for &root in order.iter().rev() {
                let users = module[id][root].users();
                if !users.is_empty() && users.iter().all(|user| dead.contains(user)) {
                    dead.insert(root);
                    continue;
                }
                let Some(function) = Function::of(&module[id], root, &sources, &positions) else { continue };
                let Some(table) = function.table(module, id) else { continue };
                let from = module[id][function.x].shape().expect_array().element_type;
                let to = table.array_shape().element_type;
                let key = (from, to, table.bytes().to_vec());
                let to_apply = match known.get(&key) {
                    Some(&to_apply) => to_apply,
                    None => hlo::add_byte_table(module, from, table)?,
                };
                known.insert(key, to_apply);
                replace(module.computation_mut(id), root, function.x, to_apply);
                dead.insert(root);
            }
            if !dead.is_empty() {
                crate::simplify::dce::sweep(module.computation_mut(id));
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

fn replace(computation: &mut Computation, root: InstructionId, x: InstructionId, to_apply: ComputationId) {
    let shape = computation[root].shape().clone();
    let metadata = computation[root].metadata().clone();
    let dimensions = (0..shape.expect_array().rank()).collect();
    let map = computation.add("", Op::Map { dimensions, to_apply }, shape, &[x], metadata);
    computation.replace_all_uses(root, map);
}

/// Elementwise arithmetic on one array of bytes.
struct Function {
    x: InstructionId,
    /// The instructions that depend on it, operands first.
    steps: Vec<InstructionId>,
}

impl Function {
    /// The function whose result is `root`, if it pays to look it up.
    fn of(
        computation: &Computation,
        root: InstructionId,
        sources: &BTreeMap<InstructionId, InstructionId>,
        positions: &BTreeMap<InstructionId, usize>,
    ) -> Option<Self> {
        let instruction = &computation[root];
        if instruction.users().is_empty() && computation.root() != root {
            return None;
        }
        let x = *sources.get(&root)?;
        let shape = instruction.shape().as_array()?;
        if !is_byte(computation, root) || x == root || shape.element_count() < FEW_ELEMENTS {
            return None;
        }
        let (mut steps, mut pending) = (BTreeSet::new(), vec![root]);
        while let Some(id) = pending.pop() {
            if id != x && steps.insert(id) {
                pending.extend(varying(computation, id)?);
            }
        }
        let is_gather = |&id: &InstructionId| matches!(computation[id].op(), Op::Gather { .. });
        let pays = steps.len() >= FEW_OPERATIONS || steps.iter().any(is_gather);
        if !pays {
            return None;
        }
        let mut steps: Vec<InstructionId> = steps.into_iter().collect();
        steps.sort_by_key(|step| positions[step]);
        Some(Self { x, steps })
    }

    /// The values for all bytes.
    fn table(&self, module: &Module, id: ComputationId) -> Option<Literal> {
        let computation = &module[id];
        let from = computation[self.x].shape().as_array()?.element_type;
        let bits: Vec<u8> = (0..=u8::MAX).collect();
        let mut values =
            BTreeMap::from([(self.x, Literal::from_bytes(ArrayShape::new(from, &[VALUES]), bits.into())?)]);
        for &step in &self.steps {
            let instruction = &computation[step];
            let mut op = instruction.op().clone();
            let mut operands = Vec::new();
            for (position, &operand) in instruction.operands().iter().enumerate() {
                let is_table = matches!(op, Op::Gather { .. }) && position == 0;
                operands.push(match values.get(&operand) {
                    Some(value) => value.clone(),
                    None if is_table => vector(computation, operand)?.clone(),
                    None => repeated(number(computation, operand)?),
                });
            }
            if let Op::Gather { gather_dimension_numbers, .. } = &mut op {
                gather_dimension_numbers.index_vector_dim = 1;
            }
            let element_type = instruction.shape().as_array()?.element_type;
            let shape = Shape::array(element_type, &[VALUES]);
            let operands: Vec<&Literal> = operands.iter().collect();
            values.insert(step, evaluator::evaluate_instruction(module, &op, &shape, &operands).ok()?);
        }
        values.remove(self.steps.last()?)
    }
}

/// The array of bytes of which each instruction is a function. An array of bytes that depends on
/// more than one is its own.
fn sources(computation: &Computation) -> BTreeMap<InstructionId, InstructionId> {
    let mut sources = BTreeMap::new();
    for id in computation.post_order() {
        let operands = varying(computation, id).unwrap_or_default();
        let mut all = operands.iter().map(|operand| sources.get(operand).copied());
        let first = all.next().flatten();
        let own = is_byte(computation, id) && is_static_array(computation, id);
        let source = if all.all(|other| other == first) { first } else { None };
        if let Some(source) = source.or(own.then_some(id)) {
            sources.insert(id, source);
        }
    }
    sources
}

fn is_byte(computation: &Computation, id: InstructionId) -> bool {
    let element_type = computation[id].shape().as_array().map(|shape| shape.element_type);
    matches!(element_type, Some(PrimitiveType::S8 | PrimitiveType::U8))
}

/// The operands of an instruction that vary, if each of its elements depends only on theirs at the
/// same index.
fn varying(computation: &Computation, id: InstructionId) -> Option<Vec<InstructionId>> {
    let instruction = &computation[id];
    let op = instruction.op();
    let operands = match op {
        Op::Gather { gather_dimension_numbers, slice_sizes, .. } => {
            let &[table, indices] = instruction.operands() else { return None };
            let rank = computation[indices].shape().as_array()?.rank();
            let is_lookup = slice_sizes.as_slice() == [1] && is_plain(gather_dimension_numbers, rank);
            vector(computation, table).filter(|_| is_lookup)?;
            return Some(vec![indices]);
        }
        Op::Map { .. } => return None,
        _ if op.is_elementwise() && !instruction.has_effect() => instruction.operands(),
        _ => return None,
    };
    let varies = |&id: &InstructionId| number(computation, id).is_none();
    let operands: Vec<InstructionId> = operands.iter().copied().filter(varies).collect();
    let sizes = |id: InstructionId| computation[id].shape().as_array().map(ArrayShape::sizes);
    let is_alike = operands.iter().all(|&operand| sizes(operand).is_some() && sizes(operand) == sizes(id));
    (is_alike && !operands.is_empty()).then_some(operands)
}

/// True if element `i` of a gather is the element of a vector at index `i`.
fn is_plain(numbers: &GatherDimensionNumbers, rank: usize) -> bool {
    numbers.offset_dims.is_empty()
        && numbers.collapsed_slice_dims.as_slice() == [0]
        && numbers.start_index_map.as_slice() == [0]
        && numbers.operand_batching_dims.is_empty()
        && numbers.index_vector_dim == rank
}

/// The number in all elements of a constant or of a broadcast scalar.
fn number(computation: &Computation, id: InstructionId) -> Option<&Literal> {
    let source = match computation[id].op() {
        Op::Broadcast { .. } => computation[id].operands()[0],
        _ => id,
    };
    let Op::Constant { literal } = computation[source].op() else { return None };
    (literal.array_shape().element_count() == 1).then_some(literal)
}

/// A constant vector.
fn vector(computation: &Computation, id: InstructionId) -> Option<&Literal> {
    let Op::Constant { literal } = computation[id].op() else { return None };
    (literal.array_shape().rank() == 1).then_some(literal)
}

/// One number for all values of a byte.
fn repeated(literal: &Literal) -> Literal {
    let shape = ArrayShape::new(literal.array_shape().element_type, &[VALUES]);
    Literal::from_scalars(shape, vec![literal.scalar_at(0); VALUES as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the pass. The results for all bytes stay the same.
    fn maps_of(body: &str) -> usize {
        let text = format!("HloModule m\n\nENTRY main {{\n{body}\n}}\n");
        let mut module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let entry = module.entry_computation();
        let arguments: Vec<Literal> = entry
            .parameters()
            .iter()
            .enumerate()
            .map(|(number, &p)| {
                let bits: Vec<u8> = (0..=u8::MAX).map(|k| k.rotate_left(number as u32)).collect();
                Literal::from_bytes(entry[p].shape().expect_array().clone(), bits.into()).expect("bytes")
            })
            .collect();
        let want = evaluator::evaluate(&module, &arguments).expect("a value");
        let _ = ByteLookup.run(&mut module).expect("it runs");
        hlo::verify(&module).expect("a valid module");
        assert_eq!(evaluator::evaluate(&module, &arguments).expect("a value"), want, "{text}");
        let entry = module.entry_computation();
        entry.instructions().filter(|(_, i)| matches!(i.op(), Op::Map { .. })).count()
    }

    /// `convert((x - 3) * FACTOR >> 5)`.
    fn scaled(x: &str, to: &str, factor: &str) -> String {
        format!(
            "  w{x} = s32[256] convert({x})\n  z{x} = s32[] constant(3)\n  zs{x} = s32[256] broadcast(z{x}), dimensions={{}}\n               c{x} = s32[256] subtract(w{x}, zs{x})\n  {factor}\n  m{x} = s32[256] multiply(c{x}, f{x})\n               n{x} = s32[] constant(5)\n  ns{x} = s32[256] broadcast(n{x}), dimensions={{}}\n               q{x} = s32[256] shift-right-arithmetic(m{x}, ns{x})\n  r{x} = {to}[256] convert(q{x})\n"
        )
    }

    #[test]
    fn arithmetic_on_a_byte_becomes_a_table() {
        let factor = |x: &str| {
            format!("g{x} = s32[] constant(37)\n  f{x} = s32[256] broadcast(g{x}), dimensions={{}}")
        };
        for (from, to) in [("s8", "s8"), ("u8", "s8"), ("s8", "u8")] {
            let x = format!("  x = {from}[256] parameter(0)\n{}", scaled("x", to, &factor("x")));
            assert_eq!(maps_of(&format!("{x}  ROOT y = {to}[256] add(rx, rx)")), 1);
            assert_eq!(maps_of(&format!("{x}  ROOT y = f32[256] convert(rx)")), 1);
            // One table for a sequence.
            let second = scaled("rx", to, &factor("rx"));
            assert_eq!(maps_of(&format!("{x}{second}  ROOT y = {to}[256] add(rrx, rx)")), 1);
            // Both are read.
            assert_eq!(maps_of(&format!("{x}{second}  ROOT y = ({to}[256], {to}[256]) tuple(rx, rrx)")), 2);
        }
    }

    #[test]
    fn a_table_of_a_byte_is_part_of_the_function() {
        let numbers = (0..256).map(|k| ((k * 5) % 200 - 100).to_string()).collect::<Vec<_>>().join(",");
        let text = format!(
            "  x = s8[256] parameter(0)\n  t = s8[256] constant({{{numbers}}})\n  w = s32[256] convert(x)\n               h = s32[] constant(128)\n  hs = s32[256] broadcast(h), dimensions={{}}\n  i = s32[256] add(w, hs)\n               g = s8[256] gather(t, i), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}},              index_vector_dim=1, slice_sizes={{1}}\n  ROOT y = s8[256] multiply(g, x)"
        );
        assert_eq!(maps_of(&text), 1);
    }

    #[test]
    fn other_arithmetic_stays() {
        let own = "fx = s32[256] iota(), iota_dimension=0";
        let x = format!("  x = s8[256] parameter(0)\n{}", scaled("x", "s8", own));
        assert_eq!(maps_of(&format!("{x}  ROOT y = s8[256] add(rx, rx)")), 0);
        let two = "  x = s8[256] parameter(0)\n  y = s8[256] parameter(1)\n  a = s8[256] add(x, y)\n  \
                   b = s8[256] multiply(a, x)\n  c = s8[256] maximum(b, y)\n  d = s8[256] xor(c, x)\n  \
                   ROOT e = s8[256] subtract(d, y)";
        assert_eq!(maps_of(two), 0);
        assert_eq!(maps_of("  x = s8[256] parameter(0)\n  ROOT y = s8[256] multiply(x, x)"), 0);
        let constants = (0..256).map(|k| (k % 100).to_string()).collect::<Vec<_>>().join(",");
        let own = format!("fx = s32[256] constant({{{constants}}})");
        let x = format!("  x = s8[256] parameter(0)\n{}", scaled("x", "s8", &own));
        assert_eq!(maps_of(&format!("{x}  ROOT y = s8[256] add(rx, rx)")), 0);
    }
}
