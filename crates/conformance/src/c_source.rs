//! Objects from C source: the compiler writes C, and a C compiler makes an object of it.

use compiler::{BackOptions, CVectors};
use std::io::Write as _;
use std::process::{Command, Stdio};
use support::{Error, Result};
use target::Target;

/// A C compiler of this machine, and the form of the C source.
pub struct Compiler {
    words: Vec<String>,
    vectors: CVectors,
    cpu: String,
}

impl Compiler {
    /// `command` is the compiler with its flags. It reads C from its input.
    pub fn new(command: &str, is_plain: bool, cpu: Option<&str>) -> Self {
        Self {
            words: command.split_whitespace().map(str::to_owned).collect(),
            vectors: if is_plain { CVectors::None } else { CVectors::Gcc },
            cpu: cpu.unwrap_or("x86-64-v3").to_owned(),
        }
    }

    /// The target for which programs are planned.
    pub fn target(&self) -> Result<Target> {
        Ok(compiler::c_plan_target(&compiler::host(&self.cpu)?, self.vectors))
    }

    /// Options with which the code becomes C.
    pub fn options(&self, options: BackOptions) -> BackOptions {
        BackOptions { c_source: Some(self.vectors), ..options }
    }

    /// Compiles C source to an object. Warnings fail, too.
    pub fn compile(&self, source: &[u8]) -> Result<Vec<u8>> {
        let failed = |what: String| Error::internal(format!("{}: {what}", self.words.join(" ")));
        let (program, flags) = self.words.split_first().ok_or_else(|| failed("no compiler".to_owned()))?;
        let directory = tempfile::tempdir().map_err(|e| failed(e.to_string()))?;
        let (input, object) = (directory.path().join("program.c"), directory.path().join("program.o"));
        std::fs::File::create(&input)
            .and_then(|mut file| file.write_all(source))
            .map_err(|e| failed(e.to_string()))?;
        let run = Command::new(program)
            .args(flags)
            .args(["-fPIC", "-c", "-o"])
            .args([&object, &input])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failed(e.to_string()))?;
        if !run.status.success() || !run.stderr.is_empty() {
            let text = String::from_utf8_lossy(&run.stderr);
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(4).collect();
            return Err(failed(lines.join(" | ")));
        }
        std::fs::read(&object).map_err(|e| failed(e.to_string()))
    }
}
