//! The documentation's table of ops is made from the rules: it has to be current. `make docs` writes it anew.

use std::path::PathBuf;

#[test]
fn the_table_of_ops_is_current() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/ops.md");
    let table = import::op_table();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &table).expect("docs/ops.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let stale = written.lines().zip(table.lines()).position(|(a, b)| a != b);
    assert!(written == table, "docs/ops.md is stale from line {stale:?} on: run `make docs`");
}
