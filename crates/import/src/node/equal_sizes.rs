//! Sizes that must be equal: a bounded one next to a known one is known, too.

use crate::node::accepted::keeps_input_sizes;
use crate::node::context::NodeContext;
use bounded::{Indices, Size};
use hlo::custom_call::ASSERT;
use hlo::{ComparisonDirection, InstructionId, Op, RawAttributes};
use shape::Shape;
use support::{Error, Result};

/// A dimension of an input.
#[derive(Clone, Copy)]
struct Place {
    input: usize,
    dimension: usize,
    bound: i64,
    is_bounded: bool,
}

impl NodeContext<'_, '_> {
    /// Prepares the inputs of an elementwise op, whose dimensions have one size each, except for
    /// those of size 1. Where some inputs have a bounded size and others a known one, all get the
    /// known one. Where bounds differ, all get the smallest. A check at run time fails if the sizes
    /// differ, as TensorFlow does. Where the bounds leave it open which operand is repeated, sizes
    /// of 1 pass the check.
    pub(crate) fn settle_equal_sizes(&mut self) -> Result<()> {
        if !keeps_input_sizes(&self.node().op) {
            return Ok(());
        }
        let mut inputs: Vec<Option<InstructionId>> =
            self.inputs().iter().map(|input| input.array()).collect();
        if !inputs.iter().flatten().any(|&id| self.is_bounded(id)) {
            return Ok(());
        }
        let ranks: Vec<usize> = inputs.iter().map(|id| id.map_or(0, |id| self.rank(id))).collect();
        let rank = ranks.iter().copied().max().unwrap_or(0);
        for from_end in 1..=rank {
            let mut places = Vec::new();
            for (input, id) in inputs.iter().enumerate() {
                let (Some(id), Some(dimension)) = (*id, ranks[input].checked_sub(from_end)) else { continue };
                // The vector of a condition is over the first dimension.
                if self.node().op == "Select" && ranks[input] != rank {
                    continue;
                }
                let bound = self.sizes(id)[dimension];
                let is_bounded = self.array(id).dimensions[dimension].is_dynamic;
                places.push(Place { input, dimension, bound, is_bounded });
            }
            self.settle(&places, &mut inputs, true)?;
        }
        for (k, id) in inputs.into_iter().enumerate() {
            if let Some(id) = id {
                self.replace_input(k, id);
            }
        }
        Ok(())
    }

    /// Returns the indices and updates of a scatter with as many rows, as
    /// [`Self::settle_equal_sizes`] does. The updates also get the sizes of the target's rows where
    /// their bounds are larger.
    pub(crate) fn settled_updates(
        &mut self,
        x: InstructionId,
        [indices, updates]: [InstructionId; 2],
        kind: Indices,
    ) -> Result<[InstructionId; 2]> {
        let (vectors, depth) = match kind {
            Indices::Scalars => (self.rank(indices), 1),
            Indices::Vectors => {
                let sizes = self.sizes(indices);
                (sizes.len().saturating_sub(1), sizes.last().map_or(0, |&depth| depth.max(0) as usize))
            }
        };
        let (in_row, rank) = (self.rank(x).saturating_sub(depth), self.rank(updates));
        if ![x, indices, updates].into_iter().any(|id| self.is_bounded(id)) || rank != vectors + in_row {
            return Ok([indices, updates]);
        }
        let mut inputs = [Some(x), Some(indices), Some(updates)];
        for d in 0..rank {
            let other = if d < vectors { (1, d) } else { (0, depth + d - vectors) };
            let places = [other, (2, d)].map(|(input, dimension)| {
                let id = [x, indices, updates][input];
                let shape::Dimension { size: bound, is_dynamic: is_bounded, .. } =
                    self.array(id).dimensions[dimension];
                Place { input, dimension, bound, is_bounded }
            });
            if d < vectors || places[0].bound < places[1].bound {
                self.settle(&places, &mut inputs, false)?;
            }
        }
        let [_, Some(indices), Some(updates)] = inputs else {
            return Err(Error::internal("the inputs of a scatter are arrays"));
        };
        Ok([indices, updates])
    }

    /// Gives one dimension of all inputs one size. Without `repeats`, sizes of 1 are sizes like
    /// others.
    fn settle(
        &mut self,
        places: &[Place],
        inputs: &mut [Option<InstructionId>],
        repeats: bool,
    ) -> Result<()> {
        let known = places.iter().find(|place| !place.is_bounded && (place.bound != 1 || !repeats));
        let least = || places.iter().filter(|place| place.is_bounded).min_by_key(|place| place.bound);
        let Some(&expected) = known.or_else(least) else { return Ok(()) };
        let Some(of_expected) = inputs[expected.input] else { return Ok(()) };
        for place in places.iter().filter(|place| place.is_bounded && place.input != expected.input) {
            let Some(id) = inputs[place.input] else { continue };
            let size = self.true_size(id, place.dimension)?;
            let wanted = self.true_size(of_expected, expected.dimension)?;
            let takes_expected =
                place.bound > expected.bound || (place.bound == expected.bound && !expected.is_bounded);
            let stated = |bound, size| Size { bound, size: Some(size) };
            if self.known_difference(stated(place.bound, size), stated(expected.bound, wanted)) != Some(0) {
                let mut is_valid = self.compare(ComparisonDirection::Eq, size, wanted)?;
                if !takes_expected && repeats {
                    let one = self.s32(1)?;
                    for size in [size, wanted] {
                        let is_one = self.compare(ComparisonDirection::Eq, size, one)?;
                        is_valid = self.op(Op::Or {}, &[is_valid, is_one])?;
                    }
                }
                let message = format!(
                    "the sizes of dimension {} of input {} and dimension {} of input {} differ",
                    place.dimension, place.input, expected.dimension, expected.input
                );
                // A branch may be for other sizes.
                if self.level() == 0 && self.known_integer(is_valid, 0) == Some(0) {
                    return Err(Error::invalid(format!("{message} in every run: change their ranges")));
                }
                self.fail_unless(ASSERT, is_valid, &message)?;
            }
            if takes_expected {
                let size = Size { bound: expected.bound, size: expected.is_bounded.then_some(wanted) };
                inputs[place.input] = Some(self.cut(id, place.dimension, size)?);
            }
        }
        Ok(())
    }

    /// Gives a dimension another size, which is at most the bound.
    fn cut(&mut self, id: InstructionId, dimension: usize, size: Size) -> Result<InstructionId> {
        let mut split = self.split(id)?;
        split.data = self.slice_in(split.data, dimension, 0, size.bound)?;
        split.sizes[dimension] = size.size;
        self.bounded(split.data, &split.sizes)
    }

    /// Gives a dimension of data-dependent size the one that the node needs. A run in which it has
    /// another one fails.
    pub(crate) fn with_needed_size(
        &mut self,
        id: InstructionId,
        dimension: usize,
        size: i64,
    ) -> Result<InstructionId> {
        if !self.array(id).dimensions[dimension].is_dynamic {
            return Ok(id);
        }
        let bound = self.sizes(id)[dimension];
        let (own, wanted) = (self.true_size(id, dimension)?, self.s32(size)?);
        let is_valid = self.compare(ComparisonDirection::Eq, own, wanted)?;
        let message = format!("dimension {dimension} must have {size} elements");
        let never = size > bound || self.level() == 0 && self.known_integer(is_valid, 0) == Some(0);
        self.check(!never, || format!("{message}; it has at most {bound}: change the ranges of sizes"))?;
        self.fail_unless(ASSERT, is_valid, &message)?;
        self.cut(id, dimension, Size::known(size))
    }

    /// Fails the run if a scalar is false. `target` is [`ASSERT`] or its form that ends the
    /// process. The message ends with the name of the node.
    pub(crate) fn fail_unless(
        &mut self,
        target: &str,
        condition: InstructionId,
        message: &str,
    ) -> Result<()> {
        let call = Op::CustomCall {
            custom_call_target: target.to_owned(),
            backend_config: format!("{message} (node '{}')", self.name()),
            custom_call_has_side_effect: true,
            attributes: RawAttributes::default(),
        };
        self.op_shaped(&Shape::Tuple(Vec::new()), call, &[condition])?;
        Ok(())
    }
}
