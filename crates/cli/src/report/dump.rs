//! Dumps that XLA's flags request: files with XLA's names, or text on standard error.

use crate::args::xla_flags::{DumpFlags, XlaFlags};
use crate::files::hlo_formats::{Format, Surroundings, render};
use crate::files::outputs;
use crate::files::outputs::Output;
use compiler::{Observer, Point};
use hlo::Module;
use std::borrow::Cow;
use std::io::Write as _;
use std::path::Path;
use support::{Error, Result};

/// Maximum length of a file name in bytes. A longer one omits the module's name.
const MAX_FILE_NAME: usize = 255;
/// Writes the requested dumps during a compilation.
pub(crate) struct Dumper {
    flags: DumpFlags,
    module_name: String,
    /// Name of the running pipeline, which is part of file names.
    pipeline: String,
    /// Number of files written between passes so far.
    step: usize,
    /// The last pass that changed the module, and the module if it may be written.
    last: String,
    pending: Option<Module>,
    /// The first error. It does not end the compilation.
    error: Option<Error>,
}

impl Dumper {
    /// Creates a dumper for these flags.
    pub(crate) fn new(flags: &XlaFlags) -> Self {
        Self {
            flags: flags.dump.clone(),
            module_name: String::new(),
            pipeline: String::new(),
            step: 0,
            last: String::new(),
            pending: None,
            error: None,
        }
    }

    /// Returns an error if any file could not be written.
    pub(crate) fn finish(self) -> Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    fn is_selected(&self) -> bool {
        let chosen = self.flags.module_re.as_ref();
        self.flags.is_on() && chosen.is_none_or(|chosen| chosen.is_match(&self.module_name))
    }

    fn observe(&mut self, point: Point<'_>, module: &Module) -> Result<()> {
        match point {
            Point::Imported => {
                // A program may be imported again. Discard the state of the first import.
                (self.step, self.pending) = (0, None);
                module.name().clone_into(&mut self.module_name);
                self.graph(module, "before_optimizations")?;
                self.log("before optimizations", module);
                if self.is_selected() { self.write(module, "before_optimizations") } else { Ok(()) }
            }
            Point::PipelineStart { pipeline } => {
                module.name().clone_into(&mut self.module_name);
                pipeline.clone_into(&mut self.pipeline);
                self.keep_pending("pipeline-start", module);
                Ok(())
            }
            Point::AfterPass { name, changed } => {
                self.between(name)?;
                if changed {
                    self.keep_pending(name, module);
                }
                Ok(())
            }
            Point::PipelineEnd => self.between("pipeline-end"),
            Point::Optimized => {
                self.graph(module, "cpu_after_optimizations")?;
                self.log("after optimizations", module);
                if self.is_selected() { self.write(module, "cpu_after_optimizations") } else { Ok(()) }
            }
        }
    }

    /// Keeps the module after a pass, if modules between passes are requested.
    fn keep_pending(&mut self, pass: &str, module: &Module) {
        pass.clone_into(&mut self.last);
        self.pending = self.flags.pass_re.is_some().then(|| module.clone());
    }

    /// Writes the module between two passes, if either of them is requested.
    fn between(&mut self, next: &str) -> Result<()> {
        let Some(module) = self.pending.take() else { return Ok(()) };
        let is_requested =
            |pass: &str| self.flags.pass_re.as_ref().is_some_and(|chosen| chosen.is_match(pass));
        if !self.is_selected() || !(is_requested(&self.last) || is_requested(next)) {
            return Ok(());
        }
        let Self { step, pipeline, last, .. } = &self;
        let suffix = format!("{step:04}.{pipeline}.after_{last}.before_{next}");
        self.step += 1;
        self.write(&module, &suffix)
    }

    /// Writes a module in all requested formats.
    fn write(&self, module: &Module, suffix: &str) -> Result<()> {
        let name = file_name(&self.module_name, suffix);
        let mut formats = Vec::new();
        if self.flags.as_text {
            formats.push((Format::Text, "txt"));
        }
        for (is_requested, format, extension) in [
            (self.flags.as_proto, Format::Proto, "hlo.pb"),
            (self.flags.as_dot, Format::Dot, "dot"),
            (self.flags.as_html, Format::Html, "html"),
        ] {
            if is_requested {
                formats.push((format, extension));
            }
        }
        for (format, extension) in formats {
            let mut bytes = render(module, format, &Surroundings::default())?;
            if format == Format::Proto {
                // XLA's file wraps the module in an HloProto, which can also describe buffers.
                bytes = hlo::proto::in_hlo_proto(&bytes);
            }
            self.put(&format!("{name}.{extension}"), &bytes, format.is_binary())?;
        }
        Ok(())
    }

    fn put(&self, name: &str, bytes: &[u8], is_binary: bool) -> Result<()> {
        if self.flags.directory() == "-" {
            if is_binary {
                return Err(Error::invalid(format!(
                    "cannot print the binary file {name}: name a directory with --xla_dump_to=DIR"
                )));
            }
            let text = String::from_utf8_lossy(bytes);
            return outputs::print(&format!("*** Begin {name} ***\n{text}\n*** End {name} ***\n"));
        }
        write_into(self.flags.directory(), name, bytes)
    }

    /// Writes the graph of modules whose names match `--xla_generate_hlo_graph`.
    fn graph(&self, module: &Module, suffix: &str) -> Result<()> {
        let Some(chosen) = &self.flags.generate_hlo_graph else { return Ok(()) };
        let computations = || module.computations().any(|(_, c)| chosen.is_match(c.name()));
        if !chosen.is_match(module.name()) && !computations() {
            return Ok(());
        }
        let bytes = render(module, Format::Dot, &Surroundings::default())?;
        let name = format!("{}.dot", file_name(module.name(), suffix));
        write_into(self.flags.graph_path.as_deref().unwrap_or("."), &name, &bytes)
    }

    /// Prints the module's text to standard error, if the log level requests it.
    fn log(&self, what: &str, module: &Module) {
        if self.flags.log_text {
            // If standard error is closed, there is nowhere to report that.
            let _ = writeln!(std::io::stderr(), "HLO {what}:\n{}", module.to_text());
        }
    }

    /// Writes the buffer assignment next to the optimized module.
    fn buffers(&mut self, text: &str) -> Result<()> {
        let name = file_name(&self.module_name, "cpu_after_optimizations-buffer-assignment.txt");
        self.put(&name, text.as_bytes(), false)
    }

    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }
}

/// Writes a file into a directory, and creates the directory if necessary.
fn write_into(directory: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let output = Output { path: Path::new(directory).join(name), parts: vec![Cow::Borrowed(bytes)] };
    outputs::create_directories(std::slice::from_ref(&output))?;
    outputs::write(&[output])
}

/// Name `module_0000.NAME.SUFFIX`, which XLA gives the files of the first module that it compiles.
fn file_name(module: &str, suffix: &str) -> String {
    let long = format!("module_0000.{module}.{suffix}");
    let name = if module.is_empty() || long.len() > MAX_FILE_NAME - ".hlo.pb".len() {
        format!("module_0000.{suffix}")
    } else {
        long
    };
    name.chars().map(|c| if "/\\[] ".contains(c) { '_' } else { c }).collect()
}

/// Observer that passes a compilation on to another observer and to a dumper.
pub(crate) struct Watch<'a> {
    inner: &'a mut dyn Observer,
    dumper: &'a mut Dumper,
}

impl<'a> Watch<'a> {
    /// Creates an observer for both.
    pub(crate) fn new(inner: &'a mut dyn Observer, dumper: &'a mut Dumper) -> Self {
        Self { inner, dumper }
    }
}

impl Observer for Watch<'_> {
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String) {
        self.inner.ended(stage, detail);
        if stage == "buffers" && self.dumper.flags.as_text && self.dumper.is_selected() {
            let result = self.dumper.buffers(&detail());
            self.dumper.note(result);
        }
    }

    fn module(&mut self, point: Point<'_>, module: &Module) {
        self.inner.module(point, module);
        let result = self.dumper.observe(point, module);
        self.dumper.note(result);
    }

    fn code(&mut self, llvm_ir: Option<&str>, assembly: Option<&str>) {
        self.inner.code(llvm_ir, assembly);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_xla_names_them() {
        assert_eq!(file_name("m", "before_optimizations"), "module_0000.m.before_optimizations");
        assert_eq!(file_name("a/b c", "x"), "module_0000.a_b_c.x");
        assert_eq!(file_name("", "x"), "module_0000.x");
        assert_eq!(file_name(&"m".repeat(250), "x"), "module_0000.x");
    }
}
