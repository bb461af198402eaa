//! Compiles TensorFlow, StableHLO, and HLO models in Cargo build scripts.
//!
//! ```no_run
//! // build.rs
//! use tfcompile_build::Model;
//!
//! Model::new("model/scorer.pbtxt") // a SavedModel, GraphDef, StableHLO, or HLO
//!     .config("model/scorer.config.pbtxt") // optional: inferred if absent
//!     .argument("--batch=16") // any other flag of `tfcompile build`
//!     .compile();
//! ```
//!
//! The program itself depends on `tfcompile-runtime` and includes the generated struct with
//! `tfcompile_runtime::include_model!("scorer");`. The repository of tfcompile has a complete
//! project in `examples/cargo`, and its book describes the struct (`docs/cargo.md`).
//!
//! # The tool
//!
//! The build script runs the program `tfcompile`: the one that the environment variable `TFCOMPILE`
//! names, or else the one in `PATH`. The compiler is not linked into the build script, so building
//! your program requires neither LLVM nor a build of the compiler.
//!
//! The code is for the `TARGET` of the Cargo build. Cargo runs the script again when the model, its
//! config, its checkpoint, the tool, or `TFCOMPILE` changes.

mod inputs;
mod tool;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reason why a model was not compiled: the tool's message, or a problem with the build script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Model to compile, and the options of the compilation.
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

/// Output of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Base name of the Rust module, the library, and the constants file.
    pub name: String,
    /// Directory that holds them.
    pub directory: PathBuf,
    /// Constants file, if [`Model::constants_file`] asks for one.
    pub constants: Option<PathBuf>,
}

impl Model {
    /// Creates a description of the model at `path`, in any form that `tfcompile build` accepts:
    /// the directory of a SavedModel, a GraphDef, a MetaGraph, StableHLO, or HLO. Paths are
    /// relative to the package.
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

    /// Sets the name of the model in `include_model!`, which is also its C symbol. The default is
    /// the name of the model's file. The struct has the same name in camel case, unless
    /// [`Model::class`] sets another one.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the name of the struct.
    pub fn class(self, class: impl AsRef<str>) -> Self {
        self.argument(format!("--class={}", class.as_ref()))
    }

    /// Sets the file with the feeds, fetches, and variables, a `tensorflow.tf2xla.Config`. Without
    /// it, the tool infers them.
    pub fn config(mut self, path: impl Into<PathBuf>) -> Self {
        self.config = Some(path.into());
        self
    }

    /// Sets the checkpoint with the values of the variables: its file, or the prefix of its files.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some(path.into());
        self
    }

    /// Selects a signature of a SavedModel.
    pub fn signature(self, key: impl AsRef<str>) -> Self {
        self.argument(format!("--signature={}", key.as_ref()))
    }

    /// Generates code for programs without Rust's standard library. The struct then holds all of
    /// its memory and may be a `static`.
    pub fn no_std(mut self, no_std: bool) -> Self {
        self.no_std = no_std;
        self
    }

    /// Stores the weights in a separate file, [`Built::constants`], which the program loads.
    pub fn constants_file(mut self, constants_file: bool) -> Self {
        self.constants_file = constants_file;
        self
    }

    /// Compiles for a GPU: `cuda`, `cuda:sm_80,sm_90a` with architectures, or `opencl`. The program
    /// needs the feature `device` of `tfcompile-runtime`.
    pub fn gpu(self, name: impl AsRef<str>) -> Self {
        self.argument(format!("--target={}", name.as_ref()))
    }

    /// Adds an argument of `tfcompile build`. A flag with a value has the form `--flag=value`.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Declares a file on which the result depends, such as one that an argument names. Cargo runs
    /// the script again when it changes.
    pub fn depends_on(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(path.into());
        self
    }

    /// Compiles the model for the target of the Cargo build, links its library to the package, and
    /// declares the files that make Cargo run the script again. On an error, prints the message and
    /// exits with status 1.
    pub fn compile(self) -> Built {
        match self.try_compile() {
            Ok(built) => built,
            Err(error) => {
                // Cargo shows this line as an error.
                println!("cargo::error={}", error.0.replace('\n', " "));
                eprintln!("{error}");
                std::process::exit(1);
            }
        }
    }

    /// Like [`Model::compile`], but returns the error.
    ///
    /// # Errors
    /// Returns an error if Cargo's variables are not set, if the tool is missing, or if it fails.
    /// The error then contains the tool's message.
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
            .map_err(|e| Error(format!("cannot run '{}': {e}: {}", tool.display(), tool::HOW_TO_FIX)))?;
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
    std::env::var(name).map_err(|_| {
        Error(format!(
            "the environment variable {name} is not set: call this from a build script that Cargo runs"
        ))
    })
}
