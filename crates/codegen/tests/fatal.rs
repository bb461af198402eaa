//! Back ends that give up by LLVM's fatal error end the process with exit code 1 and one message, never by a signal.

use std::process::Command;

use codegen::{CodegenOptions, Constants};
use nest::{FunctionBuilder, Linkage, PointerFacts, Program, RegionBuilder as _, ScalarType, Type};
use target::Target;

const CHILD: &str = "TFCOMPILE_TEST_FATAL_TARGET";

/// A loop over doubles.
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

/// What the child does: compiles for the target in the environment; exit code 0 or, for an error of ours, 3.
#[test]
fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let (triple, cpu) = text.split_once(' ').expect("a triple and a processor");
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
            .expect("the child starts");
        let messages = String::from_utf8_lossy(&output.stderr);
        println!("{target}: {:?} {}", output.status.code(), messages.trim());
        let code = output.status.code().unwrap_or_else(|| panic!("{target} died by a signal: {messages}"));
        assert!([0, 1, 3].contains(&code), "{target}: exit code {code}: {messages}");
        seen_fatal |= code == 1;
        if code == 1 {
            assert!(messages.starts_with("error: LLVM cannot generate code"), "{target}: {messages}");
        }
    }
    assert!(seen_fatal, "none of these gives up any more: the handler is not tested");
}
