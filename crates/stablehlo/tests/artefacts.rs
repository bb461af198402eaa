//! Artefacts of `jax.export` beside the texts of the same programs (`tests/stablehlo`), whole and damaged.

use hlo::{Computation, InstructionId, Module};
use stablehlo::{Imported, import, read_export};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use support::Id;

/// The artefacts with the texts beside them.
fn artefacts() -> Vec<(PathBuf, Vec<u8>, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo");
    let entries = std::fs::read_dir(&folder).expect("the folder of programs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jax"));
    paths.sort();
    assert!(paths.len() >= 60, "{} artefacts", paths.len());
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("an artefact");
        let text = std::fs::read_to_string(path.with_extension("mlir")).expect("the text beside it");
        (path, bytes, text)
    };
    paths.into_iter().map(read).collect()
}

/// What a computation does, without the names in it: operations, shapes, operands by number. What is computed twice has
/// one number: `jax.export` merges equal constants.
fn lines(module: &Module, computation: &Computation, depth: usize) -> Vec<String> {
    assert!(depth < 50, "computations call each other in a circle");
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
    lines(module, module.get(called).expect("a computation that is called"), depth + 1)
}

fn program(imported: &Imported) -> Vec<String> {
    lines(&imported.module, imported.module.entry_computation(), 0)
}

#[test]
fn artefacts_are_the_programs_of_their_texts() {
    let mut compared = 0;
    for (path, bytes, text) in artefacts() {
        let of_text = import(&mlir::parse(&text).expect("a text")).expect("a program");
        let module = read_export(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let exported = import(&module).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // CHLO and the mathematics of complex numbers are spelled out in artefacts. That they compute the same is another
        // test's matter.
        if !text.contains("chlo.") && !text.contains("complex<") {
            assert_eq!(program(&exported), program(&of_text), "{}", path.display());
            compared += 1;
        }
        let shapes = |imported: &Imported| {
            let shape = imported.interface.program_shape();
            (shape.parameters, shape.result)
        };
        assert_eq!(shapes(&exported), shapes(&of_text));
        let names = |imported: &Imported| imported.interface.result_names();
        assert_eq!(names(&exported), names(&of_text), "{}", path.display());
    }
    assert!(compared > 45, "{compared} programs compared");
}

#[test]
fn arguments_are_called_as_in_python() {
    let (_, bytes, _) =
        artefacts().into_iter().find(|(path, ..)| path.ends_with("mlp.jax")).expect("mlp.jax");
    let exported = import(&read_export(&bytes).expect("an artefact")).expect("a program");
    let names = exported.interface.program_shape().parameter_names;
    assert_eq!(names, ["x", "w1", "b1", "w2", "b2"]);
}

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Changes some bytes: single ones, runs of them, the length.
fn damage(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(damaged.len());
        match numbers.below(6) {
            0 => damaged[at] ^= 1 << numbers.below(8),
            1 => damaged[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][numbers.below(6)],
            2 => damaged.truncate(at.max(1)),
            3 => damaged.insert(at, numbers.below(256) as u8),
            4 => {
                damaged.remove(at);
            }
            _ => {
                let from = numbers.below(damaged.len());
                let count = numbers.below(16).min(damaged.len() - at.max(from));
                damaged.copy_within(from..from + count, at);
            }
        }
        if damaged.is_empty() {
            damaged.push(0);
        }
    }
    damaged
}

#[test]
fn damaged_artefacts_are_refused_or_read_but_never_panic() {
    let mut numbers = Numbers(8);
    let (mut refused, mut read) = (0, 0);
    for (_, bytes, _) in artefacts() {
        // The bytecode behind the tables, so that its reader sees most of the damage.
        let start = bytes.windows(4).position(|window| window == mlir::BYTECODE_MAGIC).expect("bytecode");
        for round in 0..100 {
            let module = match round % 4 {
                0 => read_export(&damage(&bytes, &mut numbers)),
                _ => mlir::parse_bytecode(&damage(&bytes[start..], &mut numbers)),
            };
            match module.and_then(|module| import(&module)) {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 1000 && read > 100, "{refused} refused, {read} read");
}
