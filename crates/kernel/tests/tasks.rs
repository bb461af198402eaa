//! Kernels that are cut into tasks compute the same bits on any workers and in any order.

use crate::harness::{Backwards, Loaded, Numbers, Tolerance, Values, check_with, random, targets};
use jit::{Part, ThreadPool, Workers};
use shape::{ArrayShape, Literal};
use std::sync::{Arc, Mutex};

/// One thread per worker. With n workers, each runs every n-th task in reverse order, and empty
/// parts in between.
struct Scattered(usize);

// SAFETY: each thread is one worker.
#[expect(unsafe_code, reason = "implements a schedule")]
unsafe impl Workers for Scattered {
    fn count(&self) -> usize {
        self.0
    }

    fn run(&self, count: i64, part: &Part<'_>) -> i32 {
        std::thread::scope(|scope| {
            for worker in 0..self.0 as i64 {
                scope.spawn(move || {
                    for task in (0..count).rev().filter(|task| task % self.0 as i64 == worker) {
                        assert_eq!(part(task, task, worker), 0);
                        assert_eq!(part(task, task + 1, worker), 0);
                    }
                });
            }
        });
        0
    }
}

/// Fails after half of the tasks.
struct Failing;

// SAFETY: one call, of worker 0.
#[expect(unsafe_code, reason = "implements a schedule")]
unsafe impl Workers for Failing {
    fn count(&self) -> usize {
        1
    }

    fn run(&self, count: i64, part: &Part<'_>) -> i32 {
        part(0, count / 2, 0) + 17
    }
}

/// Runs each task alone and records which bytes of the results it writes. No two tasks may write
/// the same byte.
struct Watching {
    /// Addresses and sizes.
    results: Vec<(usize, usize)>,
    /// Describes a byte that two tasks write, if there is one.
    shared: Mutex<Option<String>>,
}

impl Watching {
    fn fill(&self, byte: u8) {
        for &(address, size) in &self.results {
            // SAFETY: these are the results of the running instance, which nothing else accesses
            // meanwhile.
            #[expect(unsafe_code, reason = "the memory that the kernel writes")]
            unsafe {
                std::ptr::write_bytes(address as *mut u8, byte, size);
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let copy = |&(address, size): &(usize, usize)| {
            // SAFETY: as in `fill`.
            #[expect(unsafe_code, reason = "the memory that the kernel writes")]
            unsafe {
                std::slice::from_raw_parts(address as *const u8, size).to_vec()
            }
        };
        self.results.iter().map(copy).collect::<Vec<_>>().concat()
    }
}

// SAFETY: one call at a time, of worker 0.
#[expect(unsafe_code, reason = "implements a schedule")]
unsafe impl Workers for Watching {
    fn count(&self) -> usize {
        1
    }

    fn run(&self, count: i64, part: &Part<'_>) -> i32 {
        let mut writer: Vec<Option<i64>> = vec![None; self.bytes().len()];
        for task in 0..count {
            // Any written byte differs from at least one of these two.
            for byte in [0x5A, 0xA5] {
                self.fill(byte);
                assert_eq!(part(task, task + 1, 0), 0);
                for (lines, found) in writer.chunks_mut(64).zip(self.bytes().chunks(64)) {
                    if found == &[byte; 64][..found.len()] {
                        continue;
                    }
                    for (writer, _) in lines.iter_mut().zip(found).filter(|&(_, &found)| found != byte) {
                        if let Some(other) = writer.replace(task).filter(|&other| other != task) {
                            let text = format!("tasks {other} and {task} of {count} write the same byte");
                            self.shared.lock().expect("not poisoned").get_or_insert(text);
                        }
                    }
                }
            }
        }
        assert!(writer.iter().all(Option::is_some), "expected every byte to be written by a task");
        part(0, count, 0)
    }
}

fn schedules() -> Vec<(String, Arc<dyn Workers>)> {
    let mut schedules: Vec<(String, Arc<dyn Workers>)> = Vec::new();
    for count in [1usize, 2, 3, 7] {
        let pool = ThreadPool::new(count).expect("a few threads");
        schedules.push((format!("{count} threads"), Arc::new(pool)));
    }
    schedules.push(("backwards".to_owned(), Arc::new(Backwards(5))));
    schedules.push(("scattered".to_owned(), Arc::new(Scattered(4))));
    schedules
}

/// Compares a module's kernels with the evaluator, and every schedule with the serial run. At least
/// `cut` kernels must be cut into tasks, or none if it is 0.
pub fn check(text: &str, cut: usize, values: Values, tolerance: Tolerance) {
    check_planned(text, cut, values, tolerance, &plan::Options::default());
}

/// Like [`check`], with planning options.
fn check_planned(text: &str, cut: usize, values: Values, tolerance: Tolerance, options: &plan::Options) {
    let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(text.len() as u64);
    let arguments: Vec<Literal> = entry
        .parameters()
        .iter()
        .map(|&parameter| {
            let shape = entry[parameter].shape().expect_array();
            random(&ArrayShape::new(shape.element_type, &shape.sizes()), values, &mut numbers)
        })
        .collect();
    check_with(&module, &arguments, tolerance);
    for target in targets() {
        let loaded =
            Loaded::with_options(&module, &target, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let is_cut = if cut == 0 { loaded.parallel_kernels == 0 } else { loaded.parallel_kernels >= cut };
        assert!(is_cut, "expected {cut} kernels with several tasks, got {}\n{text}", loaded.parallel_kernels);
        let want = loaded.run(&arguments, 1, None).expect("the code runs");
        for (name, workers) in schedules() {
            let have = loaded.run(&arguments, 2, Some(workers)).expect("the code runs");
            let same = have.iter().zip(&want).all(|(have, want)| have.bytes() == want.bytes());
            assert!(same, "{name}, cpu '{}': the bits differ from the serial run\n{text}", target.cpu);
        }
        if cut > 0 && loaded.kernels == 1 {
            let mut watching = None;
            let workers = |results: &[&[u8]]| -> Option<Arc<dyn Workers>> {
                let results = results.iter().map(|r| (r.as_ptr() as usize, r.len())).collect();
                Some(watching.insert(Arc::new(Watching { results, shared: Mutex::new(None) })).clone())
            };
            let have = loaded.run_on(&arguments, 1, workers).expect("the code runs");
            let shared = watching.and_then(|w| w.shared.lock().expect("not poisoned").clone());
            assert_eq!(shared, None, "cpu '{}'\n{text}", target.cpu);
            assert!(have.iter().zip(&want).all(|(have, want)| have.bytes() == want.bytes()), "{text}");
        }
        if cut > 0 {
            let error = loaded.run(&arguments, 1, Some(Arc::new(Failing))).expect_err("the workers fail");
            assert!(error.to_string().contains("17"), "{error}");
        }
    }
}

fn entry(body: &str) -> String {
    format!("HloModule m\n\n{SUM}ENTRY main {{\n{body}\n}}\n")
}

const SUM: &str =
    "sum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n\n";

#[test]
fn small_work_is_not_cut() {
    check(
        &entry("  x = f32[30,100] parameter(0)\n  ROOT r = f32[30,100] negate(x)"),
        0,
        Values::Hard,
        Tolerance::Exact,
    );
}

#[test]
fn flat_loops() {
    // With a remainder after the last vector, both in place and not.
    check(
        &entry(
            "  x = f32[200003] parameter(0)\n  y = f32[200003] parameter(1)\n  a = f32[200003] add(x, y)\n  \
             b = f32[200003] multiply(a, x)\n  c = f32[200003] exponential(b)\n  \
             ROOT r = (f32[200003], f32[200003]) tuple(b, c)",
        ),
        3,
        Values::Tame,
        Tolerance::Relative(1e-5),
    );
    check(
        &entry(
            "  x = u8[3,99991] parameter(0)\n  c = s64[3,99991] convert(x)\n  ROOT r = s64[3,99991] negate(c)",
        ),
        2,
        Values::Hard,
        Tolerance::Exact,
    );
}

#[test]
fn several_results() {
    let fused = |body: &str, arguments: &str, shape: &str| {
        format!(
            "HloModule m\n\n{SUM}body {{\n{body}\n}}\n\nENTRY main {{\n{arguments}\n  \
             ROOT r = {shape} fusion(a, b), kind=kLoop, calls=body\n}}\n"
        )
    };
    check(
        &fused(
            "  x = f32[200003] parameter(0)\n  y = f32[200003] parameter(1)\n  s = f32[200003] add(x, y)\n  \
             m = f32[200003] multiply(s, x)\n  ROOT t = (f32[200003], f32[200003]) tuple(s, m)",
            "  a = f32[200003] parameter(0)\n  b = f32[200003] parameter(1)",
            "(f32[200003], f32[200003])",
        ),
        1,
        Values::Hard,
        Tolerance::Exact,
    );
    // Parts of a row, and columns.
    check(
        &fused(
            "  x = f32[30,100,301] parameter(0)\n  y = f32[30,100,301] parameter(1)\n  \
             zero = f32[] constant(0)\n  p = f32[30,100,301] multiply(x, y)\n  \
             a = f32[30,301] reduce(x, zero), dimensions={1}, to_apply=sum\n  \
             b = f32[30,301] reduce(p, zero), dimensions={1}, to_apply=sum\n  \
             ROOT t = (f32[30,301], f32[30,100,301], f32[30,301]) tuple(a, p, b)",
            "  a = f32[30,100,301] parameter(0)\n  b = f32[30,100,301] parameter(1)",
            "(f32[30,301], f32[30,100,301], f32[30,301])",
        ),
        1,
        Values::Tame,
        Tolerance::Relative(1e-4),
    );
}

#[test]
fn a_function_of_a_scalar_branches_before_the_tasks() {
    let body = "  x = f64[200,77] parameter(0)\n  y = f64[] parameter(1)\n  \
                w = f64[200,77] broadcast(y), dimensions={}\n  c = f64[200,77] sine(w)\n  \
                m = f64[200,77] abs(w)\n  l = f64[200,77] log(m)\n  p = f64[200,77] multiply(x, c)\n  ROOT r = f64[200,77] add(p, l)";
    let entry = "  a = f64[200,77] parameter(0)\n  b = f64[] parameter(1)\n  \
                 ROOT r = f64[200,77] fusion(a, b), kind=kLoop, calls=body";
    check(
        &format!("HloModule m\n\nbody {{\n{body}\n}}\n\nENTRY main {{\n{entry}\n}}\n"),
        1,
        Values::Tame,
        Tolerance::Relative(1e-12),
    );
}

#[test]
fn nests() {
    check(
        &entry(
            "  x = f32[20,67,301] parameter(0)\n  y = f32[67] parameter(1)\n  \
             t = f32[301,20,67] transpose(x), dimensions={2,0,1}\n  \
             w = f32[20,67,301] broadcast(y), dimensions={1}\n  \
             s = f32[16,50,280] slice(x), slice={[1:17],[3:53],[9:289]}\n  \
             c = f32[] constant(3)\n  p = f32[22,70,310] pad(x, c), padding=1_1x0_3x4_5\n  \
             ROOT r = (f32[301,20,67], f32[20,67,301], f32[16,50,280], f32[22,70,310]) tuple(t, w, s, p)",
        ),
        4,
        Values::Hard,
        Tolerance::Exact,
    );
}

#[test]
fn squares() {
    for (rows, columns) in [(613, 400), (57, 4001), (1024, 1024)] {
        check(
            &entry(&format!(
                "  x = f32[{rows},{columns}] parameter(0)\n  \
                 ROOT t = f32[{columns},{rows}] transpose(x), dimensions={{1,0}}"
            )),
            1,
            Values::Hard,
            Tolerance::Exact,
        );
    }
}

#[test]
fn gathers() {
    check(
        &entry(
            "  x = f32[1000,130] parameter(0)\n  i = s32[2000,1] parameter(1)\n  \
             ROOT g = f32[2000,130] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, \
             index_vector_dim=1, slice_sizes={1,130}",
        ),
        1,
        Values::Below(1000),
        Tolerance::Exact,
    );
}

#[test]
fn concatenations() {
    check(
        &entry(
            "  x = f32[300,400] parameter(0)\n  y = f32[7,400] parameter(1)\n  z = f32[300,331] parameter(2)\n  \
             a = f32[607,400] concatenate(x, y, x), dimensions={0}\n  \
             b = f32[300,731] concatenate(z, x), dimensions={1}\n  \
             ROOT r = (f32[607,400], f32[300,731]) tuple(a, b)",
        ),
        2,
        Values::Hard,
        Tolerance::Exact,
    );
}

#[test]
fn reductions() {
    for (shape, dimensions, result) in [
        ("601,777", "1", "601"),
        ("601,777", "0", "777"),
        ("7,90,777", "0,2", "90"),
        ("30,77,177", "1", "30,177"),
        ("3,500,300", "1", "3,300"),
    ] {
        check(
            &entry(&format!(
                "  x = f32[{shape}] parameter(0)\n  z = f32[] constant(1)\n  \
                 ROOT s = f32[{result}] reduce(x, z), dimensions={{{dimensions}}}, to_apply=sum"
            )),
            1,
            Values::Tame,
            Tolerance::Relative(1e-3),
        );
    }
    // Several operands, one element after another.
    let text = "HloModule m\n\nargmax {\n  v = f32[] parameter(0)\n  i = s32[] parameter(1)\n  w = f32[] parameter(2)\n  \
                j = s32[] parameter(3)\n  g = pred[] compare(w, v), direction=GT\n  m = f32[] select(g, w, v)\n  \
                k = s32[] select(g, j, i)\n  ROOT r = (f32[], s32[]) tuple(m, k)\n}\n\nENTRY main {\n  \
                x = f32[600,700] parameter(0)\n  i = s32[600,700] iota(), iota_dimension=1\n  \
                a = f32[] constant(-inf)\n  b = s32[] constant(0)\n  \
                r = (f32[600], s32[600]) reduce(x, i, a, b), dimensions={1}, to_apply=argmax\n  \
                m = f32[600] get-tuple-element(r), index=0\n  k = s32[600] get-tuple-element(r), index=1\n  \
                ROOT t = (f32[600], s32[600]) tuple(m, k)\n}\n";
    check(text, 2, Values::Tame, Tolerance::Exact);
}

fn dot(lhs: &str, rhs: &str, result: &str, numbers: &str) -> String {
    entry(&format!(
        "  x = {lhs} parameter(0)\n  y = {rhs} parameter(1)\n  d = {result} dot(x, y), {numbers}\n  \
         ROOT n = {result} negate(d)"
    ))
}

#[test]
fn dots() {
    let plain = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    for (lhs, rhs, result, numbers) in [
        // Rows and columns, both with remainders.
        ("f32[101,203]", "f32[203,157]", "f32[101,157]", plain),
        // One row.
        ("f32[1,600]", "f32[600,700]", "f32[1,700]", plain),
        // With many rows, panels are packed in the workers' scratch.
        ("f32[300,64]", "f32[64,200]", "f32[300,200]", plain),
        // A transposed right operand.
        ("f32[90,100]", "f32[130,100]", "f32[90,130]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
        // Along rows.
        ("f32[2,333]", "f32[1301,333]", "f32[2,1301]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
        ("f32[1301,333]", "f32[333]", "f32[1301]", plain),
        // Left operands that are packed: because rows lie around the summands, or because their
        // type differs.
        (
            "f32[20,64,9]",
            "f32[64,150]",
            "f32[20,9,150]",
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ),
        ("bf16[150,90]", "bf16[90,130]", "bf16[150,130]", plain),
        (
            "f32[7,40,50]",
            "f32[7,50,60]",
            "f32[7,40,60]",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        ),
        ("s32[100,90]", "s32[90,130]", "s32[100,130]", plain),
        ("c64[90,100]", "c64[100,100]", "c64[90,100]", plain),
    ] {
        check(&dot(lhs, rhs, result, numbers), 1, Values::Tame, Tolerance::Relative(1e-2));
    }
}

#[test]
fn dots_with_constants() {
    for (m, k, n) in [(1, 400, 1003), (100, 120, 70), (400, 45, 45)] {
        let weights: Vec<String> = (0..k)
            .map(|i| {
                let row: Vec<String> = (0..n).map(|j| ((i * 7 + j * 13) % 17 - 8).to_string()).collect();
                format!("{{{}}}", row.join(","))
            })
            .collect();
        check(
            &entry(&format!(
                "  x = f32[{m},{k}] parameter(0)\n  w = f32[{k},{n}] constant({{{}}})\n  \
                 ROOT d = f32[{m},{n}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                weights.join(",")
            )),
            1,
            Values::Tame,
            Tolerance::Relative(1e-3),
        );
    }
}

#[test]
fn reductions_in_two_steps() {
    let text = format!(
        "HloModule m\n\n{SUM}fused {{\n  x = f32[1125,360] parameter(0)\n  t = f32[1125,360] tanh(x)\n  \
         s = f32[45,25,360] reshape(t)\n  z = f32[] constant(0)\n  \
         ROOT r = f32[45] reduce(s, z), dimensions={{1,2}}, to_apply=sum\n}}\n\nENTRY main {{\n  \
         x = f32[1125,360] parameter(0)\n  z = f32[] constant(0)\n  \
         p = f32[45] fusion(x), kind=kInput, calls=fused\n  s = f32[45,25,360] reshape(x)\n  \
         q = f32[45] reduce(s, z), dimensions={{1,2}}, to_apply=sum\n  \
         a = f32[] reduce(p, z), dimensions={{0}}, to_apply=sum\n  \
         b = f32[] reduce(q, z), dimensions={{0}}, to_apply=sum\n  ROOT t = (f32[], f32[]) tuple(a, b)\n}}\n"
    );
    check(&text, 2, Values::Tame, Tolerance::Relative(1e-2));
}

/// The tasks also copy the elements of an argument that the slice leaves unchanged.
#[test]
fn dots_that_write_a_slice() {
    for (rows, columns, before, whole) in [(150, 130, 7, 200), (1, 700, 64, 900), (40, 333, 0, 334)] {
        let text = format!(
            "HloModule m\n\nfused {{\n  x = f32[{rows},600] parameter(0)\n  y = f32[600,{columns}] parameter(1)\n  \
             a = f32[{rows},{whole}] parameter(2)\n  d = f32[{rows},{columns}] dot(x, y), \
             lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  z = s32[] constant(0)\n  \
             o = s32[] constant({before})\n  ROOT u = f32[{rows},{whole}] dynamic-update-slice(a, d, z, o)\n}}\n\n\
             ENTRY main {{\n  x = f32[{rows},600] parameter(0)\n  y = f32[600,{columns}] parameter(1)\n  \
             a = f32[{rows},{whole}] parameter(2)\n  \
             ROOT f = f32[{rows},{whole}] fusion(x, y, a), kind=kOutput, calls=fused\n}}\n"
        );
        check(&text, 1, Values::Tame, Tolerance::Relative(1e-2));
    }
}

/// All kinds of convolutions: cut by pixels, by features, and by both; and a general nest.
#[test]
fn convolutions() {
    let convolution = |x: &str, w: &str, r: &str, attributes: &str| {
        entry(&format!(
            "  x = {x} parameter(0)\n  w = {w} parameter(1)\n  ROOT c = {r} convolution(x, w), {attributes}"
        ))
    };
    let same = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    let depthwise = |channels: i64| format!("{same}, feature_group_count={channels}");
    for (x, w, r, attributes) in [
        ("f32[2,17,19,12]", "f32[3,3,12,40]", "f32[2,17,19,40]", same),
        ("f32[1,5,5,70]", "f32[3,3,70,200]", "f32[1,5,5,200]", same),
        (
            "f32[1,23,29,64]",
            "f32[1,1,64,70]",
            "f32[1,23,29,70]",
            "window={size=1x1}, dim_labels=b01f_01io->b01f",
        ),
        ("f32[1,300,24]", "f32[5,24,33]", "f32[1,296,33]", "window={size=5}, dim_labels=b0f_0io->b0f"),
        ("f32[1,50,51,40]", "f32[3,3,1,40]", "f32[1,50,51,40]", &depthwise(40)),
        ("f32[1,7,7,1830]", "f32[3,3,1,1830]", "f32[1,7,7,1830]", &depthwise(1830)),
        ("c64[2,11,11,12]", "c64[3,3,12,40]", "c64[2,11,11,40]", same),
        (
            "f32[4,33,33,24]",
            "f32[4,33,33,40]",
            "f32[5,5,24,40]",
            "window={size=33x33 pad=2_2x2_2}, dim_labels=f01b_i01o->01bf",
        ),
    ] {
        check(&convolution(x, w, r, attributes), 1, Values::Tame, Tolerance::Relative(1e-3));
    }
}

/// Convolutions by patches: cut into blocks, and by features of a block, whose tasks share its
/// transformed input.
#[test]
fn patches() {
    let same = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    for (x, w, r) in [
        ("f32[3,30,31,24]", "f32[3,3,24,40]", "f32[3,30,31,40]"),
        ("f32[1,9,9,96]", "f32[3,3,96,264]", "f32[1,9,9,264]"),
        ("f32[1,12,13,260]", "f32[3,3,260,140]", "f32[1,12,13,140]"),
    ] {
        let text = entry(&format!(
            "  x = {x} parameter(0)\n  w = {w} parameter(1)\n  ROOT c = {r} convolution(x, w), {same}"
        ));
        for outputs in [2, 4] {
            let options =
                plan::Options { winograd: plan::Winograd::Forced(outputs), ..plan::Options::default() };
            check_planned(&text, 1, Values::Tame, Tolerance::Relative(1e-2), &options);
        }
    }
}

/// Gradients of kernels by patches: parts of the input features and of the output features.
#[test]
fn gradients_by_patches() {
    for (x, g, r) in [
        ("f32[3,9,8,64]", "f32[3,9,8,40]", "f32[3,3,64,40]"),
        ("f32[2,6,7,34]", "f32[2,6,7,256]", "f32[3,3,34,256]"),
    ] {
        let size = if x.starts_with("f32[3") { "9x8" } else { "6x7" };
        let text = entry(&format!(
            "  x = {x} parameter(0)\n  g = {g} parameter(1)\n  ROOT c = {r} convolution(x, g), \
             window={{size={size} pad=1_1x1_1}}, dim_labels=f01b_i01o->01bf"
        ));
        let options = plan::Options { winograd: plan::Winograd::Forced(2), ..plan::Options::default() };
        check_planned(&text, 1, Values::Tame, Tolerance::Relative(1e-3), &options);
    }
}

/// Bands of a chain of convolutions. Neighboring tasks both compute the borders that they need.
#[test]
fn chains_of_convolutions() {
    let text = "HloModule m\n\nchain {\n  x = f32[2,18,15,6] parameter(0)\n  w = f32[1,1,6,24] parameter(1)\n  \
                d = f32[3,3,1,24] parameter(2)\n  v = f32[1,1,24,7] parameter(3)\n  bias = f32[24] parameter(4)\n  \
                a = f32[2,18,15,24] convolution(x, w), window={size=1x1}, dim_labels=b01f_01io->b01f\n  \
                wide = f32[2,18,15,24] broadcast(bias), dimensions={3}\n  b = f32[2,18,15,24] add(a, wide)\n  \
                c = f32[2,18,15,24] convolution(b, d), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, \
                feature_group_count=24\n  \
                ROOT e = f32[2,18,15,7] convolution(c, v), window={size=1x1}, dim_labels=b01f_01io->b01f\n}\n\n\
                ENTRY main {\n  x = f32[2,18,15,6] parameter(0)\n  w = f32[1,1,6,24] parameter(1)\n  \
                d = f32[3,3,1,24] parameter(2)\n  v = f32[1,1,24,7] parameter(3)\n  bias = f32[24] parameter(4)\n  \
                ROOT r = f32[2,18,15,7] fusion(x, w, d, v, bias), kind=kOutput, calls=chain\n}\n";
    check(text, 1, Values::Tame, Tolerance::Relative(1e-3));
}

#[test]
fn transforms() {
    // Lines, and groups of them. The last group overlaps the one before.
    let lines = [
        ("c64[4999,40]", "c64[4999,40]", "FFT", "40"),
        ("f32[40001,6]", "c64[40001,4]", "RFFT", "6"),
        ("c64[40001,4]", "f32[40001,7]", "IRFFT", "7"),
    ];
    for (operand, result, kind, lengths) in lines {
        let text = entry(&format!(
            "  x = {operand} parameter(0)\n  ROOT y = {result} fft(x), fft_type={kind}, fft_length={{{lengths}}}"
        ));
        check(&text, 1, Values::Tame, Tolerance::Relative(1e-3));
    }
    // The columns are another kernel of the same instruction. It reads what the kernel of the lines
    // wrote to scratch.
    let dimensions = [
        ("c64[700,12,33]", "c64[700,12,33]", "IFFT", "12,33"),
        ("c64[700,12,19]", "f32[700,12,36]", "IRFFT", "12,36"),
    ];
    for (operand, result, kind, lengths) in dimensions {
        let text = entry(&format!(
            "  x = {operand} parameter(0)\n  y = {result} fft(x), fft_type={kind}, fft_length={{{lengths}}}\n  \
             ROOT z = {result} negate(y)"
        ));
        check(&text, 2, Values::Tame, Tolerance::Relative(1e-3));
    }
}
