//! Checks that parsing printed modules yields the same modules.

use filetest::generate;
use hlo::{Module, parse, verify};

/// True if both have the same computations, instruction by instruction.
fn same(a: &Module, b: &Module) -> bool {
    a.name() == b.name()
        && a.entry_computation().name() == b.entry_computation().name()
        && a.computations().count() == b.computations().count()
        && a.computations().zip(b.computations()).all(|((_, a), (_, b))| {
            a.name() == b.name() && a.root() == b.root() && a.instructions().eq(b.instructions())
        })
}

#[test]
fn random_modules_read_back_as_they_were_printed() {
    for seed in 0..300 {
        let module = generate::module(seed, 5 + seed as usize % 60);
        verify(&module).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{module}"));
        let text = module.to_text();
        let read = parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        assert!(same(&module, &read), "seed {seed}\n{text}\n{read}");
        assert_eq!(read.to_text(), text, "seed {seed}");
    }
}

#[test]
fn broken_texts_are_refused_or_read_but_never_panic() {
    let mut random = generate::Random::new(7);
    for seed in 0..200 {
        let mut bytes = generate::module(seed, 12).to_text().into_bytes();
        for _ in 0..4 {
            let (at, with) = (random.below(bytes.len()), random.below(bytes.len()));
            match random.below(3) {
                0 => bytes[at] = bytes[with],
                1 => bytes.truncate(bytes.len().max(at + 1) - at.min(9)),
                _ => bytes.insert(at, b"{}(),=%-\"/<>"[random.below(12)]),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(module) = parse(&text) {
            // Any parsed module can be printed and verified.
            let _ = (module.to_text(), verify(&module));
        }
    }
}
