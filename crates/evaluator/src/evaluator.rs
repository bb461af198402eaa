//! The evaluator's state: its remaining budget, and the random number generator's counter.

use crate::array::scalar;
use hlo::{ComputationId, Interface, Module, Op, TrueSize};
use shape::{ArrayShape, Literal, Shape, ShapeIndex};
use support::{Error, Result};

/// Resource limits. An evaluation that exceeds one ends with an `Unsupported` error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Elementary steps: about one per element written, multiply-add, or instruction of a scalar
    /// computation.
    pub max_steps: u64,
    /// Total bytes of live values, including the next instruction's working memory: 32 bytes for
    /// each element of its result.
    pub max_live_bytes: u64,
    /// Maximum nesting depth of calls between computations.
    pub max_depth: usize,
}

impl Default for Limits {
    /// Enough for real models: 2^40 steps, 16 GiB, 64 calls.
    fn default() -> Self {
        Self { max_steps: 1 << 40, max_live_bytes: 1 << 34, max_depth: 64 }
    }
}

/// Evaluates the entry of a module with default limits and a random state of 0.
pub fn evaluate(module: &Module, arguments: &[Literal]) -> Result<Literal> {
    Evaluator::new(module).evaluate(arguments)
}

/// Evaluates one computation with default limits and a random state of 0.
pub fn evaluate_computation(module: &Module, id: ComputationId, arguments: &[Literal]) -> Result<Literal> {
    Evaluator::new(module).evaluate_computation(id, arguments)
}

/// Evaluates one instruction with default limits, for example to fold constants. `module` contains
/// the computations that `op` calls. Parameters have no value, so they are an error.
pub fn evaluate_instruction(
    module: &Module,
    op: &Op,
    shape: &Shape,
    operands: &[&Literal],
) -> Result<Literal> {
    Evaluator::new(module).evaluate_instruction(op, shape, operands)
}

/// An interpreter of one module. The random state and the remaining limits persist across
/// evaluations.
#[derive(Debug)]
pub struct Evaluator<'m> {
    pub(crate) module: &'m Module,
    pub(crate) limits: Limits,
    pub(crate) steps_left: u64,
    pub(crate) live_bytes: u64,
    pub(crate) depth: usize,
    pub(crate) random_state: u128,
}

impl<'m> Evaluator<'m> {
    /// Creates an evaluator with default limits.
    pub fn new(module: &'m Module) -> Self {
        Self::with_limits(module, Limits::default())
    }

    /// Creates an evaluator with the given limits.
    pub fn with_limits(module: &'m Module, limits: Limits) -> Self {
        Self { module, limits, steps_left: limits.max_steps, live_bytes: 0, depth: 0, random_state: 0 }
    }

    /// Returns the counter that the next `rng-get-and-update-state` returns; initially 0.
    pub fn random_state(&self) -> u128 {
        self.random_state
    }

    /// Evaluates the module's entry. The arguments must have the shapes of its parameters. Bounded
    /// results are cut to their true sizes.
    pub fn evaluate(&mut self, arguments: &[Literal]) -> Result<Literal> {
        let result = self.evaluate_computation(self.module.entry(), arguments)?;
        self.in_reported_sizes(result)
    }

    /// Cuts the results to their true sizes if the module returns these.
    fn in_reported_sizes(&self, result: Literal) -> Result<Literal> {
        let (Literal::Tuple(mut results), false) =
            (result.clone(), self.module.bounded_dimensions().is_empty())
        else {
            return Ok(result);
        };
        let interface = Interface::of_module(self.module)?;
        let reported = results.split_off(interface.results().len());
        for (number, (result, output)) in results.iter_mut().zip(interface.results()).enumerate() {
            for &TrueSize { dimension, index } in output.sizes() {
                let size = &reported[index];
                let cut = scalar(size)?.as_i64().and_then(|size| {
                    let mut sizes = result.array_shape().sizes();
                    sizes[dimension] = size;
                    result.corner(&sizes)
                });
                *result = cut.ok_or_else(|| {
                    Error::invalid(format!(
                        "dimension {dimension} of result {number} cannot have the size {size:?}"
                    ))
                })?;
            }
        }
        Ok(Literal::Tuple(results))
    }

    /// Returns the number of steps left.
    pub fn steps_left(&self) -> u64 {
        self.steps_left
    }

    /// Consumes steps.
    pub(crate) fn charge(&mut self, steps: u64) -> Result<()> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or_else(|| {
            Error::unsupported(format!(
                "the evaluation takes more than {} steps; raise the limit, or look for an infinite loop",
                self.limits.max_steps
            ))
        })?;
        Ok(())
    }

    /// Consumes the product of some sizes as steps.
    pub(crate) fn charge_product(&mut self, sizes: &[i64]) -> Result<()> {
        self.charge(sizes.iter().fold(1u64, |product, &size| product.saturating_mul(size.max(0) as u64)))
    }

    /// Checks that a value of this shape may be allocated now.
    pub(crate) fn check_allocation(&self, shape: &Shape) -> Result<()> {
        let limit = self.limits.max_live_bytes;
        let working =
            |(_, leaf): &(ShapeIndex, &ArrayShape)| (leaf.element_count() as u64).saturating_mul(32);
        let needed = shape.leaves().iter().map(working).fold(shape.byte_size(), u64::saturating_add);
        if self.live_bytes.saturating_add(needed) > limit {
            return Err(Error::unsupported(format!(
                "the evaluation needs more than {limit} bytes at once ({} live, {shape} to come); raise the limit",
                self.live_bytes
            )));
        }
        support::check_memory(needed, format_args!("the evaluation of {shape}"))
    }
}
