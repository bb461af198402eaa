//! Batches of any size, computed in pieces of a few sizes.
//!
//! The rows of the batch are independent. The entry contains the code of several modules, each for
//! a fixed number of rows, and runs one after another until all rows are done. A module sees a
//! frame of its own on the entry's stack, whose lists point to the first row of the piece.
//!
//! The first pieces are of the largest size that fits. A table then says how to compute the rest at
//! the lowest estimated cost. The last piece may be larger than what is left: it begins earlier,
//! and computes some rows again.

use super::{Context, Entry};
use crate::calls::Kernels;
use crate::entry::regions::Region;
use buffers::{BufferAssignment, Schedule};
use hlo::analysis::executions;
use hlo::{Module, SizeParameter};
use nest::{ConvertOp, Expression, Predicate, Program, RegionBuilder as _, ScalarType, Type, ValueId};
use plan::ModulePlan;
use support::{Error, Result};
use target::Target;

/// A program for batches of any size within a range.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The argument that holds the number of rows, and its range.
    pub size: SizeParameter,
    /// The name of the size, for messages.
    pub name: String,
    /// Modules for fixed numbers of rows, in ascending order. The first is for no more rows than
    /// the smallest batch, and none writes its arguments.
    pub pieces: Vec<Piece<'a>>,
    /// For each parameter of the modules, the argument of the program.
    pub arguments: Vec<BatchArray>,
    /// For each result of the modules, the result of the program.
    pub results: Vec<BatchArray>,
    /// Number of dimensions of results whose size the program reports. Each is the number of rows.
    pub reported_sizes: usize,
}

/// A module, and the decisions about it.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The module.
    pub module: &'a Module,
    /// Its plan.
    pub plan: &'a ModulePlan,
    /// Its schedule.
    pub schedule: &'a Schedule,
    /// Its buffer assignment.
    pub assignment: &'a BufferAssignment,
}

/// A module for a fixed number of rows.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The number of rows, at least 1.
    pub rows: i64,
    /// The module and its plan. It has no size parameters.
    pub parts: Parts<'a>,
}

/// An array of a module within the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchArray {
    /// Number of the program's argument or result.
    pub number: usize,
    /// Number of bytes of a row; 0 if the array does not depend on the batch.
    pub row_bytes: i64,
}

/// Adds the entry of a program for batches. Returns the regions of all pieces.
pub(crate) fn emit(
    batch: &Batch<'_>,
    kernels: &[Kernels],
    target: &Target,
    name: &str,
    program: &mut Program,
    unique: &mut dyn FnMut(&str) -> String,
) -> Result<Vec<Region>> {
    let first = batch.pieces.first().ok_or_else(|| Error::internal("expected a batch with pieces"))?;
    let Parts { module, schedule, assignment, .. } = first.parts;
    let begin = Context { module, schedule, assignment, target, kernels: &kernels[0], counters: &[] };
    let mut entry = Entry::new(&begin, name, true, program, unique);
    let rows = entry.check_size(&batch.size, &batch.name)?;
    entry.report_sizes(batch.reported_sizes, rows);
    let frame = entry.inner_frame(batch);
    let outer = (entry.scope.frame, entry.scope.hoisting_depth);
    entry.scope.frame = frame.frame;
    let steps = Steps::new(&mut entry, batch, rows);
    let zero = entry.scope.builder.index(0);
    entry.while_carrying(
        &[zero],
        |entry, carried| Ok(entry.scope.builder.compare(Predicate::Less, carried[0], rows)),
        |entry, carried| {
            let number = steps.next(entry, carried[0]);
            let next = entry.choose_piece(batch, kernels, &frame, (number, carried[0], rows), 0)?;
            Ok(vec![next])
        },
    )?;
    (entry.scope.frame, entry.scope.hoisting_depth) = outer;
    let Entry { scope, program, regions, .. } = entry;
    program.functions.push(scope.builder.finish());
    Ok(regions)
}

/// A frame on the stack, which differs from the caller's in its lists.
struct InnerFrame {
    frame: ValueId,
    arguments: List,
    results: List,
}

/// A list of addresses, and those of the program's arrays.
struct List {
    address: ValueId,
    /// Arrays with rows: place in the list, address of the first row, bytes of a row.
    moving: Vec<(usize, ValueId, i64)>,
}

impl<'a> Entry<'a> {
    /// Reports the number of rows as the size of each bounded dimension of the results.
    fn report_sizes(&mut self, count: usize, rows: ValueId) {
        if count == 0 {
            return;
        }
        let sizes = self.field(self.layout.dynamic_sizes());
        for k in 0..count as i64 {
            let b = &mut self.scope.builder;
            let at = b.offset_bytes(sizes, 8 * k);
            b.store(rows, at, 4);
        }
    }

    /// Copies the caller's frame to the stack, with lists of its own.
    fn inner_frame(&mut self, batch: &Batch<'_>) -> InnerFrame {
        let (layout, caller) = (self.layout, self.caller);
        let bytes = layout.pointer_bytes();
        let b = &mut self.scope.builder;
        let size = layout.device() + bytes;
        let frame = b.value(Type::PTR, Expression::StackSlot { bytes: size as u64, alignment: 8 });
        let all = b.index(size);
        b.copy_bytes(frame, caller, all);
        let list = |entry: &mut Self, field: i64, arrays: &[BatchArray]| {
            let from = entry.field(field);
            let b = &mut entry.scope.builder;
            let slot = (bytes * arrays.len().max(1) as i64) as u64;
            let address = b.value(Type::PTR, Expression::StackSlot { bytes: slot, alignment: 8 });
            let mut moving = Vec::new();
            for (place, array) in arrays.iter().enumerate() {
                let at = b.offset_bytes(from, bytes * array.number as i64);
                let pointer = b.load(Type::PTR, at, bytes as u32);
                let to = b.offset_bytes(address, bytes * place as i64);
                b.store(pointer, to, bytes as u32);
                if array.row_bytes > 0 {
                    moving.push((place, pointer, array.row_bytes));
                }
            }
            let at = b.offset_bytes(frame, field);
            b.store(address, at, bytes as u32);
            List { address, moving }
        };
        let arguments = list(self, layout.args(), &batch.arguments);
        let results = list(self, layout.results(), &batch.results);
        InnerFrame { frame, arguments, results }
    }

    /// Emits the pieces from number `first` on, of which the one with a number that is known at run
    /// time is computed. Returns the first row after it.
    fn choose_piece(
        &mut self,
        batch: &Batch<'a>,
        kernels: &'a [Kernels],
        frame: &InnerFrame,
        (number, row, rows): (ValueId, ValueId, ValueId),
        first: usize,
    ) -> Result<ValueId> {
        if first + 1 == batch.pieces.len() {
            return self.piece(batch.pieces[first], &kernels[first], frame, (row, rows));
        }
        let this = self.scope.builder.index(first as i64);
        let is_this = self.scope.builder.compare(Predicate::Equal, number, this);
        let after = self.if_else(
            is_this,
            |entry| Ok(vec![entry.piece(batch.pieces[first], &kernels[first], frame, (row, rows))?]),
            |entry| Ok(vec![entry.choose_piece(batch, kernels, frame, (number, row, rows), first + 1)?]),
        )?;
        Ok(after[0])
    }

    /// Emits the code of a piece from a row on, or from an earlier one if fewer are left.
    fn piece(
        &mut self,
        piece: Piece<'a>,
        kernels: &'a Kernels,
        frame: &InnerFrame,
        (row, rows): (ValueId, ValueId),
    ) -> Result<ValueId> {
        let bytes = self.layout.pointer_bytes();
        let b = &mut self.scope.builder;
        let count = b.index(piece.rows);
        let last = b.sub(rows, count);
        let is_early = b.compare(Predicate::Less, row, last);
        let begin = b.select(is_early, row, last);
        for list in [&frame.arguments, &frame.results] {
            for &(place, pointer, row_bytes) in &list.moving {
                let moved = b.offset(pointer, begin, row_bytes);
                let at = b.offset_bytes(list.address, bytes * place as i64);
                b.store(moved, at, bytes as u32);
            }
        }
        self.run_module(piece.parts, kernels)?;
        Ok(self.scope.builder.add(begin, count))
    }

    /// Emits the code of one of several modules, in a branch of its own.
    pub(super) fn run_module(&mut self, parts: Parts<'a>, kernels: &'a Kernels) -> Result<()> {
        let Parts { module, schedule, assignment, .. } = parts;
        (self.module, self.schedule, self.assignment, self.kernels) = (module, schedule, assignment, kernels);
        self.scope.hoisting_depth = self.scope.builder.depth();
        self.scope.fields.clear();
        self.scope.pointers.clear();
        self.sequence(module.entry(), 0)?;
        self.end_copies(module.entry());
        self.scope.fields.clear();
        self.scope.pointers.clear();
        Ok(())
    }
}

/// The sizes of the pieces of a batch.
struct Steps {
    rows: ValueId,
    /// Address of the row of the table for this batch, and the number of its last entry.
    table: ValueId,
    last: ValueId,
}

impl Steps {
    /// Emits the choice of the largest piece.
    fn new(entry: &mut Entry<'_>, batch: &Batch<'_>, rows: ValueId) -> Self {
        let sizes: Vec<i64> = batch.pieces.iter().map(|piece| piece.rows).collect();
        let costs: Vec<u64> =
            batch.pieces.iter().map(|piece| duration(piece.parts.module, piece.parts.plan)).collect();
        let (mut all, mut starts) = (Vec::new(), Vec::new());
        for largest in 0..sizes.len() {
            starts.push(all.len() as i64);
            all.extend(steps(&sizes[..=largest], &costs[..=largest]));
        }
        let b = &mut entry.scope.builder;
        let table = b.value(Type::PTR, Expression::Bytes(all));
        let (mut start, mut last) = (b.index(0), b.index(sizes[0]));
        for (&size, &at) in sizes.iter().zip(&starts).skip(1) {
            let (size, at) = (b.index(size), b.index(at));
            let fits = b.compare(Predicate::LessEqual, size, rows);
            start = b.select(fits, at, start);
            last = b.select(fits, size, last);
        }
        let table = b.offset(table, start, 1);
        Self { rows, table, last }
    }

    /// Emits the choice of the piece that begins at a row. Returns its number.
    fn next(&self, entry: &mut Entry<'_>, row: ValueId) -> ValueId {
        let b = &mut entry.scope.builder;
        let left = b.sub(self.rows, row);
        let is_many = b.compare(Predicate::Less, self.last, left);
        let at = b.select(is_many, self.last, left);
        let at = b.offset(self.table, at, 1);
        let number = b.load(Type::scalar(ScalarType::I8), at, 1);
        b.convert(ConvertOp::ZeroExtend, number, ScalarType::I64)
    }
}

/// Bytes of weights that a core reads per nanosecond if they do not stay in its caches.
const WEIGHT_BYTES: u64 = 20;

/// Bytes of weights that stay in a core's caches.
const CACHED_BYTES: u64 = 16 << 20;

/// Estimated duration of a planned module in nanoseconds.
pub fn duration(module: &Module, plan: &ModulePlan) -> u64 {
    /// For each kernel and for the module itself.
    const OVERHEAD: u64 = 20;
    let counts = executions(module);
    let of_computation = |(id, plan): (&hlo::ComputationId, &plan::ComputationPlan)| {
        let kernels = plan.instructions.values().filter(|plan| !plan.strategy.has_no_kernel());
        let once: u64 = kernels.map(|plan| plan.work.nanoseconds() + OVERHEAD).sum();
        once.saturating_mul(counts.get(id).copied().flatten().unwrap_or(1))
    };
    let kernels: u64 = plan.computations.iter().map(of_computation).sum();
    let packed = plan.computations.values().flat_map(|plan| plan.instructions.values());
    let weights: u64 = packed.flat_map(|plan| &plan.packed).map(|packed| packed.bytes.len() as u64).sum();
    let reading = if weights > CACHED_BYTES { weights / WEIGHT_BYTES } else { 0 };
    kernels.max(reading) + OVERHEAD
}

/// Returns, for each number of rows that are left, up to the largest size, the piece to compute
/// next. Rows that are left belong to a batch with at least the largest size, so that a piece may
/// begin earlier.
fn steps(sizes: &[i64], costs: &[u64]) -> Vec<u8> {
    let largest = sizes.last().copied().unwrap_or(1);
    let mut best: Vec<(u64, u8)> = vec![(0, 0)];
    for left in 1..=largest {
        let after = |size: i64| best[(left - size).max(0) as usize].0;
        let options = sizes.iter().zip(costs).enumerate();
        let choices = options.map(|(k, (&size, &cost))| (cost.saturating_add(after(size)), k as u8));
        // Of equally good pieces, the largest one.
        best.push(choices.rev().min_by_key(|&(cost, _)| cost).unwrap_or((0, 0)));
    }
    if let Some((_, piece)) = best.last_mut() {
        *piece = sizes.len() as u8 - 1;
    }
    best.into_iter().map(|(_, piece)| piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pieces of a batch.
    fn pieces(sizes: &[i64], costs: &[u64], rows: i64) -> Vec<i64> {
        let largest = sizes.iter().rposition(|&size| size <= rows).expect("a piece fits");
        let table = steps(&sizes[..=largest], &costs[..=largest]);
        let (mut row, mut list) = (0, Vec::new());
        while row < rows {
            let size = sizes[table[(rows - row).min(sizes[largest]) as usize] as usize];
            let begin = row.min(rows - size);
            assert!(begin >= 0, "a piece of {size} rows at {row} of {rows}");
            list.push(size);
            row = begin + size;
        }
        list
    }

    #[test]
    fn the_rest_of_a_batch_is_computed_at_the_lowest_cost() {
        // A row alone costs as much as four together.
        let (sizes, costs) = ([1, 8, 64], [50, 100, 700]);
        assert_eq!(pieces(&sizes, &costs, 1), [1]);
        assert_eq!(pieces(&sizes, &costs, 3), [1, 1, 1]);
        assert_eq!(pieces(&sizes, &costs, 8), [8]);
        assert_eq!(pieces(&sizes, &costs, 9), [8, 1]);
        assert_eq!(pieces(&sizes, &costs, 13), [8, 8]);
        assert_eq!(pieces(&sizes, &costs, 64), [64]);
        assert_eq!(pieces(&sizes, &costs, 32), [8, 8, 8, 8]);
        // The last one begins earlier.
        assert_eq!(pieces(&sizes, &costs, 127), [64, 64]);
        assert_eq!(pieces(&[4, 16], &[10, 30], 7), [4, 4]);
    }

    #[test]
    fn every_batch_is_covered() {
        let (sizes, costs) = ([1, 4, 16, 64], [7, 20, 60, 200]);
        for rows in 1..=300 {
            let list = pieces(&sizes, &costs, rows);
            assert!(list.iter().sum::<i64>() >= rows);
            assert!(list.windows(2).all(|pair| pair[0] >= pair[1]), "{list:?}");
        }
    }
}
