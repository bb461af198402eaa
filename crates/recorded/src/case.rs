//! One recorded case: an `.npz` file with a graph, its config, inputs, and answers.

use crate::tolerance::Tolerance;
use bytes::Bytes;
use npz::Archive;
use serde_json::Value;
use shape::{ArrayShape, Literal, PrimitiveType};
use std::collections::BTreeMap;
use std::path::Path;
use support::{Error, Result};

/// Maximum size of a member.
const MEMBER_LIMIT: u64 = 256 << 20;

/// Contents of `meta.json`.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// TensorFlow ops and their number of occurrences.
    pub ops: BTreeMap<String, u64>,
    /// True if XLA accepted the graph. Other cases are extras.
    pub xla_ok: bool,
    /// True if the original compiles the graph with this config.
    pub tfcompile_ok: bool,
    /// True to compare values, false to compare only types and shapes.
    pub values: bool,
    /// Tolerance of all floating-point values of the case.
    pub tolerance: Tolerance,
    /// Fetches with a data-dependent size.
    pub dynamic_output: Vec<usize>,
    feeds: Vec<PrimitiveType>,
    fetches: Vec<(PrimitiveType, Vec<i64>)>,
    variables: Vec<PrimitiveType>,
}

/// Recorded answers for one output.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Name of the output in messages: `fetch 0`, `variable 1`.
    pub name: String,
    /// Type and recorded size.
    pub shape: ArrayShape,
    /// One or two arrays. Each element may match any of them.
    pub answers: Vec<Literal>,
}

/// A whole case.
pub struct Case {
    /// Contents of `meta.json`.
    pub metadata: Metadata,
    /// A binary `GraphDef`.
    pub graph: Bytes,
    /// A `tensorflow.tf2xla.Config` as text.
    pub config: Bytes,
    /// The feeds in order, then the variables in order.
    pub arguments: Vec<Literal>,
    /// The fetches in order, then the written variables in order.
    pub expected: Vec<Expected>,
}

/// Reads only the metadata.
pub fn read_metadata(path: &Path) -> Result<Metadata> {
    metadata(&mut open(path)?)
}

/// Reads a case.
pub fn read_case(path: &Path) -> Result<Case> {
    let archive = &mut open(path)?;
    let metadata = metadata(archive)?;
    let mut arguments = Vec::new();
    for (k, &element_type) in metadata.feeds.iter().enumerate() {
        arguments.push(with_type(archive.require(&format!("feed/{k}"))?, element_type)?);
    }
    for (k, &element_type) in metadata.variables.iter().enumerate() {
        arguments.push(with_type(archive.require(&format!("var_in/{k}"))?, element_type)?);
    }
    let mut expected = Vec::new();
    for (k, (element_type, sizes)) in metadata.fetches.iter().enumerate() {
        let mut answers = Vec::new();
        for source in ["fetch_tf", "fetch_xla"] {
            if let Some(answer) = archive.get(&format!("{source}/{k}"))? {
                answers.push(with_type(answer, *element_type)?);
            }
        }
        let shape = ArrayShape::new(*element_type, sizes);
        expected.push(Expected { name: format!("fetch {k}"), shape, answers });
    }
    for (k, &element_type) in metadata.variables.iter().enumerate() {
        if let Some(answer) = archive.get(&format!("var_out/{k}"))? {
            let answer = with_type(answer, element_type)?;
            let shape = answer.array_shape().clone();
            let name = format!("variable {k}");
            expected.push(Expected { name, shape, answers: vec![answer] });
        }
    }
    if let Some(without) = expected.iter().find(|e| e.answers.is_empty()) {
        return Err(Error::invalid(format!("no recorded answer for {}", without.name)));
    }
    let graph = archive.require_bytes("graph.pb")?;
    let config = archive.require_bytes("config.pbtxt")?;
    Ok(Case { metadata, graph, config, arguments, expected })
}

fn open(path: &Path) -> Result<Archive> {
    let data =
        std::fs::read(path).map_err(|e| Error::invalid(format!("cannot read {}: {e}", path.display())))?;
    Archive::open(data.into(), MEMBER_LIMIT)
}

fn metadata(archive: &mut Archive) -> Result<Metadata> {
    let text = archive.require_bytes("meta.json")?;
    let json: Value = serde_json::from_slice(&text)
        .map_err(|e| Error::invalid(format!("meta.json is not valid JSON: {e}")))?;
    parse_metadata(&json).ok_or_else(|| Error::invalid("meta.json has a missing field or an unknown value"))
}

fn parse_metadata(json: &Value) -> Option<Metadata> {
    let ops = json["ops"].as_object()?.iter().map(|(op, count)| Some((op.clone(), count.as_u64()?)));
    let types = |key: &str| -> Option<Vec<PrimitiveType>> {
        json[key].as_array()?.iter().map(|tensor| type_of_name(tensor["dtype"].as_str()?)).collect()
    };
    let fetch = |tensor: &Value| {
        let sizes = tensor["shape"].as_array()?.iter().map(|size| size.as_i64().filter(|&s| s >= 0));
        Some((type_of_name(tensor["dtype"].as_str()?)?, sizes.collect::<Option<Vec<_>>>()?))
    };
    let dynamic = json["dynamic_output"].as_array()?.iter().map(|k| k.as_u64().map(|k| k as usize));
    Some(Metadata {
        ops: ops.collect::<Option<_>>()?,
        xla_ok: json["xla_ok"].as_bool()?,
        tfcompile_ok: json["tfcompile_ok"].as_bool().unwrap_or(true),
        values: match json["compare"].as_str()? {
            "values" => true,
            "shape" => false,
            _ => return None,
        },
        tolerance: Tolerance { absolute: json["atol"].as_f64()?, relative: json["rtol"].as_f64()? },
        dynamic_output: dynamic.collect::<Option<_>>()?,
        feeds: types("feeds")?,
        fetches: json["fetches"].as_array()?.iter().map(fetch).collect::<Option<_>>()?,
        variables: types("variables")?,
    })
}

/// Returns the element type for a TensorFlow type name. Quantized types map to their integers.
fn type_of_name(name: &str) -> Option<PrimitiveType> {
    use PrimitiveType::*;
    Some(match name {
        "bool" => Pred,
        "int2" => S2,
        "int4" => S4,
        "int8" | "qint8" => S8,
        "int16" | "qint16" => S16,
        "int32" | "qint32" => S32,
        "int64" => S64,
        "uint2" => U2,
        "uint4" => U4,
        "uint8" | "quint8" => U8,
        "uint16" | "quint16" => U16,
        "uint32" => U32,
        "uint64" => U64,
        "float8_e5m2" => F8e5m2,
        "float8_e4m3fn" => F8e4m3fn,
        "float16" | "half" => F16,
        "bfloat16" => Bf16,
        "float32" => F32,
        "float64" => F64,
        "complex64" => C64,
        "complex128" => C128,
        _ => return None,
    })
}

/// Reinterprets stored bits as the type that they represent.
fn with_type(stored: Literal, element_type: PrimitiveType) -> Result<Literal> {
    let shape = stored.array_shape();
    let same_width = shape.element_type.byte_size() == element_type.byte_size();
    let same_class = shape.element_type.is_complex() == element_type.is_complex();
    if !same_width || !same_class {
        let message = format!("an array of {} cannot represent {element_type}", shape.element_type);
        return Err(Error::invalid(message));
    }
    let shape = shape.with_element_type(element_type);
    Ok(Literal::from_bytes(shape, stored.bytes().clone()).expect("both types have the same width"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json() -> Value {
        serde_json::json!({
            "ops": {"Where": 1, "Cast": 2}, "xla_ok": true, "compare": "values", "atol": 0.5, "rtol": 0.25,
            "dynamic_output": [0], "feeds": [{"dtype": "bfloat16", "shape": [2]}],
            "fetches": [{"dtype": "int64", "shape": [3, 2]}], "variables": []
        })
    }

    #[test]
    fn metadata_is_read() {
        let metadata = parse_metadata(&json()).unwrap();
        assert_eq!(metadata.ops.keys().collect::<Vec<_>>(), ["Cast", "Where"]);
        assert_eq!(metadata.fetches, [(PrimitiveType::S64, vec![3, 2])]);
        assert_eq!(metadata.feeds, [PrimitiveType::Bf16]);
        assert_eq!(metadata.dynamic_output, [0]);
        assert!(metadata.values && metadata.xla_ok);
    }

    #[test]
    fn unknown_types_and_negative_sizes_are_refused() {
        let mut wrong = json();
        wrong["feeds"][0]["dtype"] = "string".into();
        assert!(parse_metadata(&wrong).is_none());
        let mut wrong = json();
        wrong["fetches"][0]["shape"] = serde_json::json!([-1]);
        assert!(parse_metadata(&wrong).is_none());
    }

    #[test]
    fn bfloat16_is_stored_as_its_bits() {
        let stored = Literal::from_elements(&[2], &[0x3f80u16, 0xc000]);
        let read = with_type(stored.clone(), PrimitiveType::Bf16).unwrap();
        let values: Vec<_> = read.scalars().collect();
        assert_eq!(values, [shape::Scalar::Float(1.0), shape::Scalar::Float(-2.0)]);
        assert!(with_type(stored, PrimitiveType::F32).is_err());
    }
}
