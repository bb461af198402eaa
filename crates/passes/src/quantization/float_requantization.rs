//! Scaling of sums to bytes in `f32`, where it gives the same bytes as fixed-point arithmetic.

use super::edit::Edit;
use super::float_line::{FloatLine, Form, ROUNDER, Starts};
use super::steps::Chain;
use crate::pass::{Changed, Pass};
use crate::query::{executed_computations, is_static};
use crate::simplify::dce;
use hlo::analysis::{ChannelConstant, Range, range};
use hlo::{
    ComparisonDirection, ComparisonType, Computation, ComputationBuilder, ComputationId, InstructionId,
    Module, Op,
};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::BTreeMap;
use support::Result;

/// `convert(clamp(least, rounded(rounded(x * factor >> 31) >> shift) + zero, most)) =>
/// convert(clamp(least, bits(convert(x) * scale + offset + 1.5 * 2^23) - bits(1.5 * 2^23) + zero,
/// most))` for `s32` sums x and results of bytes. The addition rounds to an integer, which is in the
/// lowest bits. An offset with the sign of x rounds halves away from zero. The product of 64 bits
/// takes two instructions for each half of a vector and the roundings several more.
///
/// Both sides never decrease, so at most 255 inputs for each channel, at which the byte changes,
/// determine them. The pass computes these inputs and searches a scale and an offset for which the
/// bytes of these inputs and of those before them are the same. One input for each channel may be
/// corrected. Without success for all channels, the arithmetic stays.
///
/// Exact for every input, where products and sums of `f32` are rounded separately.
pub struct FloatRequantization;

/// Elements below which an array is not worth the search.
const FEW_ELEMENTS: i64 = 64;

/// Operations, of which arithmetic of `f32` saves some.
const FEW_OPERATIONS: usize = 6;

impl Pass for FloatRequantization {
    fn name(&self) -> &'static str {
        "float-requantization"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        let mut functions = None;
        for id in executed_computations(module) {
            let mut ranges = BTreeMap::new();
            let mut has_replaced = false;
            for root in module[id].post_order() {
                let computation = &module[id];
                let known = range(computation, root, &|id| ranges.get(&id).copied());
                ranges.insert(root, known);
                let Some(scaling) = Scaling::of(computation, root, &ranges) else { continue };
                let functions = match functions {
                    Some(functions) => functions,
                    None => *functions.insert(Functions::add(module)?),
                };
                let new = scaling.build(module.computation_mut(id), root, functions);
                module.computation_mut(id).replace_all_uses(root, new);
                ranges.insert(new, known);
                has_replaced = true;
            }
            if has_replaced {
                dce::sweep(module.computation_mut(id));
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// Functions of scalars that change bits.
#[derive(Clone, Copy)]
struct Functions {
    /// The bits of an `f32`.
    bits: ComputationId,
    /// A positive `f32` with the sign of an `s32`.
    with_sign: ComputationId,
}

impl Functions {
    fn add(module: &mut Module) -> Result<Self> {
        let f32 = || Shape::array(PrimitiveType::F32, &[]);
        let s32 = || Shape::array(PrimitiveType::S32, &[]);
        let mut b = ComputationBuilder::new("bits");
        let x = b.parameter("x", f32());
        let root = b.op_with_shape(module, s32(), Op::BitcastConvert {}, &[x])?;
        let bits = module.add_computation(b.finish(root));
        let mut b = ComputationBuilder::new("with_sign");
        let (sign, x) = (b.parameter("sign", s32()), b.parameter("x", f32()));
        let upper = b.constant(Literal::scalar(i32::MIN));
        let sign = b.op_with_shape(module, s32(), Op::And {}, &[sign, upper])?;
        let x = b.op_with_shape(module, s32(), Op::BitcastConvert {}, &[x])?;
        let x = b.op_with_shape(module, s32(), Op::Or {}, &[x, sign])?;
        let root = b.op_with_shape(module, f32(), Op::BitcastConvert {}, &[x])?;
        let with_sign = module.add_computation(b.finish(root));
        Ok(Self { bits, with_sign })
    }
}

/// A scaling in `f32`.
struct Scaling {
    x: InstructionId,
    dimension: Option<usize>,
    form: Form,
    lines: Vec<FloatLine>,
    limits: [i64; 2],
}

impl Scaling {
    /// Finds the scaling whose result is `root`.
    fn of(
        computation: &Computation,
        root: InstructionId,
        ranges: &BTreeMap<InstructionId, Range>,
    ) -> Option<Self> {
        use PrimitiveType::{S8, S32, S64, U8};
        let Op::Convert {} = computation[root].op() else { return None };
        let shape = computation[root].shape().as_array()?;
        let storage = match shape.element_type {
            S8 => [i64::from(i8::MIN), i64::from(i8::MAX)],
            U8 => [0, i64::from(u8::MAX)],
            _ => return None,
        };
        if shape.element_count() < FEW_ELEMENTS || !is_static(computation, root) {
            return None;
        }
        let chain = Chain::of(computation, computation[root].operands()[0])?;
        let x = computation[chain.source].shape().as_array()?;
        if chain.operations() < FEW_OPERATIONS || !matches!(x.element_type, S32 | S64) {
            return None;
        }
        let of_type = [i64::from(i32::MIN), i64::from(i32::MAX)];
        let Range { low, high } = *ranges.get(&chain.source)?;
        let range = [low.unwrap_or(i64::MIN), high.unwrap_or(i64::MAX)];
        let range =
            if x.element_type == S32 { [range[0].max(of_type[0]), range[1].min(of_type[1])] } else { range };
        if range[0] < of_type[0] || range[1] > of_type[1] || range[0] >= range[1] {
            return None;
        }
        let channels = chain.channels();
        let ends = |end: i64| (0..channels).map(|c| chain.result(c, end)).collect::<Option<Vec<_>>>();
        let limits = [*ends(range[0])?.iter().min()?, *ends(range[1])?.iter().max()?];
        if limits[0] < storage[0] || limits[1] > storage[1] || limits[0] == limits[1] {
            return None;
        }
        let mut form = None;
        let mut lines = Vec::new();
        for channel in 0..channels {
            let starts = Starts::of(&chain, channel, range, limits)?;
            let form = *form.get_or_insert_with(|| starts.form());
            lines.push(starts.fit(form)?);
        }
        Some(Self { x: chain.source, dimension: chain.dimension, form: form?, lines, limits })
    }

    /// Adds the instructions that take the place of `root`.
    fn build(
        &self,
        computation: &mut Computation,
        root: InstructionId,
        functions: Functions,
    ) -> InstructionId {
        let shape = computation[root].shape().expect_array().clone();
        let (f32, s32) =
            [PrimitiveType::F32, PrimitiveType::S32].map(|ty| shape.with_element_type(ty)).into();
        let dimensions: Vec<usize> = (0..shape.rank()).collect();
        let map = |to_apply| Op::Map { dimensions: dimensions.clone(), to_apply };
        let of_channels = |value: &dyn Fn(&FloatLine) -> f64| ChannelConstant {
            dimension: self.dimension,
            values: self.lines.iter().map(value).collect(),
        };
        let mut edit = Edit::at(computation, root);
        let x = if edit.computation[self.x].shape().expect_array().element_type == PrimitiveType::S32 {
            self.x
        } else {
            edit.convert(self.x, PrimitiveType::S32)
        };
        let real = edit.convert(x, PrimitiveType::F32);
        let scale = edit.spread(&of_channels(&|line| line.scale.into()), &f32);
        let product = edit.add(Op::Multiply {}, &f32, &[real, scale]);
        let offset = edit.spread(&of_channels(&|line| line.offset.into()), &f32);
        let offset = if self.form.is_mirrored {
            edit.add(map(functions.with_sign), &f32, &[x, offset])
        } else {
            offset
        };
        let sum = edit.add(Op::Add {}, &f32, &[product, offset]);
        let rounder = edit.spread(&ChannelConstant::of_all(ROUNDER.into()), &f32);
        let rounded = edit.add(Op::Add {}, &f32, &[sum, rounder]);
        let bits = edit.add(map(functions.bits), &s32, &[rounded]);
        let zero = ChannelConstant::of_all(f64::from(ROUNDER.to_bits()) - f64::from(self.form.zero));
        let zero = edit.spread(&zero, &s32);
        let mut result = edit.add(Op::Subtract {}, &s32, &[bits, zero]);
        if self.lines.iter().any(|line| line.exception.is_some()) {
            let exception = |line: &FloatLine| line.exception.unwrap_or_default();
            let at = edit.spread(&of_channels(&|line| exception(line).0.into()), &s32);
            let by = edit.spread(&of_channels(&|line| exception(line).1.into()), &s32);
            let none = edit.spread(&ChannelConstant::of_all(0.0), &s32);
            let equal = Op::Compare {
                direction: ComparisonDirection::Eq,
                comparison_type: ComparisonType::default(),
            };
            let is_at = edit.add(equal, &shape.with_element_type(PrimitiveType::Pred), &[x, at]);
            let by = edit.add(Op::Select {}, &s32, &[is_at, by, none]);
            result = edit.add(Op::Add {}, &s32, &[result, by]);
        }
        let scalar = ArrayShape::new(PrimitiveType::S32, &[]);
        let [least, most] = self.limits.map(|end| edit.spread(&ChannelConstant::of_all(end as f64), &scalar));
        let clamped = edit.add(Op::Clamp {}, &s32, &[least, result, most]);
        edit.convert(clamped, shape.element_type)
    }
}
