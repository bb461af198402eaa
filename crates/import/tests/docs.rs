//! Checks that the pages about ops in docs/ are current; they are generated from the rules.

use std::path::PathBuf;

/// Writes the pages instead if `UPDATE_DOCS` is set.
#[test]
fn the_pages_about_ops_are_current() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (page, text) in import::op_pages() {
        let path = docs.join(&page);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(path.parent().expect("a page is in a folder")).expect("docs is writable");
            std::fs::write(&path, &text).expect("docs is writable");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        let stale = written.lines().zip(text.lines()).position(|(a, b)| a != b);
        assert!(written == text, "docs/{page} is out of date from line {stale:?} on: run `make docs`");
    }
}
