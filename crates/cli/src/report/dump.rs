//! What XLA's own flags ask to see of a compilation: files in XLA's names, or text on standard error.

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

/// The longest name of a file; a longer one is written without the module's name.
const MAX_FILE_NAME: usize = 255;
/// Writes what the flags ask for while modules go by.
pub(crate) struct Dumper {
    flags: DumpFlags,
    module_name: String,
    /// The name of the passes that run, which stands in the names of files.
    pipeline: String,
    /// The files between passes so far.
    step: usize,
    /// The pass after which the module was seen last, and the module if it is to be written.
    last: String,
    pending: Option<Module>,
    /// The first thing that went wrong; the compilation goes on.
    error: Option<Error>,
}

impl Dumper {
    /// What the flags say.
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

    /// An error if something could not be written.
    pub(crate) fn finish(self) -> Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    fn wants(&self) -> bool {
        let chosen = self.flags.module_re.as_ref();
        self.flags.is_on() && chosen.is_none_or(|chosen| chosen.is_match(&self.module_name))
    }

    fn see(&mut self, point: Point<'_>, module: &Module) -> Result<()> {
        match point {
            Point::Imported => {
                // A program may be imported again, with what the first time has shown.
                (self.step, self.pending) = (0, None);
                module.name().clone_into(&mut self.module_name);
                self.graph(module, "before_optimizations")?;
                self.log("before optimizations", module);
                if self.wants() { self.write(module, "before_optimizations") } else { Ok(()) }
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
                if self.wants() { self.write(module, "cpu_after_optimizations") } else { Ok(()) }
            }
        }
    }

    /// Keeps a module that a pass has left, if modules between passes are asked for.
    fn keep_pending(&mut self, pass: &str, module: &Module) {
        pass.clone_into(&mut self.last);
        self.pending = self.flags.pass_re.is_some().then(|| module.clone());
    }

    /// Writes the module as it was before a pass, if this or the one before is asked for.
    fn between(&mut self, next: &str) -> Result<()> {
        let Some(module) = self.pending.take() else { return Ok(()) };
        let is_asked = |pass: &str| self.flags.pass_re.as_ref().is_some_and(|chosen| chosen.is_match(pass));
        if !self.wants() || !(is_asked(&self.last) || is_asked(next)) {
            return Ok(());
        }
        let Self { step, pipeline, last, .. } = &self;
        let suffix = format!("{step:04}.{pipeline}.after_{last}.before_{next}");
        self.step += 1;
        self.write(&module, &suffix)
    }

    /// The files of a module in all forms that are asked for.
    fn write(&self, module: &Module, suffix: &str) -> Result<()> {
        let name = file_name(&self.module_name, suffix);
        let mut forms = Vec::new();
        if self.flags.as_text {
            forms.push((Format::Text, "txt"));
        }
        for (is_asked, format, extension) in [
            (self.flags.as_proto, Format::Proto, "hlo.pb"),
            (self.flags.as_dot, Format::Dot, "dot"),
            (self.flags.as_html, Format::Html, "html"),
        ] {
            if is_asked {
                forms.push((format, extension));
            }
        }
        for (format, extension) in forms {
            let mut bytes = render(module, format, &Surroundings::default())?;
            if format == Format::Proto {
                // XLA's file holds the module in an HloProto, where memory is described beside it.
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
                    "{name} is binary, and no directory is given for it: add --xla_dump_to=DIR"
                )));
            }
            let text = String::from_utf8_lossy(bytes);
            return outputs::print(&format!("*** Begin {name} ***\n{text}\n*** End {name} ***\n"));
        }
        write_into(self.flags.directory(), name, bytes)
    }

    /// The old flag's picture of modules whose names match.
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

    /// The text on standard error, where the level of logging is that of XLA's text.
    fn log(&self, what: &str, module: &Module) {
        if self.flags.log_text {
            // Nobody is left to tell if standard error is closed.
            let _ = writeln!(std::io::stderr(), "HLO {what}:\n{}", module.to_text());
        }
    }

    /// What was said of memory, beside the optimised module.
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

/// Writes a file into a directory, which is made.
fn write_into(directory: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let output = Output { path: Path::new(directory).join(name), parts: vec![Cow::Borrowed(bytes)] };
    outputs::create_directories(std::slice::from_ref(&output))?;
    outputs::write(&[output])
}

/// `module_0000.NAME.SUFFIX`, as XLA names the files of the first module that it compiles.
fn file_name(module: &str, suffix: &str) -> String {
    let long = format!("module_0000.{module}.{suffix}");
    let name = if module.is_empty() || long.len() > MAX_FILE_NAME - ".hlo.pb".len() {
        format!("module_0000.{suffix}")
    } else {
        long
    };
    name.chars().map(|c| if "/\\[] ".contains(c) { '_' } else { c }).collect()
}

/// An observer beside another one.
pub(crate) struct Watch<'a> {
    inner: &'a mut dyn Observer,
    dumper: &'a mut Dumper,
}

impl<'a> Watch<'a> {
    /// Shows a compilation to both.
    pub(crate) fn new(inner: &'a mut dyn Observer, dumper: &'a mut Dumper) -> Self {
        Self { inner, dumper }
    }
}

impl Observer for Watch<'_> {
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String) {
        self.inner.ended(stage, detail);
        if stage == "buffers" && self.dumper.flags.as_text && self.dumper.wants() {
            let written = self.dumper.buffers(&detail());
            self.dumper.note(written);
        }
    }

    fn module(&mut self, point: Point<'_>, module: &Module) {
        self.inner.module(point, module);
        let seen = self.dumper.see(point, module);
        self.dumper.note(seen);
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
