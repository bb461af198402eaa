//! Programs whose code is generated in several parts: the result is one object, always the same.

use codegen::{CodegenOptions, Constants, LoadedObject, UnitCache, compile};
use nest::FrameLayout;
use nest::{Function, FunctionBuilder, FunctionId, Linkage, PointerFacts, Program, ScalarType, Type};
use object::{Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use target::Target;

const FUNCTIONS: i32 = 60;
const STORES: i64 = 100;

/// Writes `number * 1000 + k` to the k-th `i32`.
fn writer(number: i32, linkage: Linkage, stores: i64) -> Function {
    let mut b = FunctionBuilder::new(format!("writer{number}"), linkage);
    let out = b.parameter("out", Type::PTR, PointerFacts::default());
    for k in 0..stores {
        let value = b.integer(Type::scalar(ScalarType::I32), i64::from(number) * 1000 + k);
        let place = b.offset_bytes(out, 4 * k);
        b.store(value, place, 4);
    }
    b.finish()
}

/// Calls every function with separate memory in the temporaries. The last function is inlined, also
/// into another one.
fn program(target: &Target) -> Program {
    let mut program = Program::default();
    let inlined = program.functions.push(writer(FUNCTIONS, Linkage::Inline, 3));
    let mut writers: Vec<FunctionId> = (0..FUNCTIONS)
        .map(|number| program.functions.push(writer(number, Linkage::Internal, STORES)))
        .collect();
    let mut b = FunctionBuilder::new("caller", Linkage::Internal);
    let out = b.parameter("out", Type::PTR, PointerFacts::default());
    b.call(inlined, vec![out]);
    writers.push(program.functions.push(b.finish()));
    writers.push(inlined);
    let mut b = FunctionBuilder::new("test_entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts::default());
    let layout = FrameLayout::new(target.pointer_bytes);
    let at = b.offset_bytes(frame, layout.temps());
    let temps = b.load(Type::PTR, at, 4);
    for (k, &function) in writers.iter().enumerate() {
        let place = b.offset_bytes(temps, 4 * STORES * k as i64);
        b.call(function, vec![place]);
    }
    program.functions.push(b.finish());
    program
}

#[test]
fn the_parts_make_one_object() {
    let bytes: Vec<u8> = (0..200).collect();
    for triple in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "riscv64gc-unknown-linux-gnu"] {
        let features = if triple.starts_with("riscv") { "+m,+a,+f,+d,+c" } else { "" };
        let target = Target::new(triple.replace("64gc", "64").as_str(), "", features).expect("a triple");
        let program = program(&target);
        let make = || {
            let options = CodegenOptions::new("test_entry");
            compile(&program, &target, &options, &Constants::from_bytes(&bytes)).expect("it compiles")
        };
        let compiled = make();
        for _ in 0..3 {
            assert!(compiled.object == make().object, "{triple}: the bytes differ in the next run");
        }
        let file = object::File::parse(&compiled.object[..]).expect("an object");
        let mut visible: Vec<&str> =
            file.symbols().filter(|s| s.is_global()).filter_map(|s| s.name().ok()).collect();
        visible.sort_unstable();
        assert_eq!(visible, ["test_entry", "test_entry_constants"], "{triple}");
        let names: Vec<&str> = compiled.functions.iter().map(|f| f.name.as_str()).collect();
        let of_writers = (0..FUNCTIONS).map(|number| format!("test_entry.writer{number}"));
        let expected: Vec<String> =
            of_writers.chain(["test_entry.caller".to_owned(), "test_entry".to_owned()]).collect();
        assert_eq!(names, expected, "{triple}");
        assert!(compiled.object.windows(bytes.len()).any(|window| window == bytes), "{triple}");
    }
}

#[test]
#[expect(unsafe_code, reason = "generated code is called")]
fn the_parts_run_together() {
    let target = Target::new(&codegen::host_triple(), "", "").expect("the host's triple");
    let program = program(&target);
    let constants = Constants::from_bytes(b"constants");
    let compiled =
        compile(&program, &target, &CodegenOptions::new("test_entry"), &constants).expect("it compiles");
    let loaded = LoadedObject::load(&compiled.object, "test_entry").expect("it loads");
    let mut temps = vec![0i32; (STORES as usize) * (FUNCTIONS as usize + 2)];
    let mut frame = vec![0u64; 16];
    frame[FrameLayout::new(target.pointer_bytes).temps() as usize / 8] = temps.as_mut_ptr() as u64;
    // SAFETY: the entry takes a frame, reads only the temporaries' address from it, and writes
    // within them.
    let status = unsafe {
        let entry: extern "C" fn(*mut u64) -> i32 = std::mem::transmute(loaded.entry_address().as_ptr());
        entry(frame.as_mut_ptr())
    };
    assert_eq!(status, 0);
    for (block, numbers) in temps.chunks(STORES as usize).enumerate() {
        let (number, stores) =
            if block < FUNCTIONS as usize { (block as i32, STORES as i32) } else { (FUNCTIONS, 3) };
        let expected = (0..STORES as i32).map(|k| if k < stores { number * 1000 + k } else { 0 });
        assert!(numbers.iter().copied().eq(expected), "block {block}");
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "").expect("a triple");
    let program = program(&target);
    let make = |threads: usize| {
        let options = CodegenOptions { threads: NonZero::new(threads), ..CodegenOptions::new("test_entry") };
        compile(&program, &target, &options, &Constants::from_bytes(b"constants")).expect("it compiles")
    };
    let one = make(1);
    assert!(one.units > 2, "{} units", one.units);
    for threads in [2, 5, 100] {
        let several = make(threads);
        assert!(several.object == one.object, "{threads} threads");
        assert_eq!((several.units, several.stack_bytes), (one.units, one.stack_bytes));
    }
}

/// An in-memory cache.
#[derive(Debug, Default)]
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>, &'static str);

impl UnitCache for Memory {
    fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.0.lock().expect("no panic").get(key).cloned()
    }

    fn put(&self, key: &str, entry: &[u8]) {
        self.0.lock().expect("no panic").insert(key.to_owned(), entry.to_vec());
    }

    fn compiler(&self) -> Option<&str> {
        Some(self.1)
    }
}

#[test]
fn a_cache_changes_no_byte() {
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "").expect("a triple");
    let program = program(&target);
    let make = |target: &Target, cache: Option<Arc<dyn UnitCache>>| {
        let options = CodegenOptions { cache, ..CodegenOptions::new("test_entry") };
        compile(&program, target, &options, &Constants::from_bytes(b"constants")).expect("it compiles")
    };
    let without = make(&target, None);
    let memory = Arc::new(Memory::default());
    let cached = |target: &Target| make(target, Some(memory.clone()));
    let first = cached(&target);
    assert!(first.object == without.object && first.cached_units == 0);
    assert_eq!(first.units, without.units);
    let second = cached(&target);
    assert_eq!((second.cached_units, second.stack_bytes), (second.units, without.stack_bytes));
    assert!(second.object == without.object && second.functions == without.functions);

    // Code for another processor has another key.
    let other = Target::new("x86_64-unknown-linux-gnu", "x86-64-v4", "").expect("a triple");
    assert_eq!(cached(&other).cached_units, 0);

    // Damaged entries are generated again, and are intact afterward.
    for (k, entry) in memory.0.lock().expect("no panic").values_mut().enumerate() {
        match k % 3 {
            0 => entry.truncate(entry.len() / 2),
            1 => *entry.last_mut().expect("not empty") ^= 1,
            _ => entry.clear(),
        }
    }
    let third = cached(&target);
    assert!(third.object == without.object && third.cached_units == 0);
    assert_eq!(cached(&target).cached_units, without.units);

    // Another build of the compiler does not use the entries of this one.
    let entries = memory.0.lock().expect("no panic").clone();
    let newer: Arc<dyn UnitCache> = Arc::new(Memory(Mutex::new(entries), "newer"));
    assert_eq!(make(&target, Some(newer.clone())).cached_units, 0);
    assert_eq!(make(&target, Some(newer)).cached_units, without.units);
}
