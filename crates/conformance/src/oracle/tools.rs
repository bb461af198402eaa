//! The programs that a check runs, each with a time limit: the tool, the C++ compiler, `nm`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a compilation, and for a program with all its cases, on an idle machine.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Symbols that an object may leave undefined.
const ALLOWED_UNDEFINED: [&str; 3] = ["memcpy", "memset", "memmove"];

/// Name passed to the `build` command, from which it derives file names.
const BUILD_NAME: &str = "model";

/// Programs and settings of the checks.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The `tfcompile` under test.
    pub tool: PathBuf,
    /// The C++ compiler.
    pub cxx: String,
    /// The directory that generated headers include from.
    pub include: PathBuf,
    /// More flags for the tool.
    pub flags: Vec<String>,
    /// True to use the tool's `build` command instead of the original's command line.
    pub build: bool,
    /// Command that compiles C source, with which the `build` command replaces objects; empty for
    /// objects.
    pub c_source: Vec<String>,
    /// More flags for the C++ compiler.
    pub cxx_flags: Vec<String>,
    /// Command that lists symbols.
    pub nm: String,
    /// Command that runs programs, with its flags; empty for programs of this machine.
    pub run: Vec<String>,
    /// Prefixes of further symbols that an object may leave undefined.
    pub undefined: Vec<String>,
    /// Sizes of thread pools. Programs also run the model on each pool, and compare the bits with
    /// those of one thread.
    pub threads: Vec<usize>,
    /// Time limit per command.
    pub limit: Duration,
}

impl Default for Tools {
    /// Uses the release build and this machine's tools.
    fn default() -> Self {
        Self {
            tool: "target/release/tfcompile".into(),
            cxx: "g++".to_owned(),
            include: PathBuf::new(),
            flags: Vec::new(),
            build: false,
            c_source: Vec::new(),
            cxx_flags: Vec::new(),
            nm: "nm".to_owned(),
            run: Vec::new(),
            undefined: Vec::new(),
            threads: Vec::new(),
            limit: TIME_LIMIT,
        }
    }
}

/// Output of a program.
pub(super) struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub time: Duration,
}

/// A model to compile.
pub(super) struct Model<'a> {
    pub graph: &'a Path,
    pub settings: Settings<'a>,
    /// `--cpp_class`.
    pub class: &'a str,
    pub entry_point: &'a str,
}

/// Source of feeds, fetches, and variables.
pub(super) enum Settings<'a> {
    /// A config file.
    Config(&'a Path),
    /// A fetched node, from which the tool infers the rest.
    Fetch(&'a str),
}

/// A compiled model.
pub(super) struct Compiled {
    pub object: PathBuf,
    pub header: PathBuf,
    /// The object with the header's data, unless there is C source.
    pub metadata: Option<PathBuf>,
    /// Duration of the compilation.
    pub time: Duration,
    /// Size of the object.
    pub bytes: u64,
}

impl Tools {
    /// Runs the tool to write its own C++ headers to `work`.
    pub fn write_headers(&mut self, work: &Path) -> Result<(), String> {
        std::fs::create_dir_all(work).map_err(|e| format!("{}: {e}", work.display()))?;
        let include = work.join("include");
        let output = run(
            Command::new(&self.tool).arg("headers").arg("-o").arg(&include),
            work,
            "headers",
            self.limit,
        )?;
        if !output.status.success() {
            return Err(format!("tfcompile headers: {}", describe_output(&output)));
        }
        self.include = include;
        Ok(())
    }

    /// True if a model requires the `build` command: the original's command line has no flag for
    /// fetches.
    fn builds(&self, model: &Model<'_>) -> bool {
        self.build || !self.c_source.is_empty() || matches!(model.settings, Settings::Fetch(_))
    }

    /// Returns the tool's command line for a model, with outputs in `work`.
    pub(super) fn command(&self, model: &Model<'_>, work: &Path) -> Vec<String> {
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let settings = match model.settings {
            Settings::Config(path) => flag("config", path),
            Settings::Fetch(node) => format!("--fetch={node}"),
        };
        if self.builds(model) {
            let mut words = vec!["build".to_owned(), model.graph.display().to_string()];
            words.extend([
                settings,
                format!("--class={}", model.class),
                format!("--name={BUILD_NAME}"),
                flag("output", work),
                if self.c_source.is_empty() { "--emit=obj,header,metadata" } else { "--emit=c,header" }
                    .to_owned(),
                "--quiet".to_owned(),
            ]);
            words.extend(self.flags.iter().cloned());
            return words;
        }
        let mut words = vec![
            flag("graph", model.graph),
            settings,
            format!("--cpp_class={}", model.class),
            format!("--entry_point={}", model.entry_point),
            flag("out_function_object", &work.join("model.o")),
            flag("out_header", &work.join("model.h")),
            flag("out_metadata_object", &work.join("model_metadata.o")),
        ];
        words.extend(self.flags.iter().cloned());
        words
    }

    /// The tool, without the user's cache: the code is to be generated, and times to be comparable.
    fn without_cache(&self) -> Command {
        let mut command = Command::new(&self.tool);
        command.env("TFCOMPILE_KERNEL_CACHE", "");
        command
    }

    /// Compiles a model, and checks the undefined symbols of its object.
    pub(super) fn compile(&self, model: &Model<'_>, work: &Path) -> Result<Compiled, String> {
        let output =
            run(self.without_cache().args(self.command(model, work)), work, "tfcompile", self.limit)?;
        if !output.status.success() {
            return Err(format!("tfcompile: {}", describe_output(&output)));
        }
        if let Some((compiler, flags)) = self.c_source.split_first() {
            let mut command = Command::new(compiler);
            command.args(flags).arg("-c").arg(work.join("model.c")).arg("-o").arg(work.join("model.o"));
            let output = run(&mut command, work, "c_source", self.limit)?;
            if !output.status.success() || !output.stderr.is_empty() {
                return Err(format!("{compiler}: {}", describe_output(&output)));
            }
        }
        let object = existing(work, BUILD_NAME, &["o", "obj"]);
        let bytes = std::fs::metadata(&object).map_err(|e| format!("missing object: {e}"))?.len();
        let undefined = run(Command::new(&self.nm).arg("-u").arg(&object), work, "nm", self.limit)?;
        if !undefined.status.success() {
            return Err(format!("{}: {}", self.nm, describe_output(&undefined)));
        }
        let is_allowed = |symbol: &&str| {
            ALLOWED_UNDEFINED.contains(symbol) || self.undefined.iter().any(|start| symbol.starts_with(start))
        };
        let symbols = undefined.stdout.lines().filter_map(|line| line.split_whitespace().last());
        let others: Vec<&str> = symbols.filter(|symbol| !is_allowed(symbol)).collect();
        if !others.is_empty() {
            return Err(format!("the object has undefined symbols: {}", others.join(" ")));
        }
        let metadata = if self.builds(model) { "model.metadata" } else { "model_metadata" };
        Ok(Compiled {
            object,
            header: work.join("model.h"),
            metadata: self.c_source.is_empty().then(|| existing(work, metadata, &["o", "obj"])),
            time: output.time,
            bytes,
        })
    }

    /// Returns the command that runs a program.
    pub(super) fn runner(&self, program: &Path) -> Command {
        match self.run.split_first() {
            None => Command::new(program),
            Some((runner, flags)) => {
                let mut command = Command::new(runner);
                command.args(flags).arg(program);
                command
            }
        }
    }

    /// Builds a program from C++ source and a compiled model.
    pub(super) fn link(&self, source: &Path, compiled: &Compiled, work: &Path) -> Result<PathBuf, String> {
        let program = work.join("program");
        let mut command = Command::new(&self.cxx);
        command.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(&self.cxx_flags);
        command.arg("-I").arg(&self.include).arg("-I").arg(work).arg(source).arg(&compiled.object);
        command.args(&compiled.metadata).arg("-o").arg(&program);
        let output = run(&mut command, work, "cxx", self.limit)?;
        if output.status.success() {
            Ok(existing(work, "program", &["", "exe"]))
        } else {
            Err(format!("{}: {}", self.cxx, describe_output(&output)))
        }
    }
}

/// Returns the path of a file whose extension depends on the target's system: that of the existing
/// file, or with the first extension.
fn existing(directory: &Path, stem: &str, extensions: &[&str]) -> PathBuf {
    let mut paths = extensions.iter().map(|extension| match *extension {
        "" => directory.join(stem),
        extension => directory.join(format!("{stem}.{extension}")),
    });
    let first = paths.next().expect("an extension");
    if first.exists() { first } else { paths.find(|path| path.exists()).unwrap_or(first) }
}

/// Runs a program until it exits or exceeds its time limit. Its outputs are redirected to files in
/// `work`, so that large outputs cannot block it.
pub(super) fn run(command: &mut Command, work: &Path, name: &str, limit: Duration) -> Result<Output, String> {
    let files = [work.join(format!("{name}.stdout")), work.join(format!("{name}.stderr"))];
    let create = |path: &PathBuf| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(create(&files[0])?)
        .stderr(create(&files[1])?)
        .spawn()
        .map_err(|e| format!("cannot run {}: {e}", command.get_program().to_string_lossy()))?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        if start.elapsed() > limit {
            // Both fail only if it has just exited.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{name} took longer than {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let time = start.elapsed();
    let read = |path: &PathBuf| std::fs::read(path).map(|data| String::from_utf8_lossy(&data).into_owned());
    let stdout = read(&files[0]).map_err(|e| e.to_string())?;
    let stderr = read(&files[1]).map_err(|e| e.to_string())?;
    Ok(Output { status, stdout, stderr, time })
}

/// Returns the first lines of a program's output, for a message.
pub(super) fn describe_output(output: &Output) -> String {
    let text = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(6).collect();
    format!("{}: {}", output.status, lines.join(" | "))
}
