//! Loads of an operand's elements. Elements outside the array are zero.

use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::contraction::tile::zero;
use crate::element::{Element, decode, memory_type};
use crate::elemental::conversion;
use crate::index::Index;
use nest::{Type, ValueId};
use plan::{ContractionView, OperandView, Role};
use shape::PrimitiveType;
use support::Result;

/// The indices of an element along the axes of each role.
pub(super) type Coordinates = [Vec<Index>; 4];

/// An operand in memory.
#[derive(Clone, Copy)]
pub(super) struct Operand<'p> {
    view: &'p OperandView,
    whole: &'p ContractionView,
    pointer: ValueId,
    alignment: i64,
    element_type: PrimitiveType,
    accumulator: PrimitiveType,
}

/// The place of an element: its number in the array, and the condition for being inside.
pub(super) struct Spot {
    pub(super) number: Index,
    pub(super) inside: Inside,
}

/// The relation of an element to the array.
#[derive(Clone, Copy)]
pub(super) enum Inside {
    Always,
    Never,
    When(ValueId),
}

impl Inside {
    /// Both conditions.
    pub(super) fn and(self, cx: &mut KernelContext<'_>, other: Containment) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Containment::Never) => Self::Never,
            (inside, Containment::Always) => inside,
            (Self::Always, Containment::When(b)) => Self::When(b),
            (Self::When(a), Containment::When(b)) => {
                let depth = cx.depth_of_all([a, b]);
                Self::When(cx.at(depth, |builder| builder.and(a, b)))
            }
        }
    }
}

impl<'p> Operand<'p> {
    pub(super) fn new(
        cx: &KernelContext<'_>,
        view: &'p OperandView,
        whole: &'p ContractionView,
        number: usize,
        accumulator: PrimitiveType,
    ) -> Result<Self> {
        let memory = cx.operand(number)?;
        Ok(Self {
            view,
            whole,
            pointer: memory.pointer,
            alignment: memory.alignment.into(),
            element_type: memory.shape.element_type,
            accumulator,
        })
    }

    /// Bytes of an element.
    pub(super) fn size(&self) -> i64 {
        self.element_type.byte_size() as i64
    }

    /// Upper bound of the neighbors along a role that can be loaded together, at most `most`.
    pub(super) fn run(&self, role: Role, most: i64) -> i64 {
        let most = most.min(self.alignment / self.size()).max(1);
        let most = 1 << (most as u64).ilog2();
        if self.element_type.is_complex() { 1 } else { self.view.run(self.whole, role, most) }
    }

    /// True if neighbors of a role are neighbors in memory.
    pub(super) fn is_along(&self, role: Role) -> bool {
        self.view.fastest(role) == 1
    }

    /// Returns the place of an element.
    pub(super) fn spot(&self, cx: &mut KernelContext<'_>, coordinates: &Coordinates) -> Result<Spot> {
        let mut number = Index::constant(self.view.offset);
        for (strides, indices) in self.view.strides.iter().zip(coordinates) {
            for (&stride, index) in strides.iter().zip(indices) {
                number = number.plus(&index.times(stride));
            }
        }
        let mut inside = Inside::Always;
        for check in &self.view.checks {
            let mut at = Index::constant(check.offset);
            for &(role, axis, factor) in &check.terms {
                at = at.plus(&coordinates[role as usize][axis].times(factor));
            }
            let last = (check.size - 1) * check.dilation;
            let contained = cx.contains(&at, 0, last + 1)?;
            inside = inside.and(cx, contained);
            if check.dilation > 1 {
                let clamped = cx.clamp(&at, 0, last)?;
                let (element, between) = cx.div_rem(&clamped, check.dilation)?;
                let is_element = cx.contains(&between, 0, 1)?;
                inside = inside.and(cx, is_element);
                number = number.plus(&element.times(check.stride));
            }
        }
        Ok(Spot { number, inside })
    }

    /// Loads `lanes` neighboring elements, which are inside or outside together, as sums' type.
    pub(super) fn load(&self, cx: &mut KernelContext<'_>, spot: &Spot, lanes: u32) -> Result<Element> {
        let raw = self.load_raw(cx, spot, lanes)?;
        let element = raw.map(|raw| decode(cx, self.element_type, raw));
        conversion::convert(cx, self.element_type, self.accumulator, element)
    }

    /// Loads `lanes` neighboring elements, which are inside or outside together, in their memory
    /// form.
    pub(super) fn load_raw(&self, cx: &mut KernelContext<'_>, spot: &Spot, lanes: u32) -> Result<Element> {
        let ty = Type::vector(memory_type(self.element_type), lanes);
        let nothing = zero(cx, ty);
        let is_complex = self.element_type.is_complex();
        let nothing = if is_complex { Element::Complex(nothing, nothing) } else { Element::Real(nothing) };
        // Elements outside are read from the start of the array instead, and discarded.
        let number = match spot.inside {
            Inside::Never => return Ok(nothing),
            Inside::Always => cx.scalar_value(&spot.number)?,
            Inside::When(condition) => {
                let number = cx.scalar_value(&spot.number)?;
                let depth = cx.depth_of_all([condition, number]);
                cx.at(depth, |b| {
                    let first = b.index(0);
                    b.select(condition, number, first)
                })
            }
        };
        let pointer = cx.offset(self.pointer, number, self.size());
        let part = ty.scalar.byte_size() as u32;
        let alignment = (part * lanes).min(self.alignment as u32);
        let raw = cx.load(ty, pointer, alignment);
        let element = if is_complex {
            let imaginary = cx.offset_bytes(pointer, part.into());
            Element::Complex(raw, cx.load(ty, imaginary, part))
        } else {
            Element::Real(raw)
        };
        Ok(match spot.inside {
            Inside::When(condition) => element.zip(nothing, |v, zero| cx.select(condition, v, zero)),
            _ => element,
        })
    }
}

/// Converts a row-major number to indices along axes.
pub(super) fn along(cx: &mut KernelContext<'_>, axes: &[i64], number: &Index) -> Result<Vec<Index>> {
    let mut indices = vec![Index::default(); axes.len()];
    let mut rest = number.clone();
    for axis in (0..axes.len()).rev() {
        if axis == 0 {
            indices[0] = rest;
            break;
        }
        (rest, indices[axis]) = cx.div_rem(&rest, axes[axis])?;
    }
    Ok(indices)
}

/// Same as [`along`] for a number `first + within`, where `first` is a multiple of `depth` and
/// `within` is less. All threads share the division if the fastest axis consists of whole blocks.
pub(super) fn along_block(
    cx: &mut KernelContext<'_>,
    axes: &[i64],
    first: &Index,
    within: &Index,
    depth: i64,
) -> Result<Vec<Index>> {
    match axes.last() {
        Some(size) if axes.len() > 1 && size % depth == 0 => {
            let mut indices = along(cx, axes, first)?;
            let last = indices.len() - 1;
            indices[last] = indices[last].plus(within);
            Ok(indices)
        }
        _ => along(cx, axes, &first.plus(within)),
    }
}
