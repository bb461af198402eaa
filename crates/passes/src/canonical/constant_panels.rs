//! Lookups of rows in the packed weights of a dot.

use crate::pass::{Changed, Pass};
use crate::query::{executed_computations, is_static};
use hlo::{
    Computation, ComputationId, GatherDimensionNumbers, InstructionId, Module, Op, OpMetadata, Opcode,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::Result;

/// `gather(w, i) => gather(panels of w, (i / width, i % width))` for a constant w that is otherwise
/// only the right operand of dots, whose kernels read panels of it. w is then stored once: the
/// panels have the same bytes. Language models use one matrix for the embeddings of words and for
/// the logits.
///
/// Exact for every input.
pub struct ConstantPanels {
    /// Returns the panels in which the kernel of a dot reads its constant right operand, as an
    /// array `[panel][row][column]` of the same type; `None` if it reads something else.
    pub panels: PanelsOf,
}

/// Function from a dot to its panels.
pub type PanelsOf = Box<dyn Fn(&Module, &Computation, InstructionId) -> Option<Literal>>;

impl Default for ConstantPanels {
    /// Panels of one cache line of columns, for every dot of floats.
    fn default() -> Self {
        Self { panels: Box::new(|_, computation, id| panels_of_lines(computation, id)) }
    }
}

fn panels_of_lines(computation: &Computation, id: InstructionId) -> Option<Literal> {
    let Op::Dot { dot_dimension_numbers: numbers } = computation[id].op() else { return None };
    let Op::Constant { literal } = computation[computation[id].operands()[1]].op() else { return None };
    let &[summed] = &numbers.rhs_contracting_dims[..] else { return None };
    let shape = literal.array_shape();
    if !shape.element_type.is_floating_point() {
        return None;
    }
    let (rows, columns) = (shape.size(summed), shape.size(1 - summed));
    let width = LINE as i64 / shape.element_type.byte_size() as i64;
    let scalars: Vec<Scalar> = literal.scalars().collect();
    let element = |panel: i64, row: i64, column: i64| {
        let column = panel * width + column;
        let place = if summed == 0 { row * columns + column } else { column * rows + row };
        if column < columns { scalars[place as usize] } else { Scalar::Float(0.0) }
    };
    let count = (columns + width - 1) / width;
    let element = &element;
    let all = (0..count).flat_map(|panel| {
        (0..rows).flat_map(move |row| (0..width).map(move |column| element(panel, row, column)))
    });
    let panels = ArrayShape::new(shape.element_type, &[count, rows, width]);
    Some(Literal::from_scalars(panels, all))
}

/// Maximum cost of reading panels instead of rows, as a fraction of the time of all dots.
const MAX_COST: f64 = 0.03;

/// Bytes of a cache line.
const LINE: f64 = 64.0;

/// Multiplications and additions in the time of reading a byte from memory.
const OPERATIONS_PER_BYTE: f64 = 10.0;

impl Pass for ConstantPanels {
    fn name(&self) -> &'static str {
        "constant-panels"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let executed = executed_computations(module);
        let mut budget = MAX_COST * executed.iter().map(|&id| bytes_of_dots(&module[id])).sum::<f64>();
        let mut changed = false;
        for readers in readers(module, &executed) {
            let Some(readers) = readers else { continue };
            let (Some(&(caller, dot)), false) = (readers.dots.first(), readers.lookups.is_empty()) else {
                continue;
            };
            let Op::Dot { dot_dimension_numbers: numbers } = module[caller][dot].op() else { continue };
            let sums_rows = numbers.rhs_contracting_dims == [0];
            let costs = readers.lookups.iter().map(|&(caller, id)| lookup_cost(&module[caller], id));
            // Whole lines of panels are pieces of a row if its elements are columns.
            let cost = if sums_rows { 0.0 } else { costs.sum::<f64>() };
            if cost > budget {
                continue;
            }
            let Some(panels) = (self.panels)(module, &module[caller], dot) else { continue };
            budget -= cost;
            for &(caller, id) in &readers.lookups {
                let computation = module.computation_mut(caller);
                let new = look_up(computation, id, &panels, sums_rows);
                computation.replace_all_uses(id, new);
                crate::simplify::dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// Instructions that read a constant, with their computations.
#[derive(Default)]
struct Readers {
    dots: Vec<(ComputationId, InstructionId)>,
    lookups: Vec<(ComputationId, InstructionId)>,
}

/// A constant matrix: the address of its bytes, its type, and its dimensions.
type Matrix = (usize, PrimitiveType, Vec<i64>);

/// The readers of each constant matrix, in the order of the module, because addresses differ from
/// run to run; `None` if others than dots and lookups read it.
fn readers(module: &Module, executed: &[ComputationId]) -> Vec<Option<Readers>> {
    let mut all: Vec<Option<Readers>> = Vec::new();
    let mut places: BTreeMap<Matrix, usize> = BTreeMap::new();
    for &caller in executed {
        let computation = &module[caller];
        for (id, _) in computation.opcodes().filter(|&(_, opcode)| opcode == Opcode::Constant) {
            let Op::Constant { literal } = computation[id].op() else { continue };
            let Some(shape) = computation[id].shape().as_array().filter(|shape| shape.rank() == 2) else {
                continue;
            };
            let key = (literal.bytes().as_ptr() as usize, shape.element_type, shape.sizes());
            let place = *places.entry(key).or_insert_with(|| {
                all.push(Some(Readers::default()));
                all.len() - 1
            });
            let readers = &mut all[place];
            let is_root = computation.root() == id;
            for &user in computation[id].users() {
                let operands = computation[user].operands();
                match readers {
                    Some(readers) if is_dot_of(computation, user, id) => readers.dots.push((caller, user)),
                    Some(readers) if is_lookup(computation, user) && operands[1] != id => {
                        readers.lookups.push((caller, user));
                    }
                    _ => *readers = None,
                }
            }
            if is_root {
                *readers = None;
            }
        }
    }
    all
}

/// True if an instruction is the product of an array and a constant matrix.
fn is_dot_of(computation: &Computation, id: InstructionId, matrix: InstructionId) -> bool {
    let Op::Dot { dot_dimension_numbers: numbers } = computation[id].op() else { return false };
    let operands = computation[id].operands();
    numbers.rhs_batch_dims.is_empty() && operands[1] == matrix && operands[0] != matrix
}

/// True if an instruction gathers whole rows of a matrix.
fn is_lookup(computation: &Computation, id: InstructionId) -> bool {
    let Op::Gather { gather_dimension_numbers: numbers, slice_sizes, .. } = computation[id].op() else {
        return false;
    };
    if !is_static(computation, id) {
        return false;
    }
    let array = |k: usize| computation[computation[id].operands()[k]].shape().expect_array();
    let (matrix, indices) = (array(0), array(1));
    // The numbers of rows fit.
    let is_wide = indices.element_type.is_integer() && indices.element_type.byte_size() >= 4;
    is_wide
        && numbers.start_index_map == [0]
        && numbers.collapsed_slice_dims == [0]
        && numbers.offset_dims.len() == 1
        && numbers.operand_batching_dims.is_empty()
        && *slice_sizes == [1, matrix.size(1)]
        && i32::try_from(matrix.size(0)).is_ok()
        && matrix.element_count() > 0
}

/// Bytes that could be read in the time of a computation's dots.
fn bytes_of_dots(computation: &Computation) -> f64 {
    let dots = computation.opcodes().filter(|&(_, opcode)| opcode == Opcode::Dot).map(|(id, _)| id);
    let bytes = |id: InstructionId| {
        let Op::Dot { dot_dimension_numbers: numbers } = computation[id].op() else { return 0.0 };
        let array = |id: InstructionId| computation[id].shape().as_array();
        let (Some(rhs), Some(result)) = (array(computation[id].operands()[1]), array(id)) else { return 0.0 };
        let summands: f64 = numbers.rhs_contracting_dims.iter().map(|&d| rhs.size(d) as f64).product();
        let operations = 2.0 * summands * result.element_count() as f64;
        (rhs.byte_size() as f64).max(operations / OPERATIONS_PER_BYTE)
    };
    dots.map(bytes).sum()
}

/// Bytes that a lookup reads in addition to its rows if it touches a cache line for each element.
fn lookup_cost(computation: &Computation, id: InstructionId) -> f64 {
    let rows = computation[id].shape().expect_array();
    rows.element_count() as f64 * LINE - rows.byte_size() as f64
}

/// Adds a lookup in panels that takes the place of a lookup of rows. `sums_rows` is true if the
/// panels' rows are the matrix's rows; otherwise they are its columns.
fn look_up(
    computation: &mut Computation,
    id: InstructionId,
    panels: &Literal,
    sums_rows: bool,
) -> InstructionId {
    let Op::Gather { gather_dimension_numbers: numbers, .. } = computation[id].op().clone() else {
        unreachable!("only lookups are replaced")
    };
    let &[matrix, indices] = computation[id].operands() else { unreachable!("a gather has two operands") };
    let rows = computation[matrix].shape().expect_array().size(0);
    let result = computation[id].shape().expect_array().clone();
    let (array, index_dim, offset_dim) =
        (panels.array_shape().clone(), numbers.index_vector_dim, numbers.offset_dims[0]);
    let [count, lines, width] = [0, 1, 2].map(|d| array.size(d));
    let mut graph = Adder { metadata: computation[id].metadata().clone(), computation };
    let constant = graph.add(Op::Constant { literal: panels.clone() }, array.clone(), &[]);
    if sums_rows {
        // A row is spread over all panels.
        let mut numbers = GatherDimensionNumbers { start_index_map: vec![1], ..numbers };
        numbers.collapsed_slice_dims = vec![1];
        numbers.offset_dims = vec![offset_dim, offset_dim + 1];
        let mut sizes = result.sizes();
        sizes[offset_dim] = count;
        sizes.insert(offset_dim + 1, width);
        let parts = ArrayShape::new(result.element_type, &sizes);
        let slice_sizes = vec![count, 1, width];
        let op = Op::Gather { gather_dimension_numbers: numbers, slice_sizes, indices_are_sorted: false };
        let gathered = graph.add(op, parts, &[constant, indices]);
        sizes = result.sizes();
        sizes[offset_dim] = count * width;
        let padded = graph.add(Op::Reshape {}, ArrayShape::new(result.element_type, &sizes), &[gathered]);
        if result.size(offset_dim) == count * width {
            return padded;
        }
        let slice = result.sizes().into_iter();
        let slice = slice.map(|limit| hlo::SliceDimension { start: 0, limit, stride: 1 }).collect();
        return graph.add(Op::Slice { slice }, result, &[padded]);
    }
    // A gather moves its starts into the matrix; only then do they have a panel and a column.
    let shape = graph.computation[indices].shape().expect_array().clone();
    let [zero, last, mask, shift] =
        [0, rows - 1, width - 1, i64::from(width.trailing_zeros())].map(|value| graph.filled(&shape, value));
    let row = graph.add(Op::Clamp {}, shape.clone(), &[zero, indices, last]);
    let panel = graph.add(Op::ShiftRightLogical {}, shape.clone(), &[row, shift]);
    let column = graph.add(Op::And {}, shape.clone(), &[row, mask]);
    let mut sizes = shape.sizes();
    if index_dim == sizes.len() {
        sizes.push(1);
    }
    let single = ArrayShape::new(shape.element_type, &sizes);
    sizes[index_dim] = 2;
    let pairs = ArrayShape::new(shape.element_type, &sizes);
    let parts = [panel, column].map(|part| graph.add(Op::Reshape {}, single.clone(), &[part]));
    let starts = graph.add(Op::Concatenate { dimension: index_dim }, pairs, &parts);
    let numbers =
        GatherDimensionNumbers { start_index_map: vec![0, 2], collapsed_slice_dims: vec![0, 2], ..numbers };
    let slice_sizes = vec![1, lines, 1];
    let op = Op::Gather { gather_dimension_numbers: numbers, slice_sizes, indices_are_sorted: false };
    graph.add(op, result, &[constant, starts])
}

/// Adds instructions with the same metadata.
struct Adder<'c> {
    computation: &'c mut Computation,
    metadata: OpMetadata,
}

impl Adder<'_> {
    fn add(&mut self, op: Op, shape: ArrayShape, operands: &[InstructionId]) -> InstructionId {
        self.computation.add("", op, shape.into(), operands, self.metadata.clone())
    }

    /// An array of integers that are all equal.
    fn filled(&mut self, shape: &ArrayShape, value: i64) -> InstructionId {
        let scalar = ArrayShape::new(shape.element_type, &[]);
        let is_signed = shape.element_type.is_signed_integer();
        let value = if is_signed { Scalar::Signed(value) } else { Scalar::Unsigned(value as u64) };
        let literal = Literal::from_scalars(scalar.clone(), [value]);
        let constant = self.add(Op::Constant { literal }, scalar, &[]);
        self.add(Op::Broadcast { dimensions: Vec::new() }, shape.clone(), &[constant])
    }
}
