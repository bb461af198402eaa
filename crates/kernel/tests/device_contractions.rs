//! Dots and convolutions of a device, run by the simulator and compared with the evaluator.

use crate::harness::{Numbers, Tolerance, Values, difference, random};
use crate::simulator::{self, Blocks};
use hlo::Op;
use plan::{DevicePlan, Method, Strategy};
use shape::{ArrayShape, Literal};
use target::Target;

/// Lowers a module for a target, runs it, and compares the results with the evaluator's. Returns
/// the plans of its contractions.
fn check(text: &str, target: &Target, values: Values, tolerance: Tolerance) -> Vec<plan::ContractionPlan> {
    check_with(text, target, &plan::Options::default(), values, tolerance)
}

fn check_with(
    text: &str,
    target: &Target,
    options: &plan::Options,
    values: Values,
    tolerance: Tolerance,
) -> Vec<plan::ContractionPlan> {
    let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(text.len() as u64 + 1);
    let arguments: Vec<Literal> = entry
        .parameters()
        .iter()
        .map(|&parameter| {
            let shape = entry[parameter].shape().expect_array();
            random(&ArrayShape::new(shape.element_type, &shape.sizes()), values, &mut numbers)
        })
        .collect();
    let want = evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let plan = plan::plan_with(&module, target, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let schedule = buffers::schedule(&module, &plan);
    let mut pool = buffers::ConstantsPool::default();
    let assignment = buffers::assign(&module, &plan, &schedule, &mut pool).expect("an assignment");
    let program = kernel::lower_device(&module, &plan, &schedule, &assignment, target).expect("a program");
    nest::verify(&program.kernels).unwrap_or_else(|e| panic!("{e}\n{}", program.kernels));
    let block = pool.finish();
    let mut constants = vec![0; block.size as usize];
    for (offset, bytes) in &block.chunks {
        constants[*offset as usize..*offset as usize + bytes.len()].copy_from_slice(bytes);
    }
    let result = entry[entry.root()].shape().expect_array();
    let blocks = Blocks {
        arguments: arguments.iter().map(|argument| argument.bytes().to_vec()).collect(),
        results: vec![vec![0xA5; result.byte_size() as usize]],
        temps: vec![0xA5; assignment.temps_size as usize],
        constants,
    };
    let have = simulator::run(&program, blocks).swap_remove(0);
    let shape = ArrayShape::new(result.element_type, &result.sizes());
    let have = Literal::from_bytes(shape, have.into()).expect("the result's size");
    if let Some(difference) = difference(&have, &want, tolerance) {
        panic!("{difference}\n{}\n{text}", plan.to_text(&module));
    }
    let mut found = Vec::new();
    for plan in plan.computations.values().flat_map(|c| c.instructions.values()) {
        if let Strategy::Device(device) = &plan.strategy
            && let DevicePlan::Contraction(plan) = &**device
        {
            found.push((**plan).clone());
        }
    }
    let is_contraction = |op: &Op| matches!(op, Op::Dot { .. } | Op::Convolution { .. } | Op::Fusion { .. });
    assert!(
        !found.is_empty() || !entry.post_order().iter().any(|&id| is_contraction(entry[id].op())),
        "no plan of a device:\n{text}"
    );
    found
}

fn targets() -> [Target; 2] {
    [Target::opencl().expect("a target"), Target::cuda("sm_70").expect("a target")]
}

fn dot(lhs: &str, rhs: &str, result: &str, numbers: &str) -> String {
    format!(
        "HloModule m\nENTRY main {{\n  a = {lhs} parameter(0)\n  b = {rhs} parameter(1)\n  \
         ROOT c = {result} dot(a, b), {numbers}\n}}\n"
    )
}

const PLAIN: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

/// The name of a method and the number of parts of the summands.
fn described(plan: &plan::ContractionPlan) -> (String, i64) {
    let method = match &plan.method {
        Method::Tiles(tile) => format!("{}x{}", tile.rows, tile.columns),
        Method::Few(few) if few.is_swapped => "few columns".to_owned(),
        Method::Few(_) => "few rows".to_owned(),
        Method::Direct => "direct".to_owned(),
        Method::Matrix(tile) => format!("matrix units, {}x{}", tile.rows, tile.columns),
    };
    (method, plan.splits)
}

#[test]
fn dots_of_all_extents() {
    let table = [
        ("f32[32,16]", "f32[16,32]", "f32[32,32]", PLAIN),
        ("f32[70,50]", "f32[50,41]", "f32[70,41]", PLAIN),
        ("f32[33,300]", "f32[300,34]", "f32[33,34]", PLAIN),
        ("f32[140,12]", "f32[12,70]", "f32[140,70]", PLAIN),
        ("f32[1,300]", "f32[300,70]", "f32[1,70]", PLAIN),
        ("f32[3,128]", "f32[128,64]", "f32[3,64]", PLAIN),
        ("f32[90,128]", "f32[128,2]", "f32[90,2]", PLAIN),
        ("f32[300]", "f32[300]", "f32[]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("f32[5,60]", "f32[7,60]", "f32[5,7]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
        ("f32[60,50]", "f32[60,40]", "f32[50,40]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        (
            "f32[3,20,30]",
            "f32[3,30,40]",
            "f32[3,20,40]",
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        ),
        (
            "f32[20,3,6,5]",
            "f32[6,40,5,3]",
            "f32[3,20,40]",
            "lhs_batch_dims={1}, lhs_contracting_dims={2,3}, rhs_batch_dims={3}, rhs_contracting_dims={0,2}",
        ),
        ("f64[40,33]", "f64[33,36]", "f64[40,36]", PLAIN),
        ("s32[40,33]", "s32[33,36]", "s32[40,36]", PLAIN),
        ("u8[40,33]", "u8[33,36]", "u8[40,36]", PLAIN),
        ("s8[20,64]", "s8[20,40]", "s8[64,40]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("c64[6,7]", "c64[7,5]", "c64[6,5]", PLAIN),
        ("c128[6,70]", "c128[70,5]", "c128[6,5]", PLAIN),
    ];
    for target in targets() {
        for (lhs, rhs, result, numbers) in table {
            check(&dot(lhs, rhs, result, numbers), &target, Values::Tame, Tolerance::Relative(1e-4));
        }
    }
}

#[test]
fn narrow_floats_are_summed_in_single_precision() {
    for target in targets() {
        for ty in ["f16", "bf16"] {
            let text = dot(&format!("{ty}[40,48]"), &format!("{ty}[48,40]"), &format!("{ty}[40,40]"), PLAIN);
            check(&text, &target, Values::Below(4), Tolerance::Exact);
        }
    }
}

#[test]
fn matrix_units_multiply_narrow_types() {
    let target = Target::cuda("sm_80").expect("a target");
    let transposed = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
    let columns_first = "lhs_contracting_dims={0}, rhs_contracting_dims={0}";
    let table = [
        ("f16", "f32", [32, 32], [32, 32], [32, 32], PLAIN),
        ("bf16", "f32", [32, 48], [48, 40], [32, 40], PLAIN),
        ("bf16", "bf16", [50, 70], [70, 41], [50, 41], PLAIN),
        ("f16", "f16", [64, 96], [72, 96], [64, 72], transposed),
        ("bf16", "f32", [64, 40], [64, 48], [40, 48], columns_first),
        ("f16", "f32", [33, 50], [35, 50], [33, 35], transposed),
        ("bf16", "f32", [32, 512], [512, 32], [32, 32], PLAIN),
        ("s8", "s32", [40, 130], [130, 36], [40, 36], PLAIN),
        ("s8", "s32", [32, 128], [32, 128], [32, 32], transposed),
    ];
    for (ty, sum, lhs, rhs, result, numbers) in table {
        let shape = |ty: &str, [a, b]: [i64; 2]| format!("{ty}[{a},{b}]");
        let text = dot(&shape(ty, lhs), &shape(ty, rhs), &shape(sum, result), numbers);
        // Sums of small integers are exact in f32, and in f16 and bf16 after one rounding.
        let plans = check(&text, &target, Values::Below(4), Tolerance::Exact);
        assert!(matches!(plans[0].method, Method::Matrix(_)), "{text}");
    }
}

#[test]
fn single_precision_may_be_rounded_to_tf32() {
    let target = Target::cuda("sm_80").expect("a target");
    let options = plan::Options { allow_tf32: true, ..plan::Options::default() };
    for numbers in [PLAIN, "lhs_contracting_dims={1}, rhs_contracting_dims={1}"] {
        let text = dot("f32[40,40]", "f32[40,40]", "f32[40,40]", numbers);
        let plans = check_with(&text, &target, &options, Values::Below(100), Tolerance::Exact);
        assert!(matches!(plans[0].method, Method::Matrix(_)), "{text}");
        // Rounding errors of 2^-11 of each factor.
        check_with(&text, &target, &options, Values::Tame, Tolerance::Relative(0.1));
        let plans = check(&text, &target, Values::Tame, Tolerance::Relative(1e-4));
        assert!(matches!(plans[0].method, Method::Tiles(_)), "{text}");
    }
}

fn convolution(ty: &str, shapes: [&str; 3], attributes: &str) -> String {
    let [input, kernel, result] = shapes.map(|shape| format!("{ty}{shape}"));
    format!(
        "HloModule m\nENTRY main {{\n  x = {input} parameter(0)\n  k = {kernel} parameter(1)\n  \
         ROOT y = {result} convolution(x, k), {attributes}\n}}\n"
    )
}

#[test]
fn convolutions_of_all_forms() {
    let forward = |window: &str| format!("window={{{window}}}, dim_labels=b01f_01io->b01f");
    let gradient = |window: &str| format!("window={{{window}}}, dim_labels=f01b_i01o->01bf");
    let grouped = |window: &str, groups: i64| format!("{}, feature_group_count={groups}", forward(window));
    let table = [
        (["[2,9,8,5]", "[3,3,5,12]", "[2,9,8,12]"], forward("size=3x3 pad=1_1x1_1")),
        (["[2,9,8,16]", "[3,3,16,12]", "[2,9,8,12]"], forward("size=3x3 pad=1_1x1_1")),
        (["[1,11,11,3]", "[5,5,3,16]", "[1,5,5,16]"], forward("size=5x5 stride=2x2 pad=1_1x1_1")),
        (["[2,9,9,8]", "[3,3,8,8]", "[2,5,5,8]"], forward("size=3x3 rhs_dilate=2x2")),
        (["[2,4,5,8]", "[3,3,8,9]", "[2,9,11,9]"], forward("size=3x3 pad=2_2x2_2 lhs_dilate=2x2")),
        (["[2,6,6,32]", "[1,1,32,40]", "[2,6,6,40]"], forward("size=1x1")),
        (["[2,6,6,12]", "[3,3,1,12]", "[2,6,6,12]"], grouped("size=3x3 pad=1_1x1_1", 12)),
        (["[2,6,6,6]", "[3,3,1,12]", "[2,6,6,12]"], grouped("size=3x3 pad=1_1x1_1", 6)),
        (["[2,6,6,32]", "[3,3,16,24]", "[2,6,6,24]"], grouped("size=3x3 pad=1_1x1_1", 2)),
        (["[2,8,8,9]", "[2,6,6,16]", "[3,3,9,16]"], gradient("size=6x6")),
        (["[3,8,8,9]", "[3,8,8,16]", "[3,3,9,16]"], gradient("size=8x8 pad=1_1x1_1")),
        (["[2,9,9,4]", "[2,4,4,32]", "[3,3,4,32]"], gradient("size=4x4 rhs_dilate=2x2")),
    ];
    for target in targets() {
        for (shapes, attributes) in &table {
            let text = convolution("f32", *shapes, attributes);
            check(&text, &target, Values::Tame, Tolerance::Relative(1e-4));
        }
    }
    let target = Target::cuda("sm_80").expect("a target");
    for (shapes, attributes) in &table {
        check(&convolution("bf16", *shapes, attributes), &target, Values::Below(3), Tolerance::Exact);
    }
    let line = "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f";
    let text = convolution("f32", ["[2,9,8]", "[3,8,12]", "[2,9,12]"], line);
    check(&text, &targets()[0], Values::Tame, Tolerance::Relative(1e-4));
    let text = convolution("c64", ["[2,9,3]", "[3,3,4]", "[2,9,4]"], line);
    check(&text, &targets()[0], Values::Tame, Tolerance::Relative(1e-4));
}

/// Returns a module of one fusion of a dot of `p0` and `p1`.
fn fusion(shapes: [&str; 4], body: &str, result: &str) -> String {
    let list: String =
        (0..).zip(shapes).map(|(k, shape)| format!("  p{k} = {shape} parameter({k})\n")).collect();
    format!(
        "HloModule m\n\nfused {{\n{list}{body}\n}}\n\nENTRY main {{\n{list}  \
         ROOT f = {result} fusion(p0, p1, p2, p3), kind=kOutput, calls=fused\n}}\n"
    )
}

#[test]
fn results_pass_through_epilogues_into_slices() {
    for (m, k, n) in [(40, 20, 36), (1, 300, 36), (6, 5, 7), (32, 256, 32)] {
        let whole = format!("f32[{m},{n}]");
        let shapes = [format!("f32[{m},{k}]"), format!("f32[{k},{n}]"), format!("f32[{n}]"), whole.clone()];
        let shapes = [0, 1, 2, 3].map(|k: usize| shapes[k].as_str());
        let body = format!(
            "  d = {whole} dot(p0, p1), {PLAIN}\n  b = {whole} broadcast(p2), dimensions={{1}}\n  \
             s = {whole} add(d, b)\n  ROOT r = {whole} multiply(s, p3)"
        );
        let transposed = format!("f32[{n},{m}]");
        let moved = format!(
            "  d = {whole} dot(p0, p1), {PLAIN}\n  b = {whole} broadcast(p2), dimensions={{1}}\n  \
             s = {whole} add(d, b)\n  ROOT t = {transposed} transpose(s), dimensions={{1,0}}"
        );
        for target in targets() {
            check(&fusion(shapes, &body, &whole), &target, Values::Tame, Tolerance::Relative(1e-3));
            let [x, y, z, _] = shapes;
            let text = fusion([x, y, z, "f32[]"], &moved, &transposed);
            check(&text, &target, Values::Tame, Tolerance::Relative(1e-3));
            let large = format!("f32[{m},{}]", n + 9);
            let update = format!(
                "  d = {whole} dot(p0, p1), {PLAIN}\n  zero = s32[] constant(0)\n  five = s32[] constant(5)\n  \
                 ROOT u = {large} dynamic-update-slice(p3, d, zero, five)"
            );
            let plans = check(
                &fusion([x, y, z, &large], &update, &large),
                &target,
                Values::Tame,
                Tolerance::Relative(1e-3),
            );
            assert!(plans[0].around.is_some(), "{m}x{k}x{n}");
        }
    }
}

#[test]
fn methods_follow_from_extents() {
    let cuda = &targets()[1];
    let table = [
        ("f32[100,16]", "f32[16,32]", "f32[100,32]", ("64x32", 1)),
        ("f32[16,16]", "f32[16,16]", "f32[16,16]", ("64x32", 1)),
        ("f32[1,1024]", "f32[1024,64]", "f32[1,64]", ("few rows", 4)),
        ("f32[64,1024]", "f32[1024,1]", "f32[64,1]", ("few columns", 1)),
        ("f32[3,3]", "f32[3,3]", "f32[3,3]", ("direct", 1)),
        ("f32[32,1024]", "f32[1024,32]", "f32[32,32]", ("64x32", 16)),
    ];
    for (lhs, rhs, result, (method, splits)) in table {
        let plans = check(&dot(lhs, rhs, result, PLAIN), cuda, Values::Tame, Tolerance::Relative(1e-3));
        assert_eq!(described(&plans[0]), (method.to_owned(), splits), "{lhs} {rhs}");
    }
}

/// Returns the PTX of a module.
pub fn assembly(module: &hlo::Module, target: &Target, options: &plan::Options) -> Vec<u8> {
    let plan = plan::plan_with(module, target, options).expect("a plan");
    let schedule = buffers::schedule(module, &plan);
    let mut pool = buffers::ConstantsPool::default();
    let assignment = buffers::assign(module, &plan, &schedule, &mut pool).expect("an assignment");
    let program = kernel::lower_device(module, &plan, &schedule, &assignment, target).expect("kernels");
    codegen::compile_kernels(&program, target, false).expect("PTX").bytes
}

#[test]
fn products_of_matrices_are_single_instructions() {
    let target = Target::cuda("sm_80").expect("a target");
    let options = plan::Options { allow_tf32: true, ..plan::Options::default() };
    for (ty, sum, instruction) in [
        ("f16", "f16", "m16n8k16.row.col.f32.f16.f16.f32"),
        ("bf16", "bf16", "m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("s8", "s32", "m16n8k32.row.col.s32.s8.s8.s32"),
        ("f32", "f32", "m16n8k8.row.col.f32.tf32.tf32.f32"),
    ] {
        let square = |ty: &str| format!("{ty}[64,64]");
        let text = dot(&square(ty), &square(ty), &square(sum), PLAIN);
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let code = String::from_utf8(assembly(&module, &target, &options)).expect("text");
        assert!(code.contains(&format!("mma.sync.aligned.{instruction}")), "{ty}:\n{code}");
    }
}

/// True if there is an assembler for [`check_registers`].
pub fn has_assembler() -> bool {
    std::env::var_os("TFCOMPILE_PTXAS").is_some()
}

#[test]
fn main_tiles_stay_in_registers() {
    if !has_assembler() {
        return;
    }
    let transposed = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
    let mut texts = Vec::new();
    for (ty, m, n, k) in [
        ("f32", 4096, 4096, 4096),
        ("f32", 4095, 4095, 4095),
        ("f32", 65_536, 32, 512),
        ("f32", 512, 512, 512),
        ("f64", 4096, 4096, 4096),
        ("f16", 4096, 4096, 4096),
        ("bf16", 512, 768, 768),
    ] {
        let (lhs, result) = (format!("{ty}[{m},{k}]"), format!("{ty}[{m},{n}]"));
        texts.push(dot(&lhs, &format!("{ty}[{k},{n}]"), &result, PLAIN));
        texts.push(dot(&lhs, &format!("{ty}[{n},{k}]"), &result, transposed));
    }
    let window = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    texts.push(convolution("f32", ["[32,56,56,64]", "[3,3,64,64]", "[32,56,56,64]"], window));
    texts.push(convolution("bf16", ["[32,56,56,64]", "[3,3,64,64]", "[32,56,56,64]"], window));
    for (number, text) in texts.iter().enumerate() {
        let target = Target::cuda("sm_80").expect("a target");
        let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let code = assembly(&module, &target, &plan::Options::default());
        check_registers(&format!("contraction_{number}"), &code, &["sm_80", "sm_90"], text);
    }
}

/// Assembles PTX with NVIDIA's assembler where `TFCOMPILE_PTXAS` names it. Panics if registers
/// spill.
pub fn check_registers(name: &str, code: &[u8], architectures: &[&str], text: &str) {
    let Ok(assembler) = std::env::var("TFCOMPILE_PTXAS") else { return };
    let file = std::env::temp_dir().join(format!("{name}_{}.ptx", std::process::id()));
    std::fs::write(&file, code).expect("a file");
    for architecture in architectures {
        let output = std::process::Command::new(&assembler)
            .args(["-v", &format!("-arch={architecture}"), "-o", "/dev/null"])
            .arg(&file)
            .output()
            .expect("the assembler");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{messages}\n{text}");
        for line in messages.lines().filter(|line| line.contains("spill")) {
            assert!(line.contains("0 bytes spill stores, 0 bytes spill loads"), "{line}\n{text}");
        }
    }
    std::fs::remove_file(&file).expect("the file");
}
