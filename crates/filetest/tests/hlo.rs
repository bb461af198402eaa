//! The file tests of `tests/hlo`.

use std::path::Path;

#[test]
fn hlo_file_tests_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hlo");
    match filetest::runner::run(&folder) {
        Ok(count) => println!("{count} file tests passed"),
        Err(failures) => panic!("{failures}"),
    }
}
