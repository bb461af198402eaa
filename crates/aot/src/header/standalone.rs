//! Embeds the runtime's headers in a generated one. Each keeps its include guard, so a program may
//! include several standalone headers and also the separate ones.

use super::text::Text;
use crate::runtime_headers;
use std::collections::BTreeSet;
use support::{Error, Result};

/// Headers that take longer to compile than all others: path, macro that requests the header, and
/// explanation.
const ON_REQUEST: [(&str, &str, &str); 3] = [
    (
        "tfcompile/thread_pool.h",
        "TFCOMPILE_WITH_THREAD_POOL",
        "Define TFCOMPILE_WITH_THREAD_POOL for tfcompile::ThreadPool and SetThreadPool.",
    ),
    (
        "tfcompile/eigen_thread_pool.h",
        "EIGEN_USE_THREADS",
        "For set_thread_pool() define EIGEN_USE_THREADS and include Eigen's Tensor before this header.",
    ),
    (
        "tfcompile/state.h",
        "TFCOMPILE_WITH_STATE",
        "Define TFCOMPILE_WITH_STATE for tfcompile::SaveVariables and LoadVariables.",
    ),
];

/// Appends runtime headers and everything that they include, once each, and optional headers.
pub(super) fn embed(out: &mut Text, paths: &[&str]) -> Result<()> {
    let mut emitted_paths = BTreeSet::new();
    for path in paths {
        embed_one(out, path, &mut emitted_paths)?;
    }
    for (path, macro_name, comment) in ON_REQUEST {
        out.comment(comment);
        out.line(&format!("#ifdef {macro_name}"));
        embed_one(out, path, &mut emitted_paths)?;
        out.line(&format!("#endif  // {macro_name}"));
        out.blank();
    }
    Ok(())
}

/// Appends one header and everything that it includes, unless already present.
pub(crate) fn embed_one(out: &mut Text, path: &str, emitted_paths: &mut BTreeSet<String>) -> Result<()> {
    if !emitted_paths.insert(path.to_string()) {
        return Ok(());
    }
    let (_, content) = runtime_headers()
        .iter()
        .find(|(known, _)| *known == path)
        .ok_or_else(|| Error::internal(format!("unknown runtime header '{path}'")))?;
    // The headers that this one includes before its first declaration come first, outside of its
    // include guard.
    let first = content.lines().position(is_code).unwrap_or(content.len());
    for included in content.lines().take(first).filter_map(runtime_include) {
        embed_one(out, included, emitted_paths)?;
    }
    out.comment(&format!("---- {path} ----"));
    out.blank();
    for (number, line) in content.lines().enumerate() {
        match runtime_include(line) {
            None => out.line(line),
            Some(included) if number > first => embed_one(out, included, emitted_paths)?,
            Some(_) => {}
        }
    }
    out.blank();
    Ok(())
}

/// True if a line is neither empty, nor a comment, nor a directive.
fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//") && !line.starts_with('#')
}

/// Returns the path if a line includes a header of the runtime.
fn runtime_include(line: &str) -> Option<&str> {
    let path = line.trim().strip_prefix("#include \"")?.strip_suffix('"')?;
    path.starts_with("tfcompile/").then_some(path)
}
