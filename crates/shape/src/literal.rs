//! Literals: constant values with a shape.

use crate::index::{indices, linear_index};
use crate::{ArrayShape, FloatFormat, NativeType, PrimitiveType, Scalar, Shape};
use bytes::Bytes;
use half::{bf16, f16};

/// A constant value: an array as row-major little-endian bytes, or a tuple of literals.
///
/// The bytes are shared, so cloning a literal (and wrapping the bytes of a mapped file) copies
/// nothing. They need not be aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// An array; `data` has exactly `shape.byte_size()` bytes.
    Array {
        /// Static and row-major.
        shape: ArrayShape,
        /// The elements.
        data: Bytes,
    },
    /// A tuple.
    Tuple(Vec<Literal>),
}

impl Literal {
    /// Creates an array over existing bytes. Returns `None` if their number does not match the
    /// shape.
    pub fn from_bytes(shape: ArrayShape, data: Bytes) -> Option<Self> {
        (data.len() as u64 == shape.byte_size()).then_some(Self::Array { shape, data })
    }

    /// Creates an array of native elements. Panics if their number does not match the sizes.
    pub fn from_elements<T: NativeType>(sizes: &[i64], elements: &[T]) -> Self {
        let shape = ArrayShape::new(T::TYPE, sizes);
        assert_eq!(elements.len() as i64, shape.element_count(), "elements of {shape}");
        let mut data = Vec::with_capacity(shape.byte_size() as usize);
        elements.iter().for_each(|e| e.write_le(&mut data));
        Self::Array { shape, data: data.into() }
    }

    /// Creates a scalar.
    pub fn scalar<T: NativeType>(value: T) -> Self {
        Self::from_elements(&[], &[value])
    }

    /// Creates an array from scalars in row-major order. Conversion to the element type rounds to
    /// nearest even and wraps integers. Panics if a scalar's kind differs from the element type's,
    /// or if the number of scalars does not match the shape.
    pub fn from_scalars(shape: ArrayShape, scalars: impl IntoIterator<Item = Scalar>) -> Self {
        let mut data = Vec::with_capacity(shape.byte_size() as usize);
        for scalar in scalars {
            extend_scalar(shape.element_type, scalar, &mut data);
        }
        assert_eq!(data.len() as u64, shape.byte_size(), "elements of {shape}");
        Self::Array { shape, data: data.into() }
    }

    /// Shape of the literal.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Array { shape, .. } => Shape::Array(shape.clone()),
            Self::Tuple(elements) => Shape::Tuple(elements.iter().map(Self::shape).collect()),
        }
    }

    /// Shape of the array. Panics on a tuple.
    #[track_caller]
    pub fn array_shape(&self) -> &ArrayShape {
        match self {
            Self::Array { shape, .. } => shape,
            Self::Tuple(_) => panic!("an array literal"),
        }
    }

    /// Bytes of the array. Panics on a tuple.
    #[track_caller]
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Array { data, .. } => data,
            Self::Tuple(_) => panic!("an array literal"),
        }
    }

    /// Returns all elements. Returns `None` for a different element type or a tuple.
    pub fn to_vec<T: NativeType>(&self) -> Option<Vec<T>> {
        match self {
            Self::Array { shape, data } if shape.element_type == T::TYPE => {
                Some(data.chunks_exact(T::TYPE.byte_size()).map(T::read_le).collect())
            }
            _ => None,
        }
    }

    /// Returns the element at a row-major position. Panics if the position is out of bounds, and on
    /// a tuple.
    #[track_caller]
    pub fn scalar_at(&self, linear: usize) -> Scalar {
        let shape = self.array_shape();
        let size = shape.element_type.byte_size();
        read_scalar(shape.element_type, &self.bytes()[linear * size..(linear + 1) * size])
    }

    /// Iterates over all elements in row-major order. Panics on a tuple.
    #[track_caller]
    pub fn scalars(&self) -> impl ExactSizeIterator<Item = Scalar> + '_ {
        let element_type = self.array_shape().element_type;
        self.bytes().chunks_exact(element_type.byte_size()).map(move |bytes| read_scalar(element_type, bytes))
    }

    /// Returns all elements of a floating-point array in row-major order. Returns `None` for other
    /// element types and tuples.
    pub fn floats(&self) -> Option<Vec<f64>> {
        let Self::Array { shape, data } = self else { return None };
        Some(match shape.element_type {
            PrimitiveType::F32 => data.chunks_exact(4).map(|b| f64::from(f32::read_le(b))).collect(),
            PrimitiveType::F64 => data.chunks_exact(8).map(f64::read_le).collect(),
            other if other.is_floating_point() => {
                self.scalars().map(|s| s.as_f64().unwrap_or(f64::NAN)).collect()
            }
            _ => return None,
        })
    }

    /// Creates a floating-point array in row-major order, rounding each number to the nearest
    /// element. Panics for other element types, or if the number of elements does not match the
    /// shape.
    pub fn from_floats(shape: ArrayShape, floats: impl IntoIterator<Item = f64>) -> Self {
        let floats = floats.into_iter();
        let data: Vec<u8> = match shape.element_type {
            PrimitiveType::F32 => floats.flat_map(|v| (v as f32).to_le_bytes()).collect(),
            PrimitiveType::F64 => floats.flat_map(f64::to_le_bytes).collect(),
            _ => return Self::from_scalars(shape, floats.map(Scalar::Float)),
        };
        assert_eq!(data.len() as u64, shape.byte_size(), "elements of {shape}");
        Self::Array { shape, data: data.into() }
    }

    /// Returns all elements as integers. Returns `None` for a tuple, or if an element is not an
    /// integer in the range of `i64`.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        match self {
            Self::Array { .. } => self.scalars().map(Scalar::as_i64).collect(),
            Self::Tuple(_) => None,
        }
    }

    /// True if all elements have the same bytes, also for empty arrays. False for a tuple.
    pub fn is_splat(&self) -> bool {
        match self {
            Self::Array { shape, data } => {
                let mut chunks = data.chunks_exact(shape.element_type.byte_size());
                let first = chunks.next();
                chunks.all(|chunk| Some(chunk) == first)
            }
            Self::Tuple(_) => false,
        }
    }

    /// Permutes the dimensions as XLA's transpose does: result dimension `d` is operand dimension
    /// `permutation[d]`. Panics on a tuple.
    pub fn transpose(&self, permutation: &[usize]) -> Self {
        let shape = self.array_shape();
        if permutation.iter().copied().eq(0..shape.rank()) {
            let shape = ArrayShape::new(shape.element_type, &shape.sizes());
            return Self::Array { shape, data: self.bytes().clone() };
        }
        let (sizes, size) = (shape.sizes(), shape.element_type.byte_size());
        let result: Vec<i64> = permutation.iter().map(|&p| sizes[p]).collect();
        let mut data = Vec::with_capacity(self.bytes().len());
        let mut source = vec![0; sizes.len()];
        for index in indices(&result) {
            permutation.iter().zip(&index).for_each(|(&p, &i)| source[p] = i);
            let at = linear_index(&sizes, &source) as usize * size;
            data.extend_from_slice(&self.bytes()[at..at + size]);
        }
        Self::Array { shape: ArrayShape::new(shape.element_type, &result), data: data.into() }
    }

    /// Returns the leading `sizes` elements of each dimension. Returns `None` if there are fewer,
    /// or if the rank differs.
    pub fn corner(&self, sizes: &[i64]) -> Option<Self> {
        let shape = self.array_shape();
        let have = shape.sizes();
        let fits = have.len() == sizes.len() && sizes.iter().zip(&have).all(|(s, h)| (0..=*h).contains(s));
        if !fits || have == sizes {
            return fits.then(|| self.clone());
        }
        let cut = ArrayShape::new(shape.element_type, sizes);
        let bytes = shape.element_type.byte_size();
        let mut data = Vec::with_capacity(cut.byte_size() as usize);
        // Copies whole rows.
        let row = sizes.last().map_or(0, |&row| row as usize * bytes);
        let rows = sizes.split_last().map_or(&[][..], |(_, rows)| rows);
        if row > 0 {
            for mut at in crate::index::indices(rows) {
                at.push(0);
                let start = crate::index::linear_index(&have, &at) as usize * bytes;
                data.extend_from_slice(&self.bytes()[start..start + row]);
            }
        }
        Self::from_bytes(cut, data.into())
    }

    /// Returns an array of these sizes that begins with this one in each dimension, with zeros
    /// elsewhere. Returns `None` if it is larger, or if the rank differs.
    pub fn in_corner_of(&self, sizes: &[i64]) -> Option<Self> {
        let shape = self.array_shape();
        let have = shape.sizes();
        let fits = have.len() == sizes.len() && have.iter().zip(sizes).all(|(h, s)| h <= s);
        if !fits || have == sizes {
            return fits.then(|| self.clone());
        }
        let whole = ArrayShape::new(shape.element_type, sizes);
        let bytes = shape.element_type.byte_size();
        let mut data = vec![0; whole.byte_size() as usize];
        let row = have.last().map_or(0, |&row| row as usize * bytes);
        let rows = have.split_last().map_or(&[][..], |(_, rows)| rows);
        if row > 0 {
            for (mut at, source) in crate::index::indices(rows).zip(self.bytes().chunks_exact(row)) {
                at.push(0);
                let start = crate::index::linear_index(sizes, &at) as usize * bytes;
                data[start..start + row].copy_from_slice(source);
            }
        }
        Self::from_bytes(whole, data.into())
    }

    /// Returns the same elements with other dimensions. Returns `None` if the number of elements
    /// differs, or for a tuple.
    pub fn reshape(&self, sizes: &[i64]) -> Option<Self> {
        match self {
            Self::Array { shape, data } => {
                Self::from_bytes(ArrayShape::new(shape.element_type, sizes), data.clone())
            }
            Self::Tuple(_) => None,
        }
    }
}

/// Widens a NaN and keeps all bits of its payload. Hardware conversions quiet signaling NaNs, which
/// changes their place in the total order.
fn widened_nan(bits: u64, mantissa_bits: u32, width: u32) -> f64 {
    let sign = bits >> (width - 1) << 63;
    let payload = (bits & ((1 << mantissa_bits) - 1)) << (52 - mantissa_bits);
    f64::from_bits(sign | f64::INFINITY.to_bits() | payload)
}

/// Bit pattern of a NaN in a narrower type: the payload bits that fit, or a nonzero payload if all
/// of these are zero.
fn narrowed_nan(value: f64, mantissa_bits: u32, width: u32) -> u64 {
    let bits = value.to_bits();
    let sign = bits >> 63 << (width - 1);
    let exponent = ((1 << (width - 1)) - 1) & !((1 << mantissa_bits) - 1);
    let payload = bits >> (52 - mantissa_bits) & ((1 << mantissa_bits) - 1);
    let quiet = 1 << (mantissa_bits - 1);
    sign | exponent | if payload == 0 { quiet } else { payload }
}

/// Reads one element from its little-endian bytes.
fn read_scalar(element_type: PrimitiveType, bytes: &[u8]) -> Scalar {
    use PrimitiveType::*;
    match element_type {
        Pred => Scalar::Pred(bytes[0] != 0),
        S1 | S2 | S4 => {
            let shift = 8 - element_type.bit_width();
            Scalar::Signed(i64::from((bytes[0] << shift) as i8 >> shift))
        }
        S8 => Scalar::Signed(i8::read_le(bytes).into()),
        S16 => Scalar::Signed(i16::read_le(bytes).into()),
        S32 => Scalar::Signed(i32::read_le(bytes).into()),
        S64 => Scalar::Signed(i64::read_le(bytes)),
        U1 | U2 | U4 => Scalar::Unsigned((bytes[0] & ((1 << element_type.bit_width()) - 1)).into()),
        U8 => Scalar::Unsigned(bytes[0].into()),
        U16 => Scalar::Unsigned(u16::read_le(bytes).into()),
        U32 => Scalar::Unsigned(u32::read_le(bytes).into()),
        U64 => Scalar::Unsigned(u64::read_le(bytes)),
        F16 => {
            let x = f16::read_le(bytes);
            Scalar::Float(if x.is_nan() { widened_nan(x.to_bits().into(), 10, 16) } else { x.to_f64() })
        }
        Bf16 => {
            let x = bf16::read_le(bytes);
            Scalar::Float(if x.is_nan() { widened_nan(x.to_bits().into(), 7, 16) } else { x.to_f64() })
        }
        F32 => {
            let x = f32::read_le(bytes);
            Scalar::Float(if x.is_nan() { widened_nan(x.to_bits().into(), 23, 32) } else { x.into() })
        }
        F64 => Scalar::Float(f64::read_le(bytes)),
        C64 => {
            let [re, im] = <[f32; 2]>::read_le(bytes);
            Scalar::Complex(re.into(), im.into())
        }
        C128 => {
            let [re, im] = <[f64; 2]>::read_le(bytes);
            Scalar::Complex(re, im)
        }
        _ => Scalar::Float(minifloat(element_type).decode(bytes[0].into())),
    }
}

impl Scalar {
    /// Reinterprets the bits of an element of type `from` as type `to`, preserving NaN payloads.
    /// Returns `None` if the widths differ.
    #[track_caller]
    pub fn bitcast(self, from: PrimitiveType, to: PrimitiveType) -> Option<Self> {
        if from.bit_width() != to.bit_width() {
            return None;
        }
        let mut bytes = Vec::with_capacity(from.byte_size());
        extend_scalar(from, self, &mut bytes);
        Some(read_scalar(to, &bytes))
    }
}

fn minifloat(element_type: PrimitiveType) -> FloatFormat {
    element_type.float_format().expect("an element type that is a float")
}

/// Appends the little-endian bytes of one element.
#[track_caller]
fn extend_scalar(element_type: PrimitiveType, scalar: Scalar, out: &mut Vec<u8>) {
    use PrimitiveType::*;
    let wrapped = || match scalar {
        Scalar::Signed(value) => value,
        Scalar::Unsigned(value) => value as i64,
        other => panic!("expected an element of {element_type}, got {other:?}"),
    };
    match (element_type, scalar) {
        (Pred, Scalar::Pred(value)) => value.write_le(out),
        (S1 | S2 | S4 | S8, _) => {
            let shift = 64 - element_type.bit_width();
            ((wrapped() << shift >> shift) as i8).write_le(out);
        }
        (U1 | U2 | U4 | U8, _) => (wrapped() as u8 & (0xff >> (8 - element_type.bit_width()))).write_le(out),
        (S16 | U16, _) => (wrapped() as u16).write_le(out),
        (S32 | U32, _) => (wrapped() as u32).write_le(out),
        (S64 | U64, _) => wrapped().write_le(out),
        (F16, Scalar::Float(value)) if value.is_nan() => (narrowed_nan(value, 10, 16) as u16).write_le(out),
        (F16, Scalar::Float(value)) => f16::from_f64(value).write_le(out),
        (Bf16, Scalar::Float(value)) if value.is_nan() => (narrowed_nan(value, 7, 16) as u16).write_le(out),
        (Bf16, Scalar::Float(value)) => bf16::from_f64(value).write_le(out),
        (F32, Scalar::Float(value)) if value.is_nan() => (narrowed_nan(value, 23, 32) as u32).write_le(out),
        (F32, Scalar::Float(value)) => (value as f32).write_le(out),
        (F64, Scalar::Float(value)) => value.write_le(out),
        (C64, Scalar::Complex(re, im)) => [re as f32, im as f32].write_le(out),
        (C128, Scalar::Complex(re, im)) => [re, im].write_le(out),
        (_, Scalar::Float(value)) if element_type.is_minifloat() => {
            out.push(minifloat(element_type).encode(value) as u8)
        }
        (_, other) => panic!("expected an element of {element_type}, got {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nans_of_narrow_types_keep_their_order() {
        let nans = |element_type, data: &[u8]| {
            let shape = ArrayShape::new(element_type, &[3]);
            let literal = Literal::Array { shape, data: data.to_vec().into() };
            literal.scalars().map(|s| s.as_f64().unwrap()).collect::<Vec<f64>>()
        };
        // Negative quiet, negative signaling, and positive signaling NaN, in total order.
        let singles: Vec<u8> =
            [0xffc0_0000_u32, 0xff80_0001, 0x7f80_0001].into_iter().flat_map(u32::to_le_bytes).collect();
        let halves: Vec<u8> = [0xfe00_u16, 0xfc01, 0x7c01].into_iter().flat_map(u16::to_le_bytes).collect();
        let brains: Vec<u8> = [0xffc0_u16, 0xff81, 0x7f81].into_iter().flat_map(u16::to_le_bytes).collect();
        for (element_type, data) in
            [(PrimitiveType::F32, singles), (PrimitiveType::F16, halves), (PrimitiveType::Bf16, brains)]
        {
            let nans = nans(element_type, &data);
            assert!(nans.iter().all(|x| x.is_nan()), "{element_type}");
            assert!(nans.is_sorted_by(|x, y| x.total_cmp(y).is_lt()), "{element_type}: {nans:?}");
            let again = Literal::from_scalars(
                ArrayShape::new(element_type, &[3]),
                nans.iter().map(|&x| Scalar::Float(x)),
            );
            assert_eq!(again.bytes()[..], data[..], "{element_type}");
        }
    }

    #[test]
    fn a_bitcast_keeps_every_bit() {
        use PrimitiveType::{C64, F32, F64, S4, S32, S64, U4, U32};
        for bits in [0x7f80_0001_u32, 0xffc0_0003, 0x8000_0000, 0x7f80_0000, 1] {
            let float = Scalar::Unsigned(bits.into()).bitcast(U32, F32).unwrap();
            assert_eq!(float.bitcast(F32, S32), Some(Scalar::Signed(i64::from(bits as i32))));
        }
        assert_eq!(Scalar::Signed(-3).bitcast(S4, U4), Some(Scalar::Unsigned(13)));
        assert_eq!(Scalar::Float(-0.0).bitcast(F64, S64), Some(Scalar::Signed(i64::MIN)));
        assert_eq!(Scalar::Complex(0.0, 1.0).bitcast(C64, S64), Some(Scalar::Signed(0x3f80_0000 << 32)));
        assert_eq!(Scalar::Float(1.0).bitcast(F32, S64), None);
        // A NaN remains a NaN even if no bit of its payload fits the narrow type.
        let nan = Literal::from_scalars(
            ArrayShape::new(F32, &[]),
            [Scalar::Float(f64::from_bits(0x7ff0 << 48 | 1))],
        );
        assert!(nan.to_vec::<f32>().unwrap()[0].is_nan());
    }

    #[test]
    fn scalars_of_every_type_survive_the_round_trip() {
        for element_type in PrimitiveType::ALL {
            let shape = ArrayShape::new(element_type, &[2]);
            let scalars = match element_type {
                PrimitiveType::Pred => [Scalar::Pred(true), Scalar::Pred(false)],
                PrimitiveType::S1 => [Scalar::Signed(-1), Scalar::Signed(0)],
                PrimitiveType::U1 => [Scalar::Unsigned(1), Scalar::Unsigned(0)],
                t if t.is_signed_integer() => [Scalar::Signed(-2), Scalar::Signed(1)],
                t if t.is_integer() => [Scalar::Unsigned(3), Scalar::Unsigned(0)],
                // Unsigned powers of two.
                PrimitiveType::F8e8m0fnu => [Scalar::Float(0.5), Scalar::Float(4.0)],
                t if t.is_minifloat() => [Scalar::Float(-1.5), Scalar::Float(2.0)],
                t if t.is_complex() => [Scalar::Complex(1.5, -2.0), Scalar::Complex(0.0, 0.25)],
                _ => [Scalar::Float(-1.5), Scalar::Float(f64::INFINITY)],
            };
            let literal = Literal::from_scalars(shape, scalars);
            let read: Vec<Scalar> = literal.scalars().collect();
            assert_eq!(read, scalars, "{element_type}");
        }
    }

    #[test]
    fn floats_are_the_scalars_of_floating_point_arrays() {
        for element_type in PrimitiveType::ALL {
            let shape = ArrayShape::new(element_type, &[2]);
            if !element_type.is_floating_point() {
                let zeros = Literal::from_bytes(shape.clone(), vec![0; shape.byte_size() as usize].into());
                assert_eq!(zeros.expect("as many bytes").floats(), None);
                continue;
            }
            let literal = Literal::from_floats(shape.clone(), [0.1, -2.0]);
            assert_eq!(literal, Literal::from_scalars(shape, [Scalar::Float(0.1), Scalar::Float(-2.0)]));
            let floats: Vec<String> = literal
                .floats()
                .expect("floats")
                .into_iter()
                .map(|x| format!("{:?}", Scalar::Float(x)))
                .collect();
            // Compared as text, because NaN does not equal itself. Powers of two encode -2 as NaN.
            assert_eq!(floats, literal.scalars().map(|x| format!("{x:?}")).collect::<Vec<_>>());
        }
    }

    #[test]
    fn float8_rounds_half_to_even() {
        // The neighbors of 17 in e4m3fn are 16 and 18, and those of 19 are 18 and 20.
        let rounded = |v| {
            Literal::from_scalars(ArrayShape::new(PrimitiveType::F8e4m3fn, &[]), [Scalar::Float(v)])
                .scalar_at(0)
        };
        assert_eq!(rounded(17.0), Scalar::Float(16.0));
        assert_eq!(rounded(19.0), Scalar::Float(20.0));
        assert_eq!(rounded(464.0), Scalar::Float(448.0));
        assert!(matches!(rounded(465.0), Scalar::Float(v) if v.is_nan()));
    }

    #[test]
    fn transpose_takes_result_dimension_d_from_operand_dimension_p_d() {
        let literal = Literal::from_elements(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
        assert_eq!(literal.transpose(&[1, 0]), Literal::from_elements(&[3, 2], &[1i32, 4, 2, 5, 3, 6]));
    }
}
