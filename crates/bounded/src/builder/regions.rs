//! Loops and branches on arrays of bounded size whose sizes are the same inside and outside.
//!
//! Only whole arrays pass between computations. Inside, their sizes are computed again from the
//! sizes of named dimensions and from other values of the enclosing scopes, which are captured.

use crate::algebra::{Atom, Polynomial};
use crate::builder::{Builder, LoopFacts, Scope};
use crate::size::Size;
use hlo::{InstructionId, Op};
use shape::Shape;
use support::{Error, Result};

/// The values that a loop carries.
#[derive(Debug)]
pub struct Carried {
    /// The whole arrays before the loop.
    start: Vec<(InstructionId, Shape)>,
    /// The sizes of bounded dimensions, `None` for others.
    sizes: Vec<Vec<Option<Polynomial>>>,
}

/// A branch of a conditional that was built, and its results.
#[derive(Debug)]
pub struct Branch {
    scope: Scope,
    results: Vec<InstructionId>,
}

impl Builder {
    /// Returns an array of the enclosing scope for use in the innermost one.
    pub fn bring_in(&mut self, outer: InstructionId) -> Result<InstructionId> {
        let level = self.level();
        let rank = self.scope_at(level - 1).shape(outer).as_array().map_or(0, |array| array.rank());
        let mut sizes: Vec<Option<InstructionId>> = vec![None; rank];
        let mut data = outer;
        loop {
            let instruction = &self.scope_at(level - 1).computation()[data];
            let Op::SetDimensionSize { dimension } = *instruction.op() else { break };
            sizes[dimension].get_or_insert(instruction.operands()[1]);
            data = instruction.operands()[0];
        }
        let data = self.bring_in_array(data);
        for size in sizes.iter_mut().flatten() {
            let polynomial = self.polynomial_of_scope(level - 1, *size);
            *size = self.instruction_of(&polynomial)?;
        }
        self.bounded(data, &sizes)
    }

    /// Prepares values to be carried by a loop.
    pub fn carried(&mut self, values: &[InstructionId]) -> Result<Carried> {
        let (mut start, mut sizes) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
        for &value in values {
            let part = self.split(value)?;
            start.push((part.data, self.scope_ref().shape(part.data).clone()));
            let of_dimension = |cx: &mut Self, size: Option<InstructionId>| Some(cx.polynomial(size?, 0));
            sizes.push(part.sizes.iter().map(|&size| of_dimension(self, size)).collect());
        }
        Ok(Carried { start, sizes })
    }

    /// Opens the condition of a loop.
    pub fn open_condition(&mut self, name: &str, carried: &Carried) -> usize {
        let why_unbounded = "the number of its iterations is only known at run time".to_owned();
        let scope = self.loop_scope(name, &carried.start, LoopFacts { bound: None, why_unbounded });
        self.open(scope)
    }

    /// Returns the carried values in the condition or in the body, which is the innermost scope.
    pub fn carried_values(&mut self, carried: &Carried) -> Result<Vec<InstructionId>> {
        let mut values = Vec::with_capacity(carried.start.len());
        for (index, sizes) in carried.sizes.iter().enumerate() {
            let data = self.scope().element(index);
            values.push(self.sized(data, sizes)?);
        }
        Ok(values)
    }

    /// Closes the body of a loop, and adds the loop to the scope around it. `results` are the
    /// values for the next iteration. Returns the values after the loop.
    pub fn finish_loop(
        &mut self,
        carried: &Carried,
        (condition, predicate): (Scope, InstructionId),
        level: usize,
        results: &[InstructionId],
    ) -> Result<Vec<InstructionId>> {
        if results.len() != carried.start.len() {
            return Err(Error::invalid(format!(
                "the body of a loop returns {} values instead of {}",
                results.len(),
                carried.start.len()
            )));
        }
        let mut next = Vec::with_capacity(results.len());
        for (k, &result) in results.iter().enumerate() {
            let sizes = carried.sizes[k].clone();
            next.push(self.carried_on(k, result, &carried.start[k].1, &sizes)?);
        }
        let mut body = self.close(level);
        let outer = body.captures().map(|captures| captures.outer().to_vec()).unwrap_or_default();
        next.extend((next.len()..outer.len()).map(|index| body.element(index)).collect::<Vec<_>>());
        let (body, _) = body.finish(&next);
        let (mut condition, _) = condition.finish_at(predicate);
        let parameter = condition.parameters()[0];
        condition.set_shape(parameter, body[body.parameters()[0]].shape().clone());
        let tuple = self.static_op(Op::Tuple {}, &outer, None)?;
        let condition = self.add_computation(condition);
        let body = self.add_computation(body);
        let result = self.static_op(Op::While { condition, body }, &[tuple], None)?;
        let mut values = Vec::with_capacity(results.len());
        for (index, sizes) in carried.sizes.iter().enumerate() {
            let data = self.static_op(Op::GetTupleElement { index }, &[result], None)?;
            values.push(self.sized(data, sizes)?);
        }
        Ok(values)
    }

    /// Returns an array whose dimensions have these sizes. `None` means the bound.
    fn sized(&mut self, data: InstructionId, sizes: &[Option<Polynomial>]) -> Result<InstructionId> {
        let mut own = Vec::with_capacity(sizes.len());
        for size in sizes {
            own.push(size.as_ref().map(|size| self.instruction_of(size)).transpose()?);
        }
        self.bounded(data, &own)
    }

    /// Returns the whole array of a value for the next iteration, which must have the sizes that it
    /// had before.
    fn carried_on(
        &mut self,
        k: usize,
        result: InstructionId,
        shape: &Shape,
        sizes: &[Option<Polynomial>],
    ) -> Result<InstructionId> {
        let Some(array) = shape.as_array() else { return Ok(result) };
        let own = self.polynomials_of(result)?;
        for (d, (own, size)) in own.iter().zip(sizes).enumerate() {
            let known = Polynomial::constant(array.size(d));
            if own != size.as_ref().unwrap_or(&known) {
                return Err(Error::unsupported(format!(
                    "the size of dimension {d} of carried value {k} may change from one iteration to the next"
                )));
            }
        }
        self.resized_to(result, &array.sizes())
    }

    /// Returns a whole array whose dimensions have these bounds, none of which cuts true elements.
    pub fn resized_to(&mut self, id: InstructionId, bounds: &[i64]) -> Result<InstructionId> {
        let data = self.split(id)?.data;
        let own = self.sizes(data);
        if own == bounds {
            return Ok(data);
        }
        let mut data = data;
        for (d, (&own, &bound)) in own.iter().zip(bounds).enumerate() {
            if own > bound {
                data = self.slice_in(data, d, 0, bound)?;
            }
        }
        let padding: Vec<(i64, i64, i64)> =
            own.iter().zip(bounds).map(|(own, bound)| (0, (bound - own).max(0), 0)).collect();
        if padding.iter().all(|&(_, high, _)| high == 0) {
            return Ok(data);
        }
        let element_type = self.element_type(data);
        let zero = self.scalar(element_type, 0.0);
        self.pad(data, zero, &padding)
    }

    /// Opens a branch of a conditional.
    pub fn open_branch(&mut self, name: &str, index: usize) -> usize {
        let scope = self.branch_scope(name, index);
        self.open(scope)
    }

    /// Closes a branch with these results.
    pub fn close_branch(&mut self, level: usize, results: Vec<InstructionId>) -> Branch {
        Branch { scope: self.close(level), results }
    }

    /// Adds a conditional of these branches, and returns its results. A size that differs between
    /// branches becomes a result of them.
    pub fn finish_conditional(
        &mut self,
        chooser: InstructionId,
        branches: Vec<Branch>,
    ) -> Result<Vec<InstructionId>> {
        let outside = self.level();
        let count = branches.first().map_or(0, |branch| branch.results.len());
        if branches.iter().any(|branch| branch.results.len() != count) {
            return Err(Error::invalid("branches return different numbers of values"));
        }
        // The bounds of each result that hold in all branches, and its sizes.
        let mut bounds: Vec<Vec<i64>> = vec![Vec::new(); count];
        let mut sizes: Vec<Vec<Option<Polynomial>>> = vec![Vec::new(); count];
        let mut open = Vec::with_capacity(branches.len());
        for (number, Branch { scope, results }) in branches.into_iter().enumerate() {
            let level = self.open(scope);
            for (k, &result) in results.iter().enumerate() {
                if self.scope_ref().shape(result).as_array().is_none() {
                    continue;
                }
                let own = self.sizes(result);
                let of_result = self.polynomials_of(result)?;
                let is_inside = |size: &Polynomial| {
                    size.depends_on(&|atom| matches!(atom, Atom::Element { level, .. } if *level > outside))
                };
                let of_result = of_result.into_iter().map(|size| Some(size).filter(|size| !is_inside(size)));
                if number == 0 {
                    bounds[k] = own;
                    sizes[k] = of_result.collect();
                    continue;
                }
                if own.len() != bounds[k].len() {
                    return Err(Error::invalid(format!("result {k} has a different rank in each branch")));
                }
                bounds[k].iter_mut().zip(own).for_each(|(bound, own)| *bound = own.max(*bound));
                sizes[k]
                    .iter_mut()
                    .zip(of_result)
                    .for_each(|(size, own)| *size = size.take().filter(|s| own.as_ref() == Some(s)));
            }
            open.push(Branch { scope: self.close(level), results });
        }
        let mut operands = vec![chooser];
        let mut branch_computations = Vec::with_capacity(open.len());
        for Branch { scope, results } in open {
            let level = self.open(scope);
            let mut elements = Vec::with_capacity(count);
            for (k, &result) in results.iter().enumerate() {
                let is_array = self.scope_ref().shape(result).as_array().is_some();
                elements.push(if is_array { self.resized_to(result, &bounds[k])? } else { result });
            }
            for (k, &result) in results.iter().enumerate() {
                for (d, _) in sizes[k].iter().enumerate().filter(|(_, size)| size.is_none()) {
                    elements.push(self.true_size(result, d)?);
                }
            }
            let (computation, outer) = self.close(level).finish(&elements);
            branch_computations.push(self.add_computation(computation));
            operands.push(self.static_op(Op::Tuple {}, &outer, None)?);
        }
        self.count_branches(branch_computations.len())?;
        let result = self.static_op(Op::Conditional { branch_computations }, &operands, None)?;
        let mut next = count;
        let mut values = Vec::with_capacity(count);
        for (index, sizes) in sizes.iter().enumerate() {
            let data = self.static_op(Op::GetTupleElement { index }, &[result], None)?;
            let mut own = Vec::with_capacity(sizes.len());
            for size in sizes {
                own.push(Some(match size {
                    Some(size) => self.instruction_of(size)?,
                    None => {
                        next += 1;
                        self.static_op(Op::GetTupleElement { index: next - 1 }, &[result], None)?
                    }
                }));
            }
            values.push(self.bounded(data, &own)?);
        }
        Ok(values)
    }

    /// Fails a run with a message if a scalar is false.
    pub fn assert(&mut self, condition: InstructionId, message: String) -> Result<()> {
        let call = Op::CustomCall {
            custom_call_target: hlo::custom_call::ASSERT.to_owned(),
            backend_config: message,
            custom_call_has_side_effect: true,
            attributes: hlo::RawAttributes::default(),
        };
        self.static_op(call, &[condition], Some(&Shape::Tuple(Vec::new())))?;
        Ok(())
    }

    /// Returns an array with a dimension of this size: what it has, if the two are known to be
    /// equal. Otherwise a run in which they differ fails with a message.
    pub fn with_size(
        &mut self,
        id: InstructionId,
        dimension: usize,
        size: Size,
        message: &str,
    ) -> Result<InstructionId> {
        let own = self.all_sizes(id)?[dimension];
        match self.known_difference(own, size) {
            Some(0) => {}
            Some(_) => return Err(Error::invalid(message)),
            None => {
                let (own, size) = (self.size_value(own)?, self.size_value(size)?);
                let is_equal = self.compare(hlo::ComparisonDirection::Eq, own, size)?;
                self.assert(is_equal, message.to_owned())?;
            }
        }
        let mut part = self.split(id)?;
        let mut bounds = self.sizes(part.data);
        bounds[dimension] = size.bound;
        part.data = self.resized_to(part.data, &bounds)?;
        part.sizes[dimension] = size.size;
        self.bounded(part.data, &part.sizes)
    }
}
