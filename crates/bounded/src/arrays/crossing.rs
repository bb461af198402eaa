//! Bounded arrays that pass from one computation into another: as the whole array and the sizes, which are arrays like
//! others, and put together again on the other side.

use crate::builder::{Builder, Scope};
use hlo::analysis::Range;
use hlo::{InstructionId, Op};
use shape::{ArrayShape, Dimension, Literal, PrimitiveType};
use support::{Error, Result};

/// What an array of this shape passes as: itself, or the whole and a size for each bounded dimension.
pub fn parts_of_type(shape: &ArrayShape) -> Vec<ArrayShape> {
    let whole = ArrayShape::new(shape.element_type, &shape.sizes());
    let bounded = shape.dimensions.iter().filter(|dimension| dimension.is_dynamic);
    let sizes = bounded.map(|_| ArrayShape::new(PrimitiveType::S32, &[]));
    std::iter::once(if shape.is_static() { shape.clone() } else { whole }).chain(sizes).collect()
}

/// The same of a value of a computation that is being built.
pub fn parts(scope: &Scope, id: InstructionId) -> Vec<InstructionId> {
    let shape = scope.shape(id).expect_array();
    let mut sizes = vec![None; shape.rank()];
    let mut whole = id;
    while !scope.shape(whole).expect_array().is_static() {
        let instruction = &scope.computation()[whole];
        let Op::SetDimensionSize { dimension } = *instruction.op() else {
            unreachable!("bounded arrays are made by setting their sizes")
        };
        let size = instruction.operands()[1];
        sizes[dimension] = sizes[dimension].or(Some(size));
        whole = instruction.operands()[0];
    }
    std::iter::once(whole).chain(sizes.into_iter().flatten()).collect()
}

/// The value of this shape that such parts make.
pub fn assembled(builder: &mut Builder, shape: &ArrayShape, parts: &[InstructionId]) -> InstructionId {
    let mut array = parts[0];
    let bounded = (0..shape.rank()).filter(|&d| shape.dimensions[d].is_dynamic);
    for (dimension, &size) in bounded.zip(&parts[1..]) {
        let range = Range { low: Some(0), high: Some(shape.size(dimension)) };
        builder.note_range(size, range);
        let (module, scope) = builder.module_and_scope();
        let added = scope.add(module, Op::SetDimensionSize { dimension }, &[array, size], None);
        array = added.expect("a dimension of the array and an s32 scalar");
    }
    array
}

/// The least shape that holds arrays of both: of dimensions that differ the larger bound.
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

/// An array as one of a shape that [`joined`] made of its own.
pub fn coerced(builder: &mut Builder, id: InstructionId, wanted: &ArrayShape) -> Result<InstructionId> {
    let have = builder.scope_ref().shape(id).expect_array().clone();
    if have.same_dimensions(wanted) {
        return Ok(id);
    }
    let mut made = parts(builder.scope_ref(), id);
    let mut given = made.split_off(1).into_iter();
    let mut sizes = Vec::new();
    for (d, (own, wanted)) in have.dimensions.iter().zip(&wanted.dimensions).enumerate() {
        made[0] = builder.pad_end(made[0], d, wanted.size - own.size)?;
        if own.is_dynamic {
            sizes.extend(given.next());
        } else if wanted.is_dynamic {
            let size = i32::try_from(own.size);
            let size = size.map_err(|_| Error::unsupported("an array of bounded size is too long"))?;
            sizes.push(builder.scope().add_constant(Literal::scalar(size)));
        }
    }
    Ok(assembled(builder, wanted, &[made, sizes].concat()))
}
