//! Counters that move alike become one.

use super::{Loop, scalars};
use crate::pass::{Changed, Pass};
use hlo::analysis;
use hlo::{ComputationId, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, Shape};
use support::Result;

/// Computes induction variables from one of their type: `j => m * i + b` in condition and body and after the loop, where j
/// starts as b more than m times i, and moves m times as far. Exact for every input, since integers wrap alike.
///
/// The ones that nobody reads any more are removed by `simplify-while-loop`.
pub struct WhileLoopInductionVariableUnification;

impl Pass for WhileLoopInductionVariableUnification {
    fn name(&self) -> &'static str {
        "while-loop-induction-variable-unification"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(found) = Loop::at(module, site) else { continue };
            let relations = relations(module, found);
            let is_read = |relation: &&Relation| is_read(module, found, relation.element);
            let relations: Vec<Relation> = relations.iter().filter(is_read).copied().collect();
            if relations.is_empty() {
                continue;
            }
            let found = found.exclusive(module);
            relations.into_iter().for_each(|relation| apply(module, found, relation));
            changed = true;
        }
        Ok(changed.into())
    }
}

/// `element = multiplier * base + offset` before every iteration.
#[derive(Clone, Copy, Debug)]
struct Relation {
    element: usize,
    base: usize,
    multiplier: i64,
    offset: i64,
}

/// An element of the state that each iteration adds a constant to.
#[derive(Clone, Copy)]
struct Variable {
    element: usize,
    step: i64,
}

fn relations(module: &Module, found: Loop) -> Vec<Relation> {
    let steps = analysis::induction_variables(module, &module[found.body]);
    let mut relations: Vec<Relation> = Vec::new();
    // Those with the smallest steps are bases.
    let mut variables: Vec<Variable> =
        steps.into_iter().map(|(element, step)| Variable { element, step }).collect();
    variables.sort_by_key(|variable| (variable.step.unsigned_abs(), variable.element));
    let mut bases: Vec<Variable> = Vec::new();
    for variable in variables {
        let related = bases.iter().find_map(|&base| relation(module, found, variable, base));
        match related {
            Some(relation) => relations.push(relation),
            None => bases.push(variable),
        }
    }
    relations
}

fn relation(module: &Module, found: Loop, variable: Variable, base: Variable) -> Option<Relation> {
    let Variable { element, step } = variable;
    let Variable { element: base, step: base_step } = base;
    let shape = found.array(module, element)?;
    if shape != found.array(module, base)? || step.checked_rem(base_step)? != 0 {
        return None;
    }
    let multiplier = step.checked_div(base_step)?;
    if multiplier == 1 && found.start(module, element) == found.start(module, base) {
        return Some(Relation { element, base, multiplier, offset: 0 });
    }
    let start = found.initial_range(module, element).value()?;
    let base_start = found.initial_range(module, base).value()?;
    let offset = start.checked_sub(multiplier.checked_mul(base_start)?)?;
    // Constants of the type, so that they can be written down.
    scalars::integer(shape, offset.into())?;
    scalars::integer(shape, multiplier.into())?;
    Some(Relation { element, base, multiplier, offset })
}

/// Whether anything but the element's own next value, and other relations, reads it.
fn is_read(module: &Module, found: Loop, element: usize) -> bool {
    let condition = &module[found.condition];
    let body = &module[found.body];
    let next = found.next(module, element);
    let reads = |id: ComputationId| {
        let computation = &module[id];
        Loop::reads(computation, computation.parameters()[0], element)
    };
    let is_used = |read: InstructionId| !condition[read].users().is_empty() || condition.root() == read;
    let only_counts = |user: InstructionId| user == next && body[next].users() == [body.root()];
    reads(found.condition).into_iter().any(is_used)
        || reads(found.body).into_iter().any(|read| body[read].users().iter().any(|&user| !only_counts(user)))
        || !body[next].users().iter().all(|&user| user == body.root())
        || {
            let caller = &module[found.caller];
            let is_used = |read: InstructionId| !caller[read].users().is_empty() || caller.root() == read;
            Loop::reads(caller, found.id, element).into_iter().any(is_used)
        }
}

fn apply(module: &mut Module, found: Loop, relation: Relation) {
    let Relation { element, base, .. } = relation;
    for id in [found.condition, found.body] {
        let parameter = module[id].parameters()[0];
        let reads = Loop::reads(&module[id], parameter, element);
        if reads.is_empty() {
            continue;
        }
        let base = found.read(module, id, base);
        let value = scaled(module, id, base, relation);
        for read in reads {
            module.computation_mut(id).replace_all_uses(read, value);
        }
    }
    // Its own next value counts on, for the time being, from the element that it had.
    let caller = module[found.caller].post_order();
    let reads = Loop::reads(&module[found.caller], found.id, element);
    let reads: Vec<InstructionId> = reads.into_iter().filter(|read| caller.contains(read)).collect();
    if !reads.is_empty() {
        let base = found.after(module, base);
        let value = scaled(module, found.caller, base, relation);
        for read in reads {
            module.computation_mut(found.caller).replace_all_uses(read, value);
        }
    }
}

/// `multiplier * base + offset`.
fn scaled(module: &mut Module, id: ComputationId, base: InstructionId, relation: Relation) -> InstructionId {
    let computation = module.computation_mut(id);
    let shape: ArrayShape = computation[base].shape().expect_array().clone();
    let metadata = computation[base].metadata().clone();
    let mut constant = |number: i64| {
        let scalar = scalars::integer(&shape, number.into()).expect("checked with the relation");
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
