//! The kernels of an optimized module, and their extraction into separate modules. Operands become
//! arguments, except that constants remain constants, so that the code is planned as within the
//! program.

use compiler::Compiled;
use hlo::analysis::Cost;
use hlo::{Computation, ComputationId, InstructionId, Module, Op, OpMetadata, PrintOptions};
use shape::Shape;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// An instruction with its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel {
    /// The entry, or a computation executed by control flow.
    pub computation: ComputationId,
    /// The instruction.
    pub instruction: InstructionId,
}

/// A kernel extracted into a module.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// The module's entry takes the operands and returns a tuple of the result's arrays. It needs
    /// no further optimization.
    pub module: Module,
    /// The instruction's operands that become arguments, in order.
    pub operands: Vec<InstructionId>,
    /// Equal for kernels that differ only in the values of constants and in names.
    pub key: String,
}

/// Larger constants are considered identical if they have the same shape.
const SMALL_CONSTANT: usize = 16;

/// Returns the kernels of the entry and of the computations executed by its control flow, in
/// execution order.
pub fn kernels(module: &Module) -> Vec<Kernel> {
    let mut kernels = Vec::new();
    let mut pending = vec![module.entry()];
    let mut visited = BTreeSet::new();
    while let Some(computation) = pending.pop() {
        if !visited.insert(computation) {
            continue;
        }
        for instruction in module[computation].post_order() {
            match module[computation][instruction].op() {
                Op::While { condition, body } => pending.extend([body, condition]),
                Op::Conditional { branch_computations } => pending.extend(branch_computations.iter().rev()),
                op if has_code(op) => kernels.push(Kernel { computation, instruction }),
                _ => {}
            }
        }
    }
    kernels
}

impl Kernel {
    /// Returns the operations and memory traffic of one run.
    pub fn cost(self, module: &Module) -> Cost {
        Cost::of_instruction(module, self.computation, self.instruction)
    }
}

/// Returns the total cost of the kernels of an optimized module, counting each instance once: a
/// loop body once, and every branch of a conditional.
pub fn program_cost(module: &Module) -> Cost {
    kernels(module).into_iter().map(|kernel| kernel.cost(module)).sum()
}

/// True if an instruction computes or moves anything.
pub(crate) fn has_code(op: &Op) -> bool {
    !matches!(
        op,
        Op::Parameter { .. }
            | Op::Constant { .. }
            | Op::Tuple {}
            | Op::GetTupleElement { .. }
            | Op::Bitcast {}
            | Op::Reshape {}
            | Op::OptimizationBarrier {}
            | Op::AddDependency {}
            | Op::AfterAll {}
            | Op::Conditional { .. }
            | Op::While { .. }
            | Op::Call { .. }
    )
}

/// Extracts the kernel into a module. Returns an error if an operand or a result is not an array.
pub fn extract(module: &Module, kernel: Kernel) -> Result<Extracted> {
    let computation = &module[kernel.computation];
    let instruction = &computation[kernel.instruction];
    let mut alone = Module::new("kernel");
    let mut callees = BTreeMap::new();
    let mut op = instruction.op().clone();
    for callee in op.called_computations() {
        copy(module, callee, &mut alone, &mut callees);
    }
    place(&mut op, &callees);

    let mut entry = Computation::new("entry");
    let (mut operands, mut values) = (Vec::new(), BTreeMap::new());
    for &operand in instruction.operands() {
        let shape = computation[operand].shape();
        if shape.as_array().is_none() {
            let name = instruction.name();
            return Err(Error::unsupported(format!(
                "{name} cannot run alone because it has an operand of shape {shape}"
            )));
        }
        if values.contains_key(&operand) || matches!(computation[operand].op(), Op::Constant { .. }) {
            continue;
        }
        let parameter = Op::Parameter { number: operands.len() };
        let name = format!("p{}", operands.len());
        let value = entry.add(&name, parameter, shape.clone(), &[], OpMetadata::default());
        values.insert(operand, value);
        operands.push(operand);
    }
    for &operand in instruction.operands() {
        if let constant @ Op::Constant { .. } = computation[operand].op() {
            let shape = computation[operand].shape().clone();
            values.entry(operand).or_insert_with(|| {
                entry.add("constant", constant.clone(), shape, &[], OpMetadata::default())
            });
        }
    }
    let inputs: Vec<InstructionId> = instruction.operands().iter().map(|o| values[o]).collect();
    let metadata = instruction.metadata().clone();
    let value = entry.add("kernel", op, instruction.shape().clone(), &inputs, metadata);
    add_root(&mut entry, value)?;
    let entry = alone.add_computation(entry);
    alone.set_entry(entry);
    let options = PrintOptions { layouts: false, max_constant_elements: SMALL_CONSTANT, metadata: false };
    let key = hlo::text::print(&alone, options);
    Ok(Extracted { module: alone, operands, key })
}

/// Makes a tuple of the value's arrays the root.
fn add_root(entry: &mut Computation, value: InstructionId) -> Result<()> {
    let shape = entry[value].shape().clone();
    let elements = match &shape {
        Shape::Array(_) => vec![(value, shape.clone())],
        Shape::Tuple(elements) => {
            let element = |(index, element): (usize, &Shape)| {
                let op = Op::GetTupleElement { index };
                (entry.add("", op, element.clone(), &[value], OpMetadata::default()), element.clone())
            };
            elements.iter().enumerate().map(element).collect()
        }
        Shape::Token => Vec::new(),
    };
    if elements.is_empty() || elements.iter().any(|(_, shape)| shape.as_array().is_none()) {
        return Err(Error::unsupported(format!(
            "the kernel cannot run alone because its result has shape {shape}"
        )));
    }
    let (ids, shapes): (Vec<InstructionId>, Vec<Shape>) = elements.into_iter().unzip();
    let root = entry.add("", Op::Tuple {}, Shape::Tuple(shapes), &ids, OpMetadata::default());
    entry.set_root(root);
    Ok(())
}

/// A copy of a computation, and that of each of its instructions.
type Copied = (ComputationId, BTreeMap<InstructionId, InstructionId>);

/// Lets an instruction call the copies of computations.
fn place(op: &mut Op, copies: &BTreeMap<ComputationId, Copied>) {
    if let Op::Fusion { kind, calls, .. } = op {
        *kind = kind.of_copy(|id| copies[calls].1[&id]);
    }
    op.map_called_computations(|callee| copies[&callee].0);
}

/// Copies a computation and its callees, using names that depend only on its structure.
fn copy(
    source: &Module,
    id: ComputationId,
    destination: &mut Module,
    copies: &mut BTreeMap<ComputationId, Copied>,
) {
    if copies.contains_key(&id) {
        return;
    }
    for (_, instruction) in source[id].instructions() {
        for callee in instruction.op().called_computations() {
            copy(source, callee, destination, copies);
        }
    }
    let source = &source[id];
    let mut target = Computation::new("called");
    let mut values = BTreeMap::new();
    for instruction_id in source.post_order() {
        let instruction = &source[instruction_id];
        let mut op = instruction.op().clone();
        place(&mut op, copies);
        let operands: Vec<InstructionId> = instruction.operands().iter().map(|o| values[o]).collect();
        let (shape, metadata) = (instruction.shape().clone(), instruction.metadata().clone());
        values.insert(instruction_id, target.add("", op, shape, &operands, metadata));
    }
    target.set_root(values[&source.root()]);
    copies.insert(id, (destination.add_computation(target), values));
}

/// The kernels of a compiled program in the order in which they run.
pub(crate) fn scheduled(compiled: &Compiled) -> Vec<Kernel> {
    let sequences = buffers::schedule(&compiled.module, &compiled.code.plan).sequences;
    let place = |(k, id): (usize, &InstructionId)| (*id, k);
    let places: BTreeMap<ComputationId, BTreeMap<InstructionId, usize>> = sequences
        .iter()
        .map(|(&id, sequence)| (id, sequence.iter().enumerate().map(place).collect()))
        .collect();
    let place = |kernel: &Kernel| places.get(&kernel.computation)?.get(&kernel.instruction).copied();
    let mut all = kernels(&compiled.module);
    // Kernels of one computation follow each other. Those of others run within it.
    for same in all.chunk_by_mut(|a, b| a.computation == b.computation) {
        same.sort_by_key(place);
    }
    all
}

/// Instructions of a fusion that depend on no operand. Equal ones of several nodes are one, and it
/// has the name of any of them.
fn without_operands(fused: &Computation) -> BTreeSet<InstructionId> {
    let mut fixed = BTreeSet::new();
    for id in fused.post_order() {
        let instruction = &fused[id];
        let depends = matches!(instruction.op(), Op::Parameter { .. });
        if !depends && instruction.operands().iter().all(|operand| fixed.contains(operand)) {
            fixed.insert(id);
        }
    }
    fixed
}

/// Returns the TensorFlow nodes from which a kernel originates, the root's first.
pub(crate) fn nodes(module: &Module, kernel: Kernel) -> Vec<String> {
    let instruction = &module[kernel.computation][kernel.instruction];
    let mut names = vec![instruction.metadata().op_name.clone()];
    if let Op::Fusion { calls, .. } = instruction.op() {
        let (computation, fixed) = (&module[*calls], without_operands(&module[*calls]));
        names.push(computation[computation.root()].metadata().op_name.clone());
        let order = computation.post_order();
        let varying = order.iter().rev().filter(|id| !fixed.contains(id));
        names.extend(varying.map(|&id| computation[id].metadata().op_name.clone()));
    }
    let mut visited = BTreeSet::new();
    names.retain(|name| !name.is_empty() && visited.insert(name.clone()));
    names
}

/// Returns the kernel's main operation: a fusion's contraction, reduction, or root.
pub(crate) fn kind(module: &Module, kernel: Kernel) -> &'static str {
    compiler::kind(module, kernel.computation, kernel.instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = r#"
HloModule two

fused {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  product = f32[4] multiply(x, y), metadata={op_name="scale"}
  ROOT sum = f32[4] add(product, y), metadata={op_name="bias"}
}

fused.1 {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  c = f32[4] multiply(a, b)
  ROOT d = f32[4] add(c, b)
}

ENTRY main {
  p = f32[4] parameter(0)
  w = f32[4] constant({1, 2, 3, 4})
  first = f32[4] fusion(p, w), kind=kLoop, calls=fused
  second = f32[4] fusion(first, w), kind=kLoop, calls=fused.1
  third = f32[4] fusion(w, second), kind=kLoop, calls=fused.1
  ROOT root = (f32[4]) tuple(third)
}
"#;

    /// The copy has the operands of each instruction before it, so the dot has another place.
    #[test]
    fn a_fusion_keeps_its_dot() {
        let text = "HloModule m

fused {
  x = f32[4,4] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4,4] broadcast(zero), dimensions={}
  dot = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = f32[4,4] maximum(dot, zeros)
}

ENTRY main {
  x = f32[4,4] parameter(0)
  y = f32[4,4] fusion(x), kind=kOutput, calls=fused
  ROOT r = (f32[4,4]) tuple(y)
}
";
        let module = hlo::parse(text).unwrap();
        let alone = extract(&module, kernels(&module)[0]).unwrap().module;
        hlo::verify(&alone).unwrap();
        let dots = alone.computations().flat_map(|(_, computation)| computation.instructions());
        let dots: Vec<_> = dots.filter(|(_, i)| matches!(i.op(), Op::Dot { .. })).map(|(id, _)| id).collect();
        let kinds = alone.entry_computation().instructions().filter_map(|(_, i)| match i.op() {
            Op::Fusion { kind, .. } => kind.hero(),
            _ => None,
        });
        assert_eq!(kinds.collect::<Vec<_>>(), dots);
    }

    #[test]
    fn kernels_run_alone_and_like_ones_have_like_keys() {
        let module = hlo::parse(MODULE).unwrap();
        let all = kernels(&module);
        assert_eq!(all.len(), 3);
        let alone: Vec<Extracted> = all.iter().map(|&k| extract(&module, k).unwrap()).collect();
        for extracted in &alone {
            hlo::verify(&extracted.module).unwrap();
            assert_eq!(extracted.operands.len(), 1, "the constant remains inside");
        }
        assert_eq!(alone[0].key, alone[1].key);
        assert_ne!(alone[0].key, alone[2].key, "the operands are swapped");
        let x = shape::Literal::from_elements(&[4], &[1f32, 1.0, 1.0, 2.0]);
        let result = evaluator::evaluate(&alone[0].module, &[x]).unwrap();
        let shape::Literal::Tuple(elements) = result else { panic!("a tuple") };
        assert_eq!(elements[0].to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 12.0]);
        assert_eq!(nodes(&module, all[0]), ["bias", "scale"]);
    }

    #[test]
    fn nodes_of_shared_constants_are_not_those_of_the_kernel() {
        let text = r#"HloModule m

fused {
  x = f32[4] parameter(0)
  six = f32[] constant(6), metadata={op_name="first/relu"}
  limit = f32[4] broadcast(six), dimensions={}, metadata={op_name="first/relu"}
  sum = f32[4] add(x, x), metadata={op_name="second/add"}
  ROOT y = f32[4] minimum(sum, limit), metadata={op_name="second/relu"}
}

fill {
  six = f32[] constant(6), metadata={op_name="first/relu"}
  ROOT limit = f32[4] broadcast(six), dimensions={}, metadata={op_name="fill"}
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] fusion(x), kind=kLoop, calls=fused
  z = f32[4] fusion(), kind=kLoop, calls=fill
  ROOT r = (f32[4], f32[4]) tuple(y, z)
}
"#;
        let module = hlo::parse(text).unwrap();
        let all = kernels(&module);
        assert_eq!(nodes(&module, all[0]), ["second/relu", "second/add"]);
        assert_eq!(nodes(&module, all[1]), ["fill"]);
    }
}
