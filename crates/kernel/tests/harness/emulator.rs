//! Runs modules on processors that this machine is not: objects in one program, linked with a cross
//! compiler and run in an emulator.

use super::compile;
use hlo::Interface;
use shape::{ArrayShape, Literal};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use target::Target;

/// A processor and what runs its programs.
pub struct Emulator {
    pub triple: &'static str,
    pub cpu: &'static str,
    pub features: &'static str,
    /// Name and arguments of the program that runs it; nothing if this machine does.
    pub command: &'static [&'static str],
    /// Name of the compiler that links programs.
    pub compiler: &'static str,
    /// C code that emulates instructions in the program itself.
    pub source: Option<&'static str>,
    /// Variable that is `true` where the tools must be installed.
    pub required_if: &'static str,
}

/// A module, its arguments, and the name of the case.
pub struct Case {
    pub name: String,
    pub module: hlo::Module,
    pub arguments: Vec<Literal>,
}

/// Reads each case's arguments from the input, and writes its results to the output.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tfcompile/frame.h"

struct program {
  int32_t (*run)(struct tfcompile_frame*);
  const void* constants;
  size_t temps, scratch, arguments, results;
  const size_t* sizes;
};

static void* buffer(size_t size) {
  void* memory = NULL;
  if (posix_memalign(&memory, 64, size + 64)) exit(2);
  memset(memory, 0xa5, size + 64);
  return memory;
}

static void run(const struct program* p) {
  void* buffers[16];
  struct tfcompile_frame frame;
  size_t k, all = p->arguments + p->results;
  for (k = 0; k < all; ++k) buffers[k] = buffer(p->sizes[k]);
  for (k = 0; k < p->arguments; ++k) {
    if (fread(buffers[k], 1, p->sizes[k], stdin) != p->sizes[k]) exit(3);
  }
  memset(&frame, 0, sizeof frame);
  frame.size = sizeof frame;
  frame.version = TFCOMPILE_FRAME_VERSION;
  frame.args = buffers;
  frame.results = buffers + p->arguments;
  frame.temps = buffer(p->temps);
  frame.constants = p->constants;
  frame.max_workers = 1;
  frame.scratch = buffer(p->scratch);
  if (p->run(&frame)) exit(4);
  for (k = p->arguments; k < all; ++k) {
    const unsigned char* end = (const unsigned char*)buffers[k] + p->sizes[k];
    if (end[0] != 0xa5 || end[63] != 0xa5) exit(5);
    fwrite(buffers[k], 1, p->sizes[k], stdout);
  }
}
"#;

impl Emulator {
    pub fn target(&self) -> Target {
        Target::new(self.triple, self.cpu, self.features).expect("a target")
    }

    /// Text for messages.
    pub fn name(&self) -> String {
        format!("{} '{}' '{}' by '{}'", self.triple, self.cpu, self.features, self.command.join(" "))
    }

    /// True if the tools are installed.
    pub fn is_installed(&self) -> bool {
        let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
        let found = has(self.compiler) && self.command.first().is_none_or(|program| has(program));
        let required = std::env::var(self.required_if).as_deref() == Ok("true");
        assert!(found || !required, "{} needs {}", self.name(), self.compiler);
        found
    }

    /// Runs cases without aliased arguments. Returns the results of each.
    pub fn run(&self, cases: &[&Case]) -> Vec<Vec<Literal>> {
        self.run_with(cases, &plan::Options::default())
    }

    /// Like [`Self::run`], with options of plans.
    pub fn run_with(&self, cases: &[&Case], options: &plan::Options) -> Vec<Vec<Literal>> {
        let folder = tempfile::tempdir().expect("a folder");
        let target = self.target();
        let (mut declarations, mut table, mut input) = (String::new(), String::new(), Vec::new());
        let mut objects = Vec::new();
        let mut shapes = Vec::new();
        for (k, case) in cases.iter().enumerate() {
            let entry = format!("entry{k}");
            let compiled = compile(&case.module, &target, options, &entry)
                .unwrap_or_else(|e| panic!("{} for {}: {e}", case.name, self.name()));
            let object = format!("{entry}.o");
            std::fs::write(folder.path().join(&object), &compiled.object).expect("written");
            objects.push(object);
            let interface = Interface::of_module(&case.module).expect("an interface");
            let results: Vec<ArrayShape> = interface
                .results()
                .iter()
                .map(|output| ArrayShape::new(output.shape.element_type, &output.shape.sizes()))
                .collect();
            let sizes = case.arguments.iter().map(|a| a.bytes().len() as u64);
            let sizes: Vec<String> =
                sizes.chain(results.iter().map(ArrayShape::byte_size)).map(|size| size.to_string()).collect();
            writeln!(
                declarations,
                "int32_t {entry}(struct tfcompile_frame*);\nextern const char {entry}_constants[];\n\
                 static const size_t sizes{k}[] = {{{}}};",
                sizes.join(", ")
            )
            .expect("text");
            let (memory, arguments, count) = (&compiled.memory, case.arguments.len(), results.len());
            writeln!(
                table,
                "  {{{entry}, {entry}_constants, {}, {}, {arguments}, {count}, sizes{k}}},",
                memory.temps_bytes, memory.scratch_bytes
            )
            .expect("text");
            case.arguments.iter().for_each(|argument| input.extend_from_slice(argument.bytes()));
            shapes.push(results);
        }
        let main = format!(
            "{MAIN}\n{declarations}\nstatic const struct program programs[] = {{\n{table}}};\n\n\
             int main(void) {{\n  size_t k;\n  for (k = 0; k < {}; ++k) run(&programs[k]);\n  return 0;\n}}\n",
            cases.len()
        );
        std::fs::write(folder.path().join("main.c"), main).expect("written");
        let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
        let mut link = Command::new(self.compiler);
        link.current_dir(folder.path()).args(["-static", "-O1", "-D_GNU_SOURCE", "-I"]).arg(headers);
        if let Some(source) = self.source {
            std::fs::write(folder.path().join("emulator.c"), source).expect("written");
            link.arg("emulator.c");
        }
        let linked =
            link.args(["main.c", "-o", "program"]).args(&objects).arg("-lm").output().expect("a compiler");
        assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
        let output = self.output(&folder.path().join("program"), input);
        let mut rest = &output[..];
        let mut next = |shape: &ArrayShape| {
            let (bytes, after) = rest.split_at_checked(shape.byte_size() as usize).expect("a whole result");
            rest = after;
            Literal::from_bytes(shape.clone(), bytes.to_vec().into()).expect("the result's size")
        };
        shapes.iter().map(|shapes| shapes.iter().map(&mut next).collect()).collect()
    }

    /// Runs a program with this input.
    fn output(&self, program: &Path, input: Vec<u8>) -> Vec<u8> {
        let words = self.command.iter().map(|&word| word.into()).chain([program.as_os_str().to_owned()]);
        let words: Vec<std::ffi::OsString> = words.collect();
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("an emulator");
        let mut stdin = child.stdin.take().expect("an input");
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("an output");
        assert!(output.status.success(), "{}: {}", self.name(), output.status);
        writer.join().expect("no panic").expect("the program reads everything");
        output.stdout
    }
}
