//! Compares artifacts of `jax.export` with the texts of the same programs (`tests/stablehlo`), and
//! damages them.

use hlo::{Computation, InstructionId, Module};
use stablehlo::{Imported, import, read_export};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use support::Id;

/// The artifacts with the corresponding texts.
fn artifacts() -> Vec<(PathBuf, Vec<u8>, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo");
    let entries = std::fs::read_dir(&folder).expect("the folder of programs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jax"));
    paths.sort();
    assert!(paths.len() >= 60, "{} artifacts", paths.len());
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("an artifact");
        let text = std::fs::read_to_string(path.with_extension("mlir")).expect("the corresponding text");
        (path, bytes, text)
    };
    paths.into_iter().map(read).collect()
}

/// Describes a computation without names: operations, shapes, and operands by number. Equal results
/// share one number, because `jax.export` merges equal constants.
fn lines(module: &Module, computation: &Computation, depth: usize) -> Vec<String> {
    assert!(depth < 50, "recursive computations");
    let mut numbers: HashMap<InstructionId, usize> = HashMap::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut lines = Vec::new();
    for id in computation.post_order() {
        let instruction = &computation[id];
        let operands: Vec<usize> = instruction.operands().iter().map(|operand| numbers[operand]).collect();
        let mut op = instruction.op().clone();
        let mut line = String::new();
        for called in op.called_computations() {
            line.push_str(&lines_of(module, called, depth).join("\n"));
        }
        op.map_called_computations(|_| hlo::ComputationId::from_index(0));
        line.push_str(&format!("{op:?} {} {operands:?}", instruction.shape()));
        let next = known.len();
        let number = *known.entry(line.clone()).or_insert(next);
        if number == next {
            lines.push(line);
        }
        numbers.insert(id, number);
    }
    lines
}

fn lines_of(module: &Module, called: hlo::ComputationId, depth: usize) -> Vec<String> {
    lines(module, module.get(called).expect("a called computation"), depth + 1)
}

fn program(imported: &Imported) -> Vec<String> {
    lines(&imported.module, imported.module.entry_computation(), 0)
}

#[test]
fn artifacts_match_their_texts() {
    let mut compared = 0;
    for (path, bytes, text) in artifacts() {
        let from_text = import(&mlir::parse(&text).expect("a text")).expect("a program");
        let module = read_export(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let exported = import(&module).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // Artifacts contain expanded CHLO and complex functions. Another test checks that they
        // compute the same.
        if !text.contains("chlo.") && !text.contains("complex<") {
            assert_eq!(program(&exported), program(&from_text), "{}", path.display());
            compared += 1;
        }
        let shapes = |imported: &Imported| {
            let shape = imported.interface.program_shape();
            (shape.parameters, shape.result)
        };
        assert_eq!(shapes(&exported), shapes(&from_text));
        let names = |imported: &Imported| imported.interface.result_names();
        assert_eq!(names(&exported), names(&from_text), "{}", path.display());
    }
    assert!(compared > 45, "{compared} programs compared");
}

#[test]
fn arguments_have_their_python_names() {
    let (_, bytes, _) =
        artifacts().into_iter().find(|(path, ..)| path.ends_with("mlp.jax")).expect("mlp.jax");
    let exported = import(&read_export(&bytes).expect("an artifact")).expect("a program");
    let names = exported.interface.program_shape().parameter_names;
    assert_eq!(names, ["x", "w1", "b1", "w2", "b2"]);
}

/// A deterministic pseudorandom number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Changes some of the bytes: single ones, runs, and the length.
fn damage(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(out.len());
        match numbers.below(6) {
            0 => out[at] ^= 1 << numbers.below(8),
            1 => out[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][numbers.below(6)],
            2 => out.truncate(at.max(1)),
            3 => out.insert(at, numbers.below(256) as u8),
            4 => {
                out.remove(at);
            }
            _ => {
                let from = numbers.below(out.len());
                let count = numbers.below(16).min(out.len() - at.max(from));
                out.copy_within(from..from + count, at);
            }
        }
        if out.is_empty() {
            out.push(0);
        }
    }
    out
}

#[test]
fn damaged_artifacts_never_cause_a_panic() {
    let mut numbers = Numbers(8);
    let (mut rejected, mut accepted) = (0, 0);
    for (_, bytes, _) in artifacts() {
        // The bytecode after the tables, so that most of the damage reaches its reader.
        let start = bytes.windows(4).position(|window| window == mlir::BYTECODE_MAGIC).expect("bytecode");
        for round in 0..100 {
            let module = match round % 4 {
                0 => read_export(&damage(&bytes, &mut numbers)),
                _ => mlir::parse_bytecode(&damage(&bytes[start..], &mut numbers)),
            };
            match module.and_then(|module| import(&module)) {
                Ok(_) => accepted += 1,
                Err(_) => rejected += 1,
            }
        }
    }
    assert!(rejected > 1000 && accepted > 100, "{rejected} rejected, {accepted} accepted");
}
