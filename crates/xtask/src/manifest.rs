//! Dependencies of a `Cargo.toml` by section, which is all that the checks need.

/// A dependency of a crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The package's name.
    pub name: String,
    /// True if only tests use it.
    pub dev: bool,
}

/// The dependencies that a manifest names, in its order.
pub fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = None;
            // `[dependencies]`, `[target.'cfg(unix)'.dev-dependencies]`, `[dependencies.name]`.
            for (kind, dev) in
                [("dev-dependencies", true), ("build-dependencies", false), ("dependencies", false)]
            {
                if header == kind || header.ends_with(&format!(".{kind}")) {
                    section = Some(dev);
                    break;
                }
                if let Some(name) = header.strip_prefix(&format!("{kind}.")) {
                    found.push(Dependency { name: name.to_owned(), dev });
                    break;
                }
            }
        } else if let (Some(dev), Some((key, _))) = (section, line.split_once('=')) {
            let name = key.trim().split('.').next().unwrap_or_default().trim_matches('"');
            if !name.is_empty() && !name.starts_with('#') {
                found.push(Dependency { name: name.to_owned(), dev });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_dependency_is_seen() {
        let manifest = r#"
[package]
name = "x"
[dependencies]
shape.workspace = true
# hlo.workspace = true
bytes = { workspace = true, features = ["std"] }
[dev-dependencies]
filetest.workspace = true
[target.'cfg(unix)'.dependencies]
libc = "0.2"
[dependencies.zip]
version = "9"
[lints]
workspace = true
"#;
        let names: Vec<(String, bool)> =
            dependencies(manifest).into_iter().map(|d| (d.name, d.dev)).collect();
        let want = [("shape", false), ("bytes", false), ("filetest", true), ("libc", false), ("zip", false)];
        assert_eq!(names, want.map(|(name, dev)| (name.to_owned(), dev)));
    }
}
