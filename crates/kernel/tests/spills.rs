//! Inner loops of tiles keep their sums in registers, on every instruction set: the assembly is read and counted.

use codegen::{CodegenOptions, Constants};
use std::collections::BTreeMap;
use target::Target;

/// Triple, processor, features.
const TARGETS: [(&str, &str, &str); 9] = [
    ("x86_64-unknown-linux-gnu", "", ""),
    ("x86_64-unknown-linux-gnu", "x86-64-v2", ""),
    ("x86_64-unknown-linux-gnu", "haswell", ""),
    ("x86_64-unknown-linux-gnu", "x86-64-v4", ""),
    ("x86_64-unknown-linux-gnu", "sapphirerapids", ""),
    ("aarch64-unknown-linux-gnu", "", ""),
    ("armv7-unknown-linux-gnueabihf", "", "+neon"),
    ("riscv64-unknown-linux-gnu", "", ""),
    ("riscv64-unknown-linux-gnu", "", "+m,+a,+f,+d,+c,+v"),
];

fn assembly(text: &str, target: &Target) -> String {
    let module = hlo::text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let plan = plan::plan(&module, target).expect("a plan");
    let schedule = buffers::schedule(&module, &plan);
    let assignment = buffers::assign(&module, &plan, &schedule).expect("buffers");
    let program = kernel::lower(&module, &plan, &schedule, &assignment, target, "entry").expect("a program");
    let chunks = assignment.constants.iter().map(|(offset, bytes)| (*offset, bytes.as_ref())).collect();
    let constants = Constants { size: assignment.constants_size, chunks };
    let options = CodegenOptions { assembly: true, ..CodegenOptions::new("entry") };
    codegen::compile(&program, target, &options, &constants).expect("code").assembly.expect("asked for")
}

/// A loop without loops inside.
#[derive(Debug)]
struct InnerLoop<'a> {
    lines: Vec<&'a str>,
}

impl InnerLoop<'_> {
    fn count(&self, wanted: impl Fn(&str) -> bool) -> usize {
        self.lines.iter().filter(|line| wanted(line)).count()
    }

    /// Multiply-adds, or the multiplications that stand for them.
    fn products(&self) -> usize {
        const WORDS: [&str; 10] = [
            "vfmadd",
            "mulps",
            "vmulps",
            "fmla",
            "vmla.f32",
            "vmul.f32",
            "vfma.f32",
            "vfmacc",
            "fmadd.s",
            "vfmadd.vf",
        ];
        self.count(|line| {
            WORDS.iter().any(|word| line.split_whitespace().next().is_some_and(|m| m.starts_with(word)))
        })
    }

    /// Accesses of the stack. RISC-V's whole vector registers go nowhere else.
    fn spills(&self) -> usize {
        const STACK: [&str; 7] = ["(%rsp", "[sp", ", sp", "(sp)", "vs1r.v", "vs2r.v", "vl1re32.v"];
        self.count(|line| STACK.iter().any(|word| line.contains(word)))
    }
}

/// The innermost loops: from a label to a jump back to it, without another such jump between.
fn inner_loops(assembly: &str) -> Vec<InnerLoop<'_>> {
    let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
    let labels: BTreeMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(k, line)| line.split_once(':').map(|(label, _)| (label, k)))
        .filter(|(label, _)| label.starts_with(".L"))
        .collect();
    let mut last_start = 0;
    let mut loops = Vec::new();
    for (end, line) in lines.iter().enumerate() {
        let start = line.split([' ', '\t', ',']).rev().find_map(|word| labels.get(word).copied());
        if let Some(start) = start.filter(|start| *start <= end) {
            if start >= last_start {
                loops.push(InnerLoop { lines: lines[start..=end].to_vec() });
            }
            last_start = last_start.max(end);
        }
    }
    loops
}

fn dot(m: i64, n: i64, k: i64, numbers: &str, constant: bool) -> String {
    let swapped = |a: i64, b: i64, first: &str| {
        if numbers.contains(first) { format!("f32[{b},{a}]") } else { format!("f32[{a},{b}]") }
    };
    let lhs = swapped(m, k, "lhs_contracting_dims={0}");
    let rhs = swapped(k, n, "rhs_contracting_dims={1}");
    let operand = match constant {
        true => format!("  one = f32[] constant(1)\n  w = {rhs} broadcast(one), dimensions={{}}\n"),
        false => format!("  w = {rhs} parameter(1)\n"),
    };
    format!(
        "HloModule dots\n\nENTRY main {{\n  x = {lhs} parameter(0)\n{operand}  \
         ROOT d = f32[{m},{n}] dot(x, w), {numbers}\n}}\n"
    )
}

fn convolution(image: [i64; 3], window: [i64; 2], stride: i64, outputs: i64) -> String {
    let [height, width, inputs] = image;
    let out = |size: i64| (size + stride - 1) / stride;
    let pad = |size: i64, window: i64| {
        let all = ((out(size) - 1) * stride + window - size).max(0);
        format!("{}_{}", all / 2, all - all / 2)
    };
    format!(
        "HloModule convolutions\n\nENTRY main {{\n  x = f32[1,{height},{width},{inputs}] parameter(0)\n  \
         w = f32[{},{},{inputs},{outputs}] parameter(1)\n  ROOT c = f32[1,{},{},{outputs}] convolution(x, w), \
         window={{size={}x{} stride={stride}x{stride} pad={}x{}}}, dim_labels=b01f_01io->b01f\n}}\n",
        window[0],
        window[1],
        out(height),
        out(width),
        window[0],
        window[1],
        pad(height, window[0]),
        pad(width, window[1]),
    )
}

/// What is wrong with a module's inner loops, on all targets.
fn findings(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (triple, cpu, features) in TARGETS {
        let target = Target::new(triple, cpu, features).expect("a triple");
        let assembly = assembly(text, &target);
        let loops = inner_loops(&assembly);
        let hot: Vec<&InnerLoop<'_>> = loops.iter().filter(|l| l.products() >= 4).collect();
        if hot.is_empty() {
            found.push(format!("{name} on {triple} {cpu} {features}: no inner loop multiplies"));
        }
        for inner in hot.iter().filter(|l| l.spills() > 0) {
            found.push(format!(
                "{name} on {triple} {cpu} {features}: {} accesses of the stack beside {} products",
                inner.spills(),
                inner.products(),
            ));
        }
    }
    found
}

fn check(findings: impl IntoIterator<Item = Vec<String>>) {
    let findings: Vec<String> = findings.into_iter().flatten().collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

const PLAIN: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
const RHS_TURNED: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
const LHS_TURNED: &str = "lhs_contracting_dims={0}, rhs_contracting_dims={0}";

#[test]
fn tiles_of_dots_stay_in_registers() {
    let shapes = [
        (128, 768, 768),
        (49, 512, 512),
        (64, 64, 64),
        (8, 1024, 1024),
        (1, 1000, 256),
        (3, 40, 96),
        (100, 10, 64),
        (64, 256, 2916),
    ];
    check(shapes.map(|(m, n, k)| findings(&format!("dot {m}x{n}x{k}"), &dot(m, n, k, PLAIN, false))));
}

#[test]
fn tiles_of_constants_stay_in_registers() {
    let shapes = [(128, 768, 768), (9, 48, 64), (1, 1000, 256), (16, 24, 32), (8, 1024, 1024)];
    check(shapes.map(|(m, n, k)| findings(&format!("dot {m}x{n}x{k}, packed"), &dot(m, n, k, PLAIN, true))));
}

#[test]
fn tiles_of_turned_operands_stay_in_registers() {
    let right = [(128, 128, 64), (64, 512, 512), (2, 100, 512), (4, 4, 256)];
    let left = [(128, 512, 32), (64, 64, 64)];
    check(right.map(|(m, n, k)| {
        findings(&format!("dot {m}x{n}x{k}, right turned"), &dot(m, n, k, RHS_TURNED, false))
    }));
    check(left.map(|(m, n, k)| {
        findings(&format!("dot {m}x{n}x{k}, left turned"), &dot(m, n, k, LHS_TURNED, false))
    }));
}

#[test]
fn tiles_of_convolutions_stay_in_registers() {
    let cases = [
        ([28, 28, 64], [3, 3], 2, 64),
        ([56, 56, 3], [7, 7], 2, 64),
        ([14, 14, 96], [1, 1], 1, 128),
        ([14, 14, 32], [1, 1], 2, 24),
        ([7, 7, 128], [3, 3], 1, 128),
        ([17, 17, 32], [1, 7], 1, 48),
    ];
    check(cases.map(|(image, window, stride, outputs)| {
        findings(
            &format!("convolution {image:?} {window:?} stride {stride} to {outputs}"),
            &convolution(image, window, stride, outputs),
        )
    }));
}
