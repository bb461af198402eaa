//! Constants in a section for large data that are reached through a pointer: linked and read back.

use codegen::{CodegenOptions, Constants, compile};
use nest::{FunctionBuilder, Linkage, PointerFacts, Program};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};
use std::process::Command;
use target::Target;

/// Flag of sections that code cannot reach by 32-bit offsets, from the psABI.
const SHF_X86_64_LARGE: u64 = 0x1000_0000;

/// Adds all bytes through the pointer and without the object's own symbol.
const DRIVER: &str = r#"
#include <cstdio>
extern "C" const unsigned char* const entry_constants_pointer;
extern "C" int entry(void*);
int main() {
  unsigned long long sum = 0;
  for (int i = 0; i < 100000; ++i) sum += static_cast<unsigned long long>(i) * entry_constants_pointer[i];
  unsigned long long const at = reinterpret_cast<unsigned long long>(entry_constants_pointer);
  std::printf("%llu %d %d\n", sum, static_cast<int>(at % 64), entry(nullptr));
}
"#;

fn compile_large(triple: &str, constants: &Constants<'_>, threshold: u64) -> codegen::CompiledModule {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    b.parameter("frame", nest::Type::PTR, PointerFacts::default());
    let mut program = Program::default();
    program.functions.push(b.finish());
    let target = Target::new(triple, "", "").expect("a triple");
    let options = CodegenOptions { large_constants: threshold, ..CodegenOptions::new("entry") };
    compile(&program, &target, &options, constants).expect("compiles")
}

#[test]
fn large_constants_are_linked_and_read() {
    let block: Vec<u8> = (0..99_936u32).map(|i| (i % 251) as u8).collect();
    let constants = Constants { size: 100_000, chunks: vec![(64, &block)] };
    let expected: u64 = block.iter().enumerate().map(|(i, &b)| (i as u64 + 64) * u64::from(b)).sum();
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("main.cc"), DRIVER).expect("writable");
    for (triple, compiler, emulator) in [
        ("x86_64-unknown-linux-gnu", "g++", None),
        ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-g++", Some("qemu-aarch64")),
    ] {
        let compiled = compile_large(triple, &constants, 64);
        assert!(compiled.large_constants);
        let file = object::File::parse(&compiled.object[..]).expect("an object");
        let symbol = |name: &str| file.symbols().find(|s| s.name() == Ok(name)).expect(name);
        assert_eq!(symbol("entry_constants").size(), 100_000);
        let section = symbol("entry_constants").section_index().expect("a section");
        let section = file.section_by_index(section).expect("a section");
        assert_eq!(
            (section.name(), section.size(), section.align()),
            (Ok(".lrodata.tfcompile"), 100_000, 64)
        );
        if let (SectionFlags::Elf { sh_flags, .. }, "g++") = (section.flags(), compiler) {
            assert_ne!(sh_flags.0 & SHF_X86_64_LARGE, 0, "the section may lie anywhere");
        }
        let present = |program: &str| Command::new(program).arg("--version").output().is_ok();
        if !present(compiler) || emulator.is_some_and(|e| !present(e)) {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{compiler} is missing");
            println!("skipped: {triple}");
            continue;
        }
        std::fs::write(at("entry.o"), &compiled.object).expect("writable");
        for kind in ["-static", "-static-pie", "-pie"] {
            let mut build = Command::new(compiler);
            build.args(["-O1", kind]).arg(at("main.cc")).arg(at("entry.o")).arg("-o").arg(at("program"));
            let built = build.output().expect("a compiler");
            assert!(built.status.success(), "{triple} {kind}: {}", String::from_utf8_lossy(&built.stderr));
            let mut run = match emulator {
                None => Command::new(at("program")),
                Some(emulator) => {
                    let mut run = Command::new(emulator);
                    run.args(["-L", "/usr/aarch64-linux-gnu"]).arg(at("program"));
                    run
                }
            };
            let output = run.output().expect("runs");
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(said, format!("{expected} 0 0\n"), "{triple} {kind}");
        }
    }
}

#[test]
fn small_constants_have_no_pointer() {
    let constants = Constants::from_bytes(b"weights");
    let compiled = compile_large("x86_64-unknown-linux-gnu", &constants, 64);
    assert!(!compiled.large_constants);
    let file = object::File::parse(&compiled.object[..]).expect("an object");
    assert!(file.symbols().all(|s| s.name() != Ok("entry_constants_pointer")));
}
