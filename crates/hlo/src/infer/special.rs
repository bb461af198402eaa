//! Tuples, tokens, and random numbers.

use super::Inference;
use shape::{PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    pub(super) fn get_tuple_element(&self, index: usize) -> Result<Shape> {
        let operand = self.operand(0)?;
        let elements = operand.as_tuple().ok_or_else(|| self.error("the operand must be a tuple"))?;
        let element = elements.get(index);
        element.cloned().ok_or_else(|| {
            self.error(format_args!(
                "index {index} is out of range for a tuple of {} elements",
                elements.len()
            ))
        })
    }

    pub(super) fn after_all(&self) -> Result<Shape> {
        let tokens = self.operands.iter().all(|operand| matches!(operand, Shape::Token));
        self.check(tokens, "the operands must be tokens")?;
        Ok(Shape::Token)
    }

    pub(super) fn add_dependency(&self) -> Result<Shape> {
        self.check(matches!(self.operand(1)?, Shape::Token), "the second operand must be a token")?;
        Ok(self.operand(0)?.clone())
    }

    pub(super) fn rng(&self) -> Result<Shape> {
        let (low, high) = (self.scalar(0)?, self.scalar(1)?);
        self.check(low.element_type == high.element_type, "the operands must have the same element type")?;
        Ok(super::with_type(self.declared_array()?, low.element_type))
    }

    pub(super) fn rng_bit_generator(&self) -> Result<Shape> {
        let (state, declared) = (self.array(0)?, self.declared()?);
        self.check(
            state.rank() == 1 && state.element_type.is_unsigned_integer(),
            "the state must be a vector of unsigned integers",
        )?;
        let values = match declared.as_tuple() {
            // XLA's text may omit the state.
            None => declared,
            Some([new_state, values]) => {
                self.check(
                    self.operand(0)?.compatible(new_state),
                    format_args!("the new state has the operand's shape, but {new_state} is declared"),
                )?;
                values
            }
            Some(_) => {
                return Err(self.error(format_args!(
                    "the result is the state and the bits, but {declared} is declared"
                )));
            }
        };
        let is_bits = values.as_array().is_some_and(|v| v.element_type.is_integer());
        self.check(is_bits, format_args!("the bits are an array of integers, but {values} is declared"))?;
        Ok(declared.clone())
    }

    pub(super) fn rng_get_and_update_state(&self) -> Result<Shape> {
        let declared = self.declared_array()?;
        self.check(
            declared.element_type == PrimitiveType::U64 && declared.sizes() == [2],
            format_args!("the result has shape u64[2], but {declared} is declared"),
        )?;
        Ok(self.declared()?.clone())
    }
}
