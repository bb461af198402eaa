//! Opcodes that move elements. They map each position of a result to positions of their operands.

use crate::context::addressing::Containment;
use crate::context::body_value::Step;
use crate::context::{IndexKey, KernelContext};
use crate::element::{Element, register_type};
use crate::elemental;
use crate::index::{Facts, Index, Position};
use hlo::{GatherDimensionNumbers, InstructionId, Op, PaddingConfig, PaddingDimension};
use nest::{BinaryOp, ConvertOp, Predicate, ScalarType, Type, ValueId};
use shape::PrimitiveType;
use support::{Error, Result};

/// Maps a position in the result of a reshape to one in its operand, if the reshape only adds or
/// drops dimensions of size 1. The indices stay the same; a linear number would need divisions.
pub(crate) fn same_dimensions(position: &Position, sizes: &[i64], operand: &[i64]) -> Option<Position> {
    let wide = |sizes: &[i64]| -> Vec<usize> { (0..sizes.len()).filter(|&d| sizes[d] != 1).collect() };
    let (of_result, of_operand) = (wide(sizes), wide(operand));
    let are_same = of_result.iter().map(|&d| sizes[d]).eq(of_operand.iter().map(|&d| operand[d]));
    match position {
        _ if sizes == operand => Some(position.clone()),
        Position::Multi(indices) if are_same => {
            let is_first = |d: usize| sizes[d] != 1 || indices[d] == Index::default();
            let mut moved = vec![Index::default(); operand.len()];
            of_operand.iter().zip(&of_result).for_each(|(&to, &from)| moved[to] = indices[from].clone());
            (0..sizes.len()).all(is_first).then_some(Position::Multi(moved))
        }
        _ => None,
    }
}

impl KernelContext<'_> {
    /// Returns an index for each dimension of an array.
    pub fn indices(&mut self, position: &Position, sizes: &[i64]) -> Result<Vec<Index>> {
        let linear = match position {
            Position::Multi(indices) => return Ok(indices.clone()),
            Position::Linear(linear) => linear,
        };
        let mut indices = vec![Index::default(); sizes.len()];
        let mut rest = linear.clone();
        let wide: Vec<usize> = (0..sizes.len()).filter(|&d| sizes[d] != 1).collect();
        for (k, &d) in wide.iter().enumerate().rev() {
            // The index of the slowest dimension is the rest.
            if k == 0 {
                indices[d] = rest.clone();
            } else {
                let (quotient, remainder) = self.div_rem(&rest, sizes[d].max(1))?;
                indices[d] = remainder;
                rest = quotient;
            }
        }
        Ok(indices)
    }

    pub(crate) fn reindex(&mut self, id: InstructionId, position: &Position) -> Result<Step> {
        let instruction = &self.fusion.body[id];
        let operands = instruction.operands();
        let result = self.shape(id)?;
        let sizes = result.sizes();
        let op = instruction.op();
        if let Op::Reshape {} | Op::Bitcast {} = op {
            let operand = self.shape(operands[0])?;
            let moved = same_dimensions(position, &sizes, &operand.sizes())
                .unwrap_or_else(|| Position::Linear(position.linear(&sizes)));
            return self.forward(&[(operands[0], moved)]);
        }
        if let Op::Broadcast { dimensions } = op
            && dimensions.is_empty()
        {
            return self.forward(&[(operands[0], Position::scalar())]);
        }
        let at = self.indices(position, &sizes)?;
        let moved = match op {
            Op::Broadcast { dimensions } => dimensions.iter().map(|&d| at[d].clone()).collect(),
            Op::Transpose { dimensions } => {
                let mut moved = vec![Index::default(); at.len()];
                dimensions.iter().zip(at).for_each(|(&d, index)| moved[d] = index);
                moved
            }
            Op::Slice { slice } => {
                slice.iter().zip(&at).map(|(s, i)| i.times(s.stride).plus_constant(s.start)).collect()
            }
            Op::Reverse { dimensions } => {
                let flip = |(d, i): (usize, &Index)| {
                    if dimensions.contains(&d) { i.times(-1).plus_constant(sizes[d] - 1) } else { i.clone() }
                };
                at.iter().enumerate().map(flip).collect()
            }
            Op::Iota { iota_dimension } => {
                return self.iota_at(&at[*iota_dimension], result.element_type).map(Step::Is);
            }
            Op::Pad { padding } => return self.pad(id, padding, &at),
            Op::Concatenate { dimension } => return self.concatenate(id, *dimension, &at),
            Op::DynamicSlice { dynamic_slice_sizes } => {
                return self.dynamic_slice(id, dynamic_slice_sizes, &at);
            }
            Op::Gather { gather_dimension_numbers, slice_sizes, .. } => {
                return self.gather(id, gather_dimension_numbers, slice_sizes, &at);
            }
            Op::BitcastConvert {} => return self.bitcast_convert(id, &at),
            other => {
                return Err(Error::unsupported(format!("opcode {} inside a kernel", other.opcode().name())));
            }
        };
        self.forward(&[(operands[0], Position::Multi(moved))])
    }

    fn iota_at(&mut self, index: &Index, element_type: PrimitiveType) -> Result<Element> {
        let lanes = if index.is_uniform() { 1 } else { self.lanes };
        let (_, max) = self.range(index);
        let value = if max > i64::from(i32::MAX) || !index.vectors().is_empty() {
            self.vector_value(index, lanes)?
        } else {
            // 32-bit conversion is faster, especially in vectors.
            let base = self.scalar_value(&index.uniform_part())?;
            let depth = self.depth_of(base);
            let base = self.at(depth, |b| b.convert(ConvertOp::Truncate, base, ScalarType::I32));
            let base = self.widen(Element::Real(base), lanes)?.real();
            let depth = self.depth_of(base);
            self.at(depth, |b| match lanes {
                1 => base,
                _ => {
                    let lane = b.iota(ScalarType::I32, lanes);
                    let stride = b.integer(Type::vector(ScalarType::I32, lanes), index.lane_stride());
                    let offset = b.mul(lane, stride);
                    b.add(base, offset)
                }
            })
        };
        let from =
            if self.ty(value).scalar == ScalarType::I32 { PrimitiveType::S32 } else { PrimitiveType::S64 };
        self.compute(&Op::Convert {}, &[from], element_type, &[Element::Real(value)])
    }

    fn pad(&mut self, id: InstructionId, padding: &PaddingConfig, at: &[Index]) -> Result<Step> {
        let operands = self.fusion.body[id].operands();
        let operand = self.shape(operands[0])?.clone();
        let value = (operands[1], Position::scalar());
        let mut conditions = Vec::new();
        let mut moved = Vec::with_capacity(at.len());
        let mut is_outside = operand.element_count() == 0;
        for (d, (index, pad)) in at.iter().zip(&padding.dimensions).enumerate() {
            if is_outside {
                break;
            }
            if *pad == PaddingDimension::default() {
                // A loop over merged dimensions exceeds this dimension's size.
                moved.push(index.clone());
                continue;
            }
            let step = pad.interior_padding + 1;
            let last = (operand.size(d) - 1) * step;
            let index = index.plus_constant(-pad.edge_padding_low);
            match self.contains(&index, 0, last + 1)? {
                Containment::Always => {}
                Containment::Never => is_outside = true,
                Containment::When(condition) => conditions.push(condition),
            }
            let within = self.clamp(&index, 0, last)?;
            let (quotient, rest) = self.div_rem(&within, step)?;
            match self.contains(&rest, 0, 1)? {
                Containment::Always => {}
                Containment::Never => is_outside = true,
                Containment::When(condition) => conditions.push(condition),
            }
            moved.push(quotient);
        }
        if is_outside {
            return self.forward(&[value]);
        }
        let inside = (operands[0], Position::Multi(moved));
        if conditions.is_empty() {
            return self.forward(&[inside]);
        }
        let values = match self.available(&[inside, value]) {
            Ok(values) => values,
            Err(missing) => return Ok(Step::Needs(missing)),
        };
        let mut chosen = values[0];
        for condition in conditions {
            chosen = self.choose(condition, chosen, values[1], operand.element_type)?;
        }
        Ok(Step::Is(chosen))
    }

    /// Returns the first element where the condition holds, and the second one elsewhere.
    fn choose(
        &mut self,
        condition: ValueId,
        x: Element,
        y: Element,
        element_type: PrimitiveType,
    ) -> Result<Element> {
        let types = [PrimitiveType::Pred, element_type, element_type];
        self.compute(&Op::Select {}, &types, element_type, &[Element::Real(condition), x, y])
    }

    fn concatenate(&mut self, id: InstructionId, dimension: usize, at: &[Index]) -> Result<Step> {
        let operands = self.fusion.body[id].operands();
        let element_type = self.shape(id)?.element_type;
        let mut needed = Vec::new();
        let mut conditions = Vec::new();
        let mut begin = 0;
        for &operand in operands {
            let size = self.shape(operand)?.size(dimension);
            let end = begin + size;
            let index = at[dimension].plus_constant(-begin);
            let containment =
                if size == 0 { Containment::Never } else { self.contains(&at[dimension], begin, end)? };
            if containment != Containment::Never {
                let mut moved = at.to_vec();
                moved[dimension] = self.clamp(&index, 0, size - 1)?;
                needed.push((operand, Position::Multi(moved)));
                conditions.push(containment);
            }
            begin = end;
        }
        let values = match self.available(&needed) {
            Ok(values) => values,
            Err(missing) => return Ok(Step::Needs(missing)),
        };
        let mut pieces = values.into_iter().zip(conditions).rev();
        let (mut chosen, _) =
            pieces.next().ok_or_else(|| Error::internal("found a concatenation without operands"))?;
        for (value, containment) in pieces {
            chosen = match containment {
                Containment::When(condition) => self.choose(condition, value, chosen, element_type)?,
                Containment::Always | Containment::Never => value,
            };
        }
        Ok(Step::Is(chosen))
    }

    /// Returns an element as an index between 0 and `last`.
    pub(crate) fn start_index(
        &mut self,
        element: Element,
        element_type: PrimitiveType,
        last: i64,
    ) -> Result<Index> {
        let value = element.real();
        let key = IndexKey::Start(value, last);
        let wrap = if self.ty(value).lanes == 1 { Index::scalar } else { Index::vector };
        if let Some(known) = self.known_index(&key) {
            return Ok(wrap(known));
        }
        let depth = self.depth_of_all([value]);
        let clamped = self.at(depth, |b| {
            let is_signed = element_type.is_signed_integer();
            let op = if is_signed { ConvertOp::SignExtend } else { ConvertOp::ZeroExtend };
            let wide = b.convert(op, value, ScalarType::I64);
            if is_signed {
                return crate::context::addressing::clamp_value(b, wide, 0, last);
            }
            let last = b.integer(b.ty(wide), last);
            let is_beyond = b.compare(Predicate::Above, wide, last);
            b.select(is_beyond, last, wide)
        });
        self.facts.insert(clamped, Facts::range(0, last));
        self.remember_index(key, clamped)?;
        Ok(wrap(clamped))
    }

    fn dynamic_slice(&mut self, id: InstructionId, slice_sizes: &[i64], at: &[Index]) -> Result<Step> {
        let operands = self.fusion.body[id].operands();
        let needed = self.start_operands(&operands[1..], at.len())?;
        let starts = match self.available(&needed) {
            Ok(starts) => starts,
            Err(missing) => return Ok(Step::Needs(missing)),
        };
        let operand = self.shape(operands[0])?.clone();
        let mut moved = Vec::with_capacity(at.len());
        for (d, start) in starts.into_iter().enumerate() {
            let element_type = self.shape(needed[d].0)?.element_type;
            let start = self.start_index(start, element_type, operand.size(d) - slice_sizes[d])?;
            moved.push(start.plus(&at[d]));
        }
        self.forward(&[(operands[0], Position::Multi(moved))])
    }

    /// Returns the start operands: one scalar per dimension, or the elements of one vector.
    pub(crate) fn start_operands(
        &self,
        operands: &[InstructionId],
        rank: usize,
    ) -> Result<Vec<(InstructionId, Position)>> {
        if let [vector] = operands
            && self.shape(*vector)?.rank() == 1
        {
            let at = |d: usize| Position::Multi(vec![Index::constant(d as i64)]);
            return Ok((0..rank).map(|d| (*vector, at(d))).collect());
        }
        Ok(operands.iter().map(|&o| (o, Position::scalar())).collect())
    }

    fn gather(
        &mut self,
        id: InstructionId,
        numbers: &GatherDimensionNumbers,
        slice_sizes: &[i64],
        at: &[Index],
    ) -> Result<Step> {
        let operands = self.fusion.body[id].operands();
        let (operand, indices) = (self.shape(operands[0])?.clone(), self.shape(operands[1])?.clone());
        let batch: Vec<Index> =
            (0..at.len()).filter(|d| !numbers.offset_dims.contains(d)).map(|d| at[d].clone()).collect();
        let index_position = |k: usize| {
            let mut position = batch.clone();
            if numbers.index_vector_dim < indices.rank() {
                position.insert(numbers.index_vector_dim, Index::constant(k as i64));
            }
            Position::Multi(position)
        };
        let needed: Vec<_> =
            (0..numbers.start_index_map.len()).map(|k| (operands[1], index_position(k))).collect();
        let starts = match self.available(&needed) {
            Ok(starts) => starts,
            Err(missing) => return Ok(Step::Needs(missing)),
        };
        let is_dropped =
            |d: &usize| numbers.collapsed_slice_dims.contains(d) || numbers.operand_batching_dims.contains(d);
        let mut moved = vec![Index::default(); operand.rank()];
        for (d, &o) in (0..operand.rank()).filter(|d| !is_dropped(d)).zip(&numbers.offset_dims) {
            moved[d] = at[o].clone();
        }
        for (&d, &i) in numbers.operand_batching_dims.iter().zip(&numbers.start_indices_batching_dims) {
            // The batch indices skip the dimension of the index vector.
            let number = if i > numbers.index_vector_dim { i - 1 } else { i };
            moved[d] = batch[number].clone();
        }
        for (&d, start) in numbers.start_index_map.iter().zip(starts) {
            let start = self.start_index(start, indices.element_type, operand.size(d) - slice_sizes[d])?;
            moved[d] = moved[d].plus(&start);
        }
        self.forward(&[(operands[0], Position::Multi(moved))])
    }

    /// Converts between element types by reinterpreting bits. If the widths differ, the parts of
    /// the wider element lie along the last dimension of the narrower side, the least significant
    /// part first.
    fn bitcast_convert(&mut self, id: InstructionId, at: &[Index]) -> Result<Step> {
        let operand = self.fusion.body[id].operands()[0];
        let (from, to) = (self.shape(operand)?.element_type, self.shape(id)?.element_type);
        if from == to {
            return self.forward(&[(operand, Position::Multi(at.to_vec()))]);
        }
        if from.is_complex() || to.is_complex() {
            return Err(Error::unsupported(format!("opcode bitcast-convert from {from} to {to}")));
        }
        let (from_width, to_width) = (from.bit_width(), to.bit_width());
        let count = i64::from(to_width / from_width).max(1);
        let positions: Vec<(InstructionId, Position)> = if to_width > from_width {
            let part = |k: i64| at.iter().cloned().chain([Index::constant(k)]).collect();
            (0..count).map(|k| (operand, Position::Multi(part(k)))).collect()
        } else {
            let kept = if to_width < from_width { &at[..at.len() - 1] } else { at };
            vec![(operand, Position::Multi(kept.to_vec()))]
        };
        let values = match self.available(&positions) {
            Ok(values) => values,
            Err(missing) => return Ok(Step::Needs(missing)),
        };
        if to_width == from_width {
            return self.compute(&Op::BitcastConvert {}, &[from], to, &values).map(Step::Is);
        }
        if to_width > from_width {
            return self.join_parts(from, to, &values).map(Step::Is);
        }
        self.take_part(from, to, values[0], &at[at.len() - 1]).map(Step::Is)
    }

    fn join_parts(&mut self, from: PrimitiveType, to: PrimitiveType, parts: &[Element]) -> Result<Element> {
        let lanes = parts.iter().map(|p| p.lanes(self)).max().unwrap_or(1);
        let mut widened = Vec::with_capacity(parts.len());
        for &part in parts {
            widened.push(self.widen(part, lanes)?);
        }
        let depth = self.depth_of_all(widened.iter().flat_map(|p| p.values()));
        Ok(self.at(depth, |b| {
            let scalar = integer_of_size(to.byte_size());
            let mask = ((1u128 << from.bit_width()) - 1) as i64;
            let mut joined: Option<ValueId> = None;
            for (k, part) in widened.iter().enumerate() {
                let bits = elemental::bits_of(b, from, part.real());
                let wide = b.convert(ConvertOp::ZeroExtend, bits, scalar);
                let mask = b.integer(b.ty(wide), mask);
                let low = b.and(wide, mask);
                let distance = b.integer(b.ty(wide), k as i64 * i64::from(from.bit_width()));
                let placed = b.binary(BinaryOp::ShiftLeft, low, distance);
                joined = Some(joined.map_or(placed, |joined| b.or(joined, placed)));
            }
            let joined = joined.expect("expected at least one part");
            Element::Real(elemental::from_bits(b, to, joined))
        }))
    }

    fn take_part(
        &mut self,
        from: PrimitiveType,
        to: PrimitiveType,
        whole: Element,
        part: &Index,
    ) -> Result<Element> {
        let lanes = whole.lanes(self).max(if part.is_uniform() { 1 } else { self.lanes });
        let whole = self.widen(whole, lanes)?.real();
        let part = self.vector_value(&part.times(i64::from(to.bit_width())), lanes)?;
        let part = self.widen(Element::Real(part), lanes)?.real();
        let depth = self.depth_of_all([whole, part]);
        Ok(self.at(depth, |b| {
            let bits = elemental::bits_of(b, from, whole);
            let scalar = b.ty(bits).scalar;
            let distance = b.convert(ConvertOp::Truncate, part, scalar);
            let shifted = b.binary(BinaryOp::ShiftRightLogical, bits, distance);
            let low = b.convert(ConvertOp::Truncate, shifted, integer_of_size(to.byte_size()));
            let low = match register_type(to) {
                ScalarType::Bool => {
                    let one = b.integer(b.ty(low), 1);
                    b.and(low, one)
                }
                _ => low,
            };
            Element::Real(elemental::from_bits(b, to, low))
        }))
    }
}

/// Returns the integer type with this number of bytes.
fn integer_of_size(bytes: usize) -> ScalarType {
    match bytes {
        1 => ScalarType::I8,
        2 => ScalarType::I16,
        4 => ScalarType::I32,
        _ => ScalarType::I64,
    }
}
