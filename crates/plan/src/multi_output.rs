//! Several results in one loop nest: elements, slice updates, and reductions over columns.

use crate::collapse::{self, Follows};
use crate::fusion::{Fusion, Position};
use crate::in_place::reads;
use crate::kernel_plan::KernelPlan;
use crate::loops::{self, LoopPlan};
use crate::reduction::reduce;
use crate::tasks::{self, Work};
use hlo::{ComputationId, InstructionId, Op, is_associative};
use shape::Shape;
use std::collections::BTreeSet;
use std::fmt;
use support::{Error, Result};
use target::Target;

/// Plan of a body with several results. All of them are computed from values over one space of
/// elements: apart from dimensions of size 1, their dimensions are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiOutputPlan {
    /// The sizes of the space.
    pub sizes: Vec<i64>,
    /// True for each dimension of the space that the reductions among the results reduce; all false
    /// without reductions. The innermost dimension is never reduced.
    pub is_reduced: Vec<bool>,
    /// The loops over the space.
    pub nest: LoopPlan,
    /// Number of column vectors reduced at once.
    pub column_vectors: i64,
    /// Results that replace a slice of an operand: (index of the leaf, index of the operand).
    pub updates: Vec<(usize, usize)>,
    /// Number of results.
    pub results: usize,
}

/// A value that the kernel computes for each element of the space, and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Index of the result's leaf.
    pub leaf: usize,
    /// The instruction whose elements are stored or reduced.
    pub value: InstructionId,
    /// Steps from an element of the value to its place in the result, in order.
    pub path: Vec<Placement>,
    /// The reduction of the elements, if they are reduced.
    pub reduction: Option<OutputReduction>,
}

/// A step from the place of an element to its place in a larger array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Adds or drops dimensions of size 1.
    Reshape(InstructionId),
    /// The array is a part of a concatenation, at this offset along this dimension.
    Part(InstructionId, usize, i64),
    /// The array is the slice that an update writes at its start indices.
    Update(InstructionId),
}

/// A reduction among the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputReduction {
    /// The reduce instruction.
    pub instruction: InstructionId,
    /// Its initial value, a scalar.
    pub initial: InstructionId,
    /// The computation that combines two elements.
    pub to_apply: ComputationId,
}

/// Upper bound of the outputs of one body, because hostile graphs could nest concatenations.
const MAX_OUTPUTS: usize = 256;

/// The values of a body whose root is a tuple, in order of leaves.
pub fn outputs(fusion: &Fusion<'_>) -> Result<Vec<Output>> {
    let mut outputs = Vec::new();
    for (leaf, &id) in fusion.body[fusion.root].operands().iter().enumerate() {
        if fusion.body[id].shape().as_array().is_none() {
            return Err(Error::unsupported("nested tuple in a kernel's results"));
        }
        if let (Op::Reduce { to_apply, .. }, &[value, initial]) =
            (fusion.body[id].op(), fusion.body[id].operands())
        {
            let reduction = Some(OutputReduction { instruction: id, initial, to_apply: *to_apply });
            outputs.push(Output { leaf, value, path: Vec::new(), reduction });
            continue;
        }
        let mut pending = vec![(id, Vec::new())];
        while let Some((value, path)) = pending.pop() {
            if outputs.len() + pending.len() > MAX_OUTPUTS {
                return Err(Error::unsupported("expected at most 256 parts of results in one kernel"));
            }
            place(fusion, leaf, value, path, &mut pending, &mut outputs);
        }
    }
    Ok(outputs)
}

/// Follows one step from a result upstream to its values.
fn place(
    fusion: &Fusion<'_>,
    leaf: usize,
    value: InstructionId,
    path: Vec<Placement>,
    pending: &mut Vec<(InstructionId, Vec<Placement>)>,
    outputs: &mut Vec<Output>,
) {
    let before = |step: Placement| -> Vec<Placement> { std::iter::once(step).chain(path.clone()).collect() };
    let (op, operands) = (fusion.body[value].op(), fusion.body[value].operands());
    let is_inside = fusion.position(value) == Position::Inside;
    match op {
        Op::DynamicUpdateSlice {} if is_inside && path.is_empty() => {
            pending.push((operands[1], before(Placement::Update(value))));
        }
        Op::Reshape {} | Op::Bitcast {} if is_inside && wide(fusion, value) == wide(fusion, operands[0]) => {
            pending.push((operands[0], before(Placement::Reshape(value))));
        }
        Op::Concatenate { dimension } if is_inside => {
            let mut first = 0;
            let mut parts = Vec::new();
            for &operand in operands {
                parts.push((operand, before(Placement::Part(value, *dimension, first))));
                first += fusion.body[operand].shape().as_array().map_or(0, |s| s.size(*dimension));
            }
            pending.extend(parts.into_iter().rev());
        }
        _ => outputs.push(Output { leaf, value, path, reduction: None }),
    }
}

/// The sizes of an array's dimensions, without those of size 1.
fn wide(fusion: &Fusion<'_>, id: InstructionId) -> Option<Vec<i64>> {
    let shape = fusion.body[id].shape().as_array()?;
    Some(shape.sizes().into_iter().filter(|&size| size != 1).collect())
}

/// Plans a body whose root is a tuple.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<KernelPlan<MultiOutputPlan>> {
    let outputs = outputs(fusion)?;
    let space = |output: &Output| wide(fusion, output.value);
    let sizes =
        outputs.first().and_then(space).ok_or_else(|| Error::unsupported("kernel without results"))?;
    if outputs.iter().any(|output| space(output).as_ref() != Some(&sizes)) {
        return Err(Error::unsupported("results of different sizes in one loop nest"));
    }
    let is_elsewhere = |output: &&Output| match output.path.last() {
        Some(Placement::Update(id)) => fusion.position(fusion.body[*id].operands()[0]) == Position::Inside,
        _ => false,
    };
    if outputs.iter().any(|output| is_elsewhere(&output)) {
        return Err(Error::unsupported("slice update of an array that the same kernel computes"));
    }
    let structure = structure(fusion, &outputs);
    for id in fusion.instructions().into_iter().filter(|id| !structure.contains(id)) {
        loops::check_fusible(fusion.body[id].op())?;
    }
    let is_reduced = reduced_dimensions(fusion, &outputs, sizes.len())?;
    let starts = outputs.iter().map(|output| (output.value, follows(fusion, output.value))).collect();
    let lies_together = |outer: usize, inner: usize| {
        is_reduced[outer] == is_reduced[inner]
            && outputs.iter().all(|output| keeps_together(fusion, output, outer, inner, &sizes))
    };
    let loops = collapse::nest_of(fusion, starts, &sizes, lies_together)?.loops;
    let lanes = loops::lanes(fusion, target).max(loops::lanes_of_parts(fusion, target));
    let lanes = loops::largest_fitting(lanes, loops.last().map_or(1, |l| l.extent));
    let reductions = outputs.iter().filter(|output| output.reduction.is_some()).count() as i64;
    let extent = loops.last().map_or(1, |l| l.extent);
    let column_vectors = match reductions {
        0 => 1,
        _ => (extent / i64::from(lanes)).clamp(1, (reduce::COLUMN_VECTORS / reductions).max(1)),
    };
    let nest = LoopPlan { lanes, loops, transposed: None, is_flat: false, cuts: Vec::new() };
    let updates = updates(fusion, &outputs);
    let results = fusion.body[fusion.root].operands().len();
    let mut plan = MultiOutputPlan { sizes, is_reduced, nest, column_vectors, updates, results };
    plan.nest.cuts = plan.cuts(fusion, target);
    let tasks = tasks::count(&plan.nest.cuts);
    // A last block of columns that overlaps the previous one would read elements already
    // overwritten.
    let is_read_again = reductions > 0 && extent % i64::from(lanes) != 0;
    let leaves_may_overwrite = if is_read_again { Vec::new() } else { overwritable(fusion, &outputs, &plan) };
    Ok(KernelPlan { tasks, leaves_may_overwrite, ..KernelPlan::new(plan) })
}

impl MultiOutputPlan {
    /// Number of whole steps of each loop. The last step also includes the remainder.
    pub fn steps(&self) -> Vec<i64> {
        let mut steps = self.nest.steps();
        if let Some(last) = steps.last_mut() {
            *last /= self.column_vectors;
        }
        steps
    }

    /// True if the results include reductions.
    pub fn reduces(&self) -> bool {
        self.is_reduced.contains(&true)
    }

    /// Number of parts into which each loop is divided. A slice update is one task, because the
    /// operand may have to be copied before it.
    fn cuts(&self, fusion: &Fusion<'_>, target: &Target) -> Vec<i64> {
        let elements: i64 = self.sizes.iter().product();
        let is_cut = self.updates.is_empty() && elements > 0;
        let tasks = if is_cut { Work::of_elements(fusion, elements).tasks(target) } else { 1 };
        let loops = self.nest.loops.iter().zip(self.steps());
        let units =
            |(l, steps): (&crate::collapse::Loop, i64)| if self.is_reduced[l.dimension] { 1 } else { steps };
        tasks::cut(tasks, &loops.map(units).collect::<Vec<_>>())
    }
}

/// The instructions that only place values: those between values and results, and the root.
fn structure(fusion: &Fusion<'_>, outputs: &[Output]) -> BTreeSet<InstructionId> {
    let mut structure = BTreeSet::from([fusion.root]);
    for output in outputs {
        structure.extend(output.reduction.map(|reduction| reduction.instruction));
        structure.extend(output.path.iter().map(|step| match step {
            Placement::Reshape(id) | Placement::Part(id, ..) | Placement::Update(id) => *id,
        }));
    }
    structure
}

/// Dimensions of the space that the reductions reduce: the same for all of them, and never the
/// innermost one.
fn reduced_dimensions(fusion: &Fusion<'_>, outputs: &[Output], rank: usize) -> Result<Vec<bool>> {
    let mut common: Option<Vec<bool>> = None;
    for output in outputs {
        let Some(reduction) = &output.reduction else { continue };
        let Op::Reduce { dimensions, .. } = fusion.body[reduction.instruction].op() else { continue };
        let sizes = fusion.body[output.value].shape().expect_array().sizes();
        let is_reduced: Vec<bool> =
            (0..sizes.len()).filter(|&d| sizes[d] != 1).map(|d| dimensions.contains(&d)).collect();
        let is_known = is_associative(&fusion.module[reduction.to_apply]);
        let is_column = is_reduced.last() == Some(&false) && is_reduced.contains(&true);
        if !is_known || !is_column || common.as_ref().is_some_and(|c| *c != is_reduced) {
            return Err(Error::unsupported("reductions of several kinds in one loop nest"));
        }
        common = Some(is_reduced);
    }
    Ok(common.unwrap_or_else(|| vec![false; rank]))
}

/// For each dimension of an instruction, the dimension of the space that it follows.
fn follows(fusion: &Fusion<'_>, id: InstructionId) -> Follows {
    let mut next = 0;
    let sizes = fusion.body[id].shape().expect_array().sizes();
    let mut number = |size: i64| (size != 1).then(|| (next, next += 1).0);
    sizes.into_iter().map(&mut number).collect()
}

/// True if two adjacent dimensions of the space have the same relative placement in a result as in
/// the value.
fn keeps_together(fusion: &Fusion<'_>, output: &Output, outer: usize, inner: usize, sizes: &[i64]) -> bool {
    if output.reduction.is_some() {
        return true;
    }
    let mut position = follows(fusion, output.value);
    output.path.iter().all(|step| match step {
        Placement::Reshape(id) => {
            let mut remaining = position.iter().flatten().copied();
            let sizes = fusion.body[*id].shape().expect_array().sizes();
            position = sizes.iter().map(|&size| if size == 1 { None } else { remaining.next() }).collect();
            true
        }
        Placement::Part(id, ..) | Placement::Update(id) => {
            let strides = shape::index::row_major_strides(&fusion.body[*id].shape().expect_array().sizes());
            let stride =
                |dimension: usize| position.iter().position(|&d| d == Some(dimension)).map(|d| strides[d]);
            match (stride(outer), stride(inner)) {
                (Some(o), Some(i)) => i.checked_mul(sizes[inner]) == Some(o),
                _ => false,
            }
        }
    })
}

/// Results that replace a slice of an operand.
fn updates(fusion: &Fusion<'_>, outputs: &[Output]) -> Vec<(usize, usize)> {
    let operand = |output: &Output| match output.path.last() {
        Some(Placement::Update(id)) => match fusion.position(fusion.body[*id].operands()[0]) {
            Position::Operand(number) => Some((output.leaf, number)),
            Position::Inside => None,
        },
        _ => None,
    };
    let mut updates: Vec<(usize, usize)> = outputs.iter().filter_map(operand).collect();
    updates.dedup();
    updates
}

/// Pairs of a leaf and an operand that it may overwrite. The kernel computes all results of an
/// element, then stores them. An operand may therefore be replaced if every result needs only the
/// element that is replaced.
fn overwritable(fusion: &Fusion<'_>, outputs: &[Output], plan: &MultiOutputPlan) -> Vec<(usize, usize)> {
    let elements: i64 = plan.sizes.iter().product();
    let (mut same, mut other) = (BTreeSet::new(), BTreeSet::new());
    for output in outputs {
        let accesses = reads(fusion, output.value, &[]);
        same.extend(accesses.same);
        other.extend(accesses.other);
        if let Some(Placement::Update(id)) = output.path.last() {
            for &start in &fusion.body[*id].operands()[2..] {
                let accesses = reads(fusion, start, &[]);
                other.extend(accesses.same.into_iter().chain(accesses.other));
            }
        }
    }
    let ids = |numbers: &BTreeSet<usize>| -> BTreeSet<InstructionId> {
        numbers.iter().map(|&k| fusion.operand(k)).collect()
    };
    let (same_ids, other_ids) = (ids(&same), ids(&other));
    let mut pairs = Vec::new();
    for (leaf, &id) in fusion.body[fusion.root].operands().iter().enumerate() {
        if let Some(&pair) = plan.updates.iter().find(|(updated, _)| *updated == leaf) {
            let of_leaf: Vec<&Output> = outputs.iter().filter(|output| output.leaf == leaf).collect();
            if replaces_what_is_read(fusion, outputs, &of_leaf, pair.1) {
                pairs.push(pair);
            }
            continue;
        }
        let is_plain = |output: &Output| {
            output.reduction.is_none() && output.path.iter().all(|step| matches!(step, Placement::Reshape(_)))
        };
        if !outputs.iter().filter(|output| output.leaf == leaf).all(is_plain) {
            continue;
        }
        let Shape::Array(result) = fusion.body[id].shape() else { continue };
        for &k in &same {
            let operand = fusion.operand(k);
            let shape = fusion.caller[operand].shape().as_array();
            let fits = shape.is_some_and(|s| {
                s.element_count() == elements && s.element_type.byte_size() == result.element_type.byte_size()
            });
            if fits && same_ids.contains(&operand) && !other_ids.contains(&operand) {
                pairs.push((leaf, k));
            }
        }
    }
    pairs
}

/// True if, for each element of the space, the only element read from an operand is the one that
/// the update replaces there.
fn replaces_what_is_read(
    fusion: &Fusion<'_>,
    outputs: &[Output],
    of_leaf: &[&Output],
    operand: usize,
) -> bool {
    let starts = match of_leaf.first().and_then(|output| output.path.last()) {
        Some(Placement::Update(id)) => &fusion.body[*id].operands()[2..],
        _ => return false,
    };
    let in_parts = of_leaf.iter().any(|o| o.path.iter().any(|s| matches!(s, Placement::Part(..))));
    let id = fusion.operand(operand);
    let is_it = |&k: &usize| fusion.operand(k) == id;
    outputs.iter().all(|output| {
        let accesses = reads(fusion, output.value, if in_parts { &[] } else { starts });
        let of_starts = match output.path.last() {
            Some(Placement::Update(update)) => &fusion.body[*update].operands()[2..],
            _ => &[],
        };
        let in_starts = of_starts.iter().any(|&start| {
            let accesses = reads(fusion, start, &[]);
            accesses.same.iter().chain(&accesses.other).any(&is_it)
        });
        !in_starts && !accesses.same.iter().chain(&accesses.other).any(&is_it)
    })
}

impl fmt::Display for MultiOutputPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.reduces() { "column reductions" } else { "results" };
        write!(f, "one loop nest for {} {kind}, {} lanes", self.results, self.nest.lanes)?;
        if self.reduces() { write!(f, ", {} vectors", self.column_vectors) } else { Ok(()) }
    }
}
