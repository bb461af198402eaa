//! MediaPipe's custom operators, as its kernels for CPUs define them
//! (`mediapipe/util/tflite/operations`), in the versions that those kernels are registered for.
//!
//! Landmarks are points with two or three coordinates. A transformation is a 4 × 4 matrix that maps
//! points of an image's crop to points of the image; only its entries for x and y are used.

use super::contraction::{reshaped, transposed_convolution};
use super::{Convert, cast};
use crate::convert::Op;
use bytes::Bytes;
use flatbuffer::flex;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Ref, flag, int, ty};

/// Most pixels of an image and most landmarks. Their numbers are exact as 32-bit floats.
const MOST_POINTS: i64 = 1 << 24;

/// Operators with their versions.
const ROWS: &[(&str, i32, Convert)] = &[
    ("Convolution2DTransposeBias", 1, convolution_transpose_bias),
    ("Landmarks2TransformMatrix", 2, landmarks_to_transform_matrix),
    ("TransformLandmarks", 2, transform_landmarks),
    ("TransformTensorBilinear", 2, transform_tensor_bilinear),
];

/// The conversion of a custom operator, if MediaPipe defines it.
pub(super) fn conversion(name: &str, version: i32) -> Option<Convert> {
    ROWS.iter().find(|row| (row.0, row.1) == (name, version)).map(|row| row.2)
}

/// A transposed convolution with a bias. Its options are three 32-bit integers: padding (1: `SAME`,
/// 2: `VALID`), and strides along the width and the height.
fn convolution_transpose_bias(op: &mut Op<'_, '_>) -> Result<()> {
    let words: Vec<i32> = op
        .operator()
        .custom_options
        .chunks_exact(4)
        .map(|word| i32::from_le_bytes(word.try_into().expect("four bytes")))
        .collect();
    let (padding, strides) = match words.as_slice() {
        [1, w, h, ..] if *w > 0 && *h > 0 => ("SAME", [i64::from(*h), i64::from(*w)]),
        [2, w, h, ..] if *w > 0 && *h > 0 => ("VALID", [i64::from(*h), i64::from(*w)]),
        _ => {
            return Err(Error::invalid(format!(
                "expected a padding (1 or 2) and two positive strides as options, got {words:?}"
            )));
        }
    };
    let (input, filter) = (float_sizes(op, 0)?, float_sizes(op, 1)?);
    let bias = float_sizes(op, 2)?;
    let (&[batch, height, width, _], &[features, filter_height, filter_width, _]) = (input, filter) else {
        return Err(Error::invalid(format!(
            "expected an input and a filter of rank 4, got shapes {input:?} and {filter:?}"
        )));
    };
    if bias != [features] {
        return Err(Error::invalid(format!("expected a bias of shape [{features}], got shape {bias:?}")));
    }
    // The size of the result follows from the input, whatever the file says.
    let size = |input: i64, filter: i64, stride: i64| {
        let cut = if padding == "SAME" { (filter - (input - 1) % stride - 1).max(0) } else { 0 };
        let size = stride * (input - 1) + filter - cut;
        if input > 0 && size <= i64::from(i32::MAX) {
            return Ok(size);
        }
        Err(Error::invalid(format!(
            "{input} elements with stride {stride} and a filter of {filter} do not fit"
        )))
    };
    let sizes =
        [batch, size(height, filter_height, strides[0])?, size(width, filter_width, strides[1])?, features];
    let sizes = op.int_vector(&sizes)?;
    let (x, filter, bias) = (op.input(0)?, op.input(1)?, op.input(2)?);
    let y = transposed_convolution(op, [sizes, filter, x], DataType::Float, strides, padding)?;
    let y = binary(op, "AddV2", &y, &bias)?;
    op.set(0, y)
}

/// Options of `Landmarks2TransformMatrix`.
#[derive(Debug, PartialEq)]
struct Crop {
    /// The landmarks on the line that becomes horizontal.
    left: i64,
    right: i64,
    /// The landmarks in the crop.
    subset: Vec<i64>,
    /// The angle of the line in the crop.
    angle: f64,
    width: f64,
    height: f64,
    /// Factors by which the crop is larger than the rectangle around its landmarks.
    scale_x: f64,
    scale_y: f64,
}

impl Crop {
    /// Reads the options for an input of `count` landmarks.
    fn read(bytes: &[u8], count: i64) -> Result<Self> {
        let options = MapOptions::read(bytes)?;
        if count > MOST_POINTS {
            return Err(Error::unsupported(format!(
                "{count} landmarks are too many: the limit is {MOST_POINTS}"
            )));
        }
        let index = |number: i64| {
            if (0..count).contains(&number) {
                return Ok(number);
            }
            Err(Error::invalid(format!("landmark {number} of the options does not exist: there are {count}")))
        };
        let subset = options.value("subset_idxs")?.ints().map_err(|e| e.context("option 'subset_idxs'"))?;
        if subset.is_empty() {
            return Err(Error::invalid("option 'subset_idxs' is empty"));
        }
        Ok(Self {
            left: index(options.int("left_rotation_idx")?)?,
            right: index(options.int("right_rotation_idx")?)?,
            subset: subset.into_iter().map(index).collect::<Result<_>>()?,
            angle: options.float("target_rotation_radians")?,
            width: options.positive("output_width")?,
            height: options.positive("output_height")?,
            scale_x: options.positive("scale_x")?,
            scale_y: options.positive("scale_y")?,
        })
    }
}

/// The transformation that maps a crop to the rectangle around some landmarks. Two landmarks define
/// the angle of the rectangle.
fn landmarks_to_transform_matrix(op: &mut Op<'_, '_>) -> Result<()> {
    let &[1, count, 3] = float_sizes(op, 0)? else {
        return Err(landmarks_expected("[1, count, 3]", op.sizes(0)?));
    };
    let crop = Crop::read(op.operator().custom_options, count)?;
    let x = op.input(0)?;
    let numbers = reshaped(op, x, DataType::Float, &[-1])?;
    let (cos, sin) = rotation(op, &numbers, &crop)?;

    // Size and center of the rectangle around the rotated landmarks.
    let (xs, ys) = (coordinates(op, &numbers, &crop.subset, 0)?, coordinates(op, &numbers, &crop.subset, 1)?);
    let rotated_x = sum_of_products(op, "Sub", [&cos, &xs], [&sin, &ys])?;
    let rotated_y = sum_of_products(op, "AddV2", [&sin, &xs], [&cos, &ys])?;
    let (width, middle_x) = extent(op, &rotated_x)?;
    let (height, middle_y) = extent(op, &rotated_y)?;

    // The product of a shift to the center, the inverse rotation, the scaling, and a shift by half
    // the size of the crop.
    let center_x = sum_of_products(op, "AddV2", [&cos, &middle_x], [&sin, &middle_y])?;
    let center_y = sum_of_products(op, "Sub", [&cos, &middle_y], [&sin, &middle_x])?;
    let scale_x = scaled(op, &width, crop.scale_x / crop.width)?;
    let scale_y = scaled(op, &height, crop.scale_y / crop.height)?;
    let xx = binary(op, "Mul", &cos, &scale_x)?;
    let xy = binary(op, "Mul", &sin, &scale_y)?;
    let yx = binary(op, "Mul", &sin, &scale_x)?;
    let yx = unary(op, "Neg", &yx)?;
    let yy = binary(op, "Mul", &cos, &scale_y)?;
    let (half_width, half_height) = (number(op, crop.width / 2.0)?, number(op, crop.height / 2.0)?);
    let shift_x = sum_of_products(op, "AddV2", [&xx, &half_width], [&xy, &half_height])?;
    let shift_y = sum_of_products(op, "AddV2", [&yx, &half_width], [&yy, &half_height])?;
    let origin_x = binary(op, "Sub", &center_x, &shift_x)?;
    let origin_y = binary(op, "Sub", &center_y, &shift_y)?;
    let matrix = matrix(op, [xx, xy, origin_x], [yx, yy, origin_y])?;
    op.set(0, matrix)
}

/// Cosine and sine of the angle by which a crop's landmarks are rotated.
fn rotation(op: &mut Op<'_, '_>, numbers: &Ref, crop: &Crop) -> Result<(Ref, Ref)> {
    let mut difference = |coordinate: i64| {
        let right = element(op, numbers, 3 * crop.right + coordinate)?;
        let left = element(op, numbers, 3 * crop.left + coordinate)?;
        binary(op, "Sub", &right, &left)
    };
    let (dx, dy) = (difference(0)?, difference(1)?);
    let found = binary(op, "Atan2", &dy, &dx)?;
    let wanted = number(op, crop.angle)?;
    let angle = binary(op, "Sub", &wanted, &found)?;
    Ok((unary(op, "Cos", &angle)?, unary(op, "Sin", &angle)?))
}

/// A transformation with these rows, which lack the factor of z.
fn matrix(op: &mut Op<'_, '_>, x: [Ref; 3], y: [Ref; 3]) -> Result<Ref> {
    let (zero, one) = (number(op, 0.0)?, number(op, 1.0)?);
    let mut entries = Vec::new();
    for [by_x, by_y, constant] in [x, y] {
        entries.extend([by_x, by_y, zero.clone(), constant]);
    }
    entries.extend([zero.clone(), zero.clone(), one.clone(), zero.clone()]);
    entries.extend([zero.clone(), zero.clone(), zero, one]);
    let entries = op.node("Pack", &entries, [ty("T", DataType::Float), int("N", 16), int("axis", 0)])?;
    reshaped(op, entries, DataType::Float, &[1, 4, 4])
}

/// Landmarks in an image for those in its crop. A third coordinate does not change.
fn transform_landmarks(op: &mut Op<'_, '_>) -> Result<()> {
    let &[1, _, dimensions @ (2 | 3)] = float_sizes(op, 0)? else {
        return Err(landmarks_expected("[1, count, 2] or [1, count, 3]", op.sizes(0)?));
    };
    let (input, transformation) = (op.input(0)?, Transformation::of(op, 1)?);
    let axis = op.int(2)?;
    let attributes = [int("num_split", dimensions), ty("T", DataType::Float)];
    let mut parts = op.add("Split", &[axis, input], attributes)?;
    let x = transformation.x.apply(op, &parts[0], &parts[1])?;
    let y = transformation.y.apply(op, &parts[0], &parts[1])?;
    parts[0] = x;
    parts[1] = y;
    parts.push(op.int(2)?);
    let attributes = [int("N", dimensions), ty("T", DataType::Float), ty("Tidx", DataType::Int32)];
    let y = op.node("ConcatV2", &parts, attributes)?;
    op.set(0, y)
}

/// A crop of an image, each of whose points is interpolated from the four around its place in the
/// image. Points outside of the image are zero.
fn transform_tensor_bilinear(op: &mut Op<'_, '_>) -> Result<()> {
    let options = MapOptions::read(op.operator().custom_options)?;
    let result = &op.result(0)?.sizes;
    let sizes = float_sizes(op, 0)?;
    let (&[1, height, width, features], &[1, rows, columns, result_features]) = (sizes, result.as_slice())
    else {
        return Err(Error::unsupported(format!(
            "expected an image and a result of shape [1, height, width, features], got shapes {sizes:?} and {result:?}"
        )));
    };
    let wanted = (options.int("output_height")?, options.int("output_width")?, features);
    if (rows, columns, result_features) != wanted || height == 0 || width == 0 {
        return Err(Error::invalid(format!(
            "expected a result of shape [1, {}, {}, {}] for an image of shape {sizes:?}, got shape {result:?}",
            wanted.0, wanted.1, wanted.2
        )));
    }
    for (rows, columns) in [(height, width), (rows, columns)] {
        if rows * columns > MOST_POINTS {
            return Err(Error::unsupported(format!(
                "an image of {rows} × {columns} pixels is too large: the limit is {MOST_POINTS} pixels"
            )));
        }
    }
    let (image, transformation) = (op.input(0)?, Transformation::of(op, 1)?);
    let pixels = reshaped(op, image, DataType::Float, &[-1, features])?;
    let columns = ramp(op, &[1, columns])?;
    let rows = ramp(op, &[rows, 1])?;
    let x = transformation.x.between_corners(op)?.apply(op, &columns, &rows)?;
    let y = transformation.y.between_corners(op)?.apply(op, &columns, &rows)?;
    let x = Place::of(op, &x, width)?;
    let y = Place::of(op, &y, height)?;

    let upper = row_between(op, &pixels, &y.before, &x, width)?;
    let lower = row_between(op, &pixels, &y.after, &x, width)?;
    let value = between(op, &upper, &lower, &y.fraction)?;
    let is_inside = op.node("LogicalAnd", &[x.is_inside, y.is_inside], [])?;
    let axis = op.int(-1)?;
    let attributes = [ty("T", DataType::Bool), ty("Tdim", DataType::Int32)];
    let is_inside = op.node("ExpandDims", &[is_inside, axis], attributes)?;
    let zero = number(op, 0.0)?;
    let value = op.node("SelectV2", &[is_inside, value, zero], [ty("T", DataType::Float)])?;
    let value = reshaped(op, value, DataType::Float, result)?;
    op.set(0, value)
}

/// A row of a transformation: the factors of x and y, and the constant.
struct Row {
    x: Ref,
    y: Ref,
    constant: Ref,
}

impl Row {
    fn apply(&self, op: &mut Op<'_, '_>, x: &Ref, y: &Ref) -> Result<Ref> {
        let linear = sum_of_products(op, "AddV2", [&self.x, x], [&self.y, y])?;
        binary(op, "AddV2", &linear, &self.constant)
    }

    /// The row for the centers of pixels, given that for their corners.
    fn between_corners(self, op: &mut Op<'_, '_>) -> Result<Self> {
        let half = number(op, 0.5)?;
        let moved = sum_of_products(op, "AddV2", [&self.x, &half], [&self.y, &half])?;
        let moved = binary(op, "Sub", &moved, &half)?;
        Ok(Self { constant: binary(op, "AddV2", &self.constant, &moved)?, ..self })
    }
}

/// The rows of a transformation for x and y.
struct Transformation {
    x: Row,
    y: Row,
}

impl Transformation {
    /// The transformation that is an input.
    fn of(op: &mut Op<'_, '_>, k: usize) -> Result<Self> {
        let sizes = float_sizes(op, k)?;
        if sizes != [1, 4, 4] {
            return Err(Error::invalid(format!("expected a matrix of shape [1, 4, 4], got shape {sizes:?}")));
        }
        let matrix = op.input(k)?;
        let entries = reshaped(op, matrix, DataType::Float, &[16])?;
        let mut row = |start: i64| {
            Ok::<_, Error>(Row {
                x: element(op, &entries, start)?,
                y: element(op, &entries, start + 1)?,
                constant: element(op, &entries, start + 3)?,
            })
        };
        Ok(Self { x: row(0)?, y: row(4)? })
    }
}

/// A coordinate in an image: the pixels around it, as integers, and how far it is from the first.
struct Place {
    before: Ref,
    after: Ref,
    /// With a dimension for the features.
    fraction: Ref,
    is_inside: Ref,
}

impl Place {
    fn of(op: &mut Op<'_, '_>, coordinate: &Ref, size: i64) -> Result<Self> {
        let t = || [ty("T", DataType::Float)];
        let (zero, one, last) = (number(op, 0.0)?, number(op, 1.0)?, number(op, (size - 1) as f64)?);
        let is_after = op.node("GreaterEqual", &[coordinate.clone(), zero.clone()], t())?;
        let is_before = op.node("LessEqual", &[coordinate.clone(), last.clone()], t())?;
        let is_inside = op.node("LogicalAnd", &[is_after, is_before], [])?;
        let floor = unary(op, "Floor", coordinate)?;
        let fraction = binary(op, "Sub", coordinate, &floor)?;
        let axis = op.int(-1)?;
        let attributes = [ty("T", DataType::Float), ty("Tdim", DataType::Int32)];
        let fraction = op.node("ExpandDims", &[fraction, axis], attributes)?;
        let next = binary(op, "AddV2", &floor, &one)?;
        // A pixel outside of the image has the weight 0, or belongs to a point outside.
        let mut pixel = |value: &Ref| {
            let raised = binary(op, "Maximum", value, &zero)?;
            let clipped = binary(op, "Minimum", &raised, &last)?;
            cast(op, clipped, DataType::Float, DataType::Int32)
        };
        let before = pixel(&floor)?;
        let after = pixel(&next)?;
        Ok(Self { before, after, fraction, is_inside })
    }
}

/// The pixels of a row between the columns around each x.
fn row_between(op: &mut Op<'_, '_>, pixels: &Ref, row: &Ref, x: &Place, width: i64) -> Result<Ref> {
    let width = op.int(width)?;
    let start = op.node("Mul", &[row.clone(), width], [ty("T", DataType::Int32)])?;
    let mut at = |column: &Ref| {
        let index = op.node("AddV2", &[start.clone(), column.clone()], [ty("T", DataType::Int32)])?;
        gather(op, pixels, index)
    };
    let (left, right) = (at(&x.before)?, at(&x.after)?);
    between(op, &left, &right, &x.fraction)
}

/// (1 - fraction) × a + fraction × b.
fn between(op: &mut Op<'_, '_>, a: &Ref, b: &Ref, fraction: &Ref) -> Result<Ref> {
    let one = number(op, 1.0)?;
    let rest = binary(op, "Sub", &one, fraction)?;
    sum_of_products(op, "AddV2", [&rest, a], [fraction, b])
}

/// Largest minus smallest element of a vector, and the middle between both.
fn extent(op: &mut Op<'_, '_>, values: &Ref) -> Result<(Ref, Ref)> {
    let mut bound = |name: &str| {
        let axes = op.int_vector(&[0])?;
        let attributes = [ty("T", DataType::Float), ty("Tidx", DataType::Int32), flag("keep_dims", false)];
        op.node(name, &[values.clone(), axes], attributes)
    };
    let (high, low) = (bound("Max")?, bound("Min")?);
    let size = binary(op, "Sub", &high, &low)?;
    let sum = binary(op, "AddV2", &high, &low)?;
    Ok((size, scaled(op, &sum, 0.5)?))
}

/// A coordinate of some landmarks, given the coordinates of all.
fn coordinates(op: &mut Op<'_, '_>, numbers: &Ref, landmarks: &[i64], coordinate: i64) -> Result<Ref> {
    let indices: Vec<i64> = landmarks.iter().map(|landmark| 3 * landmark + coordinate).collect();
    let indices = op.int_vector(&indices)?;
    gather(op, numbers, indices)
}

/// An element of a vector.
fn element(op: &mut Op<'_, '_>, values: &Ref, index: i64) -> Result<Ref> {
    let index = op.int(index)?;
    gather(op, values, index)
}

fn gather(op: &mut Op<'_, '_>, values: &Ref, indices: Ref) -> Result<Ref> {
    let axis = op.int(0)?;
    let attributes = [
        ty("Tparams", DataType::Float),
        ty("Tindices", DataType::Int32),
        ty("Taxis", DataType::Int32),
        int("batch_dims", 0),
    ];
    op.node("GatherV2", &[values.clone(), indices, axis], attributes)
}

/// The numbers 0, 1, 2, ... as an array of a shape.
fn ramp(op: &mut Op<'_, '_>, sizes: &[i64]) -> Result<Ref> {
    let count: i64 = sizes.iter().product();
    let bytes: Vec<u8> = (0..count).flat_map(|value| (value as f32).to_le_bytes()).collect();
    op.constant(DataType::Float, sizes, Bytes::from(bytes))
}

fn number(op: &mut Op<'_, '_>, value: f64) -> Result<Ref> {
    op.scalar(DataType::Float, value)
}

fn unary(op: &mut Op<'_, '_>, name: &str, x: &Ref) -> Result<Ref> {
    op.node(name, std::slice::from_ref(x), [ty("T", DataType::Float)])
}

fn binary(op: &mut Op<'_, '_>, name: &str, x: &Ref, y: &Ref) -> Result<Ref> {
    op.node(name, &[x.clone(), y.clone()], [ty("T", DataType::Float)])
}

fn scaled(op: &mut Op<'_, '_>, value: &Ref, factor: f64) -> Result<Ref> {
    let factor = number(op, factor)?;
    binary(op, "Mul", value, &factor)
}

/// The sum (`AddV2`) or difference (`Sub`) of two products.
fn sum_of_products(op: &mut Op<'_, '_>, name: &str, a: [&Ref; 2], b: [&Ref; 2]) -> Result<Ref> {
    let a = binary(op, "Mul", a[0], a[1])?;
    let b = binary(op, "Mul", b[0], b[1])?;
    binary(op, name, &a, &b)
}

/// Shape of an input that must consist of 32-bit floats.
fn float_sizes<'a>(op: &Op<'_, 'a>, k: usize) -> Result<&'a [i64]> {
    match op.data_type(k)? {
        DataType::Float => op.sizes(k),
        other => Err(Error::unsupported(format!("expected input {k} of type float32, got {}", other.name()))),
    }
}

fn landmarks_expected(wanted: &str, sizes: &[i64]) -> Error {
    Error::unsupported(format!("expected landmarks of shape {wanted}, got shape {sizes:?}"))
}

/// Options in a FlexBuffers map.
struct MapOptions<'a>(flex::Value<'a>);

impl<'a> MapOptions<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let root = flex::Value::root(bytes);
        Ok(Self(root.map_err(|e| e.context("its options are not FlexBuffers"))?))
    }

    fn value(&self, key: &str) -> Result<flex::Value<'a>> {
        let found = self.0.member(key).map_err(|e| e.context("its options"))?;
        found.ok_or_else(|| Error::invalid(format!("option '{key}' is missing")))
    }

    fn int(&self, key: &str) -> Result<i64> {
        self.value(key)?.int().map_err(|e| e.context(format!("option '{key}'")))
    }

    fn float(&self, key: &str) -> Result<f64> {
        let value = self.value(key)?.float().map_err(|e| e.context(format!("option '{key}'")))?;
        if !value.is_finite() {
            return Err(Error::invalid(format!("option '{key}' is {value}, not a finite number")));
        }
        Ok(value)
    }

    fn positive(&self, key: &str) -> Result<f64> {
        let value = self.float(key)?;
        if value <= 0.0 {
            return Err(Error::invalid(format!("option '{key}' must be positive, got {value}")));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options of `Landmarks2TransformMatrix` by the Python package `flatbuffers`.
    const OPTIONS: &[u8] = b"subset_idxs\0\x03\x01\x03\0left_rotation_idx\0right_rotation_idx\0\
        target_rotation_radians\0output_width\0output_height\0scale_x\0scale_y\0\
        \x08i .Z\x15\x0e\x7fK\0\0\0\x0b\0\0\0\x01\0\0\0\x08\0\0\0\x02\0\0\0\x06\0\0\0\x08\0\0\0\
        \x03\0\0\0\0\0\xc0?\0\0\xa0?\x9b\0\0\0\0\0\0?\x06\x06\x06\x06\x0e\x0e,\x0e(&\x01";

    #[test]
    fn options_of_a_crop_are_read() {
        let crop = Crop {
            left: 2,
            right: 3,
            subset: vec![1, 3, 0],
            angle: 0.5,
            width: 8.0,
            height: 6.0,
            scale_x: 1.5,
            scale_y: 1.25,
        };
        assert_eq!(Crop::read(OPTIONS, 4).expect("options"), crop);
    }

    #[test]
    fn wrong_options_are_named() {
        let error = |bytes: &[u8], count| Crop::read(bytes, count).expect_err("wrong options").to_string();
        assert!(error(OPTIONS, 3).contains("landmark 3 of the options does not exist: there are 3"));
        assert!(error(b"", 4).contains("its options are not FlexBuffers"));
        assert!(error(b"\x01\x04\x01", 4).contains("expected a FlexBuffers map"));
        let changed = |from: &str, to: &str| {
            let at = OPTIONS.windows(from.len()).position(|part| part == from.as_bytes()).expect("a key");
            let mut bytes = OPTIONS.to_vec();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            error(&bytes, 4)
        };
        assert!(changed("scale_x", "scale_z").contains("option 'scale_x' is missing"));
        assert!(changed("subset_idxs", "subset_idxz").contains("option 'subset_idxs' is missing"));
        assert!(changed("\x08\0\0\0\x03", "\0").contains("option 'output_width' must be positive, got 0"));
    }

    #[test]
    fn damaged_options_are_an_error_or_other_options() {
        for at in 0..OPTIONS.len() {
            for value in [0, 1, 0x0f, 0x27, 0x7f, 0x80, 0xff] {
                let mut bytes = OPTIONS.to_vec();
                bytes[at] = value;
                let _ = Crop::read(&bytes, 4);
            }
        }
    }
}
