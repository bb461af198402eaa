//! Converts results with bounded dimensions into static arrays and sizes.

use crate::pass::{Changed, Pass};
use hlo::interface::bounded_dimensions;
use hlo::{Computation, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use support::{Error, Result};

/// Splits bounded results into arrays of their bounds and sizes as additional results.
///
/// `tuple(set-dimension-size(x, n, d), y) => tuple(x, y, s64(n))`, and the module records that the
/// last element is the size of dimension `d` of result 0. Dimensions without a `set-dimension-size`
/// are as large as their bounds. After this pass, all shapes are static.
pub struct DynamicDimensionResults;

impl Pass for DynamicDimensionResults {
    fn name(&self) -> &'static str {
        "dynamic-dimension-results"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let entry = module.entry();
        let computation = module.computation_mut(entry);
        let root = computation.root();
        if !matches!(computation[root].op(), Op::Tuple {}) || is_static(computation[root].shape()) {
            return Ok(Changed::No);
        }
        let mut elements = computation[root].operands().to_vec();
        let shapes: Vec<_> =
            elements.iter().map(|&element| computation[element].shape().as_array()).collect();
        let bounded = bounded_dimensions(&shapes);
        let bounds: Vec<i64> =
            bounded.iter().filter_map(|b| Some(shapes[b.result]?.size(b.dimension))).collect();
        let mut known = BTreeMap::new();
        for result in bounded.iter().map(|bounded| bounded.result) {
            if let Entry::Vacant(entry) = known.entry(result) {
                let sizes;
                (elements[result], sizes) = whole(computation, elements[result])?;
                entry.insert(sizes);
            }
        }
        for (bounded, bound) in bounded.iter().zip(bounds) {
            let known = known[&bounded.result].get(&bounded.dimension).copied();
            elements.push(size(computation, known, bound));
        }
        let shape = Shape::Tuple(elements.iter().map(|&e| computation[e].shape().clone()).collect());
        let metadata = computation[root].metadata().clone();
        let tuple = computation.add("", Op::Tuple {}, shape, &elements, metadata);
        computation.set_root(tuple);
        crate::simplify::dce::sweep(computation);
        module.set_bounded_dimensions(bounded);
        Ok(Changed::Yes)
    }
}

fn is_static(tuple: &Shape) -> bool {
    tuple.leaves().iter().all(|(_, leaf)| leaf.is_static())
}

/// The array below the instructions that set its dimensions' sizes, and these sizes.
fn whole(
    computation: &Computation,
    mut id: InstructionId,
) -> Result<(InstructionId, BTreeMap<usize, InstructionId>)> {
    let mut sizes = BTreeMap::new();
    while let Op::SetDimensionSize { dimension } = computation[id].op() {
        // The outermost size takes precedence.
        sizes.entry(*dimension).or_insert(computation[id].operands()[1]);
        id = computation[id].operands()[0];
    }
    match computation[id].shape().as_array() {
        Some(array) if array.is_static() => Ok((id, sizes)),
        _ => Err(Error::unsupported(format!(
            "'{}' ({}) has the bounded shape {}, but no set-dimension-size defines its sizes",
            computation[id].name(),
            computation[id].opcode().name(),
            computation[id].shape()
        ))),
    }
}

/// The size as `s64[]`; the bound if no size was set.
fn size(computation: &mut Computation, known: Option<InstructionId>, bound: i64) -> InstructionId {
    let shape = Shape::scalar(PrimitiveType::S64);
    match known {
        Some(size) => {
            let metadata = computation[size].metadata().clone();
            computation.add("", Op::Convert {}, shape, &[size], metadata)
        }
        None => {
            let array = ArrayShape::new(PrimitiveType::S64, &[]);
            let literal = Literal::from_scalars(array, [shape::Scalar::Signed(bound)]);
            computation.add("", Op::Constant { literal }, shape, &[], OpMetadata::default())
        }
    }
}
