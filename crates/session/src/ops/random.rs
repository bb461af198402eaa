//! Random numbers of a node's own: those of TensorFlow's CPU kernels, from the node's seeds and a counter that each run
//! moves on.

use super::{Context, Prepared, Rewritten};
use crate::kernels::Site;
use crate::resources::lock;
use crate::value::Tensor;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::proto::{AttrValue, attr_value::Value as Attr};
use tf::{Attributes, DataType};

/// The number of Philox among TensorFlow's algorithms.
const PHILOX: i32 = 1;

/// How far the counter moves on for each number: as far as TensorFlow's kernels reserve.
const RESERVED: u128 = 256;

/// An op and the stateless one that draws the same numbers from a key and a counter.
const OPS: &[(&str, &str)] = &[
    ("RandomUniform", "StatelessRandomUniformV2"),
    ("RandomUniformInt", "StatelessRandomUniformIntV2"),
    ("RandomStandardNormal", "StatelessRandomNormalV2"),
    ("TruncatedNormal", "StatelessTruncatedNormalV2"),
];

/// The kernel of a node that draws random numbers.
pub(super) fn rewrite(node: &tf::Node) -> Result<Option<Rewritten>> {
    let Some((_, op)) = OPS.iter().find(|(op, _)| *op == node.op) else { return Ok(None) };
    let is_integer = node.op == "RandomUniformInt";
    let dtype = node.attributes.ty(if is_integer { "Tout" } else { "dtype" })?;
    let shape = node.attributes.ty("T")?;
    let attribute = |t: DataType| AttrValue::from(Attr::Type(t.number()));
    let values =
        BTreeMap::from([("dtype".to_owned(), attribute(dtype)), ("Tshape".to_owned(), attribute(shape))]);
    let made = tf::Node {
        op: (*op).to_owned(),
        attributes: Attributes::new(&node.name, op, values),
        ..node.clone()
    };
    let mut types = vec![shape, DataType::Uint64, DataType::Uint64, DataType::Int32];
    if is_integer {
        types.extend([dtype, dtype]);
    }
    Ok(Some(Rewritten { sites: vec![Site::new(&made, &types)?], prepare }))
}

/// Puts key, counter and algorithm behind the shape, and moves the counter on.
fn prepare(cx: &mut Context<'_>) -> Result<Prepared> {
    let attributes = &cx.node.attributes;
    let (mut seed, mut seed2) = (attributes.int_or("seed", 0)? as u64, attributes.int_or("seed2", 0)? as u64);
    if seed == 0 && seed2 == 0 {
        (seed, seed2) = (cx.run.shared.seed, hash(cx.node.name.as_bytes()));
    }
    let sizes = cx.integers(0)?;
    let count = shape::index::element_count(&sizes).filter(|_| sizes.iter().all(|&size| size >= 0));
    let count = count.ok_or_else(|| Error::invalid(format!("the shape {sizes:?} is no shape")))?;
    let counter = cx.run.shared.resources.counter(&cx.node.name, u128::from(seed2) << 64);
    let mut counter = lock(&counter);
    let start = *counter;
    *counter = start.wrapping_add(u128::from(count.unsigned_abs()) * RESERVED);
    drop(counter);
    let words = [start as u64, (start >> 64) as u64];
    let generator = [
        Tensor::from_elements(&[1], &[seed])?,
        Tensor::from_elements(&[2], &words)?,
        Tensor::scalar(PHILOX)?,
    ];
    cx.inputs.splice(1..1, generator.map(Into::into));
    Ok(Prepared::Launch(0))
}

/// FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
