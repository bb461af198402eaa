//! `tfcompile init`: creates a project that builds a model into a program, from the templates in
//! `build_systems/init`.

mod boards;

use crate::args::inference::InferArgs;
use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::artifacts::names;
use crate::files::outputs;
use crate::files::outputs::Output;
use crate::program::model::read;
use crate::program::model_files;
use crate::report::dump::Dumper;
use crate::report::progress::Progress;
use bytes::Bytes;
use clap::{Args, Parser, ValueEnum};
use compiler::Source;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use tf::proto::Config;

/// `tfcompile init`.
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// Directory to write to, created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Build system of the project
    #[arg(long, value_enum, value_name = "SYSTEM")]
    build: BuildSystem,
    /// Model, as for the other commands; it is copied into the project
    #[arg(long, value_name = "MODEL")]
    model: PathBuf,
    /// Feeds, fetches, and variables: a tensorflow.tf2xla.Config file [default: inferred from the
    /// graph, and written to the project]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Guides the inference of the config.
    #[command(flatten)]
    inference: InferArgs,
    /// Directory of the tfcompile release [default: the release that contains this tool]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

/// `--build`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BuildSystem {
    /// WORKSPACE and BUILD files
    Bazel,
    /// `find_package(tfcompile)`
    Cmake,
    /// A Rust program with a build script
    Cargo,
    /// GNU Make
    Make,
    /// A page that runs the model in the browser
    Web,
    /// The Raspberry Pi Pico SDK
    PicoSdk,
    /// An application for Zephyr
    Zephyr,
    /// A library for Arduino boards, with a sketch
    Arduino,
    /// A project for Espressif's ESP-IDF
    EspIdf,
    /// A solution for the CMSIS-Toolbox
    Cmsis,
}

/// Parser for the arguments of commands that read a model.
#[derive(Parser)]
struct Reading {
    #[command(flatten)]
    model: ModelArgs,
}

/// A file of the project: its path, and its text with placeholders.
type Template = (&'static str, &'static str);

macro_rules! template {
    ($to:literal, $from:literal) => {
        ($to, include_str!(concat!("../../../../build_systems/init/", $from)))
    };
}

const MAIN_CC: Template = template!("main.cc", "main.cc");

impl BuildSystem {
    fn templates(self) -> &'static [Template] {
        match self {
            Self::Bazel => &[
                MAIN_CC,
                template!("BUILD.bazel", "BUILD.bazel"),
                template!("WORKSPACE", "WORKSPACE"),
                template!(".bazelrc", "bazelrc"),
            ],
            Self::Cmake => &[MAIN_CC, template!("CMakeLists.txt", "CMakeLists.txt")],
            Self::Cargo => &[
                template!("Cargo.toml", "cargo/Cargo.toml"),
                template!("build.rs", "cargo/build.rs"),
                template!("src/main.rs", "cargo/main.rs"),
            ],
            Self::Make => &[MAIN_CC, template!("Makefile", "Makefile")],
            Self::Web => &[
                template!("index.html", "web/index.html"),
                template!("app.js", "web/app.js"),
                template!("build.sh", "web/build.sh"),
            ],
            Self::PicoSdk => boards::PICO_SDK,
            Self::Zephyr => boards::ZEPHYR,
            Self::Arduino => boards::ARDUINO,
            Self::EspIdf => boards::ESP_IDF,
            Self::Cmsis => boards::CMSIS,
        }
    }

    /// Argument that passes the config to the tool, if there is one.
    fn config(self, config: Option<&str>) -> String {
        match (self, config) {
            (_, None) => String::new(),
            (Self::Bazel, Some(path)) => format!("config = \"{path}\","),
            (Self::Cmake, Some(path)) => format!("CONFIG \"{path}\""),
            (Self::Cargo, Some(path)) => format!(".config(\"{path}\")"),
            (Self::PicoSdk | Self::Zephyr | Self::EspIdf, Some(path)) => {
                format!("\"--config=${{MODEL_DIRECTORY}}/{path}\"")
            }
            (Self::Make | Self::Web | Self::Arduino | Self::Cmsis, Some(path)) => format!("--config={path}"),
        }
    }

    /// True for projects whose programs run on boards.
    fn is_board(self) -> bool {
        matches!(self, Self::PicoSdk | Self::Zephyr | Self::Arduino | Self::EspIdf | Self::Cmsis)
    }

    /// Command that builds and runs the project.
    fn commands(self, prefix: &Path, name: &str) -> String {
        match self {
            Self::Bazel => "bazel run :app".to_owned(),
            Self::Cmake => "cmake -B build && cmake --build build && build/app".to_owned(),
            Self::Cargo => format!("TFCOMPILE={}/bin/tfcompile cargo run", prefix.display()),
            Self::Make => "make && ./app".to_owned(),
            Self::Web => "sh build.sh && python3 -m http.server".to_owned(),
            Self::PicoSdk => "cmake -B build && cmake --build build".to_owned(),
            Self::Zephyr => "west build -b BOARD".to_owned(),
            Self::Arduino => "sh build.sh".to_owned(),
            Self::EspIdf => "idf.py build".to_owned(),
            Self::Cmsis => format!("cbuild {name}.csolution.yml --packs"),
        }
    }
}

/// Writes the project.
pub(crate) fn run(arguments: &Init) -> Result<()> {
    let prefix = prefix(arguments)?;
    let reading = reading(arguments)?;
    let progress = &mut Progress::new(&reading, "init");
    let read = read(&reading, &[], progress, &mut Dumper::new(&XlaFlags::default()))?;
    let config = match &read.input.source {
        Source::Graph { config, .. } => Some(config),
        Source::Hlo(_) => None,
    };
    let name = names::name_of(&arguments.model);
    let program = boards::Program::new(arguments.build, &name, &read)?;
    let class = names::class_of(&name);
    let is_directory = arguments.model.is_dir();
    let base = if is_directory {
        arguments.model.as_path()
    } else {
        arguments.model.parent().unwrap_or(Path::new(""))
    };
    let mut copies: Vec<(PathBuf, Bytes)> = Vec::new();
    let of_model = ModelArgs { config: None, ..reading.clone() };
    for path in model_files::inputs(&of_model, None)? {
        let below = path.strip_prefix(base).unwrap_or(&path);
        copies.push((Path::new("model").join(below), tf::source::read_bytes(&path)?));
    }
    let model = match (is_directory, arguments.model.file_name()) {
        (false, Some(file)) => plain(&format!("model/{}", file.to_string_lossy()))?,
        _ => "model".to_owned(),
    };
    let config_path = config.map(|_| "model.config.pbtxt");
    let kind = match (arguments.build, is_directory) {
        (BuildSystem::Bazel, true) => "saved_model",
        (BuildSystem::Bazel, false) => "graph",
        (_, true) => "SAVED_MODEL",
        (_, false) => "GRAPH",
    };
    let bazel_files = arguments.build == BuildSystem::Bazel && is_directory;
    let values = [
        ("@NAME@", name.clone()),
        ("@CLASS@", class.clone()),
        ("@PREFIX@", plain(&prefix.display().to_string())?),
        ("@MODEL@", if bazel_files { ":model_files".to_owned() } else { model }),
        ("@MODEL_KIND@", kind.to_owned()),
        ("@MODEL_FILE@", copies.first().map(|(path, _)| path.display().to_string()).unwrap_or_default()),
        ("@CONFIG@", arguments.build.config(config_path)),
        ("@CAPITALS@", name.to_ascii_uppercase()),
        ("@RESULTS@", program.results),
        ("@ACCESSORS@", program.accessors.or_else(|| config.map(accessors)).unwrap_or_default()),
    ];
    let filled = |text: &str| values.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    let mut files: Vec<Output<'_>> = Vec::new();
    let mut add = |path: &Path, contents: Cow<'static, [u8]>| {
        files.push(Output { path: arguments.directory.join(path), parts: vec![contents] });
    };
    for (path, text) in arguments.build.templates() {
        let text = filled(text);
        // Drop lines whose only content was a placeholder without a value.
        let lines = text.lines().filter(|line| line.is_empty() || !line.trim().is_empty());
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        add(Path::new(&filled(path)), Cow::Owned(text.into_bytes()));
    }
    if let (Some(config), Some(path)) = (config, config_path) {
        add(Path::new(path), Cow::Owned(tf::source::config_to_text(config).into_bytes()));
    }
    for (path, bytes) in copies {
        add(&path, Cow::Owned(bytes.to_vec()));
    }
    if let Some(existing) = files.iter().find(|file| file.path.symlink_metadata().is_ok()) {
        return Err(Error::invalid(format!(
            "'{}' already exists: name another directory, or remove it",
            existing.path.display()
        )));
    }
    outputs::create_directories(&files)?;
    outputs::write(&files)?;
    let list: String = files.iter().map(|file| format!("{}\n", file.path.display())).collect();
    let commands = arguments.build.commands(&prefix, &name);
    outputs::print(&format!("{list}next: cd {} && {commands}\n", arguments.directory.display()))
}

/// Arguments that other commands would take for this model.
fn reading(arguments: &Init) -> Result<ModelArgs> {
    let mut words: Vec<std::ffi::OsString> = vec!["tfcompile".into(), "--quiet".into()];
    if let Some(config) = &arguments.config {
        words.extend(["--config".into(), config.into()]);
    }
    words.extend(["--".into(), arguments.model.clone().into_os_string()]);
    let parsed = Reading::try_parse_from(words);
    let mut reading = parsed.map_err(|e| Error::invalid(crate::args::parse::message(&e)))?.model;
    reading.inference = arguments.inference.clone();
    Ok(reading)
}

/// Directory that contains the files for build systems.
fn prefix(arguments: &Init) -> Result<PathBuf> {
    let tool = || std::env::current_exe().ok()?.parent()?.parent().map(Path::to_path_buf);
    let directory = arguments.prefix.clone().or_else(tool).unwrap_or_default();
    // Pages and boards need nothing but the tool.
    let is_needed = arguments.build != BuildSystem::Web && !arguments.build.is_board();
    if is_needed && !directory.join("lib/cmake/tfcompile/tfcompileConfig.cmake").is_file() {
        return Err(Error::invalid(format!(
            "no files for build systems found in '{}': name the directory of an unpacked release with --prefix, such \
             as the one that `make release` writes",
            directory.display()
        )));
    }
    std::path::absolute(&directory)
        .map_err(|e| Error::invalid(format!("cannot find the directory '{}': {e}", directory.display())))
}

/// Returns a path that needs no quoting in the files of any build system, or an error for one that
/// does.
fn plain(path: &str) -> Result<String> {
    if path.chars().all(|c| c.is_alphanumeric() || "/._-+".contains(c)) {
        Ok(path.to_owned())
    } else {
        Err(Error::invalid(format!(
            "'{path}' contains characters that are special to build systems: use only letters, digits, and / . _ - +"
        )))
    }
}

/// Comments that list the accessors of each feed and result whose name is a C++ identifier.
fn accessors(config: &Config) -> String {
    let feeds = config.feed.iter().map(|feed| ("arg", feed.name.as_str()));
    let fetches = config.fetch.iter().map(|fetch| ("result", fetch.name.as_str()));
    let names = feeds.chain(fetches).filter(|(_, name)| aot::is_identifier(name));
    let lines =
        names.map(|(kind, name)| format!("//   model.{kind}_{name}_data(), model.{kind}_{name}_count()\n"));
    lines.collect()
}
