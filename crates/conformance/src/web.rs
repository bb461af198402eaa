//! Runs graphs as modules for the web in one long-lived process of Node, Deno, or another engine.

use crate::case::Case;
use crate::engine::input;
use compiler::{AotOptions, BackOptions, NoObserver};
use hlo::Interface;
use serde_json::{Value, json};
use shape::Literal;
use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use support::{Error, Result};
use tempfile::TempDir;

/// The program that the engine runs.
const DRIVER: &str = include_str!("web/driver.mjs");

/// Number of threads with which programs for threads run again. The bits must be the same.
const THREADS: u32 = 3;

/// A process of an engine for JavaScript, which runs modules.
pub struct JavaScript {
    target: target::Target,
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
    directory: TempDir,
    /// Number of modules so far. The engine keeps each under its name.
    count: Cell<usize>,
}

impl JavaScript {
    /// The command that runs Node.
    pub const NODE: &str = "node --experimental-wasm-relaxed-simd";

    /// Starts the process for a target by its short name: `wasm32`. The command is a program and
    /// its arguments, separated by spaces; the path of a script is added to it.
    ///
    /// Fails if there is no such target, or no such program.
    pub fn start(target: &str, command: &str) -> Result<Self> {
        let target = target::named(target)?;
        let failed = |e: std::io::Error| {
            Error::invalid(format!("cannot run '{command}': {e}; install it (Node.js must be 20 or newer)"))
        };
        let directory = TempDir::new().map_err(failed)?;
        let driver = directory.path().join("driver.mjs");
        std::fs::write(&driver, DRIVER).map_err(failed)?;
        let mut words = command.split_whitespace();
        let mut child = Command::new(words.next().unwrap_or_default())
            .args(words)
            .arg(driver)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::internal("the process has no pipes"));
        };
        let pipes = RefCell::new((input, BufReader::new(output)));
        Ok(Self { target, child, pipes, directory, count: Cell::new(0) })
    }

    /// Compiles a case's graph, and runs the module.
    pub fn compile_and_run(&self, case: &Case) -> Result<Vec<Literal>> {
        let number = self.count.replace(self.count.get() + 1);
        let name = format!("case{number}");
        let back = BackOptions::new(self.target.clone(), &name);
        let options = AotOptions { web: Some(name.clone()), ..AotOptions::new("Case", back) };
        let (web, interface) = compiler::guarded(|| {
            let program = input(case)?.source.import(&mut NoObserver)?;
            let outputs = compiler::build(input(case)?, &options, &mut NoObserver)?;
            let web = outputs.web.ok_or_else(|| Error::internal("no module for the web"))?;
            Ok((web, program.interface))
        })?;
        let place = |file: &str| self.directory.path().join(file);
        let write = |file: &str, bytes: &[u8]| {
            std::fs::write(place(file), bytes)
                .map_err(|e| Error::internal(format!("cannot write {file}: {e}")))
        };
        write(&format!("{name}.js"), web.js.as_bytes())?;
        write(&format!("{name}.wasm"), &web.wasm)?;
        let arguments: Vec<&[u8]> = case.arguments.iter().map(|argument| &argument.bytes()[..]).collect();
        write("arguments", &arguments.concat())?;
        let answer = self.ask(&json!({
            "directory": self.directory.path(), "name": name, "threads": THREADS,
        }))?;
        let _ = std::fs::remove_file(place(&format!("{name}.wasm")));
        let _ = std::fs::remove_file(place(&format!("{name}.js")));
        if let Some(error) = answer["error"].as_str() {
            return Err(Error::internal(format!("JavaScript: {error}")));
        }
        let bytes = std::fs::read(place("results"));
        let bytes = bytes.map_err(|e| Error::internal(format!("cannot read the results: {e}")))?;
        literals(&interface, &answer["shapes"], &bytes)
    }

    fn ask(&self, question: &Value) -> Result<Value> {
        let mut pipes = self.pipes.borrow_mut();
        let mut line = String::new();
        let asked = writeln!(pipes.0, "{question}").and_then(|()| pipes.0.flush());
        asked
            .and_then(|()| pipes.1.read_line(&mut line))
            .map_err(|e| Error::internal(format!("the engine does not answer: {e}")))?;
        serde_json::from_str(&line).map_err(|e| Error::internal(format!("the engine answers '{line}': {e}")))
    }
}

impl Drop for JavaScript {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the results, cut to their true sizes.
fn literals(interface: &Interface, shapes: &Value, mut bytes: &[u8]) -> Result<Vec<Literal>> {
    let mut results = Vec::new();
    for (k, result) in interface.results().iter().enumerate() {
        let whole = result.whole();
        let size = whole.byte_size() as usize;
        let missing = || Error::internal(format!("result {k} has too few bytes"));
        let (own, rest) = bytes.split_at_checked(size).ok_or_else(missing)?;
        bytes = rest;
        let literal = Literal::from_bytes(whole.clone(), own.to_vec().into()).ok_or_else(missing)?;
        let sizes: Option<Vec<i64>> =
            shapes[k].as_array().and_then(|sizes| sizes.iter().map(Value::as_i64).collect());
        let sizes = sizes.ok_or_else(|| Error::internal(format!("result {k} has no sizes")))?;
        let corner = literal.corner(&sizes);
        results.push(corner.ok_or_else(|| Error::internal(format!("result {k} has the sizes {sizes:?}")))?);
    }
    Ok(results)
}
