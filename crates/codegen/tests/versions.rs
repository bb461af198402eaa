//! Objects with several versions: each processor runs the best supported one, in an emulator and on
//! the host.

use codegen::{CodegenOptions, Constants, Version, compile_versions};
use nest::{
    BinaryOp, FunctionBuilder, Linkage, PointerFacts, Program, ScalarType, Statement, TileOperation, Type,
};
use std::path::Path;
use std::process::Command;
use target::{Level, Target};

const LEVELS: [Level; 8] = Level::ALL;

/// Value that a version writes.
fn mark(level: Level) -> i64 {
    level as i64 + 1
}

/// Writes `number` into the first 16 lanes after the frame's field `context`, as products of
/// vectors so that the version's instructions are used.
fn program(number: i64) -> Program {
    let mut b = FunctionBuilder::new("kernel", Linkage::Internal);
    let out = b.parameter("out", Type::PTR, PointerFacts::default());
    let ty = Type::vector(ScalarType::I32, 16);
    let (before, one) = (b.load(ty, out, 4), b.integer(ty, number));
    let sum = b.binary(BinaryOp::Add, before, one);
    b.store(sum, out, 4);
    let mut program = Program::default();
    let kernel = program.functions.push(b.finish());
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    let frame = b.parameter("frame", Type::PTR, PointerFacts { alignment: 8, ..Default::default() });
    let field = b.offset_bytes(frame, 56);
    let out = b.load(Type::PTR, field, 8);
    b.call(kernel, vec![out]);
    program.functions.push(b.finish());
    program
}

fn object(levels: &[Level]) -> Vec<u8> {
    let targets: Vec<Target> = levels
        .iter()
        .map(|l| Target::new("x86_64-pc-linux-gnu", l.cpu(), l.features()).expect("a level"))
        .collect();
    let programs: Vec<Program> = levels.iter().map(|l| program(mark(*l))).collect();
    let versions: Vec<_> =
        programs.iter().zip(&targets).map(|(program, target)| Version { program, target }).collect();
    compile_versions(&versions, &CodegenOptions::new("entry"), &Constants::default())
        .expect("compiles")
        .object
}

/// Calls the entry twice from each of four threads concurrently, then prints the value that the
/// version writes, or the entry's message. An argument selects a version without detection.
const DRIVER: &str = r#"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
extern "C" int32_t entry(void* frame);
extern int32_t chosen __asm__("entry.version");
int main(int argc, char** argv) {
  if (argc > 1) chosen = std::atoi(argv[1]);
  bool same = true;
  std::vector<std::thread> threads;
  std::vector<int> results(4);
  for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] {
    int32_t lanes[16] = {};
    void* frame[13] = {};
    frame[7] = lanes;
    for (int i = 0; i < 2; ++i) {
      if (entry(frame) != 0) { std::printf("%s\n", static_cast<char*>(frame[11])); std::exit(1); }
    }
    results[t] = lanes[0] / 2;
    for (int lane : lanes) if (lane != lanes[0]) std::exit(2);
  });
  for (auto& thread : threads) thread.join();
  for (int result : results) same = same && result == results[0];
  std::printf("%d\n", same ? results[0] : -1);
}
"#;

fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.code().is_some(), "{command:?}: {} {said}", output.status);
    (output.status.code(), said)
}

fn build(directory: &Path, object: &[u8]) -> std::path::PathBuf {
    let at = |name: &str| directory.join(name);
    std::fs::write(at("entry.o"), object).expect("writable");
    std::fs::write(at("main.cc"), DRIVER).expect("writable");
    // The variable is local to the object. The test exports it under its own name.
    let renamed = Command::new("objcopy").arg("--globalize-symbol=entry.version").arg(at("entry.o")).status();
    assert!(renamed.expect("objcopy").success());
    let mut build = Command::new("g++");
    build.args(["-std=c++17", "-O1", "-static", "-pthread"]).arg(at("main.cc")).arg(at("entry.o"));
    assert!(build.arg("-o").arg(at("program")).status().expect("g++").success());
    at("program")
}

/// Returns the best level of the host according to Rust's standard library, or to Linux.
fn best_here() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let has = |flag: &str| processor.split_whitespace().any(|word| word == flag);
        if ["amx_tile", "amx_int8", "amx_bf16"].into_iter().all(has) {
            return Level::Amx;
        }
        if std::is_x86_feature_detected!("avx512bf16") && std::is_x86_feature_detected!("avx512vbmi") {
            return Level::Avx512Bf16;
        }
        if std::is_x86_feature_detected!("avx512vnni") {
            return Level::Avx512Vnni;
        }
        if std::is_x86_feature_detected!("avx512vl") && std::is_x86_feature_detected!("avx512bw") {
            return Level::V4;
        }
        if std::is_x86_feature_detected!("avxvnni") {
            return Level::AvxVnni;
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            return Level::V3;
        }
        if std::is_x86_feature_detected!("sse4.2") {
            return Level::V2;
        }
    }
    Level::V1
}

/// AVX-512 does not include AVX-VNNI.
fn has_avx_vnni() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avxvnni");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(target_arch = "x86_64")]
#[test]
fn each_processor_gets_its_version() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = build(directory.path(), &object(&LEVELS));
    assert_eq!(run(&mut Command::new(&program)), (Some(0), mark(best_here()).to_string()));
    for (number, level) in LEVELS.iter().enumerate() {
        let is_supported = *level != Level::AvxVnni || has_avx_vnni();
        if *level <= best_here() && is_supported {
            let forced = run(Command::new(&program).arg((number + 1).to_string()));
            assert_eq!(forced, (Some(0), mark(*level).to_string()), "{level:?}");
        }
    }
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "qemu-x86_64 is missing");
        println!("skipped: other processors (qemu-x86_64 is missing)");
        return;
    }
    for (cpu, level) in [
        ("Conroe", Level::V1),
        ("Nehalem", Level::V2),
        // AVX without AVX2.
        ("SandyBridge", Level::V2),
        ("Haswell", Level::V3),
        // A processor with AVX2, but with a system that does not save its registers, or without a
        // feature of the level.
        ("Haswell,-xsave", Level::V2),
        ("Haswell,-bmi2", Level::V2),
        ("Haswell,-abm", Level::V2),
        ("Nehalem,-popcnt", Level::V1),
    ] {
        let emulated = run(Command::new("qemu-x86_64").args(["-cpu", cpu]).arg(&program));
        assert_eq!(emulated, (Some(0), mark(level).to_string()), "{cpu}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn where_no_version_runs_the_entry_says_so() {
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "qemu-x86_64 is missing");
        println!("skipped: qemu-x86_64 is missing");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = build(directory.path(), &object(&[Level::V3, Level::V4]));
    let (code, said) = run(Command::new("qemu-x86_64").args(["-cpu", "Nehalem"]).arg(&program));
    assert_eq!(code, Some(1));
    assert!(said.contains("x86-64-v3"), "{said}");
    let here = run(&mut Command::new(&program));
    if best_here() >= Level::V3 {
        assert_eq!(here, (Some(0), mark(best_here().min(Level::V4)).to_string()));
    }
}

/// A system that does not know tile registers refuses them. Linux lets a process use them where the
/// processor has them.
#[cfg(target_arch = "x86_64")]
#[test]
fn code_for_tile_registers_asks_the_system() {
    let features = "+amx-tile,+amx-int8,+amx-bf16";
    let target = Target::new("x86_64-pc-linux-gnu", "x86-64-v3", features).expect("a target");
    let mut program = program(1);
    let kernel = program.functions.values_mut().next().expect("a kernel");
    kernel.body.statements.push(Statement::Tiles(TileOperation::Configure { rows: 16, groups: 16 }));
    kernel.body.statements.push(Statement::Tiles(TileOperation::Release));
    let version = Version { program: &program, target: &target };
    let compiled = compile_versions(&[version], &CodegenOptions::new("entry"), &Constants::default());
    let directory = tempfile::tempdir().expect("a directory");
    let run = run(&mut Command::new(build(directory.path(), &compiled.expect("compiles").object)));
    if best_here() == Level::Amx {
        assert_eq!(run, (Some(0), "1".to_owned()));
    } else if best_here() >= Level::V3 {
        let (code, said) = run;
        assert_eq!(code, Some(1));
        assert!(said.contains("does not let this process use the tile registers"), "{said}");
    }
}

#[test]
fn the_object_has_one_entry_and_no_constructor() {
    use object::{Object, ObjectSection, ObjectSymbol};
    let bytes = object(&LEVELS);
    assert_eq!(bytes, object(&LEVELS), "equal versions must yield equal bytes");
    let file = object::File::parse(&bytes[..]).expect("an object");
    let mut names: Vec<&str> =
        file.symbols().filter(|s| s.is_global() && s.is_definition()).filter_map(|s| s.name().ok()).collect();
    names.sort_unstable();
    assert_eq!(names, ["entry", "entry_constants"]);
    assert!(file.symbols().all(|s| !s.is_undefined() || s.name() == Ok("")), "nothing is needed");
    let local = |name: &str| file.symbols().any(|s| s.is_local() && s.name() == Ok(name));
    assert!(LEVELS.iter().all(|level| local(&format!("entry.kernel.{}", level.name()))));
    assert!(
        file.sections().all(|s| s.name().is_ok_and(|n| !n.starts_with(".init") && !n.starts_with(".ctors")))
    );
}
