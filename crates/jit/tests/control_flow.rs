//! Compiles and runs loops, branches, and calls of the loop-nest language and compares them with
//! Rust's own loops.

mod harness;

use harness::{bytes_of, entry_program, run, targets, values_of};
use nest::{
    BinaryOp, ConvertOp, FunctionBuilder, Linkage, PointerFacts, Predicate, Program, RegionBuilder as _,
    ScalarType, Type, ValueId,
};

const I64: Type = Type::I64;

fn load_index(b: &mut FunctionBuilder, array: ValueId, i: i64) -> ValueId {
    let address = b.offset_bytes(array, 8 * i);
    b.load(I64, address, 8)
}

fn store_index(b: &mut FunctionBuilder, value: ValueId, array: ValueId, i: i64) {
    let address = b.offset_bytes(array, 8 * i);
    b.store(value, address, 8);
}

/// `out[0]` is the sum of the indices, `out[1]` the number of iterations, for bounds known only at
/// run time.
fn counting_loop(step: i64) -> Program {
    entry_program(1, 1, |b, args, outs| {
        let (begin, end) = (load_index(b, args[0], 0), load_index(b, args[0], 1));
        let zero = b.index(0);
        let results = b.for_carrying(begin, end, step, &[zero, zero], |b, i, carried| {
            Ok(vec![b.add(carried[0], i), b.add_constant(carried[1], 1)])
        })?;
        store_index(b, results[0], outs[0], 0);
        store_index(b, results[1], outs[0], 1);
        Ok(())
    })
}

#[test]
fn loops_with_runtime_bounds() {
    for target in targets() {
        for step in [1, 3, 16] {
            let program = counting_loop(step);
            for (begin, end) in [(0, 10), (5, 5), (7, 3), (-4, 30), (0, 1), (2, 17), (0, 16)] {
                let out = run(&program, &target, &[&bytes_of(&[begin, end])], &[16]);
                let visited: Vec<i64> = (begin..end).step_by(step as usize).collect();
                let expected = [visited.iter().sum(), visited.len() as i64];
                assert_eq!(values_of::<i64>(&out[0]), expected, "{begin}..{end} step {step}");
            }
        }
    }
}

#[test]
fn loops_with_constant_bounds() {
    for (begin, end, step) in [(0, 10, 1), (5, 5, 1), (7, 3, 2), (2, 3, 1), (2, 4, 5), (-4, 30, 3)] {
        let program = entry_program(0, 1, |b, _, outs| {
            let (from, to, zero) = (b.index(begin), b.index(end), b.index(0));
            let results = b.for_carrying(from, to, step, &[zero, from], |b, i, carried| {
                Ok(vec![b.add(carried[0], i), i])
            })?;
            store_index(b, results[0], outs[0], 0);
            store_index(b, results[1], outs[0], 1);
            Ok(())
        });
        let visited: Vec<i64> = (begin..end).step_by(step as usize).collect();
        let expected = [visited.iter().sum(), visited.last().copied().unwrap_or(begin)];
        for target in targets() {
            let out = run(&program, &target, &[], &[16]);
            assert_eq!(values_of::<i64>(&out[0]), expected, "{begin}..{end} step {step}");
        }
    }
}

/// Swapped carried values reveal whether phis read each other's old values.
#[test]
fn carried_values_are_replaced_simultaneously() {
    let program = entry_program(1, 1, |b, args, outs| {
        let (zero, end) = (b.index(0), load_index(b, args[0], 0));
        let one = b.index(1);
        let fibonacci =
            b.for_carrying(zero, end, 1, &[zero, one], |b, _, f| Ok(vec![f[1], b.add(f[0], f[1])]))?;
        store_index(b, fibonacci[0], outs[0], 0);
        Ok(())
    });
    for (n, expected) in [(0i64, 0), (1, 1), (2, 1), (10, 55), (50, 12_586_269_025)] {
        let out = run(&program, &targets()[0], &[&bytes_of(&[n])], &[8]);
        assert_eq!(values_of::<i64>(&out[0]), [expected], "fibonacci({n})");
    }
}

#[test]
fn while_loops_test_before_they_run() {
    // Collatz: the number of steps from n to 1.
    let program = entry_program(1, 1, |b, args, outs| {
        let (n, zero) = (load_index(b, args[0], 0), b.index(0));
        let results = b.while_carrying(
            &[n, zero],
            |b, c| {
                let one = b.index(1);
                Ok(b.compare(Predicate::NotEqual, c[0], one))
            },
            |b, c| {
                let one = b.index(1);
                let odd = b.and(c[0], one);
                let is_odd = b.compare(Predicate::Equal, odd, one);
                let next = b.if_else(
                    is_odd,
                    |b| {
                        let three = b.mul_constant(c[0], 3);
                        Ok(vec![b.add_constant(three, 1)])
                    },
                    |b| Ok(vec![b.binary(BinaryOp::ShiftRightLogical, c[0], one)]),
                )?;
                Ok(vec![next[0], b.add_constant(c[1], 1)])
            },
        )?;
        store_index(b, results[0], outs[0], 0);
        store_index(b, results[1], outs[0], 1);
        Ok(())
    });
    for (n, steps) in [(1i64, 0), (2, 1), (6, 8), (27, 111)] {
        for target in targets() {
            let out = run(&program, &target, &[&bytes_of(&[n])], &[16]);
            assert_eq!(values_of::<i64>(&out[0]), [1, steps], "from {n}");
        }
    }
}

#[test]
fn nested_loops_and_branches() {
    // out[i * 5 + j] = j < i ? i * 10 + j : -(i + j), followed by the number of values of the first
    // kind.
    let program = entry_program(0, 1, |b, _, outs| {
        let (zero, four, five) = (b.index(0), b.index(4), b.index(5));
        let count = b.for_carrying(zero, four, 1, &[zero], |b, i, outer| {
            b.for_carrying(zero, five, 1, &[outer[0]], |b, j, inner| {
                let below = b.compare(Predicate::Less, j, i);
                let row = b.mul_constant(i, 5);
                let index = b.add(row, j);
                let address = b.offset(outs[0], index, 8);
                b.if_else(
                    below,
                    |b| {
                        let tens = b.mul_constant(i, 10);
                        let value = b.add(tens, j);
                        b.store(value, address, 8);
                        Ok(vec![b.add_constant(inner[0], 1)])
                    },
                    |b| {
                        let sum = b.add(i, j);
                        let value = b.sub(zero, sum);
                        b.store(value, address, 8);
                        Ok(vec![inner[0]])
                    },
                )
            })
        })?;
        store_index(b, count[0], outs[0], 20);
        Ok(())
    });
    let mut expected = Vec::new();
    for i in 0..4 {
        for j in 0..5 {
            expected.push(if j < i { i * 10 + j } else { -(i + j) });
        }
    }
    expected.push(expected.iter().filter(|&&v| v > 0).count() as i64);
    for target in targets() {
        let out = run(&program, &target, &[], &[21 * 8]);
        assert_eq!(values_of::<i64>(&out[0]), expected);
    }
}

/// Reduces with a vector of partial sums, then lane by lane, like lowered reductions.
#[test]
fn loops_carry_vectors() {
    let values: Vec<f32> = (0..48).map(|i| i as f32 * 0.5).collect();
    for lanes in [2, 4, 8, 16] {
        let program = entry_program(1, 1, |b, args, outs| {
            let ty = Type::vector(ScalarType::F32, lanes);
            let (zero, end, start) = (b.index(0), b.index(48), b.float(ty, 0.0));
            let sums = b.for_carrying(zero, end, i64::from(lanes), &[start], |b, i, sums| {
                let address = b.offset(args[0], i, 4);
                let x = b.load(ty, address, 4);
                Ok(vec![b.add(sums[0], x)])
            })?;
            let mut sum = b.extract(sums[0], 0);
            for lane in 1..lanes {
                let x = b.extract(sums[0], lane);
                sum = b.add(sum, x);
            }
            b.store(sum, outs[0], 4);
            Ok(())
        });
        for target in targets() {
            let out = run(&program, &target, &[&bytes_of(&values)], &[4]);
            assert_eq!(values_of::<f32>(&out[0]), [564.0]);
        }
    }
}

/// A callee with vector, scalar, and address parameters. Linkages differ only in inlining.
#[test]
fn calls() {
    for linkage in [Linkage::Internal, Linkage::Inline] {
        let mut program = Program::default();
        let vector = Type::vector(ScalarType::F32, 8);
        let mut callee = FunctionBuilder::new("model/scale:0", linkage);
        let facts = PointerFacts { no_alias: true, read_only: true, alignment: 4 };
        let from = callee.parameter("from", Type::PTR, facts);
        let to = callee.parameter("to", Type::PTR, PointerFacts { read_only: false, ..facts });
        let factor = callee.parameter("factor", vector, PointerFacts::default());
        let index = callee.parameter("index", I64, PointerFacts::default());
        let source = callee.offset(from, index, 4);
        let x = callee.load(vector, source, 4);
        let y = callee.mul(x, factor);
        let target = callee.offset(to, index, 4);
        callee.store(y, target, 4);
        let callee = program.functions.push(callee.finish());

        let entry = entry_program(1, 1, |b, args, outs| {
            let factor = b.float(vector, 3.0);
            let (zero, end) = (b.index(0), b.index(24));
            b.for_each(zero, end, 8, |b, i| {
                b.call(callee, vec![args[0], outs[0], factor, i]);
                Ok(())
            })
        });
        program.functions.push(entry.functions.values().next().expect("the entry").clone());
        let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
        for target in targets() {
            let out = run(&program, &target, &[&bytes_of(&values)], &[96]);
            assert_eq!(values_of::<f32>(&out[0]), values.iter().map(|v| v * 3.0).collect::<Vec<_>>());
        }
    }
}

/// The addresses of two functions differ, and an address survives conversion to an integer and
/// back.
#[test]
fn function_addresses() {
    let mut program = Program::default();
    let mut ids = Vec::new();
    for constant in [1, 2] {
        let mut b = FunctionBuilder::new(format!("f{constant}"), Linkage::Internal);
        let out = b.parameter("out", Type::PTR, PointerFacts::default());
        let value = b.index(constant);
        b.store(value, out, 8);
        ids.push(program.functions.push(b.finish()));
    }
    let entry = entry_program(0, 1, |b, _, outs| {
        let address = |b: &mut FunctionBuilder, id| b.value(Type::PTR, nest::Expression::FunctionAddress(id));
        let (f, g, again) = (address(b, ids[0]), address(b, ids[1]), address(b, ids[0]));
        let as_integer = b.bitcast(f, I64);
        let back = b.bitcast(as_integer, Type::PTR);
        for (k, (x, y)) in [(f, g), (back, again)].into_iter().enumerate() {
            let equal = b.compare(Predicate::Equal, x, y);
            let equal = b.convert(ConvertOp::ZeroExtend, equal, ScalarType::I64);
            store_index(b, equal, outs[0], k as i64);
        }
        Ok(())
    });
    program.functions.push(entry.functions.values().next().expect("the entry").clone());
    let out = run(&program, &targets()[0], &[], &[16]);
    assert_eq!(values_of::<i64>(&out[0]), [0, 1]);
}
