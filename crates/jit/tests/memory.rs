//! Compiles and runs loads, stores, lane operations, and byte blocks.

mod harness;

use codegen::{CodegenOptions, Constants};
use harness::{CONSTANTS, bytes_of, entry_program, field, run, targets, values_of};
use hlo::Interface;
use jit::{AlignedBytes, Executable, Memory};
use nest::{
    ConvertOp, Expression, FunctionBuilder, Linkage, PointerFacts, Predicate, Program, RegionBuilder as _,
    ScalarType, Type,
};
use shape::{ArrayShape, PrimitiveType};

/// `out = a` in the lanes below a count, for every count. Other bytes must not change.
#[test]
fn masks() {
    for scalar in [ScalarType::I8, ScalarType::I16, ScalarType::I32, ScalarType::F32, ScalarType::F64] {
        let size = scalar.byte_size();
        for lanes in [1u32, 2, 4, 8, 16] {
            let program = entry_program(2, 1, |b, args, outs| {
                let ty = Type::vector(scalar, lanes);
                let count = b.load(Type::scalar(ScalarType::I32), args[1], 4);
                let count = b.splat(count, lanes);
                let iota = b.iota(ScalarType::I32, lanes);
                let mask = b.compare(Predicate::Less, iota, count);
                let x = b.load_masked(ty, args[0], size as u32, mask);
                b.store_masked(x, outs[0], size as u32, mask);
                // Store all lanes to verify that masked-out lanes are zero.
                let second_half = b.offset_bytes(outs[0], 16 * size as i64);
                b.store(x, second_half, size as u32);
                Ok(())
            });
            let values: Vec<u8> = (1..=lanes as usize * size).map(|i| i as u8).collect();
            for target in targets() {
                for count in 0..=lanes as i32 {
                    let out = run(&program, &target, &[&values, &bytes_of(&[count])], &[32 * size]);
                    let active_bytes = count as usize * size;
                    let mut expected = vec![0; 32 * size];
                    expected[..active_bytes].copy_from_slice(&values[..active_bytes]);
                    expected[16 * size..16 * size + active_bytes].copy_from_slice(&values[..active_bytes]);
                    assert_eq!(out[0], expected, "{count} of {lanes} {scalar:?}, cpu '{}'", target.cpu);
                }
            }
        }
    }
}

/// A masked-out lane may lie on an unmapped page.
#[test]
fn masked_lanes_are_not_touched() {
    let program = entry_program(0, 1, |b, _, outs| {
        let nowhere = b.index(8);
        let nowhere = b.bitcast(nowhere, Type::PTR);
        let ty = Type::vector(ScalarType::F32, 8);
        let none = b.integer(Type::vector(ScalarType::Bool, 8), 0);
        let x = b.load_masked(ty, nowhere, 4, none);
        b.store_masked(x, nowhere, 4, none);
        b.store(x, outs[0], 4);
        Ok(())
    });
    for target in targets() {
        assert_eq!(run(&program, &target, &[], &[32])[0], [0; 32]);
    }
}

#[test]
fn shuffles_inserts_and_extracts() {
    for lanes in [2u32, 4, 8, 16] {
        let n = lanes as usize;
        let reverse: Vec<u32> = (0..lanes).rev().collect();
        let interleave: Vec<u32> = (0..lanes).map(|i| i / 2 + if i % 2 == 0 { 0 } else { lanes }).collect();
        let upper: Vec<u32> = (lanes / 2..lanes).collect();
        let joined: Vec<u32> = (0..2 * lanes).collect();
        let all = [reverse, interleave, upper, joined, vec![lanes + 1], vec![0]];
        let program = entry_program(2, 1, |b, args, outs| {
            let ty = Type::vector(ScalarType::I32, lanes);
            let (x, y) = (b.load(ty, args[0], 4), b.load(ty, args[1], 4));
            let mut at = 0;
            for lanes in &all {
                let shuffled = b.shuffle(x, y, lanes.clone());
                let address = b.offset_bytes(outs[0], at);
                b.store(shuffled, address, 4);
                at += 4 * lanes.len() as i64;
            }
            let last = b.extract(y, lanes - 1);
            let inserted = b.insert(x, 1, last);
            let address = b.offset_bytes(outs[0], at);
            b.store(inserted, address, 4);
            Ok(())
        });
        let x: Vec<i32> = (0..lanes as i32).collect();
        let y: Vec<i32> = (100..100 + lanes as i32).collect();
        let both: Vec<i32> = x.iter().chain(&y).copied().collect();
        let mut expected: Vec<i32> = all.iter().flatten().map(|&lane| both[lane as usize]).collect();
        expected.extend(&x);
        let at = expected.len() - n + 1;
        expected[at] = y[n - 1];
        for target in targets() {
            let out = run(&program, &target, &[&bytes_of(&x), &bytes_of(&y)], &[4 * expected.len()]);
            assert_eq!(values_of::<i32>(&out[0]), expected, "{lanes} lanes, cpu '{}'", target.cpu);
        }
    }
}

#[test]
fn splats_iota_and_bitcasts() {
    let program = entry_program(1, 1, |b, args, outs| {
        let scalar = b.load(Type::scalar(ScalarType::I16), args[0], 2);
        let splat = b.splat(scalar, 8);
        let iota = b.iota(ScalarType::I16, 8);
        let sum = b.add(splat, iota);
        b.store(sum, outs[0], 2);
        // Eight conditions as the bits of a byte, with lane 0 lowest.
        let three = b.integer(Type::vector(ScalarType::I16, 8), 3);
        let low = b.compare(Predicate::Less, iota, three);
        let bits = b.bitcast(low, Type::scalar(ScalarType::I8));
        let address = b.offset_bytes(outs[0], 16);
        b.store(bits, address, 1);
        // Two words as four halves.
        let words = b.load(Type::vector(ScalarType::I32, 2), args[0], 2);
        let halves = b.bitcast(words, Type::vector(ScalarType::I16, 4));
        let last = b.extract(halves, 3);
        let address = b.offset_bytes(outs[0], 18);
        b.store(last, address, 2);
        Ok(())
    });
    let input = bytes_of(&[1000i16, -2, 3, 4]);
    for target in targets() {
        let out = run(&program, &target, &[&input], &[20]);
        assert_eq!(values_of::<i16>(&out[0][..16]), [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007]);
        assert_eq!(out[0][16], 0b111);
        assert_eq!(values_of::<i16>(&out[0][18..]), [4]);
    }
}

#[test]
fn blocks_of_bytes() {
    for count in [0i64, 1, 7, 16, 100, 5000] {
        for known in [true, false] {
            let program = entry_program(2, 2, |b, args, outs| {
                let n = if known { b.index(count) } else { b.load(Type::I64, args[1], 8) };
                let byte = b.integer(Type::scalar(ScalarType::I8), -86);
                b.copy_bytes(outs[0], args[0], n);
                b.fill_bytes(outs[1], byte, n);
                Ok(())
            });
            let source: Vec<u8> = (0..5001).map(|i| (i * 7) as u8).collect();
            for target in targets() {
                let out = run(&program, &target, &[&source, &bytes_of(&[count])], &[5001, 5001]);
                let n = count as usize;
                assert_eq!(out[0][..n], source[..n]);
                assert!(out[0][n..].iter().all(|&b| b == 0));
                assert!(out[1][..n].iter().all(|&b| b == 0xaa) && out[1][n..].iter().all(|&b| b == 0));
            }
        }
    }
}

#[test]
fn stack_slots_keep_their_contents_and_alignment() {
    let mut program = Program::default();
    let mut b = FunctionBuilder::new("reverse", Linkage::Internal);
    let facts = PointerFacts { alignment: 8, ..Default::default() };
    let (from, to) = (b.parameter("from", Type::PTR, facts), b.parameter("to", Type::PTR, facts));
    let slot = b.value(Type::PTR, Expression::StackSlot { bytes: 100 * 8, alignment: 64 });
    let other = b.value(Type::PTR, Expression::StackSlot { bytes: 8, alignment: 8 });
    let (zero, end) = (b.index(0), b.index(100));
    b.store(end, other, 8);
    b.for_each(zero, end, 1, |b, i| {
        let source = b.offset(from, i, 8);
        let x = b.load(Type::I64, source, 8);
        let target = b.offset(slot, i, 8);
        b.store(x, target, 8);
        Ok(())
    })
    .expect("a loop");
    let last = b.offset_bytes(slot, 99 * 8);
    b.for_each(zero, end, 1, |b, i| {
        let source = b.offset(last, i, -8);
        let x = b.load(Type::I64, source, 8);
        let target = b.offset(to, i, 8);
        b.store(x, target, 8);
        Ok(())
    })
    .expect("a loop");
    let address = b.bitcast(slot, Type::I64);
    let mask = b.index(63);
    let misalignment = b.and(address, mask);
    let other_value = b.load(Type::I64, other, 8);
    for (k, value) in [misalignment, other_value].into_iter().enumerate() {
        let place = b.offset_bytes(to, 800 + 8 * k as i64);
        b.store(value, place, 8);
    }
    let reverse = program.functions.push(b.finish());
    let entry = entry_program(1, 1, |b, args, outs| {
        b.call(reverse, vec![args[0], outs[0]]);
        Ok(())
    });
    program.functions.push(entry.functions.values().next().expect("the entry").clone());
    let values: Vec<i64> = (0..100).collect();
    for target in targets() {
        let out = run(&program, &target, &[&bytes_of(&values)], &[816]);
        let mut expected: Vec<i64> = values.iter().rev().copied().collect();
        expected.extend([0, 100]);
        assert_eq!(values_of::<i64>(&out[0]), expected);
    }
}

/// An entry that copies 16 bytes of the constants at an offset to its first result and adds 1 to a
/// variable.
fn constants_program(offset: i64) -> Program {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts { alignment: 8, ..Default::default() });
    let constants = field(&mut b, frame, CONSTANTS);
    let (args, outs) = (field(&mut b, frame, harness::ARGS), field(&mut b, frame, harness::RESULTS));
    let source = b.offset_bytes(constants, offset);
    let x = b.load(Type::vector(ScalarType::I8, 16), source, 16);
    let out = harness::element(&mut b, outs, 0);
    b.store(x, out, 16);
    let (variable, updated) = (harness::element(&mut b, args, 0), harness::element(&mut b, outs, 1));
    let old = b.load(Type::I64, variable, 8);
    let new = b.add_constant(old, 1);
    b.store(new, updated, 8);
    let mut program = Program::default();
    program.functions.push(b.finish());
    program
}

/// Interface of [`constants_program`]. The variable's new value aliases argument `alias`.
fn constants_interface(alias: usize) -> Interface {
    let variable = ArrayShape::new(PrimitiveType::S64, &[]);
    let interface =
        Interface::of_arrays([variable.clone()], [ArrayShape::new(PrimitiveType::U8, &[16]), variable]);
    let mut results = interface.results().to_vec();
    results[1].alias = Some(alias);
    Interface::new(interface.arguments().to_vec(), results)
}

#[test]
fn constants_in_the_object_and_separate() {
    let block: Vec<u8> = (0..200_000u64).map(|i| ((i * i) >> 3) as u8).collect();
    let interface = constants_interface(0);
    let options = CodegenOptions::new("weights");
    for offset in [0usize, 64, 199_984] {
        let program = constants_program(offset as i64);
        let (first, second) = block.split_at(70_000);
        let chunks = vec![(70_000, second), (0, first)];
        let embedded = Constants { size: block.len() as u64, chunks };
        for is_separate in [false, true] {
            let constants = if is_separate { Constants::default() } else { embedded.clone() };
            let compiled = codegen::compile(&program, &targets()[0], &options, &constants).expect("compiles");
            let separate = is_separate.then(|| AlignedBytes::from_bytes(&block).expect("a buffer"));
            let executable =
                Executable::load(&compiled.object, "weights", interface.clone(), Memory::default(), separate)
                    .expect("loads");
            let mut instance = executable.instance().expect("buffers");
            let mut variable = AlignedBytes::from_bytes(&bytes_of(&[41i64])).expect("a buffer");
            instance.run(&mut [&mut variable]).expect("runs");
            instance.run(&mut [&mut variable]).expect("runs again");
            assert_eq!(
                instance.result(0),
                &block[offset..offset + 16],
                "offset {offset}, separate: {is_separate}"
            );
            assert_eq!(values_of::<i64>(&variable), [43]);
        }
    }
}

#[test]
fn invalid_arguments_are_rejected() {
    let program = constants_program(0);
    let compiled =
        codegen::compile(&program, &targets()[0], &CodegenOptions::new("e"), &Constants::default())
            .expect("compiles");
    let load = |object: &[u8], entry: &str, alias: usize| {
        Executable::load(object, entry, constants_interface(alias), Memory::default(), None)
    };
    let executable = load(&compiled.object, "e", 0).expect("loads");
    let mut instance = executable.instance().expect("buffers");
    assert!(instance.run(&mut []).is_err());
    let mut buffer = AlignedBytes::zeroed(64).expect("a buffer");
    assert!(instance.run(&mut [&mut buffer[..7]]).is_err());
    assert!(instance.run(&mut [&mut buffer[1..9]]).is_err());
    instance.run(&mut [&mut buffer[8..16]]).expect("the right size and alignment");
    assert!(load(&compiled.object, "e", 1).is_err());
    assert!(load(b"not an object", "e", 0).is_err());
    assert!(load(&compiled.object, "other", 0).is_err());
}

/// Conversions between widths keep lanes apart.
#[test]
fn mixed_widths() {
    let values: Vec<i8> = (-8..8).collect();
    let program = entry_program(1, 1, |b, args, outs| {
        let x = b.load(Type::vector(ScalarType::I8, 16), args[0], 1);
        let wide = b.convert(ConvertOp::SignExtend, x, ScalarType::I64);
        let float = b.convert(ConvertOp::SignedToFloat, wide, ScalarType::F64);
        let half = b.float(Type::vector(ScalarType::F64, 16), 0.5);
        let scaled = b.mul(float, half);
        b.store(scaled, outs[0], 8);
        Ok(())
    });
    for target in targets() {
        let out = run(&program, &target, &[&bytes_of(&values)], &[128]);
        let expected: Vec<f64> = values.iter().map(|&v| f64::from(v) * 0.5).collect();
        assert_eq!(values_of::<f64>(&out[0]), expected);
    }
}
