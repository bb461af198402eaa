//! Functions of elements: the functions of a graph that reductions, scatters, and sorts apply, as
//! computations of scalars.

use crate::node::context::NodeContext;
use crate::values::value::Value;
use bounded::Scope;
use hlo::{ComputationId, Op};
use shape::{PrimitiveType, Shape};
use support::Result;

impl NodeContext<'_, '_> {
    /// Translates the function that an attribute names to a computation. It takes a scalar of each
    /// type, and returns a scalar of each result type, in a tuple if there are several.
    pub(crate) fn element_function(
        &mut self,
        attribute: &str,
        types: &[PrimitiveType],
        results: &[PrimitiveType],
    ) -> Result<ComputationId> {
        let name = self.attributes().func(attribute)?.0.to_owned();
        let function = self.function(&name)?;
        self.check(function.arguments.len() == types.len() && !types.is_empty(), || {
            format!(
                "{attribute} '{name}': expected {} arguments, got a function of {}",
                types.len(),
                function.arguments.len()
            )
        })?;
        let (inner, parameters) = Scope::of_elements(&name, types);
        let (scope, root) = self.within(inner, |cx| {
            let arguments: Vec<Value> = parameters.iter().map(|&id| Value::Array(id)).collect();
            let values = cx.translate_function(function, &arguments)?;
            let mut elements = Vec::with_capacity(values.len());
            for value in values {
                let Value::Array(id) = value else {
                    let kind = value.kind();
                    return Err(cx.invalid(format!(
                        "{attribute} '{name}': expected an element as its result, got {kind}"
                    )));
                };
                elements.push(id);
            }
            let shapes: Vec<Shape> = elements.iter().map(|&id| cx.scope_ref().shape(id).clone()).collect();
            let fits = shapes.iter().cloned().eq(results.iter().map(|&t| Shape::scalar(t)));
            cx.check(fits, || {
                let to_text = |shapes: Vec<Shape>| {
                    shapes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                };
                let expected = to_text(results.iter().map(|&t| Shape::scalar(t)).collect());
                format!(
                    "{attribute} '{name}': expected the result {expected}, got {}",
                    to_text(shapes.clone())
                )
            })?;
            match elements.as_slice() {
                [element] => Ok(*element),
                elements => cx.op(Op::Tuple {}, elements),
            }
        })?;
        let computation = scope.finish_elements(root).ok_or_else(|| {
            self.invalid(format!(
                "{attribute} '{name}' reads or writes a variable; it may only use its arguments and constants"
            ))
        })?;
        Ok(self.add_computation(computation))
    }
}
