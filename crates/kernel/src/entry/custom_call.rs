//! Custom calls in the entry. User functions receive a description of their buffers; failed checks
//! leave the entry.
//!
//! The layout matches `tfcompile/custom_call.h`: 64-bit integers first, then addresses, so that no
//! platform inserts padding.

use super::Entry;
use buffers::{Allocation, Slice};
use hlo::custom_call::{CustomCallKind, custom_call};
use hlo::{ComputationId, InstructionId, Module, SizeParameter};
use nest::{Expression, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, ValueId};
use shape::{ArrayShape, PrimitiveType, ShapeIndex};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Status that the entry returns if a failed check asks the caller to abort the process.
pub const ABORT_STATUS: i32 = i32::MIN;

/// Size in bytes of the integers before the addresses, both of a call and of a buffer.
const INTEGER_BYTES: i64 = 24;

/// Maximum number of operands and results of a call: their descriptions are on the stack.
const MAX_BUFFERS: usize = 1024;

/// True if the entry of a module may return early: because of a failed check or a failed user
/// function.
pub(crate) fn may_leave(module: &Module) -> bool {
    let ids = module.post_order();
    ids.iter().any(|&id| module[id].instructions().any(|(_, i)| custom_call(i.op()).is_some()))
}

/// Returns TensorFlow's number of a type.
fn type_number(element_type: PrimitiveType) -> Option<i64> {
    Some(match element_type {
        PrimitiveType::F32 => 1,
        PrimitiveType::F64 => 2,
        PrimitiveType::S32 => 3,
        PrimitiveType::U8 => 4,
        PrimitiveType::S16 => 5,
        PrimitiveType::S8 => 6,
        PrimitiveType::C64 => 8,
        PrimitiveType::S64 => 9,
        PrimitiveType::Pred => 10,
        PrimitiveType::Bf16 => 14,
        PrimitiveType::U16 => 17,
        PrimitiveType::C128 => 18,
        PrimitiveType::F16 => 19,
        PrimitiveType::U32 => 22,
        PrimitiveType::U64 => 23,
        _ => return None,
    })
}

impl Entry<'_> {
    /// Emits a call of a user function, or a check.
    pub(crate) fn custom_call(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
    ) -> Result<()> {
        let module = self.module;
        match custom_call(module[computation][instruction].op()) {
            Some(CustomCallKind::Function { symbol, attributes }) => {
                self.function_call(computation, instruction, symbol, attributes)
            }
            Some(CustomCallKind::Assert { message, aborts }) => {
                self.check(computation, instruction, message, aborts)
            }
            None => Err(Error::internal("expected a custom call with code")),
        }
    }

    /// Emits code that leaves the entry with a message if the operand is false.
    fn check(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        message: &str,
        aborts: bool,
    ) -> Result<()> {
        let operands = self.module[computation][instruction].operands();
        let &[holds] = operands else { return Err(Error::internal("expected a check with one operand")) };
        let slice = self.assignment.slice(computation, holds, &[]);
        let pointer = self.pointer(&slice);
        let b = &mut self.scope.builder;
        let value = b.load(Type::scalar(ScalarType::I8), pointer, 1);
        let zero = b.integer(b.ty(value), 0);
        let fails = b.compare(Predicate::Equal, value, zero);
        let status = if aborts { ABORT_STATUS } else { 1 };
        self.if_then(fails, |entry| {
            let text = text(&mut entry.scope.builder, message);
            entry.store_error(text);
            Ok(())
        })?;
        let status = self.scope.builder.integer(Type::scalar(ScalarType::I32), status.into());
        self.scope.builder.leave_if(fails, status);
        Ok(())
    }

    /// Emits code that leaves the entry, before it writes anything, if a size is out of its range.
    /// Returns the sizes, by their parameters.
    pub(super) fn check_sizes(&mut self) -> Result<BTreeMap<usize, ValueId>> {
        let module = self.module;
        let mut sizes = BTreeMap::new();
        for size in module.size_parameters() {
            let entry = module.entry_computation();
            let name = entry[entry.parameters()[size.parameter]].name().to_owned();
            sizes.insert(size.parameter, self.check_size(size, &name)?);
        }
        Ok(sizes)
    }

    /// Emits the check of one size. Returns the size.
    pub(super) fn check_size(&mut self, size: &SizeParameter, name: &str) -> Result<ValueId> {
        let &SizeParameter { parameter, low, high } = size;
        let pointer =
            self.pointer(&Slice { allocation: Allocation::Parameter(parameter), offset: 0, size: 4 });
        let b = &mut self.scope.builder;
        let value = b.load(Type::scalar(ScalarType::I32), pointer, 4);
        let value = b.convert(nest::ConvertOp::SignExtend, value, ScalarType::I64);
        let (lowest, count) = (b.index(low), b.index(high - low));
        let distance = b.sub(value, lowest);
        // A size below the range is a huge distance.
        let fails = b.compare(Predicate::Above, distance, count);
        let message = format!("{name} is out of range: {low}..{high}");
        self.if_then(fails, |entry| {
            let text = text(&mut entry.scope.builder, &message);
            entry.store_error(text);
            Ok(())
        })?;
        let status = self.scope.builder.integer(Type::scalar(ScalarType::I32), 1);
        self.scope.builder.leave_if(fails, status);
        Ok(value)
    }

    fn store_error(&mut self, message: ValueId) {
        let b = &mut self.scope.builder;
        let at = b.offset_bytes(self.caller, self.layout.error());
        b.store(message, at, self.layout.pointer_bytes() as u32);
    }

    fn function_call(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        symbol: &str,
        attributes: &str,
    ) -> Result<()> {
        let module = self.module;
        let call = &module[computation][instruction];
        let mut inputs = Vec::new();
        for &operand in call.operands() {
            let leaves = module[computation][operand].shape().leaves();
            inputs.extend(leaves.into_iter().map(|(index, shape)| (operand, index, shape.clone())));
        }
        let outputs: Vec<(InstructionId, ShapeIndex, ArrayShape)> =
            call.shape().leaves().into_iter().map(|(index, s)| (instruction, index, s.clone())).collect();
        if inputs.len() + outputs.len() > MAX_BUFFERS {
            return Err(Error::unsupported(format!(
                "the custom call has {} inputs and outputs; at most {MAX_BUFFERS} are supported",
                inputs.len() + outputs.len()
            )));
        }
        let pointer_bytes = self.layout.pointer_bytes();
        let buffer_bytes = INTEGER_BYTES + 2 * pointer_bytes;
        let call_bytes = INTEGER_BYTES + 6 * pointer_bytes;
        let bytes = call_bytes + buffer_bytes * (inputs.len() + outputs.len()) as i64;
        let slot = self
            .scope
            .builder
            .outside(1, |b| b.value(Type::PTR, Expression::StackSlot { bytes: bytes as u64, alignment: 8 }));
        let record = Record { slot, pointer_bytes };
        for (number, (id, index, shape)) in inputs.iter().chain(&outputs).enumerate() {
            let first = call_bytes + buffer_bytes * number as i64;
            let element_type = shape.element_type;
            let type_number = type_number(element_type).ok_or_else(|| {
                Error::unsupported(format!("arrays of {element_type} are not supported in custom calls"))
            })?;
            let sizes = shape.sizes();
            let byte_size = hlo_byte_size(shape);
            for (k, value) in [sizes.len() as i64, type_number, byte_size].into_iter().enumerate() {
                record.integer(&mut self.scope.builder, first + 8 * k as i64, value);
            }
            let slice = self.assignment.slice(computation, *id, index);
            let data = self.pointer(&slice);
            let b = &mut self.scope.builder;
            record.address(b, first + INTEGER_BYTES, data);
            let mut sizes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
            // Scalars also need an address.
            sizes.resize(sizes.len().max(8), 0);
            let sizes = b.value(Type::PTR, Expression::Bytes(sizes));
            record.address(b, first + INTEGER_BYTES + pointer_bytes, sizes);
        }
        let b = &mut self.scope.builder;
        for (k, value) in [call_bytes, inputs.len() as i64, outputs.len() as i64].into_iter().enumerate() {
            record.integer(b, 8 * k as i64, value);
        }
        let metadata = call.metadata();
        let first_input = b.offset_bytes(slot, call_bytes);
        let first_output = b.offset_bytes(slot, call_bytes + buffer_bytes * inputs.len() as i64);
        let node = text(b, &metadata.op_name);
        let op = text(b, &metadata.op_type);
        let attributes = text(b, attributes);
        let failed = text(b, &format!("the function {symbol} of node '{}' failed", metadata.op_name));
        let addresses = [first_input, first_output, node, op, attributes, failed];
        for (k, address) in addresses.into_iter().enumerate() {
            record.address(b, INTEGER_BYTES + pointer_bytes * k as i64, address);
        }
        let status = b.call_external(symbol, vec![slot]);
        let zero = b.integer(b.ty(status), 0);
        let fails = b.compare(Predicate::NotEqual, status, zero);
        self.if_then(fails, |entry| {
            let at = entry.scope.builder.offset_bytes(slot, INTEGER_BYTES + 5 * pointer_bytes);
            let message = entry.scope.builder.load(Type::PTR, at, pointer_bytes as u32);
            entry.store_error(message);
            Ok(())
        })?;
        self.scope.builder.leave_if(fails, status);
        Ok(())
    }
}

/// Size of an array in bytes.
fn hlo_byte_size(shape: &ArrayShape) -> i64 {
    shape.element_count().saturating_mul(shape.element_type.byte_size() as i64)
}

/// Memory that holds the description for the function.
#[derive(Clone, Copy)]
struct Record {
    slot: ValueId,
    pointer_bytes: i64,
}

impl Record {
    fn integer(self, b: &mut FunctionBuilder, offset: i64, value: i64) {
        let at = b.offset_bytes(self.slot, offset);
        let value = b.index(value);
        b.store(value, at, 8);
    }

    fn address(self, b: &mut FunctionBuilder, offset: i64, address: ValueId) {
        let at = b.offset_bytes(self.slot, offset);
        b.store(address, at, self.pointer_bytes as u32);
    }
}

/// Returns the address of a zero-terminated text.
fn text(b: &mut FunctionBuilder, text: &str) -> ValueId {
    let bytes = text.bytes().filter(|&byte| byte != 0).chain([0]).collect();
    b.value(Type::PTR, Expression::Bytes(bytes))
}
