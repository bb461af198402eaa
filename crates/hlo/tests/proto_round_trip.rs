//! Conversion of modules to protocol buffers and back: all modules in `tests/hlo`, and damaged
//! messages.

use hlo::proto::{is_hlo_proto, read_hlo_proto, to_hlo_module_proto_bytes, to_hlo_snapshot_bytes};
use hlo::{Module, parse};
use std::path::{Path, PathBuf};

fn files(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of tests") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "hlo") {
            paths.push(path);
        }
    }
}

/// A deterministic generator of numbers below a limit.
fn numbers_below(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |limit| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    }
}

/// The modules of the file tests that messages can represent.
fn modules() -> Vec<(PathBuf, Module, Vec<u8>)> {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hlo"), &mut paths);
    paths.sort();
    let module = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        let start = text.find("HloModule")?;
        let module = parse(&text[start..]).ok()?;
        let bytes = to_hlo_module_proto_bytes(&module).ok()?;
        Some((path, module, bytes))
    };
    paths.into_iter().filter_map(module).collect()
}

#[test]
fn written_messages_read_back() {
    let modules = modules();
    assert!(modules.len() > 15, "{} modules", modules.len());
    for (path, module, bytes) in modules {
        assert!(is_hlo_proto(&bytes), "{}", path.display());
        let (read, arguments) = match read_hlo_proto(&bytes) {
            Ok(read) => read,
            // Some files contain invalid modules, which text can represent and messages cannot.
            Err(_) if hlo::verify(&module).is_err() => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        assert!(arguments.is_empty());
        let again = to_hlo_module_proto_bytes(&read).expect("expected a module that can be written again");
        assert!(again == bytes, "{}\n{}", path.display(), text(&module, &read));
        let snapshot = to_hlo_snapshot_bytes(&module).expect("expected a snapshot of the module");
        let (read, _) = read_hlo_proto(&snapshot).expect("a snapshot");
        assert!(
            to_hlo_module_proto_bytes(&read).expect("expected a module that can be written again") == bytes,
            "{}",
            path.display()
        );
    }
}

fn text(module: &Module, read: &Module) -> String {
    let text = Module::to_text;
    format!("written:\n{}\nread:\n{}", text(module), text(read))
}

/// `messages/NAME.pb` is XLA's serialization of the adjacent text (`scripts/hlo_texts.py protos`).
/// All layouts, shardings, schedules, collectives, calls, and origins that both formats can
/// represent must be preserved.
#[test]
fn messages_of_xla_are_the_modules_of_their_texts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    assert_eq!(paths.len(), 4);
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a text");
        let bytes = std::fs::read(path.with_extension("pb")).expect("its message");
        let (read, _) = read_hlo_proto(&bytes).expect("a message of XLA's");
        let written = parse(&text).expect("a text of XLA's").to_text();
        assert_eq!(read.to_text(), written, "{}", path.display());
    }
}

/// The inverse direction: the text's annotations are stored in the fields that XLA uses.
#[test]
fn texts_become_the_same_messages_as_in_xla() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages"), &mut paths);
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a text");
        let written = to_hlo_module_proto_bytes(&parse(&text).expect("a text of XLA's"));
        let (read, _) =
            read_hlo_proto(&written.expect("expected a field for everything")).expect("a message");
        let reference = std::fs::read(path.with_extension("pb")).expect("its message");
        let (reference, _) = read_hlo_proto(&reference).expect("a message of XLA's");
        assert_eq!(read.to_text(), reference.to_text(), "{}", path.display());
    }
}

#[test]
fn damaged_texts_become_messages_or_errors() {
    let mut below = numbers_below(11);
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages"), &mut paths);
    let (mut written, mut rejected) = (0, 0);
    for path in paths {
        let text = std::fs::read_to_string(path).expect("a text");
        for _ in 0..400 {
            let mut damaged = text.clone().into_bytes();
            // Most damage affects annotations, which only the writer of messages interprets.
            let at = below(damaged.len());
            damaged[at] = b"{}()[],:=<T0a\" "[below(15)];
            let Ok(module) = parse(&String::from_utf8_lossy(&damaged)) else { continue };
            match to_hlo_module_proto_bytes(&module) {
                Ok(_) => written += 1,
                Err(_) => rejected += 1,
            }
        }
    }
    assert!(written > 100 && rejected > 50, "{written} written, {rejected} rejected");
}

#[test]
fn a_module_of_empty_instructions_is_rejected() {
    // A module with one computation of half a million instructions without any bytes.
    let count = 500_000;
    let mut bytes = vec![0x1a];
    let length = 2 * count;
    bytes.extend([length as u8 & 0x7f | 0x80, (length >> 7) as u8 & 0x7f | 0x80, (length >> 14) as u8]);
    bytes.extend([0x12, 0].repeat(count));
    assert!(!is_hlo_proto(&bytes) && read_hlo_proto(&bytes).is_err());
}

#[test]
fn damaged_messages_never_panic() {
    let mut below = numbers_below(5);
    let (mut accepted, mut rejected) = (0, 0);
    let mut messages: Vec<Vec<u8>> = modules().into_iter().map(|(_, _, bytes)| bytes).collect();
    let mut texts = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages"), &mut texts);
    let references = texts.iter().map(|path| std::fs::read(path.with_extension("pb")).expect("a message"));
    messages.extend(references);
    for bytes in messages {
        for _ in 0..100 {
            let mut damaged = bytes.clone();
            for _ in 0..=below(2) {
                let at = below(damaged.len());
                damaged[at] = below(256) as u8;
            }
            match read_hlo_proto(&damaged) {
                Ok(_) => accepted += 1,
                Err(_) => rejected += 1,
            }
        }
    }
    assert!(accepted > 50 && rejected > 500, "{accepted} accepted, {rejected} rejected");
}
