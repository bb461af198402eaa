//! `STABLEHLO_RNG_BIT_GENERATOR`: counter-based random numbers (Salmon et al., 2011), with the
//! words of each counter in order.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use composite::{Expression, Function};
use hlo::InstructionId;
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[rule_many("TFLiteStablehloRngBitGenerator", random_bits)];

/// The low and the high half of numbers of 64 bits.
fn halves(x: Expression<'_>) -> [Expression<'_>; 2] {
    [x.convert(PrimitiveType::U32), (x >> 32.0).convert(PrimitiveType::U32)]
}

/// Four words for each counter (`Philox4x32`). The last two words of the counters are `tail`.
fn philox<'f>(
    key: [Expression<'f>; 2],
    counters: [Expression<'f>; 2],
    tail: [Expression<'f>; 2],
) -> Vec<Expression<'f>> {
    const FACTORS: [f64; 2] = [3_528_531_795.0, 3_449_720_151.0];
    const STEPS: [f64; 2] = [2_654_435_769.0, 3_144_134_277.0];
    let product = |x: Expression<'f>, factor: f64| halves(x.convert(PrimitiveType::U64) * factor);
    let [mut first, mut second] = key;
    let mut words = [counters[0], counters[1], tail[0], tail[1]];
    for _ in 0..10 {
        let ([low_0, high_0], [low_1, high_1]) =
            (product(words[0], FACTORS[0]), product(words[2], FACTORS[1]));
        words = [high_1 ^ words[1] ^ first, low_1, high_0 ^ words[3] ^ second, low_0];
        (first, second) = (first + STEPS[0], second + STEPS[1]);
    }
    words.to_vec()
}

/// Two words for each counter (`Threefry2x32`).
fn three_fry<'f>(key: [Expression<'f>; 2], counters: [Expression<'f>; 2]) -> Vec<Expression<'f>> {
    const PARITY: f64 = 466_688_986.0;
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let rotated = |x: Expression<'f>, bits: u32| (x << f64::from(bits)) | (x >> f64::from(32 - bits));
    let keys = [key[0], key[1], key[0] ^ key[1] ^ PARITY];
    let [mut x, mut y] = [counters[0] + keys[0], counters[1] + keys[1]];
    for round in 0..5 {
        for bits in ROTATIONS[round % 2] {
            x = x + y;
            y = rotated(y, bits) ^ x;
        }
        x = x + keys[(round + 1) % 3];
        y = y + keys[(round + 2) % 3] + (round + 1) as f64;
    }
    vec![x, y]
}

/// The words of all counters, `[n]` each, as one vector.
fn in_order<'f>(function: &'f Function, words: &[Expression<'f>], count: i64) -> Expression<'f> {
    let columns: Vec<Expression<'f>> = words.iter().map(|word| word.reshape(&[count, 1])).collect();
    function.concatenate(&columns, 1).reshape(&[count * words.len() as i64])
}

/// The operand is the state: a key, a counter, and for Philox perhaps two more words of it.
fn random_bits(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    const THREE_FRY: i64 = 2;
    let state = cx.input(0)?;
    let algorithm = cx.attributes().int_or("algorithm", 0)?;
    if !(0..=2).contains(&algorithm) {
        return Err(Error::unsupported(format!("algorithm {algorithm} of random numbers is not supported")));
    }
    let is_three_fry = algorithm == THREE_FRY;
    let length = match cx.sizes(state)[..] {
        [2] => 2,
        [3] if !is_three_fry => 3,
        ref sizes => return Err(cx.invalid(format!("the state has shape {}", bounded::list(sizes)))),
    };
    cx.check(cx.element_type(state) == PrimitiveType::U64, || "the state is not of uint64".to_owned())?;
    let sizes = cx.attributes().ints("output_sizes")?.to_vec();
    let bits = cx.output_type(1)?;
    let is_wide = bits.byte_size() == 8;
    cx.check(matches!(bits.byte_size(), 4 | 8) && bits.is_integer(), || format!("{bits} is not supported"))?;
    let words = sizes.iter().product::<i64>() * if is_wide { 2 } else { 1 };
    let of_counter = if is_three_fry { 2 } else { 4 };
    let count = (words + of_counter - 1) / of_counter;
    cx.composite(&[state], |function, values| {
        let word = |k: i64| values[0].slice_in(0, k, k + 1).reshape(&[]);
        let spread = |x: Expression<'_>| function.expression(x.id()).broadcast(&[count], &[]);
        let key = halves(spread(word(0)));
        let counters = spread(word(1)) + function.iota(PrimitiveType::U64, &[count], 0);
        let words_of_counters = if is_three_fry {
            three_fry(key, halves(counters))
        } else {
            philox(key, halves(counters), halves(spread(word(if length == 3 { 2 } else { 0 }))))
        };
        let all = in_order(function, &words_of_counters, count).slice_in(0, 0, words);
        let numbers = if is_wide {
            let pairs = all.reshape(&[words / 2, 2]).convert(PrimitiveType::U64);
            let part = |k: i64| pairs.slice_in(1, k, k + 1).reshape(&[words / 2]);
            (part(0) | (part(1) << 32.0)).bitcast_convert(bits)
        } else {
            all.bitcast_convert(bits)
        };
        let step = function.scalar(PrimitiveType::U64, count as f64);
        let mut after = vec![word(0), word(1) + step];
        if length == 3 {
            after.push(word(2));
        }
        let after: Vec<Expression<'_>> = after.into_iter().map(|word| word.reshape(&[1])).collect();
        vec![function.concatenate(&after, 0), numbers.reshape(&sizes)]
    })
}
