//! Freestanding objects: they need nothing from outside, and they copy and fill correctly.

use codegen::{CodegenOptions, Constants, LoadedObject, compile};
use nest::{FunctionBuilder, Linkage, PointerFacts, Program, ScalarType, Type};
use object::{Object, ObjectSymbol};
use target::Target;

/// Argument of the entry below. `repr(C)`, because the code reads it by offsets.
#[repr(C)]
struct Request {
    to: *mut u8,
    from: *const u8,
    copied: i64,
    filled: i64,
}

/// Copies `copied` bytes from `from` to `to`, and fills the following `filled` bytes with 0xa5.
fn program() -> Program {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let request = b.parameter("frame", Type::PTR, PointerFacts::default());
    let field = |b: &mut FunctionBuilder, offset: i64, ty: Type| {
        let index = b.index(offset);
        let address = b.offset(request, index, 1);
        b.load(ty, address, 8)
    };
    let to = field(&mut b, 0, Type::PTR);
    let from = field(&mut b, 8, Type::PTR);
    let copied = field(&mut b, 16, Type::scalar(ScalarType::I64));
    let filled = field(&mut b, 24, Type::scalar(ScalarType::I64));
    b.copy_bytes(to, from, copied);
    let byte = b.integer(Type::scalar(ScalarType::I8), 0xa5);
    let rest = b.offset(to, copied, 1);
    b.fill_bytes(rest, byte, filled);
    let mut program = Program::default();
    program.functions.push(b.finish());
    program
}

fn options() -> CodegenOptions {
    CodegenOptions { freestanding: true, ..CodegenOptions::new("my_model") }
}

#[test]
fn nothing_is_undefined_on_any_target() {
    for triple in [
        "x86_64-pc-linux",
        "i686-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu",
        "armv7-unknown-linux-gnueabihf",
        "riscv64-unknown-linux-gnu",
        "x86_64-pc-windows-gnu",
        "arm64-apple-darwin",
    ] {
        let target = Target::new(triple, "", "").expect("a triple");
        let compiled = compile(&program(), &target, &options(), &Constants::default()).expect("compiles");
        let file = object::File::parse(&compiled.object[..]).expect("an object");
        let undefined: Vec<&str> =
            file.symbols().filter(|s| s.is_undefined()).filter_map(|s| s.name().ok()).collect();
        // `_fltused` is a marker for Windows' linkers, which define it.
        let real = undefined.iter().filter(|name| !["", "_fltused", "_GLOBAL_OFFSET_TABLE_"].contains(name));
        assert_eq!(real.count(), 0, "{triple} needs {undefined:?}");
        let memcpy = file.symbols().find(|s| s.name().is_ok_and(|name| name.ends_with("my_model.memcpy")));
        assert!(memcpy.is_some_and(|s| s.is_local()), "{triple}: memcpy must be local to the object");
    }
}

#[test]
#[expect(unsafe_code, reason = "runs the code that was made")]
fn bytes_are_copied_and_filled() {
    let target = Target::new(&codegen::host_triple(), "", "").expect("the host's triple");
    let compiled = compile(&program(), &target, &options(), &Constants::default()).expect("compiles");
    let loaded = LoadedObject::load(&compiled.object, "my_model").expect("loads");
    // SAFETY: the entry takes a pointer and returns a number. The object lives below.
    let entry: extern "C" fn(*mut Request) -> i32 =
        unsafe { std::mem::transmute(loaded.entry_address().as_ptr()) };
    let source: Vec<u8> = (0..300u32).map(|i| (i * 7 % 251) as u8).collect();
    for copied in (0..70).chain([127, 128, 129, 255]) {
        for (filled, skew) in [(0, 0), (1, 1), (15, 3), (16, 7), (17, 0), (33, 5), (64, 1)] {
            let mut out = vec![0x11; skew + copied + filled + 40];
            let to = &mut out[skew] as *mut u8;
            let (from, copied_bytes, filled_bytes) = (&source[skew], copied as i64, filled as i64);
            let mut request = Request { to, from, copied: copied_bytes, filled: filled_bytes };
            assert_eq!(entry(&mut request), 0);
            let mut expected = vec![0x11; out.len()];
            expected[skew..skew + copied].copy_from_slice(&source[skew..skew + copied]);
            expected[skew + copied..skew + copied + filled].fill(0xa5);
            assert_eq!(out, expected, "{copied} copied, {filled} filled from {skew} on");
        }
    }
}

#[test]
fn sanitizers_need_a_library() {
    let target = Target::new("x86_64-pc-linux", "", "").expect("a triple");
    let options = CodegenOptions { sanitize: Some(codegen::Sanitizer::Address), ..options() };
    let error = compile(&program(), &target, &options, &Constants::default()).expect_err("both");
    assert!(error.message().contains("--freestanding"), "{error}");
}

/// Without floating-point instructions, the object contains the routines that do the arithmetic,
/// and with them it does not.
#[test]
fn processors_without_the_instructions_get_routines() {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts::default());
    let x = b.load(Type::scalar(ScalarType::F32), frame, 4);
    let y = b.mul(x, x);
    b.store(y, frame, 4);
    let mut program = Program::default();
    program.functions.push(b.finish());
    let symbols = |features| {
        let target = Target::new("riscv64-unknown-elf", "", features).expect("a triple");
        let compiled = compile(&program, &target, &options(), &Constants::default()).expect("compiles");
        let file = object::File::parse(&compiled.object[..]).expect("an object");
        let undefined = file.symbols().filter(|s| s.is_undefined() && s.name() != Ok("")).count();
        assert_eq!(undefined, 0, "for '{features}'");
        let local = |name: &str| file.symbols().any(|s| s.is_local() && s.name() == Ok(name));
        (local("__mulsf3"), compiled.stack_bytes)
    };
    let (soft, hard) = (symbols(""), symbols("+m,+f,+d"));
    assert!(soft.0 && !hard.0, "{soft:?} {hard:?}");
    assert!(soft.1 > hard.1, "the routine's frame counts: {soft:?} {hard:?}");
}
