//! `run --jit`: the clusters of a session, and the graphs that clustering dumps.

use crate::args::xla_flags::XlaFlags;
use cluster::{Observer, Options};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use tf::proto::GraphDef;

/// Clustering for a session's graphs.
pub(crate) fn rewrite(options: Options, xla: &XlaFlags) -> session::Rewrite {
    let is_debug = options.flags.clustering_debug;
    let directory = xla.graphs_to.clone().filter(|_| is_debug).map(PathBuf::from);
    let has_no_directory = is_debug && directory.is_none();
    let mut dump = GraphDump { directory, written: BTreeMap::new() };
    if has_no_directory {
        dump.warning(
            "--tf_xla_clustering_debug has no effect: set TF_DUMP_GRAPH_PREFIX to the directory for its graphs",
        );
    }
    session::clusters(options, Box::new(dump))
}

/// Writes graphs under TensorFlow's names: `mark_for_compilation.pbtxt`, then
/// `mark_for_compilation_1.pbtxt`.
struct GraphDump {
    directory: Option<PathBuf>,
    written: BTreeMap<String, usize>,
}

impl Observer for GraphDump {
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
        // If standard error is closed, there is nowhere to report that.
        let _ = writeln!(std::io::stderr(), "warning: {text}");
    }
}

/// Tables of `--xla_hlo_profile`, one per cluster, sorted by the names of the clusters' nodes.
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
