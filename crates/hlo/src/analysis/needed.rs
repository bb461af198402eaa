//! The elements that are read of arrays with named dimensions.
//!
//! An array with a named dimension has the size of the largest run. Most of its elements are not
//! read in a smaller one: elements beyond the true size of a result are not, and masks hide the
//! rest of an array from sums. The analysis follows these facts from the results and masks back to
//! the operands, also through loops and branches. Kernels then compute only what is read.

mod control;
mod extent;
mod masks;
mod reversals;
mod rules;
mod significant;
mod starts;

pub use extent::{Extent, linear_extent};

use crate::{Computation, ComputationId, Instruction, InstructionId, Module, Op};
use extent::{Need, joined};
use masks::Masks;
use rules::operand_needs;
use shape::Shape;
use std::collections::BTreeMap;

/// The elements of the arrays of a module that are read.
#[derive(Clone, Debug, Default)]
pub struct NeededSizes {
    arrays: BTreeMap<(ComputationId, InstructionId), Vec<Option<Extent>>>,
    summands: BTreeMap<(ComputationId, InstructionId), Extent>,
    significant: BTreeMap<(ComputationId, InstructionId), Vec<Option<Extent>>>,
}

impl NeededSizes {
    /// Analyzes a module with size parameters: the entry, and the fusions, loops, and branches that
    /// it calls. A computation with several callers is read completely.
    ///
    /// `limits_summands` says whether a dot can leave out the summands beyond a size that is known
    /// at run time. It reads no element of its operands there.
    pub fn of(module: &Module, limits_summands: &dyn Fn(ComputationId, InstructionId) -> bool) -> Self {
        if module.size_parameters().is_empty() {
            return Self::default();
        }
        let mut analysis = Analysis {
            module,
            masks: Masks::of(module),
            limits_summands,
            needs: BTreeMap::new(),
            states: BTreeMap::new(),
            nesting: 0,
            visits: 0,
            is_settled: false,
            reads_loops_completely: false,
            found: Self::default(),
        };
        while !analysis.is_settled {
            analysis.visits += 1;
            analysis.reads_loops_completely = analysis.visits > control::MAX_VISITS;
            (analysis.is_settled, analysis.found) = (true, Self::default());
            analysis.needs.clear();
            analysis.entry();
        }
        analysis.found
    }

    /// Returns how many elements are read along each dimension of an array, or `None` if all of
    /// them may be. The sizes may be less than 0 or exceed the dimension's.
    pub fn array(&self, computation: ComputationId, id: InstructionId) -> Option<&[Option<Extent>]> {
        self.arrays.get(&(computation, id)).map(Vec::as_slice)
    }

    /// Returns, for each dimension of the array that an instruction walks along, the number of
    /// first elements beyond which elements do not change what is read of the result: the operand
    /// of a `reduce`, a `reduce-window`, a `sort`, or a `topk`, and the updates of a `scatter`.
    /// `None` if all may. Sorts, `topk`, and scatters then read nothing beyond.
    pub fn significant(&self, computation: ComputationId, id: InstructionId) -> Option<&[Option<Extent>]> {
        self.significant.get(&(computation, id)).map(Vec::as_slice)
    }

    /// Returns the number of summands of a dot that are not known to be 0, if it can leave out the
    /// others.
    pub fn summands(&self, computation: ComputationId, id: InstructionId) -> Option<Extent> {
        self.summands.get(&(computation, id)).copied()
    }
}

/// Returns how many elements of an instruction along each dimension are used for the elements of
/// another that are in these extents, even if a mask hides them there.
pub fn needed_for(
    computation: &Computation,
    result: InstructionId,
    extents: &[Option<Extent>],
    id: InstructionId,
) -> Option<Vec<Option<Extent>>> {
    let mut needs = BTreeMap::from([(result, vec![Some(extents.to_vec())])]);
    for at in computation.post_order().into_iter().rev() {
        if at == id {
            break;
        }
        let Some(need) = needs.get(&at).cloned() else { continue };
        for (&operand, more) in computation[at].operands().iter().zip(operand_needs(computation, at, &need)) {
            add(&mut needs, operand, computation[operand].shape().leaves().len(), &more);
        }
    }
    needs.remove(&id)?.into_iter().next().flatten()
}

/// Adds the reads of one more user to those of an instruction with this many leaves.
fn add<K: Ord>(needs: &mut BTreeMap<K, Vec<Need>>, key: K, leaves: usize, more: &[Need]) {
    let all = needs.entry(key).or_insert_with(|| vec![None; leaves]);
    for (one, more) in all.iter_mut().zip(more) {
        *one = joined(one.take(), more.clone());
    }
}

struct Analysis<'a> {
    module: &'a Module,
    masks: Masks<'a>,
    limits_summands: &'a dyn Fn(ComputationId, InstructionId) -> bool,
    /// For each leaf of an instruction, the elements that users read.
    needs: BTreeMap<(ComputationId, InstructionId), Vec<Need>>,
    /// For each leaf of the state of a loop, the elements that are read as far as is known so far.
    states: BTreeMap<(ComputationId, InstructionId), Vec<Need>>,
    /// Number of loops and branches around the computation that is visited.
    nesting: usize,
    /// Number of visits of the module, including the current one.
    visits: usize,
    /// True if no state of a loop has changed in this visit.
    is_settled: bool,
    /// True if loops and branches are not followed.
    reads_loops_completely: bool,
    found: NeededSizes,
}

impl Analysis<'_> {
    /// Begins with the results: elements beyond true sizes are not read.
    fn entry(&mut self) {
        let entry = self.module.entry();
        let computation = &self.module[entry];
        let root = computation.root();
        let bounded = self.module.bounded_dimensions();
        let whole = |id: InstructionId| all(computation[id].shape());
        if !matches!(computation[root].op(), Op::Tuple {}) {
            self.needs.insert((entry, root), whole(root));
            return self.visit(entry);
        }
        let elements = computation[root].operands();
        let results = elements.len() - bounded.len().min(elements.len());
        for (number, &element) in elements.iter().enumerate() {
            let mut need = whole(element);
            if let (true, [Some(extents)]) = (number < results, &mut need[..]) {
                for (place, dimension) in bounded.iter().enumerate() {
                    if dimension.result == number {
                        extents[dimension.dimension] = self.masks.size(entry, elements[results + place]);
                    }
                }
            }
            self.add(entry, element, &need);
        }
        self.visit(entry);
    }

    fn add(&mut self, at: ComputationId, id: InstructionId, more: &[Need]) {
        add(&mut self.needs, (at, id), self.module[at][id].shape().leaves().len(), more);
    }

    /// Visits the instructions of a computation, users before operands.
    fn visit(&mut self, at: ComputationId) {
        let computation = &self.module[at];
        let is_entry_tuple = |id| at == self.module.entry() && id == computation.root();
        for id in computation.post_order().into_iter().rev() {
            if is_entry_tuple(id) && matches!(computation[id].op(), Op::Tuple {}) {
                continue;
            }
            let known = self.needs.get(&(at, id)).cloned();
            let need = known.unwrap_or_else(|| vec![None; computation[id].shape().leaves().len()]);
            if need.iter().all(Option::is_none) && !runs(&computation[id]) {
                continue;
            }
            let extents = match (&need[..], computation[id].op()) {
                ([one], _) => one.clone(),
                // The leaves have the same sizes, but for the number of elements of `topk`.
                (leaves, Op::Sort { .. } | Op::TopK { .. } | Op::Scatter { .. }) => {
                    leaves.iter().cloned().reduce(joined).flatten()
                }
                _ => None,
            };
            if let Some(extents) = extents.filter(|extents| extents.iter().any(Option::is_some)) {
                self.found.arrays.insert((at, id), extents);
            }
            self.operands(at, id, &need);
        }
    }

    /// Adds what an instruction reads.
    fn operands(&mut self, at: ComputationId, id: InstructionId, need: &[Need]) {
        let computation = &self.module[at];
        let operands = computation[id].operands();
        match computation[id].op() {
            Op::Fusion { calls, .. } if self.masks.is_called_once(*calls) => {
                let callee = &self.module[*calls];
                self.needs.insert((*calls, callee.root()), need.to_vec());
                self.visit(*calls);
                for (&operand, &parameter) in operands.iter().zip(callee.parameters()) {
                    // A parameter that is not used is not read.
                    if let Some(more) = self.needs.get(&(*calls, parameter)).cloned() {
                        self.add(at, operand, &more);
                    }
                }
            }
            Op::While { condition, body } if self.follows(&[*condition, *body]) => {
                self.while_loop((at, id), [*condition, *body], need);
            }
            Op::Conditional { branch_computations } if self.follows(branch_computations) => {
                self.conditional((at, id), branch_computations, need);
            }
            Op::Select {} => {
                for (k, more) in operand_needs(computation, id, need).into_iter().enumerate() {
                    let more = match (k, &more[..]) {
                        (1 | 2, [Some(extents)]) => {
                            let shown = self.masks.of_predicate(at, operands[0], k == 1);
                            let extents =
                                extents.iter().zip(shown.into_iter().chain(std::iter::repeat(None)));
                            vec![Some(extents.map(|(&read, shown)| extent::least(read, shown)).collect())]
                        }
                        _ => more,
                    };
                    self.add(at, operands[k], &more);
                }
            }
            Op::Dot { dot_dimension_numbers: numbers } => {
                let mut needs = operand_needs(computation, id, need);
                if let (&[left], &[right]) =
                    (&numbers.lhs_contracting_dims[..], &numbers.rhs_contracting_dims[..])
                    && (self.limits_summands)(at, id)
                {
                    let zeros = (self.masks.zeros(at, operands[0]), self.masks.zeros(at, operands[1]));
                    let count = zeros.0.get(left).copied().flatten();
                    if let Some(count) = count.filter(|_| zeros.1.get(right).copied().flatten() == count) {
                        self.found.summands.insert((at, id), count);
                        for (need, dimension) in needs.iter_mut().zip([left, right]) {
                            if let [Some(extents)] = &mut need[..] {
                                extents[dimension] = Some(count);
                            }
                        }
                    }
                }
                for (&operand, more) in operands.iter().zip(needs) {
                    self.add(at, operand, &more);
                }
            }
            Op::DynamicSlice { dynamic_slice_sizes } => {
                let mut needs = operand_needs(computation, id, need);
                if let Some((array, extents)) = self.first_of_reverse(at, id, need) {
                    self.add(at, array, &[Some(extents)]);
                    needs[0] = vec![None];
                } else if let [Some(extents)] = &mut needs[0][..] {
                    for (d, &size) in dynamic_slice_sizes.iter().enumerate() {
                        let start = self.masks.start(at, operands[1 + d]);
                        extents[d] = extent::least(extents[d], start.and_then(|start| start.plus(size)));
                    }
                }
                for (&operand, more) in operands.iter().zip(needs) {
                    self.add(at, operand, &more);
                }
            }
            Op::Gather { gather_dimension_numbers: numbers, slice_sizes, .. } => {
                let mut needs = operand_needs(computation, id, need);
                // Indices along one dimension have limits.
                if let (&[d], [Some(extents)]) = (&numbers.start_index_map[..], &mut needs[0][..]) {
                    let start = self.masks.start(at, operands[1]);
                    extents[d] =
                        extent::least(extents[d], start.and_then(|start| start.plus(slice_sizes[d])));
                }
                for (&operand, more) in operands.iter().zip(needs) {
                    self.add(at, operand, &more);
                }
            }
            _ => {
                let mut needs = operand_needs(computation, id, need);
                if let Some(extents) = self.significant_elements(at, id, need, &mut needs) {
                    self.found.significant.insert((at, id), extents);
                }
                for (&operand, more) in operands.iter().zip(needs) {
                    self.add(at, operand, &more);
                }
            }
        }
    }
}

/// True if it matters how an instruction runs whose result is not read: it has an effect, or must
/// end.
fn runs(instruction: &Instruction) -> bool {
    let op = instruction.op();
    instruction.has_effect()
        || matches!(op, Op::While { .. } | Op::Conditional { .. } | Op::Call { .. } | Op::CustomCall { .. })
}

/// All elements of all leaves.
fn all(shape: &Shape) -> Vec<Need> {
    shape.leaves().iter().map(|(_, leaf)| Some(vec![None; leaf.rank()])).collect()
}
