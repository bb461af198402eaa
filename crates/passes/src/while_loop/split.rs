//! Splits products with a concatenation into a part that can be computed for all rows at once and
//! the rest.

use super::Loop;
use super::rows::{Kind, Row, Rows};
use super::state::Site;
use hlo::{Computation, DotDimensionNumbers, InstructionId, Module, Op, OpMetadata, SliceDimension};
use shape::{ArrayShape, PrimitiveType};

/// `dot(concatenate(x, h), w) => dot(x, w's upper rows) + dot(h, w's lower rows)` in the body of a
/// loop, where x is a row value, w is loop-invariant, and h changes otherwise. The addition of an
/// invariant value is applied to the first product. Changes the rounding: sums are added in another
/// order. Returns true if anything changed.
pub(super) fn split_products(
    module: &mut Module,
    while_loop: Loop,
    is_worth_it: &dyn Fn(Row) -> bool,
) -> bool {
    let changed = split_concatenations(module, while_loop, is_worth_it);
    let Some(while_loop) = Loop::at(module, Site { caller: while_loop.caller, id: while_loop.id }) else {
        return changed;
    };
    changed | gather_terms(module, while_loop, is_worth_it)
}

fn split_concatenations(module: &mut Module, while_loop: Loop, is_worth_it: &dyn Fn(Row) -> bool) -> bool {
    let rows = Rows::new(module, while_loop);
    let products: Vec<Product> = module[while_loop.body]
        .post_order()
        .into_iter()
        .filter_map(|id| product(&module[while_loop.body], &rows, id, is_worth_it))
        .collect();
    if products.is_empty() {
        return false;
    }
    let while_loop = while_loop.exclusive(module);
    let body = module.computation_mut(while_loop.body);
    for product in &products {
        apply(body, &rows, product);
    }
    crate::simplify::dce::sweep(body);
    true
}

/// `(product + h) + b => h + (product + b)`, in any order of operands, for a product of rows and a
/// loop-invariant b. Returns true if anything changed.
fn gather_terms(module: &mut Module, while_loop: Loop, is_worth_it: &dyn Fn(Row) -> bool) -> bool {
    let rows = Rows::new(module, while_loop);
    let body = &module[while_loop.body];
    let sums: Vec<[InstructionId; 4]> =
        body.post_order().into_iter().filter_map(|id| sum(body, &rows, id, is_worth_it)).collect();
    if sums.is_empty() {
        return false;
    }
    let while_loop = while_loop.exclusive(module);
    let body = module.computation_mut(while_loop.body);
    for [outer, product, other, invariant] in sums {
        let (shape, metadata) = (body[outer].shape().clone(), body[outer].metadata().clone());
        let first = body.add("", Op::Add {}, shape.clone(), &[product, invariant], metadata.clone());
        let sum = body.add("", Op::Add {}, shape, &[other, first], metadata);
        body.replace_all_uses(outer, sum);
    }
    crate::simplify::dce::sweep(body);
    true
}

/// The parts of such a sum: the sum itself, the product, the other term, and the invariant term.
fn sum(
    body: &Computation,
    rows: &Rows,
    outer: InstructionId,
    is_worth_it: &dyn Fn(Row) -> bool,
) -> Option<[InstructionId; 4]> {
    let element_type = body[outer].shape().as_array()?.element_type;
    let is_float = matches!(element_type, PrimitiveType::F32 | PrimitiveType::F64);
    let (Op::Add {}, &[a, b], true) = (body[outer].op(), body[outer].operands(), is_float) else {
        return None;
    };
    let (inner, invariant) = match (rows.kind(a), rows.kind(b)) {
        (None, Some(Kind::Same)) => (a, b),
        (Some(Kind::Same), None) => (b, a),
        _ => return None,
    };
    let (Op::Add {}, &[x, y]) = (body[inner].op(), body[inner].operands()) else { return None };
    let is_product = |id: InstructionId| {
        let is_row = rows.row(id).is_some_and(is_worth_it);
        is_row
            && matches!(body[id].op(), Op::Dot { .. } | Op::Convolution { .. })
            && body[id].users().len() == 1
    };
    let (product, other) = match (is_product(x), is_product(y)) {
        (true, false) => (x, y),
        (false, true) => (y, x),
        _ => return None,
    };
    (body[inner].users() == [outer]).then_some([outer, product, other, invariant])
}

/// A product with a concatenation along the summed dimension.
struct Product {
    dot: InstructionId,
    /// Index of the operand that is the concatenation: 0 or 1.
    side: usize,
    /// Its parts that are row values, each with its offset.
    row_parts: Vec<(InstructionId, i64)>,
    rest: Vec<(InstructionId, i64)>,
}

fn product(
    body: &Computation,
    rows: &Rows,
    id: InstructionId,
    is_worth_it: &dyn Fn(Row) -> bool,
) -> Option<Product> {
    let Op::Dot { dot_dimension_numbers: numbers } = body[id].op() else { return None };
    let element_type = body[id].shape().as_array()?.element_type;
    let is_plain = numbers.lhs_batch_dims.is_empty() && numbers.lhs_contracting_dims.len() == 1;
    if !is_plain || !matches!(element_type, PrimitiveType::F32 | PrimitiveType::F64) {
        return None;
    }
    let contracting = [numbers.lhs_contracting_dims[0], numbers.rhs_contracting_dims[0]];
    let operands = body[id].operands();
    let side = (0..2).find(|&side| {
        let is_along =
            |op: &Op| matches!(*op, Op::Concatenate { dimension } if dimension == contracting[side]);
        is_along(body[operands[side]].op()) && rows.kind(operands[1 - side]) == Some(Kind::Same)
    })?;
    if rows.kind(operands[side]).is_some() {
        return None;
    }
    let parts = body[operands[side]].operands();
    let row = parts.iter().find_map(|&part| rows.row(part).filter(|&row| is_worth_it(row)))?;
    let mut product = Product { dot: id, side, row_parts: Vec::new(), rest: Vec::new() };
    let mut offset = 0;
    for &part in parts {
        let list = if rows.row(part) == Some(row) { &mut product.row_parts } else { &mut product.rest };
        list.push((part, offset));
        offset += body[part].shape().as_array()?.size(contracting[side]);
    }
    Some(product)
}

fn apply(body: &mut Computation, rows: &Rows, product: &Product) {
    let row_parts = partial(body, product, &product.row_parts);
    let rest = partial(body, product, &product.rest);
    // An invariant that is added in every iteration can be added to all rows.
    let added = match body[product.dot].users() {
        &[user] if matches!(body[user].op(), Op::Add {}) && body.root() != user => {
            let other = body[user].operands().iter().copied().find(|&o| o != product.dot);
            other.filter(|&other| rows.kind(other) == Some(Kind::Same)).map(|other| (user, other))
        }
        _ => None,
    };
    let mut add = |a: InstructionId, b: InstructionId, like: InstructionId| {
        let (shape, metadata) = (body[like].shape().clone(), body[like].metadata().clone());
        body.add("", Op::Add {}, shape, &[a, b], metadata)
    };
    let (old, new) = match added {
        Some((user, other)) => {
            let first = add(row_parts, other, user);
            (user, add(first, rest, user))
        }
        None => (product.dot, add(row_parts, rest, product.dot)),
    };
    body.replace_all_uses(old, new);
}

/// The product of some parts with the corresponding rows of the other operand.
fn partial(body: &mut Computation, product: &Product, parts: &[(InstructionId, i64)]) -> InstructionId {
    let Op::Dot { dot_dimension_numbers: numbers } = body[product.dot].op().clone() else {
        unreachable!("product is not a dot")
    };
    let DotDimensionNumbers { lhs_contracting_dims: lhs, rhs_contracting_dims: rhs, .. } = &numbers;
    let contracting = [lhs[0], rhs[0]];
    let (own, other) = (contracting[product.side], contracting[1 - product.side]);
    let whole = body[product.dot].operands()[1 - product.side];
    let metadata = body[product.dot].metadata().clone();
    let slices: Vec<InstructionId> = runs(body, parts, own)
        .into_iter()
        .map(|(start, limit)| slice(body, whole, other, start, limit, &metadata))
        .collect();
    let parts: Vec<InstructionId> = parts.iter().map(|&(part, _)| part).collect();
    let mut operands =
        [concatenated(body, &parts, own, &metadata), concatenated(body, &slices, other, &metadata)];
    if product.side == 1 {
        operands.reverse();
    }
    let shape = body[product.dot].shape().clone();
    body.add("", Op::Dot { dot_dimension_numbers: numbers }, shape, &operands, metadata)
}

/// The ranges of parts along a dimension, with adjacent parts merged.
fn runs(body: &Computation, parts: &[(InstructionId, i64)], dimension: usize) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for &(part, start) in parts {
        let limit = start + body[part].shape().expect_array().size(dimension);
        match runs.last_mut() {
            Some(last) if last.1 == start => last.1 = limit,
            _ => runs.push((start, limit)),
        }
    }
    runs
}

fn slice(
    body: &mut Computation,
    whole: InstructionId,
    dimension: usize,
    start: i64,
    limit: i64,
    metadata: &OpMetadata,
) -> InstructionId {
    let shape = body[whole].shape().expect_array();
    let mut sizes = shape.sizes();
    let all = |&limit: &i64| SliceDimension { start: 0, limit, stride: 1 };
    let mut slice: Vec<SliceDimension> = sizes.iter().map(all).collect();
    slice[dimension] = SliceDimension { start, limit, stride: 1 };
    sizes[dimension] = limit - start;
    let shape = ArrayShape::new(shape.element_type, &sizes);
    body.add("", Op::Slice { slice }, shape.into(), &[whole], metadata.clone())
}

fn concatenated(
    body: &mut Computation,
    parts: &[InstructionId],
    dimension: usize,
    metadata: &OpMetadata,
) -> InstructionId {
    if let &[only] = parts {
        return only;
    }
    let shape = body[parts[0]].shape().expect_array();
    let mut sizes = shape.sizes();
    sizes[dimension] = parts.iter().map(|&part| body[part].shape().expect_array().size(dimension)).sum();
    let shape = ArrayShape::new(shape.element_type, &sizes);
    body.add("", Op::Concatenate { dimension }, shape.into(), parts, metadata.clone())
}
