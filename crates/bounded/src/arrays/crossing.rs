//! Passes bounded arrays from one computation into another: takes them apart into the whole array
//! and the sizes, which are ordinary arrays, and reassembles them on the other side.

use crate::builder::{Builder, Scope};
use hlo::analysis::Range;
use hlo::{InstructionId, Op};
use shape::{ArrayShape, Dimension, Literal, PrimitiveType};
use support::{Error, Result};

/// Returns the shapes that an array of this shape passes as: the shape itself, or the whole array
/// and a size for each bounded dimension.
pub fn parts_of_type(shape: &ArrayShape) -> Vec<ArrayShape> {
    let whole = ArrayShape::new(shape.element_type, &shape.sizes());
    let bounded = shape.dimensions.iter().filter(|dimension| dimension.is_dynamic);
    let sizes = bounded.map(|_| ArrayShape::new(PrimitiveType::S32, &[]));
    std::iter::once(if shape.is_static() { shape.clone() } else { whole }).chain(sizes).collect()
}

/// Like [`parts_of_type`], for a value of a computation being built.
pub fn parts(scope: &Scope, id: InstructionId) -> Vec<InstructionId> {
    let shape = scope.shape(id).expect_array();
    let mut sizes = vec![None; shape.rank()];
    let mut whole = id;
    while !scope.shape(whole).expect_array().is_static() {
        let instruction = &scope.computation()[whole];
        let Op::SetDimensionSize { dimension } = *instruction.op() else {
            unreachable!("a bounded array that is not a set-dimension-size")
        };
        let size = instruction.operands()[1];
        sizes[dimension] = sizes[dimension].or(Some(size));
        whole = instruction.operands()[0];
    }
    std::iter::once(whole).chain(sizes.into_iter().flatten()).collect()
}

/// Assembles the value of this shape from its parts.
pub fn assembled(builder: &mut Builder, shape: &ArrayShape, parts: &[InstructionId]) -> InstructionId {
    let mut array = parts[0];
    let bounded = (0..shape.rank()).filter(|&d| shape.dimensions[d].is_dynamic);
    for (dimension, &size) in bounded.zip(&parts[1..]) {
        let range = Range { low: Some(0), high: Some(shape.size(dimension)) };
        builder.note_range(size, range);
        let (module, scope) = builder.module_and_scope();
        let resized = scope.add(module, Op::SetDimensionSize { dimension }, &[array, size], None);
        array = resized.expect("set-dimension-size rejects its operands");
    }
    array
}

/// Returns the least shape that includes arrays of both shapes: the larger bound if dimensions
/// differ.
pub fn joined(a: &ArrayShape, b: &ArrayShape) -> Option<ArrayShape> {
    if a.element_type != b.element_type || a.rank() != b.rank() {
        return None;
    }
    let mut joined = a.clone();
    for (dimension, other) in joined.dimensions.iter_mut().zip(&b.dimensions) {
        let is_dynamic = dimension.is_dynamic || other.is_dynamic;
        if dimension.size != other.size && !is_dynamic {
            return None;
        }
        *dimension = Dimension { size: dimension.size.max(other.size), is_dynamic };
    }
    Some(joined)
}

/// Converts an array to a shape that [`joined`] derived from its own.
pub fn coerced(builder: &mut Builder, id: InstructionId, target: &ArrayShape) -> Result<InstructionId> {
    let source = builder.scope_ref().shape(id).expect_array().clone();
    if source.same_dimensions(target) {
        return Ok(id);
    }
    let mut parts_of_source = parts(builder.scope_ref(), id);
    let mut size_parts = parts_of_source.split_off(1).into_iter();
    let mut sizes = Vec::new();
    for (d, (own, target)) in source.dimensions.iter().zip(&target.dimensions).enumerate() {
        parts_of_source[0] = builder.pad_end(parts_of_source[0], d, target.size - own.size)?;
        if own.is_dynamic {
            sizes.extend(size_parts.next());
        } else if target.is_dynamic {
            let size = i32::try_from(own.size);
            let size = size.map_err(|_| Error::unsupported("an array of bounded size is too long"))?;
            sizes.push(builder.scope().add_constant(Literal::scalar(size)));
        }
    }
    Ok(assembled(builder, target, &[parts_of_source, sizes].concat()))
}
