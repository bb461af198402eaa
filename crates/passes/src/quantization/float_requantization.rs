//! Scaling of sums to bytes in `f32`, where it gives the same bytes as fixed-point arithmetic.

use super::edit::Edit;
use super::float_line::{FloatLine, Form, Starts};
use super::float_rounding::{self, FEW_OPERATIONS, Functions};
use super::float_sum::FloatSum;
use super::steps::Chain;
use crate::pass::{Changed, Pass};
use crate::query::{executed_computations, is_static};
use crate::simplify::dce;
use hlo::analysis::{ChannelConstant, Range, range};
use hlo::{ComparisonDirection, ComparisonType, Computation, InstructionId, Module, Op};
use shape::{ArrayShape, PrimitiveType};
use std::collections::BTreeMap;
use support::Result;

/// `convert(clamp(least, rounded(rounded(x * factor >> 31) >> shift) + zero, most)) =>
/// convert(clamp(least, bits(convert(x + near) * scale + offset + 1.5 * 2^23) - bits(1.5 * 2^23) +
/// zero, most))` for `s32` sums x and results of bytes. The addition of `1.5 * 2^23` rounds to an
/// integer, which is in the lowest bits. An offset with the sign of x rounds halves away from zero.
/// Without it, an integer that is added to x brings the products near zero, where `f32` has more
/// places. The product of 64 bits takes two instructions for each half of a vector and the
/// roundings several more.
///
/// Both sides never decrease, so at most 255 inputs for each channel, at which the byte changes,
/// determine them. The pass computes these inputs and searches a scale and an offset for which the
/// bytes of these inputs and of those before them are the same. A few inputs for each channel may
/// be corrected. Without success for all channels, the arithmetic stays.
///
/// Exact for every input, where products and sums of `f32` are rounded separately.
pub struct FloatRequantization;

/// Elements below which an array is not worth the search.
const FEW_ELEMENTS: i64 = 64;

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
                if !may_be_scaled(computation, root) {
                    continue;
                }
                let new = match FloatSum::of(computation, root) {
                    Some(sum) => Replacement::Sum(sum),
                    None => match Scaling::of(computation, root, &ranges) {
                        Some(scaling) => Replacement::Scaling(scaling),
                        None => continue,
                    },
                };
                let functions = match functions {
                    Some(functions) => functions,
                    None => *functions.insert(Functions::add(module)?),
                };
                let computation = module.computation_mut(id);
                let new = match new {
                    Replacement::Scaling(scaling) => scaling.build(computation, root, functions),
                    Replacement::Sum(sum) => sum.build(computation, root, functions),
                };
                computation.replace_all_uses(root, new);
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

/// Arithmetic that takes the place of that on integers.
enum Replacement {
    Scaling(Scaling),
    Sum(FloatSum),
}

/// True for a conversion of many integers to bytes.
fn may_be_scaled(computation: &Computation, id: InstructionId) -> bool {
    let is_conversion = matches!(computation[id].op(), Op::Convert {}) && is_static(computation, id);
    is_conversion
        && computation[id].shape().as_array().is_some_and(|shape| shape.element_count() >= FEW_ELEMENTS)
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
        use PrimitiveType::{S32, S64};
        let shape = computation[root].shape().as_array()?;
        let storage = float_rounding::of_bytes(shape.element_type)?;
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
        let (mut lines, mut most) = (Vec::new(), 0);
        for channel in 0..channels {
            let starts = Starts::of(&chain, channel, range, limits)?;
            let form = *form.get_or_insert_with(|| starts.form());
            // The channel with the most exceptions determines the time of all.
            let line = starts.fit(form, most)?;
            most = most.max(line.exceptions.len());
            lines.push(line);
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
        let (f32, s32, s8) = [PrimitiveType::F32, PrimitiveType::S32, PrimitiveType::S8]
            .map(|ty| shape.with_element_type(ty))
            .into();
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
        let is_shifted = self.lines.iter().any(|line| line.shift != 0);
        let x =
            if is_shifted { plus(&mut edit, x, &of_channels(&|line| line.shift.into()), &s32) } else { x };
        let real = edit.convert(x, PrimitiveType::F32);
        let scale = edit.spread(&of_channels(&|line| line.scale.into()), &f32);
        let product = edit.add(Op::Multiply {}, &f32, &[real, scale]);
        let offset = edit.spread(&of_channels(&|line| line.offset.into()), &f32);
        let offset = if self.form.is_mirrored { functions.with_sign(&mut edit, x, offset) } else { offset };
        let sum = edit.add(Op::Add {}, &f32, &[product, offset]);
        let mut result = functions.rounded(&mut edit, sum, self.form.zero);
        let rounds = self.lines.iter().map(|line| line.exceptions.len()).max().unwrap_or(0);
        for round in 0..rounds {
            let exception = |line: &FloatLine| line.exceptions.get(round).copied().unwrap_or_default();
            let at = |line: &FloatLine| f64::from(exception(line).0) + f64::from(line.shift);
            let at = edit.spread(&of_channels(&at), &s32);
            let by = edit.spread(&of_channels(&|line| exception(line).1.into()), &s8);
            let by = edit.convert(by, PrimitiveType::S32);
            let none = edit.spread(&ChannelConstant::of_all(0.0), &s32);
            let comparison_type = ComparisonType::default();
            let equal = Op::Compare { direction: ComparisonDirection::Eq, comparison_type };
            let is_at = edit.add(equal, &shape.with_element_type(PrimitiveType::Pred), &[x, at]);
            let by = edit.add(Op::Select {}, &s32, &[is_at, by, none]);
            result = edit.add(Op::Add {}, &s32, &[result, by]);
        }
        float_rounding::limited(&mut edit, result, self.limits, shape.element_type)
    }
}

/// Adds integers to `s32` numbers. A bias of these numbers takes them up.
fn plus(edit: &mut Edit<'_>, x: InstructionId, by: &ChannelConstant, shape: &ArrayShape) -> InstructionId {
    let biased = matches!(edit.computation[x].op(), Op::Add {})
        .then(|| ChannelConstant::beside(edit.computation, x))
        .flatten()
        .and_then(|(x, bias)| {
            Some((x, bias.combine(by, |a, b| f64::from((a as i32).wrapping_add(b as i32)))?))
        });
    let (x, by) = biased.unwrap_or_else(|| (x, by.clone()));
    let by = edit.spread(&by, shape);
    edit.add(Op::Add {}, shape, &[x, by])
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::Literal;

    /// Fixed-point scaling of numbers up to half of `rows`, one factor and shift for each of four
    /// columns.
    fn scaling(rows: usize, factors: [i64; 4], shifts: [i64; 4], zero: i64, least: i64) -> String {
        let [factors, shifts] = [factors, shifts].map(|numbers| numbers.map(|n| n.to_string()).join(","));
        let splat = |name: &str, number: i64, ty: &str| {
            format!(
                "  {name}1 = {ty}[] constant({number})\n  \
                 {name} = {ty}[{rows},4] broadcast({name}1), dimensions={{}}\n"
            )
        };
        let vector = |name: &str, numbers: &str| {
            format!(
                "  {name}1 = s64[4] constant({{{numbers}}})\n  \
                 {name} = s64[{rows},4] broadcast({name}1), dimensions={{1}}\n"
            )
        };
        let most = rows / 2;
        let mut text = format!(
            "HloModule m\n\nENTRY main {{\n  p = s32[{rows},4] parameter(0)\n  low = s32[] constant(-{most})\n  \
             high = s32[] constant({most})\n  x = s32[{rows},4] clamp(low, p, high)\n"
        );
        text += &vector("factor", &factors);
        text += &vector("shift", &shifts);
        text += &[("half", 1 << 30), ("bits", 31), ("one", 1), ("none", 0)]
            .map(|(name, number)| splat(name, number, "s64"))
            .concat();
        text += &splat("zero", zero, "s32");
        let op = |name: &str, ty: &str, call: &str| format!("  {name} = {ty}[{rows},4] {call}\n");
        text += &[
            ("wide", "s64", "convert(x)"),
            ("product", "s64", "multiply(wide, factor)"),
            ("nudged", "s64", "add(product, half)"),
            ("rough", "s64", "shift-right-arithmetic(nudged, bits)"),
            ("power", "s64", "shift-left(one, shift)"),
            ("middle", "s64", "shift-right-arithmetic(power, one)"),
            ("raised", "s64", "add(rough, middle)"),
            ("below", "pred", "compare(rough, none), direction=LT"),
            ("lower", "s64", "select(below, one, none)"),
            ("rest", "s64", "subtract(raised, lower)"),
            ("rounded", "s64", "shift-right-arithmetic(rest, shift)"),
            ("narrow", "s32", "convert(rounded)"),
            ("moved", "s32", "add(narrow, zero)"),
        ]
        .map(|(name, ty, call)| op(name, ty, call))
        .concat();
        text += &format!("  least = s32[] constant({least})\n  most = s32[] constant(127)\n");
        text += &op("clamped", "s32", "clamp(least, moved, most)");
        text + &op("ROOT y", "s8", "convert(clamped)") + "}\n"
    }

    /// Runs the pass, and checks that all numbers have the same results in each column. Returns the
    /// number of exceptions for each column, `None` if the arithmetic stays.
    fn exceptions(text: &str, rows: i32) -> Option<usize> {
        let mut module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let numbers: Vec<i32> = (0..4 * rows).map(|k| k / 4 - rows / 2).collect();
        let x = Literal::from_elements(&[rows.into(), 4], &numbers);
        let evaluate = |module: &Module| {
            evaluator::evaluate(module, std::slice::from_ref(&x)).expect("a value").to_vec::<i8>()
        };
        let want = evaluate(&module);
        let changed = FloatRequantization.run(&mut module).expect("it runs");
        hlo::verify(&module).expect("a valid module");
        assert_eq!(evaluate(&module), want, "{text}");
        let entry = module.entry_computation();
        let is_exception = |op: &Op| matches!(op, Op::Select {});
        let count = entry.instructions().filter(|(_, i)| is_exception(i.op())).count();
        (changed == Changed::Yes).then_some(count)
    }

    #[test]
    fn lines_have_the_results_of_chains() {
        const ROWS: i32 = 400_001;
        let mut state = 1u32;
        let mut random = |count: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            i64::from((state >> 8) % count)
        };
        let (mut found, mut corrected) = (0, 0);
        for round in 0..12 {
            let factors = [(); 4].map(|()| (1 << 30) + random(1 << 24) * 60 + 1);
            let shifts = [(); 4].map(|()| 7 + random(4));
            let zero = if round % 2 == 0 { -128 } else { random(60) - 30 };
            let module = hlo::parse(&scaling(ROWS as usize, factors, shifts, zero, -128)).expect("a module");
            let computation = module.entry_computation();
            let ranges =
                computation.post_order().into_iter().map(|id| (id, range(computation, id, &|_| None)));
            let root = computation.root();
            let Some(scaling) = Scaling::of(computation, root, &ranges.collect()) else { continue };
            let chain = Chain::of(computation, computation[root].operands()[0]).expect("steps");
            for (channel, line) in scaling.lines.iter().enumerate() {
                corrected += line.exceptions.len();
                for x in -ROWS / 2..=ROWS / 2 {
                    let exception = line.exceptions.iter().find(|(at, _)| *at == x);
                    let result = line.rounded(scaling.form, x.into()) + exception.map_or(0, |e| e.1.into());
                    let result = result.clamp(scaling.limits[0], scaling.limits[1]);
                    assert_eq!(Some(result), chain.result(channel, x.into()), "{x} of {line:?}");
                }
            }
            found += 1;
        }
        assert!(found >= 8 && corrected > 0, "{found} of 12 layers, {corrected} corrections");
    }

    #[test]
    fn results_are_the_same_after_the_pass() {
        let (factors, shifts) = ([1_234_567_891, 1_999_999_973, 1_073_746_877, 2_147_480_003], [6, 7, 8, 9]);
        assert!(exceptions(&scaling(20_001, factors, shifts, 3, -128), 20_001).is_some());
        assert!(exceptions(&scaling(20_001, factors, shifts, -128, -128), 20_001).is_some());
    }

    #[test]
    fn inputs_halfway_between_results_stay() {
        assert_eq!(exceptions(&scaling(5_001, [1 << 30; 4], [5; 4], 3, -128), 5_001), None);
        assert!(exceptions(&scaling(5_001, [(1 << 30) + 12_345; 4], [5; 4], 3, -128), 5_001).is_some());
    }
}
