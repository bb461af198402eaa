//! Inputs that `make fuzz-readers` found, read again: those that reach most of the readers' code,
//! and those that were once findings.

#[path = "../../../fuzz/readers/src/table.rs"]
mod table;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use table::READERS;

/// Bytes of the stack on which the tool reads files.
const STACK_BYTES: usize = 128 << 20;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/readers")
}

/// The inputs in an archive, with their names.
fn inputs(path: &Path) -> Vec<(String, Vec<u8>)> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut archive = zip::ZipArchive::new(file).expect("an archive");
    let count = archive.len();
    let read = |at| {
        let mut member = archive.by_index(at).expect("a member");
        let mut content = Vec::new();
        member.read_to_end(&mut content).expect("readable");
        (member.name().expect("a name").into_owned(), content)
    };
    (0..count).map(read).collect()
}

#[test]
fn inputs_found_by_fuzzing_are_read_or_refused() {
    for reader in READERS {
        let inputs = inputs(&corpora().join(format!("{}.zip", reader.name)));
        assert!(!inputs.is_empty(), "{}", reader.name);
        let run = move || {
            for (name, content) in &inputs {
                let folder = tempfile::tempdir().expect("a folder");
                let result = std::panic::catch_unwind(|| (reader.read)(content, folder.path()));
                assert!(result.is_ok(), "reader '{}' panics on '{name}' of its archive", reader.name);
            }
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread");
        assert!(thread.join().is_ok(), "reader '{}'", reader.name);
    }
}

#[test]
fn every_archive_has_a_reader() {
    for entry in std::fs::read_dir(corpora()).expect("the folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(READERS.iter().any(|reader| reader.name == name), "{}", path.display());
    }
}
