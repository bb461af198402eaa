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

/// Returns the instructions of the only loop in WebAssembly's assembly, and the distances that its
/// loads and stores add.
fn wasm_loop(stride: i64) -> (Vec<String>, Vec<i64>) {
    let target = Target::new("wasm32-unknown-unknown", "", "+simd128").expect("a triple");
    let options = CodegenOptions { object: false, assembly: true, ..CodegenOptions::new("test_entry") };
    let program = program(&target, stride);
    let compiled = compile(&program, &target, &options, &Constants::default()).expect("it compiles");
    let assembly = compiled.assembly.expect("asked for");
    let body = assembly.lines().map(str::trim).skip_while(|line| !line.starts_with("loop")).skip(1);
    let body: Vec<String> =
        body.take_while(|line| !line.starts_with("end_loop")).map(str::to_owned).collect();
    // `v128.load 64:p2align=2`
    let accesses =
        body.iter().filter_map(|line| line.strip_prefix("v128.load").or(line.strip_prefix("v128.store")));
    let distance = |access: &str| access.trim().split(':').next()?.parse().ok();
    let distances = accesses.map(|access| distance(access).expect("a distance")).collect();
    (body, distances)
}

#[test]
fn distances_are_part_of_the_instructions_of_webassembly() {
    for stride in [8, 256, 12 * 28] {
        let (body, mut distances) = wasm_loop(stride);
        distances.sort_unstable();
        distances.dedup();
        assert_eq!(distances, [0, 64, 128, 192, 256], "{body:#?}");
        let count = |name: &str| body.iter().filter(|line| line.starts_with(name)).count();
        assert_eq!([count("i32.add"), count("i32.mul"), count("i32.shl")], [1, 0, 0], "{body:#?}");
    }
}

#[test]
fn no_distance_is_part_of_an_instruction_if_its_base_may_precede_the_memory() {
    // The addresses descend: those without a distance may lie before the object, and before
    // address 0.
    let (body, distances) = wasm_loop(-16);
    assert!(distances.len() >= 10 && distances.iter().all(|&distance| distance == 0), "{body:#?}");
}
