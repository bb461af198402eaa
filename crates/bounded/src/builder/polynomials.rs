//! Sizes as polynomials of named dimensions: what an instruction computes, and an instruction for
//! a polynomial. Every scope has one instruction for each, so equal sizes are the same instruction.

use crate::algebra::{Atom, Polynomial};
use crate::builder::Builder;
use crate::size::{SameCount, Size};
use hlo::analysis::Range;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{ArrayShape, PrimitiveType, Scalar, index};
use support::{Error, Result};

/// Maximum number of instructions between a size and the sizes that it is computed from.
const MAX_DEPTH: usize = 64;

impl Builder {
    /// True if the program has sizes that its caller chooses.
    pub fn has_named_sizes(&self) -> bool {
        !self.size_parameters.is_empty()
    }

    /// Returns an integer of an array as a size. The bound follows from the ranges of the named
    /// dimensions. `None` if it may exceed an `s32` or has no upper bound.
    pub fn size_element(&mut self, id: InstructionId, position: usize) -> Result<Option<Size>> {
        let polynomial = self.polynomial(id, position);
        self.size_of(&polynomial)
    }

    /// Returns the sum of a size and a multiple of another one, like [`Self::size_element`].
    pub fn size_sum(&mut self, a: Size, b: Size, multiple: i64) -> Result<Option<Size>> {
        let (a, b) = (self.polynomial_of(a), self.polynomial_of(b));
        match a.plus(&b, multiple) {
            Some(sum) => self.size_of(&sum),
            None => Ok(None),
        }
    }

    /// Returns a size divided by a positive number, rounded up.
    pub fn size_quotient(&mut self, a: Size, divisor: i64) -> Result<Option<Size>> {
        let more = self.polynomial_of(a).plus(&Polynomial::constant(divisor - 1), 1);
        let quotient =
            more.and_then(|a| a.quotient(&Polynomial::constant(divisor), &|atom| self.range_of(atom)));
        match quotient {
            Some(quotient) => self.size_of(&quotient),
            None => Ok(None),
        }
    }

    /// Returns a size times a positive number, divided by another one and rounded down.
    pub fn size_fraction(&mut self, a: Size, multiple: i64, divisor: i64) -> Result<Option<Size>> {
        let product = Polynomial::default().plus(&self.polynomial_of(a), multiple);
        let quotient = product.and_then(|product| {
            product.quotient(&Polynomial::constant(divisor), &|atom| self.range_of(atom))
        });
        match quotient {
            Some(quotient) => self.size_of(&quotient),
            None => Ok(None),
        }
    }

    /// Returns a size of the entry for use in the innermost scope.
    pub fn size_of_entry(&mut self, id: InstructionId) -> Result<InstructionId> {
        let polynomial = self.polynomial_of_scope(0, id);
        self.instruction_of(&polynomial)
    }

    /// Returns the difference of two sizes if it is known.
    pub fn known_difference(&mut self, a: Size, b: Size) -> Option<i64> {
        let (a, b) = (self.polynomial_of(a), self.polynomial_of(b));
        a.plus(&b, -1)?.as_constant()
    }

    /// Returns whether arrays of these sizes have equally many elements, as far as that depends on
    /// named dimensions alone.
    pub fn same_count(&mut self, a: &[Size], b: &[Size]) -> Result<SameCount> {
        let (Some(a), Some(b)) = (self.product_of_sizes(a), self.product_of_sizes(b)) else {
            return Ok(SameCount::Always);
        };
        let Some(difference) = a.plus(&b, -1) else { return Ok(SameCount::Always) };
        let is_element = |atom: &Atom| matches!(atom, Atom::Element { .. });
        if difference.as_constant() == Some(0) || difference.depends_on(&is_element) {
            return Ok(SameCount::Always);
        }
        let range = difference.range(&|atom| self.range_of(atom));
        let is_never = range.low.is_some_and(|low| low > 0) || range.high.is_some_and(|high| high < 0);
        // A multiple of one size is a number for one size only.
        let is_multiple = |x: &Polynomial| {
            let mut terms = x.terms();
            matches!(terms.next(), Some(([Atom::Named(_)], _))) && terms.next().is_none()
        };
        let is_single = is_multiple(&a) && b.as_constant().is_some();
        if is_never || is_single {
            return Ok(SameCount::OneSizeAtMost);
        }
        let fits = |x: &Polynomial| {
            let Range { low, high } = x.range(&|atom| self.range_of(atom));
            [low, high].into_iter().all(|end| end.is_some_and(|end| i32::try_from(end).is_ok()))
        };
        if !fits(&a) || !fits(&b) {
            return Ok(SameCount::Always);
        }
        let (a, b) = (self.instruction_of(&a)?, self.instruction_of(&b)?);
        self.compare(ComparisonDirection::Eq, a, b).map(SameCount::If)
    }

    /// Returns the product of sizes.
    fn product_of_sizes(&mut self, sizes: &[Size]) -> Option<Polynomial> {
        let mut count = Polynomial::constant(1);
        for &size in sizes {
            count = count.times(&self.polynomial_of(size))?;
        }
        Some(count)
    }

    /// Returns the range of a size.
    pub fn size_range(&mut self, size: Size) -> Range {
        let polynomial = self.polynomial_of(size);
        polynomial.range(&|atom| self.range_of(atom))
    }

    /// Returns a number that the difference of two integers does not exceed in any run.
    pub(crate) fn largest_difference_of_sizes(&mut self, a: InstructionId, b: InstructionId) -> Option<i64> {
        let difference = self.polynomial(a, 0).plus(&self.polynomial(b, 0), -1)?;
        difference.range(&|atom| self.range_of(atom)).high
    }

    /// Returns the value of a `pred` or an integer if the ranges of the named dimensions decide it.
    pub fn known_integer(&mut self, id: InstructionId, position: usize) -> Option<i64> {
        self.polynomial(id, position).as_constant()
    }

    /// Returns what a size computes.
    pub(crate) fn polynomial_of(&mut self, size: Size) -> Polynomial {
        match size.size {
            Some(id) => self.polynomial(id, 0),
            None => Polynomial::constant(size.bound),
        }
    }

    /// Returns the instruction of the innermost scope for a size, and its bound.
    fn size_of(&mut self, polynomial: &Polynomial) -> Result<Option<Size>> {
        if let Some(value) = polynomial.as_constant() {
            return Ok(Some(Size::known(value)));
        }
        let range = polynomial.range(&|atom| self.range_of(atom));
        match range.high {
            Some(bound) if bound <= i64::from(i32::MAX) => {
                let size = Some(self.instruction_of(polynomial)?);
                Ok(Some(Size { bound: bound.max(0), size }))
            }
            _ => Ok(None),
        }
    }

    /// Returns sizes, each from 0 to its bound, as the instructions of the innermost scope for what
    /// they compute.
    pub(crate) fn settled_sizes(
        &mut self,
        sizes: &[Option<InstructionId>],
        bounds: &[i64],
    ) -> Result<Vec<Option<InstructionId>>> {
        let mut settled = Vec::with_capacity(sizes.len());
        for (&size, &bound) in sizes.iter().zip(bounds) {
            let Some(size) = size else {
                settled.push(None);
                continue;
            };
            let polynomial = self.polynomial(size, 0);
            let (most, none) = (Polynomial::constant(bound), Polynomial::default());
            let leaf = |atom: &Atom| self.range_of(atom);
            let within = polynomial.minimum(&most, &leaf).and_then(|size| size.maximum(&none, &leaf));
            settled.push(Some(match within {
                Some(within) => self.instruction_of(&within)?,
                None => size,
            }));
        }
        Ok(settled)
    }

    /// Returns the instruction of the innermost scope for a polynomial, an `s32` scalar.
    pub(crate) fn instruction_of(&mut self, polynomial: &Polynomial) -> Result<InstructionId> {
        if let Some(value) = polynomial.as_constant() {
            return self.s32(value);
        }
        if let Some(&id) = self.scope_ref().sizes.get(polynomial) {
            return Ok(id);
        }
        let mut sum: Option<InstructionId> = None;
        for (factors, coefficient) in polynomial.terms() {
            let mut product: Option<InstructionId> = None;
            for atom in factors {
                let factor = self.instruction_of_atom(atom)?;
                product = Some(match product {
                    Some(product) => self.mul(product, factor)?,
                    None => factor,
                });
            }
            let term = match (product, coefficient) {
                (Some(product), 1) => product,
                (Some(product), _) => {
                    let coefficient = self.s32(coefficient)?;
                    self.mul(product, coefficient)?
                }
                (None, _) => self.s32(coefficient)?,
            };
            sum = Some(match sum {
                Some(sum) => self.add(sum, term)?,
                None => term,
            });
        }
        let id = sum.ok_or_else(|| Error::internal("expected a polynomial with a term"))?;
        let range = polynomial.range(&|atom| self.range_of(atom));
        // An atom has the range of its own instruction.
        if self.scope_ref().computation()[id].op().opcode() != hlo::Opcode::Parameter {
            self.note_range(id, range);
        }
        let scope = self.scope();
        scope.sizes.insert(polynomial.clone(), id);
        scope.polynomials.insert((id, 0), polynomial.clone());
        Ok(id)
    }

    fn instruction_of_atom(&mut self, atom: &Atom) -> Result<InstructionId> {
        let op = match atom {
            Atom::Named(number) => return Ok(self.size_parameter(*number)),
            Atom::Element { level, id, position } => return self.element_within(*level, *id, *position),
            Atom::Quotient(..) => Op::Divide {},
            Atom::Remainder(..) => Op::Remainder {},
            Atom::Maximum(..) => Op::Maximum {},
            Atom::Minimum(..) => Op::Minimum {},
        };
        let (Atom::Quotient(a, b) | Atom::Remainder(a, b) | Atom::Maximum(a, b) | Atom::Minimum(a, b)) = atom
        else {
            return Err(Error::internal("expected an atom of two polynomials"));
        };
        let (a, b) = (self.instruction_of(a)?, self.instruction_of(b)?);
        self.op(op, &[a, b])
    }

    /// Returns an integer of an array of an enclosing scope, as an `s32` scalar of the innermost.
    fn element_within(&mut self, level: usize, id: InstructionId, position: usize) -> Result<InstructionId> {
        let shape = self.scopes[level].shape(id).clone();
        let mut id = id;
        for scope in &mut self.scopes[level + 1..] {
            id = scope.capture(id, &shape);
        }
        let count = shape.as_array().map_or(1, ArrayShape::element_count);
        if count > 1 {
            let flat = self.reshape(id, &[count])?;
            id = self.slice_in(flat, 0, position as i64, position as i64 + 1)?;
        }
        let element = self.reshape(id, &[])?;
        self.convert(element, PrimitiveType::S32)
    }

    /// Returns the range of a named dimension or an element.
    pub(super) fn range_of(&self, atom: &Atom) -> Range {
        match atom {
            Atom::Named(number) => self.range_at(0, self.size_parameters[*number]),
            Atom::Element { level, id, .. } if *level < self.scopes.len() => self.range_at(*level, *id),
            _ => Range::UNKNOWN,
        }
    }

    /// True for an element of a type whose values are those of `s32`.
    fn is_narrow(&self, atom: &Atom) -> bool {
        let Atom::Element { level, id, .. } = atom else { return false };
        let shape = self.scopes.get(*level).and_then(|scope| scope.shape(*id).as_array());
        shape.is_some_and(|shape| {
            let bits = shape.element_type.bit_width();
            bits < 32 || bits == 32 && shape.element_type.is_signed_integer()
        })
    }

    /// Returns what a size of an open scope is.
    pub(crate) fn polynomial_of_scope(&mut self, level: usize, id: InstructionId) -> Polynomial {
        self.polynomial_at(level, id, 0, MAX_DEPTH)
    }

    /// Returns what an integer of the innermost scope is.
    pub(crate) fn polynomial(&mut self, id: InstructionId, position: usize) -> Polynomial {
        self.polynomial_at(self.level(), id, position, MAX_DEPTH)
    }

    pub(super) fn polynomial_at(
        &mut self,
        level: usize,
        id: InstructionId,
        position: usize,
        depth: usize,
    ) -> Polynomial {
        if let Some(known) = self.scopes[level].polynomials.get(&(id, position)) {
            return known.clone();
        }
        let element = || Polynomial::atom(Atom::Element { level, id, position });
        let polynomial = if depth == 0 {
            None
        } else {
            let found = self.computed(level, id, position, depth);
            let found = found.filter(|found| self.cannot_wrap(level, id, found));
            // A loop over constants, for example.
            found.or_else(|| self.folded_element(level, id, position).map(Polynomial::constant))
        };
        let polynomial = polynomial.unwrap_or_else(element);
        self.scopes[level].polynomials.insert((id, position), polynomial.clone());
        polynomial
    }

    /// True if all values of a polynomial fit the type of an instruction, and those from which it
    /// is computed fit sizes, which are `s32`.
    fn cannot_wrap(&self, level: usize, id: InstructionId, polynomial: &Polynomial) -> bool {
        let Some(array) = self.scopes[level].shape(id).as_array() else { return false };
        let leaf = |atom: &Atom| self.range_of(atom);
        let is_leaf = |atom: &Atom| matches!(atom, Atom::Named(_) | Atom::Element { .. });
        let is_atom = |polynomial: &Polynomial, is_one: &dyn Fn(&Atom) -> bool| {
            polynomial.terms().count() == 1
                && polynomial.terms().all(|(factors, coefficient)| {
                    coefficient == 1 && factors.len() == 1 && factors.iter().all(is_one)
                })
        };
        let is_fixed = polynomial.as_constant().is_some();
        // An element alone was not computed.
        if !is_fixed
            && !is_atom(polynomial, &is_leaf)
            && !polynomial.fits_s32(&leaf, &|atom| self.is_narrow(atom))
        {
            return false;
        }
        let Range { low: Some(low), high: Some(high) } = polynomial.range(&leaf) else {
            // Neither was the smaller or larger one of two values of unknown range.
            return is_atom(polynomial, &|_| true);
        };
        let bits = array.element_type.bit_width();
        let (least, most) = if array.element_type.is_signed_integer() {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else if array.element_type == PrimitiveType::Pred {
            (0, 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        i128::from(low) >= least && i128::from(high) <= most
    }

    /// Looks into an instruction. `None` if it is not arithmetic on integers.
    fn computed(
        &mut self,
        level: usize,
        id: InstructionId,
        position: usize,
        depth: usize,
    ) -> Option<Polynomial> {
        let computation = self.scopes[level].computation();
        let instruction = &computation[id];
        let array = instruction.shape().as_array()?;
        let is_integer = |array: &ArrayShape| {
            array.is_static()
                && (array.element_type.is_integer() || array.element_type == PrimitiveType::Pred)
        };
        if !is_integer(array) || position as i64 >= array.element_count() {
            return None;
        }
        let operands = instruction.operands().to_vec();
        let sizes_of = |id: InstructionId| computation[id].shape().as_array().map(ArrayShape::sizes);
        // The element of an operand with the same value.
        let (operand, place) = match instruction.op() {
            Op::Constant { literal } => {
                return match literal.scalar_at(position) {
                    Scalar::Pred(value) => Some(Polynomial::constant(value.into())),
                    scalar => scalar.as_i64().map(Polynomial::constant),
                };
            }
            Op::Parameter { .. } if level == 0 => {
                let number = self.size_parameters.iter().position(|&size| size == id)?;
                return Some(Polynomial::atom(Atom::Named(number)));
            }
            Op::GetTupleElement { index } => {
                let captures = self.scopes[level].captures.as_ref()?;
                if operands[0] != captures.parameter || !captures.is_captured(*index) {
                    return None;
                }
                let outer = captures.outer[*index];
                return Some(self.polynomial_at(level - 1, outer, position, depth - 1));
            }
            Op::Reshape {} => (operands[0], position),
            Op::Convert {} if computation[operands[0]].shape().as_array().is_some_and(is_integer) => {
                (operands[0], position)
            }
            Op::Convert {} => return self.quotient_of_floats(level, operands[0], position, depth - 1),
            Op::DynamicSlice { .. } => return self.sliced_element(level, id, position, depth - 1),
            Op::Broadcast { dimensions } => {
                let at = index::multi_index(&array.sizes(), position as i64);
                let at: Vec<i64> = dimensions.iter().map(|&d| at[d]).collect();
                (operands[0], index::linear_index(&sizes_of(operands[0])?, &at) as usize)
            }
            Op::Slice { slice } => {
                let at = index::multi_index(&array.sizes(), position as i64);
                let at: Vec<i64> = at.iter().zip(slice).map(|(at, s)| s.start + at * s.stride).collect();
                (operands[0], index::linear_index(&sizes_of(operands[0])?, &at) as usize)
            }
            Op::Concatenate { dimension } => {
                let mut at = index::multi_index(&array.sizes(), position as i64);
                let mut parts = operands.iter();
                loop {
                    let &part = parts.next()?;
                    let sizes = sizes_of(part)?;
                    if at[*dimension] < sizes[*dimension] {
                        break (part, index::linear_index(&sizes, &at) as usize);
                    }
                    at[*dimension] -= sizes[*dimension];
                }
            }
            op => {
                let op = op.clone();
                return self.arithmetic(level, &op, &operands, position, depth);
            }
        };
        Some(self.polynomial_at(level, operand, place, depth - 1))
    }

    /// Returns the whole part of a quotient of integers that is computed in `f64`. It is exact for
    /// numbers that fit `s32`: rounding does not take their quotient to the next whole number.
    fn quotient_of_floats(
        &mut self,
        level: usize,
        id: InstructionId,
        position: usize,
        depth: usize,
    ) -> Option<Polynomial> {
        let computation = self.scopes[level].computation();
        let quotient = &computation[id];
        let is_double = quotient.shape().as_array()?.element_type == PrimitiveType::F64;
        if !is_double || !matches!(quotient.op(), Op::Divide {}) {
            return None;
        }
        let mut parts = Vec::new();
        for operand in quotient.operands().to_vec() {
            let converted = &self.scopes[level].computation()[operand];
            let is_converted = matches!(converted.op(), Op::Convert {});
            let integer = converted.operands().first().copied().filter(|_| is_converted)?;
            self.scopes[level].shape(integer).as_array().filter(|array| array.element_type.is_integer())?;
            let part = self.polynomial_at(level, integer, position, depth.checked_sub(1)?);
            let Range { low, high } = part.range(&|atom| self.range_of(atom));
            let fits = [low, high].into_iter().all(|end| end.is_some_and(|end| i32::try_from(end).is_ok()));
            parts.push(Some(part).filter(|_| fits)?);
        }
        parts[0].quotient(&parts[1], &|atom| self.range_of(atom))
    }

    /// Returns the result of elementwise arithmetic on integers.
    fn arithmetic(
        &mut self,
        level: usize,
        op: &Op,
        operands: &[InstructionId],
        position: usize,
        depth: usize,
    ) -> Option<Polynomial> {
        let is_known = matches!(
            op,
            Op::Add {}
                | Op::Subtract {}
                | Op::Multiply {}
                | Op::Negate {}
                | Op::Divide {}
                | Op::Remainder {}
                | Op::Maximum {}
                | Op::Minimum {}
                | Op::Clamp {}
                | Op::Sign {}
                | Op::Select {}
                | Op::Compare { .. }
                | Op::And {}
                | Op::Or {}
                | Op::Not {}
        );
        if !is_known {
            return None;
        }
        let mut is_pred = true;
        for &operand in operands {
            let array = self.scopes[level].shape(operand).as_array()?;
            is_pred &= array.element_type == PrimitiveType::Pred;
        }
        let mut values = Vec::with_capacity(operands.len());
        for &operand in operands {
            let count = self.scopes[level].shape(operand).as_array()?.element_count();
            let element_type = self.scopes[level].shape(operand).as_array()?.element_type;
            if !element_type.is_integer() && element_type != PrimitiveType::Pred {
                return None;
            }
            // The limits of a clamp and the condition of a selection may be scalars.
            let at = if count == 1 { 0 } else { position };
            values.push(self.polynomial_at(level, operand, at, depth - 1));
        }
        let leaf = |atom: &Atom| self.range_of(atom);
        let flag = |value: bool| Some(Polynomial::constant(value.into()));
        match (op, &values[..]) {
            (Op::Not {}, [a]) if is_pred => Polynomial::constant(1).plus(a, -1),
            (Op::And {}, [a, b]) if is_pred => a.minimum(b, &leaf),
            (Op::Or {}, [a, b]) if is_pred => a.maximum(b, &leaf),
            (Op::Compare { direction, .. }, [a, b]) => {
                let Range { low, high } = a.plus(b, -1)?.range(&leaf);
                let (below, above) = (high.is_some_and(|high| high < 0), low.is_some_and(|low| low > 0));
                let (least, most) = (low.is_some_and(|low| low >= 0), high.is_some_and(|high| high <= 0));
                let (is_true, is_false) = match direction {
                    ComparisonDirection::Eq => (least && most, below || above),
                    ComparisonDirection::Ne => (below || above, least && most),
                    ComparisonDirection::Lt => (below, least),
                    ComparisonDirection::Le => (most, above),
                    ComparisonDirection::Gt => (above, most),
                    ComparisonDirection::Ge => (least, below),
                };
                match direction {
                    _ if is_true || is_false => flag(is_true),
                    ComparisonDirection::Ne => a.plus(b, -1)?.is_not_zero(&leaf),
                    ComparisonDirection::Eq => {
                        Polynomial::constant(1).plus(&a.plus(b, -1)?.is_not_zero(&leaf)?, -1)
                    }
                    _ => None,
                }
            }
            (Op::Select {}, [condition, a, b]) => match condition.as_constant() {
                Some(0) => Some(b.clone()),
                Some(_) => Some(a.clone()),
                None if a == b => Some(a.clone()),
                None => Polynomial::rounded_down(condition, a, b, &leaf),
            },
            (Op::Add {}, [a, b]) if !is_pred => a.plus(b, 1),
            (Op::Subtract {}, [a, b]) => a.plus(b, -1),
            (Op::Multiply {}, [a, b]) if !is_pred => a.times(b),
            (Op::Negate {}, [a]) => Polynomial::default().plus(a, -1),
            (Op::Divide {}, [a, b]) => a.quotient(b, &leaf),
            (Op::Remainder {}, [a, b]) => a.remainder(b, &leaf),
            (Op::Maximum {}, [a, b]) => a.maximum(b, &leaf),
            (Op::Minimum {}, [a, b]) => a.minimum(b, &leaf),
            (Op::Clamp {}, [low, a, high]) => a.maximum(low, &leaf)?.minimum(high, &leaf),
            (Op::Sign {}, [a]) => match a.range(&leaf) {
                Range { low: Some(1..), .. } => Some(Polynomial::constant(1)),
                Range { high: Some(..=-1), .. } => Some(Polynomial::constant(-1)),
                Range { low: Some(0..), .. } => a.minimum(&Polynomial::constant(1), &leaf),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the sizes of an array, as in [`Self::all_sizes`], with what each computes.
    pub(crate) fn polynomials_of(&mut self, id: InstructionId) -> Result<Vec<Polynomial>> {
        let sizes = self.all_sizes(id)?;
        Ok(sizes.into_iter().map(|size| self.polynomial_of(size)).collect())
    }
}
