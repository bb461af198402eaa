//! Modules at a stage of the compilation, for callers that need HLO instead of code.

use crate::{BackOptions, Observer, optimize};
use hlo::{Computation, ComputationId, Instruction, InstructionId, Module, Op};
use shape::{ArrayShape, Literal};
use std::borrow::Cow;
use std::collections::BTreeMap;
use support::Result;

/// Stage of a module's compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// After the import, before any pass.
    Import,
    /// After all passes.
    Optimized,
    /// After all passes, with the instructions in execution order.
    Scheduled,
}

/// Compiles an imported module to a stage. Its entry may then have additional results: the sizes of
/// the bounded ones.
pub fn at_stage(
    mut module: Module,
    stage: Stage,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Module> {
    if stage >= Stage::Optimized {
        optimize(&mut module, options, observer)?;
    }
    match stage {
        Stage::Import | Stage::Optimized => Ok(module),
        Stage::Scheduled => scheduled(module, options, observer),
    }
}

/// Sorts an optimized module's instructions into execution order.
pub fn scheduled(mut module: Module, options: &BackOptions, observer: &mut dyn Observer) -> Result<Module> {
    let plan = plan::plan_with(&module, &options.target, &options.plan)?;
    observer.ended("plan", &|| plan.to_text(&module));
    let schedule = buffers::schedule(&module, &plan);
    let ids: Vec<_> = module.computations().map(|(id, _)| id).collect();
    for id in ids {
        // Computations without a schedule run inside kernels.
        let sequence = schedule.sequences.get(&id).map_or(&[][..], Vec::as_slice);
        let ordered = ordered(&module[id], sequence);
        *module.computation_mut(id) = ordered;
    }
    let mut attributes = vec![("is_scheduled".to_owned(), "true".to_owned())];
    attributes.extend(module.attributes().iter().filter(|(name, _)| name == "frontend_attributes").cloned());
    module.set_attributes(attributes);
    hlo::verify(&module)?;
    Ok(module)
}

/// Returns the module in a form that any reader of HLO accepts. The sizes of bounded results and of
/// named dimensions, which the header marks, become ordinary results and parameters, and
/// uninitialized arrays become zeros.
pub fn portable(module: &Module) -> Cow<'_, Module> {
    let mut module = Cow::Borrowed(module);
    if !module.bounded_dimensions().is_empty() {
        module.to_mut().set_bounded_dimensions(Vec::new());
    }
    if !module.size_parameters().is_empty() {
        module.to_mut().set_size_parameters(Vec::new());
    }
    let is_allocation = |instruction: &Instruction| match instruction.op() {
        Op::CustomCall { custom_call_target, .. } => custom_call_target == "AllocateBuffer",
        _ => false,
    };
    let allocations = module.computations().flat_map(|(id, computation)| {
        let instructions = computation.instructions();
        instructions.filter(|(_, instruction)| is_allocation(instruction)).map(move |(k, _)| (id, k))
    });
    let allocations: Vec<(ComputationId, InstructionId)> = allocations.collect();
    for (id, allocation) in allocations {
        let computation = module.to_mut().computation_mut(id);
        let (shape, metadata) =
            (computation[allocation].shape().clone(), computation[allocation].metadata().clone());
        let Some(array) = shape.as_array() else { continue };
        let scalar = ArrayShape::new(array.element_type, &[]);
        let zeros = vec![0; scalar.byte_size() as usize];
        let Some(literal) = Literal::from_bytes(scalar.clone(), zeros.into()) else { continue };
        let zero = computation.add("", Op::Constant { literal }, scalar.into(), &[], metadata.clone());
        let filled = computation.add("", Op::Broadcast { dimensions: Vec::new() }, shape, &[zero], metadata);
        computation.replace_all_uses(allocation, filled);
        computation.remove(allocation);
    }
    module
}

/// Returns the computation with its instructions in this order. Parameters come first, and
/// instructions that the order omits come before their first user.
fn ordered(computation: &Computation, sequence: &[InstructionId]) -> Computation {
    let rest = computation.post_order();
    let mut ordered = Computation::new(computation.name());
    let mut moved: BTreeMap<InstructionId, InstructionId> = BTreeMap::new();
    for &start in computation.parameters().iter().chain(sequence).chain(&rest) {
        let mut stack = vec![(start, 0)];
        while let Some((id, next)) = stack.pop() {
            if moved.contains_key(&id) {
                continue;
            }
            let instruction = &computation[id];
            if let Some(&operand) = instruction.operands().get(next) {
                stack.push((id, next + 1));
                stack.push((operand, 0));
                continue;
            }
            let operands: Vec<InstructionId> =
                instruction.operands().iter().map(|operand| moved[operand]).collect();
            let op: Op = instruction.op().clone();
            let (shape, metadata) = (instruction.shape().clone(), instruction.metadata().clone());
            moved.insert(id, ordered.add(instruction.name(), op, shape, &operands, metadata));
        }
    }
    ordered.set_root(moved[&computation.root()]);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoObserver;

    const TEXT: &str = "HloModule m\n\nENTRY main {\n  x = f32[2] parameter(0)\n  w = f32[2] parameter(1)\n  \
                        y = f32[2] add(x, w)\n  t = f32[2] tanh(x)\n  ROOT r = (f32[2], f32[2]) tuple(y, t)\n}\n";

    #[test]
    fn a_scheduled_module_is_the_optimized_one_in_another_order() {
        let module = hlo::parse(TEXT).expect("a module");
        let options = BackOptions::new(crate::host("").expect("this machine"), "entry");
        let at = |stage| at_stage(module.clone(), stage, &options, &mut NoObserver).expect("compiles");
        assert_eq!(at(Stage::Import), module);
        let (optimized, scheduled) = (at(Stage::Optimized), at(Stage::Scheduled));
        let sorted = |module: &Module| {
            let mut lines: Vec<String> = module.to_text().lines().skip(1).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&optimized), sorted(&scheduled));
        assert!(scheduled.to_text().starts_with("HloModule m, is_scheduled=true\n"));
    }

    #[test]
    fn uninitialized_arrays_are_zeros_in_portable_modules() {
        let text = "HloModule m\n\nENTRY main {\n  ROOT b = f32[2] custom-call(), custom_call_target=\"AllocateBuffer\"\n}\n";
        let mut module = hlo::parse(text).expect("a module");
        assert!(matches!(portable(&hlo::parse(TEXT).expect("a module")), Cow::Borrowed(_)));
        module.set_bounded_dimensions(Vec::new());
        let text = portable(&module).to_text();
        assert!(text.contains("ROOT broadcast = f32[2] broadcast(constant)"), "{text}");
        assert!(!text.contains("custom-call"), "{text}");
    }

    #[test]
    fn instructions_follow_the_order_and_their_operands() {
        let module = hlo::parse(TEXT).expect("a module");
        let entry = module.entry_computation();
        let find = |name: &str| entry.find(name).expect("an instruction");
        let names = |computation: &Computation| -> Vec<String> {
            computation.instructions().map(|(_, instruction)| instruction.name().to_owned()).collect()
        };
        assert_eq!(names(&ordered(entry, &[find("t"), find("y")])), ["x", "w", "t", "y", "r"]);
        assert_eq!(names(&ordered(entry, &[])), ["x", "w", "y", "t", "r"]);
    }
}
