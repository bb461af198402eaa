//! Random bits of a device, run by the simulator and compared with the evaluator.

use crate::device_reductions::check_arguments;
use crate::harness::Tolerance;
use shape::{ArrayShape, Literal, PrimitiveType};

fn check(algorithm: &str, state: &[u64], data: &str) {
    let length = state.len();
    let text = format!(
        "HloModule m\nENTRY main {{\n  s = u64[{length}] parameter(0)\n  \
         ROOT r = (u64[{length}], {data}) rng-bit-generator(s), algorithm={algorithm}\n}}\n"
    );
    let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let bytes: Vec<u8> = state.iter().flat_map(|word| word.to_le_bytes()).collect();
    let shape = ArrayShape::new(PrimitiveType::U64, &[length as i64]);
    let state = Literal::from_bytes(shape, bytes.into()).expect("as many bytes as words");
    check_arguments(&module, &module, &[state], Tolerance::Exact, "random bits");
}

#[test]
fn philox_has_a_thread_for_each_block() {
    // The low word of the counter overflows within the first blocks.
    let state = [0x0123_4567_89AB_CDEF, u64::MAX - 2, 41];
    for data in ["u32[400]", "u32[7,3]", "u32[3]", "u64[9]", "u64[300]", "u8[11]", "u16[4,9]", "u32[0]"] {
        check("rng_philox", &state, data);
    }
    check("rng_philox", &state[..2], "u32[50]");
}

#[test]
fn three_fry_has_a_thread_for_each_pair() {
    let state = [0x0123_4567_89AB_CDEF, u64::MAX - 2];
    for data in ["u32[400]", "u32[7,3]", "u32[7,4,3]", "u32[5,7,3]", "u32[]", "u64[9]", "u64[4,5]"] {
        check("rng_three_fry", &state, data);
    }
}
