//! Addresses in the form that processors favor: a register that advances with each iteration, and a
//! constant distance.
//!
//! LLVM's loop strength reduction finds such forms in any code, but takes as long as instruction
//! selection. Our addresses have explicit parts, so they are reduced during the translation: an
//! address is a base and a constant distance from it, and the part that depends on a loop's index
//! is a value that the loop carries. Addresses of x86 are sums of two registers and a constant;
//! those of WebAssembly are one register and a constant that is not negative.

use inkwell::builder::Builder;
use inkwell::values::{BasicValueEnum, IntValue, PhiValue, PointerValue};
use nest::{Block, Constant, Expression, Statement, ValueId};
use std::collections::BTreeMap;
use support::{Id, Result};
use target::Architecture;

use super::FunctionTranslator;
use crate::llvm::Built;

/// Maximum number of addresses that a loop advances in separate registers. Other addresses are a
/// base and a common distance.
const MAX_MOVED: usize = 4;

/// The same where an address has one register: a common distance would save none.
const MAX_MOVED_ALONE: usize = 8;

/// Up to this number of bases, a loop advances addresses even if the processor could scale their
/// distance for free.
const FEW_BASES: usize = 2;

/// From this number of bases with distances that the processor scales, a loop counts up to zero
/// from bases at its end. Its end then needs no register.
const MANY_BASES: usize = 11;

/// Value that a loop carries for addresses that depend on its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Induction<'c> {
    index: ValueId,
    scale: i64,
    moved: Moved<'c>,
}

#[derive(Clone, Copy, Debug)]
enum Moved<'c> {
    /// `base + index * scale` for one base.
    Address { base: PointerValue<'c>, phi: PhiValue<'c>, is_upward: bool },
    /// `index * scale` for any base.
    Distance { phi: PhiValue<'c> },
    /// `end + counter * scale` for one base. `end` is the address after the loop, and `counter` is
    /// negative.
    ToEnd { base: PointerValue<'c>, end: PointerValue<'c>, counter: IntValue<'c> },
}

/// Index and bounds of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range<'c> {
    pub(crate) index: ValueId,
    pub(crate) begin: IntValue<'c>,
    pub(crate) end: IntValue<'c>,
    /// The index minus the end, if the loop carries this difference.
    pub(crate) counter: Option<IntValue<'c>>,
}

impl<'c> Induction<'c> {
    fn phi(&self) -> Option<PhiValue<'c>> {
        match self.moved {
            Moved::Address { phi, .. } | Moved::Distance { phi } => Some(phi),
            Moved::ToEnd { .. } => None,
        }
    }
}

/// An address as a base and a constant distance from it.
#[derive(Clone, Copy, Debug)]
struct Place<'c> {
    base: PointerValue<'c>,
    distance: i64,
    /// True if the base is known to lie within the object of the address.
    is_inside: bool,
}

impl<'c> Place<'c> {
    fn of(base: PointerValue<'c>) -> Self {
        Self { base, distance: 0, is_inside: true }
    }
}

/// Known facts about the addresses of the current function.
#[derive(Debug)]
pub(crate) struct Addresses<'c> {
    /// By value number: the place of an address.
    places: Vec<Option<Place<'c>>>,
    /// Inductions of the open loops, the innermost last.
    inductions: Vec<Induction<'c>>,
}

impl Addresses<'_> {
    pub(crate) fn new(values: usize) -> Self {
        Self { places: vec![None; values], inductions: Vec::new() }
    }
}

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits `pointer + index * scale` bytes, the value of `id`.
    pub(crate) fn offset(
        &mut self,
        id: ValueId,
        pointer: ValueId,
        index: ValueId,
        scale: i64,
    ) -> Result<BasicValueEnum<'c>> {
        let own = self.pointer(pointer)?;
        if !self.has_addresses() {
            let number = scaled(&self.builder, self.integer(index)?, scale)?;
            return Ok(self.plus(&self.builder, own, number, true)?.into());
        }
        let place = self.addresses.places[pointer.index()].unwrap_or_else(|| Place::of(own));
        let Place { base, distance, is_inside } = place;
        let number = self.integer(index)?;
        let place = if let Some(known) = number.get_sign_extended_constant() {
            Place { distance: distance.wrapping_add(known.wrapping_mul(scale)), ..place }
        } else if let Some((base, is_upward)) = self.moved(base, index, scale)? {
            Place { base, distance, is_inside: is_inside && is_upward && distance >= 0 }
        } else {
            let number = scaled(&self.builder, number, scale)?;
            if self.has_one_register() {
                Place::of(self.plus(&self.builder, own, number, true)?)
            } else {
                Place { base: self.plus(&self.builder, base, number, distance == 0)?, ..place }
            }
        };
        self.addresses.places[id.index()] = Some(place);
        Ok(self.at(place)?.into())
    }

    /// True if the target's addressing modes are known here. For other targets, LLVM searches for
    /// better forms in one of the `passes`.
    fn has_addresses(&self) -> bool {
        has_addresses(self.module.target.triple.architecture)
    }

    /// True if an addressing mode has one register only.
    fn has_one_register(&self) -> bool {
        self.module.target.triple.architecture == Architecture::Wasm32
    }

    /// True if an addressing mode can scale a register by this number.
    fn is_mode(&self, scale: i64) -> bool {
        !self.has_one_register() && matches!(scale, 1 | 2 | 4 | 8)
    }

    /// Returns `base + index * scale` from a value that a loop carries, if there is one, and true
    /// if it is known not to precede the base.
    fn moved(
        &self,
        base: PointerValue<'c>,
        index: ValueId,
        scale: i64,
    ) -> Result<Option<(PointerValue<'c>, bool)>> {
        let of_index =
            self.addresses.inductions.iter().rev().filter(|i| i.index == index && i.scale == scale);
        for induction in of_index {
            match induction.moved {
                Moved::Address { base: of, phi, is_upward } if of == base => {
                    return Ok(Some((phi.as_basic_value().into_pointer_value(), is_upward)));
                }
                Moved::ToEnd { base: of, end, counter } if of == base => {
                    let distance = scaled(&self.builder, counter, scale)?;
                    return Ok(Some((self.plus(&self.builder, end, distance, false)?, false)));
                }
                Moved::Address { .. } | Moved::ToEnd { .. } => {}
                Moved::Distance { phi } => {
                    let distance = phi.as_basic_value().into_int_value();
                    return Ok(Some((self.plus(&self.builder, base, distance, false)?, false)));
                }
            }
        }
        Ok(None)
    }

    /// Emits an address. The distance becomes part of an instruction of WebAssembly only if the sum
    /// is known not to wrap around.
    fn at(&self, Place { base, distance, is_inside }: Place<'c>) -> Result<PointerValue<'c>> {
        match distance {
            0 => Ok(base),
            _ => {
                let distance = self.module.context.i64_type().const_int(distance as u64, true);
                self.plus(&self.builder, base, distance, is_inside && self.has_one_register())
            }
        }
    }

    /// Emits `base + bytes`. Final addresses are marked in bounds; intermediate sums need not be.
    pub(crate) fn plus(
        &self,
        builder: &Builder<'c>,
        base: PointerValue<'c>,
        bytes: IntValue<'c>,
        is_in_bounds: bool,
    ) -> Result<PointerValue<'c>> {
        let byte = self.module.context.i8_type();
        // SAFETY: a single index into bytes fits the element type for any pointer.
        #[expect(unsafe_code, reason = "inkwell cannot check indices against the element type")]
        let address = unsafe {
            if is_in_bounds {
                builder.build_in_bounds_gep(byte, base, &[bytes], "")
            } else {
                builder.build_gep(byte, base, &[bytes], "")
            }
        };
        address.built()
    }

    /// True if a loop should count up to zero.
    pub(crate) fn counts_to_zero(&self, index: ValueId, end: IntValue<'c>, body: &Block) -> bool {
        let scaled = || self.uses(index, body).iter().filter(|(_, scale)| self.is_mode(*scale)).count();
        self.has_addresses() && !end.is_const() && scaled() >= MANY_BASES
    }

    /// Opens a loop: creates the values that it carries for its addresses. The builder must be at
    /// the start of the loop's first block. Initial values are computed at the end of the preceding
    /// block.
    pub(crate) fn begin_inductions(
        &mut self,
        Range { index, begin, end, counter }: Range<'c>,
        body: &Block,
        before: inkwell::basic_block::BasicBlock<'c>,
    ) -> Result<Vec<Induction<'c>>> {
        if !self.has_addresses() {
            return Ok(Vec::new());
        }
        let uses = self.uses(index, body);
        let few = uses.len() <= FEW_BASES;
        let most_moved = if self.has_one_register() { MAX_MOVED_ALONE } else { MAX_MOVED };
        let is_counted = begin.get_sign_extended_constant().is_some_and(|begin| begin >= 0);
        let mut opened: Vec<Induction<'c>> = Vec::new();
        for (base, scale) in uses {
            if let Some(counter) = counter.filter(|_| self.is_mode(scale)) {
                let at_begin = self.module.context.create_builder();
                at_begin.position_at_end(before);
                let distance = scaled(&at_begin, end, scale)?;
                let end = self.plus(&at_begin, base, distance, false)?;
                opened.push(Induction { index, scale, moved: Moved::ToEnd { base, end, counter } });
                continue;
            }
            let scaled_alike =
                |i: &Induction<'c>| i.scale == scale && matches!(i.moved, Moved::Distance { .. });
            if (self.is_mode(scale) && !few) || opened.iter().any(scaled_alike) {
                continue;
            }
            let is_moved = opened.iter().filter(|i| i.phi().is_some()).count() < most_moved;
            let at_begin = self.module.context.create_builder();
            at_begin.position_at_end(before);
            let distance = scaled(&at_begin, begin, scale)?;
            let (ty, initial): (_, BasicValueEnum<'c>) = if is_moved {
                (base.get_type().into(), self.plus(&at_begin, base, distance, false)?.into())
            } else {
                (distance.get_type().into(), distance.into())
            };
            let ty: inkwell::types::BasicTypeEnum<'c> = ty;
            let phi = self.builder.build_phi(ty, "").built()?;
            phi.add_incoming(&[(&initial, before)]);
            let is_upward = is_counted && scale >= 0;
            let moved =
                if is_moved { Moved::Address { base, phi, is_upward } } else { Moved::Distance { phi } };
            opened.push(Induction { index, scale, moved });
        }
        self.addresses.inductions.extend(&opened);
        Ok(opened)
    }

    /// Closes a loop at the end of its last block.
    pub(crate) fn end_inductions(&mut self, opened: &[Induction<'c>], step: i64) -> Result<()> {
        let latch = self.current_block()?;
        for induction in opened {
            let bytes = step.wrapping_mul(induction.scale) as u64;
            let bytes = self.module.context.i64_type().const_int(bytes, true);
            let Some(carried) = induction.phi() else { continue };
            let next: BasicValueEnum<'c> = match carried.as_basic_value() {
                BasicValueEnum::PointerValue(phi) => self.plus(&self.builder, phi, bytes, false)?.into(),
                value => self.builder.build_int_add(value.into_int_value(), bytes, "").built()?.into(),
            };
            carried.add_incoming(&[(&next, latch)]);
        }
        let open = self.addresses.inductions.len() - opened.len();
        self.addresses.inductions.truncate(open);
        Ok(())
    }

    /// Returns the bases from before a loop whose addresses its index advances, with the index's
    /// factors, once each and in the order of use.
    fn uses(&self, index: ValueId, body: &Block) -> Vec<(PointerValue<'c>, i64)> {
        let mut search = Search {
            translator: self,
            index,
            constants: BTreeMap::new(),
            places: BTreeMap::new(),
            found: Vec::new(),
        };
        search.body(body);
        search.found
    }
}

/// True if addresses take the forms of an architecture during the translation.
pub(crate) fn has_addresses(architecture: Architecture) -> bool {
    matches!(architecture, Architecture::X86 | Architecture::X86_64 | Architecture::Wasm32)
}

fn scaled<'c>(builder: &Builder<'c>, index: IntValue<'c>, scale: i64) -> Result<IntValue<'c>> {
    if scale == 1 {
        return Ok(index);
    }
    let scale = index.get_type().const_int(scale as u64, true);
    builder.build_int_nsw_mul(index, scale, "").built()
}

/// Search of a body that is not translated yet.
struct Search<'t, 'm, 'c> {
    translator: &'t FunctionTranslator<'m, 'c>,
    index: ValueId,
    /// Integer constants of the body.
    constants: BTreeMap<ValueId, i64>,
    /// Addresses in the body at a constant distance from a base outside of it.
    places: BTreeMap<ValueId, PointerValue<'c>>,
    found: Vec<(PointerValue<'c>, i64)>,
}

impl<'c> Search<'_, '_, 'c> {
    fn body(&mut self, body: &Block) {
        for statement in body.walk() {
            match statement {
                Statement::Let(id, Expression::Constant(Constant::Integer(number))) => {
                    self.constants.insert(*id, *number);
                }
                Statement::Let(id, Expression::Offset { pointer, index, scale }) => {
                    self.offset(*id, *pointer, *index, *scale);
                }
                _ => {}
            }
        }
    }

    fn offset(&mut self, id: ValueId, pointer: ValueId, index: ValueId, scale: i64) {
        let Some(base) = self.base(pointer) else { return };
        if index == self.index {
            if !self.found.contains(&(base, scale)) {
                self.found.push((base, scale));
            }
        } else if self.is_constant(index) {
            self.places.insert(id, base);
        }
    }

    fn base(&self, pointer: ValueId) -> Option<PointerValue<'c>> {
        if let Some(&base) = self.places.get(&pointer) {
            return Some(base);
        }
        let place = self.translator.addresses.places[pointer.index()];
        place.map(|place| place.base).or_else(|| self.translator.value_if_defined(pointer)?.try_into().ok())
    }

    fn is_constant(&self, index: ValueId) -> bool {
        self.constants.contains_key(&index)
            || matches!(self.translator.value_if_defined(index), Some(BasicValueEnum::IntValue(v)) if v.is_const())
    }
}
