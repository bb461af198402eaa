//! Lowers a module: one function for each kernel, and the entry that calls them.

use crate::calls::{Call, Kernels};
use crate::context::KernelContext;
use crate::context::limits::Sizes;
use crate::context::parameters::{Memory, Operand, Parameters, TaskRange};
use crate::contraction::{attention, chain, convolution, destination, dot};
use crate::device::{self, CALLER_ALIGNMENT, Grid, thread};
use crate::entry;
use crate::entry::choice::Choice;
use crate::entry::pieces::{Batch, Parts};
use crate::entry::profile::{self, Counter};
use crate::entry::regions::Region;
use crate::index::Index;
use crate::movement::{concatenate, scatter, update};
use crate::reduction::{reduce, reduce_window, rows};
use crate::{fft, loops, multi_output, random, sort};
use buffers::{ALIGNMENT, Allocation, BufferAssignment, Schedule, Slice};
use hlo::analysis::NeededSizes;
use hlo::{ComputationId, InstructionId, Module, Op};
use nest::{Function, FunctionBuilder, FunctionId, Linkage, PointerFacts, Program, Statement, Type};
use plan::{DevicePlan, Fusion, InstructionPlan, ModulePlan, Position, Strategy};
use shape::{ArrayShape, Literal, ShapeIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use support::{Error, Id, Result};
use target::Target;

/// Maximum number of statements in a kernel that is inlined into its caller.
const INLINE_STATEMENTS: usize = 40;

/// Maximum number of kernels in a program. Code generation for more would take minutes.
const MAX_KERNELS: usize = 12_000;

/// Maximum number of operands that one kernel concatenates. Each is a parameter.
const MAX_CONCATENATED: usize = 64;

/// Options of the entry function.
#[derive(Clone, Copy, Debug)]
pub struct EntryOptions<'a> {
    /// Symbol name.
    pub name: &'a str,
    /// True if the entry measures the time of each instruction. Kernels then run one after another,
    /// and none is inlined.
    pub is_profiled: bool,
}

/// A lowered module.
#[derive(Debug)]
pub struct Lowered {
    /// The functions. The last one is the entry.
    pub program: Program,
    /// Regions of kernels that the entry runs, parallel or not, in order.
    pub regions: Vec<Region>,
    /// Measurements of the entry, in the order of the counters. Empty if the entry is not profiled.
    pub counters: Vec<Counter>,
    /// For each of several modules, the names of its kernels.
    pub of_modules: Vec<Vec<String>>,
}

/// Lowers a module to a program whose last function, `entry_point`, runs it.
///
/// A kernel's parameters are pointers in this order: the array leaves of the operands that it reads
/// (by operand, then by leaf), packed constants in the plan's order, the named sizes at which its
/// loops end, the leaves of its result,
/// scratch, and the workers' scratch. A kernel with several tasks takes three more `I64`s: the
/// first task, one past the last task, and the worker's number.
pub fn lower(
    module: &Module,
    plan: &ModulePlan,
    schedule: &Schedule,
    assignment: &BufferAssignment,
    target: &Target,
    entry_point: &str,
) -> Result<Program> {
    let entry = EntryOptions { name: entry_point, is_profiled: false };
    lower_with(module, plan, schedule, assignment, target, &entry).map(|lowered| lowered.program)
}

/// Like [`lower`], with options. Also returns the regions and the counters.
pub fn lower_with(
    module: &Module,
    plan: &ModulePlan,
    schedule: &Schedule,
    assignment: &BufferAssignment,
    target: &Target,
    options: &EntryOptions<'_>,
) -> Result<Lowered> {
    let mut program = Program::default();
    let mut names = Names::default();
    names.unique(options.name);
    let parts = Parts { module, plan, schedule, assignment };
    let kernels = lower_kernels(parts, target, options.is_profiled, &mut program, &mut names)?;
    let names = &mut |wish: &str| names.unique(wish);
    let counters = if options.is_profiled { profile::counters(module, schedule) } else { Vec::new() };
    let context =
        entry::Context { module, schedule, assignment, target, kernels: &kernels, counters: &counters };
    let regions = entry::emit(&context, options.name, &mut program, names)?;
    Ok(Lowered { program, regions, counters, of_modules: Vec::new() })
}

/// Lowers the modules of a batch, each for a fixed number of rows, and an entry that computes any
/// number of rows piece by piece. See [`Batch`].
pub fn lower_batch(batch: &Batch<'_>, target: &Target, options: &EntryOptions<'_>) -> Result<Lowered> {
    let parts = batch.pieces.iter().map(|piece| piece.parts);
    lower_several(parts, target, options, |kernels, program, names| {
        entry::pieces::emit(batch, kernels, target, options.name, program, names)
    })
}

/// Lowers modules for particular sizes, and an entry that chooses one. See [`Choice`].
pub fn lower_choice(choice: &Choice<'_>, target: &Target, options: &EntryOptions<'_>) -> Result<Lowered> {
    let parts = std::iter::once(choice.whole).chain(choice.exact.iter().map(|exact| exact.parts));
    lower_several(parts, target, options, |kernels, program, names| {
        entry::choice::emit(choice, kernels, target, options.name, program, names)
    })
}

/// Lowers several modules and the entry that `emit` adds.
fn lower_several<'a>(
    modules: impl IntoIterator<Item = Parts<'a>>,
    target: &Target,
    options: &EntryOptions<'_>,
    emit: impl FnOnce(&[Kernels], &mut Program, &mut dyn FnMut(&str) -> String) -> Result<Vec<Region>>,
) -> Result<Lowered> {
    let mut program = Program::default();
    let mut names = Names::default();
    names.unique(options.name);
    let (mut kernels, mut of_modules) = (Vec::new(), Vec::new());
    for parts in modules {
        let known = program.functions.len();
        kernels.push(lower_kernels(parts, target, false, &mut program, &mut names)?);
        let own = program.functions.values().skip(known);
        of_modules.push(own.map(|function| function.name.clone()).collect());
    }
    let regions = emit(&kernels, &mut program, &mut |wish| names.unique(wish))?;
    Ok(Lowered { program, regions, counters: Vec::new(), of_modules })
}

/// Adds a module's kernels to a program.
fn lower_kernels(
    parts_of: Parts<'_>,
    target: &Target,
    is_profiled: bool,
    program: &mut Program,
    names: &mut Names,
) -> Result<Kernels> {
    let Parts { module, plan, schedule, assignment } = parts_of;
    let limits = dots_with_limits(module, plan);
    let needed = NeededSizes::of(module, &|body, dot| limits.contains(&(body, dot)));
    let mut kernels = Kernels::default();
    for (&computation, sequence) in &schedule.sequences {
        for &instruction in sequence {
            let plan = &plan.computations[&computation].instructions[&instruction];
            if plan.strategy.has_no_kernel() {
                continue;
            }
            let name = kernel_name(module, computation, instruction);
            for part in parts(module, plan, computation, instruction) {
                let id = FunctionId::from_index(program.functions.len());
                let kernel = Kernel {
                    module,
                    assignment,
                    target,
                    plan,
                    computation,
                    instruction,
                    part,
                    grid: None,
                    needed: Some(&needed),
                };
                let lowered = kernel
                    .lower(names.unique(&name), id)
                    .map_err(|error| error.context(module[computation][instruction].described()))?;
                if let Some((mut function, call)) = lowered {
                    if is_profiled {
                        function.linkage = Linkage::Internal;
                    }
                    check_count(program.functions.len())
                        .map_err(|error| error.context(module[computation][instruction].described()))?;
                    program.functions.push(function);
                    kernels.calls.entry((computation, instruction)).or_default().push(call);
                }
            }
        }
    }
    Ok(kernels)
}

/// Returns the dots, each with its computation, that can leave out summands beyond a size that is
/// known at run time.
fn dots_with_limits(module: &Module, plan: &ModulePlan) -> BTreeSet<(ComputationId, InstructionId)> {
    let mut dots = BTreeSet::new();
    for (&computation, plans) in &plan.computations {
        for (&id, plan) in &plans.instructions {
            let dot = match &plan.strategy {
                Strategy::Dot(dot) => &**dot,
                Strategy::Attention(attention) => &attention.values,
                _ => continue,
            };
            if dot.limits_summands() {
                dots.insert((body_of(module, computation, id), dot.hero));
            }
        }
    }
    dots
}

/// Returns the computation that holds the body of an instruction's kernel.
fn body_of(module: &Module, computation: ComputationId, id: InstructionId) -> ComputationId {
    match *module[computation][id].op() {
        Op::Fusion { calls, .. } => calls,
        _ => computation,
    }
}

/// Fails if a program has as many kernels as are allowed.
pub(crate) fn check_count(kernels: usize) -> Result<()> {
    if kernels < MAX_KERNELS {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the graph needs more than {MAX_KERNELS} kernels; split it into several programs"
    )))
}

/// Splits an instruction into parts, one kernel each: operands of a concatenation, or steps of a
/// transform.
pub(crate) fn parts(
    module: &Module,
    plan: &InstructionPlan,
    computation: ComputationId,
    instruction: InstructionId,
) -> Vec<Range<usize>> {
    match (&plan.strategy, module[computation][instruction].op()) {
        (strategy, Op::Concatenate { .. }) if copies_operands(strategy) => {
            let operands = module[computation][instruction].operands().len();
            let starts = (0..operands).step_by(MAX_CONCATENATED);
            starts.map(|start| start..operands.min(start + MAX_CONCATENATED)).collect()
        }
        (Strategy::Fft(plan), _) => (0..plan.steps.len()).map(|step| step..step + 1).collect(),
        (Strategy::Device(plan), _) => (0..plan.steps()).map(|step| step..step + 1).collect(),
        _ => std::iter::once(0..usize::MAX).collect(),
    }
}

/// Returns the instruction's name with that of the source node: `fusion.3_dense/BiasAdd`.
pub fn kernel_name(module: &Module, computation: ComputationId, instruction: InstructionId) -> String {
    let instruction = &module[computation][instruction];
    let node = match instruction.op() {
        Op::Fusion { calls, .. } if instruction.metadata().op_name.is_empty() => {
            &module[*calls][module[*calls].root()].metadata().op_name
        }
        _ => &instruction.metadata().op_name,
    };
    let name = if node.is_empty() {
        instruction.name().to_owned()
    } else {
        format!("{}_{node}", instruction.name())
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// Unique function names.
#[derive(Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
    /// The next suffix for a name that was requested more than once.
    numbers: BTreeMap<String, u32>,
}

impl Names {
    pub(crate) fn unique(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        while !self.taken.insert(name.clone()) {
            let number = self.numbers.entry(wish.to_owned()).or_insert(0);
            *number += 1;
            name = format!("{wish}.{number}");
        }
        name
    }
}

/// An instruction that needs code.
pub(crate) struct Kernel<'a> {
    pub(crate) module: &'a Module,
    pub(crate) assignment: &'a BufferAssignment,
    pub(crate) target: &'a Target,
    pub(crate) plan: &'a InstructionPlan,
    pub(crate) computation: ComputationId,
    pub(crate) instruction: InstructionId,
    /// The operands that a concatenation copies, or the step of a transform. All other kernels
    /// ignore it.
    pub(crate) part: Range<usize>,
    /// The grid that runs the kernel on a device; `None` on a processor.
    pub(crate) grid: Option<Grid>,
    /// The elements of arrays that are read; `None` if kernels compute all of them.
    pub(crate) needed: Option<&'a NeededSizes>,
}

impl Kernel<'_> {
    /// Returns the function, which becomes number `id`, and its call. Returns `None` if the kernel
    /// is empty.
    pub(crate) fn lower(&self, name: String, id: FunctionId) -> Result<Option<(Function, Call)>> {
        let fusion = Fusion::of(self.module, &self.module[self.computation], self.instruction)?;
        let linkage = match self.grid {
            Some(Grid { threads, .. }) => Linkage::Kernel { threads },
            None => Linkage::Internal,
        };
        let converts_f16 = self.target.has_f16_conversion;
        let mut builder = FunctionBuilder::new(name, linkage).with_f16_conversion(converts_f16);
        let body = body_of(self.module, self.computation, self.instruction);
        let mut sizes = self.needed.map(|needed| Sizes::new(needed, body));
        let (parameters, arguments, written) = self.parameters(&mut builder, &fusion, sizes.as_mut());
        let cx = KernelContext::new(builder, self.module, self.target, self.plan, fusion, parameters);
        let mut cx = cx.with_sizes(sizes);
        self.emit(&mut cx)?;
        let mut function = cx.finish();
        let statements = function.statement_count();
        if statements == 0 {
            return Ok(None);
        }
        let tasks = self.plan.tasks.max(1);
        if self.grid.is_some() {
            // A grid strides over the tasks.
        } else if tasks > 1 {
            check_tasks(&function)?;
        } else if statements <= INLINE_STATEMENTS {
            function.linkage = Linkage::Inline;
        }
        let takes_workers_scratch = self.plan.worker_scratch_bytes > 0;
        Ok(Some((
            function,
            Call {
                function: id,
                arguments,
                written,
                takes_workers_scratch,
                tasks,
                nanoseconds: self.plan.work.nanoseconds(),
            },
        )))
    }

    fn emit(&self, cx: &mut KernelContext<'_>) -> Result<()> {
        match &self.plan.strategy {
            Strategy::Loop(plan) => loops::emit(cx, plan),
            Strategy::Reduce(plan) => reduce::emit(cx, plan),
            Strategy::Rows(plan) => rows::emit(cx, plan),
            Strategy::ReduceWindow(plan) => reduce_window::emit(cx, plan),
            Strategy::Dot(plan) => destination::copy_around(cx).and_then(|()| dot::emit(cx, plan)),
            Strategy::Convolution(plan) => {
                destination::copy_around(cx).and_then(|()| convolution::emit(cx, plan))
            }
            Strategy::ConvolutionChain(plan) => chain::emit(cx, plan),
            Strategy::Attention(plan) => {
                destination::copy_around(cx).and_then(|()| attention::emit(cx, plan))
            }
            Strategy::Concatenate => concatenate::emit(cx, &self.part),
            Strategy::DynamicUpdateSlice(plan) => update::emit(cx, plan.as_ref()),
            Strategy::MultiOutput(plan) => multi_output::emit(cx, plan),
            Strategy::Scatter => scatter::emit(cx),
            Strategy::Sort(plan) => sort::emit(cx, plan.as_deref()),
            Strategy::TopK(plan) => sort::emit_top_k(cx, plan.as_deref()),
            Strategy::Fft(plan) => fft::emit(cx, plan, self.part.start),
            Strategy::RngBitGenerator => random::emit_bits(cx),
            Strategy::RngGetAndUpdateState => random::emit_state(cx),
            Strategy::Device(plan) => device::emit(cx, plan, self.part.start),
            Strategy::Alias
            | Strategy::Undefined
            | Strategy::Conditional
            | Strategy::While
            | Strategy::CustomCall => {
                Err(Error::internal("lowered an instruction whose strategy has no kernel"))
            }
        }
    }

    /// Declares the parameters in the documented order. Also returns the slices that the kernel is
    /// called with, and the number of slices that it only reads. Those come first.
    fn parameters(
        &self,
        b: &mut FunctionBuilder,
        fusion: &Fusion<'_>,
        sizes: Option<&mut Sizes<'_>>,
    ) -> (Parameters, Vec<Slice>, usize) {
        let mut parameters = Parameters::default();
        if self.grid.is_some() {
            b.parameter("guard", Type::PTR, PointerFacts { read_only: true, ..PointerFacts::default() });
        }
        let alignment = |slice: &Slice, shape: &ArrayShape| match self.grid {
            Some(_) => device_alignment(slice),
            None => alignment(self.assignment, slice, shape),
        };
        let operands = self.operand_leaves(fusion, &mut parameters);
        let results: Vec<(ShapeIndex, ArrayShape)> =
            fusion.shape().leaves().into_iter().map(|(index, shape)| (index, shape.clone())).collect();
        let scratch = self.assignment.scratch.get(&(self.computation, self.instruction)).copied();
        let written: Vec<Slice> = results
            .iter()
            .map(|(index, _)| self.assignment.slice(self.computation, self.instruction, index))
            .chain(scratch)
            .collect();
        let mut arguments = Vec::new();
        let mut pointers = Vec::new();
        for (number, index, shape) in operands {
            let slice = self.assignment.slice(self.computation, fusion.operand(number), &index);
            let is_shared = written.iter().any(|w| w.overlaps(&slice));
            parameters.is_in_place |= is_shared;
            let facts =
                PointerFacts { no_alias: !is_shared, read_only: true, alignment: alignment(&slice, &shape) };
            let pointer = b.parameter(&leaf_name(&format!("operand{number}"), &index), Type::PTR, facts);
            let memory = Memory { pointer, shape, alignment: facts.alignment, first: Index::default() };
            parameters.operands.insert((number, index), Operand::Memory(memory));
            pointers.push((pointer, slice));
            arguments.push(slice);
        }
        for (position, packed) in self.plan.packed.iter().enumerate() {
            let slice = self.assignment.packed[&(self.computation, self.instruction, position)];
            let facts = PointerFacts { no_alias: true, read_only: true, alignment: ALIGNMENT as u32 };
            let pointer = b.parameter(&packed_name(packed), Type::PTR, facts);
            parameters.packed.push(pointer);
            arguments.push(slice);
        }
        if let Some(sizes) = sizes {
            let entry = &self.module[self.module.entry()];
            for number in sizes.parameters(fusion) {
                let parameter = entry.parameters()[number];
                let facts = PointerFacts { no_alias: true, read_only: true, alignment: 4 };
                sizes.set(number, b.parameter("size", Type::PTR, facts));
                arguments.push(self.assignment.slice(self.module.entry(), parameter, &[]));
            }
        }
        let only_read = arguments.len();
        for (index, shape) in results {
            let slice = self.assignment.slice(self.computation, self.instruction, &index);
            let facts = PointerFacts {
                no_alias: !arguments.iter().any(|a: &Slice| a.overlaps(&slice)),
                read_only: false,
                alignment: alignment(&slice, &shape),
            };
            let pointer = b.parameter(&leaf_name("result", &index), Type::PTR, facts);
            let same = pointers.iter().filter(|(_, s)| *s == slice);
            parameters.same_memory.extend(same.map(|&(operand, _)| (operand, pointer)));
            let first = Index::default();
            parameters.results.push(Memory { pointer, shape, alignment: facts.alignment, first });
            arguments.push(slice);
        }
        if let Some(slice) = scratch {
            let facts = PointerFacts { no_alias: true, read_only: false, alignment: ALIGNMENT as u32 };
            parameters.scratch = Some(b.parameter("scratch", Type::PTR, facts));
            arguments.push(slice);
        }
        if self.plan.worker_scratch_bytes > 0 {
            let facts = PointerFacts { no_alias: true, read_only: false, alignment: ALIGNMENT as u32 };
            parameters.workers_scratch = Some(b.parameter("workers_scratch", Type::PTR, facts));
        }
        if let Some(grid) = self.grid {
            if self.plan.tasks > 1 {
                let begin = thread(b, grid.threads);
                let end = b.index(self.plan.tasks);
                parameters.tasks = Some(TaskRange { begin, end, worker: begin, step: grid.all_threads() });
            }
        } else if self.plan.tasks > 1 {
            let mut number = |name| b.parameter(name, Type::I64, PointerFacts::default());
            let (begin, end) = (number("task_begin"), number("task_end"));
            parameters.tasks = Some(TaskRange { begin, end, worker: number("worker"), step: 1 });
        }
        (parameters, arguments, only_read)
    }

    /// Returns the array leaves of the operands that the body reads from memory. Constants whose
    /// elements are all equal become immediates.
    fn operand_leaves(
        &self,
        fusion: &Fusion<'_>,
        parameters: &mut Parameters,
    ) -> Vec<(usize, ShapeIndex, ArrayShape)> {
        let mut read = BTreeSet::new();
        for id in fusion.instructions() {
            for (position, &operand) in fusion.body[id].operands().iter().enumerate() {
                if copies_operands(&self.plan.strategy) {
                    if self.part.contains(&position) {
                        read.insert(position);
                    }
                } else if let Position::Operand(number) = fusion.position(operand) {
                    read.insert(number);
                }
            }
        }
        if let Position::Operand(number) = fusion.position(fusion.root) {
            read.insert(number);
        }
        let mut leaves = Vec::new();
        for number in read {
            if self.plan.packed.iter().any(|p| p.operand == Some(number)) {
                continue;
            }
            let operand = &fusion.caller[fusion.operand(number)];
            if let (Op::Constant { literal: literal @ Literal::Array { shape, .. } }, true) =
                (operand.op(), reads_elements(&self.plan.strategy))
                && shape.element_count() > 0
                && literal.is_splat()
            {
                parameters.operands.insert((number, Vec::new()), Operand::Splat(literal.clone()));
                continue;
            }
            let shapes = operand.shape().leaves();
            leaves.extend(shapes.into_iter().map(|(index, shape)| (number, index, shape.clone())));
        }
        leaves
    }
}

/// True if a strategy copies operands, some in each kernel.
fn copies_operands(strategy: &Strategy) -> bool {
    match strategy {
        Strategy::Concatenate => true,
        Strategy::Device(plan) => matches!(**plan, DevicePlan::Copy(_)),
        _ => false,
    }
}

/// True if a strategy reads operands only element by element, so that an immediate can replace
/// them.
fn reads_elements(strategy: &Strategy) -> bool {
    match strategy {
        Strategy::Loop(_) | Strategy::Reduce(_) | Strategy::ReduceWindow(_) | Strategy::Rows(_) => true,
        Strategy::MultiOutput(plan) => plan.updates.is_empty(),
        Strategy::Device(plan) => plan.reads_elements(),
        _ => false,
    }
}

/// Returns the alignment of a slice's address, in bytes.
fn alignment(assignment: &BufferAssignment, slice: &Slice, shape: &ArrayShape) -> u32 {
    let element = shape.element_type.real_part().byte_size() as u32;
    match slice.allocation {
        _ if assignment.weakly_aligned.contains(slice) => element,
        Allocation::Parameter(_) => element,
        // The size of a bounded dimension: an entry in a list of sizes.
        Allocation::Result(number) if number >= assignment.result_count => element,
        Allocation::Result(_) | Allocation::Temps | Allocation::Constants => {
            let offset_alignment = 1u64 << slice.offset.trailing_zeros().min(6);
            offset_alignment.min(ALIGNMENT) as u32
        }
    }
}

/// Returns the alignment of an address on a device, in bytes.
fn device_alignment(slice: &Slice) -> u32 {
    let of_block = match slice.allocation {
        Allocation::Parameter(_) | Allocation::Result(_) => CALLER_ALIGNMENT,
        Allocation::Temps | Allocation::Constants => ALIGNMENT,
    };
    1 << slice.offset.trailing_zeros().min(of_block.trailing_zeros())
}

fn packed_name(packed: &plan::PackedConstant) -> String {
    packed.operand.map_or_else(|| "table".to_owned(), |operand| format!("packed{operand}"))
}

fn leaf_name(stem: &str, index: &[usize]) -> String {
    index.iter().fold(stem.to_owned(), |name, i| format!("{name}_{i}"))
}

/// Checks that a kernel with several tasks writes memory only inside its loop over the tasks. Code
/// before the loop runs once per call and may branch.
fn check_tasks(function: &Function) -> Result<()> {
    let may_write = |statement: &&Statement| {
        statement.has_effect() || statement.blocks().any(|block| block.walk().any(Statement::has_effect))
    };
    let writing = function.body.statements.iter().filter(may_write);
    match writing.collect::<Vec<_>>()[..] {
        [Statement::For { .. }] | [Statement::For { .. }, Statement::For { .. }] => Ok(()),
        _ => {
            Err(Error::internal("a kernel with several tasks writes memory outside its loop over the tasks"))
        }
    }
}
