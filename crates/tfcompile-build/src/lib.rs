//! Compiles models in build scripts.
//!
//! ```no_run
//! // build.rs
//! tfcompile_build::Model::new("model/scorer.pbtxt").config("model/scorer.config.pbtxt").compile();
//! ```
//!
//! The program depends on `tfcompile-runtime` and takes the struct in with `tfcompile_runtime::include_model!("scorer");`. See
//! `examples/cargo` and `docs/cargo.md` of tfcompile's repository.
//!
//! The script runs the tool `tfcompile` (that of the environment variable `TFCOMPILE`, or of `PATH`) instead of linking the
//! compiler: nobody who builds the program has to have LLVM or to compile a compiler, and all programs of a machine are
//! compiled by one version of it.

mod inputs;
mod tool;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a model was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// A model to compile, and how.
#[derive(Clone, Debug)]
pub struct Model {
    path: PathBuf,
    name: Option<String>,
    config: Option<PathBuf>,
    checkpoint: Option<PathBuf>,
    no_std: bool,
    constants_file: bool,
    arguments: Vec<OsString>,
    inputs: Vec<PathBuf>,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// What the Rust module, the library and the constants file are called.
    pub name: String,
    /// Where they are.
    pub directory: PathBuf,
    /// The constants file, if there is one.
    pub constants: Option<PathBuf>,
}

impl Model {
    /// A model as `tfcompile build` takes it: a SavedModel's directory, a GraphDef, a MetaGraph, StableHLO or HLO. Paths are relative to
    /// the package.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            name: None,
            config: None,
            checkpoint: None,
            no_std: false,
            constants_file: false,
            arguments: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// What the model is called in `include_model!`, and the C symbol; the name of its file otherwise. The struct is called the same
    /// in camel case, or as [`Model::class`] says.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The struct's name.
    pub fn class(self, class: impl AsRef<str>) -> Self {
        self.argument(format!("--class={}", class.as_ref()))
    }

    /// Feeds, fetches and variables: a `tensorflow.tf2xla.Config` file. Without, the tool infers them.
    pub fn config(mut self, path: impl Into<PathBuf>) -> Self {
        self.config = Some(path.into());
        self
    }

    /// The values of the variables: a checkpoint's file, or the prefix of its files.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some(path.into());
        self
    }

    /// The signature of a SavedModel.
    pub fn signature(self, key: impl AsRef<str>) -> Self {
        self.argument(format!("--signature={}", key.as_ref()))
    }

    /// A program without Rust's standard library: the struct holds all memory, and may be a static.
    pub fn no_std(mut self, no_std: bool) -> Self {
        self.no_std = no_std;
        self
    }

    /// Leaves the weights out of the program, in a file that it loads: [`Built::constants`].
    pub fn constants_file(mut self, constants_file: bool) -> Self {
        self.constants_file = constants_file;
        self
    }

    /// One more argument of `tfcompile build`. Flags with a value have the form `--flag=value`.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// One more file that the result depends on, which an argument names.
    pub fn depends_on(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(path.into());
        self
    }

    /// Compiles the model for the target of the build, links its library to the package, and has Cargo run the build script again
    /// when the model or the tool has changed. Ends the build script with a message if anything is wrong.
    pub fn compile(self) -> Built {
        match self.try_compile() {
            Ok(built) => built,
            Err(error) => {
                // Cargo shows it as an error of its own, the first line of what it prints.
                println!("cargo::error={}", error.0.replace('\n', " "));
                eprintln!("{error}");
                std::process::exit(1);
            }
        }
    }

    /// As [`Model::compile`], for scripts that have something to do about an error.
    pub fn try_compile(self) -> Result<Built, Error> {
        let directory = PathBuf::from(variable("OUT_DIR")?);
        let target = variable("TARGET")?;
        let tool = tool::find()?;
        println!("cargo::rerun-if-env-changed={}", tool::VARIABLE);
        let inputs = [Some(&self.path), self.config.as_ref()].into_iter().flatten().chain(&self.inputs);
        let checkpoint = self.checkpoint.iter().flat_map(|path| inputs::checkpoint_files(path));
        for path in inputs.cloned().chain(checkpoint).chain([tool.clone()]) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        let name = match &self.name {
            Some(name) => name.clone(),
            None => inputs::name_of(&self.path)?,
        };
        self.run(&tool, &target, &name, &directory)?;
        println!("cargo::rustc-link-search=native={}", directory.display());
        println!("cargo::rustc-link-lib=static={name}");
        let constants = self.constants_file.then(|| directory.join(format!("{name}.constants")));
        if let Some(constants) = &constants {
            println!("cargo::rustc-env={}_CONSTANTS={}", name.to_ascii_uppercase(), constants.display());
        }
        Ok(Built { name, directory, constants })
    }

    fn run(&self, tool: &Path, target: &str, name: &str, directory: &Path) -> Result<(), Error> {
        let mut command = Command::new(tool);
        let flag = |flag: &str, value: &OsStr| {
            let mut text = OsString::from(flag);
            text.push(value);
            text
        };
        command.args(["build", "--quiet", "--emit=rust,archive"]);
        command.arg(format!("--name={name}")).arg(flag("--output=", directory.as_os_str()));
        command.args(tool::target_flags(target, &self.arguments));
        if let Some(config) = &self.config {
            command.arg(flag("--config=", config.as_os_str()));
        }
        if let Some(checkpoint) = &self.checkpoint {
            command.arg(flag("--checkpoint=", checkpoint.as_os_str()));
        }
        if self.no_std {
            command.arg("--freestanding");
        }
        if self.constants_file {
            command.arg("--constants=file");
        }
        command.args(&self.arguments).arg("--").arg(&self.path);
        let output = command
            .output()
            .map_err(|e| Error(format!("cannot run '{}': {e}; {}", tool.display(), tool::HOW_TO_SAY)))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Error(match said.trim() {
            "" => format!("'{}' ended with {}", tool.display(), output.status),
            said => format!("{}: {said}", self.path.display()),
        }))
    }
}

fn variable(name: &str) -> Result<String, Error> {
    std::env::var(name)
        .map_err(|_| Error(format!("{name} is not set: call this from a build script that Cargo runs")))
}
