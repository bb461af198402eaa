//! `run --jit`: which clusters a session makes, and the graphs that it shows on the way.

use crate::session_run::Jit;
use crate::xla_flags::XlaFlags;
use cluster::{JitLevel, Observer, Options};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use tf::proto::GraphDef;

/// The clustering of a session's graphs for a level and the flags of `TF_XLA_FLAGS`.
pub(crate) fn rewrite(jit: Jit, xla: &XlaFlags) -> session::Rewrite {
    let mut flags = xla.jit.clone();
    let level = match jit {
        Jit::Off => JitLevel::Off,
        Jit::On | Jit::One => JitLevel::On1,
        Jit::Two => JitLevel::On2,
    };
    // Whoever asks on the command line asks for this machine, which is a CPU.
    flags.cpu_global_jit |= level > JitLevel::Off;
    let directory = xla.graphs_to.clone().filter(|_| flags.clustering_debug).map(PathBuf::from);
    let is_lost = flags.clustering_debug && directory.is_none();
    let mut shown = Shown { directory, written: BTreeMap::new() };
    if is_lost {
        shown.warning("--tf_xla_clustering_debug shows nothing: set TF_DUMP_GRAPH_PREFIX to the directory for its graphs");
    }
    session::clusters(Options::new(level, flags), Box::new(shown))
}

/// Writes graphs under TensorFlow's names: `mark_for_compilation.pbtxt`, then `mark_for_compilation_1.pbtxt`.
struct Shown {
    directory: Option<PathBuf>,
    written: BTreeMap<String, usize>,
}

impl Observer for Shown {
    fn wants_graphs(&self) -> bool {
        self.directory.is_some()
    }

    fn graph(&mut self, name: &str, graph: &GraphDef) {
        let Some(directory) = self.directory.clone() else { return };
        let count = self.written.entry(name.to_owned()).or_default();
        let file = match *count {
            0 => format!("{name}.pbtxt"),
            count => format!("{name}_{count}.pbtxt"),
        };
        *count += 1;
        let path = directory.join(file);
        let text = tf::source::graph_def_to_text(graph);
        if let Err(error) = std::fs::create_dir_all(&directory).and_then(|()| std::fs::write(&path, text)) {
            self.warning(&format!("cannot write '{}': {error}", path.display()));
        }
    }

    fn warning(&mut self, text: &str) {
        // Nobody is left to tell if standard error is closed.
        let _ = writeln!(std::io::stderr(), "warning: {text}");
    }
}
