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
    let plan = plan::plan(&module, target).unwrap_or_else(|e| panic!("{e}\n{text}"));
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
        if let Strategy::Device(device) = &plan.strategy {
            let DevicePlan::Contraction(plan) = &**device;
            found.push(plan.clone());
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
    };
    (method, plan.splits)
}

#[test]
fn dots_of_all_extents() {
    let table = [
        ("f32[32,16]", "f32[16,32]", "f32[32,32]", PLAIN),
        ("f32[70,50]", "f32[50,41]", "f32[70,41]", PLAIN),
        ("f32[33,700]", "f32[700,34]", "f32[33,34]", PLAIN),
        ("f32[260,24]", "f32[24,300]", "f32[260,300]", PLAIN),
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
            let text = dot(
                &format!("{ty}[40,48]"),
                &format!("{ty}[48,40]"),
                &format!("{ty}[40,40]"),
                PLAIN,
            );
            check(&text, &target, Values::Below(4), Tolerance::Exact);
        }
    }
}

#[test]
fn methods_follow_from_extents() {
    let cuda = &targets()[1];
    let table = [
        ("f32[300,16]", "f32[16,32]", "f32[300,32]", ("32x32", 1)),
        ("f32[1,1024]", "f32[1024,64]", "f32[1,64]", ("few rows", 8)),
        ("f32[64,1024]", "f32[1024,1]", "f32[64,1]", ("few columns", 1)),
        ("f32[3,3]", "f32[3,3]", "f32[3,3]", ("direct", 1)),
        ("f32[32,4096]", "f32[4096,32]", "f32[32,32]", ("32x32", 32)),
    ];
    for (lhs, rhs, result, (method, splits)) in table {
        let plans = check(&dot(lhs, rhs, result, PLAIN), cuda, Values::Tame, Tolerance::Relative(1e-3));
        assert_eq!(described(&plans[0]), (method.to_owned(), splits), "{lhs} {rhs}");
    }
}
