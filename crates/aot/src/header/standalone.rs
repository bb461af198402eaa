//! The runtime's headers inside of a generated one. Each keeps its include guard, so a program may include several
//! standalone headers and the separate ones too.

use super::text::Text;
use crate::runtime_headers;
use std::collections::BTreeSet;
use support::{Error, Result};

/// The headers that cost more time to compile than all the rest: the macro that asks for each, and what it is for.
const ON_REQUEST: [(&str, &str, &str); 3] = [
    (
        "tfcompile/thread_pool.h",
        "TFCOMPILE_WITH_THREAD_POOL",
        "Define TFCOMPILE_WITH_THREAD_POOL for tfcompile::ThreadPool and SetThreadPool.",
    ),
    (
        "tfcompile/eigen_thread_pool.h",
        "EIGEN_USE_THREADS",
        "For set_thread_pool() include Eigen's Tensor before this header, with EIGEN_USE_THREADS defined.",
    ),
    (
        "tfcompile/state.h",
        "TFCOMPILE_WITH_STATE",
        "Define TFCOMPILE_WITH_STATE for tfcompile::SaveVariables and LoadVariables.",
    ),
];

/// Appends headers of the runtime and all that they include, each once; and others on request.
pub(super) fn embed(out: &mut Text, paths: &[&str]) -> Result<()> {
    let mut done = BTreeSet::new();
    for path in paths {
        embed_one(out, path, &mut done)?;
    }
    for (path, macro_name, comment) in ON_REQUEST {
        out.comment(comment);
        out.line(&format!("#ifdef {macro_name}"));
        embed_one(out, path, &mut done)?;
        out.line(&format!("#endif  // {macro_name}"));
        out.blank();
    }
    Ok(())
}

/// Appends one header and all that it includes, unless it is there.
pub(crate) fn embed_one(out: &mut Text, path: &str, done: &mut BTreeSet<String>) -> Result<()> {
    if !done.insert(path.to_string()) {
        return Ok(());
    }
    let (_, content) = runtime_headers()
        .iter()
        .find(|(known, _)| *known == path)
        .ok_or_else(|| Error::internal(format!("there is no runtime header {path}")))?;
    // What a header includes comes before it, outside of its include guard.
    for line in content.lines() {
        if let Some(included) = runtime_include(line) {
            embed_one(out, included, done)?;
        }
    }
    out.comment(&format!("---- {path} ----"));
    out.blank();
    for line in content.lines().filter(|line| runtime_include(line).is_none()) {
        out.line(line);
    }
    out.blank();
    Ok(())
}

/// The path, if a line includes a header of the runtime.
fn runtime_include(line: &str) -> Option<&str> {
    let path = line.trim().strip_prefix("#include \"")?.strip_suffix('"')?;
    path.starts_with("tfcompile/").then_some(path)
}
