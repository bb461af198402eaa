//! Conditionals: `If` and `Case` become HLO's `conditional`.
//!
//! Each branch is a computation. It takes a tuple of the outer values that its function reads,
//! without constants. It returns the function's results, then the new value of each variable that
//! any branch writes.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_values};
use crate::values::value::Value;
use crate::values::value_type::{self, ValueType, rebuild};
use bounded::{Scope, VariableId, join_ranges, list};
use hlo::analysis::Range;
use hlo::{InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::Result;
use tf::Function;

pub(crate) const RULES: &[Rule] = &[
    rule_values("If", if_op).types("Tcond", ALL).effect(),
    rule_values("StatelessIf", if_op).types("Tcond", ALL),
    rule_values("XlaIf", if_op).effect(),
    rule_values("Case", case).effect(),
    rule_values("StatelessCase", case),
];

/// Maximum number of elements of results to compare with those of the other branches.
const MAX_CONSTANT_ELEMENTS: i64 = 64;

/// `If(cond, inputs...)`: a scalar that is not 0, or an array that is not empty, selects
/// `then_branch`.
fn if_op(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let condition = cx.input(0)?;
    let condition = cx.truth(condition)?;
    let then_branch = cx.function(cx.attributes().func("then_branch")?.0)?;
    let else_branch = cx.function(cx.attributes().func("else_branch")?.0)?;
    if let Some(known) = known_selector(cx, condition) {
        return inline_branch(cx, if known == 1 { then_branch } else { else_branch });
    }
    conditional(cx, condition, &[then_branch, else_branch])
}

/// `Case(index, inputs...)`: an index out of range selects the last branch.
fn case(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let index = cx.input(0)?;
    let sizes = cx.sizes(index);
    cx.check(sizes.is_empty(), || format!("branch_index: expected a scalar, got shape {}", list(&sizes)))?;
    let names: Vec<String> = cx.attributes().funcs("branches")?.iter().map(|f| f.0.to_owned()).collect();
    let branches: Vec<&Function> = names.iter().map(|name| cx.function(name)).collect::<Result<_>>()?;
    let Some(&last) = branches.last() else {
        return Err(cx.invalid("the node has no branches"));
    };
    if let Some(known) = known_selector(cx, index) {
        let chosen = usize::try_from(known).ok().and_then(|index| branches.get(index)).copied();
        return inline_branch(cx, chosen.unwrap_or(last));
    }
    if branches.len() == 1 {
        return inline_branch(cx, last);
    }
    let index = cx.convert(index, PrimitiveType::S32)?;
    conditional(cx, index, &branches)
}

/// Returns the value of a scalar that selects a branch, if constants or the ranges of named
/// dimensions decide it.
fn known_selector(cx: &mut NodeContext<'_, '_>, id: InstructionId) -> Option<i64> {
    match cx.fold(id) {
        Some(known) => known.scalar_at(0).as_i64(),
        None if cx.has_named_sizes() => cx.known_integer(id, 0).or_else(|| cx.range(id).value()),
        None => None,
    }
}

/// Translates the branch that is known to be selected, in place of the conditional.
fn inline_branch<'p>(cx: &mut NodeContext<'_, 'p>, function: &'p Function) -> Result<Vec<Value>> {
    let arguments = cx.inputs()[1..].to_vec();
    cx.translate_function(function, &arguments)
}

/// A translated branch whose computation is still open.
struct Branch {
    scope: Scope,
    results: Vec<Value>,
    types: Vec<ValueType>,
    /// Ranges of the results. Only for integers.
    ranges: Vec<Range>,
    /// The results that are also known outside the branch.
    known: Vec<Option<Known>>,
}

/// A branch's result that is known outside the branch.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    /// A small constant.
    Constant(Literal),
    /// An instruction of the computation around the branch.
    Outer(InstructionId),
}

fn conditional<'p>(
    cx: &mut NodeContext<'_, 'p>,
    selector: InstructionId,
    functions: &[&'p Function],
) -> Result<Vec<Value>> {
    cx.count_branches(functions.len())?;
    let mut branches = Vec::new();
    let mut pushes = cx.pushes();
    let before = pushes.clone();
    for (index, &function) in functions.iter().enumerate() {
        // Only one branch runs, so only the maximum number of pushes counts.
        cx.set_pushes(&before);
        branches.push(translate_branch(cx, function, index)?);
        pushes = cx.most_pushes(&pushes);
    }
    cx.set_pushes(&pushes);
    let mut written: BTreeMap<VariableId, String> = BTreeMap::new();
    for branch in &branches {
        for (&variable, writer) in branch.scope.written() {
            written.entry(variable).or_insert_with(|| writer.clone());
        }
    }
    let types = merged_types(cx, &branches)?;
    let ranges = merged_ranges(&branches);
    let known: Vec<Vec<Option<Known>>> =
        branches.iter_mut().map(|branch| std::mem::take(&mut branch.known)).collect();
    let mut operands = vec![selector];
    let mut branch_computations = Vec::new();
    for branch in branches {
        let (tuple, computation) = finish_branch(cx, branch, &types, &written)?;
        operands.push(tuple);
        branch_computations.push(computation);
    }
    let result = cx.op(Op::Conditional { branch_computations }, &operands)?;
    let mut index = 0;
    let mut next = |cx: &mut NodeContext<'_, 'p>| {
        index += 1;
        cx.tuple_element(result, index - 1)
    };
    let mut values = Vec::new();
    for (k, (value_type, range)) in types.iter().zip(ranges).enumerate() {
        let mut leaves: Vec<InstructionId> =
            value_type.leaves().iter().map(|_| next(cx)).collect::<Result<_>>()?;
        if let ([leaf], true) = (leaves.as_slice(), range != Range::UNKNOWN) {
            cx.note_range(*leaf, range);
        }
        if let [leaf] = leaves.as_mut_slice() {
            let known: Vec<Option<&Known>> = known.iter().map(|known| known[k].as_ref()).collect();
            *leaf = without_branches(cx, *leaf, selector, &known)?;
        }
        values.push(rebuild(cx, value_type, &leaves));
    }
    for (variable, writer) in written {
        let value = next(cx)?;
        cx.write_variable(variable, value, &writer);
    }
    Ok(values)
}

/// Returns what is known outside the branch about one of its results.
fn known_outside(cx: &mut NodeContext<'_, '_>, result: Value) -> Option<Known> {
    let Value::Array(id) = result else { return None };
    if cx.array(id).element_count() <= MAX_CONSTANT_ELEMENTS
        && let Some(literal) = cx.fold(id)
    {
        return Some(Known::Constant(literal));
    }
    let scope = cx.scope_ref();
    let (captures, instruction) = (scope.captures()?, &scope.computation()[id]);
    match *instruction.op() {
        Op::GetTupleElement { index } if instruction.operands()[0] == captures.parameter() => {
            captures.outer().get(index).map(|&outer| Known::Outer(outer))
        }
        _ => None,
    }
}

/// Simplifies a result that does not need the conditional: a value that all branches return, or a
/// scalar that the selector chooses from outer values. Loop conditions often have this form, and
/// loop bounds follow from it.
fn without_branches(
    cx: &mut NodeContext<'_, '_>,
    result: InstructionId,
    selector: InstructionId,
    known: &[Option<&Known>],
) -> Result<InstructionId> {
    let outside = |cx: &mut NodeContext<'_, '_>, known: &Known| match known {
        Known::Constant(literal) => cx.literal(literal.clone()),
        Known::Outer(id) => *id,
    };
    if let [Some(first), others @ ..] = known
        && others.iter().all(|other| *other == Some(*first))
    {
        return Ok(outside(cx, first));
    }
    let [then_value, else_value] = known else { return Ok(result) };
    if cx.rank(result) != 0 || cx.element_type(selector) != PrimitiveType::Pred {
        return Ok(result);
    }
    if let (Some(then_value), Some(else_value)) = (then_value, else_value) {
        let (then_value, else_value) = (outside(cx, then_value), outside(cx, else_value));
        return cx.select(selector, then_value, else_value);
    }
    // A branch that returns the selector returns the value that selects it.
    let truth = |known: &Option<&Known>, if_selected: bool| match known {
        Some(Known::Outer(id)) if *id == selector => Some(if_selected),
        Some(Known::Constant(literal)) => match literal.scalar_at(0) {
            Scalar::Pred(value) => Some(value),
            _ => None,
        },
        _ => None,
    };
    match (truth(then_value, true), truth(else_value, false)) {
        (_, Some(false)) => cx.op(Op::And {}, &[selector, result]),
        (Some(true), _) => cx.op(Op::Or {}, &[selector, result]),
        (Some(false), _) => {
            let other = cx.op(Op::Not {}, &[selector])?;
            cx.op(Op::And {}, &[other, result])
        }
        (_, Some(true)) => {
            let other = cx.op(Op::Not {}, &[selector])?;
            cx.op(Op::Or {}, &[other, result])
        }
        (None, None) => Ok(result),
    }
}

/// Translates a function into a computation of its own.
fn translate_branch<'p>(
    cx: &mut NodeContext<'_, 'p>,
    function: &'p Function,
    index: usize,
) -> Result<Branch> {
    let inputs = &cx.inputs()[1..];
    cx.check(inputs.len() == function.arguments.len(), || {
        format!(
            "branch '{}' expects {} arguments, but the node has {} inputs",
            function.name,
            function.arguments.len(),
            inputs.len()
        )
    })?;
    let needed = cx.needed_nodes(function);
    let inner = cx.branch_scope(&function.name, index);
    let inputs = inputs.to_vec();
    let (scope, (results, types, ranges, known)) = cx.within(inner, |cx| {
        let arguments: Vec<Value> = inputs
            .iter()
            .zip(&function.arguments)
            .map(|(&value, argument)| cx.bring_in(value, needed.contains(argument)))
            .collect();
        let mut results = cx.translate_function(function, &arguments)?;
        let (mut types, mut ranges, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for result in &mut results {
            // A reference that a branch returns is read in the branch.
            *result = cx.dereferenced(*result);
            types.push(value_type::value_type(cx, *result));
            known.push(known_outside(cx, *result));
            ranges.push(match *result {
                Value::Array(id) if is_integer(cx, id) => cx.range(id),
                _ => Range::UNKNOWN,
            });
        }
        Ok((results, types, ranges, known))
    })?;
    Ok(Branch { scope, results, types, ranges, known })
}

fn is_integer(cx: &NodeContext<'_, '_>, id: InstructionId) -> bool {
    let array = cx.scope_ref().shape(id).as_array();
    array.is_some_and(|array| array.rank() == 0 && array.element_type.is_signed_integer())
}

/// For each result, the least type that includes the results of all branches.
fn merged_types(cx: &NodeContext<'_, '_>, branches: &[Branch]) -> Result<Vec<ValueType>> {
    let mut merged = branches[0].types.clone();
    for branch in &branches[1..] {
        cx.check(branch.types.len() == merged.len(), || {
            "the branches return different numbers of values".to_owned()
        })?;
        for (k, (all, one)) in merged.iter_mut().zip(&branch.types).enumerate() {
            *all = match (&*all, one) {
                (ValueType::Array(a), ValueType::Array(b)) if is_same_element(a, b) => {
                    ValueType::Array(if a.rank() < b.rank() { b.clone() } else { a.clone() })
                }
                (ValueType::Array(a), ValueType::Array(b)) if a != b && a.is_static() && b.is_static() => {
                    return Err(cx.invalid(format!(
                        "the branches return different shapes: result {k} is {a} in one and {b} in another"
                    )));
                }
                (a, b) => value_type::join(a, b).map_err(|error| error.context(format!("result {k}")))?,
            };
        }
    }
    Ok(merged)
}

/// True for arrays of one element whose ranks differ, as `If` of ONNX permits. The result has the
/// larger rank.
fn is_same_element(a: &ArrayShape, b: &ArrayShape) -> bool {
    let is_one = |shape: &ArrayShape| shape.is_static() && shape.element_count() == 1;
    a.element_type == b.element_type && is_one(a) && is_one(b)
}

/// For each result, the range that holds regardless of the branch.
fn merged_ranges(branches: &[Branch]) -> Vec<Range> {
    let mut merged = branches[0].ranges.clone();
    for branch in &branches[1..] {
        for (all, &one) in merged.iter_mut().zip(&branch.ranges) {
            *all = join_ranges(*all, one);
        }
    }
    merged
}

/// Closes a branch. Returns the tuple of its captured values, and its computation.
fn finish_branch(
    cx: &mut NodeContext<'_, '_>,
    branch: Branch,
    types: &[ValueType],
    written: &BTreeMap<VariableId, String>,
) -> Result<(InstructionId, hlo::ComputationId)> {
    let Branch { scope, results, .. } = branch;
    let (scope, elements) = cx.within(scope, |cx| {
        let mut elements = Vec::new();
        for (mut value, value_type) in results.into_iter().zip(types) {
            if let (Value::Array(id), ValueType::Array(shape)) = (value, value_type)
                && is_same_element(&cx.array(id), shape)
            {
                value = Value::Array(cx.reshape(id, &shape.sizes())?);
            }
            let value = value_type::coerce(cx, value, value_type)?;
            elements.extend(value_type::leaves_of(cx, value, value_type));
        }
        for &variable in written.keys() {
            elements.push(cx.read_variable(variable));
        }
        Ok(elements)
    })?;
    let (computation, captured) = scope.finish(&elements);
    let computation = cx.add_computation(computation);
    let tuple = cx.op(Op::Tuple {}, &captured)?;
    Ok((tuple, computation))
}
