//! Translation of a function's statements to LLVM IR: structured control flow becomes blocks and
//! phis.

mod access_report;
mod addresses;
mod byte_lookups;
mod device;
mod expression;
mod external;
mod fixed_point;
mod float_parts;
mod group_products;
mod memory;
mod ordered_compare;
mod parallel;
mod relaxed_select;
mod saturation;
mod tile_registers;

pub(crate) use addresses::has_addresses;
use addresses::{Addresses, Range};
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, PhiValue, PointerValue};
use nest::{Block, Carried, Statement, ValueId};
use support::{Error, Id, Result};

use crate::llvm::Built;
use crate::module::ModuleTranslator;

/// Straight runs of statements are cut into blocks of at most this length, because LLVM's time
/// grows superlinearly with the size of a block.
const BLOCK_STATEMENTS: usize = 1000;

/// Number of statements that a call counts for, because it may be inlined.
const CALL_STATEMENTS: usize = 16;

/// A function with this many cuts is not optimized, because LLVM would join the blocks again.
const MAX_CUTS: usize = 16;

/// Translator of one function.
pub(crate) struct FunctionTranslator<'m, 'c> {
    pub(crate) module: &'m ModuleTranslator<'c>,
    pub(crate) builder: Builder<'c>,
    pub(crate) source: &'m nest::Function,
    function: FunctionValue<'c>,
    /// Entry block, which contains only the stack slots.
    slots: BasicBlock<'c>,
    values: Vec<Option<BasicValueEnum<'c>>>,
    pub(crate) addresses: Addresses<'c>,
    /// Stack slot for the arguments of a parallel call.
    pub(crate) argument_record: Option<PointerValue<'c>>,
    /// Number of statements in the current block.
    run: usize,
    /// Number of cuts so far.
    cuts: usize,
}

impl<'m, 'c> FunctionTranslator<'m, 'c> {
    /// Prepares the translation of a declared function.
    pub(crate) fn new(
        module: &'m ModuleTranslator<'c>,
        source: &'m nest::Function,
        function: FunctionValue<'c>,
    ) -> Self {
        let mut values = vec![None; source.values.len()];
        // Addresses that a kernel receives are first converted; see `begin_kernel`.
        if !matches!(source.linkage, nest::Linkage::Kernel { .. }) {
            for (parameter, value) in source.parameters.iter().zip(function.get_param_iter()) {
                values[parameter.value.index()] = Some(value);
            }
        }
        Self {
            module,
            builder: module.context.create_builder(),
            source,
            slots: module.context.append_basic_block(function, ""),
            function,
            values,
            addresses: Addresses::new(source.values.len()),
            argument_record: None,
            run: 0,
            cuts: 0,
        }
    }

    /// Emits the body.
    pub(crate) fn translate(mut self) -> Result<()> {
        let body = self.new_block();
        self.builder.position_at_end(body);
        if matches!(self.source.linkage, nest::Linkage::Kernel { .. }) {
            self.begin_kernel()?;
        }
        let results = self.block(&self.source.body)?;
        match self.source.linkage {
            nest::Linkage::Entry => {
                let fine = self.module.context.i32_type().const_zero();
                self.builder.build_return(Some(&fine)).built()?;
            }
            nest::Linkage::Internal | nest::Linkage::Inline | nest::Linkage::Kernel { .. } => {
                self.builder.build_return(None).built()?;
            }
            nest::Linkage::Routine => match &results[..] {
                [result] => drop(self.builder.build_return(Some(result)).built()?),
                results => drop(self.builder.build_aggregate_return(results).built()?),
            },
        }
        self.builder.position_at_end(self.slots);
        self.builder.build_unconditional_branch(body).built()?;
        if self.cuts >= MAX_CUTS && self.module.target.gpu.is_none() {
            self.module.leave_unoptimized(self.function);
        }
        Ok(())
    }

    /// Returns the value of an id that must already be defined.
    pub(crate) fn value(&self, id: ValueId) -> Result<BasicValueEnum<'c>> {
        self.value_if_defined(id)
            .ok_or_else(|| Error::internal(format!("{id} is used before its definition")))
    }

    /// Returns the value of an id if it is already defined.
    pub(crate) fn value_if_defined(&self, id: ValueId) -> Option<BasicValueEnum<'c>> {
        self.values.get(id.index()).copied().flatten()
    }

    /// Returns an integer scalar.
    pub(crate) fn integer(&self, id: ValueId) -> Result<IntValue<'c>> {
        match self.value(id)? {
            BasicValueEnum::IntValue(value) => Ok(value),
            _ => Err(Error::internal(format!("{id} is not an integer"))),
        }
    }

    /// Returns an address.
    pub(crate) fn pointer(&self, id: ValueId) -> Result<PointerValue<'c>> {
        match self.value(id)? {
            BasicValueEnum::PointerValue(value) => Ok(value),
            _ => Err(Error::internal(format!("{id} is not an address"))),
        }
    }

    /// Returns the LLVM type of a value.
    pub(crate) fn ty(&self, id: ValueId) -> BasicTypeEnum<'c> {
        self.module.ty(self.source.values[id])
    }

    fn define(&mut self, id: ValueId, value: BasicValueEnum<'c>) {
        self.values[id.index()] = Some(value);
    }

    pub(crate) fn new_block(&self) -> BasicBlock<'c> {
        self.module.context.append_basic_block(self.function, "")
    }

    pub(crate) fn current_block(&self) -> Result<BasicBlock<'c>> {
        self.builder.get_insert_block().ok_or_else(|| Error::internal("the builder has no current block"))
    }

    pub(crate) fn all(&self, ids: impl IntoIterator<Item = ValueId>) -> Result<Vec<BasicValueEnum<'c>>> {
        ids.into_iter().map(|id| self.value(id)).collect()
    }

    /// Emits a region's statements at the builder's position. Returns the values that it yields.
    fn block(&mut self, block: &Block) -> Result<Vec<BasicValueEnum<'c>>> {
        self.run = 0;
        for statement in &block.statements {
            self.run += match statement {
                Statement::Call { .. } => CALL_STATEMENTS,
                _ => 1,
            };
            if self.run > BLOCK_STATEMENTS {
                self.cut()?;
            }
            self.statement(statement)?;
        }
        self.run = 0;
        self.all(block.yields.iter().copied())
    }

    /// Continues in a new block.
    fn cut(&mut self) -> Result<()> {
        let next = self.new_block();
        self.builder.build_unconditional_branch(next).built()?;
        self.builder.position_at_end(next);
        self.run = 0;
        self.cuts += 1;
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Let(id, nest::Expression::StackSlot { bytes, alignment }) => {
                let slot = self.stack_slot(*bytes, *alignment)?;
                self.define(*id, slot);
            }
            Statement::Let(id, nest::Expression::Offset { pointer, index, scale }) => {
                let address = self.offset(*id, *pointer, *index, *scale)?;
                self.define(*id, address);
            }
            Statement::Let(id, expression) => {
                let value = self.expression(*id, expression)?;
                self.define(*id, value);
            }
            Statement::Store { value, pointer, alignment, mask } => {
                self.store(*value, *pointer, *alignment, *mask)?;
            }
            Statement::For { index, begin, end, step, carried, body } => {
                let (begin, end) = (self.integer(*begin)?, self.integer(*end)?);
                let range = Range { index: *index, begin, end, counter: None };
                self.for_loop(range, *step, carried, body)?;
            }
            Statement::While { carried, condition, body } => self.while_loop(carried, condition, body)?,
            Statement::If { condition, results, then, otherwise } => {
                self.if_else(*condition, results, then, otherwise)?;
            }
            Statement::Call { function, arguments } => {
                let arguments: Vec<_> =
                    self.all(arguments.iter().copied())?.into_iter().map(Into::into).collect();
                let callee = self.module.callee(*function)?;
                let call = self.builder.build_call(callee, &arguments, "").built()?;
                call.set_call_convention(callee.get_call_conventions());
            }
            Statement::Parallel { function, count, arguments } => {
                self.parallel(*function, *count, arguments)?;
                self.run = 0;
            }
            Statement::CallExternal { symbol, arguments, status } => {
                let value = self.call_external(symbol, arguments)?;
                self.define(*status, value);
            }
            Statement::LeaveIf { condition, status } => self.leave_if(*condition, *status)?,
            Statement::CopyBytes { to, from, bytes } => {
                self.copy_bytes(self.pointer(*to)?, self.pointer(*from)?, self.integer(*bytes)?)?;
            }
            Statement::FillBytes { to, byte, bytes } => {
                self.fill_bytes(self.pointer(*to)?, self.integer(*byte)?, self.integer(*bytes)?)?;
            }
            Statement::Prefetch { .. } if self.module.target.gpu.is_some() => {}
            Statement::Prefetch { pointer, cache } => self.prefetch(*pointer, *cache)?,
            Statement::Barrier => self.barrier()?,
            Statement::Tiles(operation) => self.tiles(*operation)?,
        }
        Ok(())
    }

    pub(crate) fn stack_slot(&self, bytes: u64, alignment: u32) -> Result<BasicValueEnum<'c>> {
        let bytes = u32::try_from(bytes).map_err(|_| Error::internal("a stack slot has 4 GiB or more"))?;
        let here = self.current_block()?;
        self.builder.position_at_end(self.slots);
        let slot = self.builder.build_alloca(self.module.context.i8_type().array_type(bytes), "").built()?;
        let instruction = slot
            .as_instruction()
            .ok_or_else(|| Error::internal("LLVM returned an alloca that is not an instruction"))?;
        instruction.set_alignment(alignment).map_err(|e| Error::internal(format!("stack slot: {e}")))?;
        let generic = self.module.context.ptr_type(self.module.generic_space());
        let address = if slot.get_type() == generic {
            slot
        } else {
            self.builder.build_address_space_cast(slot, generic, "").built()?
        };
        self.builder.position_at_end(here);
        Ok(address.into())
    }

    fn phis(&self, ids: impl IntoIterator<Item = ValueId>) -> Result<Vec<PhiValue<'c>>> {
        ids.into_iter().map(|id| self.builder.build_phi(self.ty(id), "").built()).collect()
    }

    /// Emits a loop with its test at the end. An additional test before the loop is omitted if the
    /// loop is known to run at least once.
    fn for_loop(&mut self, range: Range<'c>, step: i64, carried: &[Carried], body: &Block) -> Result<()> {
        let Range { index, begin, end, .. } = range;
        let initial = self.all(carried.iter().map(|c| c.initial))?;
        let trips = trip_count(begin, end, step);
        if trips == Some(0) {
            self.define_all(carried.iter().map(|c| c.result), initial);
            return Ok(());
        }
        if trips == Some(1) {
            self.define(index, begin.into());
            self.define_all(carried.iter().map(|c| c.inner), initial);
            let last = self.block(body)?;
            self.define_all(carried.iter().map(|c| c.result), last);
            return Ok(());
        }
        let before = self.current_block()?;
        let start = self.new_block();
        self.builder.position_at_end(start);
        let is_narrow = self.counts_in_words([begin, end]);
        let counter_type = if is_narrow { self.module.context.i32_type() } else { end.get_type() };
        let counter = self.builder.build_phi(counter_type, "").built()?;
        let inner = self.phis(carried.iter().map(|c| c.inner))?;
        let to_zero = self.counts_to_zero(index, end, body);
        let counted = counter.as_basic_value().into_int_value();
        let counted = if is_narrow {
            self.builder.build_int_s_extend(counted, end.get_type(), "").built()?
        } else {
            counted
        };
        self.define_all(carried.iter().map(|c| c.inner), inner.iter().map(|phi| phi.as_basic_value()));
        let range = Range { counter: to_zero.then_some(counted), ..range };
        let inductions = self.begin_inductions(range, body, before)?;
        let number =
            if to_zero { self.builder.build_int_nsw_add(counted, end, "").built()? } else { counted };
        self.define(index, number.into());
        let last = self.block(body)?;
        self.end_inductions(&inductions, step)?;
        let latch = self.current_block()?;
        let step = counter_type.const_int(step as u64, true);
        let next =
            self.builder.build_int_nsw_add(counter.as_basic_value().into_int_value(), step, "").built()?;
        let limit = if to_zero { counter_type.const_zero() } else { self.as_counter(end, counter_type)? };
        let again = self.builder.build_int_compare(IntPredicate::SLT, next, limit, "").built()?;
        let exit = self.new_block();
        self.builder.build_conditional_branch(again, start, exit).built()?;
        self.builder.position_at_end(before);
        let first = if to_zero { self.builder.build_int_nsw_sub(begin, end, "").built()? } else { begin };
        let first = self.as_counter(first, counter_type)?;
        counter.add_incoming(&[(&first, before), (&next, latch)]);
        for ((phi, initial), last) in inner.iter().zip(&initial).zip(&last) {
            phi.add_incoming(&[(initial, before), (last, latch)]);
        }
        self.builder.position_at_end(before);
        if trips.is_some() {
            self.builder.build_unconditional_branch(start).built()?;
            self.builder.position_at_end(exit);
            self.define_all(carried.iter().map(|c| c.result), last);
            return Ok(());
        }
        let any = self.builder.build_int_compare(IntPredicate::SLT, begin, end, "").built()?;
        self.builder.build_conditional_branch(any, start, exit).built()?;
        self.builder.position_at_end(exit);
        let results = self.phis(carried.iter().map(|c| c.result))?;
        for ((phi, initial), last) in results.iter().zip(&initial).zip(&last) {
            phi.add_incoming(&[(initial, before), (last, latch)]);
        }
        self.define_all(carried.iter().map(|c| c.result), results.iter().map(|phi| phi.as_basic_value()));
        Ok(())
    }

    /// True if words of 32 bits hold all numbers of a loop and the processor has no longer ones.
    /// Addresses need no more.
    fn counts_in_words(&self, range: [IntValue<'c>; 2]) -> bool {
        const FAR: i64 = 1 << 30;
        let is_near = |bound: IntValue<'c>| {
            bound.get_sign_extended_constant().is_some_and(|b| (-FAR..FAR).contains(&b))
        };
        self.module.target.is_microcontroller && range.into_iter().all(is_near)
    }

    /// A bound of a loop in the type of its counter.
    fn as_counter(&self, bound: IntValue<'c>, ty: IntType<'c>) -> Result<IntValue<'c>> {
        if bound.get_type() == ty {
            return Ok(bound);
        }
        self.builder.build_int_truncate(bound, ty, "").built()
    }

    fn while_loop(&mut self, carried: &[Carried], condition: &Block, body: &Block) -> Result<()> {
        let initial = self.all(carried.iter().map(|c| c.initial))?;
        let before = self.current_block()?;
        let start = self.new_block();
        self.builder.build_unconditional_branch(start).built()?;
        self.builder.position_at_end(start);
        let inner = self.phis(carried.iter().map(|c| c.inner))?;
        let current: Vec<_> = inner.iter().map(|phi| phi.as_basic_value()).collect();
        self.define_all(carried.iter().map(|c| c.inner), current.iter().copied());
        let [BasicValueEnum::IntValue(again)] = self.block(condition)?[..] else {
            return Err(Error::internal("expected a loop condition that yields one Bool"));
        };
        let tested = self.current_block()?;
        let run = self.new_block();
        self.builder.position_at_end(run);
        let last = self.block(body)?;
        let latch = self.current_block()?;
        self.builder.build_unconditional_branch(start).built()?;
        for ((phi, initial), last) in inner.iter().zip(&initial).zip(&last) {
            phi.add_incoming(&[(initial, before), (last, latch)]);
        }
        let exit = self.new_block();
        self.builder.position_at_end(tested);
        self.builder.build_conditional_branch(again, run, exit).built()?;
        self.builder.position_at_end(exit);
        self.define_all(carried.iter().map(|c| c.result), current);
        Ok(())
    }

    fn if_else(
        &mut self,
        condition: ValueId,
        results: &[ValueId],
        then: &Block,
        otherwise: &Block,
    ) -> Result<()> {
        let condition = self.integer(condition)?;
        let before = self.current_block()?;
        let then_start = self.new_block();
        self.builder.position_at_end(then_start);
        let then_values = self.block(then)?;
        let then_end = self.current_block()?;
        let otherwise_start = self.new_block();
        self.builder.position_at_end(otherwise_start);
        let otherwise_values = self.block(otherwise)?;
        let otherwise_end = self.current_block()?;
        let exit = self.new_block();
        self.builder.build_unconditional_branch(exit).built()?;
        self.builder.position_at_end(then_end);
        self.builder.build_unconditional_branch(exit).built()?;
        self.builder.position_at_end(before);
        self.builder.build_conditional_branch(condition, then_start, otherwise_start).built()?;
        self.builder.position_at_end(exit);
        let phis = self.phis(results.iter().copied())?;
        for ((phi, a), b) in phis.iter().zip(&then_values).zip(&otherwise_values) {
            phi.add_incoming(&[(a, then_end), (b, otherwise_end)]);
        }
        self.define_all(results.iter().copied(), phis.iter().map(|phi| phi.as_basic_value()));
        Ok(())
    }

    fn define_all(
        &mut self,
        ids: impl IntoIterator<Item = ValueId>,
        values: impl IntoIterator<Item = BasicValueEnum<'c>>,
    ) {
        for (id, value) in ids.into_iter().zip(values) {
            self.define(id, value);
        }
    }
}

/// Returns the trip count of a loop if both bounds are constants.
fn trip_count(begin: IntValue<'_>, end: IntValue<'_>, step: i64) -> Option<u128> {
    let begin = i128::from(begin.get_sign_extended_constant()?);
    let end = i128::from(end.get_sign_extended_constant()?);
    let distance = u128::try_from(end - begin).unwrap_or(0);
    Some(distance.div_ceil(step.unsigned_abs().max(1).into()))
}
