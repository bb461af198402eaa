//! The module of a batch of any size: a loop over its rows.
//!
//! Code is generated from the modules for a few sizes instead. This one states what they compute,
//! for the evaluator and for readers of HLO.

use hlo::{
    ComparisonDirection, ComparisonType, ComputationBuilder, InstructionId, Interface, Module, Op,
    SizeParameter,
};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use support::Result;

/// Returns the module of a batch with this interface: it calls the entry of the program for one row
/// with each row of the feeds.
pub fn loop_over_rows(row: &Module, interface: &Interface) -> Result<Module> {
    let mut module = row.clone();
    // The entry of the whole program is called `main`, as readers of HLO expect.
    let row = module.entry_computation().clone().renamed("one_row");
    let row = module.add_computation(row);
    module.set_entry(row);
    module.remove_unreachable_computations();
    let rows = Rows::new(interface);
    let condition = rows.condition(&module)?;
    let condition = module.add_computation(condition);
    let body = rows.body(&module, row)?;
    let body = module.add_computation(body);
    let entry = rows.entry(&module, condition, body)?;
    let entry = module.add_computation(entry);
    module.set_entry(entry);
    let sizes = interface.sizes().map(|(parameter, _, range)| SizeParameter {
        parameter,
        low: range.low,
        high: range.high,
    });
    let sizes: Vec<SizeParameter> = sizes.collect();
    module.set_size_parameters(sizes);
    module.set_input_output_alias(Vec::new());
    Ok(module)
}

/// The loop. Its state is the row's number, the number of rows, the arguments, and the results.
struct Rows<'a> {
    interface: &'a Interface,
    /// Positions of the arguments of a row among the program's.
    arguments: Vec<usize>,
    state: Shape,
}

impl<'a> Rows<'a> {
    fn new(interface: &'a Interface) -> Self {
        let all = interface.arguments().iter().enumerate();
        let arguments: Vec<usize> =
            all.filter(|(_, argument)| argument.range.is_none()).map(|(k, _)| k).collect();
        let scalar = Shape::scalar(PrimitiveType::S32);
        let mut state = vec![scalar.clone(), scalar];
        state.extend(arguments.iter().map(|&k| Shape::from(interface.arguments()[k].shape.clone())));
        state.extend(interface.results().iter().map(|result| Shape::from(result.whole())));
        Self { interface, arguments, state: Shape::Tuple(state) }
    }

    /// True if rows of this argument of the interface are those of the batch.
    fn is_batched(&self, argument: usize) -> bool {
        !self.interface.arguments()[argument].named_dimensions.is_empty()
    }

    fn condition(&self, module: &Module) -> Result<hlo::Computation> {
        let mut b = ComputationBuilder::new("rows_left");
        let state = b.parameter("state", self.state.clone());
        let row = b.op(module, Op::GetTupleElement { index: 0 }, &[state])?;
        let rows = b.op(module, Op::GetTupleElement { index: 1 }, &[state])?;
        let less =
            Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::Default };
        let is_left = b.op(module, less, &[row, rows])?;
        Ok(b.finish(is_left))
    }

    fn body(&self, module: &Module, of_row: hlo::ComputationId) -> Result<hlo::Computation> {
        let mut b = ComputationBuilder::new("row");
        let state = b.parameter("state", self.state.clone());
        let count = self.state.as_tuple().map_or(0, <[Shape]>::len);
        let mut elements = Vec::with_capacity(count);
        for index in 0..count {
            elements.push(b.op(module, Op::GetTupleElement { index }, &[state])?);
        }
        let (row, zero) = (elements[0], b.constant(Literal::scalar(0i32)));
        let starts = |rank: usize| (0..rank).map(|d| if d == 0 { row } else { zero });
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for (&k, &array) in self.arguments.iter().zip(&elements[2..]) {
            if !self.is_batched(k) {
                arguments.push(array);
                continue;
            }
            let mut sizes = array_of(b.shape(array)).sizes();
            sizes[0] = 1;
            let operands: Vec<InstructionId> = [array].into_iter().chain(starts(sizes.len())).collect();
            let op = Op::DynamicSlice { dynamic_slice_sizes: sizes };
            arguments.push(b.op(module, op, &operands)?);
        }
        let results = b.op(module, Op::Call { to_apply: of_row }, &arguments)?;
        let first = 2 + self.arguments.len();
        for (index, output) in self.interface.results().iter().enumerate() {
            let result = b.op(module, Op::GetTupleElement { index }, &[results])?;
            let whole = elements[first + index];
            elements[first + index] = if output.sizes().is_empty() {
                result
            } else {
                let rank = array_of(b.shape(whole)).rank();
                let operands: Vec<InstructionId> = [whole, result].into_iter().chain(starts(rank)).collect();
                b.op(module, Op::DynamicUpdateSlice {}, &operands)?
            };
        }
        let one = b.constant(Literal::scalar(1i32));
        elements[0] = b.op(module, Op::Add {}, &[row, one])?;
        let root = b.op(module, Op::Tuple {}, &elements)?;
        Ok(b.finish(root))
    }

    fn entry(
        &self,
        module: &Module,
        condition: hlo::ComputationId,
        body: hlo::ComputationId,
    ) -> Result<hlo::Computation> {
        let mut b = ComputationBuilder::new("main");
        let mut parameters = Vec::new();
        for argument in self.interface.arguments() {
            let name = argument.name.as_deref().unwrap_or(argument.id.node());
            parameters.push(b.parameter(name, argument.shape.clone().into()));
        }
        let size = self.interface.sizes().next().map_or(0, |(k, _, _)| k);
        let mut elements = vec![b.constant(Literal::scalar(0i32)), parameters[size]];
        for &position in &self.arguments {
            let array = parameters[position];
            elements.push(array);
            if self.is_batched(position) {
                // The size of the feed is that of the batch.
                let of_feed =
                    b.op(module, Op::SetDimensionSize { dimension: 0 }, &[array, parameters[size]])?;
                elements[1] = b.op(module, Op::GetDimensionSize { dimension: 0 }, &[of_feed])?;
            }
        }
        for result in self.interface.results() {
            let shape = result.whole();
            let scalar = ArrayShape::new(shape.element_type, &[]);
            let zeros = vec![0; scalar.byte_size() as usize];
            let zero = Literal::from_bytes(scalar, zeros.into())
                .ok_or_else(|| support::Error::internal("expected a literal of a scalar"))?;
            let zero = b.constant(zero);
            let broadcast = Op::Broadcast { dimensions: Vec::new() };
            elements.push(b.op_with_shape(module, shape.into(), broadcast, &[zero])?);
        }
        let state = b.op(module, Op::Tuple {}, &elements)?;
        let state = b.op(module, Op::While { condition, body }, &[state])?;
        let mut results = Vec::new();
        for (k, output) in self.interface.results().iter().enumerate() {
            let index = 2 + self.arguments.len() + k;
            let result = b.op(module, Op::GetTupleElement { index }, &[state])?;
            results.push(if output.sizes().is_empty() {
                result
            } else {
                b.op(module, Op::SetDimensionSize { dimension: 0 }, &[result, parameters[size]])?
            });
        }
        let root = b.op(module, Op::Tuple {}, &results)?;
        Ok(b.finish(root))
    }
}

/// Returns the shape of an array; a program's arguments and results are arrays.
fn array_of(shape: &Shape) -> &ArrayShape {
    shape.expect_array()
}
