//! Random HLO modules over the opcodes with code. The verifier accepts them, and they depend only
//! on the seed.
//!
//! A `Writer` appends one step after another, each consisting of one or more instructions of a
//! family. Instructions that inference rejects are skipped. Each value is marked as exact if
//! correct code and the evaluator must agree on its bits. Instructions that turn a rounding
//! difference into a different answer (the order of a sort, an index) take only exact values.

mod contraction;
mod control;
mod decomposition;
mod elementwise;
mod indexing;
mod movement;
mod quantized;
mod reduction;

pub use elementwise::COMPLEX;
pub use quantized::quantized_module;

use crate::draw::{Draw, Numbers};
use hlo::{AliasKind, ComputationBuilder, ComputationId, InputOutputAlias, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use std::collections::BTreeSet;

/// Maximum number of elements of a value, except in graphs meant to have several tasks.
const MOST_ELEMENTS: i64 = 2500;

/// Generates a module of about `size` instructions.
pub fn module(seed: u64, size: usize) -> Module {
    let mut draw = Draw::new(seed);
    let mut module = Module::new(format!("graph_{seed}"));
    let most = if draw.once_in(25) { 60_000 } else { MOST_ELEMENTS };
    let mut parameters = Vec::new();
    for _ in 0..1 + draw.below(4) {
        parameters.push(shape(&mut draw, most));
    }
    // Operands with the same shape can be combined, so duplicate a shape.
    if draw.once_in(2) {
        parameters.push(parameters[0].clone());
    }
    let mut writer = Writer::new(&mut module, draw, "main", most);
    for (number, shape) in parameters.iter().enumerate() {
        let id = writer.builder.parameter(&format!("p{number}"), shape.clone());
        writer.keep(id, true);
    }
    writer.write(size, 2);
    let (results, mut draw) = (writer.results(), writer.draw.fork());
    let root = writer.builder.op(writer.module, Op::Tuple {}, &results).expect("a tuple accepts any operand");
    let computation = writer.builder.finish(root);
    let entry = module.add_computation(computation);
    module.set_entry(entry);
    alias(&mut module, &mut draw);
    module
}

fn shape(draw: &mut Draw, most: i64) -> Shape {
    let (element_type, rank) = (draw.element_type(), draw.rank());
    let mut sizes = draw.sizes(rank, most);
    if most > MOST_ELEMENTS && rank > 0 && draw.once_in(2) {
        let at = draw.below(rank);
        sizes[at] = draw.choose(&[127, 200, 256, 301]);
    }
    let count: i64 = sizes.iter().product();
    if count > most {
        sizes = vec![most];
    }
    Shape::array(element_type, &sizes)
}

/// Aliases some results to parameters of the same shape, like updated variables.
fn alias(module: &mut Module, draw: &mut Draw) {
    if !draw.once_in(3) {
        return;
    }
    let entry = module.entry_computation().program_shape();
    let results = entry.result.as_tuple().unwrap_or_default().to_vec();
    let (mut aliases, mut used) = (Vec::new(), BTreeSet::new());
    for (k, result) in results.iter().enumerate() {
        let fits = |(n, p): &(usize, &Shape)| *p == result && !used.contains(n);
        let parameter = entry.parameters.iter().enumerate().find(fits).map(|(n, _)| n);
        if let Some(parameter_number) = parameter {
            used.insert(parameter_number);
            aliases.push(InputOutputAlias {
                output_index: vec![k],
                parameter_number,
                parameter_index: Vec::new(),
                kind: AliasKind::Must,
            });
        }
    }
    module.set_input_output_alias(aliases);
}

/// A computation under construction.
pub(crate) struct Writer<'m> {
    module: &'m mut Module,
    draw: Draw,
    builder: ComputationBuilder,
    arrays: Vec<InstructionId>,
    exact: BTreeSet<InstructionId>,
    most: i64,
}

impl<'m> Writer<'m> {
    fn new(module: &'m mut Module, draw: Draw, name: &str, most: i64) -> Self {
        let builder = ComputationBuilder::new(name);
        Self { module, draw, builder, arrays: Vec::new(), exact: BTreeSet::new(), most }
    }

    /// Appends steps until there are `size` instructions, nesting control flow up to `depth`.
    fn write(&mut self, size: usize, depth: usize) {
        // Some steps fit none of the available values and add nothing.
        for _ in 0..8 * size {
            if self.builder.computation().id_count() >= size {
                return;
            }
            let x = self.any();
            self.step(x, depth);
        }
    }

    fn step(&mut self, x: InstructionId, depth: usize) -> Option<InstructionId> {
        let array = self.array(x);
        match self.draw.below(40) {
            0..=4 => self.unary(x, &array),
            5..=11 => self.binary(x, &array),
            12 => self.ternary(x, &array),
            13 | 14 => self.convert(x, &array),
            15..=21 => self.movement(x, &array),
            22 | 23 => self.reduce(x, &array),
            24 => self.reduce_window(x, &array),
            25 => self.sort(x, &array),
            26 => self.variadic_reduce(x, &array),
            27 if self.draw.once_in(2) => self.long_dot(x, &array),
            27 | 28 => self.dot(x, &array),
            29 | 30 => self.convolution(x, &array),
            31 => self.dynamic_slice(x, &array),
            32 => self.gather(x, &array),
            33 => self.scatter(x, &array),
            34 => self.select_and_scatter(x, &array),
            35 => self.decomposition(x, &array),
            36 => self.rows(x, &array),
            37 => self.map(x, &array),
            _ => self.control_flow(x, &array, depth),
        }
    }

    /// Returns the newest values and some others.
    fn results(&mut self) -> Vec<InstructionId> {
        let count = self.arrays.len();
        let mut results: Vec<InstructionId> = self.arrays[count - count.min(3)..].to_vec();
        if self.draw.once_in(3) {
            results.push(self.draw.choose(&self.arrays.clone()));
        }
        results
    }

    /// Returns a value, usually one of the newest.
    fn any(&mut self) -> InstructionId {
        let count = self.arrays.len();
        let back = if self.draw.once_in(3) { self.draw.below(count) } else { self.draw.below(count.min(4)) };
        self.arrays[count - 1 - back]
    }

    fn array(&self, id: InstructionId) -> ArrayShape {
        self.builder.shape(id).expect_array().clone()
    }

    fn is_exact(&self, id: InstructionId) -> bool {
        self.exact.contains(&id)
    }

    /// Adds an instruction whose shape is inferred, or returns `None` if the operands do not fit.
    fn add(&mut self, op: Op, operands: &[InstructionId]) -> Option<InstructionId> {
        let exact = self.stays_exact(&op, operands);
        let id = self.builder.op(self.module, op, operands).ok()?;
        let exact = exact || (self.is_whole(id) && self.all_exact(operands));
        self.keep(id, exact)
    }

    /// Adds an instruction with the given shape.
    fn add_shaped(&mut self, shape: ArrayShape, op: Op, operands: &[InstructionId]) -> Option<InstructionId> {
        if shape.element_count() > self.most {
            return None;
        }
        let exact = self.stays_exact(&op, operands);
        let id = self.builder.op_with_shape(self.module, shape.into(), op, operands).ok()?;
        let exact = exact || (self.is_whole(id) && self.all_exact(operands));
        self.keep(id, exact)
    }

    fn all_exact(&self, operands: &[InstructionId]) -> bool {
        operands.iter().all(|o| self.exact.contains(o))
    }

    /// True for values without rounding: integers and booleans.
    fn is_whole(&self, id: InstructionId) -> bool {
        let whole = |t: PrimitiveType| t.is_integer() || t == PrimitiveType::Pred;
        self.builder.shape(id).leaves().iter().all(|(_, array)| whole(array.element_type))
    }

    fn stays_exact(&self, op: &Op, operands: &[InstructionId]) -> bool {
        let moves = matches!(
            op,
            Op::Abs {}
                | Op::Bitcast {}
                | Op::BitcastConvert {}
                | Op::Broadcast { .. }
                | Op::Ceil {}
                | Op::Clamp {}
                | Op::Compare { .. }
                | Op::Concatenate { .. }
                | Op::Convert {}
                | Op::Copy {}
                | Op::DynamicSlice { .. }
                | Op::DynamicUpdateSlice {}
                | Op::Floor {}
                | Op::Gather { .. }
                | Op::GetTupleElement { .. }
                | Op::Iota { .. }
                | Op::Maximum {}
                | Op::Minimum {}
                | Op::Negate {}
                | Op::Pad { .. }
                | Op::Reshape {}
                | Op::Reverse { .. }
                | Op::RngBitGenerator { .. }
                | Op::RoundNearestAfz {}
                | Op::RoundNearestEven {}
                | Op::Select {}
                | Op::Slice { .. }
                | Op::Sort { .. }
                | Op::TopK { .. }
                | Op::Transpose { .. }
        );
        let is_complex_abs = matches!(op, Op::Abs {})
            && operands.iter().any(|&o| {
                self.builder.shape(o).as_array().is_some_and(|array| array.element_type.is_complex())
            });
        moves && !is_complex_abs && self.all_exact(operands)
    }

    /// Registers arrays of moderate magnitude and size; for a tuple, each element.
    fn keep(&mut self, id: InstructionId, exact: bool) -> Option<InstructionId> {
        if exact {
            self.exact.insert(id);
        }
        match self.builder.shape(id).clone() {
            Shape::Array(array) => {
                let is_small = array.element_count() <= self.most;
                is_small.then(|| self.arrays.push(id));
                is_small.then_some(id)
            }
            Shape::Tuple(elements) => {
                let mut last = None;
                for index in 0..elements.len() {
                    let element = self.builder.op(self.module, Op::GetTupleElement { index }, &[id]).ok()?;
                    last = self.keep(element, exact);
                }
                last
            }
            Shape::Token => None,
        }
    }

    fn constant(&mut self, literal: Literal) -> InstructionId {
        let id = self.builder.constant(literal);
        self.exact.insert(id);
        id
    }

    /// Adds a constant scalar, often the neutral element of some operation.
    fn number(&mut self, element_type: PrimitiveType) -> InstructionId {
        let float = self.draw.choose(&[0.0, -0.0, 1.0, 2.0, -1.0, 0.5, f64::INFINITY, f64::NEG_INFINITY]);
        let whole = self.draw.choose(&[0, 1, 2, -1, 3, 8]);
        let scalar = match element_type {
            t if t.is_floating_point() && self.draw.once_in(2) => Scalar::Float(float),
            t if t.is_signed_integer() && self.draw.once_in(2) => Scalar::Signed(whole),
            t => self.draw.scalar(t, Numbers::Gentle),
        };
        self.constant(Literal::from_scalars(ArrayShape::new(element_type, &[]), [scalar]))
    }

    /// Returns the available values with the given shape.
    fn fitting(&self, shape: &ArrayShape) -> Vec<InstructionId> {
        let fits = |id: &&InstructionId| self.builder.shape(**id).as_array() == Some(shape);
        self.arrays.iter().filter(fits).copied().collect()
    }

    /// Returns a value of this shape: an available one, a constant, or the broadcast of a smaller
    /// one.
    fn like(&mut self, shape: &ArrayShape) -> InstructionId {
        let shape = ArrayShape::new(shape.element_type, &shape.sizes());
        let fits = self.fitting(&shape);
        if !fits.is_empty() && !self.draw.once_in(4) {
            return self.draw.choose(&fits);
        }
        match self.draw.below(4) {
            0 => {
                let literal = self.draw.literal(&shape.clone().into(), Numbers::Gentle);
                self.constant(literal)
            }
            1 | 2 if shape.rank() > 0 => {
                let retained = self.draw.subset(shape.rank());
                let sizes: Vec<i64> = retained.iter().map(|&d| shape.size(d)).collect();
                let part = ArrayShape::new(shape.element_type, &sizes);
                let fits = self.fitting(&part);
                let part = if fits.is_empty() {
                    let literal = self.draw.literal(&part.into(), Numbers::Gentle);
                    self.constant(literal)
                } else {
                    self.draw.choose(&fits)
                };
                self.spread(part, &shape, retained)
            }
            _ => {
                let scalar = self.number(shape.element_type);
                if shape.rank() == 0 { scalar } else { self.spread(scalar, &shape, Vec::new()) }
            }
        }
    }

    fn spread(&mut self, part: InstructionId, to: &ArrayShape, dimensions: Vec<usize>) -> InstructionId {
        let op = Op::Broadcast { dimensions };
        let exact = self.is_exact(part);
        let shape = to.clone().into();
        let id = self.builder.op_with_shape(self.module, shape, op, &[part]).expect("matching sizes");
        if exact {
            self.exact.insert(id);
        }
        id
    }

    /// Returns an exact value of this shape.
    fn exact_like(&mut self, shape: &ArrayShape) -> InstructionId {
        let fits: Vec<InstructionId> =
            self.fitting(shape).into_iter().filter(|&id| self.is_exact(id)).collect();
        if !fits.is_empty() && !self.draw.once_in(3) {
            return self.draw.choose(&fits);
        }
        let literal = self.draw.literal(&shape.clone().into(), Numbers::Gentle);
        self.constant(literal)
    }

    /// Adds a computation that applies one op to two scalars.
    fn region(&mut self, element_type: PrimitiveType, op: Op) -> ComputationId {
        let mut builder = ComputationBuilder::new("region");
        let x = builder.parameter("x", Shape::scalar(element_type));
        let y = builder.parameter("y", Shape::scalar(element_type));
        let root = builder.op(self.module, op, &[x, y]).expect("scalars of one type");
        self.module.add_computation(builder.finish(root))
    }

    /// Adds a region with an op whose result does not depend on the order of its operands, except
    /// for rounding.
    fn combination(&mut self, element_type: PrimitiveType) -> ComputationId {
        let pred = [Op::And {}, Op::Or {}];
        let complex = [Op::Add {}, Op::Multiply {}];
        let floats = [Op::Add {}, Op::Add {}, Op::Maximum {}, Op::Minimum {}, Op::Multiply {}];
        let whole =
            [Op::Add {}, Op::Maximum {}, Op::Minimum {}, Op::Multiply {}, Op::And {}, Op::Or {}, Op::Xor {}];
        let ops: &[Op] = match element_type {
            PrimitiveType::Pred => &pred,
            t if t.is_complex() => &complex,
            t if t.is_floating_point() => &floats,
            _ => &whole,
        };
        let op = self.draw.pick(ops);
        self.region(element_type, op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn modules_are_valid_and_the_same_for_the_same_seed() {
        for seed in 0..300 {
            let graph = module(seed, 4 + seed as usize % 20);
            hlo::verify(&graph).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{graph}"));
            assert_eq!(graph.to_text(), module(seed, 4 + seed as usize % 20).to_text());
        }
    }

    #[test]
    fn quantized_modules_are_valid_and_have_every_kind_of_layer() {
        let mut opcodes = BTreeSet::new();
        for seed in 0..200 {
            let graph = quantized_module(seed, 6);
            hlo::verify(&graph).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{graph}"));
            let all = graph.entry_computation().instructions();
            opcodes.extend(all.map(|(_, instruction)| instruction.op().opcode().name()));
        }
        for name in ["convolution", "dot", "reduce-window", "shift-right-arithmetic", "round-nearest-even"] {
            assert!(opcodes.contains(name), "{name}");
        }
    }

    #[test]
    fn every_family_turns_up() {
        let mut opcodes = BTreeSet::new();
        for seed in 0..1500 {
            let graph = module(seed, 14);
            for (_, computation) in graph.computations() {
                opcodes.extend(computation.instructions().map(|(_, i)| i.op().opcode().name()));
            }
        }
        let expected = [
            "convolution",
            "dot",
            "reduce",
            "reduce-window",
            "select-and-scatter",
            "sort",
            "topk",
            "gather",
            "scatter",
            "dynamic-slice",
            "dynamic-update-slice",
            "while",
            "conditional",
            "call",
            "map",
            "fft",
            "cholesky",
            "triangular-solve",
            "rng-bit-generator",
            "pad",
            "concatenate",
            "reverse",
            "clamp",
            "bitcast-convert",
            "reduce-precision",
            "batch-norm-inference",
            "batch-norm-training",
            "batch-norm-grad",
            "complex",
            "shift-left",
            "popcnt",
            "iota",
            "remainder",
        ];
        let missing: Vec<&str> = expected.into_iter().filter(|name| !opcodes.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
