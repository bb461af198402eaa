//! Random bits: Philox 4x32-10 and ThreeFry 2x32-20 (Salmon et al., "Parallel random numbers: as
//! easy as 1, 2, 3", SC 2011), in the element order of XLA. Also the random state of an instance.

use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::context::parameters::Memory;
use crate::element::Element;
use crate::index::{Index, Position};
use crate::movement::update::number_of;
use hlo::{Op, RandomAlgorithm};
use nest::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, Type, UnaryOp, ValueId};
use shape::PrimitiveType;
use support::{Error, Result};

const I32: Type = Type::scalar(ScalarType::I32);

/// Returns the old value of the persistent 128-bit counter, and adds `delta` to it.
pub(crate) fn emit_state(cx: &mut KernelContext<'_>) -> Result<()> {
    let Op::RngGetAndUpdateState { delta } = cx.fusion().root_op() else {
        return Err(Error::internal("expected rng-get-and-update-state as the root"));
    };
    let state = cx.scratch().ok_or_else(|| Error::internal("missing memory for the random state"))?;
    let result = cx.results()[0].pointer;
    let high_at = |b: &mut FunctionBuilder, pointer: ValueId| b.offset_bytes(pointer, 8);
    let state_high = high_at(cx, state);
    let (low, high) = (cx.load(Type::I64, state, 8), cx.load(Type::I64, state_high, 8));
    let result_high = high_at(cx, result);
    cx.store(low, result, 8);
    cx.store(high, result_high, 8);
    let amount = cx.index(*delta);
    let (next_low, next_high) = add_128(cx, low, high, amount);
    let next_high = if *delta < 0 { cx.add_constant(next_high, -1) } else { next_high };
    cx.store(next_low, state, 8);
    cx.store(next_high, state_high, 8);
    Ok(())
}

/// Adds an unsigned 64-bit number to a 128-bit one, given by its halves.
fn add_128(b: &mut FunctionBuilder, low: ValueId, high: ValueId, amount: ValueId) -> (ValueId, ValueId) {
    let sum = b.add(low, amount);
    let carries = b.compare(Predicate::Below, sum, low);
    let next = b.add_constant(high, 1);
    (sum, b.select(carries, next, high))
}

/// Returns the low and the high half.
fn halves(b: &mut FunctionBuilder, value: ValueId) -> [ValueId; 2] {
    let low = b.convert(ConvertOp::Truncate, value, ScalarType::I32);
    let distance = b.index(32);
    let high = b.binary(BinaryOp::ShiftRightLogical, value, distance);
    [low, b.convert(ConvertOp::Truncate, high, ScalarType::I32)]
}

fn joined(b: &mut FunctionBuilder, [low, high]: [ValueId; 2]) -> ValueId {
    let low = b.convert(ConvertOp::ZeroExtend, low, ScalarType::I64);
    let high = b.convert(ConvertOp::ZeroExtend, high, ScalarType::I64);
    let distance = b.index(32);
    let high = b.binary(BinaryOp::ShiftLeft, high, distance);
    b.or(low, high)
}

/// Writes random bits for a state of key and counter, and the state with the counter advanced.
pub(crate) fn emit_bits(cx: &mut KernelContext<'_>) -> Result<()> {
    let Op::RngBitGenerator { algorithm } = cx.fusion().root_op() else {
        return Err(Error::internal("expected rng-bit-generator as the root"));
    };
    let [next_state, data] = cx.results() else {
        return Err(Error::internal("expected a state and bits as the results of rng-bit-generator"));
    };
    let (next_state, data) = (next_state.clone(), data.clone());
    let state = cx.operand(number_of(cx, cx.fusion().body[cx.fusion().root].operands()[0])?)?.clone();
    let length = state.shape.element_count();
    if state.shape.element_type != PrimitiveType::U64 || !(2..=3).contains(&length) {
        return Err(Error::unsupported(format!(
            "a random state of type {}; expected u64[2] or u64[3]",
            state.shape
        )));
    }
    let mut words = Vec::with_capacity(3);
    for i in 0..length {
        words.push(cx.load_at(&state, &Position::Linear(Index::constant(i)))?.real());
    }
    let is_philox = *algorithm != RandomAlgorithm::ThreeFry;
    if !is_philox && length != 2 {
        return Err(Error::unsupported("ThreeFry with a state other than u64[2]"));
    }
    // A state of two words uses the key twice: it is also the high word of the counter.
    let low = words[1];
    let high = if length == 3 { words[2] } else { words[0] };
    let key = halves(cx, words[0]);
    let next = |cx: &mut KernelContext<'_>, blocks: i64| {
        let amount = cx.index(blocks);
        let (next_low, next_high) = add_128(cx, low, high, amount);
        let next = [words[0], next_low, next_high].into_iter().take(length as usize);
        next.enumerate().try_for_each(|(i, word)| {
            cx.store_at(&next_state, &Position::Linear(Index::constant(i as i64)), Element::Real(word))
        })
    };
    if cx.tasks().is_none() {
        let blocks = if is_philox {
            philox_bits(cx, &data, key, low, high)?
        } else {
            three_fry_bits(cx, &data, key, low)?
        };
        return next(cx, blocks);
    }
    let blocks = cx.plan().tasks;
    cx.for_tasks(|cx, task| {
        if is_philox {
            let rest = data.shape.element_count() % philox_elements(&data);
            let is_last = cx.contains(&task, blocks - 1, blocks)?;
            match is_last {
                Containment::When(is_last) if rest > 0 => {
                    cx.when(is_last, |cx| philox_block(cx, &data, key, [low, high], &task, rest))?;
                    let is_whole = cx.unary(UnaryOp::Not, is_last);
                    let all = philox_elements(&data);
                    cx.when(is_whole, |cx| philox_block(cx, &data, key, [low, high], &task, all))?;
                }
                _ => philox_block(cx, &data, key, [low, high], &task, philox_elements(&data))?,
            }
        } else {
            three_fry_pair(cx, &data, key, low, &task)?;
        }
        match cx.contains(&task, 0, 1)? {
            Containment::Never => Ok(()),
            Containment::Always => next(cx, blocks),
            Containment::When(is_first) => cx.when(is_first, |cx| next(cx, blocks)),
        }
    })
}

/// Writes a word, or its low bits, as an element.
fn store_word(cx: &mut KernelContext<'_>, data: &Memory, at: Index, word: ValueId) -> Result<()> {
    let element_type = data.shape.element_type;
    let from = if cx.ty(word) == Type::I64 { PrimitiveType::U64 } else { PrimitiveType::U32 };
    let element = crate::elemental::convert(cx, from, element_type, Element::Real(word))?;
    cx.store_at(data, &Position::Linear(at), element)
}

/// Number of elements that a block of four words fills.
fn philox_elements(data: &Memory) -> i64 {
    if data.shape.element_type.bit_width() == 64 { 2 } else { 4 }
}

/// Writes blocks of four words in order and returns their number. The counter counts blocks.
fn philox_bits(
    cx: &mut KernelContext<'_>,
    data: &Memory,
    key: [ValueId; 2],
    low: ValueId,
    high: ValueId,
) -> Result<i64> {
    let (count, per_block) = (data.shape.element_count(), philox_elements(data));
    let (full, rest) = (count / per_block, count % per_block);
    cx.for_range(0, full, 1, |cx, number| philox_block(cx, data, key, [low, high], &number, per_block))?;
    if rest > 0 {
        philox_block(cx, data, key, [low, high], &Index::constant(full), rest)?;
    }
    Ok(full + i64::from(rest > 0))
}

/// Writes the first elements of a block.
fn philox_block(
    cx: &mut KernelContext<'_>,
    data: &Memory,
    key: [ValueId; 2],
    counter: [ValueId; 2],
    number: &Index,
    elements: i64,
) -> Result<()> {
    let amount = cx.scalar_value(number)?;
    let (low, high) = add_128(cx, counter[0], counter[1], amount);
    let ([w, x], [y, z]) = (halves(cx, low), halves(cx, high));
    let [w, x, y, z] = philox(cx, [w, x, y, z], key);
    let is_wide = philox_elements(data) == 2;
    let words = if is_wide { vec![joined(cx, [w, x]), joined(cx, [y, z])] } else { vec![w, x, y, z] };
    for (k, word) in words.into_iter().enumerate().take(elements as usize) {
        store_word(cx, data, number.times(philox_elements(data)).plus_constant(k as i64), word)?;
    }
    Ok(())
}

/// Ten rounds of Philox 4x32.
fn philox(b: &mut FunctionBuilder, counter: [ValueId; 4], key: [ValueId; 2]) -> [ValueId; 4] {
    let ([mut w, mut x, mut y, mut z], [mut key0, mut key1]) = (counter, key);
    for _ in 0..10 {
        let [low0, high0] = multiply(b, w, 0xD251_1F53);
        let [low1, high1] = multiply(b, y, 0xCD9E_8D57);
        let mixed0 = b.binary(BinaryOp::Xor, high1, x);
        let mixed1 = b.binary(BinaryOp::Xor, high0, z);
        w = b.binary(BinaryOp::Xor, mixed0, key0);
        x = low1;
        y = b.binary(BinaryOp::Xor, mixed1, key1);
        z = low0;
        key0 = b.add_constant(key0, word_constant(0x9E37_79B9));
        key1 = b.add_constant(key1, word_constant(0xBB67_AE85));
    }
    [w, x, y, z]
}

/// Converts a 32-bit constant to the form of integer constants: sign extended.
const fn word_constant(value: u32) -> i64 {
    value as i32 as i64
}

/// Returns the low and the high word of a product.
fn multiply(b: &mut FunctionBuilder, x: ValueId, factor: u32) -> [ValueId; 2] {
    let wide = b.convert(ConvertOp::ZeroExtend, x, ScalarType::I64);
    let product = b.mul_constant(wide, i64::from(factor));
    halves(b, product)
}

/// Returns the pair of random words for a counter.
fn three_fry_words(
    cx: &mut KernelContext<'_>,
    key: [ValueId; 2],
    counter: ValueId,
    number: &Index,
) -> Result<[ValueId; 2]> {
    let number = cx.scalar_value(number)?;
    let sum = cx.add(counter, number);
    let input = halves(cx, sum);
    Ok(three_fry(cx, input, key))
}

/// Writes random words to an array and returns the number of counters used. Words come in pairs,
/// which are neighbors along one dimension. A 64-bit element is a pair.
fn three_fry_bits(
    cx: &mut KernelContext<'_>,
    data: &Memory,
    key: [ValueId; 2],
    counter: ValueId,
) -> Result<i64> {
    if data.shape.element_type.bit_width() == 64 {
        let count = data.shape.element_count();
        cx.for_range(0, count, 1, |cx, number| three_fry_pair(cx, data, key, counter, &number))?;
        return Ok(count);
    }
    let [outer, size, inner] = plan::paired_sizes(&data.shape.sizes());
    let half = (size + 1) / 2;
    let both = |cx: &mut KernelContext<'_>, o: &Index, h: &Index, words: usize| {
        cx.for_range(0, inner, 1, |cx, i| {
            let number = o.times(half).plus(h).times(inner).plus(&i);
            let at = o.times(size).plus(&h.times(2)).times(inner).plus(&i);
            let pair = three_fry_words(cx, key, counter, &number)?;
            for (k, word) in pair.into_iter().enumerate().take(words) {
                store_word(cx, data, at.plus_constant(k as i64 * inner), word)?;
            }
            Ok(())
        })
    };
    cx.for_range(0, outer, 1, |cx, o| {
        cx.for_range(0, size / 2, 1, |cx, h| both(cx, &o, &h, 2))?;
        if size % 2 == 1 { both(cx, &o, &Index::constant(half - 1), 1) } else { Ok(()) }
    })?;
    Ok(outer * half * inner)
}

/// Writes the words of one counter.
fn three_fry_pair(
    cx: &mut KernelContext<'_>,
    data: &Memory,
    key: [ValueId; 2],
    counter: ValueId,
    number: &Index,
) -> Result<()> {
    let words = three_fry_words(cx, key, counter, number)?;
    if data.shape.element_type.bit_width() == 64 {
        let word = joined(cx, words);
        return store_word(cx, data, number.clone(), word);
    }
    let [_, size, inner] = plan::paired_sizes(&data.shape.sizes());
    let (row, i) = cx.div_rem(number, inner)?;
    let (o, h) = cx.div_rem(&row, (size + 1) / 2)?;
    let at = o.times(size).plus(&h.times(2)).times(inner).plus(&i);
    store_word(cx, data, at.clone(), words[0])?;
    let store_second = |cx: &mut KernelContext<'_>| store_word(cx, data, at.plus_constant(inner), words[1]);
    match cx.contains(&h, 0, size / 2)? {
        Containment::Always => store_second(cx),
        Containment::Never => Ok(()),
        Containment::When(has_second) => cx.when(has_second, store_second),
    }
}

/// Twenty rounds of ThreeFry 2x32.
fn three_fry(b: &mut FunctionBuilder, [c0, c1]: [ValueId; 2], [k0, k1]: [ValueId; 2]) -> [ValueId; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let parity = b.integer(I32, word_constant(0x1BD1_1BDA));
    let mixed = b.binary(BinaryOp::Xor, k0, k1);
    let keys = [k0, k1, b.binary(BinaryOp::Xor, mixed, parity)];
    let (mut x0, mut x1) = (b.add(c0, keys[0]), b.add(c1, keys[1]));
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            x0 = b.add(x0, x1);
            let rotated = rotate_left(b, x1, rotation);
            x1 = b.binary(BinaryOp::Xor, rotated, x0);
        }
        x0 = b.add(x0, keys[(group + 1) % 3]);
        x1 = b.add(x1, keys[(group + 2) % 3]);
        x1 = b.add_constant(x1, group as i64 + 1);
    }
    [x0, x1]
}

fn rotate_left(b: &mut FunctionBuilder, x: ValueId, distance: u32) -> ValueId {
    let (left, right) = (b.integer(I32, distance.into()), b.integer(I32, (32 - distance).into()));
    let high = b.binary(BinaryOp::ShiftLeft, x, left);
    let low = b.binary(BinaryOp::ShiftRightLogical, x, right);
    b.or(high, low)
}
