//! The weights: groups of files, each of which is the concatenation of its weights' bytes.

use bytes::Bytes;
use serde_json::Value;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, index};
use std::collections::BTreeMap;
use std::path::{Component, Path};
use support::{Code, Error, Result};
use tf::DataType;
use tf::proto::{Dim, TensorProto, TensorShapeProto};

/// The weights of a model, by name.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    weights: BTreeMap<String, Weight>,
}

/// A weight as the file stores it.
#[derive(Debug)]
struct Weight {
    sizes: Vec<i64>,
    elements: Elements,
}

#[derive(Debug)]
enum Elements {
    Numbers(Literal),
    Strings(Vec<Bytes>),
}

/// Integers that stand for numbers: `scale * integer + min`.
#[derive(Clone, Copy, Debug)]
struct Quantization {
    scale: f64,
    min: f64,
}

impl Weights {
    /// Reads the files of a manifest, which are next to the file `model`.
    pub(crate) fn read(model: &Path, manifest: Option<&Value>) -> Result<Self> {
        let mut weights = Self::default();
        let groups = match manifest {
            None | Some(Value::Null) => &[],
            Some(manifest) => array(manifest).ok_or_else(|| malformed("weightsManifest", "an array"))?,
        };
        for (number, group) in groups.iter().enumerate() {
            let at = format!("weightsManifest[{number}]");
            let paths = group.get("paths").and_then(array).ok_or_else(|| malformed(&at, "paths"))?;
            let entries = group.get("weights").and_then(array).ok_or_else(|| malformed(&at, "weights"))?;
            let mut rest = files(model, paths).map_err(|e| e.context(at.clone()))?;
            for entry in entries {
                let name = entry.get("name").and_then(Value::as_str);
                let name = name.ok_or_else(|| malformed(&format!("{at}: a weight"), "a name"))?;
                let weight =
                    Weight::read(entry, &mut rest).map_err(|e| e.context(format!("weight '{name}'")))?;
                weights.weights.insert(name.to_owned(), weight);
            }
        }
        Ok(weights)
    }

    /// True if there is a weight of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.weights.contains_key(name)
    }

    /// Returns the value of a constant of the given type.
    pub(crate) fn tensor(&self, name: &str, data_type: DataType) -> Result<TensorProto> {
        let weight = self.weights.get(name).ok_or_else(|| {
            Error::invalid("the constant has no value, and weightsManifest has no weight of its name")
        })?;
        let dim = weight.sizes.iter().map(|&size| Dim { size, ..Dim::default() }).collect();
        let tensor = TensorProto {
            dtype: data_type.number(),
            tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
            ..TensorProto::default()
        };
        match &weight.elements {
            Elements::Strings(strings) if data_type == DataType::String => {
                Ok(TensorProto { string_val: strings.clone(), ..tensor })
            }
            Elements::Numbers(numbers) => {
                let numbers = converted(numbers, data_type)?;
                Ok(TensorProto { tensor_content: numbers.bytes().clone(), ..tensor })
            }
            Elements::Strings(_) => Err(mismatch("string", data_type)),
        }
    }
}

/// Reads the files of a group.
fn files(model: &Path, paths: &[Value]) -> Result<Bytes> {
    let directory = model.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut parts = Vec::new();
    for path in paths {
        let path = path.as_str().ok_or_else(|| malformed("paths", "names of files"))?;
        let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_inside || path.is_empty() {
            return Err(Error::invalid(format!(
                "'{path}' is not the name of a file in the directory of the model"
            ))
            .coded(Code::ReadFile));
        }
        parts.push(tf::source::read_bytes(&directory.join(path))?);
    }
    match parts.as_slice() {
        // One file is not copied.
        [only] => Ok(only.clone()),
        parts => Ok(parts.concat().into()),
    }
}

impl Weight {
    /// Reads the next weight of a group, and removes its bytes from the front.
    fn read(entry: &Value, rest: &mut Bytes) -> Result<Self> {
        let sizes = entry.get("shape").and_then(array).ok_or_else(|| malformed("the entry", "a shape"))?;
        let sizes: Option<Vec<i64>> = sizes.iter().map(|size| size.as_i64().filter(|&s| s >= 0)).collect();
        let sizes = sizes.ok_or_else(|| malformed("shape", "sizes"))?;
        let count = index::element_count(&sizes).ok_or_else(|| Error::invalid("the shape is too large"))?;
        let dtype = text(entry, "dtype")?;
        if dtype == "string" {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            return Ok(Self { sizes, elements: Elements::Strings(strings(rest, count)?) });
        }
        let quantization = entry.get("quantization").filter(|value| !value.is_null());
        let stored = quantization.map_or(Ok(dtype), |quantization| text(quantization, "dtype"))?;
        let element_type = element_type(stored).filter(|_| element_type(dtype).is_some());
        let element_type = element_type.ok_or_else(|| {
            let name = if stored == dtype { dtype.to_owned() } else { format!("{dtype} as {stored}") };
            Error::unsupported(format!("weights of the type {name} are not supported"))
        })?;
        let bytes =
            count.checked_mul(element_type.byte_size() as i64).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.filter(|&bytes| bytes <= rest.len()).ok_or_else(|| {
            Error::invalid(format!(
                "the files end before the weight: it has {count} elements of the type {stored}, but {} bytes are left",
                rest.len()
            ))
        })?;
        let data = rest.split_to(bytes);
        let literal = Literal::from_bytes(ArrayShape::new(element_type, &sizes), data)
            .ok_or_else(|| Error::invalid("an element is not a number of its type"))?;
        let literal = match quantization {
            Some(value) if stored != "float16" => {
                let number =
                    |name: &str| value.get(name).and_then(Value::as_f64).filter(|number| number.is_finite());
                let quantization = number("scale").zip(number("min"));
                let (scale, min) = quantization.ok_or_else(|| malformed("quantization", "scale and min"))?;
                dequantized(&literal, dtype, Quantization { scale, min })?
            }
            _ if element_type == PrimitiveType::F16 => {
                let numbers = literal.floats().unwrap_or_default();
                Literal::from_floats(ArrayShape::new(PrimitiveType::F32, &sizes), numbers)
            }
            _ => literal,
        };
        Ok(Self { sizes, elements: Elements::Numbers(literal) })
    }
}

/// Returns `scale * integer + min` in the type of the weight. Sums are in 64 bits, and integers are
/// rounded half up, as in JavaScript.
fn dequantized(stored: &Literal, dtype: &str, quantization: Quantization) -> Result<Literal> {
    let Quantization { scale, min } = quantization;
    let sizes = stored.array_shape().sizes();
    let integers = stored.scalars().map(|scalar| scalar.as_i64().unwrap_or_default() as f64);
    let numbers = integers.map(|integer| integer * scale + min);
    match dtype {
        "float32" => Ok(Literal::from_floats(ArrayShape::new(PrimitiveType::F32, &sizes), numbers)),
        "int32" => {
            let rounded = numbers.map(|number| Scalar::Signed(((number + 0.5).floor() as i32).into()));
            Ok(Literal::from_scalars(ArrayShape::new(PrimitiveType::S32, &sizes), rounded))
        }
        other => Err(Error::unsupported(format!("quantized weights of the type {other} are not supported"))),
    }
}

/// Returns the strings at the front of a group: the length of each in four bytes, and its bytes.
fn strings(rest: &mut Bytes, count: usize) -> Result<Vec<Bytes>> {
    let ends = || Error::invalid("the files end within the strings of the weight");
    let mut strings = Vec::new();
    for _ in 0..count {
        let length = rest.get(..4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let length = length.ok_or_else(ends)? as usize;
        if rest.len() - 4 < length {
            return Err(ends());
        }
        drop(rest.split_to(4));
        strings.push(rest.split_to(length));
    }
    Ok(strings)
}

/// Returns the weights in the type of a constant: the converter narrows types that JavaScript does
/// not have.
fn converted(numbers: &Literal, data_type: DataType) -> Result<Literal> {
    let shape = numbers.array_shape();
    let (from, to) = (shape.element_type, data_type.primitive_type());
    let to = to.ok_or_else(|| mismatch(from.name(), data_type))?;
    if from == to {
        return Ok(numbers.clone());
    }
    let wide = shape.clone().with_element_type(to);
    if from.is_floating_point() && to.is_floating_point() {
        return Ok(Literal::from_floats(wide, numbers.floats().unwrap_or_default()));
    }
    if !from.is_integer() || !to.is_integer() {
        return Err(mismatch(from.name(), data_type));
    }
    let unused = 64 - to.bit_width();
    let converted = |scalar: Scalar| {
        let number = scalar.as_i64()?;
        if to.is_signed_integer() {
            (number << unused >> unused == number).then_some(Scalar::Signed(number))
        } else {
            let number = u64::try_from(number).ok()?;
            (number << unused >> unused == number).then_some(Scalar::Unsigned(number))
        }
    };
    let integers: Option<Vec<Scalar>> = numbers.scalars().map(converted).collect();
    Ok(Literal::from_scalars(wide, integers.ok_or_else(|| mismatch(from.name(), data_type))?))
}

fn mismatch(stored: &str, data_type: DataType) -> Error {
    Error::invalid(format!(
        "the constant has the type {}, but its weight the type {stored}",
        data_type.name()
    ))
}

/// Type of the elements of a weight.
fn element_type(dtype: &str) -> Option<PrimitiveType> {
    Some(match dtype {
        "float32" => PrimitiveType::F32,
        "float16" => PrimitiveType::F16,
        "bool" => PrimitiveType::Pred,
        "int8" => PrimitiveType::S8,
        "int16" => PrimitiveType::S16,
        "int32" => PrimitiveType::S32,
        "uint8" => PrimitiveType::U8,
        "uint16" => PrimitiveType::U16,
        "complex64" => PrimitiveType::C64,
        _ => return None,
    })
}

fn array(value: &Value) -> Option<&[Value]> {
    value.as_array().map(Vec::as_slice)
}

fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str> {
    value.get(name).and_then(Value::as_str).ok_or_else(|| malformed("the entry", name))
}

fn malformed(place: &str, expected: &str) -> Error {
    Error::invalid(format!("{place}: expected {expected}")).coded(Code::ParseFile)
}
