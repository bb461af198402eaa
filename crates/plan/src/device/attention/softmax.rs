//! Recognizes a softmax that can be computed while the scores of a row arrive tile by tile.

use crate::contraction::tile::accumulator;
use crate::fusion::{Fusion, Position};
use crate::loops;
use hlo::{InstructionId, Op, is_associative};
use shape::{ArrayShape, PrimitiveType, Scalar};

/// The work between the products: `weights = exp(logits - shift(maximum)) / scale(sum)`, or
/// multiplied by it. All of them are instructions of the fusion's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineSoftmax {
    /// The scores after scale, mask, and bias. Numbers of elements are those of the first product.
    pub logits: InstructionId,
    /// The reduction to the largest logit of each row.
    pub maximum: InstructionId,
    /// The row's largest logit, or a constant if that is larger. Differences are therefore never
    /// positive, and neither are those of the shifts before and after more logits.
    pub shift: InstructionId,
    /// The exponential of the difference.
    pub exponential: InstructionId,
    /// The reduction to the sum of a row's exponentials.
    pub sum: InstructionId,
    /// A function of the row's sum.
    pub scale: InstructionId,
    /// True if exponentials are divided by the scale, false if they are multiplied by it.
    pub divides: bool,
    /// The left operand of the second product.
    pub weights: InstructionId,
}

impl OnlineSoftmax {
    /// Returns the softmax between two dots, if there is nothing else.
    pub(super) fn of(fusion: &Fusion<'_>, scores: InstructionId, values: InstructionId) -> Option<Self> {
        let body = fusion.body;
        let weights = body[values].operands()[0];
        let mut root = weights;
        while let Op::Reshape {} | Op::Bitcast {} | Op::Convert {} = body[root].op() {
            root = inside(fusion, body[root].operands()[0])?;
        }
        let &[first, second] = inside(fusion, root).map(|root| body[root].operands())? else { return None };
        let (exponentials, scale, divides) = match body[root].op() {
            Op::Divide {} => (first, second, true),
            Op::Multiply {} if exponential(fusion, first).is_some() => (first, second, false),
            Op::Multiply {} => (second, first, false),
            _ => return None,
        };
        let exponential = exponential(fusion, exponentials)?;
        let difference = inside(fusion, widened(fusion, body[exponential].operands()[0]))?;
        let Op::Subtract {} = body[difference].op() else { return None };
        let &[logits, shift] = body[difference].operands() else { return None };
        let is_maximum = |id: InstructionId, op: &Op| {
            matches!(op, Op::Maximum {}) && widened(fusion, body[id].operands()[0]) == widened(fusion, logits)
        };
        let is_sum = |id: InstructionId, op: &Op| {
            matches!(op, Op::Add {}) && widened(fusion, body[id].operands()[0]) == exponential
        };
        let softmax = Self {
            logits,
            maximum: reduction(fusion, shift, is_maximum)?,
            shift,
            exponential,
            sum: reduction(fusion, scale, is_sum)?,
            scale,
            divides,
            weights,
        };
        softmax.is_valid(fusion, scores).then_some(softmax)
    }

    /// True if logits are computed from single scores in their order, and all else from rows.
    fn is_valid(&self, fusion: &Fusion<'_>, scores: InstructionId) -> bool {
        let body = fusion.body;
        let Some(whole) = array(fusion, self.logits) else { return false };
        let part = fusion.part(self.logits, None);
        let mut dependents = vec![scores];
        for id in part.instructions() {
            let op = body[id].op();
            let depends = body[id].operands().iter().any(|operand| dependents.contains(operand));
            let keeps_order = op.is_elementwise() || matches!(op, Op::Reshape {} | Op::Bitcast {});
            let is_known = id == scores || (!op.is_contraction() && loops::check_fusible(op).is_ok());
            if !is_known || (depends && !keeps_order) || matches!(op, Op::Reduce { .. }) {
                return false;
            }
            if depends {
                dependents.push(id);
            }
        }
        dependents.contains(&self.logits)
            && body[self.weights].users().len() == 1
            && array(fusion, scores).is_some_and(|shape| shape.element_count() == whole.element_count())
            && is_of_rows(fusion, self.shift, self.maximum, whole)
            && is_at_least(fusion, self.shift, self.maximum)
            && starts_with_a_number(fusion, self.maximum)
            && is_of_rows(fusion, self.scale, self.sum, whole)
            && columns(fusion, self.maximum) == columns(fusion, self.sum)
            && columns(fusion, self.maximum).is_some()
    }

    /// True if the registers that hold the softmax's numbers have the type of a product's sums.
    pub(super) fn is_computed_in(&self, fusion: &Fusion<'_>, sums: PrimitiveType) -> bool {
        let is_same = |id| {
            array(fusion, id).is_some_and(|shape| {
                let ty = shape.element_type;
                ty.is_floating_point() && accumulator(ty) == sums
            })
        };
        [self.logits, self.maximum, self.shift, self.exponential, self.sum, self.scale]
            .into_iter()
            .all(is_same)
    }

    /// Number of elements of a row.
    pub(super) fn row(&self, fusion: &Fusion<'_>) -> Option<i64> {
        columns(fusion, self.maximum)
    }

    /// Bytes that separate kernels move for each score: they write scores and weights, and read
    /// both.
    pub(super) fn traffic(&self, fusion: &Fusion<'_>) -> i64 {
        let size = |id| array(fusion, id).map_or(0, |shape| shape.element_type.byte_size() as i64);
        2 * (size(self.logits) + size(self.weights))
    }
}

fn array<'m>(fusion: &Fusion<'m>, id: InstructionId) -> Option<&'m ArrayShape> {
    fusion.body[id].shape().as_array()
}

fn inside(fusion: &Fusion<'_>, id: InstructionId) -> Option<InstructionId> {
    (fusion.position(id) == Position::Inside).then_some(id)
}

/// The instruction upstream of conversions of floats that lose nothing.
fn widened(fusion: &Fusion<'_>, mut id: InstructionId) -> InstructionId {
    while let (Some(inner), Op::Convert {}) = (inside(fusion, id), fusion.body[id].op()) {
        let operand = fusion.body[inner].operands()[0];
        let types = [operand, id].map(|id| array(fusion, id).map(|shape| shape.element_type));
        let [Some(from), Some(to)] = types else { break };
        if !from.is_floating_point() || !to.is_floating_point() || from.byte_size() >= to.byte_size() {
            break;
        }
        id = operand;
    }
    id
}

fn exponential(fusion: &Fusion<'_>, id: InstructionId) -> Option<InstructionId> {
    let id = inside(fusion, widened(fusion, id))?;
    matches!(fusion.body[id].op(), Op::Exp {}).then_some(id)
}

/// Returns the only reduction upstream of a function of rows, if it is the expected one.
fn reduction(
    fusion: &Fusion<'_>,
    id: InstructionId,
    is_expected: impl Fn(InstructionId, &Op) -> bool,
) -> Option<InstructionId> {
    let (mut pending, mut seen, mut found) = (vec![id], Vec::new(), None);
    while let Some(id) = pending.pop() {
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        match fusion.body[inside(fusion, id)?].op() {
            Op::Reduce { to_apply, .. } => {
                let computation = &fusion.module[*to_apply];
                let is_expected = fusion.body[id].operands().len() == 2
                    && is_associative(computation)
                    && is_expected(id, computation[computation.root()].op());
                if !is_expected || found.replace(id).is_some() {
                    return None;
                }
            }
            Op::Constant { .. } => {}
            op if op.is_elementwise() || is_move(op) => pending.extend(fusion.body[id].operands()),
            _ => return None,
        }
    }
    found
}

fn is_move(op: &Op) -> bool {
    matches!(op, Op::Broadcast { .. } | Op::Reshape {} | Op::Bitcast {})
}

/// Number of elements that a reduction of the last dimensions combines.
fn columns(fusion: &Fusion<'_>, reduction: InstructionId) -> Option<i64> {
    let Op::Reduce { dimensions, .. } = fusion.body[reduction].op() else { return None };
    let sizes = array(fusion, fusion.body[reduction].operands()[0])?.sizes();
    let wide = || (0..sizes.len()).filter(|&d| sizes[d] != 1);
    let is_last = wide().map(|d| dimensions.contains(&d)).is_sorted();
    let init = array(fusion, fusion.body[reduction].operands()[1])?;
    (is_last && init.rank() == 0).then(|| dimensions.iter().map(|&d| sizes[d]).product())
}

/// True if the initial value of a reduction is a constant other than NaN.
fn starts_with_a_number(fusion: &Fusion<'_>, reduction: InstructionId) -> bool {
    let Op::Constant { literal } = fusion.body[fusion.body[reduction].operands()[1]].op() else {
        return false;
    };
    matches!(literal.scalar_at(0), Scalar::Float(number) if !number.is_nan())
}

/// True if a function of rows is that of the reduction, or a constant where that is larger.
fn is_at_least(fusion: &Fusion<'_>, mut id: InstructionId, reduction: InstructionId) -> bool {
    let is_constant = |mut id: InstructionId| {
        while is_move(fusion.body[id].op()) {
            id = fusion.body[id].operands()[0];
        }
        matches!(fusion.body[id].op(), Op::Constant { .. })
    };
    while id != reduction {
        let operands = fusion.body[id].operands();
        id = match fusion.body[id].op() {
            Op::Maximum {} if is_constant(operands[0]) => operands[1],
            Op::Maximum {} if is_constant(operands[1]) => operands[0],
            Op::Convert {} if widened(fusion, id) != id => widened(fusion, id),
            op if is_move(op) => operands[0],
            _ => return false,
        };
    }
    true
}

/// True if an instruction's elements are functions of the reduced row that they are in.
fn is_of_rows(fusion: &Fusion<'_>, id: InstructionId, reduction: InstructionId, whole: &ArrayShape) -> bool {
    let Some(rows) = array(fusion, reduction).map(ArrayShape::element_count) else { return false };
    let Op::Reduce { dimensions: reduced, .. } = fusion.body[reduction].op() else { return false };
    let input = array(fusion, fusion.body[reduction].operands()[0]);
    if input.is_none_or(|input| input.sizes() != whole.sizes()) {
        return false;
    }
    let (mut pending, mut seen) = (vec![id], Vec::new());
    while let Some(id) = pending.pop() {
        if id == reduction || seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let Some(shape) = array(fusion, id) else { return false };
        let is_as_expected = match fusion.body[id].op() {
            Op::Constant { literal } => literal.is_splat(),
            Op::Broadcast { dimensions } => {
                array(fusion, fusion.body[id].operands()[0]).is_some_and(|operand| {
                    let sizes = operand.sizes();
                    let to = (0..sizes.len()).filter(|&d| sizes[d] != 1).map(|d| dimensions[d]);
                    let to: Vec<usize> = to.collect();
                    let is_whole = shape.sizes() == whole.sizes() && !to.iter().any(|d| reduced.contains(d));
                    let keeps_rows = operand.element_count() == rows
                        && to.is_sorted()
                        && (is_whole || shape.element_count() == rows);
                    operand.rank() == 0 || keeps_rows
                })
            }
            Op::Reshape {} | Op::Bitcast {} => shape.element_count() == rows,
            op => op.is_elementwise(),
        };
        if !is_as_expected {
            return false;
        }
        pending.extend(fusion.body[id].operands());
    }
    true
}
