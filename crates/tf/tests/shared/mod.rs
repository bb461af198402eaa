//! Location of the large test data.

#[allow(dead_code, reason = "some of the test files take it")]
pub mod interpreter;
#[allow(dead_code, reason = "some of the test files take it")]
pub mod well_formed;

use std::path::{Path, PathBuf};

/// `$TFCOMPILE_SHARED/oracle`, relative to the checkout's root, where `../shared` is the default;
/// it need not exist.
#[allow(dead_code, reason = "some of the test files take it")]
pub fn oracle() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(std::env::var_os("TFCOMPILE_SHARED").unwrap_or("../shared".into())).join("oracle")
}

/// A folder of it, or `None` where it may be absent and is.
#[allow(dead_code, reason = "one of the test files takes what there is")]
pub fn folder(name: &str) -> Option<PathBuf> {
    let folder = oracle().join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no test data in {}", folder.display());
    eprintln!("skipped: no test data in {}", folder.display());
    None
}
