//! The C++ program around a compiled model, and its protocol.
//!
//! The program first reports the sizes of its arguments and results. On each `c`, it creates a new
//! object and reads all variables. On each `r`, it reads all feeds, runs, and answers with a status
//! byte, all results, and all variables. Other objects do the same: one with a `parallel_for` that
//! runs the parts of each loop sequentially, last part first, as three workers; and one per
//! requested number of threads, with a pool of that size. The program exits if any of them differs
//! in a bit.

use super::config::Config;
use super::tools::{Compiled, Model, Tools};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Maximum size of an argument or result.
const SIZE_LIMIT: u64 = 1 << 32;

/// A running program.
pub(super) struct Session {
    child: Arc<Mutex<Child>>,
    /// `None` after the end of the conversation.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    feed_sizes: Vec<u64>,
    variable_sizes: Vec<u64>,
    result_sizes: Vec<u64>,
    /// Dropped when the session ends, which ends the watchdog thread.
    _alive: Sender<()>,
    /// The limit, once it is exceeded.
    late: Arc<OnceLock<Duration>>,
    /// Cost of the model, for a remark.
    pub remark: String,
}

/// Result of one run: the results, then the variables, as bytes.
pub(super) struct Answer {
    pub results: Vec<Vec<u8>>,
    pub variables: Vec<Vec<u8>>,
}

/// Compiles a model, builds its program, and starts it.
pub(super) fn start(
    tools: &Tools,
    model: &Model<'_>,
    config: &Config,
    work: &Path,
) -> Result<Session, String> {
    let compiled = tools.compile(model, work)?;
    let source = work.join("main.cc");
    std::fs::write(&source, source_text(model.class, config, &tools.threads)).map_err(|e| e.to_string())?;
    let program = tools.link(&source, &compiled, work)?;
    Session::start(tools.runner(&program), config, &compiled, tools.limit)
}

/// Returns the program's source, which also runs the model on a pool for each of `threads`.
fn source_text(class: &str, config: &Config, threads: &[usize]) -> String {
    let (feeds, variables) = (config.feeds.len(), config.variables.len());
    let mut sizes = String::new();
    let mut answers = String::new();
    let mut comparisons = String::new();
    let mut pools = String::new();
    // Some machines have no threads.
    let pool_header = if threads.is_empty() { "" } else { "#include \"tfcompile/thread_pool.h\"" };
    for n in threads {
        writeln!(
            pools,
            "  static tfcompile::ThreadPool pool_{n}({n});\n  all.push_back({{std::make_unique<Model>(), \"{n} threads\"}});\n  \
             all.back().model->set_thread_pool(&pool_{n});"
        )
        .expect("a string takes all");
    }
    for i in 0..config.fetches.len() {
        writeln!(sizes, "  put_size(static_cast<std::size_t>(model->result{i}_size()));")
            .expect("a string takes all");
        writeln!(
            answers,
            "    put(model->result{i}_data(), static_cast<std::size_t>(model->result{i}_size()));"
        )
        .expect("a string takes all");
        writeln!(
            comparisons,
            "      same(twin, model->result{i}_data(), twin.model->result{i}_data(), static_cast<std::size_t>(model->result{i}_size()));"
        )
        .expect("a string takes all");
    }
    format!(
        r#"#include "model.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

{pool_header}

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
// The streams carry bytes, not lines.
static void make_binary() {{
  _setmode(_fileno(stdin), _O_BINARY);
  _setmode(_fileno(stdout), _O_BINARY);
}}
#else
static void make_binary() {{}}
#endif

using Model = {class};

static void take(void* to, std::size_t size) {{
  if (std::fread(to, 1, size, stdin) != size) std::exit(3);
}}
static void put(void const* from, std::size_t size) {{
  if (std::fwrite(from, 1, size, stdout) != size) std::exit(4);
}}
static void put_size(std::size_t size) {{
  std::uint64_t const wide = size;
  put(&wide, sizeof wide);
}}

// An object with parallel loops, and a description of its threads.
struct Twin {{
  std::unique_ptr<Model> model;
  char const* how;
}};
static void same(Twin const& twin, void const* a, void const* b, std::size_t size) {{
  if (size == 0 || std::memcmp(a, b, size) == 0) return;
  std::fprintf(stderr, "%s: results differ from those with one thread\n", twin.how);
  std::exit(5);
}}
static std::int32_t backwards(void*, std::int64_t count, tfcompile_parallel_body body, void* data) {{
  std::int32_t status = 0;
  for (std::int64_t i = count - 1; i >= 0 && status == 0; --i) status = body(data, i, i + 1, i % 3);
  return status;
}}
static std::vector<Twin> twins() {{
  std::vector<Twin> all;
  all.push_back({{std::make_unique<Model>(), "the parts of loops, last part first"}});
  all.back().model->set_parallel_for(&backwards, nullptr, 3);
{pools}  return all;
}}

int main() {{
  make_binary();
  static_assert(Model::kNumArgs == {arguments}, "feeds and variables");
  auto model = std::make_unique<Model>();
  std::vector<Twin> others = twins();
  auto const size_of = [](int i) {{ return static_cast<std::size_t>(Model::ArgSize(i)); }};
  auto const take_all = [&](int i) {{
    take(model->arg_data(i), size_of(i));
    for (Twin const& twin : others) std::memcpy(twin.model->arg_data(i), model->arg_data(i), size_of(i));
  }};
  for (int i = 0; i < {arguments}; ++i) put_size(size_of(i));
{sizes}  std::fflush(stdout);
  for (int command; (command = std::getchar()) != EOF;) {{
    if (command == 'c') {{
      model = std::make_unique<Model>();
      others = twins();
      for (int i = {feeds}; i < {arguments}; ++i) take_all(i);
      continue;
    }}
    for (int i = 0; i < {feeds}; ++i) take_all(i);
    unsigned char fine = model->Run();
    for (Twin const& twin : others) {{
      if (!twin.model->Run()) fine = 0;
{comparisons}      for (int i = {feeds}; i < {arguments}; ++i) same(twin, model->arg_data(i), twin.model->arg_data(i), size_of(i));
    }}
    put(&fine, 1);
{answers}    for (int i = {feeds}; i < {arguments}; ++i) put(model->arg_data(i), size_of(i));
    std::fflush(stdout);
  }}
}}
"#,
        arguments = feeds + variables,
    )
}

impl Session {
    /// Starts a program with a time limit for all its cases together.
    fn start(
        mut program: Command,
        config: &Config,
        compiled: &Compiled,
        limit: Duration,
    ) -> Result<Self, String> {
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|e| format!("cannot run the program: {e}"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("piped above");
        let child = Arc::new(Mutex::new(child));
        let (alive, ended) = mpsc::channel::<()>();
        let watched = Arc::clone(&child);
        let late = Arc::new(OnceLock::new());
        let is_late = Arc::clone(&late);
        std::thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                // Set only here, once.
                let _ = is_late.set(limit);
                // Fails only if the program has just exited.
                let _ = watched.lock().map(|mut child| child.kill());
            }
        });
        let remark = format!(
            "object {} bytes, compiled in {} ms, header {} bytes",
            compiled.bytes,
            compiled.time.as_millis(),
            std::fs::metadata(&compiled.header).map_or(0, |m| m.len())
        );
        let mut session = Self {
            child,
            stdin,
            stdout,
            feed_sizes: Vec::new(),
            variable_sizes: Vec::new(),
            result_sizes: Vec::new(),
            _alive: alive,
            late,
            remark,
        };
        session.feed_sizes = session.sizes(config.feeds.len())?;
        session.variable_sizes = session.sizes(config.variables.len())?;
        session.result_sizes = session.sizes(config.fetches.len())?;
        Ok(session)
    }

    /// Creates a new object with these values of its variables.
    pub(super) fn new_case(&mut self, variables: &[&[u8]]) -> Result<(), String> {
        check_sizes("variable", variables, &self.variable_sizes)?;
        self.send(b"c", variables)
    }

    /// Runs the object on these feeds.
    pub(super) fn run(&mut self, feeds: &[&[u8]]) -> Result<Answer, String> {
        check_sizes("feed", feeds, &self.feed_sizes)?;
        self.send(b"r", feeds)?;
        if self.receive(1)? != [1] {
            return Err("Run() returned false".to_owned());
        }
        let (result_sizes, variable_sizes) = (self.result_sizes.clone(), self.variable_sizes.clone());
        let results = result_sizes.iter().map(|&size| self.receive(size)).collect::<Result<_, _>>()?;
        let variables = variable_sizes.iter().map(|&size| self.receive(size)).collect::<Result<_, _>>()?;
        Ok(Answer { results, variables })
    }

    /// Ends the program, which must exit successfully.
    pub(super) fn finish(mut self) -> Result<String, String> {
        drop(self.stdin.take());
        let status = self.child.lock().expect("no thread panics while holding the lock").wait();
        match status {
            Ok(status) if status.success() => Ok(std::mem::take(&mut self.remark)),
            Ok(_) if self.late.get().is_some() => Err(self.took_too_long()),
            Ok(status) => Err(format!("the program exited with {status}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn send(&mut self, command: &[u8], parts: &[&[u8]]) -> Result<(), String> {
        let stdin = self.stdin.as_mut().expect("the conversation is not over");
        let mut sent = stdin.write_all(command);
        for part in parts {
            sent = sent.and_then(|()| stdin.write_all(part));
        }
        sent.and_then(|()| stdin.flush()).map_err(|_| self.end())
    }

    fn receive(&mut self, size: u64) -> Result<Vec<u8>, String> {
        let mut data = Vec::new();
        let read = (&mut self.stdout).take(size).read_to_end(&mut data);
        if read.is_ok() && data.len() as u64 == size { Ok(data) } else { Err(self.end()) }
    }

    fn sizes(&mut self, count: usize) -> Result<Vec<u64>, String> {
        let data = self.receive(8 * count as u64)?;
        let words = data.chunks_exact(8);
        let sizes: Vec<u64> =
            words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
        match sizes.iter().find(|&&size| size > SIZE_LIMIT) {
            Some(size) => Err(format!("an argument or result has {size} bytes, more than the limit")),
            None => Ok(sizes),
        }
    }

    fn took_too_long(&self) -> String {
        format!("the program took longer than {} s", self.late.get().map_or(0, Duration::as_secs))
    }

    /// Describes the early exit of the program.
    fn end(&self) -> String {
        let status = self.child.lock().expect("no thread panics while holding the lock").wait();
        match status {
            _ if self.late.get().is_some() => self.took_too_long(),
            Ok(status) => format!("the program exited early: {status}"),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Ok(mut child) = self.child.lock() {
            // Both fail only if it has exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn check_sizes(what: &str, actual: &[&[u8]], want: &[u64]) -> Result<(), String> {
    let actual: Vec<u64> = actual.iter().map(|part| part.len() as u64).collect();
    if actual == want { Ok(()) } else { Err(format!("expected {what}s of {want:?} bytes, got {actual:?}")) }
}
