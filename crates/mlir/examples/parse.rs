//! Parses files.
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        match mlir::parse(&text) {
            Ok(m) => println!("ok {path} {}", m.values.len()),
            Err(e) => println!("FAIL {path}: {e}"),
        }
    }
}
