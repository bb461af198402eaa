//! Addresses in loops: a register that advances and a constant, without multiplications.

use codegen::{CodegenOptions, Constants, compile};
use nest::FrameLayout;
use nest::{FunctionBuilder, Linkage, PointerFacts, Program, RegionBuilder as _, ScalarType, Type};
use target::Target;

/// Doubles five vectors of four floats at constant distances, in rows that are `stride` bytes
/// apart.
fn program(target: &Target, stride: i64) -> Program {
    let mut program = Program::default();
    let mut b = FunctionBuilder::new("rows", Linkage::Internal);
    let out = b.parameter("out", Type::PTR, PointerFacts::default());
    let count = b.parameter("count", Type::scalar(ScalarType::I64), PointerFacts::default());
    let begin = b.index(0);
    let carried = b.for_carrying(begin, count, 1, &[], |b, index, _| {
        for k in 0..5 {
            let place = b.offset_bytes(out, 64 * k);
            let place = b.offset(place, index, stride);
            let vector = Type::vector(ScalarType::F32, 4);
            let old = b.load(vector, place, 4);
            let sum = b.add(old, old);
            b.store(sum, place, 4);
        }
        Ok(Vec::new())
    });
    assert!(carried.expect("nothing fails").is_empty());
    let rows = program.functions.push(b.finish());
    let mut b = FunctionBuilder::new("test_entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts::default());
    let at = b.offset_bytes(frame, FrameLayout::new(target.pointer_bytes).temps());
    let temps = b.load(Type::PTR, at, 4);
    let count = b.load(Type::scalar(ScalarType::I64), temps, 8);
    b.call(rows, vec![temps, count]);
    program.functions.push(b.finish());
    program
}

/// Returns the instructions of the only loop in the assembly: from the label that a later jump
/// targets to that jump.
fn inner_loop(assembly: &str) -> Vec<&str> {
    let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
    for (end, line) in lines.iter().enumerate() {
        let target = line.split_whitespace().nth(1).filter(|_| line.starts_with('j'));
        let label = target.map(|target| format!("{target}:"));
        let start = label.and_then(|label| lines[..end].iter().position(|l| l.starts_with(&label)));
        if let Some(start) = start {
            return lines[start + 1..end].to_vec();
        }
    }
    panic!("no loop in\n{assembly}");
}

#[test]
fn what_an_index_moves_is_one_register_for_all_accesses() {
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "").expect("a triple");
    // Strides that processors scale in an address, a stride that is a shift, and one that is
    // neither.
    for stride in [8, 256, 12 * 28] {
        let options = CodegenOptions { object: false, assembly: true, ..CodegenOptions::new("test_entry") };
        let program = program(&target, stride);
        let compiled = compile(&program, &target, &options, &Constants::default()).expect("it compiles");
        let assembly = compiled.assembly.expect("asked for");
        let body = inner_loop(&assembly);
        let multiplies =
            |line: &&&str| line.starts_with("imul") || line.starts_with("sh") || line.starts_with("lea");
        assert_eq!(body.iter().find(multiplies), None, "{body:#?}");
        // `64(%rdi)`: a constant and one register.
        let addresses: Vec<&str> =
            body.iter().filter_map(|line| Some(line.split_once('(')?.1.split_once(')')?.0)).collect();
        assert!(addresses.len() >= 10, "{body:#?}");
        assert!(
            addresses.iter().all(|&address| address == addresses[0] && !address.contains(',')),
            "{body:#?}"
        );
    }
}
