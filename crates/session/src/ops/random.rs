//! Stateful random ops. They reproduce the numbers of TensorFlow's CPU kernels from the node's
//! seeds and a counter that each run advances.

use super::{Context, Prepared, Rewritten, Variant};
use crate::lock::lock;
use crate::value::Tensor;
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value as Attr;

/// Number of Philox among TensorFlow's algorithms.
const PHILOX: i32 = 1;

/// Advance of the counter per number, as reserved by TensorFlow's kernels.
pub(super) const RESERVED: u128 = 256;

/// Each op with the stateless op that draws the same numbers from a key and a counter.
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
    let values = [("dtype", Attr::Type(dtype.number())), ("Tshape", Attr::Type(shape.number()))];
    let stateless = node.replacement(op, values, node.output_types.clone());
    let mut types = vec![shape, DataType::Uint64, DataType::Uint64, DataType::Int32];
    if is_integer {
        types.extend([dtype, dtype]);
    }
    Ok(Some(Rewritten { variants: vec![Variant { node: stateless, input_types: types }], prepare }))
}

/// Inserts key, counter, and algorithm after the shape, and advances the counter.
fn prepare(cx: &mut Context<'_>) -> Result<Prepared> {
    let sizes = cx.integers(0)?;
    let count = shape::index::element_count(&sizes).filter(|_| sizes.iter().all(|&size| size >= 0));
    let count = count.ok_or_else(|| Error::invalid(format!("invalid shape {sizes:?}")))?;
    let Generator { key, counter } =
        Generator::reserve(cx, u128::from(count.unsigned_abs()).saturating_mul(RESERVED))?;
    let words = [counter as u64, (counter >> 64) as u64];
    let generator =
        [Tensor::from_elements(&[1], &[key])?, Tensor::from_elements(&[2], &words)?, Tensor::scalar(PHILOX)?];
    cx.inputs.splice(1..1, generator.map(Into::into));
    Ok(Prepared::Launch(0))
}

/// Philox with four words and ten rounds: a block of random bits for each value of the counter.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    key: u64,
    counter: u128,
}

impl Generator {
    /// The generator of a node, positioned at `blocks` reserved blocks. The node's next run
    /// continues after them.
    pub(super) fn reserve(cx: &Context<'_>, blocks: u128) -> Result<Self> {
        let attributes = &cx.node.attributes;
        let (mut seed, mut seed2) =
            (attributes.int_or("seed", 0)? as u64, attributes.int_or("seed2", 0)? as u64);
        if seed == 0 && seed2 == 0 {
            (seed, seed2) = (cx.shared.seed, hash(cx.node.name.as_bytes()));
        }
        let counter = cx.shared.resources.counter(&cx.node.name, u128::from(seed2) << 64);
        let mut counter = lock(&counter);
        let start = *counter;
        *counter = start.wrapping_add(blocks);
        Ok(Self { key: seed, counter: start })
    }

    /// The same generator, `blocks` blocks ahead.
    pub(super) fn skipped(&self, blocks: u128) -> Self {
        Self { key: self.key, counter: self.counter.wrapping_add(blocks) }
    }

    /// The next block.
    pub(super) fn block(&mut self) -> [u32; 4] {
        let mut words = [0, 32, 64, 96].map(|bit| (self.counter >> bit) as u32);
        let mut key = [self.key as u32, (self.key >> 32) as u32];
        for _ in 0..10 {
            let even = u64::from(words[0]) * 0xD251_1F53;
            let odd = u64::from(words[2]) * 0xCD9E_8D57;
            let [even_high, odd_high] = [even, odd].map(|product| (product >> 32) as u32);
            words = [odd_high ^ words[1] ^ key[0], odd as u32, even_high ^ words[3] ^ key[1], even as u32];
            key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
        }
        self.counter = self.counter.wrapping_add(1);
        words
    }

    /// The words of all blocks in order.
    pub(super) fn words(mut self) -> impl Iterator<Item = u32> {
        std::iter::repeat_with(move || self.block()).flatten()
    }
}

/// 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of Random123 for `philox4x32_10`.
    #[test]
    fn blocks_match_philox() {
        let block = |key, counter| Generator { key, counter }.block();
        assert_eq!(block(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(block(u64::MAX, u128::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = 0x0370_7344_1319_8a2e_85a3_08d3_243f_6a88_u128;
        assert_eq!(block(0x299f_31d0_a409_3822, pi), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
