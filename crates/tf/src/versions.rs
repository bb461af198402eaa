//! Versions of graphs, as `versions.proto` describes them.

use crate::proto::VersionDef;
use support::{Code, Coded as _, Error, Result};

/// The version of graphs of TensorFlow 2.15.1, whose ops this crate knows (`TF_GRAPH_DEF_VERSION`).
const GRAPH_VERSION: i32 = 1645;

/// Returns an error if a graph states that TensorFlow 2.15.1 cannot read it.
pub fn check_versions(versions: Option<&VersionDef>) -> Result<()> {
    let Some(versions) = versions else { return Ok(()) };
    let problem = if versions.min_consumer > GRAPH_VERSION {
        format!("its min_consumer is {}", versions.min_consumer)
    } else if versions.bad_consumers.contains(&GRAPH_VERSION) {
        format!("its bad_consumers contain {GRAPH_VERSION}")
    } else {
        return Ok(());
    };
    Err(Error::unsupported(format!(
        "the graph's `versions` exclude version {GRAPH_VERSION} of graphs, that of TensorFlow 2.15.1, which this compiler reads: \
         {problem}; export the model with TensorFlow 2.15"
    )))
    .coded(Code::Graph)
}
