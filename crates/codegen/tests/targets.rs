//! Objects for many targets: definitions, references, and placement of constants.

use codegen::{CodegenOptions, Constants, compile};
use nest::{
    BinaryOp, ConvertOp, FunctionBuilder, Linkage, PointerFacts, Predicate, Program, RegionBuilder as _,
    ScalarType, Type, UnaryOp,
};
use object::{Object, ObjectSection, ObjectSymbol};
use target::Target;

/// Targets of TensorFlow's tests, and of phones and small boards.
const TARGETS: [(&str, &str, &str); 16] = [
    ("x86_64-pc-linux", "", ""),
    ("x86_64-pc-linux", "haswell", ""),
    ("x86_64-pc-linux", "skylake-avx512", ""),
    ("x86_64-none-darwin", "", ""),
    ("x86_64-none-windows", "", ""),
    ("x86_64-pc-windows-gnu", "", ""),
    ("i686-unknown-linux-gnu", "", "+sse2"),
    ("aarch64-unknown-linux-gnu", "", ""),
    ("aarch64-unknown-linux-gnu", "neoverse-v1", ""),
    ("aarch64-unknown-linux-gnu", "a64fx", ""),
    ("arm64-none-ios", "", ""),
    ("aarch64-none-android", "", ""),
    ("armv7-none-android", "", ""),
    ("armv7-unknown-linux-gnueabihf", "", "+neon"),
    ("riscv64-unknown-linux-gnu", "", "+m,+f,+d,+v"),
    ("powerpc64le-unknown-linux-gnu", "", ""),
];

/// A kernel with vector arithmetic, a loop, a mask, and a copy, and an entry that calls it.
fn program() -> Program {
    let mut program = Program::default();
    let mut b = FunctionBuilder::new("model/dense:0", Linkage::Internal);
    let facts = PointerFacts { no_alias: true, ..Default::default() };
    let (from, to) = (b.parameter("from", Type::PTR, facts), b.parameter("to", Type::PTR, facts));
    let ty = Type::vector(ScalarType::F32, 8);
    let (zero, end, start) = (b.index(0), b.index(64), b.float(ty, 1.0));
    let sums = b
        .for_carrying(zero, end, 8, &[start], |b, i, sums| {
            let address = b.offset(from, i, 4);
            let x = b.load(ty, address, 4);
            let product = b.multiply_add(x, x, sums[0]);
            let less = b.compare(Predicate::Less, x, product);
            let bits = b.bitcast(x, ty.with_scalar(ScalarType::I32));
            let three = b.integer(ty.with_scalar(ScalarType::I32), 3);
            let shifted = b.binary(BinaryOp::ShiftRightLogical, bits, three);
            let as_float = b.convert(ConvertOp::SignedToFloat, shifted, ScalarType::F32);
            let root = b.unary(UnaryOp::Sqrt, as_float);
            let target = b.offset(to, i, 4);
            b.prefetch(address, 2);
            b.store_masked(root, target, 4, less);
            Ok(vec![b.select(less, product, root)])
        })
        .expect("a loop");
    b.store(sums[0], to, 4);
    let bytes = b.index(4096);
    b.copy_bytes(to, from, bytes);
    let byte = b.integer(Type::scalar(ScalarType::I8), 0);
    let many = b.index(100_000);
    b.fill_bytes(to, byte, many);
    let kernel = program.functions.push(b.finish());
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts { alignment: 8, ..Default::default() });
    b.call(kernel, vec![frame, frame]);
    program.functions.push(b.finish());
    program
}

fn options() -> CodegenOptions {
    CodegenOptions::new("my_model")
}

#[test]
fn objects_of_every_format_carry_their_constants_and_need_only_mem_functions() {
    let block: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
    let constants = Constants { size: 10_064, chunks: vec![(64, &block)] };
    for (triple, cpu, features) in TARGETS {
        let target = Target::new(triple, cpu, features).expect("a triple");
        let compiled = compile(&program(), &target, &options(), &constants).unwrap_or_else(|e| panic!("{e}"));
        let file = object::File::parse(&compiled.object[..]).expect("an object");
        let name = |s: &object::Symbol<'_, '_>| s.name().expect("a name").trim_start_matches('_').to_owned();
        let symbol = |expected: &str| {
            file.symbols()
                .find(|s| s.is_definition() && name(s) == expected)
                .unwrap_or_else(|| panic!("{triple}: no {expected}"))
        };
        for exported in ["my_model", "my_model_constants"] {
            assert!(symbol(exported).is_global(), "{triple}: {exported} is exported");
        }
        assert!(symbol("my_model.model/dense_0").is_local(), "{triple}: kernels are local");
        // Windows' objects share vector constants by contents, which their names encode.
        let exported = file.symbols().filter(|s| s.is_global() && s.is_definition()).map(|s| name(&s));
        let others: Vec<String> = exported.filter(|name| !name.contains("mm@")).collect();
        assert_eq!(others.len(), 2, "{triple} exports {others:?}");
        for undefined in file.symbols().filter(|s| s.is_undefined()).map(|s| name(&s)) {
            assert!(
                ["", "memcpy", "memset", "fltused", "GLOBAL_OFFSET_TABLE_", ".TOC."].contains(&&*undefined),
                "{triple} needs {undefined}"
            );
        }
        let block_symbol = symbol("my_model_constants");
        let section = file.section_by_index(block_symbol.section_index().expect("a section")).expect("it");
        assert!(section.align() >= 64, "{triple}: the constants are aligned");
        let start = (block_symbol.address() - section.address()) as usize;
        assert_eq!(start % 64, 0, "{triple}");
        let bytes = &section.data().expect("bytes")[start..start + 10_064];
        assert!(
            bytes[..64].iter().all(|&b| b == 0) && bytes[64..] == block,
            "{triple}: the constants' bytes"
        );
        let kernel = compiled.functions.iter().find(|f| f.name == "my_model.model/dense_0");
        assert!(kernel.is_some_and(|k| k.bytes > 32), "{triple}: {:?}", compiled.functions);
    }
}

#[test]
fn without_constants_the_symbol_stands() {
    let target = Target::new("x86_64-pc-linux", "", "").expect("a triple");
    let compiled = compile(&program(), &target, &options(), &Constants::default()).expect("compiles");
    let file = object::File::parse(&compiled.object[..]).expect("an object");
    let symbol = file.symbols().find(|s| s.name() == Ok("my_model_constants")).expect("the symbol");
    assert_eq!(symbol.size(), 64);
    for unwanted in [".comment", ".eh_frame", ".bss"] {
        let section = file.section_by_name(unwanted);
        assert!(section.is_none_or(|s| s.size() == 0), "{unwanted} is in the object");
    }
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    for (triple, cpu, features) in TARGETS {
        let target = Target::new(triple, cpu, features).expect("a triple");
        let once = || {
            compile(&program(), &target, &options(), &Constants::from_bytes(b"weights")).expect("compiles")
        };
        let first = once().object;
        let in_threads: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| once().object)).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        assert!(in_threads.iter().all(|object| *object == first), "{triple}");
    }
}

#[test]
fn text_outputs_change_nothing() {
    let target = Target::new("x86_64-pc-linux", "haswell", "").expect("a triple");
    let plain = compile(&program(), &target, &options(), &Constants::default()).expect("compiles");
    let options = CodegenOptions { llvm_ir: true, assembly: true, ..options() };
    let chatty = compile(&program(), &target, &options, &Constants::default()).expect("compiles");
    assert_eq!(plain.object, chatty.object);
    let (ir, assembly) = (chatty.llvm_ir.expect("asked for"), chatty.assembly.expect("asked for"));
    assert!(ir.contains("define internal void @\"my_model.model/dense_0\"(ptr noalias"), "{ir}");
    assert!(ir.contains("call <8 x float> @llvm.fmuladd.v8f32"), "{ir}");
    assert!(
        ["fast", "nnan", "contract", "reassoc"].iter().all(|flag| !ir.contains(&format!(" {flag} "))),
        "{ir}"
    );
    assert!(assembly.contains("vfmadd"), "{assembly}");
}

/// Rounding a vector on the baseline calls a library function. The error must name the function and
/// the symbol.
#[test]
fn library_calls_are_refused() {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts::default());
    let ty = Type::vector(ScalarType::F32, 4);
    let x = b.load(ty, frame, 4);
    let y = b.unary(UnaryOp::RoundEven, x);
    b.store(y, frame, 4);
    let mut program = Program::default();
    program.functions.push(b.finish());
    let target = Target::new("x86_64-pc-linux", "", "").expect("a triple");
    assert!(!target.has_rounding);
    let error =
        compile(&program, &target, &options(), &Constants::default()).expect_err("it calls roundevenf");
    assert_eq!(error.kind(), support::ErrorKind::Internal);
    assert!(error.message().contains("'roundevenf' in function 'my_model'"), "{error}");
    let target = Target::new("x86_64-pc-linux", "haswell", "").expect("a triple");
    compile(&program, &target, &options(), &Constants::default()).expect("haswell rounds by itself");
}

#[test]
fn what_cannot_be_is_refused() {
    let target = Target::new("x86_64-pc-linux", "", "").expect("a triple");
    let with_entry = |entry_point: &str| {
        compile(&program(), &target, &CodegenOptions::new(entry_point), &Constants::default()).map(|_| ())
    };
    for name in ["", "1a", "a-b", "a b", "memcpy", "main", "a\0"] {
        let error = with_entry(name).expect_err("no entry point");
        assert_eq!(error.kind(), support::ErrorKind::Invalid, "{name:?}");
    }
    with_entry("_my_1").expect("a C identifier");
    let beyond = Constants { size: 4, chunks: vec![(2, b"abc")] };
    assert!(compile(&program(), &target, &options(), &beyond).is_err());
    let huge = Constants { size: 1 << 31, chunks: Vec::new() };
    let windows = Target::new("x86_64-pc-windows-msvc", "", "").expect("a triple");
    let error = compile(&program(), &windows, &options(), &huge).expect_err("too large");
    assert!(error.message().contains("2 GiB"), "{error}");
    let endless = Constants { size: 1 << 62, chunks: Vec::new() };
    let error = compile(&program(), &target, &options(), &endless).expect_err("too large");
    assert!(error.message().contains("not enough memory"), "{error}");
    let mut headless = program();
    headless.functions = headless.functions.into_values().take(1).collect();
    assert!(compile(&headless, &target, &options(), &Constants::default()).is_err());
}

#[test]
fn long_vectors_are_one_register() {
    let eight_lanes = [
        ("aarch64-unknown-linux-gnu", "neoverse-v1", "", "z"),
        ("riscv64-unknown-linux-gnu", "", "+m,+a,+f,+d,+c,+v,+zvl256b", "vfmacc.vv"),
    ];
    for (triple, cpu, features, register) in eight_lanes {
        let target = Target::new(triple, cpu, features).expect("a triple");
        assert_eq!(target.lanes(4), 8);
        let options = CodegenOptions { object: false, assembly: true, ..options() };
        let constants = Constants { size: 0, chunks: Vec::new() };
        let assembly = compile(&program(), &target, &options, &constants).expect("code").assembly;
        let assembly = assembly.expect("asked for");
        let products = |words: &[&str]| {
            let of = |line: &str| words.iter().any(|word| line.trim_start().starts_with(word));
            assembly.lines().filter(|line| of(line)).map(str::to_owned).collect::<Vec<_>>()
        };
        let instructions = products(&["fmla", "fmad", "vfmacc", "vfmadd"]);
        assert!(
            instructions.iter().all(|line| line.contains(register) || line.contains("vfmadd")),
            "{instructions:?}"
        );
        // The multiply-add of eight numbers is one instruction, in one loop that may be unrolled.
        assert!(!instructions.is_empty(), "{assembly}");
    }
}

/// Comparisons with a scalar register hold for NaN if they are `lt` or `le`: LLVM 22 swaps the
/// operands of ordered comparisons to use them.
#[test]
fn mve_compares_nothing_with_one_number_by_less() {
    let ty = Type::vector(ScalarType::F32, 4);
    let target = Target::new("thumbv8.1m.main-none-eabihf", "cortex-m55", "").expect("a triple");
    let predicates = [Predicate::Less, Predicate::LessEqual, Predicate::Greater, Predicate::GreaterEqual];
    for (predicate, is_left) in predicates.iter().flat_map(|&p| [(p, false), (p, true)]) {
        for is_constant in [false, true] {
            let mut b = FunctionBuilder::new("entry", Linkage::Entry);
            let frame = b.parameter("frame", Type::PTR, PointerFacts { alignment: 8, ..Default::default() });
            let x = b.load(ty, frame, 4);
            let place = b.offset_bytes(frame, 16);
            let one = b.load(Type::scalar(ScalarType::F32), place, 4);
            let all = if is_constant { b.float(ty, 0.0) } else { b.splat(one, 4) };
            let condition = if is_left { b.compare(predicate, all, x) } else { b.compare(predicate, x, all) };
            let [first, second, result] = [32, 48, 64].map(|distance| b.offset_bytes(frame, distance));
            let (first, second) = (b.load(ty, first, 4), b.load(ty, second, 4));
            let chosen = b.select(condition, first, second);
            b.store(chosen, result, 4);
            let mut program = Program::default();
            program.functions.push(b.finish());
            let options = CodegenOptions { object: false, assembly: true, ..options() };
            let constants = Constants { size: 0, chunks: Vec::new() };
            let assembly = compile(&program, &target, &options, &constants).expect("code").assembly;
            let assembly = assembly.expect("asked for");
            let comparisons: Vec<_> = assembly.lines().filter(|line| line.contains("vcmp")).collect();
            assert_eq!(comparisons.len(), 1, "{assembly}");
            let is_less = |line: &&str| line.contains("\tlt,") || line.contains("\tle,");
            assert!(!comparisons.iter().any(is_less), "{predicate:?} {is_left}: {comparisons:?}");
        }
    }
}

/// Links an object for WebAssembly as modules for the web are linked.
fn link(object: &[u8], is_threaded: bool) -> support::Result<Vec<u8>> {
    let threads = is_threaded.then_some(wasm::Threads { parallel_for: "parallel_for" });
    let exports = &["entry", "entry_constants"];
    let options = wasm::LinkOptions { exports, stack_bytes: 1000, threads };
    Ok(wasm::link(&wasm::WasmObject::parse(object)?, &options)?.bytes)
}

#[test]
fn webassembly_objects_hold_constants_and_link() {
    let features = "+simd128,+bulk-memory,+bulk-memory-opt,+nontrapping-fptoint";
    let target = Target::new("wasm32-unknown-unknown", "", features).expect("a triple");
    let block: Vec<u8> = (0..200u8).collect();
    let constants = Constants { size: 256, chunks: vec![(64, &block[..100]), (0, &block[100..130])] };
    let compiled =
        compile(&program(), &target, &CodegenOptions::new("entry"), &constants).expect("WebAssembly");
    let object = wasm::WasmObject::parse(&compiled.object).expect("an object");
    let range = object.data_range("entry_constants").expect("defined");
    let bytes = &compiled.object[range];
    assert_eq!((bytes.len(), &bytes[..30], &bytes[64..164]), (256, &block[100..130], &block[..100]));
    assert!(bytes[30..64].iter().all(|&byte| byte == 0));
    assert_eq!(object.undefined_symbols().count(), 0);
    assert!(compiled.functions.iter().any(|f| f.name == "entry" && f.bytes > 0), "{:?}", compiled.functions);
    for is_threaded in [false, true] {
        let module = link(&compiled.object, is_threaded).expect("a module");
        assert!(module.windows(100).any(|window| window == &block[..100]));
        // Numbers that the object pads are shorter.
        assert!(module.len() < compiled.object.len());
    }
    // Damage is an error, or yields another module, but no panic.
    for end in 0..compiled.object.len() {
        let _ = link(&compiled.object[..end], true);
    }
    for at in 8..compiled.object.len() {
        let mut damaged = compiled.object.clone();
        damaged[at] ^= 0x55;
        let _ = link(&damaged, false);
    }
}
