//! Building blocks for the rules: constants, broadcasts, arithmetic, data movement, and reductions.

use crate::builder::{Builder, Reducer, integer_vector, scalar_literal};
use hlo::{
    ComparisonDirection, ComparisonType, InstructionId, Op, PaddingConfig, PaddingDimension, SliceDimension,
    Window,
};
use shape::{Literal, PrimitiveType, Shape};
use support::{Error, Result};

/// Maximum number of operands of a concatenation. Each requires code of its own.
const MAX_CONCATENATED: usize = 16_384;

impl Builder {
    /// Adds an instruction whose shape follows from its operands.
    pub fn op(&mut self, op: Op, operands: &[InstructionId]) -> Result<InstructionId> {
        if self.has_bounded(&op, operands) {
            self.bounded_op(op, operands, None)
        } else {
            self.static_op(op, operands, None)
        }
    }

    /// Adds an instruction unchanged: its operands have no bounded dimensions, or the caller
    /// handles them.
    pub fn static_op(
        &mut self,
        op: Op,
        operands: &[InstructionId],
        requested: Option<&Shape>,
    ) -> Result<InstructionId> {
        self.count_instruction()?;
        let (module, scope) = self.module_and_scope();
        scope.add(module, op, operands, requested)
    }

    /// Adds an instruction of a given shape.
    pub fn op_shaped(&mut self, shape: &Shape, op: Op, operands: &[InstructionId]) -> Result<InstructionId> {
        if self.has_bounded(&op, operands) {
            self.bounded_op(op, operands, Some(shape))
        } else {
            self.static_op(op, operands, Some(shape))
        }
    }

    /// Adds a constant.
    pub fn literal(&mut self, literal: Literal) -> InstructionId {
        self.module_and_scope().1.add_constant(literal)
    }

    /// Adds a scalar constant.
    pub fn scalar(&mut self, element_type: PrimitiveType, value: f64) -> InstructionId {
        self.literal(scalar_literal(element_type, value))
    }

    /// Adds a constant with equal elements.
    pub fn splat(&mut self, element_type: PrimitiveType, sizes: &[i64], value: f64) -> Result<InstructionId> {
        let scalar = self.scalar(element_type, value);
        self.broadcast(scalar, sizes, &[])
    }

    /// Adds a constant of the shape and type of another array.
    pub fn splat_like(&mut self, like: InstructionId, value: f64) -> Result<InstructionId> {
        let shape = self.array(like);
        self.splat(shape.element_type, &shape.sizes(), value)
    }

    /// Adds a vector of integers, for TF's shape ops.
    pub fn integers(&mut self, element_type: PrimitiveType, values: &[i64]) -> Result<InstructionId> {
        let literal = integer_vector(element_type, values);
        let literal = literal.ok_or_else(|| {
            self.invalid(format!("{} does not fit in {element_type}: use int64", list(values)))
        })?;
        Ok(self.literal(literal))
    }

    /// Copies an array along new dimensions: operand dimension `i` becomes result dimension
    /// `dimensions[i]`.
    pub fn broadcast(
        &mut self,
        id: InstructionId,
        sizes: &[i64],
        dimensions: &[usize],
    ) -> Result<InstructionId> {
        let shape = self.array(id);
        if shape.sizes() == sizes && dimensions.iter().copied().eq(0..sizes.len()) {
            return Ok(id);
        }
        let shape = Shape::array(shape.element_type, sizes);
        self.op_shaped(&shape, Op::Broadcast { dimensions: dimensions.to_vec() }, &[id])
    }

    /// Broadcasts like NumPy: aligns dimensions at the end and repeats those of size 1.
    pub fn broadcast_to(&mut self, id: InstructionId, sizes: &[i64]) -> Result<InstructionId> {
        let source = self.sizes(id);
        if source == sizes {
            return Ok(id);
        }
        let lead = sizes.len().checked_sub(source.len());
        let fits =
            lead.is_some_and(|lead| source.iter().zip(&sizes[lead..]).all(|(&h, &s)| h == s || h == 1));
        let lead = match lead {
            Some(lead) if fits => lead,
            _ => {
                return Err(self.invalid(format!(
                    "Incompatible shapes: {} vs. {}",
                    list(&source),
                    list(sizes)
                )));
            }
        };
        // HLO can only repeat whole dimensions, so remove those of size 1 first.
        let matching: Vec<usize> = (0..source.len()).filter(|&d| source[d] == sizes[lead + d]).collect();
        let dimensions: Vec<usize> = matching.iter().map(|&d| lead + d).collect();
        if self.is_bounded(id) {
            return self.broadcast_bounded(id, &matching, sizes, &dimensions);
        }
        let matching_sizes: Vec<i64> = matching.iter().map(|&d| source[d]).collect();
        let squeezed = self.reshape(id, &matching_sizes)?;
        self.broadcast(squeezed, sizes, &dimensions)
    }

    /// Returns the sizes that two arrays broadcast to.
    pub fn broadcast_sizes(&self, a: &[i64], b: &[i64]) -> Result<Vec<i64>> {
        let sizes = broadcast_sizes(a, b);
        sizes.ok_or_else(|| self.invalid(format!("Incompatible shapes: {} vs. {}", list(a), list(b))))
    }

    /// Broadcasts two arrays against each other.
    pub fn broadcast_pair(
        &mut self,
        a: InstructionId,
        b: InstructionId,
    ) -> Result<(InstructionId, InstructionId)> {
        let sizes = self.broadcast_sizes(&self.sizes(a), &self.sizes(b))?;
        Ok((self.broadcast_to(a, &sizes)?, self.broadcast_to(b, &sizes)?))
    }

    /// `a + b`.
    pub fn add(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.op(Op::Add {}, &[a, b])
    }

    /// `a - b`.
    pub fn sub(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.op(Op::Subtract {}, &[a, b])
    }

    /// `a * b`.
    pub fn mul(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.op(Op::Multiply {}, &[a, b])
    }

    /// `a / b`.
    pub fn div(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.op(Op::Divide {}, &[a, b])
    }

    /// `-a`.
    pub fn neg(&mut self, a: InstructionId) -> Result<InstructionId> {
        self.op(Op::Negate {}, &[a])
    }

    /// `a + value`.
    pub fn add_scalar(&mut self, a: InstructionId, value: f64) -> Result<InstructionId> {
        let value = self.splat_like(a, value)?;
        self.add(a, value)
    }

    /// `a * value`.
    pub fn mul_scalar(&mut self, a: InstructionId, value: f64) -> Result<InstructionId> {
        let value = self.splat_like(a, value)?;
        self.mul(a, value)
    }

    /// Compares two arrays.
    pub fn compare(
        &mut self,
        direction: ComparisonDirection,
        a: InstructionId,
        b: InstructionId,
    ) -> Result<InstructionId> {
        self.op(Op::Compare { direction, comparison_type: ComparisonType::Default }, &[a, b])
    }

    /// Compares an array with a number.
    pub fn compare_scalar(
        &mut self,
        direction: ComparisonDirection,
        a: InstructionId,
        value: f64,
    ) -> Result<InstructionId> {
        let value = self.splat_like(a, value)?;
        self.compare(direction, a, value)
    }

    /// `pred ? on_true : on_false`.
    pub fn select(
        &mut self,
        pred: InstructionId,
        on_true: InstructionId,
        on_false: InstructionId,
    ) -> Result<InstructionId> {
        self.op(Op::Select {}, &[pred, on_true, on_false])
    }

    /// Converts the elements to another type.
    pub fn convert(&mut self, id: InstructionId, element_type: PrimitiveType) -> Result<InstructionId> {
        let shape = self.array(id);
        if shape.element_type == element_type {
            return Ok(id);
        }
        self.op_shaped(&shape.with_element_type(element_type).into(), Op::Convert {}, &[id])
    }

    /// Changes the dimensions of an array.
    pub fn reshape(&mut self, id: InstructionId, sizes: &[i64]) -> Result<InstructionId> {
        let shape = self.array(id);
        if shape.sizes() == sizes {
            return Ok(id);
        }
        self.op_shaped(&Shape::array(shape.element_type, sizes), Op::Reshape {}, &[id])
    }

    /// Permutes dimensions: result dimension `d` is operand dimension `permutation[d]`.
    pub fn transpose(&mut self, id: InstructionId, permutation: &[usize]) -> Result<InstructionId> {
        if permutation.iter().copied().eq(0..permutation.len()) {
            return Ok(id);
        }
        self.op(Op::Transpose { dimensions: permutation.to_vec() }, &[id])
    }

    /// `0, 1, 2, ...` along one dimension.
    pub fn iota(
        &mut self,
        element_type: PrimitiveType,
        sizes: &[i64],
        dimension: usize,
    ) -> Result<InstructionId> {
        self.op_shaped(&Shape::array(element_type, sizes), Op::Iota { iota_dimension: dimension }, &[])
    }

    /// Slices with a start, a limit, and a stride for each dimension.
    pub fn slice(&mut self, id: InstructionId, dimensions: Vec<SliceDimension>) -> Result<InstructionId> {
        let sizes = self.sizes(id);
        let whole = |(slice, &size): (&SliceDimension, &i64)| {
            slice.start == 0 && slice.limit == size && slice.stride == 1
        };
        if dimensions.len() == sizes.len() && dimensions.iter().zip(&sizes).all(whole) {
            return Ok(id);
        }
        self.op(Op::Slice { slice: dimensions }, &[id])
    }

    /// Slices `start..limit` of one dimension.
    pub fn slice_in(
        &mut self,
        id: InstructionId,
        dimension: usize,
        start: i64,
        limit: i64,
    ) -> Result<InstructionId> {
        let mut slice: Vec<SliceDimension> =
            self.sizes(id).iter().map(|&limit| SliceDimension { start: 0, limit, stride: 1 }).collect();
        slice[dimension] = SliceDimension { start, limit, stride: 1 };
        self.slice(id, slice)
    }

    /// Concatenates arrays along a dimension.
    pub fn concatenate(&mut self, ids: &[InstructionId], dimension: usize) -> Result<InstructionId> {
        match ids {
            [id] => Ok(*id),
            ids if ids.len() > MAX_CONCATENATED => Err(Error::unsupported(format!(
                "a concatenation of {} arrays exceeds the maximum of {MAX_CONCATENATED}; concatenate in several steps",
                ids.len()
            ))),
            ids => self.op(Op::Concatenate { dimension }, ids),
        }
    }

    /// Reverses the elements along some dimensions.
    pub fn reverse(&mut self, id: InstructionId, dimensions: Vec<usize>) -> Result<InstructionId> {
        if dimensions.is_empty() { Ok(id) } else { self.op(Op::Reverse { dimensions }, &[id]) }
    }

    /// Pads each dimension with (low, high, interior) copies of a scalar.
    pub fn pad(
        &mut self,
        id: InstructionId,
        value: InstructionId,
        padding: &[(i64, i64, i64)],
    ) -> Result<InstructionId> {
        if padding.iter().all(|&p| p == (0, 0, 0)) {
            return Ok(id);
        }
        let dimension = |&(low, high, interior): &(i64, i64, i64)| PaddingDimension {
            edge_padding_low: low,
            edge_padding_high: high,
            interior_padding: interior,
        };
        let padding = PaddingConfig { dimensions: padding.iter().map(dimension).collect() };
        self.op(Op::Pad { padding }, &[id, value])
    }

    /// Combines all elements along some dimensions, starting from the reducer's identity.
    pub fn reduce(
        &mut self,
        id: InstructionId,
        reducer: Reducer,
        dimensions: &[usize],
    ) -> Result<InstructionId> {
        let element_type = self.element_type(id);
        if let (Reducer::Multiply, [0]) = (reducer, dimensions)
            && self.is_shape(id)
        {
            return self.count_of(id);
        }
        // A maximum is a single operation, so that vectors of elements are reduced at once.
        let (id, reducer) = match reducer {
            Reducer::LargestNumber if element_type.is_floating_point() => {
                let is_number = self.compare(ComparisonDirection::Eq, id, id)?;
                let least = self.splat_like(id, f64::NEG_INFINITY)?;
                (self.select(is_number, id, least)?, Reducer::Maximum)
            }
            other => (id, other),
        };
        let initial = self.literal(reducer.neutral(element_type));
        let to_apply = self.reducer(reducer, element_type)?;
        let mut dimensions = dimensions.to_vec();
        dimensions.sort_unstable();
        self.op(Op::Reduce { dimensions, to_apply }, &[id, initial])
    }

    /// Combines the elements of each window, starting from the reducer's identity.
    pub fn reduce_window(
        &mut self,
        id: InstructionId,
        reducer: Reducer,
        window: Window,
    ) -> Result<InstructionId> {
        let element_type = self.element_type(id);
        let initial = self.literal(reducer.neutral(element_type));
        let to_apply = self.reducer(reducer, element_type)?;
        self.op(Op::ReduceWindow { window, to_apply }, &[id, initial])
    }

    /// Returns the product of the elements of a vector of sizes, one by one, so that it is known if
    /// they are.
    fn count_of(&mut self, vector: InstructionId) -> Result<InstructionId> {
        let mut product: Option<InstructionId> = None;
        for position in 0..self.sizes(vector)[0] {
            let factor = self.scalar_of_vector(vector, position)?;
            let is_one = self.fold(factor).is_some_and(|literal| literal.scalar_at(0).as_i64() == Some(1));
            product = match product {
                Some(product) if is_one => Some(product),
                Some(product) => Some(self.mul(product, factor)?),
                None => Some(factor),
            };
        }
        let element_type = self.element_type(vector);
        Ok(product.unwrap_or_else(|| self.scalar(element_type, 1.0)))
    }

    /// Returns copies of an array along new leading dimensions.
    pub fn repeat(&mut self, id: InstructionId, sizes: &[i64]) -> Result<InstructionId> {
        if sizes.is_empty() {
            return Ok(id);
        }
        let array = self.array(id);
        let shape = Shape::array(array.element_type, &[sizes, &array.sizes()].concat());
        let dimensions = (sizes.len()..sizes.len() + array.rank()).collect();
        self.static_op(Op::Broadcast { dimensions }, &[id], Some(&shape))
    }

    /// Returns an array of zeros.
    pub fn zeros(&mut self, element_type: PrimitiveType, sizes: &[i64]) -> Result<InstructionId> {
        let zero = self.scalar(element_type, 0.0);
        self.repeat(zero, sizes)
    }

    /// Appends zeros to a dimension.
    pub fn pad_end(&mut self, id: InstructionId, dimension: usize, count: i64) -> Result<InstructionId> {
        if count == 0 {
            return Ok(id);
        }
        let array = self.array(id);
        let zero = self.scalar(array.element_type, 0.0);
        let padding_of = |d: usize| PaddingDimension {
            edge_padding_low: 0,
            edge_padding_high: if d == dimension { count } else { 0 },
            interior_padding: 0,
        };
        let padding = PaddingConfig { dimensions: (0..array.rank()).map(padding_of).collect() };
        self.static_op(Op::Pad { padding }, &[id, zero], None)
    }

    /// Converts a value to a condition. A scalar is true if it is not 0, and an array if it has
    /// elements.
    pub fn truth(&mut self, x: InstructionId) -> Result<InstructionId> {
        let shape = self.array(x);
        if shape.rank() > 0 {
            let any = if shape.element_count() > 0 { 1.0 } else { 0.0 };
            return Ok(self.scalar(PrimitiveType::Pred, any));
        }
        match shape.element_type {
            PrimitiveType::Pred => Ok(x),
            _ => self.compare_scalar(ComparisonDirection::Ne, x, 0.0),
        }
    }

    /// Returns the real and imaginary parts.
    pub fn parts(&mut self, x: InstructionId) -> Result<(InstructionId, InstructionId)> {
        Ok((self.op(Op::Real {}, &[x])?, self.op(Op::Imag {}, &[x])?))
    }

    /// Returns the complex conjugate. Real numbers are unchanged.
    pub fn conjugate(&mut self, x: InstructionId) -> Result<InstructionId> {
        if !self.element_type(x).is_complex() {
            return Ok(x);
        }
        let (re, im) = self.parts(x)?;
        let im = self.neg(im)?;
        self.op(Op::Complex {}, &[re, im])
    }

    /// Returns an element of a tuple.
    pub fn tuple_element(&mut self, id: InstructionId, index: usize) -> Result<InstructionId> {
        self.op(Op::GetTupleElement { index }, &[id])
    }
}

/// Returns the sizes that two arrays broadcast to, by NumPy's rule.
pub fn broadcast_sizes(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let size = |sizes: &[i64], d: usize| (d + sizes.len()).checked_sub(rank).map_or(1, |d| sizes[d]);
    (0..rank)
        .map(|d| match (size(a, d), size(b, d)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// Formats a shape like TensorFlow: `[2,3]`.
pub fn list(sizes: &[i64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
    format!("[{}]", sizes.join(","))
}
