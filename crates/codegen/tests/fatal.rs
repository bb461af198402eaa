//! Checks that LLVM's fatal errors end the process with exit code 1 and one message, never by a
//! signal.

use std::process::Command;

use codegen::{CodegenOptions, Constants};
use nest::{FunctionBuilder, Linkage, PointerFacts, Program, RegionBuilder as _, ScalarType, Type};
use target::Target;

const CHILD: &str = "TFCOMPILE_TEST_FATAL_TARGET";

/// Returns a loop over doubles.
fn program() -> Program {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts::default());
    let (zero, end) = (b.index(0), b.index(100));
    b.for_each(zero, end, 1, |b, i| {
        let address = b.offset(frame, i, 8);
        let x = b.load(Type::scalar(ScalarType::F64), address, 8);
        let y = b.mul(x, x);
        b.store(y, address, 8);
        Ok(())
    })
    .expect("a loop");
    let mut program = Program::default();
    program.functions.push(b.finish());
    program
}

/// Child process: compiles for the target in the environment. Exit code 0, or 3 for an ordinary
/// error.
#[test]
fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let (triple, cpu) = text.split_once(' ').expect("expected a triple and a processor");
    let target = Target::new(triple, cpu, "").expect("a triple");
    match codegen::compile(&program(), &target, &CodegenOptions::new("entry"), &Constants::default()) {
        Ok(_) => std::process::exit(0),
        Err(error) => {
            eprintln!("refused: {error}");
            std::process::exit(3);
        }
    }
}

#[test]
fn no_target_ends_by_a_signal() {
    let this = std::env::current_exe().expect("this test");
    let mut seen_fatal = false;
    for target in [
        "x86_64-pc-linux i386",
        "amdgcn-amd-amdhsa ",
        "nvptx64-nvidia-cuda ",
        "xtensa-none-elf ",
        "bpf-none-none ",
        "avr-none-none ",
        "msp430-none-none ",
        "hexagon-none-elf ",
        "lanai-none-none ",
        "sparc-none-linux ",
        "mips-none-linux-gnu ",
        "wasm32-unknown-unknown ",
        "systemz-none-linux-gnu ",
        "s390x-none-linux-gnu ",
        "loongarch64-none-linux-gnu ",
        "armv7-none-android ",
        "armv7-unknown-linux-gnueabihf ",
        "thumbv7em-none-eabi cortex-m4",
        "spirv64-unknown-unknown ",
        "ve-none-linux ",
        "xcore-none-none ",
    ] {
        let output = Command::new(&this)
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, target)
            .output()
            .expect("cannot start the child");
        let messages = String::from_utf8_lossy(&output.stderr);
        println!("{target}: {:?} {}", output.status.code(), messages.trim());
        let code =
            output.status.code().unwrap_or_else(|| panic!("{target} was killed by a signal: {messages}"));
        assert!([0, 1, 3].contains(&code), "{target}: exit code {code}: {messages}");
        seen_fatal |= code == 1;
        if code == 1 {
            assert!(messages.starts_with("error: LLVM cannot generate code"), "{target}: {messages}");
        }
    }
    assert!(seen_fatal, "no target triggers a fatal error: the handler is untested");
}
