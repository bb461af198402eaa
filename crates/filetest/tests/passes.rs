//! Checks that passes preserve the results of random programs.
//!
//! `FUZZ_SECONDS=300 cargo test -p filetest --test passes` runs longer than the default of one
//! second. `FUZZ_SEED` sets the first seed.

use filetest::{oracle, programs};
use hlo::Module;
use std::time::{Duration, Instant};
use target::Target;

const PASSES: &[&str] = &[
    "call-inliner",
    "tuple-simplifier",
    "algebraic-simplifier",
    "constant-folding",
    "simplify-conditional",
    "algebraic-simplifier",
    "constant-folding",
    "convolution-canonicalization",
    "algebraic-simplifier",
    "constant-folding",
    "algebraic-simplifier",
    "cse",
    "dce",
    "row-fusion",
    "producer-duplication",
    "fusion",
    "multi-output-fusion",
    "dce",
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

/// Runs each pass alone on the program, then all of them in sequence.
fn check(program: &Module, seed: u64) -> Result<(), String> {
    for &name in PASSES {
        let pass = passes::by_name(name).expect("a pass of that name");
        let mut module = program.clone();
        oracle::run_pass(&*pass, &mut module)?;
        oracle::same_answers(program, &module, seed)
            .map_err(|why| format!("{name} alone: {why}\n{module}"))?;
    }
    let mut module = program.clone();
    for &name in PASSES {
        let pass = passes::by_name(name).expect("a pass of that name");
        let before = module.clone();
        oracle::run_pass(&*pass, &mut module)?;
        stays_plannable(&before, &module)
            .map_err(|why| format!("{name}: {why}\nbefore\n{before}\nafter\n{module}"))?;
        for round in 0..2 {
            let same = oracle::same_answers(&before, &module, seed + round);
            same.map_err(|why| format!("{name}: {why}\nbefore\n{before}\nafter\n{module}"))?;
        }
    }
    can_be_assigned(&module).map_err(|why| format!("{why}\n{module}"))?;
    let (again, pass) = (module.clone(), passes::by_name("dce").expect("dce is a pass"));
    oracle::run_pass(&*pass, &mut module)?;
    if module == again { Ok(()) } else { Err("a second run of dce changes the module".to_owned()) }
}

fn target() -> Target {
    Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "").expect("a target")
}

/// Checks that a program with a plan still has one after fusion.
fn stays_plannable(before: &Module, after: &Module) -> Result<(), String> {
    match plan::plan(before, &target()) {
        Ok(_) => plan::plan(after, &target()).map(drop).map_err(|error| format!("plan: {error}")),
        Err(_) => Ok(()),
    }
}

/// Checks that a program with a plan has an assignment that the checker accepts.
fn can_be_assigned(module: &Module) -> Result<(), String> {
    let Ok(plan) = plan::plan(module, &target()) else { return Ok(()) };
    let schedule = buffers::schedule(module, &plan);
    let assignment = buffers::assign(module, &plan, &schedule, &mut buffers::ConstantsPool::default())
        .map_err(|error| format!("assignment: {error}"))?;
    buffers::check(module, &plan, &schedule, &assignment).map_err(|error| format!("checker: {error}"))
}

#[test]
fn passes_keep_what_random_programs_compute() {
    let end = Instant::now() + Duration::from_secs(number("FUZZ_SECONDS", 1));
    let mut seed = number("FUZZ_SEED", 0);
    // Run a minimum number of programs, so that even a slow machine tests something.
    let first = seed;
    while Instant::now() < end || seed < first + 20 {
        let program = programs::program(seed, 6 + seed as usize % 40);
        hlo::verify(&program).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{program}"));
        check(&program, seed).unwrap_or_else(|why| panic!("seed {seed}: {why}\nprogram\n{program}"));
        seed += 1;
    }
    println!("{} programs", seed - first);
}

#[test]
fn passes_do_the_same_every_time() {
    for seed in 0..20 {
        let optimized = || {
            let mut module = programs::program(seed, 30);
            for &name in PASSES {
                let pass = passes::by_name(name).expect("a pass of that name");
                oracle::run_pass(&*pass, &mut module).expect("a valid module");
            }
            module.to_text()
        };
        assert_eq!(optimized(), optimized(), "seed {seed}");
    }
}
