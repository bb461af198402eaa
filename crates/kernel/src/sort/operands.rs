//! The operands and results of a sort or top-k, and the order of its elements.

use super::as_bits;
use super::numbers::Gathered;
use crate::context::KernelContext;
use crate::context::parameters::Memory;
use crate::element::Element;
use crate::elemental;
use crate::index::Position;
use crate::movement::update::number_of;
use hlo::{ComparisonDirection, ComparisonType, ComputationId, Op};
use nest::ValueId;
use plan::{SortItems, SortPlan};
use support::{Error, Result};

/// A sort or top-k.
pub(crate) struct Sorting<'a> {
    /// Array with the keys: that of the plan, or else the first one.
    pub(crate) key: Memory,
    /// Receives the elements of the keys.
    pub(crate) keys: Option<Memory>,
    /// Receives the places.
    pub(crate) places: Option<Memory>,
    /// All other results.
    pub(crate) gathered: Vec<Gathered>,
    operands: Vec<Memory>,
    op: &'a Op,
}

impl<'a> Sorting<'a> {
    /// Returns the sort of a kernel by these numeric keys, or by its comparison if there are none.
    pub(crate) fn of(cx: &KernelContext<'a>, plan: Option<&SortPlan>) -> Result<Self> {
        let fusion = cx.fusion();
        let mut operands = Vec::new();
        for &operand in fusion.body[fusion.root].operands() {
            operands.push(cx.operand(number_of(cx, operand)?)?.clone());
        }
        let number = plan.map_or(0, |plan| plan.key.operand);
        let key = operands.get(number).cloned();
        let key = key.ok_or_else(|| Error::internal("the key of a sort is not among its operands"))?;
        let op = fusion.root_op();
        let results = match op {
            Op::TopK { .. } => &cx.results()[..1],
            _ => cx.results(),
        };
        let (mut keys, mut gathered) = (None, Vec::new());
        for (k, (operand, result)) in operands.iter().zip(results).enumerate() {
            if k == number && plan.is_some_and(|plan| plan.key.is_element()) {
                keys = Some(result.clone());
            } else {
                gathered.push(Gathered { operand: as_bits(operand), result: as_bits(result) });
            }
        }
        let has_places = plan.is_some_and(|plan| !matches!(plan.items, SortItems::Keys(_)));
        let places = match op {
            Op::TopK { .. } if has_places => cx.results().get(1).cloned(),
            _ => None,
        };
        Ok(Self { key, keys, places, gathered, operands, op })
    }

    /// Returns whether the element at the first of two positions belongs before the one at the
    /// second.
    pub(crate) fn before(&self, cx: &mut KernelContext<'_>, x: &Position, y: &Position) -> Result<ValueId> {
        let mut arguments = Vec::with_capacity(2 * self.operands.len());
        for operand in &self.operands {
            arguments.push(cx.load_at(operand, x)?);
            arguments.push(cx.load_at(operand, y)?);
        }
        let verdict = match self.op {
            Op::Sort { to_apply, .. } => return applied(cx, *to_apply, &arguments),
            Op::TopK { largest, .. } if *largest => ComparisonDirection::Gt,
            _ => ComparisonDirection::Lt,
        };
        let element_type = self.key.shape.element_type;
        let order = if element_type.is_floating_point() {
            ComparisonType::TotalOrder
        } else {
            ComparisonType::Default
        };
        elemental::compare(cx, verdict, order, element_type, arguments[0], arguments[1])
    }
}

fn applied(cx: &mut KernelContext<'_>, to_apply: ComputationId, arguments: &[Element]) -> Result<ValueId> {
    let verdict = cx.apply(to_apply, arguments)?;
    let verdict = verdict.first().map(|v| v.real());
    verdict.ok_or_else(|| Error::internal("the comparison of a sort returned no value"))
}
