//! Splits large reductions with few results into two steps, so that workers can share them.
//!
//! `reduce([N]) -> []` becomes `reduce([P, N / P]) -> [P]` and `reduce([P]) -> []`. The first step
//! is divided into tasks along its kept dimension. The number of parts depends only on the shapes,
//! so the order of a sum never depends on the workers.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::Result;

/// Splits reductions with too few results to share.
///
/// `reduce(x, c) => reduce(reduce(reshape(x), c), c)`, if combining `c` repeatedly has no effect.
/// Exact except for rounding: floats are summed in another order.
pub struct TreeReductionRewriter;

impl Pass for TreeReductionRewriter {
    fn name(&self) -> &'static str {
        "tree-reduction-rewriter"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        if !module.size_parameters().is_empty() {
            // A loop over the whole dimension ends at the size of the run.
            return Ok(Changed::No);
        }
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            for instruction in module[id].post_order() {
                let Some(split) = split(module, &module[id], instruction) else { continue };
                let rewritten = rewrite(module.computation_mut(id), instruction, &split);
                module.computation_mut(id).replace_all_uses(instruction, rewritten);
                changed = true;
            }
            if changed {
                crate::simplify::dce::sweep(module.computation_mut(id));
            }
        }
        Ok(changed.into())
    }
}

/// Smaller arrays are reduced in one step.
const MIN_BYTES: u64 = 1536 << 10;

/// A reduction is shared by rows, or by columns in blocks of this many. With this many rows or
/// blocks, no split is needed.
const MANY_PARTS: i64 = 8;
const COLUMNS_PER_PART: i64 = 128;

/// Upper bound of the parts into which a dimension is split.
const MAX_PARTS: i64 = 64;

/// A dimension to split, and the number of parts.
struct Split {
    dimension: usize,
    parts: i64,
}

/// The dimension to split, if that helps and changes no result except for rounding.
fn split(module: &Module, computation: &Computation, id: InstructionId) -> Option<Split> {
    let instruction = &computation[id];
    let Op::Reduce { dimensions, to_apply } = instruction.op() else { return None };
    let &[input, initial] = instruction.operands() else { return None };
    let array = computation[input].shape().as_array()?;
    let result = instruction.shape().as_array()?;
    let is_narrow_float = array.element_type.is_floating_point() && array.element_type.byte_size() < 4;
    if !array.is_static() || is_narrow_float || array.byte_size() < MIN_BYTES || result.element_count() == 0 {
        return None;
    }
    let Op::Constant { literal } = computation[initial].op() else { return None };
    if !is_neutral(&module[*to_apply], literal) {
        return None;
    }
    let sizes = array.sizes();
    let last = (0..sizes.len()).rev().find(|&d| sizes[d] != 1)?;
    let parts = if dimensions.contains(&last) {
        result.element_count()
    } else {
        result.element_count() / sizes[last] * (sizes[last] / COLUMNS_PER_PART).max(1)
    };
    if parts >= MANY_PARTS {
        return None;
    }
    let mut reduced = dimensions.clone();
    reduced.sort_unstable();
    reduced.into_iter().find_map(|dimension| {
        let size = sizes[dimension];
        let divides = |parts: &i64| size % parts == 0 && size / parts > 1;
        Some(Split { dimension, parts: (MANY_PARTS..=MAX_PARTS).rev().find(divides)? })
    })
}

/// True if a computation is one operation whose order is free, and combining the initial number
/// once more has no effect.
fn is_neutral(computation: &Computation, initial: &Literal) -> bool {
    let root = &computation[computation.root()];
    let of_parameters = root.operands().len() == 2
        && root.operands()[0] != root.operands()[1]
        && root.operands().iter().all(|&o| matches!(computation[o].op(), Op::Parameter { .. }));
    let is = |number: f64| match initial.scalar_at(0) {
        Scalar::Float(value) => value == number,
        Scalar::Complex(re, im) => re == number && im == 0.0,
        Scalar::Signed(value) => value as f64 == number,
        Scalar::Unsigned(value) => value as f64 == number,
        Scalar::Pred(value) => f64::from(u8::from(value)) == number,
    };
    let is_pred = initial.array_shape().element_type == PrimitiveType::Pred;
    of_parameters
        && match root.op() {
            Op::Add {} => is(0.0) && !is_pred,
            Op::Multiply {} => is(1.0) && !is_pred,
            Op::Maximum {} | Op::Minimum {} | Op::And {} | Op::Or {} => true,
            Op::Xor {} => is(0.0),
            _ => false,
        }
}

fn rewrite(computation: &mut Computation, id: InstructionId, split: &Split) -> InstructionId {
    let instruction = &computation[id];
    let Op::Reduce { dimensions, to_apply } = instruction.op().clone() else { return id };
    let operands = instruction.operands().to_vec();
    let (result, metadata) = (instruction.shape().clone(), instruction.metadata().clone());
    let (input, initial) = (operands[0], operands[1]);
    let array = computation[input].shape().expect_array();
    let element_type = array.element_type;
    let mut sizes = array.sizes();
    sizes[split.dimension] /= split.parts;
    sizes.insert(split.dimension, split.parts);
    // The split dimension becomes two, of which the first step keeps the outer one.
    let inner: Vec<usize> =
        dimensions.iter().map(|&d| if d >= split.dimension { d + 1 } else { d }).collect();
    let remaining: Vec<i64> = (0..sizes.len()).filter(|d| !inner.contains(d)).map(|d| sizes[d]).collect();
    let place = (0..split.dimension).filter(|d| !inner.contains(d)).count();
    let shape = |sizes: &[i64]| Shape::Array(ArrayShape::new(element_type, sizes));
    let reshape = computation.add("", Op::Reshape {}, shape(&sizes), &[input], metadata.clone());
    let partial = Op::Reduce { dimensions: inner, to_apply };
    let partial = computation.add("", partial, shape(&remaining), &[reshape, initial], metadata.clone());
    let whole = Op::Reduce { dimensions: vec![place], to_apply };
    computation.add("", whole, result, &[partial, initial], metadata)
}
