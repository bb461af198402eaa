//! Translation of expressions to LLVM instructions. Fast-math flags are never set. A multiply-add
//! is fused only if written as such and if the target has the instruction.

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, InstructionOpcode, IntValue, VectorValue,
};
use inkwell::{FloatPredicate, IntPredicate};
use nest::{BinaryOp, Constant, ConvertOp, Expression, Predicate, ScalarType, Type, UnaryOp, ValueId};
use support::{Error, Result};

use super::FunctionTranslator;
use super::float_parts;
use crate::llvm::Built;
use crate::module::vector_of;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits the instructions of an expression, which defines the value `id`.
    pub(crate) fn expression(&self, id: ValueId, expression: &Expression) -> Result<BasicValueEnum<'c>> {
        let ty = self.source.values[id];
        match expression {
            Expression::Constant(constant) => self.constant(ty, *constant),
            Expression::Binary(BinaryOp::Scale, a, b) => self.scale(ty, *a, *b),
            Expression::Binary(BinaryOp::MultiplyFixed, a, b) => self.multiply_fixed(ty, *a, *b),
            Expression::Unary(op, a) if float_parts::is_part(*op) => self.float_part(ty, *op, *a),
            Expression::Unary(op, a) => self.unary(*op, self.value(*a)?),
            Expression::Binary(op, a, b) => {
                let opcode = binary_opcode(*op, ty.scalar);
                self.builder.build_binop(opcode, self.value(*a)?, self.value(*b)?, "").built()
            }
            Expression::MultiplyAdd(a, b, c) => {
                let operands = [self.value(*a)?.into(), self.value(*b)?.into(), self.value(*c)?.into()];
                // Devices have the instruction. SPIR-V would turn `fmuladd` into a less accurate
                // one.
                let name = if self.module.target.gpu.is_some() { "llvm.fma" } else { "llvm.fmuladd" };
                self.call(name, &[self.ty(id)], &operands)
            }
            Expression::GroupMultiplyAdd { kind, a, b, c } => self.group_multiply_add(*kind, *a, *b, *c),
            Expression::ByteLookup { table, index } => self.byte_lookup(table, *index),
            Expression::MatrixMultiplyAdd { kind, a, b, c } => self.matrix_multiply_add(*kind, *a, *b, *c),
            Expression::Compare(predicate, a, b) => {
                let scalar = self.source.values[*a].scalar;
                self.compare(*predicate, scalar, self.value(*a)?, self.value(*b)?)
            }
            Expression::Select(condition, a, b) => {
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                match self.value(*condition)? {
                    BasicValueEnum::IntValue(c) => self.builder.build_select(c, a, b, "").built(),
                    BasicValueEnum::VectorValue(c) if self.is_select_relaxed(a.get_type()) => {
                        Ok(self.relaxed_select(c, a.into_vector_value(), b.into_vector_value())?.into())
                    }
                    BasicValueEnum::VectorValue(c) => self.builder.build_select(c, a, b, "").built(),
                    _ => Err(Error::internal("expected a Bool condition")),
                }
            }
            Expression::Convert(op, a) => self.convert(*op, *a, id),
            Expression::Splat(a) => self.splat(self.value(*a)?, ty.lanes),
            Expression::Extract(vector, lane) => self.extract(self.vector(*vector)?, *lane),
            Expression::Insert(vector, lane, scalar) => {
                let (vector, scalar) = (self.vector(*vector)?, self.value(*scalar)?);
                Ok(self
                    .builder
                    .build_insert_element(vector, scalar, self.lane_number(*lane), "")
                    .built()?
                    .into())
            }
            Expression::Shuffle(a, b, lanes) => self.shuffle(*a, *b, lanes),
            Expression::Iota => Ok(self.iota(ty)),
            Expression::Load { pointer, alignment, mask } => self.load(id, *pointer, *alignment, *mask),
            Expression::Offset { .. } | Expression::StackSlot { .. } => {
                Err(Error::internal("unexpected address or stack slot in an expression"))
            }
            Expression::Bytes(bytes) => Ok(self.module.constant_bytes(bytes).into()),
            Expression::FunctionAddress(function) => {
                Ok(self.module.callee(*function)?.as_global_value().as_pointer_value().into())
            }
            Expression::CycleCounter => self.call(self.module.clock()?, &[], &[]),
            Expression::Thread(index) => self.thread_index(*index),
            Expression::WorkgroupMemory { bytes, alignment } => self.workgroup_memory(*bytes, *alignment),
        }
    }

    /// Calls an intrinsic function that returns a value.
    pub(crate) fn call(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        operands: &[BasicMetadataValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>> {
        let intrinsic = self.module.intrinsic(name, types)?;
        let call = self.builder.build_call(intrinsic, operands, "").built()?;
        call.try_as_basic_value()
            .basic()
            .ok_or_else(|| Error::internal(format!("intrinsic '{name}' returns no value")))
    }

    pub(crate) fn vector(&self, id: ValueId) -> Result<VectorValue<'c>> {
        match self.value(id)? {
            BasicValueEnum::VectorValue(value) => Ok(value),
            _ => Err(Error::internal(format!("{id} is not a vector"))),
        }
    }

    pub(crate) fn lane_number(&self, lane: u32) -> IntValue<'c> {
        self.module.context.i64_type().const_int(u64::from(lane), false)
    }

    fn constant(&self, ty: Type, constant: Constant) -> Result<BasicValueEnum<'c>> {
        let scalar: BasicValueEnum<'c> = match (self.module.ty(Type::scalar(ty.scalar)), constant) {
            (BasicTypeEnum::IntType(t), Constant::Integer(i)) => t.const_int(i as u64, true).into(),
            (BasicTypeEnum::IntType(t), Constant::FloatBits(bits)) => t.const_int(bits, false).into(),
            (BasicTypeEnum::FloatType(t), Constant::FloatBits(bits)) => {
                // The bits are converted as an integer, which preserves a NaN's payload.
                let integer = if ty.scalar == ScalarType::F32 {
                    self.module.context.i32_type().const_int(bits, false)
                } else {
                    self.module.context.i64_type().const_int(bits, false)
                };
                self.builder.build_cast(InstructionOpcode::BitCast, integer, t, "").built()?
            }
            (BasicTypeEnum::FloatType(t), Constant::Integer(i)) => t.const_float(i as f64).into(),
            (other, _) => other.const_zero(),
        };
        Ok(if ty.lanes == 1 { scalar } else { splat_constant(scalar, ty.lanes) })
    }

    fn iota(&self, ty: Type) -> BasicValueEnum<'c> {
        let BasicTypeEnum::IntType(scalar) = self.module.ty(Type::scalar(ty.scalar)) else {
            return self.module.ty(ty).const_zero();
        };
        if ty.lanes == 1 {
            return scalar.const_zero().into();
        }
        let lanes: Vec<_> = (0..u64::from(ty.lanes)).map(|i| scalar.const_int(i, false)).collect();
        VectorType::const_vector(&lanes).into()
    }

    fn unary(&self, op: UnaryOp, a: BasicValueEnum<'c>) -> Result<BasicValueEnum<'c>> {
        let ty = a.get_type();
        let simple = |name: &str| self.call(name, &[ty], &[a.into()]);
        match op {
            UnaryOp::Negate => match a {
                BasicValueEnum::VectorValue(v) => Ok(self.builder.build_float_neg(v, "").built()?.into()),
                BasicValueEnum::FloatValue(v) => Ok(self.builder.build_float_neg(v, "").built()?.into()),
                _ => Err(Error::internal("expected a float operand of negate")),
            },
            UnaryOp::Abs => simple("llvm.fabs"),
            UnaryOp::Sqrt => simple("llvm.sqrt"),
            UnaryOp::Floor => simple("llvm.floor"),
            UnaryOp::Ceil => simple("llvm.ceil"),
            UnaryOp::Truncate => simple("llvm.trunc"),
            UnaryOp::RoundEven => simple("llvm.roundeven"),
            UnaryOp::Not => match a {
                BasicValueEnum::VectorValue(v) => Ok(self.builder.build_not(v, "").built()?.into()),
                BasicValueEnum::IntValue(v) => Ok(self.builder.build_not(v, "").built()?.into()),
                _ => Err(Error::internal("expected an integer operand of not")),
            },
            UnaryOp::CountLeadingZeros => {
                let zero_is_defined = self.module.context.bool_type().const_zero();
                self.call("llvm.ctlz", &[ty], &[a.into(), zero_is_defined.into()])
            }
            UnaryOp::PopulationCount => simple("llvm.ctpop"),
            UnaryOp::Exponent
            | UnaryOp::Mantissa
            | UnaryOp::ReciprocalEstimate
            | UnaryOp::ReciprocalRootEstimate => {
                Err(Error::internal("unexpected float part in a unary expression"))
            }
        }
    }

    fn compare(
        &self,
        predicate: Predicate,
        scalar: ScalarType,
        a: BasicValueEnum<'c>,
        b: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        let builder = &self.builder;
        if scalar.is_float() {
            let predicate = float_predicate(predicate)?;
            return match (a, b) {
                (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                    Ok(self.ordered_compare(predicate, a, b)?.into())
                }
                (BasicValueEnum::FloatValue(a), BasicValueEnum::FloatValue(b)) => {
                    Ok(builder.build_float_compare(predicate, a, b, "").built()?.into())
                }
                _ => Err(Error::internal("the operands of a comparison have different types")),
            };
        }
        let predicate = integer_predicate(predicate);
        match (a, b) {
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                Ok(builder.build_int_compare(predicate, a, b, "").built()?.into())
            }
            (BasicValueEnum::IntValue(a), BasicValueEnum::IntValue(b)) => {
                Ok(builder.build_int_compare(predicate, a, b, "").built()?.into())
            }
            (BasicValueEnum::PointerValue(a), BasicValueEnum::PointerValue(b)) => {
                Ok(builder.build_int_compare(predicate, a, b, "").built()?.into())
            }
            _ => Err(Error::internal("the operands of a comparison have different types")),
        }
    }

    fn convert(&self, op: ConvertOp, from: ValueId, to: ValueId) -> Result<BasicValueEnum<'c>> {
        let (a, ty) = (self.value(from)?, self.ty(to));
        let scalars = (self.source.values[from].scalar, self.source.values[to].scalar);
        let f16 = || -> BasicTypeEnum<'c> {
            let (scalar, lanes) = (self.module.context.f16_type(), self.source.values[to].lanes);
            if lanes == 1 { scalar.into() } else { scalar.vec_type(lanes).into() }
        };
        match (op, scalars) {
            (ConvertOp::FloatExtend, (ScalarType::I16, _)) => {
                let halves = self.builder.build_bit_cast(a, f16(), "").built()?;
                return self.builder.build_cast(InstructionOpcode::FPExt, halves, ty, "").built();
            }
            (ConvertOp::FloatTruncate, (_, ScalarType::I16)) => {
                let halves = self.builder.build_cast(InstructionOpcode::FPTrunc, a, f16(), "").built()?;
                return self.builder.build_bit_cast(halves, ty, "").built();
            }
            _ => {}
        }
        let opcode = match op {
            ConvertOp::SignExtend => InstructionOpcode::SExt,
            ConvertOp::ZeroExtend => InstructionOpcode::ZExt,
            ConvertOp::Truncate => InstructionOpcode::Trunc,
            ConvertOp::SignedToFloat => InstructionOpcode::SIToFP,
            ConvertOp::UnsignedToFloat => InstructionOpcode::UIToFP,
            ConvertOp::FloatExtend => InstructionOpcode::FPExt,
            ConvertOp::FloatTruncate => InstructionOpcode::FPTrunc,
            ConvertOp::FloatToSigned => return self.float_to_integer(true, a, ty),
            ConvertOp::FloatToUnsigned => return self.float_to_integer(false, a, ty),
            ConvertOp::Bitcast => match scalars {
                (ScalarType::Ptr, ScalarType::Ptr) => return Ok(a),
                (ScalarType::Ptr, _) => InstructionOpcode::PtrToInt,
                (_, ScalarType::Ptr) => InstructionOpcode::IntToPtr,
                _ => InstructionOpcode::BitCast,
            },
        };
        self.builder.build_cast(opcode, a, ty, "").built()
    }

    /// Broadcasts a scalar to every lane.
    fn splat(&self, scalar: BasicValueEnum<'c>, lanes: u32) -> Result<BasicValueEnum<'c>> {
        if lanes == 1 {
            return Ok(scalar);
        }
        if scalar.is_const() {
            return Ok(splat_constant(scalar, lanes));
        }
        let one = self.as_vector(scalar, lanes)?;
        let first_lane = self.module.context.i32_type().vec_type(lanes).const_zero();
        Ok(self
            .builder
            .build_shuffle_vector(one, one.get_type().get_poison(), first_lane, "")
            .built()?
            .into())
    }

    /// Returns a vector whose lane 0 is the scalar.
    pub(crate) fn as_vector(&self, scalar: BasicValueEnum<'c>, lanes: u32) -> Result<VectorValue<'c>> {
        let BasicTypeEnum::VectorType(ty) = vector_of(scalar.get_type(), lanes) else {
            return Err(Error::internal("invalid number of vector lanes"));
        };
        self.builder.build_insert_element(ty.get_poison(), scalar, self.lane_number(0), "").built()
    }

    pub(crate) fn extract(&self, vector: VectorValue<'c>, lane: u32) -> Result<BasicValueEnum<'c>> {
        self.builder.build_extract_element(vector, self.lane_number(lane), "").built()
    }

    fn shuffle(&self, a: ValueId, b: ValueId, lanes: &[u32]) -> Result<BasicValueEnum<'c>> {
        let as_vector = |id| match self.value(id)? {
            BasicValueEnum::VectorValue(v) => Ok(v),
            scalar => self.as_vector(scalar, 1),
        };
        let (a, b) = (as_vector(a)?, as_vector(b)?);
        if let &[lane] = lanes {
            let size = a.get_type().get_size();
            return if lane < size { self.extract(a, lane) } else { self.extract(b, lane - size) };
        }
        let i32 = self.module.context.i32_type();
        let mask: Vec<_> = lanes.iter().map(|&lane| i32.const_int(u64::from(lane), false)).collect();
        let mask = VectorType::const_vector(&mask);
        Ok(self.builder.build_shuffle_vector(a, b, mask, "").built()?.into())
    }
}

fn splat_constant(scalar: BasicValueEnum<'_>, lanes: u32) -> BasicValueEnum<'_> {
    VectorType::const_vector(&vec![scalar; lanes as usize]).into()
}

fn binary_opcode(op: BinaryOp, scalar: ScalarType) -> InstructionOpcode {
    match (op, scalar.is_float()) {
        (BinaryOp::Add, true) => InstructionOpcode::FAdd,
        (BinaryOp::Add, false) => InstructionOpcode::Add,
        (BinaryOp::Subtract, true) => InstructionOpcode::FSub,
        (BinaryOp::Subtract, false) => InstructionOpcode::Sub,
        (BinaryOp::Multiply, true) => InstructionOpcode::FMul,
        (BinaryOp::Multiply | BinaryOp::MultiplyFixed, _) => InstructionOpcode::Mul,
        (BinaryOp::Divide | BinaryOp::Scale, _) => InstructionOpcode::FDiv,
        (BinaryOp::DivideSigned, _) => InstructionOpcode::SDiv,
        (BinaryOp::DivideUnsigned, _) => InstructionOpcode::UDiv,
        (BinaryOp::RemainderSigned, _) => InstructionOpcode::SRem,
        (BinaryOp::RemainderUnsigned, _) => InstructionOpcode::URem,
        (BinaryOp::And, _) => InstructionOpcode::And,
        (BinaryOp::Or, _) => InstructionOpcode::Or,
        (BinaryOp::Xor, _) => InstructionOpcode::Xor,
        (BinaryOp::ShiftLeft, _) => InstructionOpcode::Shl,
        (BinaryOp::ShiftRightLogical, _) => InstructionOpcode::LShr,
        (BinaryOp::ShiftRightArithmetic, _) => InstructionOpcode::AShr,
    }
}

fn float_predicate(predicate: Predicate) -> Result<FloatPredicate> {
    Ok(match predicate {
        Predicate::Equal => FloatPredicate::OEQ,
        Predicate::NotEqual => FloatPredicate::UNE,
        Predicate::Less => FloatPredicate::OLT,
        Predicate::LessEqual => FloatPredicate::OLE,
        Predicate::Greater => FloatPredicate::OGT,
        Predicate::GreaterEqual => FloatPredicate::OGE,
        Predicate::Below | Predicate::BelowEqual | Predicate::Above | Predicate::AboveEqual => {
            return Err(Error::internal("unexpected unsigned comparison of floats"));
        }
    })
}

fn integer_predicate(predicate: Predicate) -> IntPredicate {
    match predicate {
        Predicate::Equal => IntPredicate::EQ,
        Predicate::NotEqual => IntPredicate::NE,
        Predicate::Less => IntPredicate::SLT,
        Predicate::LessEqual => IntPredicate::SLE,
        Predicate::Greater => IntPredicate::SGT,
        Predicate::GreaterEqual => IntPredicate::SGE,
        Predicate::Below => IntPredicate::ULT,
        Predicate::BelowEqual => IntPredicate::ULE,
        Predicate::Above => IntPredicate::UGT,
        Predicate::AboveEqual => IntPredicate::UGE,
    }
}
