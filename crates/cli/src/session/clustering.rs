//! `run --jit`: which clusters a session makes, and the graphs that it shows on the way.

use crate::args::xla_flags::XlaFlags;
use cluster::{Observer, Options};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use tf::proto::GraphDef;

/// The clustering of a session's graphs.
pub(crate) fn rewrite(options: Options, xla: &XlaFlags) -> session::Rewrite {
    let shows = options.flags.clustering_debug;
    let directory = xla.graphs_to.clone().filter(|_| shows).map(PathBuf::from);
    let is_lost = shows && directory.is_none();
    let mut shown = Shown { directory, written: BTreeMap::new() };
    if is_lost {
        shown.warning("--tf_xla_clustering_debug shows nothing: set TF_DUMP_GRAPH_PREFIX to the directory for its graphs");
    }
    session::clusters(options, Box::new(shown))
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

/// What `--xla_hlo_profile` counted, a table for each cluster, by the names of their nodes.
pub(crate) fn cluster_tables(session: &session::Session) -> String {
    let mut profiles = session.cluster_profiles();
    profiles.retain(|profile| profile.runs > 0);
    profiles.sort_by(|a, b| a.node.cmp(&b.node));
    let tables = profiles.iter().map(|profile| {
        let seconds = profile.time.as_secs_f64();
        let table = runner::hlo_profile(&profile.counters, &profile.ticks, profile.runs, seconds);
        format!("{}: {table}", profile.node)
    });
    tables.collect()
}
