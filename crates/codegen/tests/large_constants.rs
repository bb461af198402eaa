//! Constants in a section anywhere in the address space, in programs and shared libraries, found
//! through their pointer.

use codegen::{CodegenOptions, Constants, compile};
use nest::{FunctionBuilder, Linkage, PointerFacts, Program};
use object::{Object, ObjectSection};
use std::path::Path;
use std::process::Command;
use target::Target;

const MAIN: &str = r#"
#include <stdint.h>
extern int32_t my_model(void*);
extern const void* const my_model_constants_pointer;
int main(void) {
  const unsigned char* bytes = my_model_constants_pointer;
  if ((uintptr_t)bytes % 64 != 0) return 1;
  for (int i = 0; i < 300; ++i) if (bytes[64 + i] != (unsigned char)(i * 7)) return 2;
  for (int i = 0; i < 64; ++i) if (bytes[i] != 0) return 3;
  return my_model(0);
}
"#;

fn succeed(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[cfg(target_os = "linux")]
fn programs_find_constants_that_may_be_far_away() {
    let mut b = FunctionBuilder::new("entry", Linkage::Entry);
    b.parameter("frame", nest::Type::PTR, PointerFacts::default());
    let mut program = Program::default();
    program.functions.push(b.finish());
    let options = CodegenOptions { large_constants: 100, ..CodegenOptions::new("my_model") };
    let block: Vec<u8> = (0..300u32).map(|i| (i * 7) as u8).collect();
    let constants = Constants { size: 1000, chunks: vec![(64, &block)] };
    let target = Target::new(&codegen::host_triple(), "", "").expect("the host's triple");
    let compiled = compile(&program, &target, &options, &constants).expect("compiles");
    assert!(compiled.large_constants);
    let file = object::File::parse(&compiled.object[..]).expect("an object");
    let section = file.section_by_name(".lrodata.tfcompile").expect("the section of large constants");
    assert_eq!((section.size(), section.align()), (1000, 64));

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("large_constants");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("model.o"), &compiled.object).expect("written");
    std::fs::write(folder.join("main.c"), MAIN).expect("written");
    let gcc = || {
        let mut command = Command::new("gcc");
        command.current_dir(&folder);
        command
    };
    for flags in [&["-no-pie", "-fno-pie"][..], &["-pie", "-fPIE"], &["-static"]] {
        succeed(gcc().args(flags).args(["main.c", "model.o", "-o", "program"]));
        succeed(&mut Command::new(folder.join("program")));
    }
    succeed(gcc().args(["-shared", "model.o", "-o", "libmodel.so"]));
    succeed(gcc().args(["main.c", "-L.", "-lmodel", "-Wl,-rpath,$ORIGIN", "-o", "program"]));
    succeed(&mut Command::new(folder.join("program")));
}
