//! Translation of symbolic indices to values, addresses, loads, and stores.

use crate::context::parameters::Memory;
use crate::context::{IndexKey, KernelContext};
use crate::element::{Element, decode, encode, memory_type, splat};
use crate::index::{Facts, Index, Position, gcd};
use crate::transpose::transpose;
use nest::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, Type, ValueId};
use support::{Error, Result};

/// Result of a bounds check on an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Containment {
    Always,
    Never,
    /// If a `Bool` holds: one per lane, or one in all if the index is uniform.
    When(ValueId),
}

impl KernelContext<'_> {
    /// Returns the smallest and the largest possible value over all lanes.
    pub(crate) fn range(&self, index: &Index) -> (i64, i64) {
        let (mut min, mut max) = (i128::from(index.offset()), i128::from(index.offset()));
        let lanes = i128::from(index.lane_stride()) * i128::from(self.lanes.saturating_sub(1));
        min += lanes.min(0);
        max += lanes.max(0);
        for &(value, factor) in index.terms().iter().chain(index.vectors()) {
            let facts = self.facts_of(value);
            let (a, b) =
                (i128::from(facts.min) * i128::from(factor), i128::from(facts.max) * i128::from(factor));
            min += a.min(b);
            max += a.max(b);
        }
        let saturate = |v: i128| v.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        (saturate(min), saturate(max))
    }

    fn facts_of(&self, value: ValueId) -> Facts {
        self.facts.get(&value).copied().unwrap_or(Facts::UNKNOWN)
    }

    /// Returns a common divisor of all values of the scalar terms.
    fn divisor_of_terms(&self, index: &Index) -> i64 {
        index.terms().iter().fold(0, |d, &(v, f)| gcd(d, f.saturating_mul(self.facts_of(v).multiple)))
    }

    /// Returns the value of an index that all lanes share: a scalar `I64`. Terms are added in the
    /// outermost regions in which they are available.
    pub fn scalar_value(&mut self, index: &Index) -> Result<ValueId> {
        let key = IndexKey::Scalar(index.clone());
        if let Some(value) = self.known_index(&key) {
            return Ok(value);
        }
        let mut terms: Vec<(ValueId, i64)> = index.terms().to_vec();
        terms.sort_by_key(|&(value, _)| self.depth_of(value));
        let mut sum = self.at(1, |b| b.index(index.offset()));
        for (value, factor) in terms {
            let depth = self.depth_of_all([value, sum]);
            sum = self.at(depth, |b| {
                let product = b.mul_constant(value, factor);
                b.add(sum, product)
            });
        }
        let (min, max) = self.range(index);
        let multiple = gcd(self.divisor_of_terms(index), index.offset()).max(1);
        self.facts.insert(sum, Facts { min, max, multiple });
        self.remember_index(key, sum)
    }

    /// Returns the value of an index in `lanes` lanes.
    pub fn vector_value(&mut self, index: &Index, lanes: u32) -> Result<ValueId> {
        let uniform = self.scalar_value(&index.uniform_part())?;
        if lanes == 1 {
            return Ok(uniform);
        }
        let key = IndexKey::Vector(index.clone(), lanes);
        if let Some(value) = self.known_index(&key) {
            return Ok(value);
        }
        let depth = self.depth_of_all(index.vectors().iter().map(|&(v, _)| v).chain([uniform]));
        let value = self.at(depth, |b| {
            let ty = Type::vector(ScalarType::I64, lanes);
            let mut sum = splat(b, uniform, lanes);
            if index.lane_stride() != 0 {
                let lane = b.iota(ScalarType::I64, lanes);
                let stride = b.integer(ty, index.lane_stride());
                let offset = b.mul(lane, stride);
                sum = b.add(sum, offset);
            }
            for &(vector, factor) in index.vectors() {
                let factor_value = b.integer(ty, factor);
                let product = if factor == 1 { vector } else { b.mul(vector, factor_value) };
                sum = b.add(sum, product);
            }
            sum
        });
        self.remember_index(key, value)
    }

    /// Returns the quotient and the rest of a nonnegative index divided by a positive constant.
    pub(crate) fn div_rem(&mut self, index: &Index, divisor: i64) -> Result<(Index, Index)> {
        if divisor == 1 {
            return Ok((index.clone(), Index::default()));
        }
        let (quotient, rest) = index.split(divisor);
        // A nonnegative index can have a negative rest, such as 3 - i divided by 3. The division is
        // unsigned.
        let below = self.range(&rest).0;
        let (quotient, rest) = if below < 0 && self.range(index).0 >= 0 {
            let shift = below.div_euclid(divisor);
            (quotient.plus_constant(shift), rest.plus_constant(-shift.saturating_mul(divisor)))
        } else {
            (quotient, rest)
        };
        let (min, max) = self.range(&rest);
        if 0 <= min && max < divisor {
            return Ok((quotient, rest));
        }
        // Everything but `offset` is a multiple of `unit`. Lanes within the same unit therefore
        // share the quotient.
        let unit = gcd(divisor, self.divisor_of_terms(&rest));
        let offset = rest.offset().rem_euclid(unit);
        let last = rest.lane_stride().saturating_mul(i64::from(self.lanes) - 1).saturating_add(offset);
        let (shared, own) = if rest.vectors().is_empty() && rest.lane_stride() >= 0 && last < unit {
            let own = Index::lanes(rest.lane_stride()).plus_constant(offset);
            (rest.uniform_part().plus_constant(-offset), own)
        } else {
            (rest, Index::default())
        };
        let (q, r) = self.divide(&shared, divisor, unit)?;
        Ok((quotient.plus(&q), r.plus(&own)))
    }

    fn divide(&mut self, index: &Index, divisor: i64, unit: i64) -> Result<(Index, Index)> {
        let lanes = if index.is_uniform() { 1 } else { self.lanes };
        let wrap = if lanes == 1 { Index::scalar } else { Index::vector };
        let quotient_key = IndexKey::Quotient(index.clone(), divisor, lanes);
        let rest_key = IndexKey::Rest(index.clone(), divisor, lanes);
        if let (Some(q), Some(r)) = (self.known_index(&quotient_key), self.known_index(&rest_key)) {
            return Ok((wrap(q), wrap(r)));
        }
        let (min, max) = self.range(index);
        let value = if lanes == 1 { self.scalar_value(index)? } else { self.vector_value(index, lanes)? };
        if let Some(known) = self.known_integer(value).filter(|_| lanes == 1) {
            return Ok((Index::constant(known / divisor), Index::constant(known % divisor)));
        }
        let depth = self.depth_of(value);
        let (q, r) = self.at(depth, |b| {
            // 32-bit division is faster, especially in vectors.
            let is_narrow = min >= 0 && max <= i64::from(i32::MAX);
            let scalar = if is_narrow { ScalarType::I32 } else { ScalarType::I64 };
            let narrow = b.convert(ConvertOp::Truncate, value, scalar);
            let by = b.integer(b.ty(narrow), divisor);
            let q = b.binary(BinaryOp::DivideUnsigned, narrow, by);
            let q = b.convert(ConvertOp::ZeroExtend, q, ScalarType::I64);
            let by = b.integer(b.ty(q), divisor);
            let product = b.mul(q, by);
            (q, b.sub(value, product))
        });
        self.facts.insert(q, Facts::range(min.max(0) / divisor, max / divisor));
        let multiple = if lanes == 1 { unit } else { 1 };
        self.facts.insert(r, Facts { min: 0, max: divisor - multiple, multiple });
        self.remember_index(quotient_key, q)?;
        self.remember_index(rest_key, r)?;
        Ok((wrap(q), wrap(r)))
    }

    /// Clamps an index between `low` and `high`.
    pub(crate) fn clamp(&mut self, index: &Index, low: i64, high: i64) -> Result<Index> {
        let (min, max) = self.range(index);
        if low <= min && max <= high {
            return Ok(index.clone());
        }
        if let Some(constant) = index.as_constant() {
            return Ok(Index::constant(constant.clamp(low, high)));
        }
        let lanes = if index.is_uniform() { 1 } else { self.lanes };
        let wrap = if lanes == 1 { Index::scalar } else { Index::vector };
        let key = IndexKey::Clamped(index.clone(), low, high, lanes);
        if let Some(value) = self.known_index(&key) {
            return Ok(wrap(value));
        }
        let value = if lanes == 1 { self.scalar_value(index)? } else { self.vector_value(index, lanes)? };
        let depth = self.depth_of(value);
        let value = self.at(depth, |b| clamp_value(b, value, low, high));
        self.facts.insert(value, Facts::range(low.max(min.min(high)), high.min(max.max(low))));
        self.remember_index(key, value)?;
        Ok(wrap(value))
    }

    /// Determines whether `low <= index < high`.
    pub(crate) fn contains(&mut self, index: &Index, low: i64, high: i64) -> Result<Containment> {
        let (min, max) = self.range(index);
        if low <= min && max < high {
            return Ok(Containment::Always);
        }
        if max < low || min >= high {
            return Ok(Containment::Never);
        }
        let lanes = if index.is_uniform() { 1 } else { self.lanes };
        let value = if lanes == 1 { self.scalar_value(index)? } else { self.vector_value(index, lanes)? };
        let depth = self.depth_of(value);
        Ok(Containment::When(self.at(depth, |b| {
            let ty = b.ty(value);
            let (first, end) = (b.integer(ty, low), b.integer(ty, high));
            if min >= low {
                return b.compare(Predicate::Less, value, end);
            }
            let is_above = b.compare(Predicate::GreaterEqual, value, first);
            if max < high {
                return is_above;
            }
            let is_below = b.compare(Predicate::Less, value, end);
            b.and(is_above, is_below)
        })))
    }

    /// Returns the address of an element, the same in every lane, and its alignment.
    pub(crate) fn address(&mut self, memory: &Memory, index: &Index) -> Result<(ValueId, u32)> {
        let size = memory.shape.element_type.byte_size() as i64;
        let index = &index.plus(&memory.first.times(-1));
        let distance = gcd(self.divisor_of_terms(index), index.offset()).saturating_mul(size);
        let alignment = match distance {
            0 => memory.alignment,
            d => memory.alignment.min(1 << d.trailing_zeros().min(30)),
        };
        // The addressing mode adds a positive constant. The address without it is also within the
        // array.
        let is_forward = index.terms().iter().all(|&(v, f)| f > 0 && self.facts_of(v).min >= 0);
        let constant = if is_forward && index.offset() > 0 { index.offset() } else { 0 };
        let scalar = self.scalar_value(&index.plus_constant(-constant))?;
        let depth = self.depth_of_all([memory.pointer, scalar]);
        let address = self.at(depth, |b| {
            let base = b.offset(memory.pointer, scalar, size);
            b.offset_bytes(base, constant.saturating_mul(size))
        });
        Ok((address, alignment))
    }

    /// Loads the elements at a position in register form. The position must be within the array in
    /// every lane.
    pub fn load_at(&mut self, memory: &Memory, position: &Position) -> Result<Element> {
        let index = position.linear(&memory.shape.sizes());
        let (lanes, stride) = (if index.is_uniform() { 1 } else { self.lanes }, index.stride());
        let is_complex = memory.shape.element_type.is_complex();
        match stride {
            _ if lanes == 1 => self.load_vector(memory, &index, 1),
            Some(1) if is_complex => self.load_pairs(memory, &index.uniform_part(), lanes),
            Some(1) => self.load_vector(memory, &index.uniform_part(), lanes),
            Some(-1) if !is_complex => {
                let first = index.uniform_part().plus_constant(1 - i64::from(lanes));
                let element = self.load_vector(memory, &first, lanes)?;
                let depth = self.depth_of_all(element.values());
                Ok(self.at(depth, |b| element.map(|v| b.shuffle(v, v, (0..lanes).rev().collect()))))
            }
            Some(_) if !is_complex && self.is_along_square(&index) => {
                self.load_transposed(memory, &index, lanes)
            }
            // If the kernel works in place, other tasks may write the elements in between.
            Some(2) if !is_complex && !self.parameters.is_in_place => {
                self.load_every_other(memory, &index, lanes)
            }
            _ => self.load_lanes(memory, &index, lanes),
        }
    }

    /// Loads neighboring complex elements: two vectors of parts that alternate between real and
    /// imaginary ones.
    fn load_pairs(&mut self, memory: &Memory, first: &Index, lanes: u32) -> Result<Element> {
        let (address, alignment) = self.address(memory, first)?;
        let ty = Type::vector(memory_type(memory.shape.element_type), lanes);
        let bytes = ty.scalar.byte_size() * lanes as usize;
        let depth = self.depth_of(address);
        Ok(self.at(depth, |b| {
            let low = b.load(ty, address, alignment);
            let second = b.offset_bytes(address, bytes as i64);
            let high = b.load(ty, second, alignment.min(bytes as u32));
            let every_other = |first: u32| (0..lanes).map(|lane| first + 2 * lane).collect();
            Element::Complex(b.shuffle(low, high, every_other(0)), b.shuffle(low, high, every_other(1)))
        }))
    }

    /// Loads every other element: two vectors of neighbors. The second one ends with the last
    /// element that is needed.
    fn load_every_other(&mut self, memory: &Memory, index: &Index, lanes: u32) -> Result<Element> {
        let first = index.uniform_part();
        let low = self.load_vector(memory, &first, lanes)?;
        let high = self.load_vector(memory, &first.plus_constant(i64::from(lanes) - 1), lanes)?;
        let depth = self.depth_of_all(low.values().into_iter().chain(high.values()));
        let picked: Vec<u32> = (0..lanes).map(|k| if 2 * k < lanes { 2 * k } else { 2 * k + 1 }).collect();
        Ok(self.at(depth, |b| low.zip(high, |low, high| b.shuffle(low, high, picked.clone()))))
    }

    /// True if the rows of the current square are contiguous in memory.
    fn is_along_square(&self, index: &Index) -> bool {
        self.square.is_some_and(|square| index.terms().contains(&(square.first, 1)))
    }

    /// Loads a row of the square. All rows are loaded at once, in the direction in which they are
    /// contiguous, and transposed.
    fn load_transposed(&mut self, memory: &Memory, index: &Index, lanes: u32) -> Result<Element> {
        let row = self.square.map_or(0, |square| square.row);
        let first = index.plus_constant(-row);
        let key = |row: i64| IndexKey::Transposed(memory.pointer, first.clone(), row);
        let element_type = memory.shape.element_type;
        if self.known_index(&key(row)).is_none() {
            let ty = Type::vector(memory_type(element_type), lanes);
            let mut vectors = Vec::with_capacity(lanes as usize);
            for lane in 0..lanes {
                let index = self.lane_index(&first, lane)?;
                let (address, alignment) = self.address(memory, &index)?;
                let depth = self.depth_of(address);
                vectors.push(self.at(depth, |b| b.load(ty, address, alignment)));
            }
            let depth = self.depth_of_all(vectors.iter().copied());
            let rows = self.at(depth, |b| transpose(b, &vectors));
            for (row, value) in rows.into_iter().enumerate() {
                self.remember_index(key(row as i64), value)?;
            }
        }
        let raw = self
            .known_index(&key(row))
            .ok_or_else(|| Error::internal("missing row of a transposed square"))?;
        let depth = self.depth_of(raw);
        Ok(Element::Real(self.at(depth, |b| decode(b, element_type, raw))))
    }

    fn load_vector(&mut self, memory: &Memory, first: &Index, lanes: u32) -> Result<Element> {
        let (address, alignment) = self.address(memory, first)?;
        let element_type = memory.shape.element_type;
        let ty = Type::vector(memory_type(element_type), lanes);
        let depth = self.depth_of(address);
        Ok(self.at(depth, |b| {
            let raw = b.load(ty, address, alignment);
            if element_type.is_complex() {
                let part = ty.scalar.byte_size();
                let imaginary = b.offset_bytes(address, part as i64);
                Element::Complex(raw, b.load(ty, imaginary, alignment.min(part as u32)))
            } else {
                Element::Real(decode(b, element_type, raw))
            }
        }))
    }

    /// Loads one lane after another.
    fn load_lanes(&mut self, memory: &Memory, index: &Index, lanes: u32) -> Result<Element> {
        let element_type = memory.shape.element_type;
        let mut gathered: Option<Element> = None;
        for lane in 0..lanes {
            let element = self.load_vector_raw(memory, index, lane)?;
            let depth = self
                .depth_of_all(element.values().into_iter().chain(gathered.iter().flat_map(|g| g.values())));
            gathered = Some(self.at(depth, |b| match gathered {
                None => element.map(|v| splat(b, v, lanes)),
                Some(vector) => vector.zip(element, |vector, v| b.insert(vector, lane, v)),
            }));
        }
        let gathered = gathered.expect("expected at least one lane");
        let depth = self.depth_of_all(gathered.values());
        Ok(self.at(depth, |b| match gathered {
            Element::Real(raw) => Element::Real(decode(b, element_type, raw)),
            complex => complex,
        }))
    }

    /// Loads the element of one lane in its memory form.
    fn load_vector_raw(&mut self, memory: &Memory, index: &Index, lane: u32) -> Result<Element> {
        let index = self.lane_index(index, lane)?;
        let (address, alignment) = self.address(memory, &index)?;
        let ty = Type::scalar(memory_type(memory.shape.element_type));
        let is_complex = memory.shape.element_type.is_complex();
        let depth = self.depth_of(address);
        Ok(self.at(depth, |b| {
            let raw = b.load(ty, address, alignment);
            if is_complex {
                let part = ty.scalar.byte_size();
                let imaginary = b.offset_bytes(address, part as i64);
                Element::Complex(raw, b.load(ty, imaginary, alignment.min(part as u32)))
            } else {
                Element::Real(raw)
            }
        }))
    }

    /// Returns the index of one lane.
    fn lane_index(&mut self, index: &Index, lane: u32) -> Result<Index> {
        let mut lane_index = index.uniform_part().plus_constant(index.lane_stride() * i64::from(lane));
        for &(vector, factor) in index.vectors() {
            let depth = self.depth_of(vector);
            let scalar = self.at(depth, |b| b.extract(vector, lane));
            let facts = self.facts_of(vector);
            self.facts.insert(scalar, facts);
            lane_index = lane_index.plus(&Index::scalar(scalar).times(factor));
        }
        Ok(lane_index)
    }

    /// Stores elements, one per lane. The store stays in the current region.
    pub fn store_at(&mut self, memory: &Memory, position: &Position, element: Element) -> Result<()> {
        let element_type = memory.shape.element_type;
        let index = position.linear(&memory.shape.sizes());
        let lanes = if index.is_uniform() { 1 } else { self.lanes };
        let element = self.widen(element, lanes)?;
        let is_contiguous = lanes == 1 || index.stride() == Some(1);
        if let (Element::Real(value), true) = (element, is_contiguous) {
            let (address, alignment) = self.address(memory, &index.uniform_part())?;
            let raw = encode(self, element_type, value);
            self.store(raw, address, alignment);
            return Ok(());
        }
        if let (Element::Complex(re, im), true) = (element, is_contiguous && lanes > 1) {
            let (address, alignment) = self.address(memory, &index.uniform_part())?;
            let bytes = self.ty(re).scalar.byte_size() * lanes as usize;
            // Alternates the real and imaginary parts of half of the lanes.
            let half = |first: u32| {
                (0..lanes).map(|k| first + k / 2 + if k % 2 == 0 { 0 } else { lanes }).collect::<Vec<u32>>()
            };
            let (low, high) = (self.shuffle(re, im, half(0)), self.shuffle(re, im, half(lanes / 2)));
            self.store(low, address, alignment);
            let second = self.offset_bytes(address, bytes as i64);
            self.store(high, second, alignment.min(bytes as u32));
            return Ok(());
        }
        let raw = element.map(|v| encode(self, element_type, v));
        for lane in 0..lanes {
            let index = self.lane_index(&index, lane)?;
            let (address, alignment) = self.address(memory, &index)?;
            let mut at = address;
            for value in raw.values() {
                let scalar = self.extract(value, lane);
                let size = self.ty(scalar).scalar.byte_size();
                self.store(scalar, at, alignment.min(size as u32));
                at = self.offset_bytes(at, size as i64);
            }
        }
        Ok(())
    }

    /// Broadcasts an element to `lanes` lanes.
    pub fn widen(&mut self, element: Element, lanes: u32) -> Result<Element> {
        let mut widened = Vec::with_capacity(2);
        for value in element.values() {
            if self.ty(value).lanes == lanes {
                widened.push(value);
                continue;
            }
            let key = IndexKey::Splat(value, lanes);
            widened.push(match self.known_index(&key) {
                Some(known) => known,
                None => {
                    let depth = self.depth_of(value);
                    let vector = self.at(depth, |b| splat(b, value, lanes));
                    self.remember_index(key, vector)?
                }
            });
        }
        Ok(Element::from_values(&widened))
    }
}

/// Clamps signed numbers between two constants.
pub(crate) fn clamp_value(b: &mut FunctionBuilder, value: ValueId, low: i64, high: i64) -> ValueId {
    let ty = b.ty(value);
    let (low, high) = (b.integer(ty, low), b.integer(ty, high));
    let is_low = b.compare(Predicate::Less, value, low);
    let raised = b.select(is_low, low, value);
    let is_high = b.compare(Predicate::Greater, raised, high);
    b.select(is_high, high, raised)
}
