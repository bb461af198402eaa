//! Unifies counters that change in the same way.

use super::{Loop, scalars};
use crate::pass::{Changed, Pass};
use hlo::analysis;
use hlo::{ComputationId, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, Shape};
use support::Result;

/// Derives induction variables from others of the same type: `j => m * i + b` in the condition, in
/// the body, and after the loop, where j starts at b plus m times i and its step is m times as
/// large. Exact for every input, because integer arithmetic wraps consistently.
///
/// `simplify-while-loop` removes the variables that are no longer read.
pub struct WhileLoopInductionVariableUnification;

impl Pass for WhileLoopInductionVariableUnification {
    fn name(&self) -> &'static str {
        "while-loop-induction-variable-unification"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(while_loop) = Loop::at(module, site) else { continue };
            let relations = relations(module, while_loop);
            let is_read = |relation: &&Relation| is_read(module, while_loop, relation.element);
            let relations: Vec<Relation> = relations.iter().filter(is_read).copied().collect();
            if relations.is_empty() {
                continue;
            }
            let while_loop = while_loop.exclusive(module);
            relations.into_iter().for_each(|relation| apply(module, while_loop, relation));
            changed = true;
        }
        Ok(changed.into())
    }
}

/// The relation `element = multiplier * base + offset` before every iteration.
#[derive(Clone, Copy, Debug)]
struct Relation {
    element: usize,
    base: usize,
    multiplier: i64,
    offset: i64,
}

/// A state element to which each iteration adds a constant.
#[derive(Clone, Copy)]
struct Variable {
    element: usize,
    step: i64,
}

fn relations(module: &Module, while_loop: Loop) -> Vec<Relation> {
    let steps = analysis::induction_variables(module, &module[while_loop.body]);
    let mut relations: Vec<Relation> = Vec::new();
    // Variables with the smallest steps become bases.
    let mut variables: Vec<Variable> =
        steps.into_iter().map(|(element, step)| Variable { element, step }).collect();
    variables.sort_by_key(|variable| (variable.step.unsigned_abs(), variable.element));
    let mut bases: Vec<Variable> = Vec::new();
    for variable in variables {
        let existing = bases.iter().find_map(|&base| relation(module, while_loop, variable, base));
        match existing {
            Some(relation) => relations.push(relation),
            None => bases.push(variable),
        }
    }
    relations
}

fn relation(module: &Module, while_loop: Loop, variable: Variable, base: Variable) -> Option<Relation> {
    let Variable { element, step } = variable;
    let Variable { element: base, step: base_step } = base;
    let shape = while_loop.array(module, element)?;
    if shape != while_loop.array(module, base)? || step.checked_rem(base_step)? != 0 {
        return None;
    }
    let multiplier = step.checked_div(base_step)?;
    if multiplier == 1 && while_loop.start(module, element) == while_loop.start(module, base) {
        return Some(Relation { element, base, multiplier, offset: 0 });
    }
    let start = while_loop.initial_range(module, element).value()?;
    let base_start = while_loop.initial_range(module, base).value()?;
    let offset = start.checked_sub(multiplier.checked_mul(base_start)?)?;
    // Both numbers must be representable as constants of the type.
    scalars::integer(shape, offset.into())?;
    scalars::integer(shape, multiplier.into())?;
    Some(Relation { element, base, multiplier, offset })
}

/// True if anything reads the element, except its own next value and other relations.
fn is_read(module: &Module, while_loop: Loop, element: usize) -> bool {
    let condition = &module[while_loop.condition];
    let body = &module[while_loop.body];
    let next = while_loop.next(module, element);
    let reads = |id: ComputationId| {
        let computation = &module[id];
        Loop::reads(computation, computation.parameters()[0], element)
    };
    let is_used = |read: InstructionId| !condition[read].users().is_empty() || condition.root() == read;
    let only_counts = |user: InstructionId| user == next && body[next].users() == [body.root()];
    reads(while_loop.condition).into_iter().any(is_used)
        || reads(while_loop.body)
            .into_iter()
            .any(|read| body[read].users().iter().any(|&user| !only_counts(user)))
        || !body[next].users().iter().all(|&user| user == body.root())
        || {
            let caller = &module[while_loop.caller];
            let is_used = |read: InstructionId| !caller[read].users().is_empty() || caller.root() == read;
            Loop::reads(caller, while_loop.id, element).into_iter().any(is_used)
        }
}

fn apply(module: &mut Module, while_loop: Loop, relation: Relation) {
    let Relation { element, base, .. } = relation;
    for id in [while_loop.condition, while_loop.body] {
        let parameter = module[id].parameters()[0];
        let reads = Loop::reads(&module[id], parameter, element);
        if reads.is_empty() {
            continue;
        }
        let base = while_loop.read(module, id, base);
        let value = scaled(module, id, base, relation);
        for read in reads {
            module.computation_mut(id).replace_all_uses(read, value);
        }
    }
    // The element's own next value temporarily still counts from the old element.
    let caller = module[while_loop.caller].post_order();
    let reads = Loop::reads(&module[while_loop.caller], while_loop.id, element);
    let reads: Vec<InstructionId> = reads.into_iter().filter(|read| caller.contains(read)).collect();
    if !reads.is_empty() {
        let base = while_loop.after(module, base);
        let value = scaled(module, while_loop.caller, base, relation);
        for read in reads {
            module.computation_mut(while_loop.caller).replace_all_uses(read, value);
        }
    }
}

/// Adds `multiplier * base + offset`.
fn scaled(module: &mut Module, id: ComputationId, base: InstructionId, relation: Relation) -> InstructionId {
    let computation = module.computation_mut(id);
    let shape: ArrayShape = computation[base].shape().expect_array().clone();
    let metadata = computation[base].metadata().clone();
    let mut constant = |number: i64| {
        let scalar =
            scalars::integer(&shape, number.into()).expect("relation with constants that exceed their type");
        let literal = Literal::from_scalars(shape.clone(), [scalar]);
        computation.add("", Op::Constant { literal }, shape.clone().into(), &[], metadata.clone())
    };
    let (op, operands) = match (relation.multiplier, relation.offset) {
        (1, 0) => return base,
        (1, offset) => (Op::Add {}, [base, constant(offset)]),
        (-1, offset) => (Op::Subtract {}, [constant(offset), base]),
        (multiplier, offset) => {
            let operands = [base, constant(multiplier)];
            let offset = (offset != 0).then(|| constant(offset));
            let shape = Shape::from(shape.clone());
            let product = computation.add("", Op::Multiply {}, shape.clone(), &operands, metadata.clone());
            let Some(offset) = offset else { return product };
            (Op::Add {}, [product, offset])
        }
    };
    computation.add("", op, shape.into(), &operands, metadata)
}
