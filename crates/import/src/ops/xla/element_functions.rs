//! Functions of elements: what reductions, scatters and sorts of a graph apply, as computations of scalars.

use crate::node::context::NodeContext;
use crate::values::value::Value;
use bounded::Scope;
use hlo::{ComputationId, Op};
use shape::{PrimitiveType, Shape};
use support::Result;

impl NodeContext<'_, '_> {
    /// The function that an attribute names, as a computation: a scalar of each of the types comes in, a scalar of each
    /// of the result types comes out, in a tuple if there are several.
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
                "{attribute} '{name}' is given {} elements, but takes {} arguments",
                types.len(),
                function.arguments.len()
            )
        })?;
        let (inner, parameters) = Scope::of_elements(&name, types);
        let (scope, root) = self.within(inner, |cx| {
            let arguments: Vec<Value> = parameters.iter().map(|&id| Value::Array(id)).collect();
            let made = cx.translate_function(function, &arguments)?;
            let mut elements = Vec::with_capacity(made.len());
            for value in made {
                let Value::Array(id) = value else {
                    let kind = value.kind();
                    return Err(cx.invalid(format!("{attribute} '{name}' returns {kind}, not an element")));
                };
                elements.push(id);
            }
            let shapes: Vec<Shape> = elements.iter().map(|&id| cx.scope_ref().shape(id).clone()).collect();
            let fits = shapes.iter().cloned().eq(results.iter().map(|&t| Shape::scalar(t)));
            cx.check(fits, || {
                let words = |shapes: Vec<Shape>| {
                    shapes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                };
                let wanted = words(results.iter().map(|&t| Shape::scalar(t)).collect());
                format!("{attribute} '{name}' must return {wanted}, but returns {}", words(shapes.clone()))
            })?;
            match elements.as_slice() {
                [element] => Ok(*element),
                elements => cx.op(Op::Tuple {}, elements),
            }
        })?;
        let computation = scope.finish_elements(root).ok_or_else(|| {
            self.invalid(format!(
                "{attribute} '{name}' reads or writes a variable; it may use its arguments and constants only"
            ))
        })?;
        Ok(self.add_computation(computation))
    }
}
