//! State of a kernel under construction: its memory, the open regions, and the values computed so
//! far.
//!
//! A value is computed in the outermost region in which its operands are available, and once per
//! region. Loop-invariant code leaves its loops here, because no stage after this crate moves it.

pub(crate) mod addressing;
mod apply;
mod body_value;
mod epilogue;
pub(crate) mod limits;
pub(crate) mod parameters;
pub(crate) mod reindex;
pub(crate) mod tasks;

use crate::element::Element;
use crate::index::{Facts, Index, Position};
use buffers::ALIGNMENT;
use epilogue::Epilogue;
use hlo::analysis::Extent;
use hlo::{InstructionId, Module};
use limits::Sizes;
use nest::{Function, FunctionBuilder, Predicate, RegionBuilder, ValueId};
use parameters::{Memory, Operand, Parameters, TaskRange};
use plan::{Fusion, InstructionPlan};
use shape::ArrayShape;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use support::{Error, Result};
use target::Target;

/// Maximum number of values in a kernel. Nothing else bounds the work that a fusion duplicates.
const MAX_VALUES: usize = 400_000;

/// A row of a square of the result. A square has as many rows as lanes. They are computed one after
/// another from operands that are contiguous across the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Square {
    /// The index of the first row.
    pub(crate) first: ValueId,
    /// The row's number in the square.
    pub(crate) row: i64,
}

/// A part of a kernel that is emitted like a kernel of its own.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    /// The part's computation.
    pub(crate) fusion: Fusion<'a>,
    /// Leaves of its result.
    pub(crate) results: Vec<Memory>,
    /// Its packed constants.
    pub(crate) packed: Vec<ValueId>,
}

/// Context for emitting a kernel. It owns the builder of the kernel's function and dereferences to
/// it.
pub struct KernelContext<'a> {
    builder: FunctionBuilder,
    module: &'a Module,
    target: &'a Target,
    plan: &'a InstructionPlan,
    fusion: Fusion<'a>,
    parameters: Parameters,
    /// Number of lanes of an index with a stride.
    lanes: u32,
    /// The square that is computed, if any.
    square: Option<Square>,
    facts: BTreeMap<ValueId, Facts>,
    /// Values that replace instructions, at any position.
    provided: BTreeMap<InstructionId, Element>,
    frames: Vec<Frame>,
    /// Epilogues of contractions whose elements have been stored.
    epilogues: BTreeMap<InstructionId, Rc<Epilogue<'a>>>,
    /// Minimum depth of the regions in which values are computed.
    floor: usize,
    /// The sizes at which loops end, if they are known only at run time.
    sizes: Option<Sizes<'a>>,
}

/// Values known in one region.
#[derive(Debug)]
struct Frame {
    depth: usize,
    /// The provided instruction, if the frame holds only values that depend on it.
    provided: Option<InstructionId>,
    elements: BTreeMap<ElementKey, Element>,
    indices: BTreeMap<IndexKey, ValueId>,
}

type ElementKey = (InstructionId, u32, Position);

/// A value derived from an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IndexKey {
    /// The index itself, the same in every lane.
    Scalar(Index),
    /// The index in the given number of lanes.
    Vector(Index, u32),
    /// The quotient by a constant.
    Quotient(Index, i64, u32),
    /// The rest of the division by a constant.
    Rest(Index, i64, u32),
    /// The index clamped between two constants.
    Clamped(Index, i64, i64, u32),
    /// An element as a start index, clamped between 0 and a constant.
    Start(ValueId, i64),
    /// A scalar in the given number of lanes.
    Splat(ValueId, u32),
    /// A number of elements that depends on a size, and its maximum.
    Extent(Extent, i64),
    /// The address of the worker's scratch.
    WorkerScratch,
    /// Memory for the sums of a tile.
    Sums,
    /// A row, in its memory form, of the transposed square that begins at an index of an array. The
    /// array is identified by its pointer.
    Transposed(ValueId, Index, i64),
}

impl Deref for KernelContext<'_> {
    type Target = FunctionBuilder;

    fn deref(&self) -> &FunctionBuilder {
        &self.builder
    }
}

impl DerefMut for KernelContext<'_> {
    fn deref_mut(&mut self) -> &mut FunctionBuilder {
        &mut self.builder
    }
}

impl RegionBuilder for KernelContext<'_> {
    fn builder(&mut self) -> &mut FunctionBuilder {
        &mut self.builder
    }
}

impl<'a> KernelContext<'a> {
    pub(crate) fn new(
        builder: FunctionBuilder,
        module: &'a Module,
        target: &'a Target,
        plan: &'a InstructionPlan,
        fusion: Fusion<'a>,
        parameters: Parameters,
    ) -> Self {
        Self {
            builder,
            module,
            target,
            plan,
            fusion,
            parameters,
            lanes: 1,
            square: None,
            facts: BTreeMap::new(),
            provided: BTreeMap::new(),
            frames: vec![Frame::new(1, None)],
            epilogues: BTreeMap::new(),
            floor: 1,
            sizes: None,
        }
    }

    /// Sets the sizes at which loops end.
    pub(crate) fn with_sizes(self, sizes: Option<Sizes<'a>>) -> Self {
        Self { sizes, ..self }
    }

    /// Returns the module.
    pub fn module(&self) -> &'a Module {
        self.module
    }

    /// Returns the target machine.
    pub fn target(&self) -> &'a Target {
        self.target
    }

    /// Returns the plan of the kernel.
    pub fn plan(&self) -> &'a InstructionPlan {
        self.plan
    }

    /// Returns the computation of the kernel.
    pub fn fusion(&self) -> Fusion<'a> {
        self.fusion
    }

    /// Returns the leaves of the result.
    pub fn results(&self) -> &[Memory] {
        &self.parameters.results
    }

    /// Returns the addresses of the packed constants, in the plan's order. They are 64-byte
    /// aligned.
    pub fn packed(&self) -> &[ValueId] {
        &self.parameters.packed
    }

    /// Returns the address of the first packed constant, for a kernel whose plan has one.
    pub fn first_packed(&self) -> Result<ValueId> {
        let first = self.packed().first().copied();
        first.ok_or_else(|| Error::internal("expected a packed constant, found none"))
    }

    /// Returns the address of the scratch if the plan asks for some. It is 64-byte aligned.
    pub fn scratch(&self) -> Option<ValueId> {
        self.parameters.scratch
    }

    /// Returns the range of tasks that a call of the kernel runs, if the kernel has several tasks.
    pub(crate) fn tasks(&self) -> Option<TaskRange> {
        self.parameters.tasks
    }

    /// True if a result shares memory with an operand.
    pub fn is_in_place(&self) -> bool {
        self.parameters.is_in_place
    }

    /// Returns the number of lanes of an index with a stride.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Records facts about an index.
    pub(crate) fn learn(&mut self, index: ValueId, facts: Facts) {
        self.facts.insert(index, facts);
    }

    /// Sets the memory of an array operand that the kernel itself computes.
    pub(crate) fn set_operand(&mut self, number: usize, memory: Memory) {
        self.parameters.operands.insert((number, Vec::new()), Operand::Memory(memory));
    }

    /// Returns the finished function.
    pub(crate) fn finish(self) -> Function {
        self.builder.finish()
    }

    /// Returns the memory of an array operand, or an error if the operand is an immediate or
    /// packed.
    pub fn operand(&self, number: usize) -> Result<&Memory> {
        match self.parameters.operands.get(&(number, Vec::new())) {
            Some(Operand::Memory(memory)) => Ok(memory),
            _ => Err(Error::internal(format!("operand {number} is not an array in memory"))),
        }
    }

    /// True if an operand and a result have the same memory.
    pub(crate) fn is_same_memory(&self, operand: ValueId, result: ValueId) -> bool {
        self.parameters.same_memory.contains(&(operand, result))
    }

    /// Returns the shape of an array instruction in the body.
    pub(crate) fn shape(&self, id: InstructionId) -> Result<&'a ArrayShape> {
        let body = self.fusion.body;
        let shape = body[id].shape();
        shape.as_array().ok_or_else(|| Error::internal(format!("expected an array, got {}", body[id].name())))
    }

    /// Emits the kernel's outermost loop, over the tasks of a call. A kernel with one task runs
    /// `body` once, for task 0. Everything that writes memory must be inside the loop, and no task
    /// may access memory that another task writes.
    pub fn for_tasks(&mut self, body: impl FnOnce(&mut Self, Index) -> Result<()>) -> Result<()> {
        let Some(TaskRange { begin, end, step, .. }) = self.parameters.tasks else {
            return body(self, Index::constant(0));
        };
        if self.depth() != 1 {
            return Err(Error::internal("the loop over tasks is inside another region"));
        }
        let limit = self.plan.tasks;
        let one = |cx: &mut Self, task: ValueId| {
            cx.facts.insert(task, Facts::range(0, limit - 1));
            cx.scoped(|cx| body(cx, Index::scalar(task)))
        };
        if step >= limit {
            // The thread has at most one task.
            let is_in = self.compare(Predicate::Less, begin, end);
            return self.when(is_in, |cx| one(cx, begin));
        }
        self.for_each(begin, end, step, one)
    }

    /// Returns the address of the current worker's scratch: `worker_scratch_bytes` of the plan,
    /// 64-byte aligned, with undefined content at the start of a task. Panics if the plan asks for
    /// none.
    pub fn worker_scratch(&mut self) -> ValueId {
        let first = self.parameters.workers_scratch.expect("the plan asks for no worker scratch");
        let Some(tasks) = self.parameters.tasks else { return first };
        let key = IndexKey::WorkerScratch;
        self.known_index(&key).unwrap_or_else(|| {
            // The kernel's own size is a valid distance: the frame has at least this much scratch
            // per worker, and all workers run this kernel. In a region they may not, so a region
            // passes the worker's own scratch and worker 0.
            let bytes = self.plan.worker_scratch_bytes.next_multiple_of(ALIGNMENT) as i64;
            let scratch = self.outside(1, |b| b.offset(first, tasks.worker, bytes));
            self.frames[0].indices.insert(key, scratch);
            scratch
        })
    }

    /// Runs `body` for `begin`, `begin + step`, ... below `end`: in a loop, or inline if it runs
    /// once.
    pub fn for_range(
        &mut self,
        begin: i64,
        end: i64,
        step: i64,
        mut body: impl FnMut(&mut Self, Index) -> Result<()>,
    ) -> Result<()> {
        self.for_range_carrying(begin, end, step, &[], |cx, i, _| body(cx, i).map(|()| Vec::new()))
            .map(|_| ())
    }

    /// Like [`Self::for_range`], with values carried between iterations.
    pub fn for_range_carrying(
        &mut self,
        begin: i64,
        end: i64,
        step: i64,
        initial: &[ValueId],
        mut body: impl FnMut(&mut Self, Index, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        if begin >= end {
            return Ok(initial.to_vec());
        }
        if begin + step >= end {
            return body(self, Index::constant(begin), initial);
        }
        let last = begin + (end - 1 - begin) / step * step;
        let (from, to) = (self.index(begin), self.index(end));
        self.for_carrying(from, to, step, initial, |cx, index, carried| {
            let facts = Facts { min: begin, max: last, multiple: crate::index::gcd(begin, step) };
            cx.facts.insert(index, facts);
            cx.scoped(|cx| body(cx, Index::scalar(index), carried))
        })
    }

    /// Emits a loop to a bound that is known only at run time. The index is below `limit`.
    pub(crate) fn for_dynamic(
        &mut self,
        begin: ValueId,
        end: ValueId,
        limit: i64,
        initial: &[ValueId],
        body: impl FnOnce(&mut Self, ValueId, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        self.for_carrying(begin, end, 1, initial, |cx, index, carried| {
            cx.facts.insert(index, Facts::range(0, limit - 1));
            cx.scoped(|cx| body(cx, index, carried))
        })
    }

    /// Emits a region that runs only if the condition holds. None of its values are computed
    /// outside it.
    pub(crate) fn when(
        &mut self,
        condition: ValueId,
        then: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.if_then(condition, |cx| cx.pinned(|cx| cx.scoped(then)))
    }

    /// Builds all of `body` in the innermost open region, for reads of memory that the kernel also
    /// writes.
    pub(crate) fn pinned<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> R {
        let depth = self.depth();
        let floor = std::mem::replace(&mut self.floor, depth);
        let result = body(self);
        self.floor = floor;
        result
    }

    /// Runs `body` with a number of lanes for indices with a stride.
    pub(crate) fn with_lanes<R>(&mut self, lanes: u32, body: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.lanes, lanes);
        let result = body(self);
        self.lanes = before;
        result
    }

    /// Runs `body` for a row of a square.
    pub(crate) fn with_square<R>(&mut self, square: Square, body: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.square.replace(square);
        let result = body(self);
        self.square = before;
        result
    }

    /// Runs `body` with another range of tasks.
    pub(crate) fn with_tasks<R>(&mut self, tasks: Option<TaskRange>, body: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.parameters.tasks, tasks);
        let result = body(self);
        self.parameters.tasks = before;
        result
    }

    /// Runs `body` as if the kernel consisted of this part.
    pub(crate) fn with_part<R>(&mut self, part: Part<'a>, body: impl FnOnce(&mut Self) -> R) -> R {
        let Part { fusion, results, packed } = part;
        let fusion = std::mem::replace(&mut self.fusion, fusion);
        let results = std::mem::replace(&mut self.parameters.results, results);
        let packed = std::mem::replace(&mut self.parameters.packed, packed);
        let result = body(self);
        (self.fusion, self.parameters.results, self.parameters.packed) = (fusion, results, packed);
        result
    }

    /// Runs `body` with values that replace instructions, at any position.
    pub(crate) fn with_provided<R>(
        &mut self,
        values: impl IntoIterator<Item = (InstructionId, Element)>,
        body: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let before = self.provided.clone();
        self.provided.extend(values);
        let result = body(self);
        self.provided = before;
        result
    }

    /// Runs `body` in the region that was just opened, and afterwards discards the values computed
    /// in it.
    pub fn scoped<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> R {
        self.frames.push(Frame::new(self.depth(), None));
        let result = body(self);
        self.frames.pop();
        result
    }

    /// Builds in the region at a depth, but no further out than the floor. Uses the current region
    /// if that one is not deeper than the depth.
    pub(crate) fn at<R>(&mut self, depth: usize, build: impl FnOnce(&mut FunctionBuilder) -> R) -> R {
        let depth = depth.max(self.floor);
        let b = &mut self.builder;
        if depth < b.depth() { b.outside(depth, build) } else { build(b) }
    }

    /// Returns the depth at which a value with these operands can be computed.
    pub(crate) fn depth_of_all(&self, operands: impl IntoIterator<Item = ValueId>) -> usize {
        operands.into_iter().map(|v| self.depth_of(v)).max().unwrap_or(1).max(self.floor)
    }

    pub(crate) fn known_element(&self, id: InstructionId, position: &Position) -> Option<Element> {
        if let Some(&element) = self.provided.get(&id) {
            return Some(element);
        }
        let key = self.element_key(id, position);
        self.frames.iter().rev().find_map(|frame| frame.elements.get(&key).copied())
    }

    pub(crate) fn remember_element(
        &mut self,
        id: InstructionId,
        position: &Position,
        element: Element,
    ) -> Result<()> {
        if self.value_count() > MAX_VALUES {
            let name = self.fusion.caller[self.fusion.instruction].name();
            return Err(Error::internal(format!("the kernel of {name} needs more than {MAX_VALUES} values")));
        }
        let key = self.element_key(id, position);
        let depth = self.depth_of_all(element.values());
        self.frame(depth, Some(id))?.elements.insert(key, element);
        Ok(())
    }

    fn element_key(&self, id: InstructionId, position: &Position) -> ElementKey {
        (id, if position.is_uniform() { 1 } else { self.lanes }, position.clone())
    }

    pub(crate) fn known_index(&self, key: &IndexKey) -> Option<ValueId> {
        self.frames.iter().rev().find_map(|frame| frame.indices.get(key).copied())
    }

    pub(crate) fn remember_index(&mut self, key: IndexKey, value: ValueId) -> Result<ValueId> {
        let depth = self.depth_of(value);
        self.frame(depth, None)?.indices.insert(key, value);
        Ok(value)
    }

    /// Returns the innermost frame at a depth that holds values of an instruction, or of indices if
    /// `id` is `None`.
    fn frame(&mut self, depth: usize, id: Option<InstructionId>) -> Result<&mut Frame> {
        let epilogues = &self.epilogues;
        let keeps = |frame: &Frame| match (frame.provided, id) {
            (None, _) => true,
            (Some(provided), Some(id)) => epilogues.get(&provided).is_some_and(|e| e.depends(id)),
            (Some(_), None) => false,
        };
        let frame = self.frames.iter_mut().rev().find(|frame| frame.depth <= depth && keeps(frame));
        let frame = frame.filter(|frame| frame.depth == depth);
        frame.ok_or_else(|| Error::internal("found a value in a region that has no frame"))
    }
}

impl Frame {
    fn new(depth: usize, provided: Option<InstructionId>) -> Self {
        Self { depth, provided, elements: BTreeMap::new(), indices: BTreeMap::new() }
    }
}
