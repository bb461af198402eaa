//! Candidates: all plans that could be chosen compute the same results as the evaluator.

use crate::harness::{Loaded, Numbers, Tolerance, Values, difference, random, targets};
use hlo::Module;
use plan::{Candidate, Choices, InstructionPlan, Options, Rationale, Winograd};
use shape::{ArrayShape, Literal, PrimitiveType};
use std::sync::Arc;
use target::Target;

/// Returns a contraction with a bias and a maximum. The right operand is a constant or a parameter.
fn module(op: &str, [lhs, rhs, result]: [&[i64]; 3], is_constant: bool) -> Module {
    let shape =
        |sizes: &[i64]| format!("f32[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
    let array = ArrayShape::new(PrimitiveType::F32, rhs);
    let right = if is_constant {
        let values = random(&array, Values::Tame, &mut Numbers::new(5));
        let text = hlo::text::literal_to_text(&values);
        format!("constant({})", text.split_once(' ').expect("a type and values").1)
    } else {
        "parameter(2)".to_owned()
    };
    let (last, columns) = (result.len() - 1, result[result.len() - 1]);
    let (lhs, rhs, result) = (shape(lhs), shape(rhs), shape(result));
    let text = format!(
        "HloModule m\n\nfused {{\n  x = {lhs} parameter(0)\n  b = f32[{columns}] parameter(1)\n  y = {rhs} parameter(2)\n  \
         d = {result} {op}\n  bs = {result} broadcast(b), dimensions={{{last}}}\n  s = {result} add(d, bs)\n  \
         ROOT r = {result} maximum(s, bs)\n}}\n\nENTRY main {{\n  p = {lhs} parameter(0)\n  q = f32[{columns}] parameter(1)\n  \
         w = {rhs} {right}\n  ROOT f = {result} fusion(p, q, w), kind=kOutput, calls=fused\n}}\n"
    );
    hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn cases() -> Vec<(&'static str, Module)> {
    let dot = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let same = "convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    let strided = "convolution(x, y), window={size=3x2 stride=2x1 pad=1_0x0_1}, dim_labels=b01f_01io->b01f";
    let depthwise = "convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=41";
    let gradient = "convolution(x, y), window={size=9x7 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf";
    vec![
        ("dot", module(dot, [&[37, 45], &[45, 75], &[37, 75]], false)),
        ("dot of a constant", module(dot, [&[37, 45], &[45, 75], &[37, 75]], true)),
        ("dot in passes", module(dot, [&[19, 1100], &[1100, 70], &[19, 70]], true)),
        ("row", module(dot, [&[1, 130], &[130, 90], &[1, 90]], true)),
        ("convolution", module(same, [&[2, 9, 7, 5], &[3, 3, 5, 37], &[2, 9, 7, 37]], true)),
        ("its kernel given", module(same, [&[1, 11, 8, 7], &[3, 3, 7, 70], &[1, 11, 8, 70]], false)),
        ("strided", module(strided, [&[1, 11, 9, 3], &[3, 2, 3, 50], &[1, 5, 9, 50]], true)),
        ("depthwise", module(depthwise, [&[1, 13, 11, 41], &[3, 3, 1, 41], &[1, 13, 11, 41]], true)),
        ("gradient", module(gradient, [&[3, 9, 7, 6], &[3, 9, 7, 35], &[3, 3, 6, 35]], false)),
    ]
}

/// Returns the plan of the module's only kernel with a candidate, and the options that select it.
fn planned(module: &Module, target: &Target, candidate: Option<Candidate>) -> (InstructionPlan, Options) {
    let mut choices = Choices::default();
    let entry = module.entry_computation();
    let fusion = plan::Fusion::of(module, entry, entry.root()).expect("a fusion");
    let kernel = plan::tuning::kernel(&fusion).expect("a contraction");
    if let Some(candidate) = candidate {
        choices.set(&plan::tuning::machine(target), &kernel, candidate);
    }
    // Round trip through the text of a file.
    let choices = Choices::parse(&choices.to_text(), "tuning").expect("expected valid choices");
    let options = Options { choices: Arc::new(choices), ..Options::default() };
    let plans = plan::plan_with(module, target, &options).expect("a plan");
    assert_eq!(plans.ignored_choices, Vec::<String>::new());
    (plans.computations[&module.entry()].instructions[&entry.root()].clone(), options)
}

fn candidates(module: &Module, target: &Target) -> Vec<Candidate> {
    let entry = module.entry_computation();
    plan::candidates(module, entry, entry.root(), target, &Options::default())
}

#[test]
fn the_rules_choice_is_the_first_candidate_and_each_becomes_the_plan() {
    let new = |triple, cpu, features| Target::new(triple, cpu, features).expect("a triple");
    let targets = [
        new("x86_64-pc-linux", "", ""),
        new("x86_64-pc-linux", "x86-64-v3", ""),
        new("x86_64-pc-linux", "x86-64-v4", ""),
        new("aarch64-linux-gnu", "", ""),
        new("armv7-unknown-linux-gnueabihf", "", "+neon"),
        new("riscv64-unknown-linux-gnu", "", "+v"),
    ];
    for (name, module) in cases() {
        for target in &targets {
            let all = candidates(&module, target);
            assert!(all.len() <= plan::MAX_CANDIDATES, "{name}");
            let (default, _) = planned(&module, target, None);
            assert_eq!(all.first().copied(), Candidate::of(&default), "{name} {}", target.triple.as_str());
            for candidate in all {
                let (tuned, _) = planned(&module, target, Some(candidate));
                assert_eq!(Candidate::of(&tuned), Some(candidate), "{name} {}", target.triple.as_str());
                assert_eq!(tuned.tuned, Some(candidate));
                assert!(tuned.to_string().contains(&format!("as tuned: {candidate}")), "{tuned}");
            }
        }
    }
}

#[test]
fn every_candidate_computes_the_same() {
    for (name, module) in cases() {
        let entry = module.entry_computation();
        let mut numbers = Numbers::new(11);
        let arguments: Vec<Literal> = entry
            .parameters()
            .iter()
            .map(|&p| random(entry[p].shape().expect_array(), Values::Tame, &mut numbers))
            .collect();
        let expected = evaluator::evaluate(&module, &arguments).expect("a value");
        for target in targets() {
            let all = candidates(&module, &target);
            assert!(all.len() >= 2, "{name}");
            for candidate in all {
                let (_, options) = planned(&module, &target, Some(candidate));
                let loaded = Loaded::with_options(&module, &target, &options)
                    .unwrap_or_else(|e| panic!("{name} {candidate}: {e}"));
                let have = loaded.run(&arguments, 2, None).expect("it runs");
                let apart = difference(&have[0], &expected, Tolerance::Relative(2e-4));
                assert_eq!(apart, None, "{name} {candidate} for '{}'", target.cpu);
            }
        }
    }
}

#[test]
fn unknown_candidates_are_ignored_and_reported() {
    let (_, module) = cases().remove(0);
    let target = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a triple");
    let entry = module.entry_computation();
    let fusion = plan::Fusion::of(&module, entry, entry.root()).expect("a fusion");
    let kernel = plan::tuning::kernel(&fusion).expect("a contraction");
    let default = planned(&module, &target, None).0;
    for name in [
        "winograd=2x2",
        "tile=200x2,right=packed,outer=panels,k-block=45",
        "tile=6x2,right=constant,outer=rows,k-block=45",
        "made in a later version",
    ] {
        let machine = plan::tuning::machine(&target);
        let text = format!("tfcompile-tuning 1\n[{machine}]\n{kernel} => {name}\n");
        let choices = Choices::parse(&text, "tuning").expect("a table");
        let options = Options { choices: Arc::new(choices), ..Options::default() };
        let plans = plan::plan_with(&module, &target, &options).expect("a plan");
        assert_eq!(plans.ignored_choices, std::slice::from_ref(&kernel), "{name}");
        let plan = &plans.computations[&module.entry()].instructions[&entry.root()];
        assert_eq!((&plan.strategy, plan.tuned), (&default.strategy, None), "{name}");
        // The choice does not apply to other machines.
        let other = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a triple");
        let plans = plan::plan_with(&module, &other, &options).expect("a plan");
        assert!(plans.ignored_choices.is_empty(), "{name}");
    }
}

#[test]
fn contractions_without_features_have_no_candidates() {
    let op =
        "convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=7";
    let module = module(op, [&[1, 8, 5, 7], &[3, 3, 1, 0], &[1, 8, 5, 0]], false);
    for target in targets() {
        assert!(candidates(&module, &target).is_empty(), "{}", target.cpu);
    }
}

#[test]
fn the_planners_choice_costs_least_by_the_model_and_rules_have_no_costs() {
    for (name, module) in cases() {
        for target in targets() {
            let entry = module.entry_computation();
            let root = entry.root();
            let found = plan::rationale(&module, entry, root, &target, &Options::default());
            let Rationale { candidates: all, reason } = found.expect("several candidates");
            let names: Vec<Candidate> = all.iter().map(|one| one.candidate).collect();
            assert_eq!(names, candidates(&module, &target), "{name}");
            if matches!(names[0], Candidate::Dot { .. } | Candidate::Depthwise { .. }) {
                assert!(all.iter().all(|one| one.cost.is_none()), "{name}: {all:?}");
                assert!(reason.starts_with("rules without a cost; "), "{name}: {reason}");
                continue;
            }
            assert!(reason.starts_with("cost model"), "{name}: {reason}");
            let first = all[0].cost.expect("a modeled cost");
            for one in &all {
                let cost = one.cost.expect("a modeled cost");
                let is_cheaper = cost.unit == first.unit && cost.amount < first.amount;
                assert!(!is_cheaper, "{name} '{}': {all:?}", target.cpu);
            }
        }
    }
}

#[test]
fn costs_are_those_of_the_models() {
    let target = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a triple");
    let of = |module: &Module, winograd: Winograd| {
        let entry = module.entry_computation();
        let options = Options { winograd, ..Options::default() };
        plan::rationale(module, entry, entry.root(), &target, &options).expect("several candidates")
    };
    // 784 pixels in 25 tiles of 24 and 8 of 23, with one vector of 8 features and 64 summands. A
    // tile of 24 takes 12.5 cycles per summand for its 25 loads, of which two start in a cycle. It
    // waits 3 cycles for each of two lines of 24 pixels, except for 400 of its 64 x 28
    // instructions, and takes 24 cycles to start and 1.5 for each sum.
    let tile = |pixels: f64, loads: f64, instructions: f64| {
        64.0 * loads / 2.0 + 6.0 * pixels * (1.0 - 400.0 / (64.0 * instructions)) + 24.0 + 1.5 * pixels
    };
    let expected = 25.0 * tile(24.0, 25.0, 28.0) + 8.0 * tile(23.0, 24.0, 27.0);
    let narrow = "convolution(x, y), window={size=1x1}, dim_labels=b01f_01io->b01f";
    let narrow = module(narrow, [&[1, 28, 28, 64], &[1, 1, 64, 8], &[1, 28, 28, 8]], false);
    let found = of(&narrow, Winograd::Never);
    let cost = found.candidates[0].cost.expect("a modeled cost");
    assert_eq!(found.candidates[0].candidate.to_string(), "pixels=24x1,outer=pixels");
    assert!(cost.unit == "cycles per group" && (cost.amount - expected).abs() < 1e-6, "{cost:?} {expected}");
    // Direct sums: 784 pixels, 9 taps, 64 inputs, and 4 vectors of outputs, without the taps in the
    // padding of 1 in 28 lines and columns, at 92% of the peak rate.
    let direct = 784.0 * 9.0 * 64.0 * 4.0 * (82.0_f64 / 84.0).powi(2) / 0.92;
    let same = "convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    let wide = module(same, [&[1, 28, 28, 64], &[3, 3, 64, 64], &[1, 28, 28, 64]], false);
    let found = of(&wide, Winograd::Small);
    assert_eq!(found.candidates[0].candidate, Candidate::Winograd { outputs: 2 });
    let cost = found.candidates[0].cost.expect("a modeled cost").amount;
    assert!(cost < 0.9 * direct, "{cost} of {direct}");
    let saved = 100.0 * (1.0 - cost / direct);
    let words = format!("{saved:.1}% fewer than the {direct:.3e} of the direct sum");
    assert!(found.reason.ends_with(&words), "{} without {words}", found.reason);
    // A transform that the options exclude is not mentioned.
    let found = of(&wide, Winograd::Never);
    assert!(!found.reason.contains("winograd"), "{}", found.reason);
    // With few features, transforms cost what they save.
    let few = module(same, [&[1, 8, 8, 4], &[3, 3, 4, 4], &[1, 8, 8, 4]], false);
    let found = of(&few, Winograd::Small);
    assert!(found.reason.contains("; winograd: ") && found.reason.contains(", not 10% fewer than the "));
}

#[test]
fn a_dot_names_the_rules_that_chose() {
    let target = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a triple");
    let along = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let across = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}";
    let (fits, once) = ("a panel fits half", "each panel is packed once");
    let (stay, packed, all) = ("panels stay in the second", "each panel is packed", "one tile has all rows");
    let table = [
        // (operation, rows, summands, columns, constant), (packing, order, passes)
        ((along, [37, 45, 75], true), ("constants are packed", stay, fits)),
        ((along, [8, 45, 75], false), ("at most two tiles", all, all)),
        ((along, [100, 45, 75], false), ("few rows read it", stay, fits)),
        ((along, [300, 45, 75], false), ("packing pays off above 128 rows", packed, once)),
        ((across, [300, 45, 75], false), ("tiles cannot read its type", packed, once)),
        // 16 MB of results.
        ((along, [4000, 8, 1000], false), ("whole rows are written", "rows of the result", fits)),
        // Rows of 4000 bytes on 976 pages.
        ((along, [100, 1000, 1000], false), ("a few passes read", "several tiles read", "a pass reads rows")),
        // Rows of a page each.
        ((along, [100, 1024, 1024], false), ("on too many memory pages", packed, once)),
    ];
    for ((op, [m, k, n], is_constant), (right, outer, passes)) in table {
        let rhs: &[i64] = if op == along { &[k, n] } else { &[n, k] };
        let module = module(op, [&[m, k], rhs, &[m, n]], is_constant);
        let entry = module.entry_computation();
        let found = plan::rationale(&module, entry, entry.root(), &target, &Options::default());
        let reason = found.expect("several candidates").reason;
        let parts: Vec<&str> = reason.split("; ").collect();
        assert_eq!(parts.len(), 5, "{reason}");
        let expected = [("right: ", right), ("outer: ", outer), ("k-block: ", passes)];
        for (part, (key, words)) in parts[2..].iter().zip(expected) {
            assert!(part.starts_with(key) && part.contains(words), "{m}x{n}x{k}: {reason}");
        }
    }
}
